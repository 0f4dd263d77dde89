/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's RDMA Reads (volume 1, section 9.4.4): a queue of those that are to be answered, in the
 * order in which they came.
 */
#include "roce_read.h"

struct roce_read *roce_read_at(struct roce_responder *q, unsigned int n)
{
	return &q->reads[(q->read_first + n) % ROCE_READ_QUEUE];
}

void roce_read_ended(struct roce_responder *q)
{
	q->read_first = (q->read_first + 1) % ROCE_READ_QUEUE;
	q->read_cnt--;
}

void roce_read_back(struct roce_ep *ep, uint32_t psn)
{
	struct roce_responder *q = &ep->resp;

	for (unsigned int n = 0; n < q->read_cnt; n++) {
		struct roce_read *rd = roce_read_at(q, n);
		int32_t off = roce_wire_psn_diff(psn, rd->psn);

		if (off < 0 || off >= (int32_t)rd->done)
			continue;
		roce_pace_back(&q->pace, rd->done - (uint32_t)off);
		rd->done = (uint32_t)off;
	}
}

/* One that is being answered goes on from there. */
static bool is_answered(struct roce_responder *q, uint32_t psn)
{
	for (unsigned int n = 0; n < q->read_cnt; n++) {
		struct roce_read *rd = roce_read_at(q, n);
		int32_t off = roce_wire_psn_diff(psn, rd->psn);

		if (off < 0 || off >= (int32_t)rd->packets)
			continue;
		if ((uint32_t)off < rd->done)
			rd->done = (uint32_t)off;
		rd->again = true;
		return true;
	}
	return false;
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
		.len = p->dma_len,
		.again = !is_new};

	/* It was right once, and may be invalid since: then nobody waits for it. */
	if (p->dma_len > 0 && !roce_key_find(ep, p->rkey, p->va, p->dma_len, FAB_REMOTE_READ))
		return is_new ? ROCE_READ_CLOSED : ROCE_READ_DROPPED;
	/* More than it can have asked for: its answer would have PSNs that are not in use yet. */
	if (!is_new && roce_wire_psn_diff(roce_wire_psn_add(p->psn, rd.packets), q->psn) > 0)
		return ROCE_READ_DROPPED;
	if (!is_new && (is_answered(q, p->psn) || q->read_cnt >= ROCE_READ_QUEUE / 2))
		return ROCE_READ_AGAIN;
	if (is_new && q->read_cnt >= ROCE_READ_QUEUE)
		return ROCE_READ_DROPPED;
	if (is_new && fresh(q) == ROCE_READS)
		return ROCE_READ_MANY;
	if (is_new) {
		q->psn = roce_wire_psn_add(q->psn, rd.packets);
		q->msn = roce_wire_psn_add(q->msn, 1);
	}
	rd.msn = q->msn;
	*roce_read_at(q, q->read_cnt++) = rd;
	return is_new ? ROCE_READ_TAKEN : ROCE_READ_AGAIN;
}
