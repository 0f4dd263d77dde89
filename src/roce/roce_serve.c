/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder (volume 1, section 9.7): the peer's Sends go to our receives, its RDMA Writes to
 * memory, its RDMA Reads are answered from memory. All in the order of their PSNs; what comes too
 * early is refused (NAK), what comes twice is acknowledged once more, a Read answered once more.
 *
 * A key is looked at for each packet: one that is invalid from now on opens nothing from now on,
 * also for a Write or a Read that has begun.
 */
#include "roce_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "roce_read.h"
#include "roce_ring.h"

/* While there is no receive: 0.64 ms (table 45). One is posted as soon as its message is read. */
#define RNR_TIMER 12u
/* Of what the peer may write at a time, where packets are lost. */
#define INBOUND_LEAST 65536u
#define INBOUND_STEP  65536u
/* Packets of Reads' answers of one call: others of the lane have their turn. */
#define ANSWERS_MOST 256u
/* Packets that an acknowledgement may wait for: peers send more without one (rxe: 128). */
#define ACK_PATIENCE 16u
/* So many do not wait when one waited in vain, or a packet came again. */
#define WARY 16u
/* Packets of an answer that does not wait for those of other Reads. */
#define READ_LONG 16u

int roce_serve_setup(struct roce_ep *ep)
{
	struct roce_responder *q = &ep->resp;

	q->room = ep->qp_conf.recv_wr;
	q->size = roce_ring_size(q->room);
	q->ring = calloc(q->size, sizeof(*q->ring));
	return q->ring ? 0 : -ENOMEM;
}

void roce_serve_free(struct roce_ep *ep)
{
	reactor_timer_cancel(ep->r, &ep->resp.pace_timer);
	free(ep->resp.ring);
	ep->resp = (struct roce_responder){.size = 0};
}

static void on_tick(struct reactor_timer *t)
{
	roce_tx_go(container_of(t, struct roce_ep, resp.pace_timer));
}

void roce_serve_slower(struct roce_ep *ep)
{
	roce_pace_slower(&ep->resp.pace, reactor_now(ep->r));
}

void roce_serve_begin(struct roce_ep *ep, uint32_t psn)
{
	reactor_timer_init(&ep->resp.pace_timer, on_tick);
	ep->resp.psn = psn;
	ep->resp.done_psn = ep->resp.acked = roce_wire_psn_add(psn, ROCE_PSN_MASK);
}

int roce_serve_post(struct roce_ep *ep, void *addr, uint32_t len, uint64_t cookie)
{
	struct roce_responder *q = &ep->resp;

	if (q->end - q->first == q->room)
		return -ENOMEM;
	q->ring[q->end++ % q->size] =
		(struct roce_recv){.cookie = cookie, .addr = addr, .len = len};
	return 0;
}

void roce_serve_flush(struct roce_ep *ep)
{
	struct roce_responder *q = &ep->resp;

	while (q->first != q->end)
		ep->ops->received(ep->ctx, q->ring[q->first++ % q->size].cookie, 0, 0, FAB_FLUSHED);
}

/* ---- answers ---- */

static void answer(struct roce_ep *ep, uint8_t syndrome, uint32_t psn)
{
	const struct roce_packet p = {.opcode = ROCE_OP_ACK,
		.qpn = ep->peer_qpn,
		.psn = psn,
		.syndrome = syndrome,
		.msn = syndrome == ROCE_AETH_ACK ? ep->resp.done_msn : ep->resp.msn};

	if ((syndrome & ROCE_AETH_NAK) == ROCE_AETH_NAK)
		stats_count(&ep->stats->naks_sent, 1);
	else if (syndrome & ROCE_AETH_RNR)
		stats_count(&ep->stats->rnr_naks_sent, 1);
	roce_tx_put(ep, &p, NULL, 0, NULL);
}

/* The connection is of no use any more, and the peer hears why. */
static void refuse(struct roce_ep *ep, uint8_t syndrome, int err, const char *why)
{
	log_warn_limited("%s: the server's packet %#x is refused: %s", ep->name, ep->resp.psn, why);
	answer(ep, syndrome, ep->resp.psn);
	roce_ep_lost(ep, err);
}

/* The expected packet has to come again, and all that is behind it, as this one. */
static void ask_again(struct roce_responder *q, uint8_t syndrome, uint32_t psn)
{
	q->nak_due = syndrome;
	q->nak_psn = psn;
	q->told_ns = REACTOR_NEVER;
}

/*
 * Behind an RNR NAK packets of before come, which the peer sends again. It sends none until the
 * time is over: then the expected packet was among the first, and is lost if it is not there.
 */
static uint64_t told_until(uint8_t syndrome, uint64_t now_ns)
{
	if ((syndrome & ROCE_AETH_NAK) != ROCE_AETH_RNR)
		return REACTOR_NEVER;
	return now_ns + roce_wire_rnr_ns(syndrome & 0x1f);
}

/* A gap. Switches that mark packets have us tell the peer (CNP), others and full buffers do not. */
static void lost_inbound(struct roce_ep *ep)
{
	uint64_t half = ep->caps.max_inbound / 2;

	if (half < INBOUND_LEAST)
		half = ep->inbound_most < INBOUND_LEAST ? ep->inbound_most : INBOUND_LEAST;
	ep->caps.max_inbound = half;
	ep->resp.clean = 0;
}

static void written(struct roce_ep *ep, uint32_t bytes)
{
	uint64_t *now = &ep->caps.max_inbound;

	ep->resp.clean += bytes;
	if (ep->resp.clean < *now)
		return;
	ep->resp.clean = 0;
	*now = *now + INBOUND_STEP < ep->inbound_most ? *now + INBOUND_STEP : ep->inbound_most;
}

static uint8_t resp_opcode(bool first, bool last)
{
	if (first)
		return last ? ROCE_OP_READ_RESP_ONLY : ROCE_OP_READ_RESP_FIRST;
	return last ? ROCE_OP_READ_RESP_LAST : ROCE_OP_READ_RESP_MIDDLE;
}

/* The next packet of the answer. False: the key does not open it any more. */
static bool put_read(struct roce_ep *ep, struct roce_read *rd)
{
	struct roce_responder *q = &ep->resp;
	uint32_t off = rd->done * ep->mtu, left = rd->len - off;
	bool last = rd->done + 1 == rd->packets;
	struct roce_packet p = {.opcode = resp_opcode(rd->done == 0, last),
		.qpn = ep->peer_qpn,
		.psn = roce_wire_psn_add(rd->psn, rd->done),
		.syndrome = ROCE_AETH_ACK,
		.msn = rd->msn,
		.payload_len = left < ep->mtu ? left : ep->mtu};
	const struct roce_tx_from from = {.psn = p.psn, .alone = rd->again};
	struct iovec piece = {.iov_len = p.payload_len};

	if (rd->len > 0) {
		piece.iov_base =
			roce_key_find(ep, rd->rkey, rd->va + off, p.payload_len, FAB_REMOTE_READ);
		if (!piece.iov_base)
			return false;
	}
	rd->done++;
	if (roce_wire_psn_diff(p.psn, q->done_psn) > 0) { /* it acknowledges what is before it */
		q->ack_due = false;
		q->acked = q->done_psn;
	}
	roce_tx_put(ep, &p, &piece, rd->len > 0, &from);
	return true;
}

/*
 * All Sends and Writes so far may be acknowledged: by the PSN of the last of them, never by one of
 * a Read, which its answer acknowledges; and not before the Reads that stand before it are answered
 * (section 9.7.5.1.2). Linux' rxe takes another PSN for an error of ours.
 */
static bool may_ack(struct roce_responder *q)
{
	const struct roce_read *rd = roce_read_next(q);

	return !rd || roce_wire_psn_diff(rd->psn, q->done_psn) > 0;
}

static void put_ack(struct roce_ep *ep)
{
	struct roce_responder *q = &ep->resp;

	if (q->ack_now)
		q->wary = WARY;
	else if (q->wary > 0)
		q->wary--;
	q->ack_due = q->ack_now = false;
	q->acked = q->done_psn;
	answer(ep, ROCE_AETH_ACK, q->done_psn);
}

/* Nothing is there that an acknowledgement could go with. */
static bool is_alone(const struct roce_ep *ep)
{
	const struct roce_responder *q = &ep->resp;

	return q->nak_due == 0 && q->read_cnt == 0 && !roce_send_may_go(ep);
}

/*
 * One acknowledgement is of all before it, and goes with a Send in one system call: it waits for
 * them as long as there is other work (section 9.7.5.1.2). To know that there is none costs a look,
 * so where nothing came lately it does not wait.
 */
static bool may_wait(const struct roce_ep *ep)
{
	const struct roce_responder *q = &ep->resp;

	return !q->ack_now && q->wary == 0 && is_alone(ep) &&
	       roce_wire_psn_diff(q->done_psn, q->acked) < (int32_t)ACK_PATIENCE;
}

/*
 * Where it does not wait it goes before its message is worked on, not behind that: the server has
 * something to do meanwhile.
 */
static void ack_first(struct roce_ep *ep)
{
	const struct roce_responder *q = &ep->resp;

	if (!q->ack_due || q->wary == 0 || ep->behind > 0 || !is_alone(ep))
		return;
	put_ack(ep);
	(void)roce_tx_flush(ep);
}

void roce_serve_ack(struct roce_ep *ep)
{
	ep->resp.ack_now = false;
	if (ep->resp.ack_due && ep->resp.read_cnt == 0)
		put_ack(ep);
}

bool roce_serve_ack_now(struct roce_ep *ep)
{
	struct roce_responder *q = &ep->resp;

	q->ack_now = q->ack_due && q->read_cnt == 0 && !roce_sock_is_full(ep);
	return q->ack_now;
}

/*
 * In the order of PSNs (section 9.5): a requester that hears of a later one takes the answer of a
 * Read for lost.
 */
void roce_serve_go(struct roce_ep *ep)
{
	struct roce_responder *q = &ep->resp;
	uint64_t now_ns = reactor_now(ep->r);
	uint32_t room = roce_pace_room(&q->pace, now_ns);
	uint32_t left = room < ANSWERS_MOST ? room : ANSWERS_MOST;
	bool is_full = roce_sock_is_full(ep);

	for (;;) {
		struct roce_read *rd;

		if (!roce_tx_has_room(ep) && !roce_tx_flush(ep))
			return;
		rd = roce_read_next(q);
		if (q->ack_due && (!rd || left == 0) && may_ack(q) && !may_wait(ep)) {
			put_ack(ep);
		} else if (!rd) {
			break;
		} else if (is_full) {
			return; /* all would come back */
		} else if (left == 0) {
			reactor_timer_in(ep->r, &q->pace_timer,
				room > ANSWERS_MOST ? 0 : roce_pace_wait_ns(&q->pace, now_ns));
			return;
		} else if (put_read(ep, rd)) {
			roce_pace_sent(&q->pace, 1);
			left--;
			/* The peer has something to do while the next one is put together. */
			if (rd->packets >= READ_LONG && rd->done == rd->packets &&
				!roce_tx_flush(ep))
				return;
		} else if (rd->again) {
			/* The peer may have had it, and the memory is something else's. */
			rd->packets = rd->done;
		} else {
			answer(ep, ROCE_AETH_NAK_ACCESS, roce_wire_psn_add(rd->psn, rd->done));
			roce_ep_lost(ep, -EACCES);
			return;
		}
	}
	if (q->nak_due != 0 && roce_wire_psn_diff(q->nak_psn, q->psn) >= 0) {
		answer(ep, q->nak_due, q->psn);
		q->told_ns = told_until(q->nak_due, now_ns);
	}
	q->nak_due = 0;
}

void roce_serve_answer_back(struct roce_ep *ep, uint8_t syndrome)
{
	struct roce_responder *q = &ep->resp;

	if (ep->state != ROCE_UP)
		return;
	if (syndrome == ROCE_AETH_ACK)
		q->ack_due = true;
	else
		q->nak_due = syndrome;
}

/* ---- Reads ---- */

static void take_read(struct roce_ep *ep, const struct roce_packet *p, bool is_new)
{
	uint32_t packets = roce_wire_packets(p->dma_len, ep->mtu);

	switch (roce_read_take(ep, p, is_new)) {
	case ROCE_READ_TAKEN:
		roce_tx_read(ep, p->psn, packets);
		roce_mtu_read(&ep->passes, p->psn, p->dma_len, false);
		break;
	case ROCE_READ_AGAIN:
		roce_pace_lost(&ep->resp.pace, reactor_now(ep->r));
		roce_tx_lost(ep, p->psn, packets);
		roce_mtu_read(&ep->passes, p->psn, p->dma_len, true);
		break;
	case ROCE_READ_CLOSED:
		refuse(ep, ROCE_AETH_NAK_ACCESS, -EACCES, "a Read of memory that is not open");
		break;
	case ROCE_READ_MANY:
		refuse(ep, ROCE_AETH_NAK_INVALID, -EPROTO, "more Reads than agreed on");
		break;
	case ROCE_READ_DROPPED:
		break;
	}
}

/* ---- Sends and Writes ---- */

/* A message begins, goes on, or ends, as its packet says and what came before allows. */
static bool is_in_turn(const struct roce_ep *ep, const struct roce_packet *p)
{
	const struct roce_responder *q = &ep->resp;
	unsigned int kind = p->kind & (ROCE_IS_SEND | ROCE_IS_WRITE);
	bool first = p->kind & ROCE_IS_FIRST, last = p->kind & ROCE_IS_LAST;

	if (first ? q->kind != 0 : q->kind != kind)
		return false;
	if (p->kind & ROCE_IS_READ)
		return p->payload_len == 0;
	/* All but the last packet are full, the last one of several is not empty. */
	return last ? p->payload_len <= ep->mtu && (first || p->payload_len > 0)
		    : p->payload_len == ep->mtu;
}

static void passed(struct roce_responder *q, const struct roce_packet *p)
{
	q->done_psn = q->psn;
	q->psn = roce_wire_psn_add(q->psn, 1);
	q->told_ns = 0;
	q->ack_due |= p->ack_req;
	if (p->kind & ROCE_IS_LAST) {
		q->msn = roce_wire_psn_add(q->msn, 1);
		q->kind = 0;
	} else {
		q->kind = p->kind & (ROCE_IS_SEND | ROCE_IS_WRITE);
	}
	q->done_msn = q->msn;
}

static void take_send(struct roce_ep *ep, const struct roce_packet *p)
{
	struct roce_responder *q = &ep->resp;
	const struct roce_recv *r = &q->ring[q->first % q->size];
	struct roce_recv got;
	uint32_t inv = p->kind & ROCE_HAS_IETH ? p->rkey : 0, len;

	if (q->first == q->end) {
		ask_again(q, ROCE_AETH_RNR | RNR_TIMER, q->psn);
		return;
	}
	if (p->kind & ROCE_IS_FIRST)
		q->got = 0;
	if (p->payload_len > r->len - q->got) {
		refuse(ep, ROCE_AETH_NAK_INVALID, -EMSGSIZE, "a message longer than the receive");
		return;
	}
	if ((p->kind & ROCE_HAS_IETH) && !roce_key_invalidate(ep, p->rkey)) {
		refuse(ep, ROCE_AETH_NAK_ACCESS, -EPROTO, "no such window to invalidate");
		return;
	}
	memcpy(r->addr + q->got, p->payload, p->payload_len);
	len = q->got += p->payload_len;
	passed(q, p);
	if (!(p->kind & ROCE_IS_LAST))
		return;
	got = *r;
	q->first++;
	ack_first(ep);
	ep->ops->received(ep->ctx, got.cookie, len, inv, FAB_OK);
}

static void take_write(struct roce_ep *ep, const struct roce_packet *p)
{
	struct roce_responder *q = &ep->resp;
	uint8_t *to = NULL;

	if (p->kind & ROCE_IS_FIRST) {
		q->got = 0;
		q->rkey = p->rkey;
		q->va = p->va;
		q->total = p->dma_len;
	}
	if (p->payload_len > q->total - q->got ||
		((p->kind & ROCE_IS_LAST) && q->got + p->payload_len != q->total)) {
		refuse(ep, ROCE_AETH_NAK_INVALID, -EPROTO,
			"a Write of another length than it says");
		return;
	}
	if (p->payload_len > 0) {
		/* All of it, so that none is begun that cannot be ended. */
		to = roce_key_find(ep, q->rkey, q->va, q->total, FAB_REMOTE_WRITE);
		if (!to) {
			refuse(ep, ROCE_AETH_NAK_ACCESS, -EACCES,
				"a Write to memory that is not open");
			return;
		}
		if (p->payload != to + q->got) /* else it was received there */
			memcpy(to + q->got, p->payload, p->payload_len);
	}
	q->got += p->payload_len;
	written(ep, p->payload_len);
	passed(q, p);
}

/*
 * Behind what is expected: it came before, and its acknowledgement may not have, or waits yet: a
 * thread that always has other work never sleeps.
 */
static void take_duplicate(struct roce_ep *ep, const struct roce_packet *p)
{
	stats_count(&ep->stats->packets_twice, 1);
	if (p->kind & ROCE_IS_READ) {
		take_read(ep, p, false);
	} else if (p->kind & (ROCE_IS_SEND | ROCE_IS_WRITE)) {
		ep->resp.ack_due = true;
		ep->resp.wary = WARY;
	}
}

void roce_serve_received(struct roce_ep *ep, const struct roce_packet *p)
{
	struct roce_responder *q = &ep->resp;
	int32_t early = roce_wire_psn_diff(p->psn, q->psn);

	q->ack_now = false;
	if (early < 0) {
		take_duplicate(ep, p);
	} else if (early > 0) {
		stats_count(&ep->stats->packets_early, 1);
		if (reactor_now(ep->r) >= q->told_ns) {
			lost_inbound(ep);
			ask_again(q, ROCE_AETH_NAK_SEQUENCE, p->psn);
		} else if (roce_wire_psn_diff(p->psn, q->nak_psn) > 0) {
			q->nak_psn = p->psn;
		}
	} else if ((p->kind & ROCE_IS_OTHER) ||
		   ((p->kind & ROCE_HAS_IMM) && !(p->kind & ROCE_IS_SEND))) {
		refuse(ep, ROCE_AETH_NAK_INVALID, -EPROTO, "it is not done here");
	} else if (!is_in_turn(ep, p)) {
		refuse(ep, ROCE_AETH_NAK_INVALID, -EPROTO, "it is out of turn");
	} else if (roce_read_waits_far(q)) {
		return; /* as if it were lost */
	} else if (p->kind & ROCE_IS_READ) {
		take_read(ep, p, true);
		q->told_ns = 0;
	} else if (p->kind & ROCE_IS_SEND) {
		take_send(ep, p);
	} else {
		take_write(ep, p);
	}
}
