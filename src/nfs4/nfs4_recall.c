/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server says of delegations: CB_RECALL, CB_RECALL_ANY, CB_GETATTR
 * (RFC 8881 sections 20.2, 20.6, 20.1). The call may come on any session, the
 * delegation is the client's.
 *
 * A recall may overtake the reply that brings the delegation, and nfsd names no
 * referring calls (section 2.10.6.3): while an OPEN is in flight that may bring
 * one, a recall of something unknown is remembered, and the server asked to
 * come again, until the OPENs that were in flight have ended. Those that began
 * after the recall do not count: on a busy mount there is always one.
 *
 * Context: the lane that the call came on, or that an OPEN is started on.
 */
#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

/* ---- recalls that come early; states.lock held ---- */

static const struct nfs4_early_recall *find_early(
	const struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	for (unsigned int i = 0; i < ds->early_cnt && i < NFS4_EARLY_RECALLS; i++)
		if (nfs4_state_same_other(&ds->early[i].stateid, sid))
			return &ds->early[i];
	return NULL;
}

bool nfs4_recall_is_early(const struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	return find_early(ds, sid) != NULL;
}

static void note_early(struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	ds->early[ds->early_cnt++ % NFS4_EARLY_RECALLS] =
		(struct nfs4_early_recall){.stateid = *sid, .epoch = ds->epoch};
	/* While a very old call is in flight there is no room: it waits for more than it needs. */
	if (ds->awaited[(ds->epoch + 1) % NFS4_AWAIT_EPOCHS] == 0)
		ds->epoch++;
}

/* Is a call in flight that began before this recall came? */
static bool is_awaited(const struct nfs4_delegs *ds, const struct nfs4_early_recall *early)
{
	for (uint32_t age = ds->epoch - early->epoch; age < NFS4_AWAIT_EPOCHS; age++)
		if (ds->awaited[(ds->epoch - age) % NFS4_AWAIT_EPOCHS] > 0)
			return true;
	return false;
}

/* The delegation may come, with a reply that the recall has overtaken. */
static bool may_come(struct nfs4_delegs *ds, const struct nfs4_stateid *sid)
{
	const struct nfs4_early_recall *early = find_early(ds, sid);

	if (early)
		return is_awaited(ds, early);
	if (ds->awaited_cnt == 0)
		return false;
	note_early(ds, sid);
	return true;
}

void nfs4_recall_await(struct nfs4_call *call)
{
	struct nfs4_states *all = &call->sess->cl->states;
	struct nfs4_op_open *o = &call->u.open;

	if (!all->delegs.ops)
		o->want_deleg = false;
	call->awaits_deleg = o->want_deleg || o->reclaim_deleg || o->claim;
	if (!call->awaits_deleg)
		return;
	mutex_lock(&all->lock);
	all->delegs.awaited_cnt++;
	call->await_epoch = all->delegs.epoch;
	all->delegs.awaited[call->await_epoch % NFS4_AWAIT_EPOCHS]++;
	mutex_unlock(&all->lock);
}

void nfs4_recall_ended(struct nfs4_call *call)
{
	struct nfs4_client *cl = call->sess->cl;
	struct nfs4_delegs *ds = &cl->states.delegs;
	bool awaited = call->awaits_deleg;
	uint32_t epoch = call->await_epoch;

	call->done(call);
	/* The call may be gone; only now what it brought is known. */
	if (!awaited)
		return;
	mutex_lock(&cl->states.lock);
	ds->awaited[epoch % NFS4_AWAIT_EPOCHS]--;
	if (--ds->awaited_cnt == 0)
		ds->early_cnt = 0;
	mutex_unlock(&cl->states.lock);
}

/* ---- calls of the server ---- */

enum nfs4_status nfs4_recall_one(
	struct nfs4_client *cl, const struct nfs4_stateid *sid, const struct nfs4_fh *fh)
{
	struct nfs4_states *all = &cl->states;
	struct nfs4_delegs *ds = &all->delegs;
	/* A server does not ask for the user who was given it. */
	const struct rpc_cred ours = {.flavor = cl->conf.flavor};
	enum nfs4_status status = NFS4_OK;
	struct nfs4_deleg *d;

	mutex_lock(&all->lock);
	d = nfs4_deleg_find(all, fh, sid);
	if (d) {
		bool first = !(d->status & NFS4_DELEG_IS_RECALLED);

		d->status |= NFS4_DELEG_IS_RECALLED;
		if (first && ds->ops)
			ds->ops->recall(ds->ctx, d);
	} else if (nfs4_return_list_knows(all, sid)) {
		/* It is on its way. */
	} else if (may_come(ds, sid)) {
		status = NFS4ERR_DELAY;
	} else if (cl->left_gen == 0) {
		status = nfs4_deleg_find_file(all, fh, false) ? NFS4ERR_BAD_STATEID
							      : NFS4ERR_BADHANDLE;
	} else {
		/* A process before died when it came. */
		nfs4_return_list_push(all, fh, sid, &ours, all->id_gen);
		if (!nfs4_return_list_knows(all, sid))
			status = NFS4ERR_DELAY; /* there is no room */
	}
	mutex_unlock(&all->lock);
	return status;
}

void nfs4_recall_any(struct nfs4_client *cl, uint32_t keep, bool read, bool write)
{
	struct nfs4_delegs *ds = &cl->states.delegs;

	mutex_lock(&cl->states.lock);
	if (ds->ops)
		ds->ops->recall_any(ds->ctx, keep, read, write);
	mutex_unlock(&cl->states.lock);
}

bool nfs4_recall_getattr(
	struct nfs4_client *cl, const struct nfs4_fh *fh, uint64_t *ret_change, uint64_t *ret_size)
{
	struct nfs4_delegs *ds = &cl->states.delegs;
	struct nfs4_deleg *d;
	bool known;

	mutex_lock(&cl->states.lock);
	d = nfs4_deleg_find_file(&cl->states, fh, true);
	known = d && ds->ops && ds->ops->getattr(ds->ctx, d, ret_change, ret_size);
	mutex_unlock(&cl->states.lock);
	return known;
}
