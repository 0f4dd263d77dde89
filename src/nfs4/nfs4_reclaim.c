/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens reclaimed, and their locks: by the holder of the token from those of
 * an earlier client ID (CLAIM_PREVIOUS), and in the background by any session
 * that is up (CLAIM_FH). What that means for their users is nfs4_state.c's.
 *
 * Locks are reclaimed right after their open, by the same session, while the
 * open stays BUSY: nobody uses the new stateid before.
 *
 * What a delegation served becomes an open of its own; the delegation is
 * reclaimed with the first of them (nfs4_deleg.c). OPENs of the user may join
 * the open meanwhile (nfs4_share.c): if they need more than was asked for it
 * goes to the list once more.
 *
 *   after CLAIM_PREVIOUS    LOCK reclaim, else LOCK as any other
 *     somebody else's       -> lost, with all that is open or locked there
 *     refused otherwise     as the OPEN; the next OPEN starts over
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <string.h>

/* ---- in the hand of a session ---- */

/* The first of a list whose time has come; NULL: none, *ret_ns is when the next one is due. */
static struct nfs4_state *first_due(struct list *from, uint64_t now, uint64_t *ret_ns)
{
	*ret_ns = REACTOR_NEVER;
	list_for_each (node, from) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);

		if (st->retry_ns <= now)
			return st;
		if (st->retry_ns < *ret_ns)
			*ret_ns = st->retry_ns;
	}
	return NULL;
}

/*
 * The first state of a list, whose time has come by `now`, into the session's hand. False: there is
 * none; *ret_ns: when there is one.
 */
static bool take_first(struct nfs4_session *s, struct list *from, struct nfs4_reclaim *rg,
	struct nfs4_op_open *o, bool reclaim, uint64_t now, uint64_t *ret_ns)
{
	struct nfs4_state *st;

	mutex_lock(&s->cl->states.lock);
	st = first_due(from, now, ret_ns);
	if (st) {
		nfs4_state_take_in_hand(&s->cl->states, st, rg);
		rg->lo = NULL;
		rg->fh = st->fh;
		rg->cred = st->cred;
		memset(o, 0, sizeof(*o));
		o->file = &rg->fh;
		o->share_access = st->share_access;
		o->owner = st->owner;
		o->reclaim = reclaim;
		nfs4_deleg_reclaim(&s->cl->states, rg, st, o);
	}
	mutex_unlock(&s->cl->states.lock);
	return st != NULL;
}

/* Another server, or one that was set up anew, may have another file under the same handle. */
static bool is_other_file(const struct nfs4_state *st, const struct nfs4_attr *attr)
{
	return st->fileid && (attr->valid & NFS4_ATTR_FILEID) && attr->fileid != st->fileid;
}

/* The server has it open again, under another stateid, or one of its locks. It stays in hand. */
static void state_reclaimed(struct nfs4_reclaim *rg, const struct nfs4_call *call)
{
	struct nfs4_state *st = rg->state;
	const struct nfs4_stateid *sid = &call->u.open.stateid;
	bool same_id = st->id_gen == call->id_gen;

	if (call->desc == &nfs4_lock_reclaim_desc) {
		nfs4_lock_reclaim_granted(rg, call);
		return;
	}
	/* Two OPENs gave two: the server may have taken this one away (nfs4_share.c). */
	if (same_id && st->is_there && !nfs4_state_same_other(&st->stateid, sid))
		nfs4_revoked_add(&call->sess->cl->states, &st->stateid, &st->cred, st->id_gen);
	mutex_lock(&st->lock);
	/* An OPEN of the user's, done after this one, may have been told of before. */
	if (!same_id || !nfs4_state_same_other(&st->stateid, sid) ||
		nfs4_state_is_newer(sid->seqid, st->stateid.seqid))
		st->stateid = *sid;
	st->gen++;
	st->id_gen = call->id_gen;
	st->was_served = false;
	st->modes = 1u << call->u.open.share_access;
	mutex_unlock(&st->lock);
	rg->id_gen = call->id_gen;
	rg->other_file = is_other_file(st, &call->u.open.attr);
	nfs4_live_state(st, st->cl);
	nfs4_lock_reclaim_begin(st, same_id);
}

/* The next lock of what is in hand, into `call`; false: nothing is in hand any more. */
static bool next_lock(
	struct nfs4_states *all, struct nfs4_reclaim *rg, struct nfs4_call *call, bool reclaim)
{
	struct nfs4_state *st = rg->state;

	if (!st)
		return false;
	if (rg->id_gen == all->id_gen && rg->other_file) {
		nfs4_state_let_go(rg);
		nfs4_state_lose(all, st, NFS4ERR_STALE);
		nfs4_state_note_there(st);
		return false;
	}
	if (rg->id_gen == all->id_gen && nfs4_lock_reclaim_next(rg, call, reclaim))
		return true;
	nfs4_state_let_go(rg);
	st->tries = st->delays = 0;
	st->retry_ns = 0;
	if (rg->id_gen == all->id_gen && !nfs4_state_has_all(st))
		nfs4_state_reopen(all, st);
	else
		nfs4_state_place(all, st, rg->id_gen);
	return false;
}

static void note_orphan(const struct nfs4_call *call)
{
	/* Only soft mounts give up a file whose CLOSE did not end. */
	if (!call->err)
		log_debug("an open file was given up while it was opened again: it stays open on "
			  "the server until the lease ends");
}

/* ---- reclaimed ---- */

bool nfs4_reclaim_next(struct nfs4_session *s)
{
	uint64_t never;

	if (!take_first(s, &s->cl->states.reclaim, &s->reclaim, &s->ctl.u.open, true, REACTOR_NEVER,
		    &never))
		return false;
	nfs4_recall_await(&s->ctl);
	return true;
}

bool nfs4_reclaim_lock(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool more;

	mutex_lock(&all->lock);
	more = next_lock(all, &s->reclaim, &s->ctl, true);
	mutex_unlock(&all->lock);
	return more;
}

void nfs4_reclaim_release(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_state *st;

	mutex_lock(&all->lock);
	nfs4_deleg_release(all, &s->reclaim);
	st = nfs4_state_let_go(&s->reclaim);
	if (st)
		nfs4_state_move(
			st, all->may_reclaim ? &all->reclaim : &all->reopen, NFS4_STATE_BAD);
	mutex_unlock(&all->lock);
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
	case NFS4_ACT_BUSY:
	case NFS4_ACT_STATE:
	case NFS4_ACT_REVALIDATE:
		break;
	}
	return false;
}

/* states.lock held. */
static void reclaim_failed(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call, bool session_gone)
{
	/* By this OPEN or one before, whose LOCKs failed. */
	bool is_there = st->id_gen == all->id_gen;

	if (call->desc == &nfs4_lock_reclaim_desc && nfs4_lock_reclaim_is_conflict(call->status)) {
		nfs4_state_lose_lock(all, st, call->status);
		return;
	}
	/* An open without its locks is not to be used, whatever its stateid is good for. */
	if (session_gone)
		nfs4_state_move(st, &all->reclaim, is_there ? NFS4_STATE_BAD : NFS4_STATE_OPEN);
	else
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	if (is_there)
		nfs4_state_note_there(st);
}

bool nfs4_reclaim_done(struct nfs4_session *s, struct nfs4_call *call)
{
	struct nfs4_states *all = &s->cl->states;
	bool session_gone = call->err && is_about_session(call);

	mutex_lock(&all->lock);
	nfs4_deleg_reclaimed(all, &s->reclaim, call, session_gone);
	if (!s->reclaim.state)
		note_orphan(call);
	else if (!call->err)
		state_reclaimed(&s->reclaim, call);
	else
		reclaim_failed(all, nfs4_state_let_go(&s->reclaim), call, session_gone);
	mutex_unlock(&all->lock);
	if (call->status == NFS4ERR_NO_GRACE) {
		log_info("%s: the server takes no reclaims: files are opened anew", s->peer);
		nfs4_state_no_grace(s->cl);
	} else if (call->err && !session_gone) {
		log_info("%s: reclaim of an open file, %s: %s", s->peer, call->desc->name,
			nfs4_status_name(call->status));
	}
	return !session_gone;
}

/* ---- OPEN, by sess->ctl or ->reopener ---- */

/* A delegation that was not asked for is returned. */
static bool open_granted(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (o->reclaim_deleg || !nfs4_deleg_is(o->deleg_type))
		return true;
	nfs4_deleg_give_back(call);
	nfs4_lease_kick(call->sess);
	o->deleg_type = OPEN_DELEGATE_NONE;
	return true;
}

/* As a user's claim (nfs4_open.c). */
static bool open_plainly(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (!o->claims_left || o->plain_claim || nfs4_status_action(call->status) != NFS4_ACT_FAIL)
		return false;
	o->plain_claim = true;
	return true;
}

const struct nfs4_opdesc nfs4_reclaim_open_desc = {
	.name = "OPEN",
	.again = open_plainly,
	.encode = nfs4_open_xdr_encode,
	.decode = nfs4_open_xdr_decode,
	.granted = open_granted,
	.ended = nfs4_recall_ended,
	.cachethis = true,
};

/* ---- opened anew, one by one ---- */

/*
 * DELAY is about this file (it is on tape, or somebody who is gone has it delegated), and may be so
 * for hours; GRACE is about all of them.
 */
bool nfs4_reclaim_passes(const struct nfs4_call *call)
{
	return call == &call->sess->reopener && call->desc != &nfs4_lock_free_desc &&
	       call->status != NFS4ERR_GRACE;
}

/* Back to the list; true: the others have their turn meanwhile. */
static bool put_back(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_call *call)
{
	bool passes =
		nfs4_status_action(call->status) == NFS4_ACT_DELAY && nfs4_reclaim_passes(call);

	if (passes)
		st->retry_ns = reactor_now(call->sess->r) + nfs4_delay_ns(st->delays++);
	nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	return passes;
}

/* The LOCK after it failed: the same questions, but that the server has it open. */
static bool lock_failed(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call, uint32_t id_gen)
{
	enum nfs4_action act = nfs4_status_action(call->status);
	bool go_on;

	if (id_gen != all->id_gen) { /* all of it is gone */
		nfs4_state_place(all, st, id_gen);
		return true;
	}
	if (act == NFS4_ACT_FAIL || act == NFS4_ACT_REVALIDATE ||
		(act != NFS4_ACT_DELAY && call->rpc.result != RPC_TIMEDOUT &&
			call->err != -ESHUTDOWN && ++st->tries >= NFS4_STATE_TRIES)) {
		nfs4_state_lose_lock(all, st, call->status);
		return true;
	}
	go_on = put_back(all, st, call);
	nfs4_state_note_there(st);
	return go_on || act == NFS4_ACT_STATE; /* stateids of just now: OPEN makes new ones */
}

/* The OPEN failed: another time, or never? */
static bool is_never(struct nfs4_state *st, const struct nfs4_call *call)
{
	switch (nfs4_status_action(call->status)) {
	case NFS4_ACT_FAIL:
	case NFS4_ACT_STATE:
	case NFS4_ACT_REVALIDATE:
		return true;
	case NFS4_ACT_DELAY: /* another one's turn; GRACE, soft: it waited long enough */
		return false;
	case NFS4_ACT_NONE:
		if (call->rpc.result == RPC_TIMEDOUT || call->err == -ESHUTDOWN)
			return false;
		break;
	case NFS4_ACT_BUSY:
	case NFS4_ACT_SLOT:
	case NFS4_ACT_SESSION:
	case NFS4_ACT_CLIENT:
		break;
	}
	return ++st->tries >= NFS4_STATE_TRIES;
}

/* True: go on with the next one at once. */
static bool reopen_failed(struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call)
{
	bool is_there = st->is_there; /* by an OPEN before this one, whose LOCKs failed */
	bool go_on = is_never(st, call);

	if (call->u.open.claims_left && nfs4_status_action(call->status) == NFS4_ACT_STATE) {
		/* The server does not have that delegation any more: an open as any other. */
		nfs4_return_list_drop(all, &call->stateid, nfs4_status_is_revoked(call->status));
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
		return true;
	}
	if (go_on)
		nfs4_state_lose(all, st, call->status);
	else
		go_on = put_back(all, st, call);
	if (is_there)
		nfs4_state_note_there(st);
	return go_on;
}

static void reopen_done(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	bool go_on = true, more;

	mutex_lock(&all->lock);
	if (!s->reopen.state)
		note_orphan(call);
	else if (!call->err)
		state_reclaimed(&s->reopen, call);
	else if (call->desc == &nfs4_lock_reclaim_desc)
		go_on = lock_failed(all, nfs4_state_let_go(&s->reopen), call, s->reopen.id_gen);
	else
		go_on = reopen_failed(all, nfs4_state_let_go(&s->reopen), call);
	more = next_lock(all, &s->reopen, call, false);
	mutex_unlock(&all->lock);
	if (more) {
		nfs4_call_start(call, &nfs4_lock_reclaim_desc);
		return;
	}
	if (go_on)
		nfs4_reclaim_kick(s);
	nfs4_lease_kick(s); /* delegations of a process before may be returned now */
	nfs4_call_wake_state(s);
}

static void free_done(struct nfs4_call *call)
{
	/* Whatever the answer: with the open, or with the lease, it goes too. */
	nfs4_reclaim_kick(call->sess);
}

/* Is there a stateid to be freed? Nothing waits for that. */
static void free_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool more;

	mutex_lock(&all->lock);
	more = nfs4_lock_free_next(s);
	mutex_unlock(&all->lock);
	if (!more)
		return;
	s->reopener.done = free_done;
	s->reopener.cred = &s->reopen.cred;
	nfs4_call_start(&s->reopener, &nfs4_lock_free_desc);
}

/* A delegation of the process before served it: whatever its rights are by now. */
static void claim_left(struct nfs4_session *s, struct nfs4_call *call)
{
	struct nfs4_states *all = &s->cl->states;
	const struct nfs4_stateid *sid = NULL;

	mutex_lock(&all->lock);
	if (all->delegs.left)
		sid = nfs4_return_list_of(all, &s->reopen.fh);
	call->u.open.claims_left = sid != NULL;
	if (sid)
		call->stateid = *sid;
	mutex_unlock(&all->lock);
}

void nfs4_reclaim_kick(struct nfs4_session *s)
{
	struct nfs4_call *call = &s->reopener;
	uint64_t next_ns;

	if (!nfs4_session_is_up(s) || call->state != NFS4_CALL_IDLE)
		return;
	if (nfs4_revoked_pending(&s->cl->states)) {
		/* Whoever waits helps: the session that noted it may be on its way out. */
		nfs4_lease_kick(s);
		return;
	}
	if (!take_first(s, &s->cl->states.reopen, &s->reopen, &call->u.open, false,
		    reactor_now(s->r), &next_ns)) {
		if (next_ns != REACTOR_NEVER)
			reactor_timer_set(s->r, &s->reopen_timer, next_ns);
		free_next(s);
		return;
	}
	claim_left(s, call);
	call->done = reopen_done;
	call->cred = &s->reopen.cred;
	nfs4_recall_await(call);
	nfs4_call_start(call, &nfs4_reclaim_open_desc);
}

void nfs4_reclaim_timer(struct reactor_timer *t)
{
	nfs4_reclaim_kick(container_of(t, struct nfs4_session, reopen_timer));
}

void nfs4_reclaim_release_all(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_state *st;

	nfs4_reclaim_release(s);
	mutex_lock(&all->lock);
	st = nfs4_state_let_go(&s->reopen);
	if (st)
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	if (all->revoke.tester == s)
		all->revoke.tester = NULL;
	mutex_unlock(&all->lock);
}
