/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that speaks RoCEv2 takes what comes to UDP port 4791 before the kernel's network stack
 * sees it, and drops what is of no queue pair of its own. rdma_rxe and the like are no adapters:
 * they have no device below them.
 */
#include "roce_int.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define GIDS   256u /* addresses of a port, as adapters have */
#define LEVELS 4u   /* a VLAN of a bond of an adapter, and one more */

/* Whether the i-th address of a port is RoCEv2's. An index that is not in use cannot be read. */
static bool is_roce(const char *port, unsigned int i)
{
	char path[600], type[16] = "";
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "%s/gid_attrs/types/%u", port, i);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = fgets(type, sizeof(type), f) && strncmp(type, "RoCE v2", 7) == 0;
	fclose(f);
	return found;
}

/* Not a port of InfiniBand, nor an adapter whose RoCE is off: those leave the port to the kernel.
 */
static bool speaks_roce(const char *sys, const char *device)
{
	char path[512], port[520];
	bool found = false;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports", sys, device);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(port, sizeof(port), "%.400s/%.100s", path, e->d_name);
		for (unsigned int i = 0; i < GIDS && !found; i++)
			found = is_roce(port, i);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_adapter(const char *sys, const char *device)
{
	char path[512], type[8] = "";
	FILE *f;

	/* "1: CA": InfiniBand or RoCE; iWARP, which is TCP, is "4: RNIC". */
	snprintf(path, sizeof(path), "%s/class/infiniband/%s/node_type", sys, device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(type, sizeof(type), f))
		type[0] = '\0';
	fclose(f);
	return type[0] == '1' && type[1] == ':' && speaks_roce(sys, device);
}

static bool takes(const char *sys, const char *netdev, unsigned int level, char ret[64])
{
	char path[512];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/net/%s/device/infiniband", sys, netdev);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || !is_adapter(sys, e->d_name))
			continue;
		snprintf(ret, 64, "%.63s", e->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	if (found || level == 0)
		return found;
	snprintf(path, sizeof(path), "%s/class/net/%s", sys, netdev);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL)
		found = strncmp(e->d_name, "lower_", 6) == 0 &&
			takes(sys, e->d_name + 6, level - 1, ret);
	if (dir)
		closedir(dir);
	return found;
}

bool roce_sys_takes_port(const char *sys, const char *netdev, char ret[64])
{
	char name[IF_NAMESIZE];

	/* Of an address with a label getifaddrs(3) says that: eth0:1. */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(netdev, ":"), netdev);
	return takes(sys, name, LEVELS, ret);
}

/* A link has addresses of its own. */
static bool is_same_v6(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	return memcmp(&a->sin6_addr, &b->sin6_addr, 16) == 0 &&
	       (!IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr) || a->sin6_scope_id == b->sin6_scope_id);
}

static bool is_same(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       is_same_v6((const struct sockaddr_in6 *)a, (const struct sockaddr_in6 *)b);
}

bool roce_sys_adapter(const struct sockaddr_storage *local, char ret[64])
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = is_same(i->ifa_addr, local) &&
			roce_sys_takes_port("/sys", i->ifa_name, ret);
	freeifaddrs(all);
	return found;
}
