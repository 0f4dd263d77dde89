/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health check (RFC 8267 section 6.7.2): RC has no keepalive. A connection
 * that was silent for idle_probe_ns, with or without calls in flight, gets an
 * NFS NULL call on the kept credit; if then nothing at all arrives within
 * probe_timeout_ns, it is dead. So a dead server is noticed at most
 * idle_probe_ns + probe_timeout_ns after its last message. With a grant of one
 * and a call in flight there is no credit: that call's timeo is the limit.
 *
 * Sooner than a server an adapter says that it lives: it acknowledges each Send
 * by itself, whatever its host has to do. One that does not complete for
 * send_stall_ns, or twice the queue pair's ACK timeout if that is longer, while
 * nothing arrives either went to nobody. The queue pair may
 * find that out much later, or, on adapters that take a retry count of 7 for
 * "endless", never.
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>

#include "log.h"
#include "rpc.h"

#define PROBE_PROG 100003u /* NFS */
#define PROBE_VERS 4u
#define PROBE_PROC 0u /* NULL: always answered */

static void probe_done(struct rpcrdma_req *req)
{
	/* that it came back says enough; ->end may say why not */
}

/* Returns: true: on the wire. */
static bool probe_send(struct rpcrdma *x)
{
	struct rpcrdma_req *req = &x->probe;
	struct rpcrdma_reqpriv *priv = req->priv;
	struct rpc_callhdr call = {.prog = PROBE_PROG, .vers = PROBE_VERS, .proc = PROBE_PROC};
	struct xdr_enc enc;
	int err;

	call.xid = rpcrdma_next_xid(x);
	xdr_enc_init(&enc, req->head, req->head_room);
	rpc_encode_call(&enc, &call, "");
	req->xid = call.xid;
	req->head_len = xdr_enc_len(&enc);
	req->reply_max = RPC_REPLY_HDR;
	priv->ended = priv->sent_once = false;
	priv->soft_deadline_ns = REACTOR_NEVER;
	priv->limits_seq = x->limits_seq - 1; /* planned anew each time */
	rpcrdma_req_set_state(priv, RPCRDMA_R_QUEUED);
	rpcrdma_req_hash(x, priv);
	err = rpcrdma_send_transmit(priv);
	if (!err)
		return true;
	rpcrdma_req_unhash(x, priv);
	rpcrdma_req_set_state(priv, RPCRDMA_R_HELD);
	if (err != -EAGAIN)
		rpcrdma_conn_drop(x, err, "a probe could not be posted");
	return false;
}

/* How long a probe may take; one that other calls wait for, no longer than they may. */
static uint64_t probe_limit(const struct rpcrdma *x)
{
	return x->proving && x->conf.timeo_ns < x->conf.probe_timeout_ns ? x->conf.timeo_ns
									 : x->conf.probe_timeout_ns;
}

static void probe_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, probe_timer);
	uint64_t now = reactor_now(x->reactor), due;

	if (x->state != RPCRDMA_C_UP)
		return;
	if (x->probe_sent_ns != 0) {
		due = x->probe_sent_ns + probe_limit(x);
		if (now < due) {
			reactor_timer_set(x->reactor, t, due);
			return;
		}
		if (x->proving && !list_empty(&x->queue))
			stats_count(&x->stats->timeouts, 1); /* of the calls behind it */
		log_msg(x->not_responding ? LOG_LVL_DEBUG : LOG_LVL_WARN,
			"%s: the server does not answer a health check: connection replaced",
			x->peer);
		rpcrdma_conn_drop(x, -ETIMEDOUT, "health check unanswered");
		return;
	}
	if (x->conf.idle_probe_ns == 0) /* this was for a connection that had to prove itself */
		return;
	due = x->last_rx_ns + x->conf.idle_probe_ns;
	if (now < due) {
		reactor_timer_set(x->reactor, t, due);
		return;
	}
	/* an earlier probe still on its way counts as this one */
	if (x->credit.probe || (rpcrdma_credit_is_free(&x->credit, true) && probe_send(x)))
		x->probe_sent_ns = now;
	/* not later than idle_probe_ns: when this one was answered, the next is due by then */
	due = x->conf.idle_probe_ns;
	if (x->probe_sent_ns && x->conf.probe_timeout_ns < due)
		due = x->conf.probe_timeout_ns;
	if (x->state == RPCRDMA_C_UP)
		reactor_timer_set(x->reactor, t, now + due);
}

/* A lost packet is no dead peer: the adapter is left the time to send it again. */
static uint64_t stall_ns(const struct rpcrdma *x)
{
	uint64_t ns = x->conf.send_stall_ns;

	return ns > 0 && ns < x->ack_wait_ns ? x->ack_wait_ns : ns;
}

/* The CM derives it from the path, unless an administrator set local_ack_timeout. */
static void note_ack(struct rpcrdma *x)
{
	struct fab_path path;

	x->ack_wait_ns = 0;
	if (fab_ep_path(x->ep, &path))
		x->ack_wait_ns = path.ack_ns * (path.ack_tries > 0 ? 2 : 1);
}

static uint64_t stall_due(const struct rpcrdma *x)
{
	uint64_t moved_ns = x->send_moved_ns > x->last_rx_ns ? x->send_moved_ns : x->last_rx_ns;

	return moved_ns + stall_ns(x);
}

static void stall_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, stall_timer);

	if (x->state != RPCRDMA_C_UP || x->sends_out == 0)
		return;
	if (reactor_now(x->reactor) < stall_due(x)) {
		reactor_timer_set(x->reactor, t, stall_due(x));
		return;
	}
	log_warn("%s: nobody takes what is sent: connection replaced", x->peer);
	rpcrdma_conn_drop(x, -ETIMEDOUT, "a Send is not acknowledged");
}

void rpcrdma_probe_send_posted(struct rpcrdma *x)
{
	if (x->sends_out++ == 0)
		x->send_moved_ns = reactor_now(x->reactor);
	/* One timer for many Sends: when it fires it looks whether there is still one. */
	if (stall_ns(x) > 0 && !reactor_timer_armed(&x->stall_timer))
		reactor_timer_in(x->reactor, &x->stall_timer, stall_ns(x));
}

void rpcrdma_probe_send_done(struct rpcrdma *x)
{
	assert(x->sends_out > 0);
	x->sends_out--;
	x->send_moved_ns = reactor_now(x->reactor);
}

void rpcrdma_probe_init(struct rpcrdma *x)
{
	reactor_timer_init(&x->stall_timer, stall_fire);
	reactor_timer_init(&x->probe_timer, probe_fire);
	x->probe.done = probe_done;
	rpcrdma_req_lend_probe(x);
}

void rpcrdma_probe_start(struct rpcrdma *x)
{
	note_ack(x);
	x->last_rx_ns = reactor_now(x->reactor);
	x->probe_sent_ns = 0;
	/*
	 * After a loss that calls may be to blame for they wait until the connection answered
	 * something: so it is known to work, and they are not alone with its first credit.
	 */
	x->proving = x->prove && probe_send(x);
	if (x->proving) {
		x->probe_sent_ns = x->last_rx_ns;
		reactor_timer_in(x->reactor, &x->probe_timer, probe_limit(x));
	} else if (x->conf.idle_probe_ns > 0 && x->state == RPCRDMA_C_UP) {
		reactor_timer_in(x->reactor, &x->probe_timer, x->conf.idle_probe_ns);
	}
}

void rpcrdma_probe_stop(struct rpcrdma *x)
{
	reactor_timer_cancel(x->reactor, &x->probe_timer);
	reactor_timer_cancel(x->reactor, &x->stall_timer);
	x->probe_sent_ns = 0;
	x->proving = false;
}
