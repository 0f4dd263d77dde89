/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcrdma_chunk.h"

#include <errno.h>

/* Every segment but the last is this long. */
static uint32_t seg_size(uint32_t len, uint32_t max_seg)
{
	uint32_t least = len / RPCRDMA_MAX_SEGS + (len % RPCRDMA_MAX_SEGS != 0);

	if (max_seg == 0)
		return len;
	return max_seg > least ? max_seg : least;
}

uint32_t rpcrdma_chunk_seg_count(uint32_t len, uint32_t max_seg)
{
	uint32_t size = seg_size(len, max_seg);

	return len == 0 ? 0 : (uint32_t)(((uint64_t)len + size - 1) / size);
}

/* Bytes of the args together. */
static uint64_t args_len(const struct rpcrdma_req *req)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < req->arg_cnt; i++)
		len += req->args[i].len;
	return len;
}

uint32_t rpcrdma_chunk_args_seg(const struct rpcrdma_req *req, unsigned int i, uint32_t max_seg)
{
	uint32_t most = RPCRDMA_MAX_SEGS / req->arg_cnt, len = req->args[i].len;
	uint32_t least = len / most + (len % most != 0);

	return max_seg == 0 || max_seg > least ? max_seg : least;
}

static uint32_t args_seg_count(const struct rpcrdma_req *req, uint32_t max_seg)
{
	uint32_t cnt = 0;

	for (unsigned int i = 0; i < req->arg_cnt; i++)
		cnt += rpcrdma_chunk_seg_count(
			req->args[i].len, rpcrdma_chunk_args_seg(req, i, max_seg));
	return cnt;
}

void rpcrdma_chunk_fill(
	struct rpcrdma_chunk *c, const void *p, uint32_t len, uint32_t rkey, uint32_t max_seg)
{
	uint32_t size = seg_size(len, max_seg);
	uint64_t off = (uintptr_t)p;

	c->cnt = 0;
	while (len > 0) {
		struct rpcrdma_seg *s = &c->segs[c->cnt++];

		s->handle = rkey;
		s->len = len < size ? len : size;
		s->off = off;
		off += s->len;
		len -= s->len;
	}
}

int64_t rpcrdma_chunk_got(const struct rpcrdma_chunk *got, uint32_t room, uint32_t max_seg)
{
	uint32_t size = seg_size(room, max_seg), offered = rpcrdma_chunk_seg_count(room, max_seg);
	uint32_t left = room;
	int64_t sum = 0;
	bool ended = false;

	/* WIRE: as many segments as offered, or none at all for an unused chunk */
	if (got->cnt > offered)
		return -EBADMSG;
	for (uint32_t i = 0; i < got->cnt; i++) {
		uint32_t len = got->segs[i].len, cap = left < size ? left : size;

		if (len > cap || (ended && len > 0))
			return -EBADMSG;
		if (len < cap)
			ended = true;
		sum += len;
		left -= cap;
	}
	return sum;
}

uint32_t rpcrdma_chunk_worst_call_hdr(uint32_t bytes, uint32_t max_seg)
{
	uint32_t segs = rpcrdma_chunk_seg_count(bytes, max_seg);
	uint32_t reads = segs + RPCRDMA_MAX_ARGS - 1; /* each piece has a last one of its own */

	if (reads > RPCRDMA_MAX_SEGS)
		reads = RPCRDMA_MAX_SEGS;
	/* args by Read chunk, or a Reply or a Write chunk */
	return RPCRDMA_HDR_MIN + reads * RPCRDMA_HDR_READ_SEG + RPCRDMA_HDR_CHUNK +
	       segs * RPCRDMA_HDR_SEG;
}

uint32_t rpcrdma_chunk_worst_reply_hdr(uint32_t bytes, uint32_t max_seg)
{
	return RPCRDMA_HDR_MIN + RPCRDMA_HDR_CHUNK +
	       rpcrdma_chunk_seg_count(bytes, max_seg) * RPCRDMA_HDR_SEG;
}

/* Header bytes that offering the results in `plan` costs, each way. */
static uint32_t write_list_len(const struct rpcrdma_req *req, uint32_t cnt, uint32_t max_seg)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < cnt; i++)
		len += RPCRDMA_HDR_CHUNK +
		       rpcrdma_chunk_seg_count(
			       rpcrdma_chunk_result_room(&req->results[i]), max_seg) *
			       RPCRDMA_HDR_SEG;
	return len;
}

uint64_t rpcrdma_chunk_inbound(const struct rpcrdma_req *req, const struct rpcrdma_plan *plan)
{
	uint64_t bytes = plan->reply == RPCRDMA_REPLY_CHUNK ? req->reply_sink.len : 0;

	for (uint32_t i = 0; i < plan->write_cnt; i++)
		bytes += rpcrdma_chunk_result_room(&req->results[i]);
	return bytes;
}

/*
 * Small results come inline, where they are used straight from the receive
 * buffer. A Write list and a Reply chunk never go together: nfsd 6.1 measures
 * the Reply chunk against the payload as well and drops the connection.
 */
static int plan_reply(
	const struct rpcrdma_req *req, const struct rpcrdma_limits *lim, struct rpcrdma_plan *plan)
{
	uint32_t cnt = req->result_cnt, list;
	uint64_t all = req->reply_max;

	/* nfsd refuses chunks without segments: only those before another result are sent */
	while (cnt > 0 && rpcrdma_chunk_result_room(&req->results[cnt - 1]) == 0)
		cnt--;
	for (uint32_t i = 0; i < cnt; i++)
		all += XDR_ROUND(rpcrdma_chunk_result_room(&req->results[i]));
	plan->write_cnt = 0;
	plan->reply = RPCRDMA_REPLY_INLINE;
	if (RPCRDMA_HDR_MIN + all <= lim->recv_max)
		return 0;
	list = write_list_len(req, cnt, lim->max_seg);
	if (cnt > 0 && (uint64_t)RPCRDMA_HDR_MIN + list + req->reply_max <= lim->recv_max) {
		plan->reply = RPCRDMA_REPLY_WRITE;
		plan->write_cnt = cnt;
		plan->hdr_len += list;
		return 0;
	}
	if (!req->reply_sink.buf || req->reply_sink.len < all)
		return -EMSGSIZE;
	plan->reply = RPCRDMA_REPLY_CHUNK;
	plan->hdr_len +=
		RPCRDMA_HDR_REPLY +
		rpcrdma_chunk_seg_count(req->reply_sink.len, lim->max_seg) * RPCRDMA_HDR_SEG;
	return 0;
}

static bool try_form(struct rpcrdma_plan *plan, const struct rpcrdma_limits *lim,
	enum rpcrdma_callform form, uint64_t chunk_hdr, uint64_t inline_len)
{
	uint64_t hdr = plan->hdr_len + chunk_hdr;

	if (hdr + inline_len > lim->send_max)
		return false;
	plan->call = form;
	plan->proc =
		form == RPCRDMA_CALL_INLINE || form == RPCRDMA_CALL_READ ? RDMA_MSG : RDMA_NOMSG;
	plan->hdr_len = (uint32_t)hdr;
	plan->send_len = (uint32_t)(hdr + inline_len);
	return true;
}

/*
 * RFC 8166 section 3.4.5: a Read chunk leaves its round-up out, and so does
 * the inline stream. nfsd 6.1 interleaves a Position-Zero chunk with another
 * without inserting it, so that form is only used where there is none.
 */
static int plan_call(
	const struct rpcrdma_req *req, const struct rpcrdma_limits *lim, struct rpcrdma_plan *plan)
{
	bool is_long = req->long_call.len > 0;
	uint64_t args = args_len(req);
	uint64_t msg = is_long ? req->long_call.len : req->head_len;
	uint32_t sges = 1 + (is_long ? 1 : 0) + (args > 0 ? 3 : 0);
	uint64_t args_hdr = (uint64_t)args_seg_count(req, lim->max_seg) * RPCRDMA_HDR_READ_SEG;
	uint64_t long_hdr = (uint64_t)rpcrdma_chunk_seg_count((uint32_t)msg, lim->max_seg) *
			    RPCRDMA_HDR_READ_SEG;

	plan->args_pos = (uint32_t)(msg - req->tail_len);
	if (args > 0 && (is_long || req->arg_cnt > 1))
		sges = RPCRDMA_MAX_SGE + 1; /* header, head, args, pad, tail: not worth gathering */
	if (sges <= lim->max_sge &&
		try_form(plan, lim, RPCRDMA_CALL_INLINE, 0, msg + XDR_ROUND(args)))
		return 0;
	if (args > 0 && (!is_long || lim->max_sge >= 2) &&
		try_form(plan, lim, RPCRDMA_CALL_READ, args_hdr, msg))
		return 0;
	/* Only with an argument beside it the head must fit: its callers see to that. */
	if (!is_long && args > 0)
		return -EMSGSIZE;
	plan->copies = !is_long;
	if (args == 0)
		return try_form(plan, lim, RPCRDMA_CALL_LONG, long_hdr, 0) ? 0 : -EMSGSIZE;
	if (XDR_PAD(args) != 0)
		return -EMSGSIZE;
	return try_form(plan, lim, RPCRDMA_CALL_LONG_READ, long_hdr + args_hdr, 0) ? 0 : -EMSGSIZE;
}

static bool req_is_sane(const struct rpcrdma_req *req)
{
	size_t msg = req->long_call.len > 0 ? req->long_call.len : req->head_len;

	if (req->long_call.len > 0 && (req->head_len > 0 || !req->long_call.buf))
		return false;
	if (req->result_cnt > RPCRDMA_MAX_RESULTS || req->head_len > req->head_room)
		return false;
	if (msg < 8 || (msg & 3) != 0 || req->tail_len > msg || (req->tail_len & 3) != 0)
		return false;
	if (req->arg_cnt > RPCRDMA_MAX_ARGS)
		return false;
	for (unsigned int i = 0; i < req->arg_cnt; i++)
		if (req->args[i].len == 0 || !req->args[i].buf)
			return false;
	return args_len(req) <= INT32_MAX;
}

int rpcrdma_chunk_plan(
	const struct rpcrdma_req *req, const struct rpcrdma_limits *lim, struct rpcrdma_plan *plan)
{
	int err;

	if (!req_is_sane(req))
		return -EINVAL;
	plan->hdr_len = RPCRDMA_HDR_MIN;
	plan->copies = false;
	plan->copy = (struct rpcrdma_span){0};
	err = plan_reply(req, lim, plan);
	return err ? err : plan_call(req, lim, plan);
}
