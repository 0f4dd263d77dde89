/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection's life:
 *
 *   IDLE -> RESOLVING -> CONNECTING -> UP -> DRAINING -> BACKOFF -> RESOLVING ...
 *              |             |                  |
 *              +-------------+---> DRAINING ----+-> FAILED (never was up)
 *                                               +-> STOPPED (rpcrdma_stop)
 *
 * CONNECTING lasts until the device's windows were tried, on the first connection
 * that it has (rpcrdma_trial.c).
 * DRAINING ends when the fabric says that no work request is outstanding: only
 * then memory is free, calls are sorted into ended and to be sent again.
 *
 * I7 (connection): calls are sent, and replies believed, while it is UP. One that was given up
 *    sends and believes nothing more, whatever arrives: its calls go again on the next one.
 *    Asserted: rpcrdma_send_transmit(), conclude()
 *    Test: rpcrdma_conn::what_was_given_up_sends_and_believes_nothing
 */
#include "rpcrdma_tap.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define LOSS_LOG_NS (5 * NSEC_PER_SEC) /* as log_ratelimit(), by the reactor's clock */

static const char *cstate_name(enum rpcrdma_cstate state)
{
	static const char *const names[] = {
#define X(name, meaning) #name,
		RPCRDMA_CSTATES(X)
#undef X
	};

	return names[state];
}

static bool is_legal(enum rpcrdma_cstate from, enum rpcrdma_cstate to)
{
	switch (from) {
	case RPCRDMA_C_IDLE:
		return to == RPCRDMA_C_RESOLVING || to == RPCRDMA_C_STOPPED;
	case RPCRDMA_C_RESOLVING:
		return to == RPCRDMA_C_CONNECTING || to == RPCRDMA_C_DRAINING ||
		       to == RPCRDMA_C_BACKOFF;
	case RPCRDMA_C_CONNECTING:
		return to == RPCRDMA_C_UP || to == RPCRDMA_C_DRAINING;
	case RPCRDMA_C_UP:
		return to == RPCRDMA_C_DRAINING;
	case RPCRDMA_C_DRAINING:
		return to == RPCRDMA_C_BACKOFF || to == RPCRDMA_C_FAILED || to == RPCRDMA_C_STOPPED;
	case RPCRDMA_C_BACKOFF:
		return to == RPCRDMA_C_RESOLVING || to == RPCRDMA_C_STOPPED;
	case RPCRDMA_C_FAILED:
		return to == RPCRDMA_C_STOPPED;
	case RPCRDMA_C_STOPPED:
		return false;
	}
	return false;
}

static void set_state(struct rpcrdma *x, enum rpcrdma_cstate state, const char *why)
{
	assert(is_legal(x->state, state));
	log_debug("%s: connection %s -> %s (%s)", x->peer, cstate_name(x->state),
		cstate_name(state), why);
	x->state = state;
}

static const char *step_name(enum fab_step step)
{
	switch (step) {
	case FAB_STEP_ADDR:
		return "resolve";
	case FAB_STEP_ROUTE:
		return "route";
	case FAB_STEP_SETUP:
		return "set-up";
	case FAB_STEP_CONNECT:
		return "connect";
	}
	return "?";
}

/* What callbacks and posts were put off for. */
static void run_deferred(struct rpcrdma *x)
{
	rpcrdma_req_run_ended(x);
	rpcrdma_send_pump(x);
	if (x->unblock_due) {
		x->unblock_due = false;
		if (x->ops->unblocked)
			x->ops->unblocked(x->ctx);
	}
}

static void kick_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, kick_timer);

	run_deferred(x);
	if (!x->report_due)
		return;
	x->report_due = false;
	/* last: the user may free x here */
	if (x->state == RPCRDMA_C_STOPPED)
		x->ops->stopped(x->ctx);
	else
		x->ops->failed(x->ctx, x->down_err, step_name(x->down_step));
}

static void report(struct rpcrdma *x, enum rpcrdma_cstate state, const char *why)
{
	set_state(x, state, why);
	rpcrdma_timeo_fini(x);
	rpcrdma_req_end_queue(x, RPCRDMA_SHUTDOWN);
	x->report_due = true;
	rpcrdma_kick(x);
}

/*
 * A connection that worked for a while is made again at once; otherwise the
 * delay doubles, half of it random, so that many clients of a server that
 * comes back do not come in step.
 */
static void back_off(struct rpcrdma *x)
{
	uint64_t now = reactor_now(x->reactor), min = x->conf.backoff_min_ns, delay;

	if (x->retry_now || (x->good && now - x->seen.up_ns >= min)) {
		x->backoff_ns = 0;
		delay = 0;
	} else {
		x->backoff_ns = x->good || x->backoff_ns < min ? min : 2 * x->backoff_ns;
		if (x->backoff_ns > x->conf.backoff_max_ns)
			x->backoff_ns = x->conf.backoff_max_ns;
		delay = x->backoff_ns / 2 + rpcrdma_random(x) % (x->backoff_ns / 2 + 1);
	}
	x->retry_now = x->good = false;
	set_state(x, RPCRDMA_C_BACKOFF, "retry");
	reactor_timer_in(x->reactor, &x->backoff_timer, delay);
}

static void drained(struct rpcrdma *x);

static void backoff_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, backoff_timer);
	int err;

	rpcrdma_addr_next(x);
	x->reached = false; /* by this attempt */
	err = rpcrdma_fabric_resolve(x, &rpcrdma_fab_ops);
	set_state(x, RPCRDMA_C_RESOLVING, "again");
	if (!err)
		return;
	log_debug("%s: resolve: %s", x->peer, strerror(-err));
	rpcrdma_addr_failed(x);
	if (x->ever_up) {
		back_off(x);
		return;
	}
	x->down_err = err;
	x->down_step = FAB_STEP_ADDR;
	set_state(x, RPCRDMA_C_DRAINING, "resolve");
	drained(x);
}

/*
 * A server that does not respond was named once: not again for each attempt. One that ends each
 * connection at once must not fill the log.
 */
static void log_loss(struct rpcrdma *x, int err, const char *why)
{
	struct rpcrdma_seen *s = &x->seen;
	uint64_t now = reactor_now(x->reactor);

	s->loss_logged = !x->not_responding && (s->loss_ns == 0 || now - s->loss_ns >= LOSS_LOG_NS);
	if (s->loss_logged)
		s->loss_ns = now;
	log_msg(s->loss_logged ? LOG_LVL_INFO : LOG_LVL_DEBUG, "%s: connection lost: %s (%s)",
		x->peer, why, strerror(-err));
}

void rpcrdma_conn_drop(struct rpcrdma *x, int err, const char *why)
{
	switch (x->state) {
	case RPCRDMA_C_RESOLVING:
	case RPCRDMA_C_CONNECTING:
	case RPCRDMA_C_UP:
		break;
	case RPCRDMA_C_IDLE:
	case RPCRDMA_C_DRAINING:
	case RPCRDMA_C_BACKOFF:
	case RPCRDMA_C_FAILED:
	case RPCRDMA_C_STOPPED:
		return;
	}
	if (x->state == RPCRDMA_C_UP && !x->stopping)
		log_loss(x, err, why);
	if (x->state != RPCRDMA_C_UP && !x->addr_used && !x->stopping)
		rpcrdma_addr_failed(x); /* else when it is drained */
	x->down_err = err;
	x->down_step = x->state == RPCRDMA_C_RESOLVING ? FAB_STEP_SETUP : FAB_STEP_CONNECT;
	rpcrdma_probe_stop(x);
	set_state(x, RPCRDMA_C_DRAINING, why);
	fab_ep_disconnect(x->ep);
}

/* Nothing of this connection is left. */
static void drained(struct rpcrdma *x)
{
	assert(x->state == RPCRDMA_C_DRAINING);
	for (unsigned int i = 0; i < x->rep_cnt; i++)
		x->reps[i].posted = false;
	x->sends_out = 0;
	x->in_batch = false;
	rpcrdma_trial_drained(x);
	rpcrdma_win_forget(x);
	if (x->was_up && x->memreg == RPCRDMA_MEMREG_STATIC)
		rpcrdma_mem_dereg_data(x); /* the next connection has keys that nobody knows */
	rpcrdma_reverse_reset(x);
	rpcrdma_credit_reset(&x->credit, x->conf.credits);
	rpcrdma_req_drained(x);
	rpcrdma_addr_down(x);
	if (x->was_up) {
		x->was_up = false;
		if (x->ops->down)
			x->ops->down(x->ctx, x->down_err);
	}
	rpcrdma_req_run_ended(x); /* replies held in receive buffers among them */
	if (x->stopping)
		report(x, RPCRDMA_C_STOPPED, "drained");
	else if (!x->ever_up && !x->reached)
		report(x, RPCRDMA_C_FAILED, "first connection");
	else
		back_off(x);
}

static void resolved(struct rpcrdma *x, const struct fab_event *ev)
{
	uint8_t priv[RPCRDMA_PRIV_LEN];
	int err;

	if (x->state != RPCRDMA_C_RESOLVING)
		return;
	err = rpcrdma_setup(x, ev->new_device);
	if (err) {
		rpcrdma_conn_drop(x, err, "set-up failed");
		return;
	}
	set_state(x, RPCRDMA_C_CONNECTING, "resolved");
	err = fab_ep_connect(x->ep, priv, rpcrdma_priv_encode(x, priv));
	if (err)
		rpcrdma_conn_drop(x, err, "connect failed");
}

static void established(struct rpcrdma *x, const struct fab_event *ev)
{
	if (x->state != RPCRDMA_C_CONNECTING)
		return;
	x->reached = true;
	if (!rpcrdma_addr_up(x)) {
		x->retry_now = true;
		rpcrdma_conn_drop(x, -ECONNRESET, "another address is in use");
		return;
	}
	rpcrdma_priv_apply(x, ev->priv, ev->priv_len);
	rpcrdma_tap_established(x, ev->priv, ev->priv_len);
	if (!rpcrdma_trial_start(x))
		rpcrdma_conn_up(x);
}

void rpcrdma_conn_up(struct rpcrdma *x)
{
	bool first = !x->ever_up;

	rpcrdma_setup_works(x);
	rpcrdma_fabric_up(x);
	rpcrdma_credit_reset(&x->credit, x->conf.credits);
	x->credit.inbound_room = fab_ep_caps(x->ep)->max_inbound;
	set_state(x, RPCRDMA_C_UP, "established");
	x->generation++;
	x->seen.up_ns = reactor_now(x->reactor);
	x->ever_up = x->was_up = true;
	stats_count(&x->stats->connects, 1);
	if (!first) {
		stats_count(&x->stats->reconnects, 1);
		log_msg(x->seen.loss_logged && !x->not_responding ? LOG_LVL_INFO : LOG_LVL_DEBUG,
			"%s: connected again", x->peer);
	}
	log_debug("%s: %s: inline %u/%u, memreg=%s", x->peer, fab_ep_name(x->ep),
		x->limits.send_max, x->limits.recv_max,
		x->memreg == RPCRDMA_MEMREG_MW ? "mw" : "static");
	rpcrdma_send_flight_changed(x);
	rpcrdma_probe_start(x);
	if (x->state != RPCRDMA_C_UP) /* the probe could not be posted */
		return;
	if (x->ops->up)
		x->ops->up(x->ctx, first);
	rpcrdma_send_pump(x);
}

static void attempt_failed(struct rpcrdma *x, const struct fab_event *ev)
{
	int err = ev->err;

	if (x->state != RPCRDMA_C_RESOLVING && x->state != RPCRDMA_C_CONNECTING)
		return;
	if (rpcrdma_fabric_other(x, ev->step, &err, &rpcrdma_fab_ops))
		return;
	snprintf(x->detail, sizeof(x->detail), "%s", fab_ep_why(x->ep));
	if (ev->step == FAB_STEP_SETUP && err == -EAGAIN)
		snprintf(x->detail, sizeof(x->detail), "cannot open the RDMA device: %s",
			rpcrdma_mem_strerror(EAGAIN));
	/* The first one's is told by the owner; that nobody answers is told as such. */
	if (x->ever_up && x->detail[0] && err != -ETIMEDOUT)
		log_warn_limited("%s: %s", x->peer, x->detail);
	else if (x->ever_up)
		log_debug("%s: %s: %s%s%s", x->peer, step_name(ev->step), strerror(-err),
			x->detail[0] ? ": " : "", x->detail);
	x->down_err = err;
	x->down_step = ev->step;
	rpcrdma_addr_failed(x);
	set_state(x, RPCRDMA_C_DRAINING, step_name(ev->step));
	drained(x); /* FAILED leaves nothing to wait for */
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	struct rpcrdma *x = ctx;

	switch (ev->type) {
	case FAB_EV_RESOLVED:
		resolved(x, ev);
		break;
	case FAB_EV_ESTABLISHED:
		established(x, ev);
		break;
	case FAB_EV_FAILED:
		attempt_failed(x, ev);
		break;
	case FAB_EV_DOWN:
		if (x->state == RPCRDMA_C_DRAINING && x->down_err == -ENOTCONN && ev->err)
			x->down_err = ev->err; /* a post was faster; this knows why */
		rpcrdma_conn_drop(x, ev->err ? ev->err : -ECONNRESET,
			ev->err ? "fabric error" : "closed by the server");
		break;
	case FAB_EV_DRAINED:
		if (x->state == RPCRDMA_C_DRAINING)
			drained(x);
		break;
	}
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
	struct rpcrdma *x = ctx;

	x->in_batch = true;
	if (cookie == RPCRDMA_TRIAL_COOKIE)
		rpcrdma_trial_step(x, status);
	else
		rpcrdma_send_done(x, cookie, status);
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv_rkey, enum fab_status status)
{
	struct rpcrdma *x = ctx;

	x->in_batch = true;
	rpcrdma_reply_receive(x, cookie, len, inv_rkey, status);
}

static void on_invalidated(void *ctx, uint64_t cookie, enum fab_status status)
{
	struct rpcrdma *x = ctx;

	x->in_batch = true;
	if (cookie == RPCRDMA_TRIAL_COOKIE)
		rpcrdma_trial_step(x, status);
	else
		rpcrdma_win_invalidated(x, cookie, status);
}

static void on_batch_done(void *ctx)
{
	struct rpcrdma *x = ctx;

	x->in_batch = false;
	run_deferred(x);
}

const struct fab_ep_ops rpcrdma_fab_ops = {
	.event = on_event,
	.sent = on_sent,
	.received = on_received,
	.invalidated = on_invalidated,
	.batch_done = on_batch_done,
	.is_message = rpcrdma_tap_is_message,
};

void rpcrdma_conn_init(struct rpcrdma *x)
{
	reactor_timer_init(&x->backoff_timer, backoff_fire);
	reactor_timer_init(&x->kick_timer, kick_fire);
	rpcrdma_credit_reset(&x->credit, x->conf.credits);
}

void rpcrdma_conn_alive(struct rpcrdma *x)
{
	x->last_rx_ns = reactor_now(x->reactor);
	x->probe_sent_ns = 0;
	x->prove = x->proving = false;
	if (!x->not_responding)
		return;
	x->not_responding = false;
	log_info("server %s OK", x->peer);
}

int rpcrdma_connect(struct rpcrdma *x, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sockaddr_storage addr;
	int err;

	assert(x->state == RPCRDMA_C_IDLE);
	if (x->conf.addrs) {
		x->turn = addrs_now(x->conf.addrs, &addr);
		dst = (const struct sockaddr *)&addr;
	}
	rpcrdma_addr_set(x, src, dst);
	err = rpcrdma_fabric_resolve(x, &rpcrdma_fab_ops);
	if (!err)
		set_state(x, RPCRDMA_C_RESOLVING, "connect");
	return err;
}

void rpcrdma_stop(struct rpcrdma *x)
{
	if (x->stopping)
		return;
	x->stopping = true;
	switch (x->state) {
	case RPCRDMA_C_RESOLVING:
	case RPCRDMA_C_CONNECTING:
	case RPCRDMA_C_UP:
		rpcrdma_conn_drop(x, -ESHUTDOWN, "stopped");
		break;
	case RPCRDMA_C_DRAINING:
		break;
	case RPCRDMA_C_BACKOFF:
	case RPCRDMA_C_IDLE:
	case RPCRDMA_C_FAILED:
		reactor_timer_cancel(x->reactor, &x->backoff_timer);
		report(x, RPCRDMA_C_STOPPED, "stopped");
		break;
	case RPCRDMA_C_STOPPED:
		break;
	}
}

void rpcrdma_reconnect(struct rpcrdma *x, const char *why)
{
	switch (x->state) {
	case RPCRDMA_C_UP:
		x->retry_now = true;
		rpcrdma_conn_drop(x, -ECONNRESET, why);
		break;
	case RPCRDMA_C_DRAINING:
		x->retry_now = true;
		break;
	case RPCRDMA_C_BACKOFF:
		if (!x->stopping)
			reactor_timer_in(x->reactor, &x->backoff_timer, 0);
		break;
	case RPCRDMA_C_RESOLVING: /* on its way already */
	case RPCRDMA_C_CONNECTING:
	case RPCRDMA_C_IDLE:
	case RPCRDMA_C_FAILED:
	case RPCRDMA_C_STOPPED:
		break;
	}
}
