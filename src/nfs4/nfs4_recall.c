/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server says of delegations: CB_RECALL, CB_RECALL_ANY, CB_GETATTR
 * (RFC 8881 sections 20.2, 20.6, 20.1). The call may come on any session, the
 * delegation is the client's.
 *
 * A recall may overtake the reply that brings the delegation, and nfsd names no
 * referring calls (section 2.10.6.3): while an OPEN is in flight that may bring
 * one, a recall of something unknown is remembered, and the server asked to
 * come again.
 *
 * Context: the lane that the call came on, or that an OPEN is started on.
 */
#include "nfs4_deleg.h"
#include "nfs4_sess_int.h"

/* ---- recalls that come early; states.lock held ---- */

bool nfs4_recall_is_early(const struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	for (unsigned int i = 0; i < ds->early_cnt && i < NFS4_EARLY_RECALLS; i++)
		if (nfs4_same_other(&ds->early[i], sid))
			return true;
	return false;
}

static void note_early(struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	if (!nfs4_recall_is_early(ds, sid))
		ds->early[ds->early_cnt++ % NFS4_EARLY_RECALLS] = *sid;
}

void nfs4_deleg_await(struct nfs4_call *call)
{
	struct nfs4_states *all = &call->sess->cl->states;
	struct nfs4_op_open *o = &call->u.open;

	if (!all->delegs.ops)
		o->want_deleg = false;
	if (!o->want_deleg && !o->reclaim_deleg && !o->claim)
		return;
	call->awaits_deleg = true;
	pthread_mutex_lock(&all->lock);
	all->delegs.awaited++;
	pthread_mutex_unlock(&all->lock);
}

void nfs4_deleg_awaited(struct nfs4_client *cl)
{
	struct nfs4_delegs *ds = &cl->states.delegs;

	pthread_mutex_lock(&cl->states.lock);
	if (--ds->awaited == 0)
		ds->early_cnt = 0;
	pthread_mutex_unlock(&cl->states.lock);
}

/* ---- calls of the server ---- */

enum nfs4_status nfs4_deleg_recall(
	struct nfs4_client *cl, const struct nfs4_stateid *sid, const struct nfs4_fh *fh)
{
	struct nfs4_states *all = &cl->states;
	struct nfs4_delegs *ds = &all->delegs;
	enum nfs4_status status = NFS4_OK;
	struct nfs4_deleg *d;

	pthread_mutex_lock(&all->lock);
	d = nfs4_deleg_find(all, fh, sid);
	if (d) {
		bool first = !(d->status & NFS4_DELEG_IS_RECALLED);

		d->status |= NFS4_DELEG_IS_RECALLED;
		if (first && ds->ops)
			ds->ops->recall(ds->ctx, d);
	} else if (nfs4_return_knows(all, sid)) {
		/* It is on its way. */
	} else if (ds->awaited > 0) {
		note_early(ds, sid);
		status = NFS4ERR_DELAY;
	} else {
		status = nfs4_deleg_find_file(all, fh, false) ? NFS4ERR_BAD_STATEID
							      : NFS4ERR_BADHANDLE;
	}
	pthread_mutex_unlock(&all->lock);
	return status;
}

void nfs4_deleg_recall_any(struct nfs4_client *cl, uint32_t keep, bool read, bool write)
{
	struct nfs4_delegs *ds = &cl->states.delegs;

	pthread_mutex_lock(&cl->states.lock);
	if (ds->ops)
		ds->ops->recall_any(ds->ctx, keep, read, write);
	pthread_mutex_unlock(&cl->states.lock);
}

bool nfs4_deleg_getattr(
	struct nfs4_client *cl, const struct nfs4_fh *fh, uint64_t *ret_change, uint64_t *ret_size)
{
	struct nfs4_delegs *ds = &cl->states.delegs;
	struct nfs4_deleg *d;
	bool known;

	pthread_mutex_lock(&cl->states.lock);
	d = nfs4_deleg_find_file(&cl->states, fh, true);
	known = d && ds->ops && ds->ops->getattr(ds->ctx, d, ret_change, ret_size);
	pthread_mutex_unlock(&cl->states.lock);
	return known;
}
