/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
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

#define OURS  "127.0.0.2"
#define EP    "127.0.0.1"
#define TURNS 20000

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

void peer_network(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
}

static int open_at(const char *addr, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, pmtu = IP_PMTUDISC_DO;

	inet_pton(AF_INET, addr, &in.sin_addr);
	/* Not connected, never in fragments: the Identification is 0. */
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &pmtu, sizeof(pmtu)), 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0, "%s", strerror(errno));
	return fd;
}

void peer_new(struct peer *p)
{
	*p = (struct peer){.fd = open_at(OURS, 4791)};
}

void peer_free(struct peer *p)
{
	close(p->fd);
}

/* ---- ICRC: IBA annex A17.3.3, over a packet put together for it ---- */

static void icrc(const char *src, const char *dst, uint16_t src_port, const uint8_t *udp,
	size_t len, uint8_t ret[4])
{
	uint8_t m[8 + 20 + 8 + PEER_PACKET];
	uLong crc;

	memset(m, 0xff, 8);
	memset(m + 8, 0, 20);
	m[8] = 0x45;
	m[9] = 0xff;
	put(m + 10, 20 + 8 + len + 4, 2);
	m[14] = 0x40;
	m[16] = 0xff;
	m[17] = 17;
	m[18] = m[19] = 0xff;
	inet_pton(AF_INET, src, m + 20);
	inet_pton(AF_INET, dst, m + 24);
	put(m + 28, src_port, 2);
	put(m + 30, 4791, 2);
	put(m + 32, 8 + len + 4, 2);
	m[34] = m[35] = 0xff;
	memcpy(m + 36, udp, len);
	m[36 + 4] = 0xff;
	crc = crc32(0, m, (uInt)(36 + len));
	for (int i = 0; i < 4; i++)
		ret[i] = (uint8_t)(crc >> 8 * i);
}

/* ---- in ---- */

static ssize_t receive(struct peer *p, uint8_t *buf, uint16_t *ret_port, uint8_t *ret_tos)
{
	struct sockaddr_in from;
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
	cr_assert_eq(from.sin_addr.s_addr, inet_addr(EP));
	*ret_port = ntohs(from.sin_port);
	*ret_tos = c && c->cmsg_type == IP_TOS ? *CMSG_DATA(c) : 0;
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

static void check(
	struct peer *p, const uint8_t *b, size_t n, uint16_t port, struct peer_packet *ret)
{
	uint8_t crc[4];
	size_t ext, pad = b[1] >> 4 & 3;

	cr_assert_geq(n, 16);
	cr_assert_eq(n % 4, 0, "IBA 9.4.1: whole words");
	icrc(EP, OURS, port, b, n - 4, crc);
	cr_assert_arr_eq(crc, b + n - 4, 4, "A17.3.3: ICRC");
	ext = ext_of(b[0]);
	cr_assert_geq(n, 12 + ext + pad + 4);
	cr_assert_eq(b[1] & 0x80, 0, "no solicited event was asked for");
	cr_assert_eq(b[1] & 0x40, 0x40, "IBA 9.2.3: MigReq of a queue pair that has one path");
	cr_assert_eq(b[1] & 0x0f, 0, "IBA 9.2.4: TVer");
	cr_assert_eq(be(b + 2, 2), 0xffff, "IBA 9.2.5: P_Key");
	cr_assert_eq(b[4] & 0xbf, 0, "IBA 9.2: reserved; FECN is a switch's");
	cr_assert_eq(b[8] & 0x7f, 0, "IBA 9.2: reserved");
	*ret = (struct peer_packet){.op = b[0],
		.ack_req = b[8] & 0x80,
		.becn = b[4] & 0x40,
		.qpn = be(b + 5, 3),
		.psn = be(b + 9, 3),
		.len = n - 12 - ext - pad - 4};
	cr_assert_eq(ret->becn, b[0] == 0x81, "A17.9.3: BECN is CNP's");
	for (size_t i = 0; i < pad; i++)
		cr_assert_eq(b[n - 5 - i], 0, "IBA 9.4.1: pad");
	if (ext == 4) {
		ret->syndrome = b[12];
		ret->msn = be(b + 13, 3);
	}
	if (b[0] == 0x64) {
		cr_assert_eq(ret->qpn, 1, "IBA 3.5.10: GSI");
		cr_assert_eq(be(b + 12, 4), 0x80010000, "IBA 10.2.4: its Q_Key");
		cr_assert_eq(be(b + 16, 4), 1, "IBA 9.3.2: reserved, source");
	} else {
		cr_assert_eq(ret->qpn, PEER_QPN);
	}
	if (b[0] == 0x00 || b[0] == 0x01 || b[0] == 0x0d || b[0] == 0x0e)
		cr_assert_eq(ret->len, p->mtu, "IBA 9.4.1: all but the last packet are full");
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
	ret->ecn = tos & 3;
	return true;
}

/* One that is sent again while nobody answers. */
static bool is_again(const struct peer_packet *k, uint16_t attr)
{
	uint32_t is = k->op == 0x64 && k->len == 256 ? be(k->payload + 16, 2) : 0;

	return is != attr && (is == 0x10 || is == 0x15);
}

void peer_next_mad(struct peer *p, uint16_t attr, uint8_t ret[232], void (*turn)(void))
{
	struct peer_packet k;

	do
		cr_assert(peer_next(p, &k, turn), "no MAD %#x", attr);
	while (is_again(&k, attr));
	cr_assert_eq(k.op, 0x64);
	cr_assert_eq(k.len, 256);
	cr_assert_eq(be(k.payload, 4), 0x01070203, "IBA 13.4.3, 16.7: versions, class, method");
	cr_assert_eq(be(k.payload + 4, 4), 0, "status");
	cr_assert_eq(be(k.payload + 16, 2), attr);
	cr_assert_eq(be(k.payload + 18, 2), 0, "reserved");
	cr_assert_eq(be(k.payload + 20, 4), 0, "attribute modifier");
	memcpy(ret, k.payload + 24, 232);
}

/* ---- out ---- */

static size_t build(const char *from, uint16_t port, const struct peer_out *o, uint8_t *b)
{
	size_t pad = -o->len & 3, n = 12;

	memset(b, 0, 12);
	b[0] = o->op;
	b[1] = (uint8_t)(0x40 | pad << 4);
	put(b + 2, o->other_key ? 0x8001 : 0xffff, 2);
	put(b + 4, o->qpn, 4);
	put(b + 8, (o->ack_req ? 0x80000000u : 0) | (o->psn & 0xffffff), 4);
	if (o->ext_len > 0)
		memcpy(b + n, o->ext, o->ext_len);
	n += o->ext_len;
	if (o->len > 0)
		memcpy(b + n, o->payload, o->len);
	memset(b + n + o->len, 0, pad);
	n += o->len + pad;
	icrc(from, EP, port, b, n, b + n);
	if (o->spoil)
		b[n] ^= 1;
	return n + 4;
}

static void send_by(int fd, const char *from, uint16_t port, const struct peer_out *o)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4791)};
	uint8_t b[PEER_PACKET];
	size_t n = build(from, port, o, b);

	inet_pton(AF_INET, EP, &in.sin_addr);
	cr_assert_eq(sendto(fd, b, n, 0, (struct sockaddr *)&in, sizeof(in)), (ssize_t)n);
}

void peer_send(const struct peer *p, const struct peer_out *o)
{
	send_by(p->fd, OURS, 4791, o);
}

void peer_send_from(const struct peer *p, const char *addr, const struct peer_out *o)
{
	int fd = open_at(addr, 4791);

	send_by(fd, addr, 4791, o);
	close(fd);
}

void peer_hand_over(const struct peer_out *o, uint32_t number, uint8_t ce)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct sockaddr_storage from = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&from;
	uint8_t b[sizeof(from) + 8 + PEER_PACKET] = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t n = sizeof(from) + 8;
	int len =
		snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "rpcrdmafs roce %06x", number);

	in->sin_family = AF_INET;
	in->sin_port = htons(4791);
	inet_pton(AF_INET, OURS, &in->sin_addr);
	memcpy(b, &from, sizeof(from));
	b[sizeof(from)] = ce;
	n += build(OURS, 4791, o, b + n);
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

void peer_reth(uint8_t ext[16], uint64_t va, uint32_t rkey, uint32_t len)
{
	put(ext, va, 8);
	put(ext + 8, rkey, 4);
	put(ext + 12, len, 4);
}

void peer_send_mad(struct peer *p, uint16_t attr, const uint8_t body[232])
{
	uint8_t mad[256] = {1, 7, 2, 3}, deth[8];

	put(deth, 0x80010000, 4);
	put(deth + 4, 1, 4);
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

/* ---- the CM ---- */

void peer_take_req(struct peer *p, void (*turn)(void))
{
	static const uint8_t zero[44], gid[12] = {[10] = 0xff, 0xff};
	uint8_t *r = p->req;

	peer_next_mad(p, 0x10, r, turn);
	p->id = be(r, 4);
	p->qpn = be(r + 32, 3);
	p->psn = be(r + 44, 3);
	cr_assert_neq(p->id, 0);
	cr_assert_gt(p->qpn, 1, "IBA 3.5.10: 0 and 1 are special");
	cr_assert_eq(be(r + 4, 4), 0, "IBA 12.7.1: reserved");
	cr_assert_eq(be(r + 8, 4), 0, "A11.2: service ID of TCP's port space");
	cr_assert_eq(be(r + 12, 4), 0x01060000 | 20049);
	cr_assert_geq(r[35], 1, "the server's Reads: svcrdma refuses 0");
	cr_assert_eq(r[39], 0, "IBA 12.7.1: we read nothing");
	cr_assert_eq(r[43] & 7, 0, "IBA 12.7.8: RC; no end-to-end flow control");
	cr_assert_eq(r[47] & 7, 3, "IBA 12.7.38: retry count, as configured");
	cr_assert_eq(be(r + 48, 2), 0xffff);
	p->mtu = 128u << (r[50] >> 4);
	cr_assert_eq(p->mtu, 4096, "IBA 12.7.27: the loopback takes it");
	cr_assert_eq(r[50] & 7, 7, "RNR retry: for ever");
	cr_assert_eq(be(r + 52, 4), 0xffffffff, "A17: there are no LIDs");
	cr_assert_arr_eq(r + 56, gid, 12, "A17.4.5: a GID of IPv4");
	cr_assert_eq(be(r + 68, 4), ntohl(inet_addr(EP)));
	cr_assert_arr_eq(r + 72, gid, 12);
	cr_assert_eq(be(r + 84, 4), ntohl(inet_addr(OURS)));
	cr_assert_gt(r[93], 0, "hop limit");
	cr_assert_arr_eq(r + 96, zero, 44, "IBA 12.7.1: no alternate path");
	cr_assert_eq(r[140], 0, "A11.3: version");
	cr_assert_eq(r[141], 0x40, "A11.3: IPv4");
	cr_assert_eq(be(r + 156, 4), ntohl(inet_addr(EP)));
	cr_assert_eq(be(r + 172, 4), ntohl(inet_addr(OURS)));
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
	cr_assert_eq(be(rtu, 4), p->id);
	cr_assert_eq(be(rtu + 4, 4), PEER_ID);
}
