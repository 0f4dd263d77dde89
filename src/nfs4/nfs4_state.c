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
 *                      need the state wait, and those that would see its locks missing; GRACE and
 *                      DELAY are waited for as in any call
 *       taken          -> held
 *       refused        -> lost: I/O on the file fails from then on
 *   revoked            held -> reopen, or lost if somebody took it away (nfs4_revoke.c)
 *   less than wanted   held -> reopen: an OPEN that joined it says so (nfs4_share.c)
 *
 * Whether the server was restarted or only dropped us nobody says reliably; it
 * tells by its answer to the first CLAIM_PREVIOUS. A second failure on the way
 * makes another client ID: what was reclaimed already is reclaimed once more.
 *
 * The OPENs of one owner on one file are one open (nfs4_share.c): the same OPEN
 * may be executed twice, and one CLOSE ends them all. Its seqid counts them, and
 * they run beside what is done on it, which is therefore sent with seqid 0,
 * "the newest" (RFC 8881 section 8.2.2); CLOSE names the one it means.
 *
 * An open that a delegation serves (nfs4_deleg.c) has a copy of its stateid,
 * and is `held` as others are.
 *
 * Byte-range locks hang on their open and are reclaimed with it. How both are is
 * nfs4_reclaim.c's.
 */
#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void nfs4_state_init(struct nfs4_states *all)
{
	mutex_init(&all->lock, MUTEX_NFS4_STATES);
	list_init(&all->held);
	list_init(&all->reclaim);
	list_init(&all->reopen);
	list_init(&all->in_hand);
	list_init(&all->lost);
	list_init(&all->revoke.revoked);
	list_init(&all->frees);
	nfs4_deleg_init(&all->delegs);
}

void nfs4_state_fini(struct nfs4_states *all)
{
	struct list *node;

	/* Nobody else is there; but what is dropped from live.h is so under it. */
	mutex_lock(&all->lock);
	list_splice_back(&all->lost, &all->held);
	list_splice_back(&all->lost, &all->reclaim);
	list_splice_back(&all->lost, &all->reopen);
	list_splice_back(&all->lost, &all->in_hand);
	while ((node = list_pop_front(&all->lost))) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);

		nfs4_lock_hang_detach(st);
		list_del(&st->served);
		mutex_destroy(&st->lock);
		st->cl = NULL;
	}
	nfs4_deleg_fini(&all->delegs);
	nfs4_lock_free_fini(all);
	nfs4_revoked_fini(&all->revoke);
	mutex_unlock(&all->lock);
	mutex_destroy(&all->lock);
}

/* ---- lists; states.lock held ---- */

void nfs4_state_move(struct nfs4_state *st, struct list *to, enum nfs4_state_status status)
{
	assert(!st->reclaim); /* I11 */
	list_del(&st->link);
	list_push_back(to, &st->link);
	mutex_lock(&st->lock);
	st->status = status;
	if (status != NFS4_STATE_BUSY)
		st->is_there = false;
	mutex_unlock(&st->lock);
}

void nfs4_state_take_in_hand(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_reclaim *rg)
{
	mutex_assert_held(&all->lock);
	assert(!rg->state && st->status != NFS4_STATE_BUSY); /* I11 */
	nfs4_state_move(st, &all->in_hand, NFS4_STATE_BUSY);
	st->reclaim = rg;
	rg->state = st;
}

void nfs4_state_note_there(struct nfs4_state *st)
{
	mutex_lock(&st->lock);
	st->is_there = true;
	mutex_unlock(&st->lock);
}

void nfs4_state_place(struct nfs4_states *all, struct nfs4_state *st, uint32_t id_gen)
{
	mutex_assert_held(&all->lock);
	if (id_gen == all->id_gen)
		nfs4_state_move(st, &all->held, NFS4_STATE_OPEN);
	else if (all->may_reclaim)
		nfs4_state_move(st, &all->reclaim, NFS4_STATE_OPEN);
	else
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
}

static void lose_for(
	struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why, const char *what)
{
	nfs4_state_move(st, &all->lost, NFS4_STATE_LOST);
	nfs4_live_state(st, st->cl);
	nfs4_lock_hang_drop_all(st);
	log_err("file %llu: the server does not give back what we had %s (%s): all use of the open "
		"file fails from now on",
		(unsigned long long)st->fileid, what, nfs4_status_name(why));
}

void nfs4_state_lose(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why)
{
	mutex_assert_held(&all->lock);
	lose_for(all, st, why, "open");
}

void nfs4_state_lose_lock(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why)
{
	mutex_assert_held(&all->lock);
	lose_for(all, st, why, "locked");
	nfs4_state_note_there(st);
}

struct nfs4_state *nfs4_state_let_go(struct nfs4_reclaim *rg)
{
	struct nfs4_state *st = rg->state;

	rg->state = NULL;
	if (st)
		st->reclaim = NULL;
	return st;
}

/* ---- what it is open for ---- */

uint32_t nfs4_state_access_of(uint32_t modes)
{
	uint32_t access = 0;

	for (uint32_t mode = 1; mode <= OPEN4_SHARE_ACCESS_BOTH; mode++)
		if (modes & 1u << mode)
			access |= mode;
	return access;
}

bool nfs4_state_has_all(const struct nfs4_state *st)
{
	return !(st->share_access & ~nfs4_state_access_of(st->modes));
}

void nfs4_state_reopen(struct nfs4_states *all, struct nfs4_state *st)
{
	mutex_assert_held(&all->lock);
	nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	nfs4_state_note_there(st);
}

/* ---- the user's side ---- */

void nfs4_state_begin(struct nfs4_state *st, struct nfs4_client *cl, const struct nfs4_fh *fh,
	const struct rpc_cred *cred, uint64_t owner)
{
	memset(st, 0, sizeof(*st));
	st->cl = cl;
	st->fh = *fh;
	st->owner = owner;
	st->cred = *cred;
	mutex_init(&st->lock, MUTEX_NFS4_STATE);
	list_init(&st->link);
	list_init(&st->lockowners);
	list_init(&st->served);
	st->test_round = cl->states.revoke.round; /* newer than what that is about */
}

void nfs4_state_end_of(struct nfs4_states *all, struct nfs4_state *st)
{
	struct nfs4_client *cl = st->cl;

	mutex_assert_held(&all->lock);
	list_del(&st->link);
	list_del(&st->served);
	if (st->reclaim)
		nfs4_state_let_go(st->reclaim);
	if (st->tested)
		*st->tested = NULL;
	nfs4_lock_hang_detach(st);
	nfs4_lock_free_forget(all, st);
	st->cl = NULL;
	nfs4_live_state(st, cl);
}

void nfs4_state_forget(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->cl;

	if (!cl)
		return;
	mutex_lock(&cl->states.lock);
	nfs4_state_end_of(&cl->states, st);
	mutex_unlock(&cl->states.lock);
	mutex_destroy(&st->lock);
}

bool nfs4_state_is_lost(struct nfs4_state *st)
{
	bool lost;

	if (!st->cl)
		return false;
	mutex_lock(&st->lock);
	lost = st->status == NFS4_STATE_LOST;
	mutex_unlock(&st->lock);
	return lost;
}

/* ---- another client ID ---- */

void nfs4_state_new_client(struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;

	mutex_lock(&all->lock);
	all->id_gen = cl->id_gen;
	all->may_reclaim = true;
	list_splice_back(&all->reclaim, &all->held);
	/* The server knew of these by delegations, which are gone as well. */
	list_for_each_safe (node, next, &all->reopen) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);

		if (st->was_served)
			nfs4_state_move(st, &all->reclaim, NFS4_STATE_OPEN);
	}
	nfs4_deleg_new_client(all);
	mutex_unlock(&all->lock);
}

void nfs4_state_no_grace(struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;

	mutex_lock(&all->lock);
	all->may_reclaim = false;
	list_splice_back(&all->reopen, &all->reclaim);
	nfs4_deleg_no_grace(all);
	mutex_unlock(&all->lock);
}

/* Section 8.5: somebody wants us to let go of it. The kernel's client opens it anew. */
static void taken_away(
	struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_stateid *sid)
{
	bool is_lock = memcmp(sid->other, st->stateid.other, sizeof(sid->other)) != 0;

	if (is_lock)
		nfs4_state_lose_lock(all, st, NFS4ERR_ADMIN_REVOKED);
	else
		nfs4_state_lose(all, st, NFS4ERR_ADMIN_REVOKED);
}

void nfs4_state_bad(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_stateid *sid,
	enum nfs4_status status)
{
	bool is_closed;

	mutex_assert_held(&all->lock);
	/* In work, lost, or on its list already. */
	if (st->status != NFS4_STATE_OPEN || st->id_gen != all->id_gen)
		return;
	mutex_lock(&st->lock);
	is_closed = st->is_closed;
	st->is_gone = is_closed && nfs4_state_same_other(sid, &st->stateid);
	mutex_unlock(&st->lock);
	if (is_closed) /* nobody wants it any more */
		return;
	if (status == NFS4ERR_ADMIN_REVOKED)
		taken_away(all, st, sid);
	else
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
}

/* ---- calls ---- */

struct nfs4_state *nfs4_state_of(const struct nfs4_call *call)
{
	struct nfs4_state *st = NULL;

	if (call->desc->state_off)
		memcpy(&st, (const char *)call + call->desc->state_off, sizeof(st));
	return st;
}

enum nfs4_state_verdict nfs4_state_end(struct nfs4_call *call, int err)
{
	call->err = err;
	call->status = NFS4_OK;
	return NFS4_STATE_END;
}

/* st->lock held. It is of an earlier client ID. */
static bool is_stale(const struct nfs4_call *call, const struct nfs4_state *st)
{
	return (int32_t)(call->sess->id_gen - st->id_gen) > 0;
}

enum nfs4_state_verdict nfs4_state_take_from(struct nfs4_call *call, struct nfs4_state *st)
{
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;

	if (!st->cl)
		return NFS4_STATE_FAIL;
	mutex_lock(&st->lock);
	if (st->status == NFS4_STATE_BUSY)
		verdict = NFS4_STATE_WAIT;
	else if (st->status == NFS4_STATE_LOST)
		verdict = NFS4_STATE_FAIL;
	else if (st->status == NFS4_STATE_BAD || is_stale(call, st))
		verdict = NFS4_STATE_WAIT;
	call->stateid = st->stateid;
	call->stateid.seqid = 0;
	call->state_gen = st->gen;
	mutex_unlock(&st->lock);
	return verdict;
}

/* Section 8.2.2: whichever is the newest. */
static void use_newest(struct nfs4_state *st)
{
	mutex_lock(&st->lock);
	st->stateid.seqid = 0;
	st->gen++;
	mutex_unlock(&st->lock);
}

/* The stateid is the current one, and the server does not know it. states.lock held. */
static enum nfs4_state_verdict state_refused(struct nfs4_states *all, struct nfs4_state *st,
	struct nfs4_call *call, struct nfs4_stateid *of_locks)
{
	if (st->status != NFS4_STATE_OPEN) /* is in work, or lost: desc->take tells */
		return NFS4_STATE_GO;
	if (st->deleg)
		return nfs4_deleg_refused(all, st, call);
	if (call->status == NFS4ERR_ADMIN_REVOKED) {
		taken_away(all, st, &call->stateid);
		return NFS4_STATE_FAIL;
	}
	if (call->state_tries++ >= NFS4_STATE_TRIES) {
		nfs4_state_lose(all, st, call->status);
		return NFS4_STATE_FAIL;
	}
	if (call->status == NFS4ERR_OLD_STATEID && of_locks) {
		of_locks->seqid = 0; /* section 8.2.2, as well */
		return NFS4_STATE_GO;
	}
	if (call->status == NFS4ERR_OLD_STATEID) {
		use_newest(st);
		return NFS4_STATE_GO;
	}
	/* With another client ID than the call's it is on its list already. */
	if (st->id_gen == all->id_gen)
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	return NFS4_STATE_WAIT;
}

enum nfs4_state_verdict nfs4_state_refused(struct nfs4_call *call, struct nfs4_stateid *of_locks)
{
	struct nfs4_state *st = nfs4_state_of(call);
	struct nfs4_states *all = &call->sess->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;

	if (!st)
		return NFS4_STATE_FAIL;
	nfs4_revoked_note(call, st, NULL);
	mutex_lock(&all->lock);
	if (st->gen == call->state_gen)
		verdict = state_refused(all, st, call, of_locks);
	mutex_unlock(&all->lock);
	return verdict;
}

/* ---- CLOSE ---- */

/* It is not open any more, which is as good. */
static enum nfs4_state_verdict is_closed_already(struct nfs4_call *call, struct nfs4_state *st)
{
	nfs4_state_forget(st);
	call->err = 0;
	return NFS4_STATE_END;
}

/* st->lock held. The server has never heard of it, freed it, or lost it. */
static bool is_nowhere(const struct nfs4_call *call, const struct nfs4_state *st)
{
	if (st->deleg || st->is_gone)
		return true;
	if (st->is_there && call->sess->id_gen == st->id_gen)
		return false;
	return st->status == NFS4_STATE_LOST || st->status == NFS4_STATE_BAD || is_stale(call, st);
}

enum nfs4_state_verdict nfs4_state_close_take(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_state_of(call);
	bool busy, nowhere;

	if (!st) {
		call->stateid = nfs4_stateid_anon;
		return NFS4_STATE_GO;
	}
	if (!st->cl)
		return is_closed_already(call, st);
	mutex_lock(&st->lock);
	busy = st->status == NFS4_STATE_BUSY;
	nowhere = !busy && is_nowhere(call, st);
	call->stateid = st->stateid; /* it names the one it means */
	call->state_gen = st->gen;
	if (!busy && !nowhere)
		st->is_closed = true;
	mutex_unlock(&st->lock);
	if (nowhere)
		return is_closed_already(call, st);
	return busy ? NFS4_STATE_WAIT : NFS4_STATE_GO;
}

bool nfs4_state_close_granted(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_state_of(call);

	if (st)
		nfs4_state_forget(st);
	return true;
}

/* As state_refused(). *ret_gone: there is nothing to close any more. */
static enum nfs4_state_verdict close_refused(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call, bool *ret_gone)
{
	*ret_gone = call->status != NFS4ERR_OLD_STATEID;
	if (*ret_gone)
		return NFS4_STATE_END;
	if (st->is_there && call->state_tries++ < NFS4_STATE_TRIES) {
		use_newest(st);
		return NFS4_STATE_GO;
	}
	*ret_gone = st->status == NFS4_STATE_LOST;
	return *ret_gone ? NFS4_STATE_END : state_refused(all, st, call, NULL);
}

enum nfs4_state_verdict nfs4_state_close_refused(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_state_of(call);
	struct nfs4_states *all = &call->sess->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;
	bool gone = false;

	if (!st)
		return NFS4_STATE_FAIL;
	nfs4_revoked_note(call, st, NULL);
	mutex_lock(&all->lock);
	if (st->gen == call->state_gen)
		verdict = close_refused(all, st, call, &gone);
	mutex_unlock(&all->lock);
	return gone ? is_closed_already(call, st) : verdict;
}

void nfs4_state_close_ended(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_state_of(call);

	if (call->err && st && st->cl) {
		mutex_lock(&st->lock);
		st->is_closed = st->is_gone = false;
		mutex_unlock(&st->lock);
	}
	call->done(call);
}
