/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_rpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xdr.h"

#define RPC_HDR 40u /* AUTH_NONE twice */

static struct sockaddr_in server_addr(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};

	in.sin_addr.s_addr = htonl(0x0a000001);
	return in;
}

/* ---- callbacks ---- */

static void on_up(void *ctx, bool first)
{
	struct sim_rpc *w = ctx;

	if (first == (w->up > 0))
		fab_sim_fail("->up with first = %d the %u. time", first, w->up + 1);
	if (w->up != w->down)
		fab_sim_fail("->up without ->down");
	w->up++;
}

static void on_down(void *ctx, int err)
{
	struct sim_rpc *w = ctx;

	w->down++;
	w->err = err;
	if (w->down != w->up)
		fab_sim_fail("->down without ->up");
}

static void on_failed(void *ctx, int err, const char *step)
{
	struct sim_rpc *w = ctx;

	if (w->failed++ || w->up)
		fab_sim_fail("->failed twice or after ->up");
	w->err = err;
	w->step = step;
}

static void on_stopped(void *ctx)
{
	struct sim_rpc *w = ctx;

	if (w->stopped++)
		fab_sim_fail("->stopped twice");
}

static void on_unblocked(void *ctx)
{
	struct sim_rpc *w = ctx;

	w->unblocked++;
}

static void on_reverse(void *ctx, const struct rpcrdma_rcall *call)
{
	struct sim_rpc *w = ctx;
	uint8_t msg[24];
	struct xdr_enc enc;

	w->reverse++;
	if (!w->reverse_answers)
		return;
	xdr_enc_init(&enc, msg, sizeof(msg));
	xdr_put_u32(&enc, call->xid);
	xdr_put_u32(&enc, 1);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(&enc, 0);
	xdr_put_u32(&enc, 1); /* PROG_UNAVAIL */
	(void)rpcrdma_reverse_reply(w->x, msg, sizeof(msg));
}

static const struct rpcrdma_ops ops = {
	.up = on_up,
	.down = on_down,
	.failed = on_failed,
	.stopped = on_stopped,
	.unblocked = on_unblocked,
	.reverse_call = on_reverse,
};

/* ---- life ---- */

void sim_rpc_conf(struct rpcrdma_conf *conf)
{
	rpcrdma_conf_default(conf);
	conf->credits = 16;
	conf->data_size = 64 * 1024;
	conf->data_cnt = 8;
}

int sim_rpc_new(struct sim_rpc *w)
{
	w->x = rpcrdma_new(w->r, &w->conf, &ops, w, &w->st);
	return w->x ? 0 : -errno;
}

void sim_rpc_open(
	struct sim_rpc *w, const struct rpcrdma_conf *conf, const struct nfsd_sim_conf *sconf)
{
	memset(w, 0, sizeof(*w));
	fab_sim_reset();
	w->r = reactor_new_virtual();
	w->srv = nfsd_sim_new(sconf, NULL);
	if (conf)
		w->conf = *conf;
	else
		sim_rpc_conf(&w->conf);
	if (sim_rpc_new(w))
		fab_sim_fail("rpcrdma_new(): %s", strerror(errno));
}

int sim_rpc_connect(struct sim_rpc *w)
{
	struct sockaddr_in in = server_addr();

	return rpcrdma_connect(w->x, NULL, (struct sockaddr *)&in);
}

bool sim_rpc_up(struct sim_rpc *w)
{
	uint64_t end = reactor_now(w->r) + 60 * SIM_SEC;

	if (sim_rpc_connect(w))
		return false;
	while (!rpcrdma_is_up(w->x) && !w->failed && reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
	return rpcrdma_is_up(w->x);
}

bool sim_rpc_wait(struct sim_rpc *w, unsigned int cnt, uint64_t ns)
{
	uint64_t end = reactor_now(w->r) + ns;

	while (w->done < cnt && reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
	return w->done >= cnt;
}

void sim_rpc_run(struct sim_rpc *w, uint64_t ns)
{
	uint64_t end = reactor_now(w->r) + ns;

	while (reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
}

static const char *finish(struct sim_rpc *w)
{
	static char text[700];

	text[0] = '\0';
	if (w->done != w->started)
		snprintf(text, sizeof(text), "%u calls accepted, %u done", w->started, w->done);
	else if (rpcrdma_buf_free_count(w->x) != w->conf.data_cnt)
		snprintf(text, sizeof(text), "%u of %u buffers came back",
			rpcrdma_buf_free_count(w->x), w->conf.data_cnt);
	else if (fab_sim_live_windows())
		snprintf(text, sizeof(text), "%u windows are bound", fab_sim_live_windows());
	rpcrdma_free(w->x);
	w->x = NULL;
	reactor_turn(w->r, 0);
	if (!text[0] && fab_sim_live_keys())
		snprintf(text, sizeof(text), "%u keys are alive", fab_sim_live_keys());
	if (!text[0] && fab_sim_live_objects())
		snprintf(text, sizeof(text), "%u fabric objects are left", fab_sim_live_objects());
	nfsd_sim_free(w->srv);
	reactor_free(w->r);
	if (fab_sim_failures())
		snprintf(text, sizeof(text), "%u failures, first: %s", fab_sim_failures(),
			fab_sim_failure());
	if (!text[0] && w->wrong)
		snprintf(text, sizeof(text), "%u replies with wrong contents", w->wrong);
	return text[0] ? text : NULL;
}

/* All requests can be had, so none is missing. */
static void check_requests(struct sim_rpc *w)
{
	struct rpcrdma_req *reqs = calloc(w->conf.credits, sizeof(*reqs));
	unsigned int n = 0;

	while (n < w->conf.credits && !rpcrdma_req_get(w->x, &reqs[n]))
		n++;
	if (n != w->conf.credits)
		fab_sim_fail("%u of %u requests came back", n, w->conf.credits);
	while (n)
		rpcrdma_req_put(w->x, &reqs[--n]);
	free(reqs);
}

const char *sim_rpc_close(struct sim_rpc *w)
{
	uint64_t end = reactor_now(w->r) + 60 * SIM_SEC;

	rpcrdma_stop(w->x);
	while (!w->stopped && reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
	if (!w->stopped)
		return "->stopped did not come";
	check_requests(w);
	return finish(w);
}

const char *sim_rpc_close_failed(struct sim_rpc *w)
{
	return finish(w);
}

/* ---- calls ---- */

static void put_header(struct xdr_enc *e, struct sim_rpc *w, uint32_t proc)
{
	xdr_put_u32(e, rpcrdma_next_xid(w->x));
	xdr_put_u32(e, 0);
	xdr_put_u32(e, 2);
	xdr_put_u32(e, NFSD_SIM_ECHO_PROG);
	xdr_put_u32(e, NFSD_SIM_ECHO_VERS);
	xdr_put_u32(e, proc);
	for (int i = 0; i < 4; i++)
		xdr_put_u32(e, 0);
}

static void put_pattern(struct xdr_enc *e, uint32_t len)
{
	uint8_t *p = malloc(len + 1);

	nfsd_sim_fill(p, 0, len);
	xdr_put_opaque(e, p, len);
	free(p);
}

static struct rpcrdma_buf *take_buf(struct sim_call *c)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(c->w->x);

	if (buf)
		c->bufs[c->buf_cnt++] = buf;
	return buf;
}

static void put_all(struct sim_call *c)
{
	while (c->buf_cnt)
		rpcrdma_buf_put(c->w->x, c->bufs[--c->buf_cnt]);
	rpcrdma_req_put(c->w->x, &c->req);
}

static bool set_sink(struct sim_call *c, uint32_t room)
{
	struct rpcrdma_buf *buf = take_buf(c);

	if (!buf)
		return false;
	c->req.reply_sink = (struct rpcrdma_span){buf, buf->data, room};
	return true;
}

/* Builds the message; the encoder ends up in the request. False: no buffer. */
static bool build(struct sim_call *c)
{
	struct sim_rpc *w = c->w;
	struct rpcrdma_req *req = &c->req;
	bool is_long = c->kind == SIM_CALL_LONG || c->kind == SIM_CALL_SINK_LONG;
	struct rpcrdma_buf *long_buf = is_long ? take_buf(c) : NULL, *buf;
	struct xdr_enc e;
	size_t front;

	if (is_long && !long_buf)
		return false;
	if (is_long)
		xdr_enc_init(&e, long_buf->data, w->conf.data_size);
	else
		xdr_enc_init(&e, req->head, req->head_room);
	req->reply_max = 24;
	switch (c->kind) {
	case SIM_CALL_NULL:
		put_header(&e, w, NFSD_SIM_NULL);
		break;
	case SIM_CALL_ECHO:
	case SIM_CALL_LONG:
		put_header(&e, w, NFSD_SIM_ECHO);
		put_pattern(&e, c->a);
		req->reply_max += 4 + XDR_ROUND(c->a);
		if (is_long && !set_sink(c, (uint32_t)req->reply_max))
			return false;
		break;
	case SIM_CALL_SINK:
	case SIM_CALL_SINK_LONG:
		buf = take_buf(c);
		if (!buf)
			return false;
		nfsd_sim_fill(buf->data, 0, c->a);
		put_header(&e, w, NFSD_SIM_SINK);
		xdr_put_u32(&e, 0x51);
		xdr_put_u32(&e, c->a);
		front = xdr_enc_len(&e);
		for (uint32_t i = 0; i < c->b; i += 4)
			xdr_put_u32(&e, i);
		req->tail_len = xdr_enc_len(&e) - front;
		req->args[0] = (struct rpcrdma_span){buf, buf->data, c->a};
		req->arg_cnt = c->a > 0;
		req->reply_max += 12;
		break;
	case SIM_CALL_SOURCE:
		put_header(&e, w, NFSD_SIM_SOURCE);
		xdr_put_u32(&e, c->n);
		for (uint32_t i = 0; i < c->n; i++) {
			buf = take_buf(c);
			if (!buf)
				return false;
			xdr_put_u32(&e, c->a);
			req->results[i].sink = (struct rpcrdma_span){buf, buf->data,
				c->room ? c->room
				: c->a  ? c->a
					: 4};
			memset(buf->data, 0xee, c->a);
		}
		req->result_cnt = c->n;
		req->reply_max += 8 * c->n;
		break;
	case SIM_CALL_BIG:
		put_header(&e, w, NFSD_SIM_BIG);
		xdr_put_u32(&e, c->a);
		req->reply_max += 4 + XDR_ROUND(c->a);
		if (c->room)
			req->reply_max = c->room;
		if (!set_sink(c, (uint32_t)req->reply_max))
			return false;
		break;
	}
	if (e.failed)
		fab_sim_fail("test: the call does not fit its buffer");
	if (is_long)
		req->long_call =
			(struct rpcrdma_span){long_buf, long_buf->data, (uint32_t)xdr_enc_len(&e)};
	else
		req->head_len = xdr_enc_len(&e);
	return true;
}

static bool check_sink(struct sim_call *c, struct xdr_dec *d)
{
	uint8_t *p = malloc(c->a + 1);
	uint32_t len = xdr_get_u32(d), sum = xdr_get_u32(d), rest = xdr_get_u32(d), want;

	nfsd_sim_fill(p, 0, c->a);
	want = nfsd_sim_sum(p, c->a);
	free(p);
	return len == c->a && sum == want && rest == ((c->b + 3) & ~3u);
}

static bool check_source(struct sim_call *c, struct xdr_dec *d)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct rpcrdma_result *res = &c->req.results[i];
		const uint8_t *p;

		if (xdr_get_u32(d) != i || xdr_get_u32(d) != c->a)
			return false;
		if (res->used) {
			if (res->got < c->a || !nfsd_sim_is_pattern(res->sink.p, 0, c->a))
				return false;
			continue;
		}
		p = xdr_get_fixed(d, c->a);
		if (!p || !nfsd_sim_is_pattern(p, 0, c->a))
			return false;
	}
	return true;
}

static bool check_reply(struct sim_call *c)
{
	struct xdr_dec d;
	uint32_t len = 0;
	const uint8_t *p;
	bool ok = true;

	xdr_dec_init(&d, c->req.reply, c->req.reply_len);
	if (xdr_get_u32(&d) != c->req.xid || xdr_get_u32(&d) != 1)
		return false;
	for (int i = 0; i < 4; i++)
		ok &= xdr_get_u32(&d) == 0;
	if (!ok || d.failed)
		return false;
	switch (c->kind) {
	case SIM_CALL_NULL:
		break;
	case SIM_CALL_ECHO:
	case SIM_CALL_LONG:
	case SIM_CALL_BIG:
		p = xdr_get_opaque(&d, UINT32_MAX, &len);
		ok = p && len == c->a && nfsd_sim_is_pattern(p, 0, len);
		break;
	case SIM_CALL_SINK:
	case SIM_CALL_SINK_LONG:
		ok = check_sink(c, &d);
		break;
	case SIM_CALL_SOURCE:
		ok = check_source(c, &d);
		break;
	}
	return ok && !d.failed && !xdr_dec_left(&d);
}

static void call_done(struct rpcrdma_req *req)
{
	struct sim_call *c = (struct sim_call *)req;
	struct sim_rpc *w = c->w;

	if (!c->busy)
		fab_sim_fail("->done for a call that is not in flight");
	c->busy = false;
	c->done_cnt++;
	c->end = req->end;
	w->done++;
	w->ends[req->end]++;
	if (req->end == RPCRDMA_REPLY) {
		c->good = check_reply(c);
		if (!c->good && !w->refuse_wrong)
			w->wrong++;
	}
	put_all(c);
	if (c->then)
		c->then(c);
}

int sim_rpc_call(struct sim_rpc *w, struct sim_call *c)
{
	int err;

	c->w = w;
	c->buf_cnt = 0;
	c->good = false;
	c->req.done = call_done;
	err = rpcrdma_req_get(w->x, &c->req);
	if (err)
		return err;
	if (!build(c)) {
		put_all(c);
		return -EAGAIN;
	}
	c->req.soft = c->soft;
	c->busy = true;
	w->started++;
	err = rpcrdma_send(w->x, &c->req);
	if (err) {
		c->busy = false;
		w->started--;
		put_all(c);
	}
	return err;
}

bool sim_rpc_do(struct sim_rpc *w, struct sim_call *c)
{
	int err = sim_rpc_call(w, c);

	if (err) {
		fprintf(stderr, "call was not accepted: %s\n", strerror(-err));
		return false;
	}
	if (!sim_rpc_wait(w, w->started, 600 * SIM_SEC)) {
		fprintf(stderr, "call was not done in 600 s\n");
		return false;
	}
	return c->end == RPCRDMA_REPLY && c->good;
}
