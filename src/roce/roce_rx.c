/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come. They are checked in the order of what it costs: the numbers in the packet,
 * where it comes from, the ICRC; only then is it looked at.
 */
#include "roce_rx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define CNP_NS      (50 * NSEC_PER_USEC) /* between two that we send, at least */
#define BATCHES_MAX 16u                  /* of one call: others of the lane have their turn */
#define FEW         8u                   /* of the first of them */

static bool is_peer(const struct roce_ep *ep, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in6 *peer6 = (const struct sockaddr_in6 *)&ep->remote;

	if (from->ss_family != ep->remote.ss_family)
		return false;
	if (from->ss_family == AF_INET6)
		return memcmp(&in6->sin6_addr, ep->in.src, 16) == 0 &&
		       (!IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ||
			       in6->sin6_scope_id == peer6->sin6_scope_id);
	return memcmp(&((const struct sockaddr_in *)from)->sin_addr, ep->in.src, 4) == 0;
}

/*
 * Volume 1, section 10.9.3: of our partition, the default one. The highest bit says whether a
 * member is a full one; of two that talk one must be, and we are.
 */
static bool is_of_partition(uint16_t pkey)
{
	return ((pkey ^ ROCE_PKEY_DEFAULT) & 0x7fff) == 0;
}

static uint16_t source_port(const struct sockaddr_storage *from)
{
	return ntohs(from->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)from)->sin6_port
						 : ((const struct sockaddr_in *)from)->sin_port);
}

/* Congestion on its way to us: the peer is to send less (annex A17.9.3). */
static void notify(struct roce_ep *ep, uint16_t pkey)
{
	const struct roce_packet p = {
		.opcode = ROCE_OP_CNP, .qpn = ep->peer_qpn, .becn = true, .pkey = pkey};
	uint64_t now = reactor_clock(ep->r);

	if (now - ep->cnp_ns < CNP_NS)
		return;
	ep->cnp_ns = now;
	stats_count(&ep->stats->cnps_sent, 1);
	roce_tx_put(ep, &p, NULL, 0, NULL);
}

/* Of our connection, and whole. */
static void take(struct roce_ep *ep, const struct roce_packet *p, uint8_t tos)
{
	if ((tos & ROCE_ECN) == ROCE_CE)
		notify(ep, p->pkey);
	ep->passes.came |= p->payload_len > ROCE_MTU_SAFE;
	if (p->kind & ROCE_IS_CNP) {
		stats_count(&ep->stats->cnps, 1);
		roce_send_slower(ep);
		roce_serve_slower(ep);
	} else if (p->kind & ROCE_IS_RESP) {
		roce_send_received(ep, p);
	} else if (!(p->kind & ROCE_HAS_DETH)) {
		roce_serve_received(ep, p);
	}
}

/* Is it for this endpoint, by its numbers? Of the CM also what is about the last connection. */
static bool is_for(const struct roce_ep *ep, const struct roce_packet *p)
{
	uint32_t id;

	if (p->qpn != ROCE_QP_GSI)
		return ep->qpn != 0 && p->qpn == ep->qpn && ep->state == ROCE_UP;
	if (!(p->kind & ROCE_HAS_DETH) || p->payload_len != ROCE_MAD_LEN)
		return false;
	id = roce_wire_get32(p->payload + 24 + 4);
	return id != 0 && (id == ep->conn.local_id || id == ep->conn.dreq.local_id);
}

/* The number of whose it is (roce_sock_number()). */
static uint32_t number_of(const struct roce_packet *p)
{
	/* MAD: remote communication ID. */
	if (p->qpn == ROCE_QP_GSI && (p->kind & ROCE_HAS_DETH) && p->payload_len == ROCE_MAD_LEN)
		return roce_wire_get24(p->payload + 24 + 5);
	return p->qpn;
}

void roce_rx_packet(
	struct roce_ep *ep, const uint8_t *bytes, size_t len, const struct roce_rx_about *about)
{
	uint16_t port = source_port(about->from), id;
	struct roce_packet p;

	if (!roce_wire_decode(bytes, len, &p) || !is_of_partition(p.pkey))
		return;
	if (about->apart)
		p.payload = about->apart;
	if (!is_for(ep, &p)) {
		if (!about->handed_over && !about->apart)
			roce_sock_hand_over(ep, number_of(&p), bytes, len, about);
		return;
	}
	if (!is_peer(ep, about->from))
		return;
	if (!roce_icrc_check(
		    &ep->ids, &ep->in, port, bytes, len, about->apart, about->apart_len, &id)) {
		stats_count(&ep->stats->bad_icrc, 1);
		return;
	}
	if (about->handed_over && !about->trusted && p.qpn != ROCE_QP_GSI) {
		log_warn_limited("%s: a process of another user gets packets of this connection, "
				 "and hands them over: they are not taken from it, since it could "
				 "have changed them",
			ep->name);
		return;
	}
	if (capture_is_on(ep->conf.capture) || p.qpn == ROCE_QP_GSI)
		roce_cap_received(ep, &p,
			&(struct roce_cap_in){.bytes = bytes,
				.len = len,
				.about = about,
				.port = port,
				.id = id});
	if (p.qpn == ROCE_QP_GSI) {
		roce_conn_received(ep, &p);
		return;
	}
	/* A CNP may be of a port that is no queue pair's (Xilinx). */
	if (!(p.kind & ROCE_IS_CNP))
		roce_sock_from(ep, port);
	take(ep, &p, about->tos);
}

/* Of the IP header, with the bits of ECN. */
static uint8_t tos_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int tclass;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			return *(const uint8_t *)CMSG_DATA(c);
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
			return (uint8_t)tclass;
		}
	}
	return 0;
}

/* ---- where they are received ---- */

/*
 * Of a Write that has begun: where the rest of it belongs. Returns: bytes of it; 0: there is no
 * such Write, or its key does not open the memory any more.
 */
static uint32_t rest_of_write(const struct roce_ep *ep, uint8_t **ret_at)
{
	const struct roce_responder *q = &ep->resp;
	uint8_t *to;

	if (ep->state != ROCE_UP || q->kind != ROCE_IS_WRITE)
		return 0;
	to = roce_key_find(ep, q->rkey, q->va, q->total, FAB_REMOTE_WRITE);
	if (!to)
		return 0;
	*ret_at = to + q->got;
	return q->total - q->got;
}

void roce_rx_place(const struct roce_ep *ep, bool own, struct roce_rx_slot *slots,
	struct iovec (*ret_iov)[ROCE_RX_PIECES], unsigned int cnt)
{
	uint8_t *at = NULL;
	uint32_t left = own ? rest_of_write(ep, &at) : 0;

	for (unsigned int i = 0; i < cnt; i++) {
		struct roce_rx_slot *s = &slots[i];
		uint32_t len = left < ep->mtu ? left : ep->mtu;
		size_t tail = ROCE_BTH_LEN + len;

		s->apart = len > 0 ? at : NULL;
		s->apart_len = len;
		ret_iov[i][0] = (struct iovec){s->bytes, ROCE_BTH_LEN};
		ret_iov[i][1] = (struct iovec){at, len};
		ret_iov[i][2] = (struct iovec){s->bytes + tail, sizeof(s->bytes) - tail};
		at = len > 0 ? at + len : NULL;
		left -= len;
	}
}

/* It is the one whose payload belongs there, by its numbers. */
static bool is_at_home(const struct roce_ep *ep, const struct roce_rx_slot *s, uint32_t psn)
{
	const uint8_t *b = s->bytes;

	return s->len >= ROCE_BTH_LEN &&
	       (b[0] == ROCE_OP_WRITE_MIDDLE || b[0] == ROCE_OP_WRITE_LAST) &&
	       s->len == ROCE_BTH_LEN + s->apart_len + (b[1] >> 4 & 3) + ROCE_ICRC_LEN &&
	       roce_wire_get24(b + 5) == ep->qpn && roce_wire_get24(b + 9) == psn;
}

void roce_rx_settle(const struct roce_ep *ep, struct roce_rx_slot *slots, unsigned int cnt)
{
	uint32_t psn = ep->resp.psn;
	bool at_home = true;

	for (unsigned int i = 0; i < cnt && slots[i].apart; i++) {
		struct roce_rx_slot *s = &slots[i];
		size_t len = s->len > ROCE_BTH_LEN ? s->len - ROCE_BTH_LEN : 0;

		/* Those that follow another packet are not at home either. */
		at_home = at_home && is_at_home(ep, s, roce_wire_psn_add(psn, i));
		if (at_home)
			continue;
		memcpy(s->bytes + ROCE_BTH_LEN, s->apart, len < s->apart_len ? len : s->apart_len);
		s->apart = NULL;
	}
}

/* Returns: how many of cnt came; fewer: there are no more. */
static unsigned int batch(struct roce_ep *ep, int fd, bool own, unsigned int cnt)
{
	/* One for each thread: none is kept from one batch to the next. */
	static _Thread_local struct roce_rx_slot slots[ROCE_RX_BATCH];
	struct mmsghdr msgs[ROCE_RX_BATCH];
	struct iovec iov[ROCE_RX_BATCH][ROCE_RX_PIECES];
	int n;

	roce_rx_place(ep, own, slots, iov, cnt);
	for (unsigned int i = 0; i < cnt; i++)
		msgs[i].msg_hdr = (struct msghdr){.msg_name = &slots[i].from,
			.msg_namelen = sizeof(slots[i].from),
			.msg_iov = iov[i],
			.msg_iovlen = ROCE_RX_PIECES,
			.msg_control = slots[i].control,
			.msg_controllen = sizeof(slots[i].control)};
	n = roce_sock_recv(fd, msgs, cnt);
	if (n <= 0)
		return 0;
	for (int i = 0; i < n; i++)
		slots[i].len = msgs[i].msg_len;
	roce_rx_settle(ep, slots, (unsigned int)n);
	roce_ep_deliver_begin(ep);
	for (int i = 0; i < n; i++) {
		ep->behind = (unsigned int)(n - 1 - i);
		if (!(msgs[i].msg_hdr.msg_flags & MSG_TRUNC))
			roce_rx_packet(ep, slots[i].bytes, slots[i].len,
				&(struct roce_rx_about){.from = &slots[i].from,
					.tos = tos_of(&msgs[i].msg_hdr),
					.apart = slots[i].apart,
					.apart_len = slots[i].apart_len});
	}
	roce_ep_deliver_end(ep);
	return (unsigned int)n;
}

/*
 * Few at first, unless a Write is under way: to be ready for many costs more than one reply does,
 * and of the packets that come with a Write's first one the payload is copied once more.
 */
bool roce_rx_ready(struct roce_ep *ep, const int *fd, bool own)
{
	unsigned int cnt = own && ep->resp.kind == ROCE_IS_WRITE ? ROCE_RX_BATCH : FEW;
	int now = *fd;

	for (unsigned int i = 0; i < BATCHES_MAX; i++) {
		unsigned int n = batch(ep, now, own, cnt);

		/* Its number may be anybody's by now. */
		if (*fd != now)
			return true;
		if (n < cnt)
			return false;
		cnt = ROCE_RX_BATCH;
	}
	return true;
}
