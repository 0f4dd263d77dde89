/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations that are nobody's, until they are returned (nfs4_return_send.c).
 *
 * Context: any lane; states.lock is held.
 */
#include "nfs4_deleg.h"
#include "nfs4_live.h"

#include <stdlib.h>

/* More than that are left to be revoked. */
#define MAX_RETURNS 4096u

void nfs4_return_list_pop(struct nfs4_delegs *ds, struct nfs4_deleg_return *ret)
{
	list_del(&ret->link);
	ds->return_cnt--;
	nfs4_live_deleg(
		container_of(ds, struct nfs4_states, delegs), &ret->live_ref, NULL, NULL, NULL, 0);
	free(ret);
}

static bool has(const struct list *returns, const struct nfs4_stateid *sid)
{
	list_for_each (node, returns) {
		const struct nfs4_deleg_return *ret =
			container_of(node, struct nfs4_deleg_return, link);

		if (nfs4_state_same_other(&ret->stateid, sid))
			return true;
	}
	return false;
}

bool nfs4_return_list_knows(const struct nfs4_states *all, const struct nfs4_stateid *sid)
{
	mutex_assert_held(&all->lock);
	return has(&all->delegs.returns, sid) || has(&all->delegs.returning, sid);
}

const struct nfs4_stateid *nfs4_return_list_of(
	const struct nfs4_states *all, const struct nfs4_fh *fh)
{
	mutex_assert_held(&all->lock);
	list_for_each (node, &all->delegs.returns) {
		const struct nfs4_deleg_return *ret =
			container_of(node, struct nfs4_deleg_return, link);

		if (nfs4_deleg_same_fh(&ret->fh, fh))
			return &ret->stateid;
	}
	return NULL;
}

void nfs4_return_list_drop(struct nfs4_states *all, const struct nfs4_stateid *sid, bool revoked)
{
	mutex_assert_held(&all->lock);
	list_for_each_safe (node, next, &all->delegs.returns) {
		struct nfs4_deleg_return *ret = container_of(node, struct nfs4_deleg_return, link);

		if (!nfs4_state_same_other(&ret->stateid, sid))
			continue;
		if (revoked)
			nfs4_revoked_add(all, &ret->stateid, &ret->cred, ret->id_gen);
		nfs4_return_list_pop(&all->delegs, ret);
	}
}

void nfs4_return_list_push(struct nfs4_states *all, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen)
{
	struct nfs4_delegs *ds = &all->delegs;
	struct nfs4_deleg_return *ret;

	mutex_assert_held(&all->lock);
	if (id_gen != all->id_gen || ds->return_cnt >= MAX_RETURNS ||
		nfs4_return_list_knows(all, sid))
		return;
	ret = calloc(1, sizeof(*ret));
	if (!ret)
		return;
	ret->fh = *fh;
	ret->stateid = *sid;
	ret->cred = *cred;
	ret->id_gen = id_gen;
	nfs4_live_deleg(all, &ret->live_ref, fh, sid, cred, id_gen);
	list_push_back(&ds->returns, &ret->link);
	ds->return_cnt++;
}

void nfs4_return_list_fini(struct nfs4_delegs *ds)
{
	list_splice_back(&ds->returns, &ds->returning);
	while (!list_empty(&ds->returns))
		nfs4_return_list_pop(ds, list_first(&ds->returns, struct nfs4_deleg_return, link));
}

void nfs4_return_list_purge(struct nfs4_states *all)
{
	list_for_each_safe (node, next, &all->delegs.returns) {
		struct nfs4_deleg_return *ret = container_of(node, struct nfs4_deleg_return, link);

		if (ret->id_gen != all->id_gen)
			nfs4_return_list_pop(&all->delegs, ret);
	}
}
