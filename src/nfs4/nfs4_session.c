/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session of a lane, from connecting to the end.
 *
 *   IDLE        not started
 *   CONNECTING  the transport makes its first connection
 *   SETUP       client ID, session, RECLAIM_COMPLETE (nfs4_setup.c)
 *   UP          calls flow, also while the transport reconnects
 *   RECOVERING  session or client ID lost: set-up again, calls wait
 *   STOPPING    nfs4_stop_session(): calls end, session and client ID are destroyed
 *   FAILING     set-up failed: as STOPPING, then ->failed
 *   DEAD        ->failed was called
 *   STOPPED     ->stopped was called
 *
 * How it ends is nfs4_stop.c's.
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETUP_NS         (60 * NSEC_PER_SEC) /* from the first connection to ->up */
#define SETUP_MAX_LOSSES 5u

static const char *state_name(enum nfs4_session_state state)
{
	static const char *const names[] = {
#define X(name) [NFS4_SESSION_##name] = #name,
		NFS4_SESSION_STATES(X)
#undef X
	};

	return names[state];
}

#define TO(name) (1u << NFS4_SESSION_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[NFS4_SESSION_IDLE] = TO(CONNECTING) | TO(STOPPING),
	[NFS4_SESSION_CONNECTING] = TO(SETUP) | TO(STOPPING) | TO(FAILING),
	[NFS4_SESSION_SETUP] = TO(UP) | TO(STOPPING) | TO(FAILING),
	[NFS4_SESSION_UP] = TO(RECOVERING) | TO(STOPPING),
	[NFS4_SESSION_RECOVERING] = TO(UP) | TO(STOPPING),
	[NFS4_SESSION_STOPPING] = TO(STOPPED),
	[NFS4_SESSION_FAILING] = TO(DEAD) | TO(STOPPING),
	[NFS4_SESSION_DEAD] = TO(STOPPING),
	[NFS4_SESSION_STOPPED] = 0,
};

void nfs4_session_set_state(struct nfs4_session *s, enum nfs4_session_state to, const char *why)
{
	assert(legal[s->state] & (1u << to));
	log_debug("%s: session %s -> %s (%s)", s->peer, state_name(s->state), state_name(to), why);
	s->state = to;
	mutex_lock(&s->view_lock);
	s->view.state = state_name(to);
	mutex_unlock(&s->view_lock);
}

void nfs4_session_view(struct nfs4_session *s, struct nfs4_session_view *ret)
{
	mutex_lock(&s->view_lock);
	*ret = s->view;
	mutex_unlock(&s->view_lock);
}

static void publish_connected(struct nfs4_session *s, bool connected)
{
	mutex_lock(&s->view_lock);
	s->view.connected = connected;
	if (connected) {
		rpcrdma_thresholds(s->x, &s->view.send_max, &s->view.recv_max);
		s->view.result_max = (uint32_t)rpcrdma_result_size(s->x);
		snprintf(s->view.peer, sizeof(s->view.peer), "%s", s->peer);
	}
	mutex_unlock(&s->view_lock);
}

static void publish(struct nfs4_session *s)
{
	const struct nfs4_chan *fore = &s->params.fore;
	struct nfs4_session_view *v = &s->view;

	mutex_lock(&s->view_lock);
	snprintf(v->peer, sizeof(v->peer), "%s", s->peer);
	snprintf(v->device, sizeof(v->device), "%s", rpcrdma_device_name(s->x));
	v->memreg = rpcrdma_memreg(s->x);
	v->maxreq = fore->maxreq;
	v->maxresp = fore->maxresp;
	v->maxcached = fore->maxcached;
	v->maxops = fore->maxops;
	v->maxreqs = fore->maxreqs;
	v->back = nfs4_codec_has_back(&s->params);
	mutex_unlock(&s->view_lock);
}

/* ---- up ---- */

void nfs4_session_up(struct nfs4_session *s)
{
	bool first = !s->was_up;

	reactor_timer_cancel(s->r, &s->step_timer);
	s->recovered_ns = reactor_now(s->r);
	nfs4_session_set_state(s, NFS4_SESSION_UP, "set up");
	publish(s);
	if (!first)
		log_info("%s: calls go on", s->peer);
	s->was_up = true;
	nfs4_lease_start(s, false);
	nfs4_call_kick(s);
	nfs4_reclaim_kick(s);
	if (first)
		s->ops->up(s->ctx);
	if (s->blocked) {
		s->blocked = false;
		s->ops->unblocked(s->ctx);
	}
}

/* ---- the transport ---- */

/* The requests of steps and renewals, before the users' calls can have taken them all. */
static bool get_own_calls(struct nfs4_session *s)
{
	if (nfs4_call_init(s, &s->ctl))
		return false;
	if (nfs4_call_init(s, &s->renew)) {
		nfs4_call_put(&s->ctl);
		return false;
	}
	if (nfs4_call_init(s, &s->reopener)) {
		nfs4_call_put(&s->ctl);
		nfs4_call_put(&s->renew);
		return false;
	}
	s->calls_ready = true;
	return true;
}

static void xprt_up(void *ctx, bool first)
{
	struct nfs4_session *s = ctx;

	snprintf(s->peer, sizeof(s->peer), "%s", rpcrdma_peer_name(s->x));
	publish_connected(s, true);
	switch (s->state) {
	case NFS4_SESSION_CONNECTING:
		nfs4_session_set_state(s, NFS4_SESSION_SETUP, "connected");
		if (!get_own_calls(s)) {
			nfs4_stop_fail(s, ENOMEM, "session", "too few requests: check credits=");
			return;
		}
		s->need = NFS4_NEED_SESSION;
		reactor_timer_in(s->r, &s->step_timer, SETUP_NS);
		nfs4_setup_start(s);
		return;
	case NFS4_SESSION_UP:
		/* Finds out at once whether the session is still there, also when nothing else
		 * runs. */
		nfs4_lease_start(s, true);
		return;
	case NFS4_SESSION_SETUP:
	case NFS4_SESSION_RECOVERING:
	case NFS4_SESSION_STOPPING:
	case NFS4_SESSION_FAILING:
		/* The transport sends the step again. */
		return;
	case NFS4_SESSION_IDLE:
	case NFS4_SESSION_DEAD:
	case NFS4_SESSION_STOPPED:
		assert(!"connected without having been started");
	}
}

static void xprt_down(void *ctx, int err)
{
	struct nfs4_session *s = ctx;

	publish_connected(s, false);
	if (s->state != NFS4_SESSION_SETUP)
		return;
	/* A server that just starts may drop us once or twice. */
	if (++s->losses >= SETUP_MAX_LOSSES)
		nfs4_stop_fail(s, -err, "session",
			"the server %s dropped the connection %u times before there was a session "
			"(%s): check its log",
			s->peer, s->losses, strerror(-err));
}

static void xprt_failed(void *ctx, int err, const char *step)
{
	struct nfs4_session *s = ctx;
	struct nfs4_failure f;

	s->xprt_gone = true;
	if (s->state != NFS4_SESSION_CONNECTING) {
		nfs4_stop_next(s);
		return;
	}
	nfs4_failure_connect(&f, err, step, rpcrdma_failure_detail(s->x));
	nfs4_stop_fail(s, f.err, f.step, "%s", f.text);
}

static void xprt_stopped(void *ctx)
{
	struct nfs4_session *s = ctx;

	s->xprt_gone = true;
	nfs4_stop_next(s);
}

static void xprt_unblocked(void *ctx)
{
	struct nfs4_session *s = ctx;

	if (s->was_up)
		s->ops->unblocked(s->ctx);
}

/* ---- calls of the server ---- */

static enum nfs4_status cb_execute(struct nfs4_session *s, struct nfs4_cb_op *op)
{
	enum nfs4_status status;

	switch (op->kind) {
	case NFS4_CB_GETATTR:
		if (!nfs4_recall_getattr(s->cl, &op->getattr.fh, &op->change, &op->size))
			return NFS4ERR_BADHANDLE;
		break;
	case NFS4_CB_RECALL:
		status = nfs4_recall_one(s->cl, &op->recall.stateid, &op->recall.fh);
		nfs4_lease_kick(s); /* it may be nobody's */
		return status;
	case NFS4_CB_RECALL_ANY:
		nfs4_recall_any(
			s->cl, op->recall_any.keep, op->recall_any.read, op->recall_any.write);
		break;
	case NFS4_CB_OFFLOAD:
		return nfs4_offload_told(s->cl, s->id_gen, &op->offload.id, &op->offload.res);
	}
	return NFS4_OK;
}

static void xprt_reverse_call(void *ctx, const struct rpcrdma_rcall *call)
{
	struct nfs4_session *s = ctx;
	uint8_t out[NFS4_CB_ANSWER_MAX];
	struct nfs4_cb_run run;
	struct nfs4_cb_op *op;
	int err;

	s->cb.coming = s->step == NFS4_STEP_CREATE;
	op = nfs4_cb_begin(&run, &s->cb, &s->slots, call->msg, call->len, out);
	while (op)
		op = nfs4_cb_next(&run, cb_execute(s, op));
	if (run.len == 0)
		return;
	err = rpcrdma_reverse_reply(s->x, out, run.len);
	if (err)
		log_debug("%s: a callback goes unanswered: %s", s->peer, strerror(-err));
	if (s->cb.recall_slot != UINT32_MAX) {
		nfs4_slot_set_highest(&s->slots, s->slots.cnt - 1, s->cb.recall_slot);
		stats_set(&s->stats->slots, s->slots.limit);
		s->cb.recall_slot = UINT32_MAX;
	}
	for (uint32_t i = 0; i < s->cb.lock_free_cnt && s->cl->lock_free; i++)
		s->cl->lock_free(s->cl->lock_free_ctx, s->cb.lock_free[i]);
}

static const struct rpcrdma_ops xprt_ops = {
	.up = xprt_up,
	.down = xprt_down,
	.failed = xprt_failed,
	.stopped = xprt_stopped,
	.unblocked = xprt_unblocked,
	.reverse_call = xprt_reverse_call,
};

/* ---- the user's side ---- */

struct nfs4_session *nfs4_session_new(struct nfs4_client *cl, struct reactor *r,
	const struct nfs4_session_ops *ops, void *ctx, struct stats *stats)
{
	return nfs4_session_new_small(cl, r, ops, ctx, stats, cl->conf.rdma.data_cnt);
}

struct nfs4_session *nfs4_session_new_small(struct nfs4_client *cl, struct reactor *r,
	const struct nfs4_session_ops *ops, void *ctx, struct stats *stats, unsigned int bufs)
{
	struct nfs4_session *s = calloc(1, sizeof(*s));
	struct rpcrdma_conf conf = cl->conf.rdma;

	if (!s)
		return NULL;
	if (conf.data_cnt > bufs)
		conf.data_cnt = bufs;
	s->cl = cl;
	s->r = r;
	s->ops = ops;
	s->ctx = ctx;
	s->stats = stats;
	s->cb.recall_slot = UINT32_MAX;
	s->cred.flavor = cl->conf.flavor; /* uid and gid 0, as the kernel's clients */
	snprintf(s->peer, sizeof(s->peer), "server");
	list_init(&s->waiting);
	list_init(&s->delayed);
	list_init(&s->ending);
	nfs4_idmap_init(s);
	list_init(&s->token_link);
	s->token_msg.run = nfs4_setup_granted;
	reactor_timer_init(&s->ending_timer, nfs4_call_timer);
	reactor_timer_init(&s->step_timer, nfs4_setup_timer);
	reactor_timer_init(&s->stop_timer, nfs4_stop_timer);
	reactor_timer_init(&s->lease_timer, nfs4_lease_timer);
	reactor_timer_init(&s->reopen_timer, nfs4_reclaim_timer);
	s->x = rpcrdma_new(r, &conf, &xprt_ops, s, stats);
	if (!s->x) {
		int err = errno;

		free(s);
		errno = err;
		return NULL;
	}
	mutex_init(&s->view_lock, MUTEX_NFS4_VIEW);
	s->view.state = state_name(NFS4_SESSION_IDLE);
	return s;
}

int nfs4_session_start(
	struct nfs4_session *s, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err;

	if (s->state != NFS4_SESSION_IDLE)
		return -EALREADY;
	err = rpcrdma_connect(s->x, src, dst);
	if (err)
		return err;
	s->started = true;
	nfs4_session_set_state(s, NFS4_SESSION_CONNECTING, "started");
	return 0;
}

void nfs4_session_free(struct nfs4_session *s)
{
	if (!s)
		return;
	assert(s->state == NFS4_SESSION_IDLE || s->state == NFS4_SESSION_DEAD ||
		s->state == NFS4_SESSION_STOPPED);
	assert(list_empty(&s->waiting) && list_empty(&s->delayed) && list_empty(&s->idmap_waits));
	reactor_timer_cancel(s->r, &s->ending_timer);
	reactor_timer_cancel(s->r, &s->step_timer);
	reactor_timer_cancel(s->r, &s->stop_timer);
	reactor_timer_cancel(s->r, &s->lease_timer);
	reactor_timer_cancel(s->r, &s->reopen_timer);
	rpcrdma_free(s->x);
	mutex_destroy(&s->view_lock);
	free(s);
}

struct rpcrdma *nfs4_session_xprt(struct nfs4_session *s)
{
	return s->x;
}
