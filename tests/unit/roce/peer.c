/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_count.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <linux/ipv6.h> /* after netinet/in.h */

#define TURNS 20000
#define LO    1 /* index of the loopback's interface in a new network */

struct peer_seen peer_came, peer_went;
static const char *ours = "127.0.0.2", *theirs = "127.0.0.1";

static uint32_t be(const uint8_t *p, int len)
{
	uint32_t v = 0;

	for (int i = 0; i < len; i++)
		v = v << 8 | p[i];
	return v;
}

static void put(uint8_t *p, uint64_t v, int len)
{
	for (int i = len - 1; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

/* Of IPv6 if it has a colon. */
static socklen_t addr_of(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *in = (struct sockaddr_in *)ret;

	memset(ret, 0, sizeof(*ret));
	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			in6->sin6_scope_id = LO;
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	cr_assert_eq(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return sizeof(*in);
}

static bool is_v6(void)
{
	return strchr(ours, ':') != NULL;
}

void peer_addrs(struct sockaddr_storage *ret_ep, struct sockaddr_storage *ret_peer)
{
	addr_of(theirs, 0, ret_ep);
	addr_of(ours, 20049, ret_peer);
}

static bool is_own; /* the network */
static uint32_t path_mtu = 4096;

void peer_expects_mtu(uint32_t mtu)
{
	path_mtu = mtu;
}

bool peer_path_mtu(int mtu)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (is_own)
		cr_assert_eq(ioctl(fd, SIOCSIFMTU, &ifr), 0);
	while (is_own && path_mtu + 68 > (uint32_t)mtu)
		path_mtu /= 2;
	close(fd);
	return is_own;
}

bool peer_ports(unsigned int first, unsigned int last)
{
	FILE *f = is_own ? fopen("/proc/sys/net/ipv4/ip_local_port_range", "we") : NULL;

	if (!f)
		return false;
	fprintf(f, "%u %u\n", first, last);
	return fclose(f) == 0;
}

static bool own_network(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	if (is_own)
		return true;
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
	is_own = true;
	return true;
}

/*
 * An ordinary user has no network of its own: Criterion has threads, which a new user namespace
 * must not have. Tests take turns then, since the peer's port is one. The descriptor is closed
 * behind all others when the process ends.
 */
static void take_turn(void)
{
	const struct sockaddr_un sun = {
		.sun_family = AF_UNIX, .sun_path = "\0rpcrdmafs tests of RoCE"};
	static int turn = -1;
	int fd;

	if (turn >= 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	turn = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	cr_assert_geq(turn, 0, "%s", strerror(errno));
	close(fd);
	while (bind(turn, (const struct sockaddr *)&sun, sizeof(sun)) != 0) {
		cr_assert_eq(errno, EADDRINUSE, "%s", strerror(errno));
		usleep(1000);
	}
}

void peer_network(void)
{
	if (!own_network())
		take_turn();
}

/* It is there when it can be bound to. */
static bool add_addr(int fd, const char *text)
{
	struct in6_ifreq ifr = {.ifr6_prefixlen = 128, .ifr6_ifindex = LO};
	struct sockaddr_storage ss;
	socklen_t n = addr_of(text, 0, &ss);
	int err = -1;

	ifr.ifr6_addr = ((struct sockaddr_in6 *)&ss)->sin6_addr;
	if (ioctl(fd, SIOCSIFADDR, &ifr) != 0)
		return false;
	for (int i = 0; i < TURNS && err != 0; i++) {
		int test = socket(AF_INET6, SOCK_DGRAM, 0);

		err = bind(test, (struct sockaddr *)&ss, n);
		close(test);
		if (err != 0)
			usleep(1000);
	}
	return err == 0;
}

bool peer_network6(bool link_local)
{
	int fd = own_network() ? socket(AF_INET6, SOCK_DGRAM, 0) : -1;
	bool is_there;

	ours = link_local ? "fe80::2" : "fd00::2";
	theirs = link_local ? "fe80::1" : "fd00::1";
	if (fd < 0)
		return false;
	is_there = add_addr(fd, ours) && add_addr(fd, theirs) &&
		   add_addr(fd, link_local ? "fe80::3" : "fd00::3");
	close(fd);
	return is_there;
}

static void set(int fd, int level, int name, int value)
{
	cr_assert_eq(setsockopt(fd, level, name, &value, sizeof(value)), 0, "%s", strerror(errno));
}

static int open_at(const char *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = addr_of(addr, port, &ss);
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ss.ss_family == AF_INET6) {
		set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
		set(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
	} else {
		/* Not connected, never in fragments: the Identification is 0. */
		set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
		set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	}
	cr_assert_eq(bind(fd, (struct sockaddr *)&ss, n), 0, "%s", strerror(errno));
	return fd;
}

void peer_new(struct peer *p)
{
	*p = (struct peer){.fd = open_at(ours, 4791)};
	peer_came.cnt = peer_went.cnt = 0;
}

void peer_free(struct peer *p)
{
	close(p->fd);
}

void peer_forget(struct peer *p)
{
	uint8_t b[PEER_PACKET];

	while (recv(p->fd, b, sizeof(b), MSG_DONTWAIT) >= 0)
		;
}

/* ---- ICRC: IBA annex A17.3.3, over a packet put together for it ---- */

/* Returns: what follows the IP header. */
static uint8_t *put_ip(uint8_t *p, const char *src, const char *dst, uint16_t id, size_t udp_len)
{
	if (is_v6()) {
		memset(p, 0xff, 8);
		p[0] = 0x6f;
		put(p + 4, udp_len, 2);
		p[6] = 17;
		inet_pton(AF_INET6, src, p + 8);
		inet_pton(AF_INET6, dst, p + 24);
		return p + 40;
	}
	memset(p, 0, 20);
	p[0] = 0x45;
	p[1] = 0xff;
	put(p + 2, 20 + udp_len, 2);
	put(p + 4, id, 2);
	p[6] = 0x40;
	p[8] = 0xff;
	p[9] = 17;
	p[10] = p[11] = 0xff;
	inet_pton(AF_INET, src, p + 12);
	inet_pton(AF_INET, dst, p + 16);
	return p + 20;
}

static void icrc(const char *src, const char *dst, uint16_t id, uint16_t src_port,
	const uint8_t *packet, size_t len, uint8_t ret[4])
{
	uint8_t m[8 + 40 + 8 + PEER_PACKET], *p;
	uLong crc;

	memset(m, 0xff, 8);
	p = put_ip(m + 8, src, dst, id, 8 + len + 4);
	put(p, src_port, 2);
	put(p + 2, 4791, 2);
	put(p + 4, 8 + len + 4, 2);
	p[6] = p[7] = 0xff;
	memcpy(p + 8, packet, len);
	p[8 + 4] = 0xff;
	crc = crc32(0, m, (uInt)(p + 8 + len - m));
	for (int i = 0; i < 4; i++)
		ret[i] = (uint8_t)(crc >> 8 * i);
}

static void see(struct peer_seen *s, uint16_t port, uint16_t id, const uint8_t *b, size_t n)
{
	if (s->cnt == PEER_SEEN)
		return;
	s->v[s->cnt].port = port;
	s->v[s->cnt].id = id;
	s->v[s->cnt].len = n;
	memcpy(s->v[s->cnt++].bytes, b, n);
}

/* ---- in ---- */

/* From the endpoint's address; its port. */
static uint16_t port_of(const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(from->ss_family,
		is_v6() ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr, text,
		sizeof(text));
	cr_assert_str_eq(text, theirs);
	return ntohs(is_v6() ? in6->sin6_port : in->sin_port);
}

static ssize_t receive(struct peer *p, uint8_t *buf, uint16_t *ret_port, uint8_t *ret_tos)
{
	struct sockaddr_storage from;
	struct iovec iov = {buf, PEER_PACKET};
	uint8_t control[64];
	struct msghdr m = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	if (n < 0)
		return -1;
	*ret_port = port_of(&from);
	/* Of IPv6 it is an int, in the order of bytes of the machines that this runs on. */
	*ret_tos = c && c->cmsg_type == (is_v6() ? IPV6_TCLASS : IP_TOS) ? *CMSG_DATA(c) : 0;
	return n;
}

/* Extended headers that an opcode has (IBA table 38), of those that a requester of ours sends. */
static size_t ext_of(uint8_t op)
{
	switch (op) {
	case 0x00: /* SEND first, middle, last, only */
	case 0x01:
	case 0x02:
	case 0x04:
	case 0x0e: /* READ response middle */
		return 0;
	case 0x0d: /* READ response first, last, only: AETH */
	case 0x0f:
	case 0x10:
	case 0x11: /* ACK */
		return 4;
	case 0x64: /* UD SEND only: DETH */
		return 8;
	case 0x81: /* CNP: annex A17.9.3 */
		return 16;
	default:
		cr_assert_fail("opcode %#x", op);
		return 0;
	}
}

/*
 * Its Identification, which a UDP socket cannot see: the one that the ICRC is right with. 0, or
 * that of the packet before and one more, as Linux cuts datagrams.
 */
static uint16_t id_of(struct peer *p, const uint8_t *b, size_t n, uint16_t port)
{
	uint16_t id = 0;
	uint8_t crc[4];

	icrc(theirs, ours, id, port, b, n - 4, crc);
	if (memcmp(crc, b + n - 4, 4) != 0) {
		id = p->id_next;
		icrc(theirs, ours, id, port, b, n - 4, crc);
	}
	cr_assert_arr_eq(crc, b + n - 4, 4, "A17.3.3: ICRC");
	p->id_next = (uint16_t)(id + 1);
	return id;
}

/* The fields of its BTH that do not depend on what is under way. */
static void check_bth(const struct peer *p, const uint8_t *b, uint16_t port)
{
	bool is_cnp = b[0] == 0x81, is_send = b[0] <= 0x04;

	cr_assert_eq(port, p->port, "A17.3.2.1: one source port for a connection");
	cr_assert_eq(b[1] & 0x80, 0, "IBA 9.2.2: no solicited event was asked for");
	if (is_cnp)
		cr_assert_eq(b[1] & 0x40, 0, "A17.9.3: MigReq of a CNP");
	else
		cr_assert_eq(b[1] & 0x40, 0x40, "IBA 9.2.3: MigReq of a path that is the only one");
	cr_assert_eq(b[1] & 0x0f, 0, "IBA 9.2.5: TVer");
	if (is_cnp)
		cr_assert_eq(be(b + 2, 2) | 0x8000, 0xffff, "A17.9.3: P_Key of one of ours");
	else
		cr_assert_eq(be(b + 2, 2), 0xffff, "IBA 9.2.6: P_Key");
	cr_assert_eq(b[4] & 0xbf, 0, "IBA 9.2: reserved; FECN is a switch's");
	cr_assert_eq(b[4] & 0x40, is_cnp ? 0x40 : 0, "A17.9.3: BECN is CNP's");
	cr_assert_eq(b[8] & 0x7f, 0, "IBA 9.2: reserved");
	if (!is_send)
		cr_assert_eq(b[8], 0, "IBA 9.7.5.1.2: requests ask to be acknowledged");
	cr_assert_eq(be(b + 5, 3), b[0] == 0x64 ? 1 : PEER_QPN,
		"IBA 9.6.1.1: the queue pair of the REP; 3.5.10: GSI");
}

/* Payloads that opcodes have; the only and the last one at most a whole packet. */
static void check_len(const struct peer *p, const struct peer_packet *k)
{
	switch (k->op) {
	case 0x00: /* SEND first, middle; READ response first, middle */
	case 0x01:
	case 0x0d:
	case 0x0e:
		cr_assert_eq(k->len, p->mtu, "IBA 9.4.1: all but the last packet are full");
		break;
	case 0x02: /* SEND, READ response last */
	case 0x0f:
		cr_assert_gt(k->len, 0, "IBA 9.7.4.1.6: the last one is not empty");
		cr_assert_leq(k->len, p->mtu, "IBA 9.7.4.1.6: nor longer than the MTU");
		break;
	case 0x04: /* SEND, READ response only */
	case 0x10:
		cr_assert_leq(k->len, p->mtu, "IBA 9.7.4.1.6: not longer than the MTU");
		break;
	case 0x11: /* ACK, CNP */
	case 0x81:
		cr_assert_eq(k->len, 0, "IBA table 38, A17.9.3: it has no payload");
		break;
	}
}

/* AETH, DETH, and what a CNP has in their place. */
static void check_ext(const struct peer *p, const uint8_t *b, const struct peer_packet *k)
{
	static const uint8_t zero[16];

	switch (k->op) {
	case 0x64:
		cr_assert_eq(be(b + 12, 4), 0x80010000, "IBA 10.2.4: its Q_Key");
		cr_assert_eq(be(b + 16, 4), 1, "IBA 9.3.2: reserved, source");
		break;
	case 0x81:
		cr_assert_eq(k->psn, 0, "A17.9.3: PSN");
		cr_assert_arr_eq(b + 12, zero, 16, "A17.9.3: reserved");
		break;
	case 0x0d:
	case 0x0f:
	case 0x10:
		cr_assert_eq(k->syndrome, 0x1f, "IBA 9.7.5.2.1: an ACK without a count");
		break;
	case 0x11:
		cr_assert(k->syndrome == 0x1f || (k->syndrome & 0xe0) == 0x20 ||
				  (k->syndrome >= 0x60 && k->syndrome <= 0x63),
			"IBA 9.7.5.2: ACK without a count, RNR NAK, NAK: %#x", k->syndrome);
		break;
	}
	if (k->op >= 0x0d && k->op <= 0x11)
		peer_count_came(p->qpn, k);
}

static void check(
	struct peer *p, const uint8_t *b, size_t n, uint16_t port, struct peer_packet *ret)
{
	size_t ext, pad = b[1] >> 4 & 3;
	uint16_t id;

	cr_assert_geq(n, 16, "IBA 9.2: BTH and ICRC");
	cr_assert_eq(n % 4, 0, "IBA 9.4.1: whole words");
	id = id_of(p, b, n, port);
	ext = ext_of(b[0]);
	cr_assert_geq(n, 12 + ext + pad + 4, "IBA table 38: the headers that the opcode has");
	if (b[0] == 0x64) /* another endpoint may begin */
		p->port = port;
	check_bth(p, b, port);
	*ret = (struct peer_packet){.op = b[0],
		.ack_req = b[8] & 0x80,
		.becn = b[4] & 0x40,
		.pkey = (uint16_t)be(b + 2, 2),
		.qpn = be(b + 5, 3),
		.psn = be(b + 9, 3),
		.id = id,
		.len = n - 12 - ext - pad - 4};
	for (size_t i = 0; i < pad; i++)
		cr_assert_eq(b[n - 5 - i], 0, "IBA 9.4.1: pad");
	if (ext == 4) {
		ret->syndrome = b[12];
		ret->msn = be(b + 13, 3);
	}
	check_len(p, ret);
	check_ext(p, b, ret);
	memcpy(ret->ext, b + 12, ext);
	memcpy(ret->payload, b + 12 + ext, ret->len);
}

bool peer_next(struct peer *p, struct peer_packet *ret, void (*turn)(void))
{
	uint8_t buf[PEER_PACKET], tos = 0;
	uint16_t port = 0;
	ssize_t n = receive(p, buf, &port, &tos);

	for (int i = 0; n < 0 && i < TURNS; i++) {
		turn();
		n = receive(p, buf, &port, &tos);
	}
	if (n < 0)
		return false;
	check(p, buf, (size_t)n, port, ret);
	see(&peer_came, port, ret->id, buf, (size_t)n);
	ret->ecn = tos & 3;
	ret->tos = tos & 0xfc;
	return true;
}

/* ---- out ---- */

static size_t build(const char *from, uint16_t port, const struct peer_out *o, uint8_t *b)
{
	size_t pad = -o->len & 3, n = 12;

	memset(b, 0, 12);
	b[0] = o->op;
	b[1] = (uint8_t)((0x40 | pad << 4) ^ o->bth1);
	put(b + 2, o->pkey ? o->pkey : 0xffff, 2);
	put(b + 4, (uint32_t)o->bth4 << 24 | o->qpn, 4);
	put(b + 8, (o->ack_req ? 0x80000000u : 0) | (uint32_t)o->bth8 << 24 | (o->psn & 0xffffff),
		4);
	if (o->ext_len > 0)
		memcpy(b + n, o->ext, o->ext_len);
	n += o->ext_len;
	if (o->len > 0)
		memcpy(b + n, o->payload, o->len);
	memset(b + n + o->len, 0, pad);
	n += o->len + pad;
	icrc(from, theirs, o->id, port, b, n, b + n);
	if (o->spoil)
		b[n] ^= 1;
	return n + 4;
}

static void send_by(int fd, const char *from, uint16_t port, const struct peer_out *o)
{
	struct sockaddr_storage to;
	socklen_t to_len = addr_of(theirs, 4791, &to);
	uint8_t b[PEER_PACKET];
	size_t n = build(from, port, o, b);

	if (from == ours && !o->spoil) {
		see(&peer_went, port, o->id, b, n);
		peer_count_sent(b, n);
	}
	cr_assert_eq(sendto(fd, b, n, 0, (struct sockaddr *)&to, to_len), (ssize_t)n, "%s",
		strerror(errno));
}

void peer_send(const struct peer *p, const struct peer_out *o)
{
	send_by(p->fd, ours, 4791, o);
}

void peer_send_from(const struct peer *p, const char *addr, uint16_t port, const struct peer_out *o)
{
	int fd = open_at(addr ? addr : ours, port);

	send_by(fd, addr ? addr : ours, port, o);
	close(fd);
}

void peer_hand_over(const struct peer_out *o, uint32_t number, uint8_t ce)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct sockaddr_storage from;
	uint8_t b[sizeof(from) + 8 + PEER_PACKET] = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t n = sizeof(from) + 8, len_sent;
	int len =
		snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "rpcrdmafs roce %06x", number);

	addr_of(ours, 4791, &from);
	memcpy(b, &from, sizeof(from));
	b[sizeof(from)] = ce;
	len_sent = build(ours, 4791, o, b + n);
	peer_count_sent(b + n, len_sent);
	n += len_sent;
	cr_assert_eq(sendto(fd, b, n, 0, (struct sockaddr *)&sun,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
		(ssize_t)n, "%s", strerror(errno));
	close(fd);
}

void peer_ack(const struct peer *p, uint8_t syndrome, uint32_t psn)
{
	uint8_t aeth[4] = {syndrome};

	peer_send(p, &(struct peer_out){
			     .op = 0x11, .qpn = p->qpn, .psn = psn, .ext = aeth, .ext_len = 4});
}

void peer_notify_from(const struct peer *p, uint16_t port)
{
	static const uint8_t zero[16];
	const struct peer_out o = {.op = 0x81,
		.qpn = p->qpn,
		.bth1 = 0x40, /* no MigReq */
		.bth4 = 0x40, /* BECN */
		.ext = zero,
		.ext_len = sizeof(zero)};

	if (port == 4791)
		peer_send(p, &o);
	else
		peer_send_from(p, NULL, port, &o);
}

void peer_notify(const struct peer *p)
{
	peer_notify_from(p, 4791);
}

void peer_mark(const struct peer *p, uint8_t ecn)
{
	set(p->fd, is_v6() ? IPPROTO_IPV6 : IPPROTO_IP, is_v6() ? IPV6_TCLASS : IP_TOS, ecn);
}

void peer_reth(uint8_t ext[16], uint64_t va, uint32_t rkey, uint32_t len)
{
	put(ext, va, 8);
	put(ext + 8, rkey, 4);
	put(ext + 12, len, 4);
}

void peer_send_odd_mad(
	struct peer *p, uint16_t attr, const uint8_t body[232], uint32_t head, uint32_t qkey)
{
	uint8_t mad[256] = {0}, deth[8];

	put(deth, 0x80010000 ^ qkey, 4);
	put(deth + 4, 1, 4);
	put(mad, 0x01070203 ^ head, 4);
	put(mad + 8, p->tid, 8);
	put(mad + 16, attr, 2);
	memcpy(mad + 24, body, 232);
	peer_send(p, &(struct peer_out){.op = 0x64,
			     .qpn = 1,
			     .psn = 77,
			     .ext = deth,
			     .ext_len = 8,
			     .payload = mad,
			     .len = 256});
}

void peer_send_mad(struct peer *p, uint16_t attr, const uint8_t body[232])
{
	peer_send_odd_mad(p, attr, body, 0, 0);
}

/* ---- the CM ---- */

/*
 * Places and widths of fields are those of the tables of IBA chapter 12 as Linux has them
 * (include/rdma/ibta_vol1_c12.h), which sends 0 in what is reserved, and in fields of other
 * services (drivers/infiniband/core/cm.c, cm_format_req() and those beside it).
 */
static bool is_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* A17.4.1.1: GIDs of IPv4. */
static void gid_of(const char *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	inet_pton(is_v6() ? AF_INET6 : AF_INET, addr, is_v6() ? gid : gid + 12);
}

/* A11.3: addresses as in the private data; of IPv4 the rest is 0. */
static void check_private(const struct peer *p, const uint8_t *b)
{
	uint8_t gid[16];
	size_t at = is_v6() ? 0 : 12;

	cr_assert_eq(b[0], 0, "A11.3: version");
	cr_assert_eq(b[1], is_v6() ? 0x60 : 0x40, "A11.3: version of IP; reserved");
	cr_assert_eq(be(b + 2, 2), p->port, "A11.3: source port");
	gid_of(theirs, gid);
	cr_assert(is_zero(b + 4, at), "A11.3: in front of an address of IPv4");
	cr_assert_arr_eq(b + 4 + at, gid + at, 16 - at, "A11.3: source address");
	gid_of(ours, gid);
	cr_assert(is_zero(b + 20, at), "A11.3: in front of an address of IPv4");
	cr_assert_arr_eq(b + 20 + at, gid + at, 16 - at, "A11.3: destination address");
}

/* All but what the path takes. */
static void check_req(const struct peer *p, const uint8_t *r, uint8_t tos)
{
	uint8_t gid[16];

	cr_assert_neq(be(r, 4), 0, "IBA 12.7.1: local communication ID");
	cr_assert_eq(be(r + 4, 4), 0, "table 106: reserved");
	cr_assert_eq(be(r + 8, 4), 0, "A11.2: service ID of TCP's port space");
	cr_assert_eq(be(r + 12, 4), 0x01060000 | 20049, "A11.2: and its port");
	cr_assert_not(is_zero(r + 16, 8), "table 106: local CA GUID");
	cr_assert_eq(be(r + 24, 4), 0, "table 106: reserved");
	cr_assert_eq(be(r + 28, 4), 0, "table 106: Q_Key, of datagrams alone");
	cr_assert_gt(be(r + 32, 3), 1, "IBA 3.5.10: 0 and 1 are special");
	cr_assert_geq(r[35], 1, "the server's Reads: svcrdma refuses 0");
	cr_assert_eq(be(r + 36, 3), 0, "table 106: EE context, of reliable datagrams alone");
	cr_assert_eq(r[39], 0, "table 106: initiator depth: we read nothing");
	cr_assert_eq(be(r + 40, 3), 0, "table 106: EE context, of reliable datagrams alone");
	cr_assert_eq(r[43] & 7, 0, "IBA 12.7.8: RC; no end-to-end flow control");
	cr_assert_eq(r[47] & 7, 3, "IBA 12.7.38: retry count, as configured");
	cr_assert_eq(be(r + 48, 2), 0xffff, "IBA 10.9.3: P_Key of the default partition");
	cr_assert_eq(r[50] & 0x0f, 7, "table 106: RDC does not exist; RNR retry: for ever");
	cr_assert_eq(r[51], 15 << 4, "table 106: CM retries; no SRQ; no extended transport");
	cr_assert_eq(be(r + 52, 4), 0xffffffff, "A17.6.1.1: there are no LIDs");
	gid_of(theirs, gid);
	cr_assert_arr_eq(r + 56, gid, 16, "A17.4.1.1: GID");
	gid_of(ours, gid);
	cr_assert_arr_eq(r + 72, gid, 16, "A17.4.1.1: GID");
	cr_assert_neq(be(r + 88, 4) >> 12, 0, "A17.4.3: flow label, the peer's port is made of it");
	cr_assert_eq(be(r + 88, 4) & 0xfff, 0, "table 106: reserved; packet rate: the port's own");
	cr_assert_eq(r[92], tos, "table 106: traffic class, as its own packets have");
	cr_assert_gt(r[93], 1, "table 106: hop limit; Linux' cm.c takes 1 for one of a subnet");
	cr_assert_eq(r[94], 0, "table 106: SL; not of one subnet; reserved");
	cr_assert_eq(r[95], 24 << 3, "table 106: local ACK timeout, as configured; reserved");
	cr_assert(is_zero(r + 96, 44), "table 106: no alternate path");
	check_private(p, r + 140);
}

/* All others: none of them has private data. */
static void check_other(const struct peer *p, uint16_t attr, const uint8_t *b)
{
	size_t n = 8;

	cr_assert_eq(be(b, 4), p->id, "tables 108, 111 to 113: local communication ID");
	cr_assert_eq(be(b + 4, 4), PEER_ID, "tables 108, 111 to 113: that of the peer");
	switch (attr) {
	case 0x12: /* REJ */
		cr_assert_eq(b[8], 1 << 6, "table 108: a REP is rejected; reserved");
		cr_assert_eq(b[9], 0, "table 108: no additional information; reserved");
		cr_assert_eq(be(b + 10, 2), 28, "IBA 12.6.7: the reason, the consumer");
		n = 12;
		break;
	case 0x14: /* RTU, DREP */
	case 0x16:
		break;
	case 0x15: /* DREQ */
		cr_assert_eq(be(b + 8, 3), PEER_QPN, "table 112: the peer's queue pair");
		cr_assert_eq(b[11], 0, "table 112: reserved");
		n = 12;
		break;
	default:
		cr_assert_fail("no message that the active side sends: %#x", attr);
	}
	cr_assert(is_zero(b + n, 232 - n), "tables 108, 111 to 113: no private data");
}

/* One that is sent again while nobody answers. */
static bool is_again(const struct peer_packet *k, uint16_t attr)
{
	uint32_t is = k->op == 0x64 && k->len == 256 ? be(k->payload + 16, 2) : 0;

	return is != attr && (is == 0x10 || is == 0x15);
}

/* An answer has that of what it answers, which peer_send_mad() wrote. */
static void check_tid(struct peer *p, uint16_t attr, uint64_t tid)
{
	cr_assert_neq(tid, 0, "IBA 13.4.6.4: transaction ID");
	if (attr == 0x12 || attr == 0x14 || attr == 0x16)
		cr_assert_eq(tid, p->tid, "IBA 12.6: one transaction");
	if (attr == 0x15)
		cr_assert_eq(tid, p->req_tid, "our DREQ has that of the REQ");
	p->tid = tid;
}

void peer_next_mad(struct peer *p, uint16_t attr, uint8_t ret[232], void (*turn)(void))
{
	struct peer_packet k;

	do
		cr_assert(peer_next(p, &k, turn), "no MAD %#x", attr);
	while (is_again(&k, attr));
	cr_assert_eq(k.op, 0x64);
	cr_assert_eq(k.len, 256, "IBA 13.4.3: length of a MAD");
	cr_assert_eq(be(k.payload, 4), 0x01070203, "IBA 13.4.3, 16.7: versions, class, method");
	cr_assert_eq(be(k.payload + 4, 4), 0, "IBA 13.4.3: status; reserved");
	cr_assert_eq(be(k.payload + 16, 2), attr);
	cr_assert_eq(be(k.payload + 18, 2), 0, "IBA 13.4.3: reserved");
	cr_assert_eq(be(k.payload + 20, 4), 0, "IBA 13.4.3: attribute modifier, the CM has none");
	check_tid(p, attr, (uint64_t)be(k.payload + 8, 4) << 32 | be(k.payload + 12, 4));
	memcpy(ret, k.payload + 24, 232);
	if (attr == 0x10)
		check_req(p, ret, k.tos);
	else
		check_other(p, attr, ret);
}

void peer_take_req(struct peer *p, void (*turn)(void))
{
	uint8_t *r = p->req;

	peer_next_mad(p, 0x10, r, turn);
	p->req_tid = p->tid;
	p->id = be(r, 4);
	p->qpn = be(r + 32, 3);
	p->psn = be(r + 44, 3);
	p->mtu = 128u << (r[50] >> 4);
	cr_assert_eq(p->mtu, path_mtu, "IBA 12.7.27: the path takes it");
	peer_count_begin(p->qpn, p->psn, p->mtu);
}

void peer_send_rep(struct peer *p, uint32_t psn, const void *priv, size_t len)
{
	uint8_t rep[232] = {0};

	put(rep, PEER_ID, 4);
	put(rep + 4, p->id, 4);
	put(rep + 12, (uint64_t)PEER_QPN << 8, 4);
	put(rep + 20, (uint64_t)psn << 8, 4);
	rep[25] = 16;
	if (len > 0)
		memcpy(rep + 36, priv, len);
	peer_send_mad(p, 0x13, rep);
}

void peer_accept(struct peer *p, uint32_t psn, const void *priv, size_t len, void (*turn)(void))
{
	uint8_t rtu[232];

	peer_take_req(p, turn);
	peer_send_rep(p, psn, priv, len);
	peer_next_mad(p, 0x14, rtu, turn);
}
