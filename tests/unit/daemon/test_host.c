/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "host.h"

static struct options opt = {.family = AF_UNSPEC, .port = 20049};
static struct addrs_list list;
static struct sockaddr_storage src;
static char text[256];

static int resolve(const char *host, const char *ours)
{
	opt.host = (char *)(uintptr_t)host;
	opt.clientaddr = (char *)(uintptr_t)ours;
	return host_addresses(&opt, &list, &src, text, sizeof(text));
}

Test(host, an_address_is_itself_with_its_port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&list.addr[0];
	struct sockaddr_storage now;
	struct addrs *a;

	cr_assert_eq(resolve("192.0.2.7", NULL), 0);
	cr_assert_eq(list.cnt, 1);
	cr_assert_eq(in->sin_family, AF_INET);
	cr_assert_eq(ntohs(in->sin_port), 20049);
	cr_assert_eq(src.ss_family, AF_UNSPEC);
	a = host_addrs_new(&opt, &list, 0, &src);
	cr_assert_not_null(a);
	cr_assert_eq(addrs_now(a, &now), 0);
	cr_assert_eq(((struct sockaddr_in *)&now)->sin_addr.s_addr, in->sin_addr.s_addr);
	addrs_free(a);
}

Test(host, ours_is_of_the_same_family)
{
	cr_assert_eq(resolve("2001:db8::1", "2001:db8::2"), 0);
	cr_assert_eq(list.cnt, 1);
	cr_assert_eq(list.addr[0].ss_family, AF_INET6);
	cr_assert_eq(src.ss_family, AF_INET6);
	cr_assert_neq(resolve("2001:db8::1", "192.0.2.1"), 0);
	cr_assert(strstr(text, "192.0.2.1"));
}

static void list_add(struct addrs_list *to, int family)
{
	struct sockaddr_storage ss = {.ss_family = (sa_family_t)family};

	cr_assert(addrs_list_add(to, (const struct sockaddr *)&ss));
}

/* A server with both, the resolver puts IPv6 first, and ours is IPv4. */
Test(host, ours_decides_which_of_the_servers_addresses_are_used)
{
	struct addrs_list dst = {0}, ours = {0};

	list_add(&dst, AF_INET6);
	list_add(&dst, AF_INET);
	list_add(&ours, AF_INET);
	cr_assert(host_use_from(&dst, &ours, &src));
	cr_assert_eq(src.ss_family, AF_INET);
	cr_assert_eq(dst.cnt, 1);
	cr_assert_eq(dst.addr[0].ss_family, AF_INET);
	ours.cnt = 0;
	list_add(&ours, AF_INET6);
	cr_assert_not(host_use_from(&dst, &ours, &src));
}

Test(host, what_failed_before_the_server_answered_is_tried_elsewhere)
{
	static const char *const net[] = {"resolve", "route", "connect"};

	for (int i = 0; i < 3; i++)
		cr_expect(host_may_be_elsewhere(net[i]));
	cr_expect_not(host_may_be_elsewhere("session"));
	cr_expect_not(host_may_be_elsewhere("set-up"));
	cr_expect_not(host_may_be_elsewhere("export path"));
}
