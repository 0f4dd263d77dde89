/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens, and how they survive the server's restart, the lease's end and the
 * loss of a single one.
 *
 *   new client ID      held -> reclaim
 *     reclaim          OPEN CLAIM_PREVIOUS, one after the other, by the session that holds the
 *                      token, before RECLAIM_COMPLETE (nfs4_setup.c); calls wait
 *       taken          -> held
 *       refused        -> reopen; NFS4ERR_NO_GRACE: all of them
 *   stateid refused    held -> reopen
 *     reopen           OPEN CLAIM_FH, in the background, by any session that is up; only calls that
 *                      need the state wait; GRACE and DELAY are waited for as in any call
 *       taken          -> held
 *       refused        -> lost: I/O on the file fails from then on
 *
 * Whether the server was restarted or only dropped us nobody says reliably; it
 * tells by its answer to the first CLAIM_PREVIOUS. A second failure on the way
 * makes another client ID: what was had again already is reclaimed once more.
 *
 * Every open has an owner of its own, so that the same OPEN may be executed
 * twice and still means one open, and CLOSE ends it.
 *
 * Byte-range locks hang on their open: state_regained() is where they are to
 * be had again, before anybody uses the new stateid.
 */
#include "nfs4_sess_int.h"

#include <errno.h>
#include <string.h>

/* Refusals of fresh stateids that one call bears, or OPENs without an answer one state. */
#define MAX_TRIES 3u

void nfs4_states_init(struct nfs4_states *all)
{
	pthread_mutex_init(&all->lock, NULL);
	list_init(&all->held);
	list_init(&all->reclaim);
	list_init(&all->reopen);
	list_init(&all->lost);
}

void nfs4_states_fini(struct nfs4_states *all)
{
	struct list *node;

	list_splice_back(&all->lost, &all->held);
	list_splice_back(&all->lost, &all->reclaim);
	list_splice_back(&all->lost, &all->reopen);
	while ((node = list_pop_front(&all->lost))) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);

		pthread_mutex_destroy(&st->lock);
		st->cl = NULL;
	}
	pthread_mutex_destroy(&all->lock);
}

/* ---- lists; states.lock held ---- */

static void move_to(struct nfs4_state *st, struct list *to, enum nfs4_state_status status)
{
	list_del(&st->link);
	list_push_back(to, &st->link);
	pthread_mutex_lock(&st->lock);
	st->status = status;
	pthread_mutex_unlock(&st->lock);
}

/* A stateid of client ID id_gen is there: is that still the client ID? */
static void place(struct nfs4_states *all, struct nfs4_state *st, uint32_t id_gen)
{
	if (id_gen == all->id_gen)
		move_to(st, &all->held, NFS4_STATE_OPEN);
	else if (all->may_reclaim)
		move_to(st, &all->reclaim, NFS4_STATE_OPEN);
	else
		move_to(st, &all->reopen, NFS4_STATE_BAD);
}

static void lose(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why)
{
	move_to(st, &all->lost, NFS4_STATE_LOST);
	log_err("file %llu: the server does not give back what we had open (%s): all use of the "
		"open "
		"file fails from now on",
		(unsigned long long)st->fileid, nfs4_status_name(why));
}

/* The first state of a list into the session's hand; false: it is empty. */
static bool take_first(struct nfs4_sess *s, struct list *from, struct nfs4_regain *rg,
	struct nfs4_op_open *o, bool reclaim)
{
	struct list *node;
	struct nfs4_state *st;

	pthread_mutex_lock(&s->cl->states.lock);
	node = list_pop_front(from);
	if (node) {
		st = container_of(node, struct nfs4_state, link);
		pthread_mutex_lock(&st->lock);
		st->status = NFS4_STATE_BUSY;
		pthread_mutex_unlock(&st->lock);
		st->regain = rg;
		rg->state = st;
		rg->fh = st->fh;
		rg->cred = st->cred;
		memset(o, 0, sizeof(*o));
		o->file = &rg->fh;
		o->share_access = st->share_access;
		o->owner = st->owner;
		o->reclaim = reclaim;
	}
	pthread_mutex_unlock(&s->cl->states.lock);
	return node != NULL;
}

/* Out of the session's hand; NULL: it was closed meanwhile. */
static struct nfs4_state *let_go(struct nfs4_regain *rg)
{
	struct nfs4_state *st = rg->state;

	rg->state = NULL;
	if (st)
		st->regain = NULL;
	return st;
}

/* The server has it open again, under another stateid. */
static void state_regained(struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call)
{
	pthread_mutex_lock(&st->lock);
	st->stateid = call->u.open.stateid;
	st->gen++;
	st->id_gen = call->id_gen;
	pthread_mutex_unlock(&st->lock);
	st->tries = 0;
	place(all, st, call->id_gen);
}

static void note_orphan(const struct nfs4_call *call)
{
	/* Only soft mounts give up a file whose CLOSE did not end. */
	if (!call->err)
		log_debug("an open file was given up while it was opened again: it stays open on "
			  "the server until the lease ends");
}

/* ---- the user's side ---- */

void nfs4_state_open(struct nfs4_state *st, const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct nfs4_client *cl = call->sess->cl;

	memset(st, 0, sizeof(*st));
	st->cl = cl;
	st->fh = o->fh;
	st->owner = o->owner;
	st->share_access = o->share_access;
	st->cred = *call->cred;
	st->fileid = o->attr.valid & NFS4_ATTR_FILEID ? o->attr.fileid : 0;
	pthread_mutex_init(&st->lock, NULL);
	list_init(&st->link);
	st->stateid = o->stateid;
	st->id_gen = call->id_gen;
	pthread_mutex_lock(&cl->states.lock);
	place(&cl->states, st, call->id_gen);
	pthread_mutex_unlock(&cl->states.lock);
	nfs4_reopen_kick(call->sess);
}

void nfs4_state_forget(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->cl;

	if (!cl)
		return;
	pthread_mutex_lock(&cl->states.lock);
	list_del(&st->link);
	if (st->regain)
		let_go(st->regain);
	pthread_mutex_unlock(&cl->states.lock);
	st->cl = NULL;
	pthread_mutex_destroy(&st->lock);
}

/* ---- another client ID ---- */

void nfs4_states_new_client(struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;

	pthread_mutex_lock(&all->lock);
	all->id_gen = cl->id_gen;
	all->may_reclaim = true;
	list_splice_back(&all->reclaim, &all->held);
	pthread_mutex_unlock(&all->lock);
}

void nfs4_states_no_grace(struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;

	pthread_mutex_lock(&all->lock);
	all->may_reclaim = false;
	list_splice_back(&all->reopen, &all->reclaim);
	pthread_mutex_unlock(&all->lock);
}

void nfs4_states_all_expired(struct nfs4_client *cl)
{
	pthread_mutex_lock(&cl->states.lock);
	list_splice_back(&cl->states.reopen, &cl->states.held);
	pthread_mutex_unlock(&cl->states.lock);
}

bool nfs4_reclaim_next(struct nfs4_sess *s)
{
	return take_first(s, &s->cl->states.reclaim, &s->reclaim, &s->ctl.u.open, true);
}

/* Nothing about the file: the session, the client ID or the slot is no good. */
static bool is_about_session(const struct nfs4_call *call)
{
	switch (nfs4_status_action(call->status)) {
	case NFS4_ACT_SLOT:
	case NFS4_ACT_SESSION:
	case NFS4_ACT_CLIENT:
		return true;
	case NFS4_ACT_NONE:
	case NFS4_ACT_FAIL:
	case NFS4_ACT_DELAY:
	case NFS4_ACT_STATE:
	case NFS4_ACT_REVALIDATE:
		break;
	}
	return false;
}

bool nfs4_reclaim_done(struct nfs4_sess *s, struct nfs4_call *call)
{
	struct nfs4_states *all = &s->cl->states;
	bool session_gone = call->err && is_about_session(call);
	struct nfs4_state *st;

	pthread_mutex_lock(&all->lock);
	st = let_go(&s->reclaim);
	if (!st)
		note_orphan(call);
	else if (!call->err)
		state_regained(all, st, call);
	else if (session_gone)
		move_to(st, &all->reclaim, NFS4_STATE_OPEN);
	else
		move_to(st, &all->reopen, NFS4_STATE_BAD);
	pthread_mutex_unlock(&all->lock);
	if (call->status == NFS4ERR_NO_GRACE) {
		log_info("%s: the server takes no reclaims: files are opened anew", s->peer);
		nfs4_states_no_grace(s->cl);
	} else if (call->err && !session_gone) {
		log_info(
			"%s: reclaim of an open file: %s", s->peer, nfs4_status_name(call->status));
	}
	return !session_gone;
}

/* ---- opened anew, one by one ---- */

/* The OPEN failed: another time, or never? True: go on with the next one at once. */
static bool reopen_failed(struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call)
{
	switch (nfs4_status_action(call->status)) {
	case NFS4_ACT_FAIL:
	case NFS4_ACT_STATE:
	case NFS4_ACT_REVALIDATE:
		lose(all, st, call->status);
		return true;
	case NFS4_ACT_DELAY: /* soft: it waited long enough */
		break;
	case NFS4_ACT_NONE:
		if (call->rpc.result == RPC_TIMEDOUT || call->err == -ESHUTDOWN)
			break;
		__attribute__((fallthrough));
	case NFS4_ACT_SLOT:
	case NFS4_ACT_SESSION:
	case NFS4_ACT_CLIENT:
		if (++st->tries < MAX_TRIES)
			break;
		lose(all, st, call->status);
		return true;
	}
	move_to(st, &all->reopen, NFS4_STATE_BAD);
	return false;
}

static void reopen_done(struct nfs4_call *call)
{
	struct nfs4_sess *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	bool go_on = true;
	struct nfs4_state *st;

	pthread_mutex_lock(&all->lock);
	st = let_go(&s->reopen);
	if (!st)
		note_orphan(call);
	else if (!call->err)
		state_regained(all, st, call);
	else
		go_on = reopen_failed(all, st, call);
	pthread_mutex_unlock(&all->lock);
	if (go_on)
		nfs4_reopen_kick(s);
	nfs4_calls_wake_state(s);
}

void nfs4_reopen_kick(struct nfs4_sess *s)
{
	struct nfs4_call *call = &s->reopener;

	if (!nfs4_sess_is_up(s) || call->state != NFS4_CALL_IDLE)
		return;
	if (!take_first(s, &s->cl->states.reopen, &s->reopen, &call->u.open, false))
		return;
	call->done = reopen_done;
	call->cred = &s->reopen.cred;
	nfs4_call_start(call, &nfs4_open_desc);
}

void nfs4_states_release(struct nfs4_sess *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_state *st;

	pthread_mutex_lock(&all->lock);
	st = let_go(&s->reclaim);
	if (st)
		move_to(st, all->may_reclaim ? &all->reclaim : &all->reopen, NFS4_STATE_BAD);
	st = let_go(&s->reopen);
	if (st)
		move_to(st, &all->reopen, NFS4_STATE_BAD);
	pthread_mutex_unlock(&all->lock);
}

/* ---- calls ---- */

struct nfs4_state *nfs4_call_state(const struct nfs4_call *call)
{
	struct nfs4_state *st = NULL;

	if (call->desc->state_off)
		memcpy(&st, (const char *)call + call->desc->state_off, sizeof(st));
	return st;
}

enum nfs4_state_verdict nfs4_state_take(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_call_state(call);
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;
	bool stale;

	if (!st) {
		call->stateid = nfs4_stateid_anon;
		return NFS4_STATE_GO;
	}
	if (!st->cl)
		return call->desc->closes ? NFS4_STATE_GONE : NFS4_STATE_FAIL;
	pthread_mutex_lock(&st->lock);
	stale = (int32_t)(call->sess->id_gen - st->id_gen) > 0;
	if (st->status == NFS4_STATE_LOST)
		verdict = call->desc->closes ? NFS4_STATE_GONE : NFS4_STATE_FAIL;
	else if (st->status == NFS4_STATE_BUSY)
		verdict = NFS4_STATE_WAIT;
	else if (st->status == NFS4_STATE_BAD || stale)
		verdict = call->desc->closes ? NFS4_STATE_GONE : NFS4_STATE_WAIT;
	call->stateid = st->stateid;
	call->state_gen = st->gen;
	pthread_mutex_unlock(&st->lock);
	return verdict;
}

/* The stateid is the current one, and the server does not know it. states.lock held. */
static enum nfs4_state_verdict state_refused(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call)
{
	if (call->desc->closes && call->status != NFS4ERR_OLD_STATEID)
		return NFS4_STATE_GONE;
	if (st->status != NFS4_STATE_OPEN) /* is in work, or lost: nfs4_state_take() tells */
		return NFS4_STATE_GO;
	if (call->state_tries++ >= MAX_TRIES) {
		lose(all, st, call->status);
		return NFS4_STATE_FAIL;
	}
	if (call->status == NFS4ERR_OLD_STATEID) {
		/* Section 8.2.2: whichever is the newest. */
		pthread_mutex_lock(&st->lock);
		st->stateid.seqid = 0;
		st->gen++;
		pthread_mutex_unlock(&st->lock);
		return NFS4_STATE_GO;
	}
	/* With another client ID than the call's it is on its list already. */
	if (st->id_gen == all->id_gen)
		move_to(st, &all->reopen, NFS4_STATE_BAD);
	return NFS4_STATE_WAIT;
}

enum nfs4_state_verdict nfs4_state_refused(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_call_state(call);
	struct nfs4_states *all = &call->sess->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;

	if (!st)
		return NFS4_STATE_FAIL;
	pthread_mutex_lock(&all->lock);
	if (st->gen == call->state_gen)
		verdict = state_refused(all, st, call);
	pthread_mutex_unlock(&all->lock);
	return verdict;
}
