/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FREE_STATEID for owners of locks that are done, by the call that opens
 * files anew when there is nothing to open.
 *
 * Context: states.lock is held, the session's lane.
 */
#include <stdlib.h>

#include "nfs4_hooks.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

/* More than that are left to CLOSE. */
#define MAX_FREES 1024u
/* 100, 200 and 400 ms: then it is left to CLOSE, or to the lease. */
#define MAX_FREE_DELAYS 3u

struct lock_free {
	struct list link;
	struct nfs4_stateid stateid;
	uint32_t id_gen;
	uint64_t open_owner; /* of the open they hung on */
	struct rpc_cred cred;
};

static void pop(struct nfs4_states *all, struct lock_free *f)
{
	list_del(&f->link);
	all->free_cnt--;
	free(f);
}

void nfs4_lock_free_push(struct nfs4_states *all, const struct nfs4_lockowner *lo)
{
	struct lock_free *f;

	mutex_assert_held(&all->lock);
	if (all->free_cnt >= MAX_FREES || lo->state->id_gen != all->id_gen)
		return;
	f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->stateid = lo->stateid;
	f->id_gen = lo->state->id_gen;
	f->open_owner = lo->state->owner;
	f->cred = lo->state->cred;
	list_push_back(&all->frees, &f->link);
	all->free_cnt++;
}

void nfs4_lock_free_forget(struct nfs4_states *all, const struct nfs4_state *st)
{
	mutex_assert_held(&all->lock);
	list_for_each_safe (node, next, &all->frees) {
		struct lock_free *f = container_of(node, struct lock_free, link);

		if (f->open_owner == st->owner)
			pop(all, f);
	}
}

void nfs4_lock_free_fini(struct nfs4_states *all)
{
	while (!list_empty(&all->frees))
		pop(all, list_first(&all->frees, struct lock_free, link));
}

bool nfs4_lock_free_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_reclaim *rg = &s->reopen;

	/* Of an earlier client ID: gone with it. */
	while (!list_empty(&all->frees)) {
		struct lock_free *f = list_first(&all->frees, struct lock_free, link);
		bool good = f->id_gen == all->id_gen && f->id_gen == s->id_gen;

		if (good) {
			rg->id_gen = f->id_gen;
			rg->cred = f->cred;
			s->reopener.u.free_stateid.stateid = f->stateid;
		}
		pop(all, f);
		if (good)
			return true;
	}
	return false;
}

static int free_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_free_stateid_desc.encode(call, c);
}

static int free_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	int err = nfs4_free_stateid_desc.decode(call, c);

	/* Nothing needs it, and opens that are to be reclaimed wait behind it. */
	if (!err && nfs4_status_action(c->status) == NFS4_ACT_DELAY &&
		call->tries >= MAX_FREE_DELAYS)
		c->status = NFS4ERR_LOCKS_HELD;
	return err;
}

const struct nfs4_opdesc nfs4_lock_free_desc = {
	.name = "FREE_STATEID",
	.encode = free_encode,
	.decode = free_decode,
	.cachethis = true,
	.take = nfs4_lock_reclaim_take,
};
