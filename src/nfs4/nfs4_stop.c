/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a session ends: asked to (STOPPING) or because it cannot be made
 * (FAILING). One rule finds the next thing to do, from whatever was going on:
 *
 *   calls are with the transport      they get DRAIN_NS
 *   a step is under way               its answer is awaited
 *   delegations are left              DELEGRETURN, each: with one of them the server keeps the
 *                                     client ID (nfs4_return_send.c)
 *   the server has our session        DESTROY_SESSION
 *   it was the client's last          DESTROY_CLIENTID, with the token
 *   nothing                           rpcrdma_stop()
 *
 * When the connection is lost on the way, the transport makes another and
 * sends the step again, so that nothing is left on a server that is alive.
 * STOP_NS after the beginning the transport is stopped whatever is left: it
 * then gives every call back.
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define DRAIN_NS (2 * NSEC_PER_SEC)
#define STOP_NS  (4500 * NSEC_PER_MSEC) /* nfs4_stop_session() promises 5 s */

static bool is_ending(const struct nfs4_session *s)
{
	return s->state == NFS4_SESSION_STOPPING || s->state == NFS4_SESSION_FAILING;
}

/* Our own requests, when nothing uses them. */
static void put_own_calls(struct nfs4_session *s)
{
	if (!s->calls_ready || s->ctl.state != NFS4_CALL_IDLE || s->renew.state != NFS4_CALL_IDLE ||
		s->reopener.state != NFS4_CALL_IDLE)
		return;
	s->calls_ready = false;
	nfs4_call_put(&s->ctl);
	nfs4_call_put(&s->renew);
	nfs4_call_put(&s->reopener);
}

/* The end of all waiting: the transport returns every call. */
static void cut(struct nfs4_session *s)
{
	if (s->cut)
		return;
	s->cut = true;
	nfs4_call_end_waiting(s, s->state == NFS4_SESSION_STOPPING ? -ESHUTDOWN : -EIO);
	put_own_calls(s);
	if (!s->started)
		s->xprt_gone = true; /* it never began */
	else if (!s->xprt_gone)
		rpcrdma_stop(s->x);
}

/* This lane's session is gone from the server, or as good as. */
static void count_out(struct nfs4_session *s)
{
	if (!s->counted)
		return;
	s->counted = false;
	if (nfs4_client_session_gone(s->cl) == 0)
		s->bye_client = true;
}

/* Everything is back: the last callback. The user may free the session in it. */
static void finish(struct nfs4_session *s)
{
	while (!list_empty(&s->ending))
		nfs4_call_flush(s);
	put_own_calls(s);
	if (!nfs4_idmap_fini(s)) {
		reactor_timer_in(s->r, &s->stop_timer, 0);
		return;
	}
	nfs4_reclaim_release_all(s);
	count_out(s);
	if (s->token == NFS4_TOKEN_HELD)
		nfs4_client_token_put(s);
	else if (s->token == NFS4_TOKEN_WAITING && !nfs4_client_token_cancel(s))
		return; /* the grant is in our mailbox: nfs4_setup_granted() comes back here */
	reactor_timer_cancel(s->r, &s->stop_timer);
	reactor_timer_cancel(s->r, &s->step_timer);
	reactor_timer_cancel(s->r, &s->reopen_timer);
	nfs4_lease_stop(s);
	if (s->state == NFS4_SESSION_FAILING) {
		nfs4_session_set_state(s, NFS4_SESSION_DEAD, s->failure.step);
		s->ops->failed(s->ctx, &s->failure);
		return;
	}
	nfs4_session_set_state(s, NFS4_SESSION_STOPPED, "all is back");
	s->ops->stopped(s->ctx);
}

void nfs4_stop_next(struct nfs4_session *s)
{
	if (!is_ending(s))
		return;
	if (s->xprt_gone) {
		cut(s);
		/* From a timer: we may be inside a call of the user's. */
		reactor_timer_in(s->r, &s->stop_timer, 0);
		return;
	}
	if (s->cut)
		return;
	if (!s->drained && (s->sent_cnt > 0 || !list_empty(&s->idmap_waits)))
		return;
	s->drained = true;
	if (s->step != NFS4_STEP_NONE)
		return;
	if (s->have_session && s->calls_ready) {
		nfs4_setup_send(
			s, nfs4_return_send_last(s) ? NFS4_STEP_BYE_DELEG : NFS4_STEP_BYE_SESS);
		return;
	}
	count_out(s);
	if (s->bye_client && s->calls_ready) {
		if (s->token == NFS4_TOKEN_WAITING)
			return; /* nfs4_setup_granted() comes back here */
		if (s->token == NFS4_TOKEN_NONE && !nfs4_client_token_get(s))
			return;
		if (s->cl->have_id) {
			nfs4_setup_send(s, NFS4_STEP_BYE_CLIENT);
			return;
		}
	}
	cut(s);
}

void nfs4_stop_timer(struct reactor_timer *t)
{
	struct nfs4_session *s = container_of(t, struct nfs4_session, stop_timer);

	if (s->xprt_gone) {
		finish(s);
		return;
	}
	if (!s->drained) {
		s->drained = true;
		reactor_timer_in(s->r, &s->stop_timer, STOP_NS - DRAIN_NS);
		nfs4_stop_next(s);
		return;
	}
	log_warn("%s: the server does not answer: our session stays there until its lease ends",
		s->peer);
	cut(s);
}

/* The ways into STOPPING and FAILING share this. */
static void begin_end(struct nfs4_session *s, int call_err)
{
	reactor_timer_cancel(s->r, &s->step_timer);
	nfs4_lease_stop(s);
	nfs4_call_end_waiting(s, call_err);
	if (s->token == NFS4_TOKEN_WAITING)
		nfs4_client_token_cancel(s);
	else if (s->token == NFS4_TOKEN_HELD && s->step == NFS4_STEP_NONE)
		nfs4_client_token_put(s);
	/* A timer in any case: the rest must not run inside the caller. */
	reactor_timer_in(s->r, &s->stop_timer, DRAIN_NS);
}

void nfs4_stop_session(struct nfs4_session *s)
{
	enum nfs4_session_state was = s->state;

	if (was == NFS4_SESSION_STOPPING || was == NFS4_SESSION_STOPPED)
		return;
	nfs4_session_set_state(s, NFS4_SESSION_STOPPING, "asked to");
	if (was == NFS4_SESSION_FAILING)
		return; /* the end is on its way */
	begin_end(s, -ESHUTDOWN);
	if (was == NFS4_SESSION_IDLE || was == NFS4_SESSION_DEAD || was == NFS4_SESSION_CONNECTING)
		cut(s);
	nfs4_stop_next(s);
}

void nfs4_stop_fail(struct nfs4_session *s, int err, const char *step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	nfs4_failure_put(&s->failure, err, step, fmt, ap);
	va_end(ap);
	nfs4_session_set_state(s, NFS4_SESSION_FAILING, step);
	begin_end(s, -EIO);
	/* A step without an answer is why we fail, or will have none. */
	if (s->step != NFS4_STEP_NONE || !s->calls_ready)
		cut(s);
	nfs4_stop_next(s);
}
