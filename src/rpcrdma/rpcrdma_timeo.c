/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeo and retrans. A connection on which nothing arrived for timeo while a
 * call waits is replaced, and the call sent again (never twice on the same
 * connection, RFC 8881 section 2.10.6.2). One that answers other calls is not
 * at fault: a call may just take long, and all others would wait for the new
 * connection. After RPCRDMA_SLOW_TIMEOS the call counts as lost even so. A soft call ends timeo *
 * (retrans + 1) after it was accepted, whether it was sent or the server could not even be reached;
 * a hard one never.
 *
 * One timer, set to the earliest deadline; the lists are walked only when it
 * fires.
 */
#include "rpcrdma_int.h"

#include <errno.h>

#include "log.h"

static void arm(struct rpcrdma *x, uint64_t deadline)
{
	if (deadline == REACTOR_NEVER)
		return;
	if (!reactor_timer_armed(&x->timeo_timer) || deadline < x->timeo_timer.deadline_ns)
		reactor_timer_set(x->reactor, &x->timeo_timer, deadline);
}

static uint64_t later(uint64_t from, uint64_t delay)
{
	return delay >= REACTOR_NEVER - from ? REACTOR_NEVER : from + delay;
}

void rpcrdma_timeo_start(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;
	uint64_t now = reactor_now(x->reactor);

	priv->soft_deadline_ns = REACTOR_NEVER;
	priv->req->deadline_ns = REACTOR_NEVER;
	if (!priv->req->soft)
		return;
	priv->soft_deadline_ns = later(now, x->conf.timeo_ns * (x->conf.retrans + 1ull));
	arm(x, priv->soft_deadline_ns);
}

void rpcrdma_timeo_sent(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;

	priv->req->sent_ns = reactor_now(x->reactor);
	priv->req->deadline_ns =
		priv->is_probe ? REACTOR_NEVER : later(priv->req->sent_ns, x->conf.timeo_ns);
	arm(x, priv->req->deadline_ns);
}

/* The connection is judged, not the call: since when has it said nothing? */
static uint64_t reply_due(const struct rpcrdma *x, const struct rpcrdma_req *req)
{
	uint64_t due = later(x->last_rx_ns, x->conf.timeo_ns);
	uint64_t last = later(req->deadline_ns, (RPCRDMA_SLOW_TIMEOS - 1) * x->conf.timeo_ns);

	if (req->deadline_ns == REACTOR_NEVER || due < req->deadline_ns)
		return req->deadline_ns;
	return due < last ? due : last;
}

/* Returns the number of calls on the wire that waited long enough. */
static unsigned int expire_flight(struct rpcrdma *x, uint64_t now, uint64_t *next)
{
	bool up = x->state == RPCRDMA_C_UP;
	unsigned int cnt = 0;
	uint64_t due;

	list_for_each (pos, &x->flight) {
		struct rpcrdma_req *req = container_of(pos, struct rpcrdma_req, link);
		struct rpcrdma_reqpriv *priv = req->priv;

		if (priv->ended || priv->is_probe)
			continue;
		if (now >= priv->soft_deadline_ns) {
			stats_count(&x->stats->timeouts, 1);
			rpcrdma_req_decide(priv, RPCRDMA_TIMEDOUT);
			cnt++;
			continue;
		}
		if (priv->soft_deadline_ns < *next)
			*next = priv->soft_deadline_ns;
		if (!up)
			continue; /* being drained: will be sent again */
		due = reply_due(x, req);
		if (now >= due) {
			stats_count(&x->stats->timeouts, 1);
			x->prove = priv->timed_out = true;
			cnt++;
		} else if (due < *next) {
			*next = due;
		}
	}
	return cnt;
}

static void expire_queue(struct rpcrdma *x, uint64_t now, uint64_t *next)
{
	list_for_each_safe (pos, tmp, &x->queue) {
		struct rpcrdma_reqpriv *priv = container_of(pos, struct rpcrdma_req, link)->priv;

		if (now >= priv->soft_deadline_ns) {
			stats_count(&x->stats->timeouts, 1);
			rpcrdma_req_end_later(priv, RPCRDMA_TIMEDOUT);
		} else if (priv->soft_deadline_ns < *next) {
			*next = priv->soft_deadline_ns;
		}
	}
}

static void timeo_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, timeo_timer);
	uint64_t now = reactor_now(x->reactor), next = REACTOR_NEVER;
	unsigned int cnt = expire_flight(x, now, &next);

	expire_queue(x, now, &next);
	arm(x, next);
	if (cnt == 0)
		return;
	if (!x->not_responding) {
		x->not_responding = true;
		log_warn("server %s not responding, still trying", x->peer);
	}
	rpcrdma_conn_drop(x, -ETIMEDOUT, "no reply in time");
}

void rpcrdma_timeo_init(struct rpcrdma *x)
{
	reactor_timer_init(&x->timeo_timer, timeo_fire);
}

void rpcrdma_timeo_fini(struct rpcrdma *x)
{
	reactor_timer_cancel(x->reactor, &x->timeo_timer);
}
