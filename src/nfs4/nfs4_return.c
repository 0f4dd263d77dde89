/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations that the user returns, nfs4_delegreturn(), or that come though
 * nobody asked.
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

#include <errno.h>

/* ---- DELEGRETURN ---- */

void nfs4_return_begin(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;

	mutex_lock(&all->lock);
	if (d->cl && list_empty(&d->served))
		d->status |= NFS4_DELEG_IS_RETURNED;
	mutex_unlock(&all->lock);
}

enum nfs4_state_verdict nfs4_return_take(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_END;
	int err = 0;

	mutex_lock(&all->lock);
	if (d->cl && !list_empty(&d->served)) {
		err = -EBUSY;
	} else if (d->cl && all->delegs.reclaimed == d) {
		verdict = NFS4_STATE_WAIT;
	} else if (d->cl) {
		d->status |= NFS4_DELEG_IS_RETURNED;
		call->stateid = d->stateid;
		/* What an older client ID had is gone with it. */
		if ((int32_t)(s->id_gen - d->id_gen) <= 0)
			verdict = NFS4_STATE_GO;
	}
	mutex_unlock(&all->lock);
	return verdict == NFS4_STATE_END ? nfs4_state_end(call, err) : verdict;
}

enum nfs4_state_verdict nfs4_return_refused(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;
	bool old;

	nfs4_revoked_note(call, NULL, d);
	mutex_lock(&all->lock);
	old = call->status == NFS4ERR_OLD_STATEID && d->cl && d->stateid.seqid != 0;
	if (old)
		d->stateid.seqid = 0; /* section 8.2.2: whichever is the newest */
	mutex_unlock(&all->lock);
	call->err = 0;
	return old ? NFS4_STATE_GO : NFS4_STATE_END;
}

void nfs4_return_ended(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;

	if (!call->err) {
		mutex_lock(&all->lock);
		/* Unless it was lost meanwhile, and is another one by now. */
		if (d->cl && (d->status & NFS4_DELEG_IS_RETURNED))
			nfs4_deleg_drop(&all->delegs, d);
		mutex_unlock(&all->lock);
	}
	call->done(call);
}

/* ---- OPEN brought one that is not wanted ---- */

void nfs4_return_refuse(const struct nfs4_call *call)
{
	if (!nfs4_deleg_is(call->u.open.deleg_type))
		return;
	nfs4_deleg_give_back(call);
	nfs4_lease_kick(call->sess);
}

bool nfs4_return_unasked(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (o->want_deleg || o->reclaim_deleg || !nfs4_deleg_is(o->deleg_type))
		return true;
	nfs4_return_refuse(call);
	o->deleg_type = OPEN_DELEGATE_NONE;
	return true;
}
