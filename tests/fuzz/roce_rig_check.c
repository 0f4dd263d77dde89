/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint, as it is between packets. */
#include "roce_rig.h"

static struct roce_ep *ep(void)
{
	return roce_of(rig.ep);
}

static uint32_t next_psn(const struct roce_requester *q)
{
	return q->next == q->end ? q->psn
				 : roce_wire_psn_add(q->ring[q->next % q->size].psn, q->next_off);
}

/* una <= next <= end; acked <= next <= sent <= psn. */
static void check_requester(const struct roce_requester *q)
{
	RIG_CHECK(q->end - q->una <= q->room && q->next - q->una <= q->end - q->una);
	RIG_CHECK(q->end - q->una == rig.send_end - rig.send_first && q->psn == rig.psn);
	RIG_CHECK(roce_wire_psn_diff(next_psn(q), q->acked) >= 0);
	RIG_CHECK(roce_wire_psn_diff(q->sent, next_psn(q)) >= 0);
	RIG_CHECK(roce_wire_psn_diff(q->psn, q->sent) >= 0);
	RIG_CHECK(roce_wire_psn_diff(q->sent, q->acked) <= (int32_t)ROCE_UNACKED);
	RIG_CHECK(q->window >= 4 && q->window <= ROCE_UNACKED);
	if (q->una != q->end) {
		const struct roce_wqe *w = &q->ring[q->una % q->size];
		int32_t in = roce_wire_psn_diff(q->acked, w->psn);

		RIG_CHECK(in >= 0 && in < (int32_t)w->packets);
	} else {
		RIG_CHECK(q->acked == q->psn);
	}
	RIG_CHECK(reactor_timer_armed(&q->timer) == (q->una != q->end));
}

static void check_responder(const struct roce_responder *q)
{
	uint32_t end = 0;

	RIG_CHECK(q->end - q->first <= q->room);
	RIG_CHECK(q->end - q->first == rig.recv_end - rig.recv_first);
	RIG_CHECK(q->read_cnt <= ROCE_READ_QUEUE && q->read_first < ROCE_READ_QUEUE);
	/* By PSNs, and each PSN once. */
	for (unsigned int n = 0; n < q->read_cnt; n++) {
		const struct roce_read *rd = &q->reads[(q->read_first + n) % ROCE_READ_QUEUE];

		RIG_CHECK(rd->done <= rd->packets && (n == 0 || rd->done == 0));
		RIG_CHECK(n == 0 || roce_wire_psn_diff(rd->psn, end) >= 0);
		end = roce_wire_psn_add(rd->psn, rd->packets);
	}
	/* It waits for room, or for the next tick after congestion, and for nothing else. */
	RIG_CHECK(q->read_cnt == 0 || rig.waits || reactor_timer_armed(&q->pace_timer));
	RIG_CHECK(q->read_cnt == 0 || roce_wire_psn_diff(q->psn, end) >= 0);
	RIG_CHECK(q->pace.limit == 0 || q->pace.limit >= 8);
}

static void check_timers(void)
{
	const struct roce_ep *e = ep();
	bool is_up = e->state == ROCE_UP;

	RIG_CHECK(reactor_timer_armed(&e->conn.timer) == (e->state == ROCE_CONNECTING));
	RIG_CHECK(reactor_timer_armed(&e->timer) ==
		  (e->state == ROCE_RESOLVING || e->state == ROCE_CONNECTING ||
			  e->state == ROCE_DRAINING || (is_up && e->parted)));
	RIG_CHECK(!is_up || reactor_timer_armed(&e->done_timer) == (e->done_cnt > 0));
	RIG_CHECK(e->state != ROCE_IDLE ||
		  (!reactor_timer_armed(&e->done_timer) && !reactor_timer_armed(&e->req.timer) &&
			  !reactor_timer_armed(&e->resp.pace_timer)));
}

void roce_rig_check_queues(void)
{
	const struct roce_ep *e = ep();

	RIG_CHECK(!rig.in_call && !e->delivering && e->tx.cnt == 0);
	RIG_CHECK((rig.state == RIG_UP) == (e->state == ROCE_UP));
	RIG_CHECK(e->done_cnt == rig.done_end - rig.done_first);
	check_timers();
	if (e->state != ROCE_UP)
		return;
	check_requester(&e->req);
	check_responder(&e->resp);
}

static void check_keys(void)
{
	const struct rig_area *rd = &rig.areas[RIG_AREA_READ], *wr = &rig.areas[RIG_AREA_WRITE];
	const struct roce_keys *k = &ep()->keys;
	uint32_t cnt = 0, wanted = rig.mr ? 2 : 0;

	for (unsigned int i = 0; i < RIG_WINS; i++) {
		const struct rig_win *w = &rig.wins[i];
		unsigned int all = FAB_REMOTE_READ | FAB_REMOTE_WRITE;

		for (unsigned int one = 1; w->area && one <= all; one++) {
			const uint8_t *p = roce_key_find(
				ep(), w->rkey, (uintptr_t)w->area->addr, w->area->len, one);

			RIG_CHECK(p == ((w->access & one) == one ? w->area->addr : NULL));
		}
		wanted += w->access != 0;
	}
	for (uint32_t i = 0; i < k->size; i++)
		cnt += k->v[i] != NULL;
	RIG_CHECK(cnt == k->cnt && cnt == wanted);
	if (!rig.mr)
		return;
	RIG_CHECK(roce_key_find(ep(), roce_impl.mr_rkey(rig.mr_read), (uintptr_t)rd->addr, rd->len,
			  FAB_REMOTE_READ) == rd->addr);
	RIG_CHECK(roce_key_find(ep(), roce_impl.mr_rkey(rig.mr_write), (uintptr_t)wr->addr, wr->len,
			  FAB_REMOTE_WRITE) == wr->addr);
}

void roce_rig_check(void)
{
	roce_rig_check_queues();
	check_keys();
	roce_rig_mem_check();
}
