/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "roce_int.h"

/* The addresses of a machine: in place of libc's. NULL: there is none, as of a tunnel. */
static struct ifaddrs interfaces[3];

int getifaddrs(struct ifaddrs **ret)
{
	*ret = interfaces;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
}

/* The /sys of a machine. */
static char sys[64];

static void file(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", sys, path);
	for (char *p = full + strlen(sys) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	f = fopen(full, "w");
	cr_assert_not_null(f, "%s", full);
	fputs(text, f);
	fclose(f);
}

static int one_gone(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void set_up(void)
{
	strcpy(sys, "/tmp/roce_sys.XXXXXX");
	cr_assert_not_null(mkdtemp(sys));
	file("class/infiniband/mlx5_0/node_type", "1: CA\n");
	/* Of the first index there is no GID: a directory gives an error, too. */
	file("class/infiniband/mlx5_0/ports/1/gid_attrs/types/0/none", "");
	file("class/infiniband/mlx5_0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n");
	file("class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
	/* RoCE is turned off; it is InfiniBand; v1 has no UDP. */
	file("class/infiniband/mlx5_1/node_type", "1: CA\n");
	file("class/infiniband/mlx5_1/ports/1/gid_attrs/types/0/none", "");
	file("class/infiniband/mlx5_2/node_type", "1: CA\n");
	file("class/infiniband/mlx5_2/ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
	/* The other port is. */
	file("class/infiniband/mlx4_0/node_type", "1: CA\n");
	file("class/infiniband/mlx4_0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
	file("class/infiniband/mlx4_0/ports/2/gid_attrs/types/0", "RoCE v2\n");
	file("class/infiniband/cxgb4_0/node_type", "4: RNIC\n");
	file("class/infiniband/cxgb4_0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	file("class/infiniband/rxe0/node_type", "1: CA\n");
	file("class/infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	file("class/net/eth0/device/infiniband/mlx5_0/dev", "231:0\n");
	file("class/net/eth1/device/infiniband/cxgb4_0/dev", "231:1\n");
	file("class/net/eth2/device/vendor", "0x1af4\n");
	file("class/net/eth4/device/infiniband/mlx5_1/dev", "231:2\n");
	file("class/net/ib0/device/infiniband/mlx5_2/dev", "231:3\n");
	file("class/net/eth5/device/infiniband/mlx4_0/dev", "231:4\n");
	file("class/net/bond0/lower_eth2", "");
	file("class/net/bond0/lower_eth0", "");
	file("class/net/bond0.7/lower_bond0", "");
}

static void tear_down(void)
{
	cr_assert_eq(nftw(sys, one_gone, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TestSuite(roce_sys, .init = set_up, .fini = tear_down);

Test(roce_sys, an_adapter_that_speaks_roce_takes_the_port)
{
	char name[64];

	cr_assert(roce_sys_takes_port(sys, "eth0", name));
	cr_assert_str_eq(name, "mlx5_0");
	cr_assert(roce_sys_takes_port(sys, "eth0:1", name), "by the label of an address");
	cr_assert_not(roce_sys_takes_port(sys, "eth1", name), "iWARP is TCP");
	cr_assert_not(roce_sys_takes_port(sys, "eth2", name), "rxe has no device below it");
	cr_assert_not(roce_sys_takes_port(sys, "eth3", name));
}

Test(roce_sys, one_that_does_not_speak_it_takes_nothing)
{
	char name[64];

	cr_assert_not(roce_sys_takes_port(sys, "eth4", name), "RoCE is off");
	cr_assert_not(roce_sys_takes_port(sys, "ib0", name), "InfiniBand has no UDP of its own");
	cr_assert(roce_sys_takes_port(sys, "eth5", name), "by one of its ports");
	cr_assert_str_eq(name, "mlx4_0");
}

Test(roce_sys, so_does_one_below_a_bond_or_a_vlan)
{
	char name[64] = "";

	cr_assert(roce_sys_takes_port(sys, "bond0.7", name));
	cr_assert_str_eq(name, "mlx5_0");
}

Test(roce_sys, one_that_is_below_itself_ends)
{
	char name[64];

	file("class/net/odd/lower_odd", "");
	cr_assert_not(roce_sys_takes_port(sys, "odd", name));
}

/* The same address may be that of several links. */
Test(roce_sys, it_is_the_adapter_of_the_link)
{
	struct sockaddr_in6 addrs[2] = {{.sin6_family = AF_INET6, .sin6_scope_id = 200002},
		{.sin6_family = AF_INET6, .sin6_scope_id = 200003}};
	char name[64];

	for (int i = 0; i < 2; i++) {
		inet_pton(AF_INET6, "fe80::1", &addrs[i].sin6_addr);
		interfaces[i] = (struct ifaddrs){.ifa_next = &interfaces[i + 1],
			.ifa_name = (char *)(i == 0 ? "eth0" : "eth2"),
			.ifa_addr = (struct sockaddr *)&addrs[i]};
	}
	interfaces[2] = (struct ifaddrs){.ifa_name = (char *)"eth0"};
	cr_assert(roce_sys_adapter(
		sys, (struct sockaddr *)&addrs[0], (struct sockaddr *)&addrs[1], name));
	cr_assert_str_eq(name, "mlx5_0");
	cr_assert_not(roce_sys_adapter(
		sys, (struct sockaddr *)&addrs[1], (struct sockaddr *)&addrs[0], name));
}

/* The kernel's own answer: to an address of this machine packets go by its loopback. */
static void by_the_loopback(const struct sockaddr *addr)
{
	char name[64] = "";

	interfaces[0] = (struct ifaddrs){.ifa_name = (char *)"eth2"};
	cr_assert_not(roce_sys_adapter(sys, addr, addr, name));
	file("class/net/lo/device/infiniband/mlx5_0/dev", "231:0\n");
	cr_assert(roce_sys_adapter(sys, addr, addr, name));
	cr_assert_str_eq(name, "mlx5_0");
}

Test(roce_sys, so_does_the_one_that_the_route_leaves_by)
{
	struct sockaddr_in lo = {.sin_family = AF_INET}, none = {.sin_family = AF_INET};
	char name[64];

	inet_pton(AF_INET, "127.0.0.1", &lo.sin_addr);
	by_the_loopback((struct sockaddr *)&lo);
	/* From an address of the loopback the kernel has no route to any other. */
	inet_pton(AF_INET, "192.0.2.9", &none.sin_addr);
	cr_assert_not(
		roce_sys_adapter(sys, (struct sockaddr *)&lo, (struct sockaddr *)&none, name));
}

Test(roce_sys, so_does_the_one_that_the_route_leaves_by_of_ipv6)
{
	struct sockaddr_in6 lo = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	if (access("/proc/net/if_inet6", F_OK))
		cr_skip_test("no IPv6");
	by_the_loopback((struct sockaddr *)&lo);
}
