/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_rig.h"

#include <string.h>

#define DETH_LEN 8u

/* ---- making ---- */

size_t roce_rig_ext_len(uint8_t op)
{
	unsigned int kind = roce_wire_kind(op);

	return (kind & ROCE_HAS_DETH ? DETH_LEN : 0u) + (kind & ROCE_HAS_RETH ? 16u : 0u) +
	       (kind & ROCE_HAS_AETH ? 4u : 0u) + (kind & ROCE_HAS_IETH ? 4u : 0u) +
	       (kind & ROCE_HAS_IMM ? 4u : 0u) + (kind & ROCE_IS_CNP ? 16u : 0u);
}

static uint8_t *put_ext(uint8_t *q, unsigned int kind, const struct rig_packet *p)
{
	if (kind & ROCE_HAS_DETH)
		q = roce_wire_put32(roce_wire_put32(q, ROCE_QKEY_GSI), ROCE_QP_GSI);
	if (kind & ROCE_HAS_RETH) {
		q = roce_wire_put32(roce_wire_put64(q, p->va), p->rkey);
		q = roce_wire_put32(q, p->dma_len);
	}
	if (kind & ROCE_HAS_AETH)
		q = roce_wire_put32(q, (uint32_t)p->syndrome << 24);
	if (kind & ROCE_HAS_IETH)
		q = roce_wire_put32(q, p->rkey);
	if (kind & ROCE_HAS_IMM)
		q = roce_wire_put32(q, 0);
	if (kind & ROCE_IS_CNP)
		q = roce_wire_put64(roce_wire_put64(q, 0), 0);
	return q;
}

size_t roce_rig_build(uint8_t *b, const struct rig_packet *p)
{
	uint32_t pad = roce_wire_pad(p->len);
	uint8_t *q = b;

	*q++ = p->op;
	*q++ = (uint8_t)(0x40 | pad << 4);
	q = roce_wire_put16(q, ROCE_PKEY_DEFAULT);
	q = roce_wire_put32(q, p->qpn & ROCE_PSN_MASK);
	q = roce_wire_put32(q, (p->ack_req ? 0x80000000u : 0) | (p->psn & ROCE_PSN_MASK));
	q = put_ext(q, roce_wire_kind(p->op), p);
	if (p->len > 0)
		memcpy(q, p->payload, p->len);
	memset(q + p->len, 0, pad);
	return (size_t)(q - b) + p->len + pad + ROCE_ICRC_LEN;
}

size_t roce_rig_build_mad(uint8_t *b, uint16_t attr, const uint8_t *body, size_t len)
{
	uint8_t mad[ROCE_MAD_LEN] = {1, 7, 2, 3};

	roce_wire_put64(mad + 8, roce_of(rig.ep)->conn.tid);
	roce_wire_put16(mad + 16, attr);
	if (len > sizeof(mad) - 24)
		len = sizeof(mad) - 24;
	if (len > 0)
		memcpy(mad + 24, body, len);
	return roce_rig_build(b, &(struct rig_packet){.op = ROCE_OP_UD_SEND_ONLY,
					 .qpn = ROCE_QP_GSI,
					 .psn = 77,
					 .payload = mad,
					 .len = sizeof(mad)});
}

/* Of at least 16 bytes. */
static void put_icrc(uint8_t out[ROCE_ICRC_LEN], const uint8_t *b, size_t len, uint16_t port)
{
	size_t body = len - ROCE_ICRC_LEN;
	uint32_t crc = roce_icrc_begin(&roce_of(rig.ep)->in, 0, port, 8 + len, b);

	roce_icrc_put(out, roce_icrc_add(crc, b + ROCE_BTH_LEN, body - ROCE_BTH_LEN));
}

void roce_rig_seal(uint8_t *b, size_t len, uint16_t port)
{
	if (len >= ROCE_BTH_LEN + ROCE_ICRC_LEN)
		put_icrc(b + len - ROCE_ICRC_LEN, b, len, port);
}

static bool is_whole(const uint8_t *b, size_t len, uint16_t port)
{
	uint8_t icrc[ROCE_ICRC_LEN];

	put_icrc(icrc, b, len, port);
	return memcmp(icrc, b + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN) == 0;
}

/* ---- giving ---- */

void roce_rig_batch_begin(void)
{
	const struct roce_ep *ep = roce_of(rig.ep);

	/* Answers that were put off, as the socket was full. */
	rig.answers = ep->resp.ack_due + (ep->resp.nak_due != 0) + ep->resp.read_cnt;
	roce_ep_deliver_begin(roce_of(rig.ep));
}

void roce_rig_batch_end(void)
{
	roce_ep_deliver_end(roce_of(rig.ep));
}

static struct sockaddr_storage source(const struct rig_way *way)
{
	struct sockaddr_storage from = {.ss_family = rig.is_v6 ? AF_INET6 : AF_INET};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&from;
	struct sockaddr_in *in = (struct sockaddr_in *)&from;
	uint8_t host = way->stranger ? 3 : 2;

	if (rig.is_v6) {
		in6->sin6_port = htons(way->port);
		in6->sin6_addr.s6_addr[15] = host;
	} else {
		in->sin_port = htons(way->port);
		in->sin_addr.s_addr = htonl(0x7f000000u | host);
	}
	return from;
}

static void scatter(const uint8_t *b, size_t len, const struct iovec iov[ROCE_RX_PIECES])
{
	size_t at = 0;

	for (unsigned int i = 0; i < ROCE_RX_PIECES && at < len; i++) {
		size_t n = len - at < iov[i].iov_len ? len - at : iov[i].iov_len;

		if (n > 0)
			memcpy(iov[i].iov_base, b + at, n);
		at += n;
	}
	RIG_CHECK(at == len);
}

/* Received as from a socket, where the endpoint wants them; it is ready for more. */
static void receive(const struct rig_given *g, unsigned int cnt, bool own,
	struct roce_rx_slot slots[RIG_TOGETHER])
{
	const struct roce_ep *ep = roce_of(rig.ep);
	struct iovec iov[RIG_TOGETHER][ROCE_RX_PIECES];

	roce_rx_place(ep, own, slots, iov, RIG_TOGETHER);
	for (unsigned int i = 0; i < cnt; i++) {
		scatter(g[i].b, g[i].len, iov[i]);
		slots[i].len = g[i].len;
	}
	roce_rx_settle(ep, slots, cnt);
	for (unsigned int i = 0; i < cnt; i++) {
		const struct roce_rx_slot *s = &slots[i];

		if (s->apart)
			RIG_CHECK(
				own && memcmp(s->apart, g[i].b + ROCE_BTH_LEN, s->apart_len) == 0);
		else
			RIG_CHECK(memcmp(s->bytes, g[i].b, s->len) == 0);
	}
}

static void deliver(const struct rig_given *g, const struct roce_rx_slot *s)
{
	/* At the end of it: one byte more is none of ours. */
	static uint8_t buf[RIG_PACKET];
	const struct rig_way *way = &g->way;
	const struct sockaddr_storage from = source(way);
	struct roce_ep *ep = roce_of(rig.ep);
	uint32_t psn = ep->resp.psn, acked = ep->req.acked;
	bool was_up = ep->state == ROCE_UP, is_new;

	memcpy(buf + sizeof(buf) - g->len, g->b, g->len);
	rig.answers++;
	rig.cnps += way->ce;
	rig.counts.given++;
	rig.counts.apart += s->apart != NULL;
	roce_rx_packet(ep, s->apart ? s->bytes : buf + sizeof(buf) - g->len, g->len,
		&(struct roce_rx_about){.from = &from,
			.tos = way->ce ? ROCE_CE : 0,
			.handed_over = way->handed_over,
			.trusted = way->trusted,
			.apart = s->apart,
			.apart_len = s->apart_len});
	/* Nothing is taken out of turn, of anybody else, or changed. IPv4: any Identification will
	 * do. */
	is_new = ep->resp.psn != psn;
	RIG_CHECK(!is_new || roce_wire_get24(g->b + 9) == psn);
	RIG_CHECK(!was_up || (!is_new && ep->req.acked == acked) ||
		  (!way->stranger && (!way->handed_over || way->trusted)));
	RIG_CHECK(!is_new || !rig.is_v6 || is_whole(g->b, g->len, way->port));
	rig.counts.taken += is_new;
}

static struct roce_rx_slot slots[RIG_TOGETHER];

void roce_rig_give(const uint8_t *b, size_t len, const struct rig_way *way)
{
	const struct rig_given g = {.b = b, .len = len, .way = *way};

	if (!roce_of(rig.ep)->sock || len > RIG_PACKET)
		return;
	slots[0].apart = NULL;
	if (len < sizeof(slots[0].bytes))
		receive(&g, 1, !way->stranger && !way->handed_over, slots);
	deliver(&g, &slots[0]);
}

void roce_rig_give_together(const struct rig_given *g, unsigned int cnt)
{
	struct roce_ep *ep = roce_of(rig.ep);

	if (!ep->sock)
		return;
	receive(g, cnt, true, slots);
	for (unsigned int i = 0; i < cnt && ep->sock; i++) {
		ep->behind = cnt - 1 - i;
		rig.counts.apart_later += i > 0 && slots[i].apart;
		deliver(&g[i], &slots[i]);
	}
	ep->behind = 0;
}

void roce_rig_accept(void)
{
	const struct rig_way way = {.port = RIG_PORT};
	uint8_t rep[ROCE_MAD_LEN - 24] = {0}, b[RIG_PACKET];
	uint32_t psn = roce_rig_random(&rig.numbers);
	size_t len;

	/* One of four wraps soon. */
	psn = (psn & 3 ? psn >> 8 : psn >> 8 | 0xfffff0) & ROCE_PSN_MASK;
	roce_wire_put32(rep, RIG_PEER_ID);
	roce_wire_put32(rep + 4, rig.id);
	roce_wire_put32(rep + 12, RIG_PEER_QPN << 8);
	roce_wire_put32(rep + 20, psn << 8);
	len = roce_rig_build_mad(b, ROCE_MAD_REP, rep, sizeof(rep));
	roce_rig_seal(b, len, way.port);
	roce_rig_batch_begin();
	roce_rig_give(b, len, &way);
	roce_rig_batch_end();
}
