/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_filter.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include <linux/filter.h>

#define LOOPBACK 1u /* index of its interface, in each network namespace */

static int attach(int fd, struct sock_filter *filter, unsigned short len)
{
	const struct sock_fprog prog = {.len = len, .filter = filter};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

int roce_filter_all(int fd)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);

	return attach(fd, &none, 1);
}

/* An address that can be bound to is one of this machine. Where nobody knows it may be one. */
static bool may_be_ours(const struct sockaddr_in6 *addr)
{
	struct sockaddr_in6 any_port = *addr;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_not;

	if (fd < 0)
		return true;
	any_port.sin6_port = 0;
	is_not = bind(fd, (struct sockaddr *)&any_port, sizeof(any_port)) && errno == EADDRNOTAVAIL;
	close(fd);
	return !is_not;
}

int roce_filter_forged(int fd, const struct sockaddr_storage *peer)
{
	struct sock_filter no_loopback[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};

	if (peer->ss_family != AF_INET6 || may_be_ours((const struct sockaddr_in6 *)peer))
		return 0;
	return attach(fd, no_loopback, sizeof(no_loopback) / sizeof(no_loopback[0]));
}
