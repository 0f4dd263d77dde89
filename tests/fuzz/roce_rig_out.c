/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that lead nowhere, in place of roce_sock.c, on no adapter. Each packet is looked at:
 *
 *   Send             of an unfinished Send, with its bytes
 *   Read response    of memory that the peer may read now
 *   acknowledgement  no more of them than packets came; so of the CM's answers and of CNPs
 *   REQ, DREQ        as many as there may be
 *
 * and nothing of a connection leaves when it is over. So no packet that comes makes more bytes
 * leave than it has, but for the headers of an acknowledgement, what a Read asks for, and Sends
 * that its peer did not get.
 */
#include "roce_rig.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#define ACK_LEN (ROCE_BTH_LEN + 4u + ROCE_ICRC_LEN)
#define CNP_LEN (ROCE_BTH_LEN + 16u + ROCE_ICRC_LEN)

struct roce_sock {
	struct roce_ep *ep;
};

static struct roce_sock sock;
static struct roce_icrc_ids ids;

/* ---- one packet ---- */

/* From the header to the ICRC, in one piece. */
static size_t flatten(const struct msghdr *m, uint8_t flat[ROCE_PACKET_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++) {
		const struct iovec *v = &m->msg_iov[i];

		RIG_CHECK(v->iov_len <= ROCE_PACKET_MAX - len);
		if (v->iov_len > 0)
			memcpy(flat + len, v->iov_base, v->iov_len);
		len += v->iov_len;
	}
	return len;
}

static void look_at_mad(const struct roce_packet *p)
{
	uint32_t attr;

	RIG_CHECK(p->qpn == ROCE_QP_GSI && p->qkey == ROCE_QKEY_GSI &&
		  p->payload_len == ROCE_MAD_LEN);
	rig.counts.mads++;
	attr = roce_wire_get16(p->payload + 16);
	switch (attr) {
	case ROCE_MAD_REQ:
		RIG_CHECK(roce_of(rig.ep)->state == ROCE_CONNECTING);
		rig.id = roce_wire_get32(p->payload + 24);
		rig.qpn = roce_wire_get24(p->payload + 24 + 32);
		RIG_CHECK(rig.id != 0 && rig.qpn > 1);
		break;
	case ROCE_MAD_DREQ:
		RIG_CHECK(rig.dreqs > 0);
		rig.dreqs--;
		break;
	case ROCE_MAD_RTU:
	case ROCE_MAD_REJ:
	case ROCE_MAD_DREP:
		RIG_CHECK(rig.answers > 0);
		rig.answers--;
		break;
	default:
		RIG_CHECK(!"no such MAD");
	}
}

/* The Send that this packet is of; its byte that the packet begins with. */
static const struct rig_send *send_of(uint32_t psn, uint32_t *ret_off)
{
	for (uint32_t n = rig.send_first; n != rig.send_end; n++) {
		const struct rig_send *s = &rig.sends[n % RIG_SENDS];
		int32_t at = roce_wire_psn_diff(psn, s->psn);

		if (at >= 0 && at < (int32_t)s->packets) {
			*ret_off = (uint32_t)at * roce_of(rig.ep)->mtu;
			return s;
		}
	}
	return NULL;
}

static void look_at_send(const struct roce_packet *p)
{
	uint32_t mtu = roce_of(rig.ep)->mtu, off = 0, at = 0;
	const struct rig_send *s = send_of(p->psn, &off);
	bool is_first = p->kind & ROCE_IS_FIRST, is_last = p->kind & ROCE_IS_LAST;

	rig.counts.sends++;
	RIG_CHECK(s && is_first == (off == 0) && is_last == (s->len - off <= mtu));
	RIG_CHECK(p->payload_len == (is_last ? s->len - off : mtu));
	/* Byte `at` of the Send is the first one of this piece. */
	for (unsigned int i = 0; i < s->sge_cnt; i++) {
		uint32_t len = (uint32_t)s->sges[i].iov_len;
		uint32_t from = off > at ? off : at, end = off + p->payload_len;
		uint32_t to = end < at + len ? end : at + len;

		if (from < to)
			RIG_CHECK(memcmp(p->payload + (from - off),
					  (const uint8_t *)s->sges[i].iov_base + (from - at),
					  to - from) == 0);
		at += len;
	}
}

static bool may_read(const struct iovec *v)
{
	const uint8_t *p = v->iov_base;

	for (unsigned int i = 0; i < RIG_AREAS; i++) {
		const struct rig_area *a = &rig.areas[i];

		if ((a->open & FAB_REMOTE_READ) && p >= a->addr &&
			v->iov_len <= (size_t)(a->addr + a->len - p) && p <= a->addr + a->len)
			return true;
	}
	return v->iov_len == 0;
}

static void look_at_resp(const struct roce_packet *p, const struct msghdr *m, size_t len)
{
	if (p->opcode != ROCE_OP_ACK) {
		rig.counts.reads++;
		RIG_CHECK(p->payload_len <= roce_of(rig.ep)->mtu);
		for (size_t i = 1; i + 1 < m->msg_iovlen; i++)
			RIG_CHECK(may_read(&m->msg_iov[i]));
		return;
	}
	RIG_CHECK(len == ACK_LEN && rig.answers > 0);
	rig.answers--;
	if (p->syndrome == ROCE_AETH_ACK)
		rig.counts.acks++;
	else if ((p->syndrome & 0xe0) == ROCE_AETH_RNR)
		rig.counts.rnrs++;
	else
		rig.counts.naks++;
}

static void look_at(const struct roce_ep *ep, const struct msghdr *m)
{
	uint8_t flat[ROCE_PACKET_MAX];
	size_t len = flatten(m, flat);
	struct roce_packet p;
	uint16_t id;

	RIG_CHECK(m->msg_name == &ep->to);
	RIG_CHECK(roce_wire_decode(flat, len, &p));
	/* Annex A17.9.3: a CNP has the partition key of what it answers, and no migration. */
	RIG_CHECK((p.kind & ROCE_IS_CNP) ? (p.pkey | 0x8000) == ROCE_PKEY_DEFAULT && !p.migrated
					 : p.pkey == ROCE_PKEY_DEFAULT && p.migrated);
	RIG_CHECK(p.pad == roce_wire_pad(p.payload_len));
	RIG_CHECK(roce_icrc_check(&ids, &ep->out, RIG_OUR_PORT, flat, len, NULL, 0, &id));
	if (p.kind & ROCE_HAS_DETH) {
		look_at_mad(&p);
		return;
	}
	RIG_CHECK(ep->state == ROCE_UP && p.qpn == rig.peer_qpn && !(p.kind & ROCE_IS_WRITE));
	if (p.kind & ROCE_IS_CNP) {
		RIG_CHECK(len == CNP_LEN && p.becn && rig.cnps > 0);
		rig.cnps--;
		rig.counts.cnps++;
	} else if (p.kind & ROCE_IS_RESP) {
		look_at_resp(&p, m, len);
	} else {
		RIG_CHECK(p.kind & ROCE_IS_SEND);
		look_at_send(&p);
	}
}

/* ---- roce_sock.c's ---- */

int roce_sock_open(struct roce_ep *ep)
{
	sock.ep = ep;
	ep->sock = &sock;
	return 0;
}

void roce_sock_close(struct roce_ep *ep)
{
	ep->sock = NULL;
}

void roce_sock_renew(struct roce_ep *ep)
{
}

int roce_sock_route(const struct sockaddr *src, const struct sockaddr *dst,
	struct sockaddr_storage *ret_local, unsigned int *ret_mtu)
{
	*ret_local = (struct sockaddr_storage){.ss_family = dst->sa_family};
	if (dst->sa_family == AF_INET6)
		((struct sockaddr_in6 *)ret_local)->sin6_addr.s6_addr[15] = 1;
	else
		((struct sockaddr_in *)ret_local)->sin_addr.s_addr = htonl(0x7f000001);
	*ret_mtu = rig.ip_mtu;
	return 0;
}

int roce_sock_number(struct roce_ep *ep, uint32_t *ret_number)
{
	*ret_number = (roce_key_random() & ROCE_PSN_MASK) | 256;
	return 0;
}

int roce_sock_claim(struct roce_ep *ep, uint16_t port)
{
	return 0;
}

void roce_sock_part(struct roce_ep *ep)
{
}

void roce_sock_from(struct roce_ep *ep, uint16_t port)
{
}

uint16_t roce_sock_port(const struct roce_ep *ep)
{
	return RIG_OUR_PORT;
}

uint16_t roce_sock_port_anew(struct roce_ep *ep)
{
	return RIG_OUR_PORT;
}

bool roce_sock_read(struct roce_ep *ep)
{
	return false;
}

int roce_sock_recv(int fd, struct mmsghdr *msgs, unsigned int cnt)
{
	return 0;
}

/*
 * As the kernel does it: packets of the length that the control message says (UDP_SEGMENT); the
 * last one may be shorter.
 */
static void cut(const struct roce_ep *ep, const struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR((struct msghdr *)(uintptr_t)m);
	struct msghdr part = *m;
	uint16_t segment;
	size_t from = 0;

	RIG_CHECK(c && c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT);
	memcpy(&segment, CMSG_DATA(c), sizeof(segment));
	while (from < m->msg_iovlen) {
		size_t to = from, len = 0;

		while (to < m->msg_iovlen && len < segment)
			len += m->msg_iov[to++].iov_len;
		RIG_CHECK(len == segment || (len < segment && to == m->msg_iovlen));
		part.msg_iov = m->msg_iov + from;
		part.msg_iovlen = to - from;
		look_at(ep, &part);
		from = to;
	}
}

unsigned int roce_sock_room(const struct roce_ep *ep)
{
	return ROCE_ROOM;
}

void roce_sock_hear(struct roce_ep *ep, bool on)
{
}

int roce_sock_error(const struct roce_ep *ep)
{
	RIG_CHECK(ep->sock == &sock);
	return 0;
}

bool roce_sys_adapter(
	const char *sys, const struct sockaddr *local, const struct sockaddr *remote, char ret[64])
{
	return false;
}

int roce_sock_train(struct roce_ep *ep)
{
	return 0;
}

int roce_sock_send(struct roce_ep *ep, struct mmsghdr *msgs, unsigned int cnt, bool trains)
{
	RIG_CHECK(ep->sock == &sock && cnt > 0 && cnt <= ROCE_TX_BATCH);
	for (unsigned int i = 0; i < cnt; i++) {
		if (rig.room == 0) {
			rig.counts.full++;
			/* The kernel says it in two ways. */
			return i > 0 ? (int)i : rig.counts.full % 2 ? -EAGAIN : -ENOBUFS;
		}
		if (rig.room != UINT32_MAX)
			rig.room--;
		if (msgs[i].msg_hdr.msg_controllen > 0) {
			RIG_CHECK(trains);
			cut(ep, &msgs[i].msg_hdr);
		} else {
			look_at(ep, &msgs[i].msg_hdr);
		}
	}
	return (int)cnt;
}

void roce_sock_wait(struct roce_ep *ep)
{
	rig.waits = true;
}

bool roce_sock_is_full(const struct roce_ep *ep)
{
	return rig.waits && rig.room == 0;
}

void roce_sock_hand_over(struct roce_ep *ep, uint32_t number, const uint8_t *p, size_t len,
	const struct roce_rx_about *about)
{
	RIG_CHECK(number <= ROCE_PSN_MASK && len >= ROCE_BTH_LEN && len <= ROCE_PACKET_MAX);
	RIG_CHECK(!about->handed_over);
	rig.counts.handed_over++;
}

void roce_rig_room(void)
{
	rig.room = UINT32_MAX;
	if (!rig.waits)
		return;
	rig.waits = false;
	roce_tx_go(roce_of(rig.ep));
}
