/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that speaks RoCEv2 takes what comes to UDP port 4791 before the kernel's network stack
 * sees it, and drops what is of no queue pair of its own. It has GIDs of RoCEv2: with RoCE turned
 * off, or of InfiniBand, there is a device as well, and none of these. rdma_rxe and the like are no
 * adapters: they have no device below them.
 *
 * An address of ours may be one of no adapter (lo, or a dummy, where routers tell of it): packets
 * leave, and come, by the interface of the route.
 */
#include "roce_int.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "roce_addr.h"

#define LEVELS 4u /* a VLAN of a bond of an adapter, and one more */

/* The first line; "": there is none. */
static void read_line(const char *path, char ret[32])
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(ret, 32, f))
		ret[0] = '\0';
	if (f)
		fclose(f);
}

/* Has the port a GID of RoCEv2? Of an index without a GID the kernel reads nothing (EINVAL). */
static bool has_gid(const char *device, const char *port)
{
	char path[768], type[32];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/ports/%.16s/gid_attrs/types", device, port);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/ports/%.16s/gid_attrs/types/%.16s", device, port,
			e->d_name);
		read_line(path, type);
		found = strncmp(type, "RoCE v2", 7) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_adapter(const char *sys, const char *name)
{
	char device[512], path[544], type[32];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(device, sizeof(device), "%s/class/infiniband/%s", sys, name);
	/* "1: CA": InfiniBand or RoCE; iWARP, which is TCP, is "4: RNIC". */
	snprintf(path, sizeof(path), "%s/node_type", device);
	read_line(path, type);
	if (strncmp(type, "1:", 2) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/ports", device);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL)
		found = e->d_name[0] != '.' && has_gid(device, e->d_name);
	if (dir)
		closedir(dir);
	return found;
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

/* ---- the route ---- */

struct route_ask {
	struct nlmsghdr head;
	struct rtmsg about;
	uint8_t attrs[2 * RTA_SPACE(16)];
};

static void put_addr(struct route_ask *a, unsigned short type, const struct sockaddr *addr)
{
	uint8_t bytes[16] = {0};
	size_t len = addr->sa_family == AF_INET6 ? 16 : 4;
	struct rtattr at = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = type};
	uint8_t *to = (uint8_t *)a + a->head.nlmsg_len;

	roce_addr_put(bytes, addr);
	memcpy(to, &at, sizeof(at));
	memcpy(to + RTA_LENGTH(0), bytes, len);
	a->head.nlmsg_len += (uint32_t)RTA_SPACE(len);
}

/* The number of the interface by which packets leave; 0: the kernel does not say. */
static unsigned int route_of(const struct sockaddr *local, const struct sockaddr *remote)
{
	unsigned char bits = remote->sa_family == AF_INET6 ? 128 : 32;
	struct route_ask ask = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
					.nlmsg_type = RTM_GETROUTE,
					.nlmsg_flags = NLM_F_REQUEST},
		.about = {.rtm_family = (unsigned char)remote->sa_family,
			.rtm_dst_len = bits,
			.rtm_src_len = bits}};
	union {
		struct nlmsghdr head;
		uint8_t bytes[4096];
	} got;
	const struct rtmsg *about = NLMSG_DATA(&got.head);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;
	unsigned int number = 0;
	int left;

	if (fd < 0)
		return 0;
	put_addr(&ask, RTA_DST, remote);
	put_addr(&ask, RTA_SRC, local);
	if (send(fd, &ask, ask.head.nlmsg_len, 0) >= 0) /* the answer is there when it returns */
		n = recv(fd, &got, sizeof(got), MSG_DONTWAIT);
	close(fd);
	if (n < 0 || !NLMSG_OK(&got.head, (size_t)n) || got.head.nlmsg_type != RTM_NEWROUTE ||
		got.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)) ||
		(about->rtm_type != RTN_UNICAST && about->rtm_type != RTN_LOCAL))
		return 0;
	left = (int)RTM_PAYLOAD(&got.head);
	for (const struct rtattr *at = RTM_RTA(about); RTA_OK(at, left); at = RTA_NEXT(at, left))
		if (at->rta_type == RTA_OIF && RTA_PAYLOAD(at) == sizeof(number))
			memcpy(&number, RTA_DATA(at), sizeof(number));
	return number;
}

/* The same; of an address of one link alone the route is that link. */
static unsigned int leaves_by(const struct sockaddr *local, const struct sockaddr *remote)
{
	unsigned int link = roce_addr_link(remote);

	return link ? link : route_of(local, remote);
}

bool roce_sys_adapter(
	const char *sys, const struct sockaddr *local, const struct sockaddr *remote, char ret[64])
{
	char name[IF_NAMESIZE];
	struct ifaddrs *all;
	bool found = false;

	if (if_indextoname(leaves_by(local, remote), name) && takes(sys, name, LEVELS, ret))
		return true;
	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = i->ifa_addr && roce_addr_is_same(i->ifa_addr, local) &&
			roce_sys_takes_port(sys, i->ifa_name, ret);
	freeifaddrs(all);
	return found;
}
