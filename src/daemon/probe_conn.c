/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls follow each other:
 *
 *   NULL, five times                 credits come with a reply; the quickest is the round trip
 *   NULL that offers a Reply chunk   in a memory window: does the server invalidate it?
 *
 * The last one tells what the flag R of RFC 8797 does not: Linux' nfsd never sets it
 * (svc_rdma_accept()), and invalidates windows all the same.
 */
#include "probe_conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define DATA_SIZE (2u * 65536) /* longer than any inline reply */
#define NEVER_NS  (86400 * NSEC_PER_SEC)

struct probe_conn {
	struct rpcrdma *x;
	struct stats stats;
	struct rpc_call call;
	struct rpcrdma_buf *sink; /* of the call that is on its way; or NULL */
	struct probe_found found;
	struct nfs4_failure failure;
	bool over; /* it is decided; the transport stops */
	void (*done)(void *ctx);
	void *ctx;
};

static void end(struct probe_conn *p)
{
	p->over = true;
	rpcrdma_stop(p->x);
}

static void fail(struct probe_conn *p, int err, const char *step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fail(struct probe_conn *p, int err, const char *step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	nfs4_failure_put(&p->failure, err, step, fmt, ap);
	va_end(ap);
	end(p);
}

static void look(struct probe_conn *p)
{
	struct probe_found *f = &p->found;

	if (!rpcrdma_facts(p->x, &f->facts))
		return;
	f->up = true;
	f->memreg = rpcrdma_memreg(p->x);
	snprintf(f->device, sizeof(f->device), "%s", rpcrdma_device_name(p->x));
	rpcrdma_thresholds(p->x, &f->send_max, &f->recv_max);
}

/* ---- calls ---- */

static void ask(struct probe_conn *p);

static void learn_inval(struct probe_conn *p)
{
	if (p->stats.remote_invals > 0)
		p->found.inval = PROBE_INVAL_YES;
	else if (p->stats.local_invals > 0)
		p->found.inval = PROBE_INVAL_NO;
}

static void learn_time(struct probe_conn *p, const struct rpcrdma_req *req)
{
	uint64_t ns = req->over_ns - req->posted_ns;

	if (p->found.calls++ == 0 || ns < p->found.rtt_ns)
		p->found.rtt_ns = ns;
}

static void call_done(struct rpc_call *call)
{
	struct probe_conn *p = container_of(call, struct probe_conn, call);
	bool is_last = p->sink != NULL;
	char text[200];

	if (is_last)
		rpcrdma_buf_put(p->x, p->sink);
	p->sink = NULL;
	rpcrdma_req_put(p->x, &call->req);
	if (p->over)
		return;
	look(p);
	if (is_last) {
		learn_inval(p);
		end(p);
	} else if (call->req.end == RPCRDMA_REFUSED) {
		fail(p, EPROTONOSUPPORT, "NULL call",
			"the server does not speak RPC-over-RDMA version 1");
	} else if (call->result != RPC_OK) {
		nfs4_failure_rpc(text, sizeof(text), "it", call->result);
		fail(p, EPROTO, "NULL call", "%s", text);
	} else {
		learn_time(p, &call->req);
		ask(p);
	}
}

/* NULL has no results: the Reply chunk is there to be exposed. */
static void offer_chunk(struct probe_conn *p)
{
	struct rpcrdma_req *req = &p->call.req;

	p->sink = rpcrdma_buf_get(p->x);
	req->reply_sink = (struct rpcrdma_span){p->sink, p->sink->data, DATA_SIZE};
	req->reply_max = p->found.recv_max;
}

static void ask(struct probe_conn *p)
{
	bool is_last = p->found.calls == PROBE_CONN_CALLS;
	struct xdr_enc enc;
	int err;

	if (is_last && p->found.memreg != RPCRDMA_MEMREG_MW) {
		p->found.inval = PROBE_INVAL_STATIC;
		end(p);
		return;
	}
	err = rpcrdma_req_get(p->x, &p->call.req);
	if (err == 0) {
		p->call.done = call_done;
		if (is_last)
			offer_chunk(p);
		rpc_begin(p->x, &p->call, NFS4_PROG, NFS4_VERS, NFS4_PROC_NULL, NULL, NULL, &enc);
		err = rpc_send(&p->call, &enc);
		if (err == 0)
			return;
		if (p->sink != NULL)
			rpcrdma_buf_put(p->x, p->sink);
		p->sink = NULL;
		rpcrdma_req_put(p->x, &p->call.req);
	}
	fail(p, -err, "NULL call", "it cannot be sent: %s", strerror(-err));
}

/* ---- the transport ---- */

static void xprt_up(void *ctx, bool first)
{
	struct probe_conn *p = ctx;

	if (p->over)
		return;
	look(p);
	ask(p);
}

static void xprt_down(void *ctx, int err)
{
	struct probe_conn *p = ctx;

	if (p->over)
		return;
	if (p->found.calls == PROBE_CONN_CALLS) /* it did answer */
		end(p);
	else if (err == -EBADMSG)
		fail(p, EBADMSG, "NULL call", "the answer is not RPC-over-RDMA version 1");
	else
		fail(p, -err, "NULL call", "the server dropped the connection (%s): check its log",
			strerror(-err));
}

static void xprt_failed(void *ctx, int err, const char *step)
{
	struct probe_conn *p = ctx;

	if (!p->over)
		nfs4_failure_connect(&p->failure, err, step, rpcrdma_failure_detail(p->x));
	p->over = true;
	p->done(p->ctx);
}

static void xprt_stopped(void *ctx)
{
	struct probe_conn *p = ctx;

	p->done(p->ctx);
}

static const struct rpcrdma_ops xprt_ops = {
	.up = xprt_up,
	.down = xprt_down,
	.failed = xprt_failed,
	.stopped = xprt_stopped,
};

/* ---- life ---- */

/* A step that is given up before time is up says why: what is left is for the steps around it. */
static void bound(uint64_t *ns, uint64_t left_ns)
{
	if (*ns > left_ns / 4 * 3)
		*ns = left_ns / 4 * 3;
	if (*ns == 0) /* which is no limit */
		*ns = 1;
}

struct probe_conn *probe_conn_new(struct reactor *r, const struct rpcrdma_conf *conf,
	uint64_t left_ns, void (*done)(void *ctx), void *ctx)
{
	struct probe_conn *p = calloc(1, sizeof(*p));
	struct rpcrdma_conf mine = *conf;

	if (p == NULL)
		return NULL;
	p->done = done;
	p->ctx = ctx;
	mine.data_size = DATA_SIZE;
	mine.data_cnt = 1;
	bound(&mine.resolve_timeout_ns, left_ns);
	bound(&mine.connect_timeout_ns, left_ns);
	/* Once it is connected there is one time limit, which is not the transport's. */
	mine.timeo_ns = NEVER_NS;
	mine.idle_probe_ns = 0;
	mine.send_stall_ns = 0;
	p->x = rpcrdma_new(r, &mine, &xprt_ops, p, &p->stats);
	if (p->x == NULL) {
		int err = errno;

		free(p);
		errno = err;
		return NULL;
	}
	return p;
}

bool probe_conn_start(struct probe_conn *p, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err = rpcrdma_connect(p->x, src, dst);

	snprintf(p->found.peer, sizeof(p->found.peer), "%s", rpcrdma_peer_name(p->x));
	if (err == 0)
		return true;
	nfs4_failure_start(&p->failure, err, rpcrdma_failure_detail(p->x));
	p->over = true;
	return false;
}

void probe_conn_time_is_up(struct probe_conn *p, unsigned int seconds)
{
	struct nfs4_failure f;

	if (p->over)
		return;
	if (p->found.calls > 0) {
		end(p);
	} else if (p->found.up) {
		fail(p, ETIMEDOUT, "NULL call",
			"no answer for %u s, on a connection that the server took: check that its "
			"nfsd has threads that are not all busy",
			seconds);
	} else {
		nfs4_failure_connect(&f, -ETIMEDOUT, "connect", "");
		fail(p, f.err, f.step, "%s", f.text);
	}
}

void probe_conn_interrupt(struct probe_conn *p)
{
	if (!p->over)
		fail(p, EINTR, "connect", "interrupted");
}

const struct nfs4_failure *probe_conn_failure(const struct probe_conn *p)
{
	return &p->failure;
}

const struct probe_found *probe_conn_found(const struct probe_conn *p)
{
	return &p->found;
}

void probe_conn_free(struct probe_conn *p)
{
	if (p == NULL)
		return;
	rpcrdma_free(p->x);
	free(p);
}
