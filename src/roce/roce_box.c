/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that one endpoint of the machine has at a time: of Unix sockets, which go with their
 * process.
 *
 * The box of an endpoint: a Unix socket whose name is the endpoint's number, which is the queue
 * pair's, and the lower bits of the communication ID. A process that got a packet with that number
 * hands it over there.
 *
 * A packet that was handed over is looked at as any other. One of a connection must come from a
 * process of our user or of root: others cannot write our peer's address into a packet, but here.
 *
 * Context: any.
 */
#include "roce_box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define TRIES 16u
/* So every user reads that our user namespace has not (kernel.overflowuid), and `nobody`. */
#define NOT_MAPPED 65534u

/* Before a packet in the box. Anybody may have written it. */
struct handed {
	struct sockaddr_storage from;
	uint8_t ce;
	uint8_t zero[7]; /* no byte of our memory goes with it */
};

/* Abstract: the first byte is 0. */
static socklen_t name_len(int len)
{
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static socklen_t name_box(struct sockaddr_un *sun, uint32_t number)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	return name_len(snprintf(
		sun->sun_path + 1, sizeof(sun->sun_path) - 1, "rpcrdmafs roce %06x", number));
}

static socklen_t name_port(struct sockaddr_un *sun, const uint8_t addr[16], uint16_t port)
{
	const uint8_t *a = addr;

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	return name_len(snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
		"rpcrdmafs roce %08x%08x%08x%08x %04x", roce_wire_get32(a), roce_wire_get32(a + 4),
		roce_wire_get32(a + 8), roce_wire_get32(a + 12), port));
}

/* May its sender hand over packets of a connection? */
static bool is_trusted(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		return cred.uid == 0 || (cred.uid == geteuid() && cred.uid != NOT_MAPPED);
	}
	return false;
}

size_t roce_box_recv(int box, uint8_t bytes[ROCE_PACKET_MAX], struct sockaddr_storage *ret_from,
	struct roce_rx_about *ret)
{
	uint8_t control[CMSG_SPACE(sizeof(struct ucred))];
	struct handed h;
	struct iovec iov[2] = {{&h, sizeof(h)}, {bytes, ROCE_PACKET_MAX}};
	struct msghdr m = {.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(box, &m, MSG_DONTWAIT);

	if (n <= (ssize_t)sizeof(h))
		return 0;
	*ret_from = h.from;
	*ret = (struct roce_rx_about){.from = ret_from,
		.tos = h.ce ? ROCE_CE : 0,
		.handed_over = true,
		.trusted = is_trusted(&m)};
	return (size_t)n - sizeof(h);
}

int roce_box_open(uint32_t *ret_number)
{
	int box = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, err = 0;
	struct sockaddr_un sun;

	if (box < 0)
		return -errno;
	if (setsockopt(box, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)))
		err = -errno;
	for (unsigned int i = 0; !err && i < TRIES; i++) {
		socklen_t len;

		do
			*ret_number = roce_key_random() & ROCE_PSN_MASK;
		while (*ret_number < 256); /* some are special */
		len = name_box(&sun, *ret_number);
		/* One that somebody has is not taken. */
		if (bind(box, (struct sockaddr *)&sun, len) == 0)
			return box;
		err = errno == EADDRINUSE ? 0 : -errno;
	}
	close(box);
	return err ? err : -EADDRINUSE;
}

bool roce_box_send(
	int box, uint32_t number, const uint8_t *p, size_t len, const struct roce_rx_about *about)
{
	struct handed h = {.from = *about->from, .ce = (about->tos & ROCE_ECN) == ROCE_CE};
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)p, len}};
	struct sockaddr_un sun;
	struct msghdr m = {.msg_name = &sun, .msg_iov = iov, .msg_iovlen = 2};
	int fd = box >= 0 ? box : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_there = true;

	if (fd < 0)
		return false;
	m.msg_namelen = name_box(&sun, number);
	/* If nobody is there, or he has no room, it is lost. */
	if (sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		is_there = errno != ECONNREFUSED;
	if (fd != box)
		close(fd);
	return is_there;
}

int roce_box_claim(const uint8_t addr[16], uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct sockaddr_un sun;
	socklen_t len = name_port(&sun, addr, port);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&sun, len) == 0)
		return fd;
	err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}
