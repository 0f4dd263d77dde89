/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "addrs.h"

static struct addrs_list answer; /* of the resolver */
static bool fails;
static unsigned int asked;

static bool resolve(void *ctx, struct addrs_list *ret)
{
	asked++;
	*ret = answer;
	return !fails;
}

static bool add(struct addrs_list *list, unsigned int number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};

	in.sin_addr.s_addr = htonl(0x0a000000u + number);
	return addrs_list_add(list, (struct sockaddr *)&in);
}

static struct addrs *with(unsigned int cnt, unsigned int first)
{
	struct addrs_list list = {0};

	for (unsigned int i = 1; i <= cnt; i++)
		cr_assert(add(&list, i));
	/* Freed with it, as the sanitizer sees. */
	return addrs_new(&list, first, resolve, malloc(1), false);
}

static unsigned int now(struct addrs *a)
{
	struct sockaddr_storage ss;

	addrs_now(a, &ss);
	return ntohl(((struct sockaddr_in *)&ss)->sin_addr.s_addr) - 0x0a000000u;
}

/* As many attempts as it takes. */
static void give_up(struct addrs *a)
{
	struct sockaddr_storage ss;
	uint64_t turn = addrs_now(a, &ss);

	for (unsigned int i = 0; i < ADDRS_TRIES; i++)
		addrs_failed(a, turn);
}

Test(addrs, are_listed_once_each_and_in_order)
{
	struct addrs_list list = {0};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	cr_assert(add(&list, 2));
	cr_assert_not(add(&list, 2));
	cr_assert(addrs_list_add(&list, (struct sockaddr *)&in6));
	in6.sin6_scope_id = 3;
	cr_assert(addrs_list_add(&list, (struct sockaddr *)&in6));
	cr_assert_not(addrs_list_add(&list, (struct sockaddr *)&in6));
	cr_assert_not(addrs_list_add(&list, &(struct sockaddr){.sa_family = AF_UNIX}));
	cr_assert_eq(list.cnt, 3);
	for (unsigned int i = 10; i < 10 + 2 * ADDRS_MAX; i++)
		add(&list, i);
	cr_assert_eq(list.cnt, ADDRS_MAX);
}

Test(addrs, are_printed_with_port_and_link)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(1)};
	char text[80];

	in.sin_addr.s_addr = htonl(0xc0000201);
	addrs_print(text, sizeof(text), (struct sockaddr *)&in);
	cr_assert_str_eq(text, "192.0.2.1:20049");
	in6.sin6_addr = (struct in6_addr){.s6_addr = {0xfe, 0x80, [15] = 1}};
	in6.sin6_scope_id = if_nametoindex("lo");
	addrs_print(text, sizeof(text), (struct sockaddr *)&in6);
	cr_assert_str_eq(text, "[fe80::1%lo]:1");
	in6.sin6_addr.s6_addr[0] = 0xfd;
	in6.sin6_scope_id = 0;
	addrs_print(text, 8, (struct sockaddr *)&in6);
	cr_assert_str_eq(text, "[fd80::");
}

Test(addrs, the_next_is_tried_after_some_attempts)
{
	struct addrs *a = with(3, 1);
	struct sockaddr_storage ss;
	uint64_t turn = addrs_now(a, &ss);

	cr_assert_eq(now(a), 2);
	for (unsigned int i = 0; i + 1 < ADDRS_TRIES; i++)
		addrs_failed(a, turn);
	cr_assert_eq(now(a), 2);
	addrs_failed(a, turn);
	cr_assert_eq(now(a), 3);
	/* Of those who tried the one before nothing counts any more. */
	for (unsigned int i = 0; i < 10; i++)
		addrs_failed(a, turn);
	cr_assert_eq(now(a), 3);
	cr_assert_not(addrs_up(a, turn));
	addrs_free(a);
}

Test(addrs, none_is_given_up_while_anybody_is_connected)
{
	struct addrs *a = with(2, 0);

	cr_assert(addrs_up(a, 0));
	cr_assert(addrs_up(a, 0));
	addrs_down(a, false);
	give_up(a);
	cr_assert_eq(now(a), 1);
	addrs_down(a, false);
	give_up(a);
	cr_assert_eq(now(a), 2);
	addrs_free(a);
}

/* Attempts of an outage of long ago. */
Test(addrs, failures_before_a_good_connection_do_not_count)
{
	struct addrs *a = with(2, 0);

	for (unsigned int i = 0; i + 1 < ADDRS_TRIES; i++)
		addrs_failed(a, 0);
	cr_assert(addrs_up(a, 0));
	addrs_down(a, true);
	addrs_failed(a, 0);
	cr_assert_eq(now(a), 1);
	addrs_free(a);
}

Test(addrs, after_the_last_one_the_name_is_resolved_again)
{
	struct addrs *a = with(2, 0);

	answer = (struct addrs_list){0};
	add(&answer, 7);
	give_up(a);
	cr_assert_not(addrs_step(a));
	give_up(a);
	/* Until the answer is there they are tried once more. */
	cr_assert_eq(now(a), 1);
	addrs_failed(a, 2);
	cr_assert(addrs_step(a));
	cr_assert_eq(asked, 1);
	cr_assert_eq(now(a), 7);
	/* The only one: it stays in use, and the name is asked for again and again. */
	fails = true;
	for (int i = 0; i < 3; i++) {
		give_up(a);
		cr_assert_eq(now(a), 7);
		cr_assert(addrs_step(a));
	}
	cr_assert_eq(asked, 4);
	fails = false;
	answer.cnt = 0;
	give_up(a);
	cr_assert(addrs_step(a));
	cr_assert_eq(now(a), 7, "an answer without addresses is none");
	addrs_free(a);
}

Test(addrs, an_answer_moves_nobody_who_is_connected)
{
	struct addrs *a = with(1, 0);

	answer = (struct addrs_list){0};
	add(&answer, 7);
	give_up(a);
	cr_assert(addrs_up(a, 0));
	cr_assert(addrs_step(a));
	cr_assert_eq(now(a), 1);
	addrs_down(a, false);
	give_up(a);
	cr_assert_eq(now(a), 7);
	addrs_free(a);
}

static int gate[2];

static bool slow(void *ctx, struct addrs_list *ret)
{
	char byte;

	return read(gate[0], &byte, 1) == 1;
}

static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int cnt = 0;

	cr_assert(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* The end of a mount does not wait for a name service that hangs. */
Test(addrs, a_resolver_at_work_is_not_waited_for, .timeout = 20)
{
	unsigned int before = threads();
	struct addrs_list list = {0};
	struct addrs *a;

	cr_assert_eq(pipe(gate), 0);
	add(&list, 1);
	a = addrs_new(&list, 0, slow, malloc(1), true);
	give_up(a);
	give_up(a);
	cr_assert_eq(now(a), 1);
	addrs_free(a);
	cr_assert_eq(write(gate[1], "x", 1), 1);
	while (threads() > before)
		usleep(1000);
}
