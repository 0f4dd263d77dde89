/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lock owners, and the LOCKs and LOCKUs of the user.
 *
 *   new         hangs on no open
 *   LOCK sent   hangs on the open that the user named
 *     refused   off it, if that was all
 *     granted   has a stateid, and ranges
 *     no answer in doubt: the server may hold the range, a LOCKU of it is sent
 *   freed, or the open is forgotten: off it
 *
 * An open that does not allow for the lock (READ, and it shall be WRITE) is no
 * use: the owner moves to the one that the user named, by another first LOCK.
 * nfsd keeps a stateid for each open of an owner, and one set of locks for all.
 *
 * What is booked is what the server holds under the open's current stateid: a
 * grant that comes after the open was reclaimed is asked for again. The books
 * never fail: their memory is reserved before the call is sent.
 *
 * Context: the session's lane, or any thread where nfs4.h says so; the books are
 * under states.lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

#define SPARES 2 /* a range splits another in two: two more than there were */

/* ---- doubt; states.lock held ---- */

static bool in_doubt(const struct nfs4_lockowner *lo, uint64_t first, uint64_t last)
{
	return lo->doubt && lo->doubt_first <= last && lo->doubt_last >= first;
}

/* One range is enough for what hardly ever happens. */
static void add_doubt(struct nfs4_lockowner *lo, const struct nfs4_lock_work *k)
{
	uint64_t first = k->offset, last = nfs4_lock_last(k->offset, k->length);

	if (!lo->doubt || first < lo->doubt_first)
		lo->doubt_first = first;
	if (!lo->doubt || last > lo->doubt_last)
		lo->doubt_last = last;
	lo->doubt_write = k->write && (!lo->doubt || lo->doubt_write);
	lo->doubt = true;
}

static void clear_doubt(struct nfs4_lockowner *lo, uint64_t first, uint64_t last)
{
	if (first <= lo->doubt_first && last >= lo->doubt_last)
		lo->doubt = false;
}

/* ---- the user's side ---- */

void nfs4_lockowner_init(struct nfs4_lockowner *lo, struct nfs4_client *cl)
{
	memset(lo, 0, sizeof(*lo));
	lo->number = nfs4_new_owner(cl);
	lo->cl = cl;
	list_init(&lo->link);
	list_init(&lo->ranges);
}

bool nfs4_lockowner_holds(struct nfs4_lockowner *lo, uint64_t offset, uint64_t length)
{
	struct nfs4_states *all = &lo->cl->states;
	bool holds;

	mutex_lock(&all->lock);
	holds = nfs4_lockrange_overlap(&lo->ranges, offset, nfs4_lock_last(offset, length));
	mutex_unlock(&all->lock);
	return holds;
}

void nfs4_lockowner_free(struct nfs4_lockowner *lo, struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;

	mutex_lock(&all->lock);
	/* What holds something is not freed; with its open it goes anyhow. */
	if (lo->state && lo->state->status == NFS4_STATE_OPEN && lo->has_stateid && !lo->doubt &&
		list_empty(&lo->ranges))
		nfs4_lock_free_push(all, lo);
	nfs4_lock_hang_off(lo);
	mutex_unlock(&all->lock);
	nfs4_reclaim_kick(s);
}

/* ---- a call is about to be sent; states.lock held ---- */

static enum nfs4_state_verdict end(struct nfs4_call *call, int err)
{
	call->err = err;
	return NFS4_STATE_END;
}

static bool allows(const struct nfs4_state *st, const struct nfs4_lock_work *k)
{
	uint32_t need = k->write ? OPEN4_SHARE_ACCESS_WRITE : OPEN4_SHARE_ACCESS_READ;

	return st->share_access & need;
}

static enum nfs4_state_verdict take_lock(struct nfs4_call *call, struct nfs4_lock_work *k)
{
	struct nfs4_lockowner *lo = k->lo;

	if (!k->wanted || !nfs4_lock_xdr_range_ok(k->offset, k->length))
		return end(call, k->wanted ? -EINVAL : -EBADF);
	if (!k->wanted->cl)
		return NFS4_STATE_FAIL;
	if (!allows(k->wanted, k))
		return end(call, -EBADF);
	if (!lo->state)
		nfs4_lock_hang(lo, k->wanted);
	k->via = allows(lo->state, k) ? lo->state : k->wanted;
	return NFS4_STATE_GO;
}

static enum nfs4_state_verdict take_locku(struct nfs4_call *call, struct nfs4_lock_work *k)
{
	struct nfs4_lockowner *lo = k->lo;
	uint64_t last;

	if (!nfs4_lock_xdr_range_ok(k->offset, k->length))
		return end(call, -EINVAL);
	last = nfs4_lock_last(k->offset, k->length);
	k->via = lo->state;
	if (!k->via || k->via->status == NFS4_STATE_LOST ||
		(!nfs4_lockrange_overlap(&lo->ranges, k->offset, last) &&
			!in_doubt(lo, k->offset, last)))
		return end(call, 0);
	if (!lo->has_stateid && lo->doubt && list_empty(&lo->ranges)) {
		/* Nobody wants any of it. */
		k->offset = lo->doubt_first;
		k->length = nfs4_lock_length(lo->doubt_first, lo->doubt_last);
		k->write = lo->doubt_write;
	}
	return NFS4_STATE_GO;
}

static bool has_ranges(const struct nfs4_state *st)
{
	list_for_each (node, &st->lockowners)
		if (!list_empty(&container_of(node, struct nfs4_lockowner, link)->ranges))
			return true;
	return false;
}

static bool any_of_file(const struct list *states, const struct nfs4_fh *fh)
{
	list_for_each (node, states) {
		const struct nfs4_state *st = container_of(node, struct nfs4_state, link);

		if (st->fh.len == fh->len && memcmp(st->fh.data, fh->data, fh->len) == 0 &&
			has_ranges(st))
			return true;
	}
	return false;
}

/*
 * What programs of ours hold and the server does not have yet: none of ours gets it before, or is
 * told that it is free.
 */
static bool some_missing(const struct nfs4_states *all, const struct nfs4_fh *fh)
{
	return any_of_file(&all->reopen, fh) || any_of_file(&all->in_hand, fh);
}

enum nfs4_state_verdict nfs4_lockowner_take_test(struct nfs4_call *call)
{
	struct nfs4_states *all = &call->sess->cl->states;
	bool missing;

	mutex_lock(&all->lock);
	missing = some_missing(all, call->u.lockt.fh);
	mutex_unlock(&all->lock);
	return missing ? NFS4_STATE_WAIT : NFS4_STATE_GO;
}

static bool reserve(struct nfs4_lock_work *k)
{
	for (int i = 0; i < SPARES; i++) {
		if (!k->spare[i])
			k->spare[i] = malloc(sizeof(*k->spare[i]));
		if (!k->spare[i])
			return false;
	}
	return true;
}

/*
 * It moves to another open: what it holds through the one it hangs on must not be asked for after
 * this, as that would undo it. So before: it waits while that open is reclaimed, and what is
 * granted meanwhile is asked for once more.
 */
static enum nfs4_state_verdict take_from_old(struct nfs4_call *call, struct nfs4_lock_work *k)
{
	struct nfs4_state *old = k->lo->state;
	enum nfs4_state_verdict verdict;

	if (old == k->via || old->status == NFS4_STATE_LOST)
		return NFS4_STATE_GO;
	verdict = nfs4_state_take_from(call, old);
	k->old_gen = call->state_gen;
	return verdict;
}

/* Since it was sent the open it hung on was reclaimed, or it is now. */
static bool has_old_again(const struct nfs4_lock_work *k)
{
	const struct nfs4_state *old = k->lo->state;

	return old && old != k->via && old->status != NFS4_STATE_LOST &&
	       (old->status != NFS4_STATE_OPEN || old->gen != k->old_gen);
}

enum nfs4_state_verdict nfs4_lockowner_take(struct nfs4_call *call)
{
	struct nfs4_lock_work *k = nfs4_work_of_lock(call);
	struct nfs4_states *all = &call->sess->cl->states;
	enum nfs4_state_verdict verdict;
	bool full;

	if (!reserve(k))
		return end(call, -ENOMEM);
	mutex_lock(&all->lock);
	full = nfs4_lockrange_exceeds(&k->lo->ranges, call->sess->cl->ranges_max, k->offset,
		nfs4_lock_last(k->offset, k->length), k->unlock);
	if (full) {
		mutex_unlock(&all->lock);
		return end(call, -ENOLCK);
	}
	verdict = k->unlock ? take_locku(call, k) : take_lock(call, k);
	if (verdict == NFS4_STATE_GO)
		verdict = take_from_old(call, k);
	if (verdict == NFS4_STATE_GO)
		verdict = nfs4_state_take_from(call, k->via);
	if (verdict == NFS4_STATE_GO && !k->unlock && some_missing(all, &k->via->fh))
		verdict = NFS4_STATE_WAIT;
	if (verdict == NFS4_STATE_GO) {
		k->first = k->lo->state != k->via || !k->lo->has_stateid;
		if (!k->first)
			call->stateid = k->lo->stateid;
		k->sent = true;
	}
	mutex_unlock(&all->lock);
	return verdict;
}

/* ---- it was answered ---- */

enum nfs4_state_verdict nfs4_lockowner_refused(struct nfs4_call *call)
{
	struct nfs4_lock_work *k = nfs4_work_of_lock(call);

	return nfs4_state_refused(call, k->first ? NULL : &k->lo->stateid);
}

bool nfs4_lockowner_granted(struct nfs4_call *call)
{
	struct nfs4_lock_work *k = nfs4_work_of_lock(call);
	struct nfs4_lockowner *lo = k->lo;
	struct nfs4_states *all = &call->sess->cl->states;
	uint64_t last = nfs4_lock_last(k->offset, k->length);
	bool current;

	mutex_lock(&all->lock);
	current = k->via->gen == call->state_gen && k->via->status != NFS4_STATE_LOST &&
		  !has_old_again(k);
	if (current) {
		if (lo->state != k->via)
			nfs4_lock_hang(lo, k->via);
		if (!k->none) {
			lo->stateid = k->stateid;
			lo->has_stateid = true;
		}
		if (k->unlock)
			nfs4_lockrange_clear(&lo->ranges, k->offset, last, k->spare);
		else
			nfs4_lockrange_set(&lo->ranges, k->offset, last, k->write, k->spare);
		clear_doubt(lo, k->offset, last);
		nfs4_live_locks(lo);
	}
	mutex_unlock(&all->lock);
	return current;
}

void nfs4_lockowner_ended(struct nfs4_call *call)
{
	struct nfs4_lock_work *k = nfs4_work_of_lock(call);
	struct nfs4_lockowner *lo = k->lo;
	struct nfs4_states *all = &call->sess->cl->states;

	for (int i = 0; i < SPARES; i++) {
		free(k->spare[i]);
		k->spare[i] = NULL;
	}
	mutex_lock(&all->lock);
	if (call->err && !k->unlock && k->sent && call->status == NFS4_OK && lo->state &&
		lo->state->status != NFS4_STATE_LOST) {
		add_doubt(lo, k);
		nfs4_live_locks(lo);
	}
	/* The server knows nothing of it. */
	if (lo->state && !lo->has_stateid && !lo->doubt && list_empty(&lo->ranges))
		nfs4_lock_hang_off(lo);
	mutex_unlock(&all->lock);
	call->done(call);
}

/* ---- CLOSE ---- */

bool nfs4_lockowner_close(struct nfs4_call *call)
{
	struct nfs4_op_close *o = &call->u.close;
	struct nfs4_states *all = &call->sess->cl->states;
	bool again = o->unlocks;

	if (call->status != NFS4ERR_LOCKS_HELD)
		return false;
	o->unlocks = false;
	mutex_lock(&all->lock);
	list_for_each (node, &o->state->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (!lo->has_stateid)
			continue;
		o->unlock = lo->stateid;
		o->unlocks = again = true;
		nfs4_lock_hang_drop(lo);
		break;
	}
	mutex_unlock(&all->lock);
	return again;
}
