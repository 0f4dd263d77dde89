/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of an open that was reclaimed, one LOCK after the other, by the call
 * that opened it: until they are there the open is BUSY.
 *
 * The owner may be freed meanwhile, as the open may be closed: the call has
 * copies of what it needs (struct nfs4_reclaim).
 *
 * Context: states.lock is held, the session's lane.
 */
#include <string.h>

#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

void nfs4_lock_reclaim_begin(struct nfs4_state *st, bool same_id)
{
	list_for_each (node, &st->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		lo->has_stateid = false;
		/* What another incarnation of the server held beside the books is gone. */
		lo->doubt = lo->doubt && same_id;
		list_for_each (pos, &lo->ranges)
			container_of(pos, struct nfs4_lockrange, link)->reclaimed = false;
		nfs4_live_locks(lo);
	}
}

static struct nfs4_lockrange *next_range(const struct nfs4_lockowner *lo)
{
	list_for_each (pos, &lo->ranges) {
		struct nfs4_lockrange *rg = container_of(pos, struct nfs4_lockrange, link);

		if (!rg->reclaimed)
			return rg;
	}
	return NULL;
}

bool nfs4_lock_reclaim_next(struct nfs4_reclaim *rg, struct nfs4_call *call, bool reclaim)
{
	struct nfs4_op_lock *o = &call->u.lock;
	struct nfs4_state *st = rg->state;

	list_for_each (node, &st->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);
		struct nfs4_lockrange *r = next_range(lo);

		if (!r)
			continue;
		rg->lo = lo;
		rg->range = r;
		memset(o, 0, sizeof(*o));
		o->fh = &rg->fh;
		o->work.owner = lo->number;
		o->work.offset = r->first;
		o->work.length = nfs4_lock_length(r->first, r->last);
		o->work.write = r->write;
		o->work.reclaim = reclaim;
		o->work.first = !lo->has_stateid;
		call->stateid = o->work.first ? st->stateid : lo->stateid;
		if (o->work.first)
			call->stateid.seqid = 0; /* the user's OPENs count on */
		return true;
	}
	return false;
}

void nfs4_lock_reclaim_granted(struct nfs4_reclaim *rg, const struct nfs4_call *call)
{
	if (!rg->lo)
		return; /* freed meanwhile: CLOSE ends what it left */
	rg->lo->stateid = call->u.lock.work.stateid;
	rg->lo->has_stateid = true;
	rg->range->reclaimed = true;
	nfs4_live_locks(rg->lo);
}

bool nfs4_lock_reclaim_is_conflict(enum nfs4_status status)
{
	return status == NFS4ERR_DENIED || status == NFS4ERR_RECLAIM_CONFLICT ||
	       status == NFS4ERR_DEADLOCK;
}

/* ---- calls; the lock is not held ---- */

enum nfs4_state_verdict nfs4_lock_reclaim_take(struct nfs4_call *call)
{
	const struct nfs4_session *s = call->sess;
	const struct nfs4_reclaim *rg = nfs4_session_is_ctl(call) ? &s->reclaim : &s->reopen;

	return rg->id_gen == s->id_gen ? NFS4_STATE_GO : NFS4_STATE_FAIL;
}

const struct nfs4_opdesc nfs4_lock_reclaim_desc = {
	.name = "LOCK",
	.encode = nfs4_lock_xdr_encode,
	.decode = nfs4_lock_xdr_decode,
	.take = nfs4_lock_reclaim_take,
	.cachethis = true,
};
