/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which open an owner of locks hangs (nfs4_lockowner.c).
 *
 * Context: any thread; states.lock is held.
 */
#include <stdatomic.h>

#include "nfs4_live.h"
#include "nfs4_lock.h"

void nfs4_lock_hang_drop(struct nfs4_lockowner *lo)
{
	struct nfs4_state *st = lo->state;

	nfs4_lockrange_drop(&lo->ranges);
	lo->has_stateid = lo->doubt = false;
	nfs4_live_locks(lo);
	/* The range that is asked for is no more. */
	if (st && st->reclaim && st->reclaim->lo == lo)
		st->reclaim->lo = NULL;
}

void nfs4_lock_hang(struct nfs4_lockowner *lo, struct nfs4_state *st)
{
	struct nfs4_state *old = lo->state;

	list_del(&lo->link);
	if (old)
		atomic_store(&old->is_locked, !list_empty(&old->lockowners));
	lo->state = st;
	if (!st)
		return;
	list_push_back(&st->lockowners, &lo->link);
	atomic_store(&st->is_locked, true);
}

void nfs4_lock_hang_off(struct nfs4_lockowner *lo)
{
	nfs4_lock_hang_drop(lo);
	nfs4_lock_hang(lo, NULL);
}

static struct nfs4_lockowner *first_owner(const struct nfs4_state *st)
{
	return list_first(&st->lockowners, struct nfs4_lockowner, link);
}

void nfs4_lock_hang_detach(struct nfs4_state *st)
{
	while (!list_empty(&st->lockowners))
		nfs4_lock_hang_off(first_owner(st));
}

void nfs4_lock_hang_drop_all(struct nfs4_state *st)
{
	list_for_each (node, &st->lockowners)
		nfs4_lock_hang_drop(container_of(node, struct nfs4_lockowner, link));
}
