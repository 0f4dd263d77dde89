/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester (volume 1, section 9.7): our Sends, in packets of the path's MTU, until the peer
 * has acknowledged them. After a loss it sends again from there on.
 */
#include "roce_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "roce_ring.h"

#define WINDOW_LEAST 4u
#define SILENT_MOST  16u /* packets that do not ask, where answers tell as much */
#define BACKOFF_MOST 5u  /* the timeout grows to 32 times what it was */

static struct roce_wqe *wqe_at(const struct roce_requester *q, uint32_t n)
{
	return &q->ring[n % q->size];
}

int roce_send_setup(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;

	q->room = ep->qp_conf.send_wr;
	q->size = roce_ring_size(q->room);
	q->ring = calloc(q->size, sizeof(*q->ring));
	return q->ring ? 0 : -ENOMEM;
}

void roce_send_free(struct roce_ep *ep)
{
	reactor_timer_cancel(ep->r, &ep->req.timer);
	free(ep->req.ring);
	ep->req.ring = NULL;
	ep->req.size = ep->req.room = ep->req.una = ep->req.end = ep->req.next = ep->req.next_off =
		0;
}

static uint64_t timeout_ns(const struct roce_ep *ep)
{
	unsigned int grown = ep->req.tries < BACKOFF_MOST ? ep->req.tries : BACKOFF_MOST;

	return ep->path.ack_ns << grown;
}

static void arm(struct roce_ep *ep)
{
	if (ep->req.una == ep->req.end)
		reactor_timer_cancel(ep->r, &ep->req.timer);
	else
		reactor_timer_in(ep->r, &ep->req.timer, timeout_ns(ep));
}

/* PSN of the packet that is sent next. */
static uint32_t next_psn(const struct roce_requester *q)
{
	return q->next == q->end ? q->psn : roce_wire_psn_add(wqe_at(q, q->next)->psn, q->next_off);
}

void roce_send_back(struct roce_ep *ep, uint32_t psn)
{
	struct roce_requester *q = &ep->req;

	if (roce_wire_psn_diff(psn, q->acked) < 0)
		psn = q->acked;
	for (uint32_t n = q->una; n != q->end; n++) {
		const struct roce_wqe *w = wqe_at(q, n);
		int32_t off = roce_wire_psn_diff(psn, w->psn);

		if (off >= (int32_t)w->packets)
			continue;
		q->next = n;
		q->next_off = off < 0 ? 0 : (uint32_t)off;
		return;
	}
}

void roce_send_slower(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;

	q->window = q->window / 2 > WINDOW_LEAST ? q->window / 2 : WINDOW_LEAST;
}

static void again(struct roce_ep *ep, uint32_t psn)
{
	uint32_t before = next_psn(&ep->req);

	roce_send_back(ep, psn);
	stats_count(&ep->stats->packets_resent,
		(uint64_t)roce_wire_psn_diff(before, next_psn(&ep->req)));
}

/* Those that did not ask may have come: the last one goes again, and asks (section 9.7.5.1.2). */
static void ask_after(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;

	q->silent = 0;
	q->answered = false;
	roce_send_back(ep, roce_wire_psn_add(q->sent, ROCE_PSN_MASK));
}

static void on_timer(struct reactor_timer *t)
{
	struct roce_ep *ep = container_of(t, struct roce_ep, req.timer);
	struct roce_requester *q = &ep->req;

	if (ep->state != ROCE_UP || q->una == q->end)
		return;
	if (q->waits) { /* for a receive of the peer's */
		q->waits = false;
		again(ep, q->acked);
	} else if (q->silent > 0 && next_psn(q) == q->sent) {
		ask_after(ep);
	} else if (q->tries++ >= ep->path.ack_tries) {
		roce_ep_lost(ep, -ETIMEDOUT);
		return;
	} else {
		roce_send_slower(ep);
		again(ep, q->acked);
	}
	arm(ep);
	roce_tx_go(ep);
}

void roce_send_begin(struct roce_ep *ep, uint32_t psn)
{
	struct roce_requester *q = &ep->req;

	reactor_timer_init(&q->timer, on_timer);
	q->silent = 0;
	q->answered = false;
	q->psn = q->acked = q->sent = psn;
	q->window = ROCE_UNACKED;
	q->tries = 0;
	q->waits = false;
}

int roce_send_post(
	struct roce_ep *ep, const struct fab_sge *sges, unsigned int cnt, uint64_t cookie)
{
	struct roce_requester *q = &ep->req;
	struct roce_wqe *w = wqe_at(q, q->end);
	uint64_t len = 0;

	if (q->end - q->una == q->room)
		return -ENOMEM;
	for (unsigned int i = 0; i < cnt; i++) {
		w->sges[i] = (struct iovec){(void *)(uintptr_t)sges[i].addr, sges[i].len};
		len += sges[i].len;
	}
	if (len > UINT32_MAX / 2)
		return -EINVAL;
	w->cookie = cookie;
	w->sge_cnt = cnt;
	w->len = (uint32_t)len;
	w->psn = q->psn;
	w->packets = roce_wire_packets(w->len, ep->mtu);
	q->psn = roce_wire_psn_add(q->psn, w->packets);
	if (q->end++ == q->una)
		arm(ep);
	roce_tx_post(ep);
	return 0;
}

/* ---- out ---- */

/* The bytes [off, off + len) of a Send. */
static unsigned int cut(const struct roce_wqe *w, uint32_t off, uint32_t len, struct iovec *out)
{
	unsigned int cnt = 0;

	for (unsigned int i = 0; i < w->sge_cnt && len > 0; i++) {
		size_t n = w->sges[i].iov_len;

		if (off >= n) {
			off -= (uint32_t)n;
			continue;
		}
		n -= off;
		n = n < len ? n : len;
		out[cnt++] = (struct iovec){(uint8_t *)w->sges[i].iov_base + off, n};
		len -= (uint32_t)n;
		off = 0;
	}
	return cnt;
}

static uint8_t opcode_of(bool first, bool last)
{
	if (first)
		return last ? ROCE_OP_SEND_ONLY : ROCE_OP_SEND_FIRST;
	return last ? ROCE_OP_SEND_LAST : ROCE_OP_SEND_MIDDLE;
}

bool roce_send_may_go(const struct roce_ep *ep)
{
	const struct roce_requester *q = &ep->req;

	return q->next != q->end && !q->waits &&
	       roce_wire_psn_diff(next_psn(q), q->acked) < (int32_t)q->window;
}

/*
 * Responders acknowledge what asks for it (section 9.7.5.1.2): the packet that no other follows
 * now, and one of so many. Without one, what is sent would wait for the timeout, unless an answer
 * comes, which says the same.
 */
static bool asks(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;
	uint32_t most = WINDOW_LEAST;

	if (q->answered)
		most = q->window < SILENT_MOST ? q->window : SILENT_MOST;
	if (++q->silent < most && (q->answered || roce_send_may_go(ep)))
		return false;
	q->silent = 0;
	return true;
}

static void put_next(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;
	const struct roce_wqe *w = wqe_at(q, q->next);
	uint32_t off = q->next_off * ep->mtu, left = w->len - off;
	bool last = q->next_off + 1 == w->packets;
	struct roce_packet p = {.opcode = opcode_of(q->next_off == 0, last),
		.qpn = ep->peer_qpn,
		.psn = roce_wire_psn_add(w->psn, q->next_off),
		.payload_len = left < ep->mtu ? left : ep->mtu};
	const struct roce_tx_from from = {.is_send = true, .psn = p.psn};
	struct iovec pieces[ROCE_SGES];
	unsigned int cnt = cut(w, off, p.payload_len, pieces);

	q->next_off++;
	if (last) {
		q->next++;
		q->next_off = 0;
	}
	if (roce_wire_psn_diff(p.psn, q->sent) >= 0)
		q->sent = roce_wire_psn_add(p.psn, 1);
	p.ack_req = asks(ep);
	roce_tx_put(ep, &p, pieces, cnt, &from);
}

void roce_send_go(struct roce_ep *ep)
{
	while (roce_send_may_go(ep)) {
		if (!roce_tx_has_room(ep) && !roce_tx_flush(ep))
			return;
		put_next(ep);
	}
}

/* ---- acknowledged ---- */

/* All before this PSN is. Returns: false: nothing new. */
static bool acknowledge(struct roce_ep *ep, uint32_t psn)
{
	struct roce_requester *q = &ep->req;
	int32_t more = roce_wire_psn_diff(psn, q->acked);

	if (more <= 0)
		return false;
	q->acked = psn;
	q->tries = 0;
	q->waits = false;
	if (psn == q->sent)
		q->silent = 0;
	if (q->window < ROCE_UNACKED)
		q->window++;
	/* That which is sent again may have come after all. */
	if (roce_wire_psn_diff(next_psn(q), psn) < 0)
		roce_send_back(ep, psn);
	while (q->una != q->end && ep->state == ROCE_UP) {
		const struct roce_wqe *w = wqe_at(q, q->una);
		uint64_t cookie = w->cookie;

		if (roce_wire_psn_diff(psn, roce_wire_psn_add(w->psn, w->packets)) < 0)
			break;
		if (q->next == q->una) {
			q->next++;
			q->next_off = 0;
		}
		q->una++;
		ep->passes.went |= w->len > ROCE_MTU_SAFE;
		ep->ops->sent(ep->ctx, cookie, FAB_OK);
	}
	return true;
}

void roce_send_answered(struct fab_ep *fep, uint64_t cookie)
{
	struct roce_ep *ep = roce_of(fep);
	struct roce_requester *q = &ep->req;

	if (ep->state != ROCE_UP)
		return;
	q->answered = true;
	for (uint32_t n = q->una; n != q->end; n++) {
		const struct roce_wqe *w = wqe_at(q, n);
		uint32_t behind = roce_wire_psn_add(w->psn, w->packets);

		if (w->cookie != cookie)
			continue;
		/* One that has not gone out is answered by a peer that lies. */
		if (roce_wire_psn_diff(behind, q->sent) <= 0 && acknowledge(ep, behind) &&
			ep->state == ROCE_UP)
			arm(ep);
		return;
	}
}

static void not_acknowledged(struct roce_ep *ep, const struct roce_packet *p, bool is_again)
{
	struct roce_requester *q = &ep->req;

	stats_count(&ep->stats->naks, 1);
	switch (p->syndrome) {
	case ROCE_AETH_NAK_SEQUENCE:
		/* For the same packet it is one more try, as a timeout is (section 9.9.2). */
		if (is_again && q->tries++ >= ep->path.ack_tries) {
			roce_ep_lost(ep, -ETIMEDOUT);
			return;
		}
		roce_send_slower(ep);
		again(ep, p->psn);
		break;
	default: /* invalid request, remote access, remote operation */
		log_warn_limited(
			"%s: the server refuses a message: NAK %#x", ep->name, p->syndrome);
		roce_ep_lost(ep, -EREMOTEIO);
		return;
	}
	if (q->una != q->end)
		arm(ep);
}

/* The others are reserved (section 9.7.5.2): they mean nothing yet. */
static bool is_known(uint8_t syndrome)
{
	unsigned int kind = syndrome & 0xe0; /* the highest bit is reserved, too */

	return kind == 0 || kind == ROCE_AETH_RNR ||
	       (syndrome >= ROCE_AETH_NAK_SEQUENCE && syndrome <= ROCE_AETH_NAK_OPERATION);
}

void roce_send_received(struct roce_ep *ep, const struct roce_packet *p)
{
	struct roce_requester *q = &ep->req;
	bool is_ack = (p->syndrome & 0xe0) == 0, is_rnr = (p->syndrome & 0xe0) == ROCE_AETH_RNR;
	bool more;

	/* Of a packet that was not sent, or that is acknowledged (section 9.7.5.1.2): a ghost. */
	if (p->opcode != ROCE_OP_ACK || !is_known(p->syndrome) ||
		roce_wire_psn_diff(p->psn, q->acked) < 0 ||
		roce_wire_psn_diff(p->psn, q->sent) >= 0)
		return;
	/* A NAK acknowledges what was before it. */
	more = acknowledge(ep, is_ack ? roce_wire_psn_add(p->psn, 1) : p->psn);
	if (more && ep->state == ROCE_UP)
		arm(ep);
	if (ep->state != ROCE_UP || is_ack)
		return;
	if (!is_rnr) {
		not_acknowledged(ep, p, !more);
		return;
	}
	stats_count(&ep->stats->rnr_naks, 1);
	q->waits = true;
	roce_send_back(ep, p->psn);
	reactor_timer_in(ep->r, &q->timer, roce_wire_rnr_ns(p->syndrome & 0x1f));
}

bool roce_send_waits(const struct roce_ep *ep)
{
	const struct roce_requester *q = &ep->req;
	const struct roce_wqe *w;

	if (q->acked == q->sent || q->una == q->end || q->tries < ROCE_MTU_TRIES)
		return false;
	w = wqe_at(q, q->una);
	return w->len - (uint32_t)roce_wire_psn_diff(q->acked, w->psn) * ep->mtu > ROCE_MTU_SAFE;
}

void roce_send_flush(struct roce_ep *ep)
{
	struct roce_requester *q = &ep->req;

	reactor_timer_cancel(ep->r, &q->timer);
	while (q->una != q->end)
		ep->ops->sent(ep->ctx, wqe_at(q, q->una++)->cookie, FAB_FLUSHED);
	q->next = q->end;
	q->next_off = 0;
}
