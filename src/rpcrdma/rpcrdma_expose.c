/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory a plan exposes: spans of one buffer in one direction that touch
 * each other share a window, and so a key. Those with a gap between them do not:
 * the peer is not to see what lies there.
 */
#include "rpcrdma_int.h"

#include <assert.h>

/* In one direction, and without a gap between them. */
static bool touches(
	const struct rpcrdma_expo *e, const struct rpcrdma_span *span, unsigned int access)
{
	return e->buf == span->buf && e->access == access && span->p <= e->hi &&
	       span->p + span->len >= e->lo;
}

static bool contains(
	const struct rpcrdma_expo *e, const struct rpcrdma_span *span, unsigned int access)
{
	return touches(e, span, access) && span->p >= e->lo && span->p + span->len <= e->hi;
}

static unsigned int add(struct rpcrdma_expo *expos, unsigned int cnt,
	const struct rpcrdma_span *span, unsigned int access)
{
	struct rpcrdma_expo *e;

	for (unsigned int i = 0; i < cnt; i++) {
		e = &expos[i];
		if (!touches(e, span, access))
			continue;
		if (span->p < e->lo)
			e->lo = span->p;
		if (span->p + span->len > e->hi)
			e->hi = span->p + span->len;
		return cnt;
	}
	assert(cnt < RPCRDMA_MAX_WINS);
	expos[cnt] = (struct rpcrdma_expo){
		.buf = span->buf, .access = access, .lo = span->p, .hi = span->p + span->len};
	return cnt + 1;
}

static bool moves_args(enum rpcrdma_callform form)
{
	return form == RPCRDMA_CALL_READ || form == RPCRDMA_CALL_LONG_READ;
}

static bool moves_call(enum rpcrdma_callform form)
{
	return form == RPCRDMA_CALL_LONG || form == RPCRDMA_CALL_LONG_READ;
}

unsigned int rpcrdma_expose(const struct rpcrdma_req *req, const struct rpcrdma_plan *plan,
	struct rpcrdma_expo expos[RPCRDMA_MAX_WINS])
{
	unsigned int cnt = 0;

	if (moves_call(plan->call))
		cnt = add(expos, cnt, rpcrdma_chunk_long_span(req, plan), FAB_REMOTE_READ);
	for (unsigned int i = 0; moves_args(plan->call) && i < req->arg_cnt; i++)
		cnt = add(expos, cnt, &req->args[i], FAB_REMOTE_READ);
	if (plan->reply == RPCRDMA_REPLY_CHUNK)
		cnt = add(expos, cnt, &req->reply_sink, FAB_REMOTE_WRITE);
	for (uint32_t i = 0; i < plan->write_cnt; i++)
		if (rpcrdma_chunk_result_room(&req->results[i]) > 0)
			cnt = add(expos, cnt, &req->results[i].sink, FAB_REMOTE_WRITE);
	return cnt;
}

/* The key for a span once the exposures have theirs. */
static uint32_t rkey_of(const struct rpcrdma_expo *expos, unsigned int cnt,
	const struct rpcrdma_span *span, unsigned int access)
{
	for (unsigned int i = 0; i < cnt; i++)
		if (contains(&expos[i], span, access))
			return expos[i].rkey;
	assert(!"span was not exposed");
	return 0;
}

static void add_reads(struct rpcrdma_hdr *h, uint32_t pos, const struct rpcrdma_span *span,
	uint32_t rkey, uint32_t max_seg)
{
	struct rpcrdma_chunk c;

	rpcrdma_chunk_fill(&c, span->p, span->len, rkey, max_seg);
	assert(h->read_cnt + c.cnt <= RPCRDMA_MAX_READ_SEGS);
	for (uint32_t i = 0; i < c.cnt; i++)
		h->reads[h->read_cnt++] = (struct rpcrdma_read_seg){pos, c.segs[i]};
}

void rpcrdma_expose_hdr(const struct rpcrdma_reqpriv *priv, const struct rpcrdma_expo *expos,
	unsigned int cnt, struct rpcrdma_hdr *h)
{
	const struct rpcrdma_req *req = priv->req;
	const struct rpcrdma_plan *plan = &priv->plan;
	const struct rpcrdma_span *whole = rpcrdma_chunk_long_span(req, plan);
	uint32_t max_seg = priv->x->limits.max_seg;

	h->xid = req->xid;
	h->vers = RPCRDMA_VERSION;
	h->credits = priv->x->conf.credits;
	h->proc = plan->proc;
	h->read_cnt = 0;
	h->write_cnt = plan->write_cnt;
	h->has_reply = plan->reply == RPCRDMA_REPLY_CHUNK;
	if (moves_call(plan->call))
		add_reads(h, 0, whole, rkey_of(expos, cnt, whole, FAB_REMOTE_READ), max_seg);
	for (unsigned int i = 0; moves_args(plan->call) && i < req->arg_cnt; i++)
		add_reads(h, plan->args_pos, &req->args[i],
			rkey_of(expos, cnt, &req->args[i], FAB_REMOTE_READ),
			rpcrdma_chunk_args_seg(req, i, max_seg));
	for (uint32_t i = 0; i < plan->write_cnt; i++) {
		const struct rpcrdma_span *sink = &req->results[i].sink;

		h->writes[i].cnt = 0;
		if (rpcrdma_chunk_result_room(&req->results[i]) > 0)
			rpcrdma_chunk_fill(&h->writes[i], sink->p, sink->len,
				rkey_of(expos, cnt, sink, FAB_REMOTE_WRITE), max_seg);
	}
	if (h->has_reply)
		rpcrdma_chunk_fill(&h->reply, req->reply_sink.p, req->reply_sink.len,
			rkey_of(expos, cnt, &req->reply_sink, FAB_REMOTE_WRITE), max_seg);
}
