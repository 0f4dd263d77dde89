/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of an endpoint. All packets of RoCEv2 come to UDP port 4791, on whichever of a
 * machine's sockets is bound to it: of this mount or another one, of this user or another one. So
 * there are
 *
 * - out: unconnected, with a port of its own. The source port is no part of a connection, and
 *   spreads connections over the paths of a network; each REQ's connection has another one, as the
 *   path of the one before may be why it was lost. For a socket that is not connected and does not
 *   let packets be fragmented the kernel writes 0 as their Identification, which the ICRC covers.
 *
 * - train: the same, for datagrams that the kernel is to cut. Nothing is read from these two.
 *
 * - in: bound to the port, as those of all others. For packets that it knows no better socket for
 *   (datagrams of the CM, and first packets) the kernel chooses the one that was bound last, though
 *   it be full. The process that has it may be stopped, and hand nothing over: so each REQ goes out
 *   with a new one bound.
 *
 * - rc: bound to the port and connected to the one that the peer sends from: the kernel chooses it
 *   for packets of this connection. Of two that are connected to one port it chooses one for both
 *   connections, so each has another (roce_sock_claim()), if the peer keeps to it.
 *
 * - box: where others hand over what they got in our place (roce_box.c).
 *
 * Context: the endpoint's lane.
 */
#include "roce_box.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log.h"
#include "roce_filter.h"

#define BUFFER ((int)ROCE_ROOM / 2) /* the kernel doubles it */
/* So many packets of a tick are looked at whose they are, and found to be nobody's. */
#define STRANGERS_MOST 8u
#define TICK_NS        NSEC_PER_MSEC

struct roce_sock {
	struct roce_ep *ep;
	int out, train, in, rc, box; /* -1: there is none */
	int old;                     /* that `in` was before, until it is read */
	int claim;                   /* on the port of the peer's (roce_box.c) */
	int used;                    /* of out and train, that of the last packets */
	uint16_t port;               /* of `out` */
	uint16_t peer_port;          /* that `rc` is connected to */
	unsigned int strangers;      /* packets of nobody, in the last tick that had one */
	uint64_t tick;
	struct reactor_fd in_src, rc_src, box_src, full_src;
	struct reactor_timer old_timer;
	struct sockaddr_storage local;
};

static socklen_t addr_len(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void set_port(struct sockaddr_storage *ss, uint16_t port)
{
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons(port);
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- UDP ---- */

/*
 * ICMP that says of one that sends nothing that its path takes less is forged: its port is known to
 * all.
 */
static int set_ipv4(int fd, bool sends, int tos)
{
	int pmtu = sends ? IP_PMTUDISC_DO : IP_PMTUDISC_INTERFACE;
	int err = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, pmtu);

	if (!err)
		err = set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	if (!err)
		err = set(fd, IPPROTO_IP, IP_TOS, tos);
	/* RoCEv2 has the ICRC. */
	return err ? err : set(fd, SOL_SOCKET, SO_NO_CHECK, 1);
}

static int set_ipv6(int fd, bool sends, int tos)
{
	int err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	if (!err)
		err = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			sends ? IPV6_PMTUDISC_DO : IPV6_PMTUDISC_INTERFACE);
	if (!err)
		err = set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	if (!err)
		err = set(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
	if (!err)
		err = set(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
	/* Else the kernel drops what has no checksum. */
	return err ? err : set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

/* As large as the system lets it be (net.core.rmem_max), or an administrator. */
static void set_buffer(int fd, int by_force, int name)
{
	if (set(fd, SOL_SOCKET, by_force, BUFFER))
		(void)set(fd, SOL_SOCKET, name, BUFFER);
}

/* Of our address and this port; 0: any. The descriptor, or -errno. */
static int open_udp(const struct roce_sock *s, uint16_t port)
{
	struct sockaddr_storage local = s->local;
	int fd = socket(local.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool sends = port != ROCE_PORT;
	int tos = (int)(s->ep->conf.tos | ROCE_ECT0);
	int err = fd < 0                        ? -errno
		  : local.ss_family == AF_INET6 ? set_ipv6(fd, sends, tos)
						: set_ipv4(fd, sends, tos);

	if (!err)
		err = sends ? roce_filter_all(fd) : roce_filter_forged(fd, &s->ep->remote);
	/* Others have it, too; but one that the kernel chooses is to be nobody's. */
	if (!err && port != 0)
		err = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_port(&local, port);
	if (!err && bind(fd, (struct sockaddr *)&local, addr_len(&local)))
		err = -errno;
	if (err) {
		close_fd(&fd);
		return err;
	}
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
	if (!sends)
		set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	return fd;
}

unsigned int roce_sock_room(const struct roce_ep *ep)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	if (getsockopt(ep->sock->in, SOL_SOCKET, SO_RCVBUF, &bytes, &len))
		return 0;
	return bytes < 0 ? 0 : (unsigned int)bytes;
}

static void on_in(struct reactor_fd *src, uint32_t events)
{
	const struct roce_sock *s = container_of(src, struct roce_sock, in_src);

	(void)roce_rx_ready(s->ep, &s->in, false);
}

static void on_rc(struct reactor_fd *src, uint32_t events)
{
	const struct roce_sock *s = container_of(src, struct roce_sock, rc_src);

	(void)roce_rx_ready(s->ep, &s->rc, true);
}

bool roce_sock_read(struct roce_ep *ep)
{
	return ep->sock->rc >= 0 && roce_rx_ready(ep, &ep->sock->rc, true);
}

static void on_room(struct reactor_fd *src, uint32_t events)
{
	reactor_fd_del(src);
	roce_tx_go(container_of(src, struct roce_sock, full_src)->ep);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	(void)getsockname(fd, (struct sockaddr *)&ss, &len);
	return ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
					      : ((struct sockaddr_in *)&ss)->sin_port);
}

static int open_all(struct roce_sock *s)
{
	s->out = open_udp(s, 0);
	if (s->out < 0)
		return s->out;
	s->port = port_of(s->out);
	s->used = s->out;
	s->in = open_udp(s, ROCE_PORT);
	if (s->in < 0)
		return s->in;
	return reactor_fd_add(s->ep->r, &s->in_src, s->in, EPOLLIN, on_in);
}

static void close_one(int *fd, struct reactor_fd *src)
{
	reactor_fd_del(src);
	close_fd(fd);
}

static void close_old(struct roce_sock *s)
{
	reactor_timer_cancel(s->ep->r, &s->old_timer);
	close_fd(&s->old);
}

/* Packets in it may be another endpoint's as well. One of ours may put another one in its place. */
static void on_old_timer(struct reactor_timer *t)
{
	struct roce_sock *s = container_of(t, struct roce_sock, old_timer);

	if (roce_rx_ready(s->ep, &s->old, false))
		reactor_timer_in(s->ep->r, t, 0);
	else
		close_old(s);
}

void roce_sock_renew(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;
	int fd = open_udp(s, ROCE_PORT), err = fd < 0 ? fd : 0;

	if (!err) {
		reactor_fd_del(&s->in_src);
		err = reactor_fd_add(ep->r, &s->in_src, fd, EPOLLIN, on_in);
	}
	if (err) {
		log_debug("%s: no new socket: %s", ep->name, strerror(-err));
		if (fd >= 0) {
			close(fd);
			(void)reactor_fd_add(ep->r, &s->in_src, s->in, EPOLLIN, on_in);
		}
		return;
	}
	close_old(s);
	s->old = s->in;
	s->in = fd;
	/* Not from here: it may be the owner's call. */
	reactor_timer_in(ep->r, &s->old_timer, 0);
}

int roce_sock_open(struct roce_ep *ep)
{
	struct roce_sock *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->ep = ep;
	s->local = ep->local;
	s->out = s->train = s->in = s->rc = s->box = s->old = s->claim = s->used = -1;
	reactor_timer_init(&s->old_timer, on_old_timer);
	ep->sock = s;
	err = open_all(s);
	if (err)
		roce_sock_close(ep);
	return err;
}

void roce_sock_close(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;

	if (!s)
		return;
	roce_sock_part(ep);
	close_old(s);
	close_one(&s->in, &s->in_src);
	close_one(&s->out, &s->full_src);
	free(s);
	ep->sock = NULL;
}

uint16_t roce_sock_port(const struct roce_ep *ep)
{
	return ep->sock->port;
}

uint16_t roce_sock_port_anew(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;
	int fd = open_udp(s, 0);

	if (fd < 0) {
		log_debug("%s: the source port stays: %s", ep->name, strerror(-fd));
		return s->port;
	}
	close_one(&s->train, &s->full_src);
	close(s->out);
	s->out = s->used = fd;
	s->port = port_of(fd);
	return s->port;
}

int roce_sock_recv(int fd, struct mmsghdr *msgs, unsigned int cnt)
{
	int n = recvmmsg(fd, msgs, cnt, MSG_DONTWAIT, NULL);

	return n < 0 ? -errno : n;
}

/*
 * From the port of `out`, which lets it be shared only here: else another program could get it too,
 * and nothing that is sent to it. The kernel wants to compute the checksums of what it cuts.
 */
static int open_train(const struct roce_sock *s)
{
	int err = set(s->out, SOL_SOCKET, SO_REUSEADDR, 1);
	int fd = err ? err : open_udp(s, s->port);

	(void)set(s->out, SOL_SOCKET, SO_REUSEADDR, 0);
	if (fd >= 0 && s->local.ss_family == AF_INET6)
		(void)set(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 0);
	else if (fd >= 0)
		(void)set(fd, SOL_SOCKET, SO_NO_CHECK, 0);
	return fd;
}

int roce_sock_train(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;

	if (s->train < 0)
		s->train = open_train(s);
	return s->train < 0 ? s->train : 0;
}

int roce_sock_send(struct roce_ep *ep, struct mmsghdr *msgs, unsigned int cnt, bool trains)
{
	struct roce_sock *s = ep->sock;
	int n;

	s->used = trains ? s->train : s->out;
	n = sendmmsg(s->used, msgs, cnt, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

void roce_sock_hear(struct roce_ep *ep, bool on)
{
	if (ep->out.is_v6)
		(void)set(ep->sock->out, IPPROTO_IPV6, IPV6_RECVERR, on);
	else
		(void)set(ep->sock->out, IPPROTO_IP, IP_RECVERR, on);
}

int roce_sock_error(const struct roce_ep *ep)
{
	int err = 0;
	socklen_t n = sizeof(err);

	if (getsockopt(ep->sock->out, SOL_SOCKET, SO_ERROR, &err, &n) != 0)
		return -errno;
	return -err;
}

void roce_sock_wait(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;

	if (s->full_src.reactor && s->full_src.fd == s->used)
		return;
	reactor_fd_del(&s->full_src);
	(void)reactor_fd_add(ep->r, &s->full_src, s->used, EPOLLOUT, on_room);
}

bool roce_sock_is_full(const struct roce_ep *ep)
{
	struct pollfd p = {.fd = ep->sock->full_src.fd, .events = POLLOUT};

	return ep->sock->full_src.reactor && poll(&p, 1, 0) == 0;
}

int roce_sock_claim(struct roce_ep *ep, uint16_t port)
{
	struct roce_sock *s = ep->sock;

	close_fd(&s->claim);
	s->claim = roce_box_claim(ep->out.dst, port);
	return s->claim < 0 ? s->claim : 0;
}

void roce_sock_from(struct roce_ep *ep, uint16_t port)
{
	struct roce_sock *s = ep->sock;
	struct sockaddr_storage peer = ep->remote;

	if (port == s->peer_port)
		return;
	s->peer_port = port; /* tried once: without it they come to `in`, or are handed over */
	if (s->rc < 0) {
		s->rc = open_udp(s, ROCE_PORT);
		if (s->rc < 0 || reactor_fd_add(ep->r, &s->rc_src, s->rc, EPOLLIN, on_rc)) {
			close_one(&s->rc, &s->rc_src);
			return;
		}
	}
	set_port(&peer, port);
	if (connect(s->rc, (struct sockaddr *)&peer, addr_len(&peer)) == 0)
		return;
	log_debug("%s: packets cannot be had apart: %s", ep->name, strerror(errno));
	/* Not connected it would have others' packets, and be taken for ours alone. */
	close_one(&s->rc, &s->rc_src);
}

/* ---- the box ---- */

static void on_box(struct reactor_fd *src, uint32_t events)
{
	struct roce_ep *ep = container_of(src, struct roce_sock, box_src)->ep;
	uint8_t bytes[ROCE_PACKET_MAX];
	struct sockaddr_storage from;
	struct roce_rx_about about;
	size_t len = roce_box_recv(src->fd, bytes, &from, &about);

	if (len == 0)
		return;
	roce_ep_deliver_begin(ep);
	roce_rx_packet(ep, bytes, len, &about);
	roce_ep_deliver_end(ep);
}

int roce_sock_number(struct roce_ep *ep, uint32_t *ret_number)
{
	struct roce_sock *s = ep->sock;

	s->box = roce_box_open(ret_number);
	return s->box < 0 ? s->box : reactor_fd_add(s->ep->r, &s->box_src, s->box, EPOLLIN, on_box);
}

void roce_sock_part(struct roce_ep *ep)
{
	struct roce_sock *s = ep->sock;

	close_one(&s->rc, &s->rc_src);
	close_one(&s->box, &s->box_src);
	close_fd(&s->claim);
	/* While we connect, `out` is to hear what ICMP says (roce_sock_hear()). */
	close_one(&s->train, &s->full_src);
	s->used = s->out;
	s->peer_port = 0;
}

void roce_sock_hand_over(struct roce_ep *ep, uint32_t number, const uint8_t *p, size_t len,
	const struct roce_rx_about *about)
{
	struct roce_sock *s = ep->sock;
	uint64_t tick = reactor_now(ep->r) / TICK_NS;

	if (tick != s->tick) {
		s->tick = tick;
		s->strangers = 0;
	}
	if (s->strangers < STRANGERS_MOST && !roce_box_send(s->box, number, p, len, about))
		s->strangers++;
}

/* ---- the way ---- */

int roce_sock_route(const struct sockaddr *src, const struct sockaddr *dst,
	struct sockaddr_storage *ret_local, unsigned int *ret_mtu)
{
	bool is_v6 = dst->sa_family == AF_INET6;
	socklen_t len = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	socklen_t local_len = sizeof(*ret_local), mtu_len = sizeof(int);
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0, err = 0;

	if (fd < 0)
		return -errno;
	memset(ret_local, 0, sizeof(*ret_local));
	if ((src && bind(fd, src, len)) || connect(fd, dst, len) ||
		getsockname(fd, (struct sockaddr *)ret_local, &local_len) ||
		getsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_MTU : IP_MTU, &mtu,
			&mtu_len))
		err = -errno;
	close(fd);
	*ret_mtu = mtu < 0 ? 0 : (unsigned int)mtu;
	return err;
}
