/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens that are shared (RFC 8881 sections 9.7 to 9.10): the OPENs of one open
 * owner on one file are one open of the server's, for the union of what they
 * asked for, under one stateid whose seqid counts.
 *
 *   share_access   what the users of the open believe to have: the union
 *   modes          of what the server is known to have heard: an OPEN_DOWNGRADE may name
 *                  these only, and if their union is less, the open is reclaimed for more
 *
 * OPENs run side by side, and their replies come in any order and may come
 * after the open was lost and reclaimed:
 *
 *   an OPEN's reply is        and there is           then
 *   of this client ID         the same stateid       the newer seqid, and this mode too
 *                             a delegation           the open is its own from now on
 *                             another, or none       it is not known which of the two is good:
 *                                                    on the list `reopen`, whose OPEN tells
 *   of an earlier one         nothing of the open's  reclaimed with the rest
 *                             less than it says      on the list `reopen`
 *
 * and whatever it is, nobody uses the open before it is there for all that its
 * users believe.
 *
 * Context: the lane of the call; the states' lists and locks as in nfs4_state.h.
 */
#include <errno.h>

#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

/* Those that the server remembers when nothing but `access` is left (section 18.18.3). */
static uint32_t modes_within(uint32_t modes, uint32_t access)
{
	for (uint32_t mode = 1; mode <= OPEN4_SHARE_ACCESS_BOTH; mode++)
		if (mode & ~access)
			modes &= ~(1u << mode);
	return modes;
}

/* ---- OPENs become one ---- */

/* st->lock held. The stateid is one that the server knows, or knew a moment ago. */
static void take_stateid(struct nfs4_state *st, const struct nfs4_call *call)
{
	st->stateid = call->u.open.stateid;
	st->id_gen = call->id_gen;
	st->gen++;
}

/*
 * The server made another open than the one there is. If it took that away nobody has heard of it:
 * it remembers it until it is freed, and does not free one that is good (NFS4ERR_LOCKS_HELD).
 */
static void free_old(struct nfs4_states *all, struct nfs4_state *st)
{
	if ((st->status != NFS4_STATE_OPEN && !st->is_there) || st->id_gen != all->id_gen)
		return;
	nfs4_revoked_add(all, &st->stateid, &st->cred, st->id_gen);
	nfs4_revoked_add_locks(all, st);
}

/* The OPEN was done under the client ID of now. */
static void join_live(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	bool was_served = st->deleg != NULL;
	bool same = !was_served && st->id_gen == call->id_gen &&
		    nfs4_state_same_other(&st->stateid, &o->stateid);
	bool good = false;

	if (!same && !was_served)
		free_old(all, st);
	mutex_lock(&st->lock);
	if (was_served)
		nfs4_deleg_unserve(st);
	if (same) {
		if (nfs4_state_is_newer(o->stateid.seqid, st->stateid.seqid))
			take_stateid(st, call);
		st->modes |= 1u << o->share_access;
	} else {
		take_stateid(st, call);
		st->modes = was_served ? 1u << o->share_access : 0;
		/* Whatever comes of the open: CLOSE ends this one. */
		st->is_there = true;
	}
	good = st->status == NFS4_STATE_OPEN && (same || was_served) && nfs4_state_has_all(st);
	mutex_unlock(&st->lock);
	switch ((enum nfs4_state_status)st->status) {
	case NFS4_STATE_OPEN:
		if (good)
			nfs4_state_place(all, st, call->id_gen);
		else
			nfs4_state_reopen(all, st);
		return;
	case NFS4_STATE_BAD:
		nfs4_state_reopen(all, st);
		return;
	case NFS4_STATE_BUSY: /* who has it in hand looks what it lacks */
	case NFS4_STATE_LOST:
		return;
	}
}

/* That OPEN is gone with its client ID; what it was for is to be had all the same. */
static void join_dead(struct nfs4_states *all, struct nfs4_state *st)
{
	bool is_own = !st->deleg && nfs4_state_has_all(st);
	bool is_served = st->deleg && nfs4_deleg_allows(st->deleg, st->share_access);

	if (st->status != NFS4_STATE_OPEN || st->id_gen != all->id_gen || is_own || is_served)
		return;
	if (!st->deleg) {
		nfs4_state_reopen(all, st);
		return;
	}
	mutex_lock(&st->lock);
	nfs4_deleg_unserve(st);
	mutex_unlock(&st->lock);
	nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
}

static void join(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_call *call)
{
	mutex_lock(&st->lock);
	st->share_access |= call->u.open.share_access;
	mutex_unlock(&st->lock);
	if (call->id_gen == all->id_gen)
		join_live(all, st, call);
	else
		join_dead(all, st);
}

void nfs4_share_open(struct nfs4_state *st, const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct nfs4_client *cl = call->sess->cl;

	/* Two of its OPENs may come back on two lanes at a time. */
	mutex_lock(&cl->states.lock);
	if (st->cl) {
		join(&cl->states, st, call);
	} else {
		nfs4_state_begin(st, cl, &o->fh, call->cred, o->owner);
		st->share_access = o->share_access;
		st->fileid = o->attr.valid & NFS4_ATTR_FILEID ? o->attr.fileid : 0;
		st->modes = 1u << o->share_access;
		st->stateid = o->stateid;
		st->id_gen = call->id_gen;
		nfs4_state_place(&cl->states, st, call->id_gen);
	}
	nfs4_live_state(st, cl);
	mutex_unlock(&cl->states.lock);
	nfs4_reclaim_kick(call->sess);
}

/* ---- OPEN_DOWNGRADE ---- */

enum nfs4_state_verdict nfs4_share_downgrade_take(struct nfs4_call *call)
{
	struct nfs4_op_downgrade *o = &call->u.downgrade;
	struct nfs4_state *st = o->state;
	struct nfs4_states *all = &call->sess->cl->states;
	bool go = false, valid;

	if (!st || !st->cl)
		return nfs4_state_end(call, 0);
	mutex_lock(&all->lock);
	mutex_lock(&st->lock);
	valid = o->share_access && !(o->share_access & ~st->share_access);
	if (valid) {
		/* However it ends: an open that is reclaimed meanwhile is for this. */
		st->share_access = o->share_access;
		go = !st->deleg && st->status == NFS4_STATE_OPEN && st->id_gen == all->id_gen &&
		     st->id_gen == call->sess->id_gen && (st->modes & 1u << o->share_access) &&
		     (nfs4_state_access_of(st->modes) & ~o->share_access);
	}
	if (go) {
		call->stateid = o->stateid = st->stateid;
		call->state_gen = st->gen;
	}
	mutex_unlock(&st->lock);
	mutex_unlock(&all->lock);
	return go ? NFS4_STATE_GO : nfs4_state_end(call, valid ? 0 : -EINVAL);
}

enum nfs4_state_verdict nfs4_share_downgrade_refused(struct nfs4_call *call)
{
	return nfs4_state_refused(call, NULL);
}

/* It ended with an answer of the server's that says no. */
static bool is_refused(const struct nfs4_call *call)
{
	return call->err && call->status != NFS4_OK &&
	       nfs4_status_action(call->status) != NFS4_ACT_DELAY;
}

static void downgrade_book(struct nfs4_call *call)
{
	static const struct nfs4_stateid none;
	struct nfs4_op_downgrade *o = &call->u.downgrade;
	struct nfs4_state *st = o->state;
	struct nfs4_states *all = &call->sess->cl->states;

	if (memcmp(&o->stateid, &none, sizeof(none)) == 0 || is_refused(call) || !st->cl)
		return;
	mutex_lock(&all->lock);
	mutex_lock(&st->lock);
	/* Without an answer it may have been done: what is not known to be there is not. */
	if (st->id_gen == call->id_gen && nfs4_state_same_other(&st->stateid, &o->stateid)) {
		st->modes = modes_within(st->modes, o->share_access);
		if (!call->err && nfs4_state_is_newer(o->stateid.seqid, st->stateid.seqid)) {
			st->stateid.seqid = o->stateid.seqid;
			st->gen++;
		}
	}
	mutex_unlock(&st->lock);
	nfs4_live_state(st, st->cl);
	mutex_unlock(&all->lock);
}

void nfs4_share_downgrade_ended(struct nfs4_call *call)
{
	downgrade_book(call);
	call->done(call);
}

/* ---- nfs4_claim() ---- */

enum nfs4_state_verdict nfs4_share_claim_take(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;
	struct nfs4_state *st = o->claim;
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_END;

	if (!st->cl)
		return nfs4_state_end(call, 0);
	mutex_lock(&all->lock);
	if (st->status == NFS4_STATE_BUSY) {
		verdict = NFS4_STATE_WAIT;
	} else if (st->status == NFS4_STATE_LOST) {
		verdict = NFS4_STATE_FAIL;
	} else if (st->deleg && (int32_t)(s->id_gen - st->id_gen) > 0) {
		verdict = NFS4_STATE_WAIT; /* it is about to be reclaimed, or reopened */
	} else if (st->deleg) {
		o->share_access = st->share_access;
		call->stateid = st->deleg->stateid;
		call->state_gen = st->gen;
		verdict = NFS4_STATE_GO;
	}
	mutex_unlock(&all->lock);
	if (verdict != NFS4_STATE_END)
		return verdict;
	nfs4_reclaim_kick(s);
	return nfs4_state_end(call, 0);
}

bool nfs4_share_claim_granted(struct nfs4_call *call)
{
	if (call->u.open.claim->cl)
		nfs4_share_open(call->u.open.claim, call);
	return nfs4_return_unasked(call);
}

enum nfs4_state_verdict nfs4_share_claim_refused(struct nfs4_call *call)
{
	struct nfs4_state *st = call->u.open.claim;
	bool was_served = nfs4_deleg_serves(st);
	enum nfs4_state_verdict verdict = nfs4_state_refused(call, NULL);

	/* The delegation is lost: there is nothing to claim, and nothing to wait for. */
	if (verdict == NFS4_STATE_WAIT && was_served && !nfs4_deleg_serves(st))
		return NFS4_STATE_GO;
	return verdict;
}

static void claim_book(struct nfs4_call *call)
{
	struct nfs4_state *st = call->u.open.claim;
	struct nfs4_states *all = &call->sess->cl->states;

	if (!is_refused(call) || !st->cl)
		return;
	mutex_lock(&all->lock);
	if (st->deleg) {
		mutex_lock(&st->lock);
		nfs4_deleg_unserve(st);
		mutex_unlock(&st->lock);
		nfs4_state_lose(all, st, call->status);
	}
	mutex_unlock(&all->lock);
}

void nfs4_share_claim_ended(struct nfs4_call *call)
{
	claim_book(call);
	nfs4_recall_ended(call);
}
