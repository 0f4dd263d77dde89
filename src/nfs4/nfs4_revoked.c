/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stateids that the server revoked, until they are freed (nfs4_revoke_free.c).
 * Which they are nfs4_revoke.c asks, or a call finds out.
 *
 * Context: any lane; the list is under states.lock.
 */
#include "nfs4_session_int.h"

#include <stdlib.h>

void nfs4_revoked_fini(struct nfs4_revoke *rv)
{
	struct list *node;

	while ((node = list_pop_front(&rv->revoked)))
		free(container_of(node, struct nfs4_revoked, link));
}

/* With the client ID its state is gone too. */
void nfs4_revoked_purge(struct nfs4_states *all)
{
	mutex_assert_held(&all->lock);
	list_for_each_safe (node, next, &all->revoke.revoked) {
		struct nfs4_revoked *g = container_of(node, struct nfs4_revoked, link);

		if (g->id_gen == all->id_gen)
			continue;
		list_del(&g->link);
		free(g);
	}
}

void nfs4_revoked_add(struct nfs4_states *all, const struct nfs4_stateid *sid,
	const struct rpc_cred *cred, uint32_t id_gen)
{
	struct nfs4_revoked *g;

	mutex_assert_held(&all->lock);
	list_for_each (node, &all->revoke.revoked) {
		if (nfs4_state_same_other(
			    &container_of(node, struct nfs4_revoked, link)->stateid, sid))
			return;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return; /* it stays there until the client ID ends */
	g->stateid = *sid;
	g->stateid.seqid = 0; /* section 8.2.2: whichever is the newest */
	g->cred = *cred;
	g->id_gen = id_gen;
	list_push_back(&all->revoke.revoked, &g->link);
}

/* With the open its locks are revoked. */
void nfs4_revoked_add_locks(struct nfs4_states *all, struct nfs4_state *st)
{
	mutex_assert_held(&all->lock);
	mutex_lock(&st->lock);
	list_for_each (node, &st->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (lo->has_stateid && st->status == NFS4_STATE_OPEN)
			nfs4_revoked_add(all, &lo->stateid, &st->cred, st->id_gen);
	}
	mutex_unlock(&st->lock);
}

void nfs4_revoked_note(struct nfs4_call *call, struct nfs4_state *st, const struct nfs4_deleg *d)
{
	struct nfs4_states *all = &call->sess->cl->states;

	if ((!st && !d) || !nfs4_status_is_revoked(call->status))
		return;
	mutex_lock(&all->lock);
	if (st && st->deleg)
		d = st->deleg;
	if (call->id_gen == all->id_gen) {
		nfs4_revoked_add(all, &call->stateid, d ? &d->cred : &st->cred, call->id_gen);
		if (st && st->gen == call->state_gen)
			nfs4_revoked_add_locks(all, st);
	}
	mutex_unlock(&all->lock);
}

bool nfs4_revoked_pending(struct nfs4_states *all)
{
	bool pending;

	mutex_lock(&all->lock);
	nfs4_revoked_purge(all);
	pending = !list_empty(&all->revoke.revoked) || all->revoke.freeing > 0;
	mutex_unlock(&all->lock);
	return pending;
}
