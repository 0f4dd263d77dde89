/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * I/O under a lock (RFC 8881 section 9.1.2): where locks are mandatory a server
 * refuses I/O in a locked range unless it bears the stateid of that lock.
 *
 * The kernel tells whose locks count for direct I/O only; pages are written by
 * nobody in particular, and what is gathered may be of several. So it is the
 * range that decides: whichever owner of this open holds a lock there. Other
 * clients are kept out, programs of this mount are not, as anywhere on Linux.
 *
 * Context: the session's lane.
 */
#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

static bool holds_to_write(const struct nfs4_lockowner *lo, uint64_t first, uint64_t last)
{
	list_for_each (node, &lo->ranges) {
		const struct nfs4_lockrange *r = container_of(node, struct nfs4_lockrange, link);

		if (r->write && r->first <= last && r->last >= first)
			return true;
	}
	return false;
}

/* NULL: nobody. One lock to write is alone in its range; of those to read any will do. */
static const struct nfs4_lockowner *holder(
	const struct nfs4_state *st, uint64_t first, uint64_t last)
{
	const struct nfs4_lockowner *found = NULL;

	list_for_each (node, &st->lockowners) {
		const struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (!lo->has_stateid || !nfs4_lockrange_overlap(&lo->ranges, first, last))
			continue;
		if (holds_to_write(lo, first, last))
			return lo;
		found = lo;
	}
	return found;
}

enum nfs4_state_verdict nfs4_lock_io_take(struct nfs4_call *call)
{
	struct nfs4_state *st = nfs4_state_of(call);
	struct nfs4_states *all = &call->sess->cl->states;
	const struct nfs4_lockowner *lo;
	enum nfs4_state_verdict verdict;
	uint64_t first, last;

	call->under_lock = false;
	if (!st) {
		call->stateid = nfs4_stateid_anon;
		return NFS4_STATE_GO;
	}
	if (!atomic_load(&st->is_locked) || call->lock_refused || !call->desc->range ||
		!call->desc->range(call, &first, &last))
		return nfs4_state_take_from(call, st);
	mutex_lock(&all->lock);
	verdict = nfs4_state_take_from(call, st);
	lo = verdict == NFS4_STATE_GO ? holder(st, first, last) : NULL;
	if (lo) {
		call->stateid = lo->stateid;
		call->stateid.seqid = 0; /* a LOCK or LOCKU may be on its way */
		call->under_lock = true;
	}
	mutex_unlock(&all->lock);
	return verdict;
}

/* It was a lock's stateid. */
static bool leave_lock(struct nfs4_call *call)
{
	/* With the lease all of the open is over, its locks too. */
	if (!call->under_lock || call->status == NFS4ERR_EXPIRED)
		return false;
	call->under_lock = false;
	call->lock_refused = true;
	return true;
}

enum nfs4_state_verdict nfs4_lock_io_refused(struct nfs4_call *call)
{
	enum nfs4_state_verdict verdict;

	if (leave_lock(call))
		return NFS4_STATE_GO;
	verdict = nfs4_state_refused(call, NULL);
	if (verdict == NFS4_STATE_WAIT)
		call->lock_refused = false; /* it is reclaimed with its open */
	return verdict;
}
