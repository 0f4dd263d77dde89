/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be done before calls flow, at start and in recovery, one call at a
 * time. The next step follows from what is missing, so that any step may fail,
 * be answered "stale" or be overtaken, and the same rule finds the way on:
 *
 *   calls of a process before this   as they were (nfs4_redo.h)
 *   an old session to be destroyed   DESTROY_SESSION   (sess->need), when its calls are back; or
 *                                    that of a process before this one (nfs4_keep.h)
 *   the connection is not bound      BIND_CONN_TO_SESSION
 *   no client ID                     EXCHANGE_ID       (the client's)
 *   no session                       CREATE_SESSION
 *   opens of an earlier client ID    OPEN CLAIM_PREVIOUS, each (nfs4_reclaim.c)
 *   locks of what was just opened    LOCK reclaim, each (nfs4_lock_reclaim.c)
 *   not told to be reclaimed         RECLAIM_COMPLETE
 *   nothing                          up
 *
 * The holder of the client's token does this, one lane at a time.
 *
 * Context: the session's lane.
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static void setup_next(struct nfs4_session *s);

void nfs4_setup_failed(struct nfs4_session *s, int err, const char *text)
{
	uint64_t wait_ns;

	if (s->state == NFS4_SESSION_SETUP) {
		nfs4_stop_fail(s, err, "session", "%s", text);
		return;
	}
	if (s->state != NFS4_SESSION_RECOVERING)
		return;
	wait_ns = nfs4_delay_ns(s->backoff++);
	log_warn("%s: the session cannot be made again: %s; next attempt in %u.%u s", s->peer, text,
		(unsigned int)(wait_ns / NSEC_PER_SEC),
		(unsigned int)(wait_ns / (NSEC_PER_SEC / 10) % 10));
	nfs4_reclaim_release(s);
	nfs4_client_token_put(s);
	reactor_timer_in(s->r, &s->step_timer, wait_ns);
}

static void step_done(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	enum nfs4_step step = s->step;

	assert(call == &s->ctl && step != NFS4_STEP_NONE);
	s->step = NFS4_STEP_NONE;
	/* A DESTROY that the connection's end cut off did nothing to be noted. */
	if (s->cut || !nfs4_steps_result(s, step, call))
		return;
	if (s->state == NFS4_SESSION_SETUP || s->state == NFS4_SESSION_RECOVERING)
		setup_next(s);
	/* STOPPING and FAILING: nfs4_reply_done() and nfs4_stop_next() go on. */
}

/* At the end of a session, which need not be the client's. */
static bool is_of_session(enum nfs4_step step)
{
	return step == NFS4_STEP_BYE_DELEG || step == NFS4_STEP_BYE_SESS;
}

void nfs4_setup_send(struct nfs4_session *s, enum nfs4_step step)
{
	assert(s->step == NFS4_STEP_NONE && s->calls_ready);
	assert(s->token == NFS4_TOKEN_HELD || is_of_session(step)); /* I12 */
	s->step = step;
	s->ctl.done = step_done;
	if (step == NFS4_STEP_RECLAIM_OPEN || step == NFS4_STEP_RECLAIM_LOCK)
		s->ctl.cred = &s->reclaim.cred;
	else if (step == NFS4_STEP_REDO)
		s->ctl.cred = nfs4_redo_next(s);
	else if (step != NFS4_STEP_BYE_DELEG) /* nfs4_return_send_last() */
		s->ctl.cred = &s->cred;
	nfs4_call_start(&s->ctl, nfs4_steps_desc(step));
}

static void create_prepare(struct nfs4_session *s)
{
	const struct rpcrdma_conf *conf = &s->cl->conf.rdma;
	uint32_t data = (uint32_t)rpcrdma_data_size(s->x);

	nfs4_session_xdr_ask(&s->asked, conf->credits, data);
	nfs4_session_xdr_ask_back(
		&s->asked, rpcrdma_inline_reply_max(s->x), rpcrdma_inline_call_max(s->x));
	s->asked.clientid = s->cl->clientid;
	s->asked.sequence = s->cl->sequence;
}

static void setup_next(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;

	assert(s->token == NFS4_TOKEN_HELD); /* I12 */
	if (s->need & NFS4_NEED_CLIENT) {
		/* Unless another lane has made a new one since our session was made. */
		if (s->id_gen == cl->id_gen)
			cl->have_id = false;
		s->need &= ~NFS4_NEED_CLIENT;
	}
	if (s->need & NFS4_NEED_RECLAIM) {
		/* The server lost its memory and kept the session: as another client ID. */
		if (s->id_gen == cl->id_gen) {
			cl->id_gen++;
			atomic_fetch_add(&cl->generation, 1);
			cl->reclaim_done = false;
			nfs4_state_new_client(cl);
			nfs4_live_client(cl);
		}
		s->id_gen = cl->id_gen;
		s->need &= ~NFS4_NEED_RECLAIM;
	}
	if (cl->left_cnt > 0 && nfs4_redo_next(s)) {
		nfs4_setup_send(s, NFS4_STEP_REDO);
		return;
	}
	if (cl->left_cnt > 0 && !s->have_session) {
		nfs4_redo_note(cl);
		s->id = cl->left[--cl->left_cnt];
		s->have_session = true;
		s->need |= NFS4_NEED_DESTROY;
	}
	if ((s->need & NFS4_NEED_DESTROY) && s->have_session) {
		nfs4_setup_send(s, NFS4_STEP_DESTROY);
	} else if ((s->need & NFS4_NEED_BIND) && !(s->need & NFS4_NEED_SESSION)) {
		nfs4_setup_send(s, NFS4_STEP_BIND);
	} else if (!cl->have_id) {
		cl->id_tries++;
		nfs4_setup_send(s, NFS4_STEP_EXCHANGE);
	} else if (s->need & NFS4_NEED_SESSION) {
		s->have_session = false;
		create_prepare(s);
		nfs4_setup_send(s, NFS4_STEP_CREATE);
	} else if (!cl->reclaim_done && nfs4_reclaim_lock(s)) {
		nfs4_setup_send(s, NFS4_STEP_RECLAIM_LOCK);
	} else if (!cl->reclaim_done && nfs4_reclaim_next(s)) {
		nfs4_setup_send(s, NFS4_STEP_RECLAIM_OPEN);
	} else if (!cl->reclaim_done) {
		nfs4_setup_send(s, NFS4_STEP_RECLAIM_COMPLETE);
	} else {
		cl->id_tries = 0;
		s->need = 0;
		nfs4_client_token_put(s);
		nfs4_session_up(s);
	}
}

void nfs4_setup_start(struct nfs4_session *s)
{
	if (nfs4_client_token_get(s))
		setup_next(s);
}

/*
 * Calls in flight have their replies in the reply cache of the session that is to be destroyed: one
 * that is sent again without it (the connection may be lost) is executed twice. New ones wait
 * already. A call that hangs in the server holds up the others for a while only; not until it is
 * sent again, for it would take the new connection's one credit.
 */
void nfs4_setup_recover(struct nfs4_session *s)
{
	if ((s->need & NFS4_NEED_DESTROY) && s->have_session && s->sent_cnt > 0 && !s->drains) {
		s->drains = true;
		reactor_timer_in(s->r, &s->step_timer, s->cl->conf.rdma.timeo_ns / 4);
		return;
	}
	s->drains = false;
	nfs4_setup_start(s);
}

void nfs4_setup_drained(struct nfs4_session *s)
{
	if (!s->drains || s->sent_cnt > 0 || s->state != NFS4_SESSION_RECOVERING)
		return;
	reactor_timer_cancel(s->r, &s->step_timer);
	nfs4_setup_recover(s);
}

void nfs4_setup_granted(struct reactor_msg *msg)
{
	struct nfs4_session *s = container_of(msg, struct nfs4_session, token_msg);

	nfs4_client_token_granted(s);
	if (s->state == NFS4_SESSION_SETUP || s->state == NFS4_SESSION_RECOVERING)
		setup_next(s);
	else
		nfs4_stop_next(s);
}

void nfs4_setup_timer(struct reactor_timer *t)
{
	struct nfs4_session *s = container_of(t, struct nfs4_session, step_timer);

	if (s->state == NFS4_SESSION_RECOVERING)
		nfs4_setup_recover(s);
	else if (s->state == NFS4_SESSION_SETUP)
		nfs4_stop_fail(s, ETIMEDOUT, "session",
			"the server %s accepts the connection but makes no session: check that "
			"nfsd "
			"runs and is not hung",
			s->peer);
}
