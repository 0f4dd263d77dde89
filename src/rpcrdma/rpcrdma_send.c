/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From rpcrdma_send() to the wire: queue, credit, windows, header, one post.
 * A resend takes the same way with the same message; only keys change.
 */
#include "rpcrdma_tap.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "log.h"

static uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool spans_are_valid(const struct rpcrdma *x, const struct rpcrdma_req *req)
{
	if (req->result_cnt > RPCRDMA_MAX_RESULTS || req->arg_cnt > RPCRDMA_MAX_ARGS)
		return false;
	for (unsigned int i = 0; i < req->result_cnt; i++)
		if (!rpcrdma_mem_span_is_valid(x, &req->results[i].sink))
			return false;
	for (unsigned int i = 0; i < req->arg_cnt; i++)
		if (!rpcrdma_mem_span_is_valid(x, &req->args[i]))
			return false;
	return rpcrdma_mem_span_is_valid(x, &req->long_call) &&
	       rpcrdma_mem_span_is_valid(x, &req->reply_sink);
}

static int plan(struct rpcrdma_reqpriv *priv)
{
	int err = rpcrdma_chunk_plan(priv->req, &priv->x->limits, &priv->plan);

	if (err)
		return err;
	priv->limits_seq = priv->x->limits_seq;
	priv->inbound = rpcrdma_chunk_inbound(priv->req, &priv->plan);
	return 0;
}

/* Its plan was made with limits of another connection, maybe. */
static int replan(struct rpcrdma_reqpriv *priv)
{
	return priv->limits_seq == priv->x->limits_seq || !plan(priv) ? 0 : -EMSGSIZE;
}

int rpcrdma_send(struct rpcrdma *x, struct rpcrdma_req *req)
{
	struct rpcrdma_reqpriv *priv = req->priv;
	int err;

	assert(priv && priv->req == req && priv->state == RPCRDMA_R_HELD); /* I2 */
	if (x->stopping || x->state == RPCRDMA_C_FAILED || x->state == RPCRDMA_C_STOPPED)
		return -ESHUTDOWN;
	if (!spans_are_valid(x, req))
		return -EINVAL;
	err = plan(priv);
	if (err)
		return err;
	for (unsigned int i = 0; i < req->result_cnt; i++) {
		req->results[i].got = 0;
		req->results[i].used = false;
	}
	req->reply = NULL;
	req->reply_len = 0;
	req->pending = 0;
	req->resends = 0;
	req->posted_ns = 0;
	req->xid = be32_at(req->long_call.len > 0 ? req->long_call.p : req->head);
	priv->waited = priv->sent_once = priv->ended = false;
	priv->losses = priv->alone_losses = 0;
	priv->timed_out = priv->misplaced = false;
	rpcrdma_req_set_state(priv, RPCRDMA_R_QUEUED);
	rpcrdma_req_hash(x, priv);
	rpcrdma_mem_lend(req, 1);
	list_push_back(&x->queue, &req->link);
	rpcrdma_timeo_start(priv);
	if (!x->in_batch)
		rpcrdma_send_pump(x);
	return 0;
}

/*
 * A call that does not fit inline, and whose user had no data buffer to build it in, is copied into
 * one of the transport's: a few bytes too long for the 1024 of a server that says nothing (RFC
 * 8797), or a server that takes less than before. False: none is free now.
 */
static bool copy_get(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;
	const struct rpcrdma_req *req = priv->req;
	struct list *node;

	if (!priv->plan.copies)
		return true;
	node = list_pop_front(&x->copy_free);
	if (!node)
		return false;
	priv->plan.copy.buf = container_of(node, struct rpcrdma_buf, link);
	priv->plan.copy.p = priv->plan.copy.buf->data;
	priv->plan.copy.len = (uint32_t)req->head_len;
	memcpy(priv->plan.copy.p, req->head, req->head_len);
	stats_count(&x->stats->copied_bytes, req->head_len);
	return true;
}

void rpcrdma_send_copy_put(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma_buf *buf = priv->plan.copy.buf;

	if (!buf)
		return;
	priv->plan.copy = (struct rpcrdma_span){0};
	list_push_back(&priv->x->copy_free, &buf->link);
}

/* Window or standing key for each exposure. Returns: false: not enough windows now. */
static bool get_keys(struct rpcrdma_reqpriv *priv, struct rpcrdma_expo *expos, unsigned int cnt,
	struct fab_bind *binds)
{
	struct rpcrdma *x = priv->x;

	if (x->memreg != RPCRDMA_MEMREG_MW) {
		for (unsigned int i = 0; i < cnt; i++)
			expos[i].rkey = fab_mr_rkey(expos[i].access == FAB_REMOTE_READ
							    ? expos[i].buf->priv->src
							    : expos[i].buf->priv->dst);
		return true;
	}
	if (cnt > x->win_free_cnt)
		return false;
	for (unsigned int i = 0; i < cnt; i++) {
		struct rpcrdma_win *win = rpcrdma_win_get(x, priv);

		priv->wins[priv->win_cnt++] = win;
		expos[i].rkey = fab_mw_next_rkey(win->mw);
		binds[i] = (struct fab_bind){.mw = win->mw,
			.mr = expos[i].buf->priv->src,
			.addr = expos[i].lo,
			.len = (uint64_t)(expos[i].hi - expos[i].lo),
			.access = expos[i].access};
	}
	return true;
}

static unsigned int build_sges(
	const struct rpcrdma_reqpriv *priv, uint8_t *start, struct fab_sge sges[RPCRDMA_MAX_SGE])
{
	const struct rpcrdma *x = priv->x;
	const struct rpcrdma_req *req = priv->req;
	uint32_t hdr_len = priv->plan.hdr_len, front = (uint32_t)(req->head_len - req->tail_len);
	const struct rpcrdma_span *arg = &req->args[0];
	unsigned int cnt = 0;
	uint32_t pad;

	if (priv->plan.proc == RDMA_NOMSG || req->long_call.len > 0) {
		sges[cnt++] = (struct fab_sge){start, hdr_len, x->send_mr};
		if (priv->plan.proc == RDMA_MSG)
			sges[cnt++] = (struct fab_sge){req->long_call.p, req->long_call.len,
				req->long_call.buf->priv->src};
		return cnt;
	}
	if (req->arg_cnt == 0 || priv->plan.call != RPCRDMA_CALL_INLINE) {
		/* a Read chunk leaves no trace inline: what follows args comes at once */
		sges[cnt++] =
			(struct fab_sge){start, hdr_len + (uint32_t)req->head_len, x->send_mr};
		return cnt;
	}
	assert(req->arg_cnt == 1);
	pad = XDR_PAD(arg->len);
	sges[cnt++] = (struct fab_sge){start, hdr_len + front, x->send_mr};
	sges[cnt++] = (struct fab_sge){arg->p, arg->len, arg->buf->priv->src};
	if (pad > 0)
		sges[cnt++] = (struct fab_sge){priv->head - RPCRDMA_SEND_HDR, pad, x->send_mr};
	if (req->tail_len > 0)
		sges[cnt++] =
			(struct fab_sge){req->head + front, (uint32_t)req->tail_len, x->send_mr};
	return cnt;
}

static void count_call(struct rpcrdma_reqpriv *priv)
{
	struct stats *st = priv->x->stats;
	const struct rpcrdma_plan *p = &priv->plan;

	if (priv->is_probe) {
		stats_count(&st->probes, 1);
		return;
	}
	if (priv->sent_once) {
		stats_count(&st->retransmits, 1);
		priv->req->resends++;
		return;
	}
	priv->sent_once = true;
	priv->req->posted_ns = reactor_clock(priv->x->reactor);
	stats_count(&st->rpcs, 1);
	switch (p->call) {
	case RPCRDMA_CALL_INLINE:
		stats_count(&st->inline_calls, 1);
		break;
	case RPCRDMA_CALL_READ:
		stats_count(&st->read_chunks, 1);
		break;
	case RPCRDMA_CALL_LONG:
		stats_count(&st->long_calls, 1);
		stats_count(&st->read_chunks, 1);
		break;
	case RPCRDMA_CALL_LONG_READ:
		stats_count(&st->long_calls, 1);
		stats_count(&st->read_chunks, 2);
		break;
	}
}

static void posted(struct rpcrdma_reqpriv *priv, const struct rpcrdma_expo *expos)
{
	struct rpcrdma *x = priv->x;
	struct rpcrdma_req *req = priv->req;

	for (unsigned int i = 0; i < priv->win_cnt; i++) {
		priv->wins[i]->rkey = expos[i].rkey;
		rpcrdma_win_set_state(priv->wins[i], RPCRDMA_W_BOUND);
	}
	stats_count(&x->stats->mw_binds, priv->win_cnt);
	list_del(&req->link);
	list_push_back(&x->flight, &req->link);
	x->flight_cnt++;
	rpcrdma_probe_send_posted(x);
	rpcrdma_req_set_state(priv, RPCRDMA_R_FLIGHT);
	req->pending = RPCRDMA_PENDING_SEND | RPCRDMA_PENDING_REPLY;
	if (priv->win_cnt > 0)
		req->pending |= RPCRDMA_PENDING_INV;
	rpcrdma_credit_take(&x->credit, priv->is_probe, priv->inbound);
	rpcrdma_timeo_sent(priv);
	count_call(priv);
	rpcrdma_send_flight_changed(x);
}

int rpcrdma_send_transmit(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;
	struct rpcrdma_expo expos[RPCRDMA_MAX_WINS];
	struct fab_bind binds[RPCRDMA_MAX_WINS];
	struct fab_sge sges[RPCRDMA_MAX_SGE];
	struct rpcrdma_hdr h;
	struct xdr_enc enc;
	uint8_t *start;
	unsigned int cnt;
	int err;

	assert(x->state == RPCRDMA_C_UP); /* I7 */
	err = replan(priv);
	if (err)
		return err;
	/* A call in flight brings back what there is too little of. */
	if (!copy_get(priv))
		return -EAGAIN;
	cnt = rpcrdma_expose(priv->req, &priv->plan, expos);
	assert(priv->win_cnt == 0);
	if (!get_keys(priv, expos, cnt, binds)) {
		rpcrdma_send_copy_put(priv);
		return -EAGAIN;
	}
	rpcrdma_expose_hdr(priv, expos, cnt, &h);
	start = priv->head - priv->plan.hdr_len;
	xdr_enc_init(&enc, start, priv->plan.hdr_len);
	rpcrdma_hdr_encode(&enc, &h);
	assert(!enc.failed && xdr_enc_len(&enc) == priv->plan.hdr_len);
	cnt = build_sges(priv, start, sges);
	err = fab_post_send(
		x->ep, sges, cnt, priv->win_cnt ? binds : NULL, priv->win_cnt, priv->idx);
	if (!err) {
		if (rpcrdma_tap_is_on(x))
			rpcrdma_tap_sent(x, sges, cnt, &h);
		posted(priv, expos);
		return 0;
	}
	while (priv->win_cnt > 0)
		rpcrdma_win_put(x, priv->wins[--priv->win_cnt]);
	rpcrdma_send_copy_put(priv);
	/* a full queue drains; without a Send in it, it is not full but broken */
	return err == -ENOMEM && x->sends_out > 0 ? -EAGAIN : err;
}

/* Each waiting call is counted once; those in front were. */
static void count_waiting(struct rpcrdma *x)
{
	for (struct list *pos = x->queue.prev; pos != &x->queue; pos = pos->prev) {
		struct rpcrdma_reqpriv *priv = container_of(pos, struct rpcrdma_req, link)->priv;

		if (priv->waited)
			return;
		priv->waited = true;
		stats_count(&x->stats->credit_waits, 1);
	}
}

/* One that may be why connections are lost: to be sure, it is on one alone. */
static bool has_to_wait(const struct rpcrdma *x, const struct rpcrdma_reqpriv *priv)
{
	if (x->flight_cnt == 0)
		return false;
	return priv->losses >= RPCRDMA_SUSPECT_LOSSES ||
	       list_first(&x->flight, struct rpcrdma_req, link)->priv->losses >=
		       RPCRDMA_SUSPECT_LOSSES;
}

/*
 * In their order, but that calls for which the server writes nothing by RDMA pass those that wait
 * for room. These are not passed by each other: a long one has its turn.
 */
void rpcrdma_send_pump(struct rpcrdma *x)
{
	struct list *pos = x->queue.next;
	bool full = false;

	if (x->state == RPCRDMA_C_UP)
		x->credit.inbound_max = fab_ep_caps(x->ep)->max_inbound;
	while (x->state == RPCRDMA_C_UP && !x->proving && pos != &x->queue) {
		struct rpcrdma_reqpriv *priv = container_of(pos, struct rpcrdma_req, link)->priv;
		int err;

		pos = pos->next;
		if (has_to_wait(x, priv))
			return; /* what is in flight ends */
		if (!rpcrdma_credit_is_free(&x->credit, false)) {
			count_waiting(x);
			return;
		}
		err = replan(priv);
		full = full || (!err && !rpcrdma_credit_has_room(&x->credit, priv->inbound));
		if (!err && full && priv->inbound > 0)
			continue;
		if (!err)
			err = rpcrdma_send_transmit(priv);
		if (err == -EAGAIN)
			return;
		if (err == -EMSGSIZE && priv->limits_seq != x->limits_seq) {
			log_err("%s: call %08x fits no message form any more: the server's inline "
				"threshold shrank to %u/%u",
				x->peer, priv->req->xid, x->limits.send_max, x->limits.recv_max);
			rpcrdma_req_end_later(priv, RPCRDMA_REFUSED);
		} else if (err) {
			rpcrdma_conn_drop(x, err, "a Send could not be posted");
		}
	}
}

void rpcrdma_send_done(struct rpcrdma *x, uint64_t cookie, enum fab_status status)
{
	rpcrdma_probe_send_done(x);
	if (cookie > x->conf.credits) {
		rpcrdma_reverse_sent(x, (uint32_t)cookie - rpcrdma_rsend_cookie(x, 0));
		return;
	}
	/* flushed or not, the adapter is done with the memory; what a loss means DOWN decides */
	rpcrdma_req_cleared(&x->reqs[cookie], RPCRDMA_PENDING_SEND);
}

void rpcrdma_send_flight_changed(struct rpcrdma *x)
{
	stats_set(&x->stats->in_flight, x->flight_cnt);
	if (x->flight_cnt > x->stats->in_flight_max)
		stats_set(&x->stats->in_flight_max, x->flight_cnt);
	stats_set(&x->stats->credits, x->credit.granted);
	fab_ep_set_busy(x->ep, x->flight_cnt);
}
