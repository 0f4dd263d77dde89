/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's RDMA Reads (volume 1, section 9.4.4): a queue of those that are to be answered, in the
 * order of their PSNs; no PSN is in two of them. Something has gone out of the first one at
 * most; of those whose packets wait for roce_tx_flush() it is not known yet.
 */
#include "roce_read.h"

struct roce_read *roce_read_at(struct roce_responder *q, unsigned int n)
{
	return &q->reads[(q->read_first + n) % ROCE_READ_QUEUE];
}

struct roce_read *roce_read_next(struct roce_responder *q)
{
	for (unsigned int n = 0; n < q->read_cnt; n++) {
		struct roce_read *rd = roce_read_at(q, n);

		if (rd->done < rd->packets)
			return rd;
	}
	return NULL;
}

void roce_read_out(struct roce_responder *q)
{
	while (q->read_cnt > 0 && roce_read_at(q, 0)->done == roce_read_at(q, 0)->packets) {
		q->read_first = (q->read_first + 1) % ROCE_READ_QUEUE;
		q->read_cnt--;
	}
}

void roce_read_back(struct roce_ep *ep, uint32_t psn)
{
	struct roce_responder *q = &ep->resp;

	for (unsigned int n = 0; n < q->read_cnt; n++) {
		struct roce_read *rd = roce_read_at(q, n);
		int32_t off = roce_wire_psn_diff(psn, rd->psn);

		if (off >= (int32_t)rd->done)
			continue;
		off = off < 0 ? 0 : off; /* all that stand behind it are back, too */
		roce_pace_back(&q->pace, rd->done - (uint32_t)off);
		rd->done = (uint32_t)off;
	}
}

static uint32_t end_of(const struct roce_read *rd)
{
	return roce_wire_psn_add(rd->psn, rd->packets);
}

static bool is_part(const struct roce_read *rd, const struct roce_read *whole)
{
	return roce_wire_psn_diff(rd->psn, whole->psn) >= 0 &&
	       roce_wire_psn_diff(end_of(rd), end_of(whole)) <= 0;
}

/* As the n-th, in place of so many. */
static void put_at(
	struct roce_responder *q, unsigned int n, unsigned int cnt, const struct roce_read *rd)
{
	if (cnt == 0)
		for (unsigned int i = q->read_cnt; i > n; i--)
			*roce_read_at(q, i) = *roce_read_at(q, i - 1);
	else
		for (unsigned int i = n + cnt; i < q->read_cnt; i++)
			*roce_read_at(q, i - cnt + 1) = *roce_read_at(q, i);
	q->read_cnt = q->read_cnt + 1 - cnt;
	*roce_read_at(q, n) = *rd;
}

/*
 * One that comes again is a Read of what is left of the one before, whose place it takes: the peer
 * has what is before its PSN, and drops what is behind it until it is answered.
 */
static enum roce_read_verdict repeat(struct roce_responder *q, struct roce_read *rd)
{
	unsigned int n = 0, cnt = 0;
	struct roce_read *old;

	while (n < q->read_cnt && roce_wire_psn_diff(end_of(roce_read_at(q, n)), rd->psn) <= 0)
		n++;
	for (; n + cnt < q->read_cnt; cnt++) {
		old = roce_read_at(q, n + cnt);
		if (roce_wire_psn_diff(old->psn, end_of(rd)) >= 0)
			break;
		if (!old->again && !is_part(rd, old))
			return ROCE_READ_DROPPED;
	}
	if (cnt == 0 && q->read_cnt >= ROCE_READ_QUEUE / 2)
		return ROCE_READ_AGAIN;
	old = roce_read_at(q, n);
	rd->again = cnt != 1 || old->again || old->done > 0;
	rd->msn = cnt == 1 ? old->msn : q->msn;
	put_at(q, n, cnt, rd);
	old = roce_read_at(q, n + 1);
	if (n + 1 < q->read_cnt && old->done > 0) {
		old->done = 0;
		old->again = true;
	}
	return ROCE_READ_AGAIN;
}

/* Section 9.7.3: a peer has half of all PSNs unanswered at most; here it may have half of those. */
static bool is_far(const struct roce_responder *q, uint32_t psn)
{
	return roce_wire_psn_diff(psn, q->psn) <= -ROCE_READ_FAR;
}

bool roce_read_waits_far(struct roce_responder *q)
{
	return q->read_cnt > 0 && is_far(q, roce_read_at(q, 0)->psn);
}

/* Reads that the peer waits for. */
static unsigned int fresh(struct roce_responder *q)
{
	unsigned int cnt = 0;

	for (unsigned int n = 0; n < q->read_cnt; n++)
		cnt += !roce_read_at(q, n)->again;
	return cnt;
}

enum roce_read_verdict roce_read_take(struct roce_ep *ep, const struct roce_packet *p, bool is_new)
{
	struct roce_responder *q = &ep->resp;
	struct roce_read rd = {.psn = p->psn,
		.packets = roce_wire_packets(p->dma_len, ep->mtu),
		.rkey = p->rkey,
		.va = p->va,
		.len = p->dma_len};

	/* It was right once, and may be invalid since: then nobody waits for it. */
	if (p->dma_len > 0 && !roce_key_find(ep, p->rkey, p->va, p->dma_len, FAB_REMOTE_READ))
		return is_new ? ROCE_READ_CLOSED : ROCE_READ_DROPPED;
	/* More than it can have asked for: its answer would have PSNs that are not in use yet. */
	if (!is_new && roce_wire_psn_diff(roce_wire_psn_add(p->psn, rd.packets), q->psn) > 0)
		return ROCE_READ_DROPPED;
	if (!is_new)
		return is_far(q, p->psn) ? ROCE_READ_DROPPED : repeat(q, &rd);
	if (q->read_cnt >= ROCE_READ_QUEUE)
		return ROCE_READ_DROPPED;
	if (fresh(q) == ROCE_READS)
		return ROCE_READ_MANY;
	q->psn = end_of(&rd);
	q->msn = rd.msn = roce_wire_psn_add(q->msn, 1);
	*roce_read_at(q, q->read_cnt++) = rd;
	return ROCE_READ_TAKEN;
}
