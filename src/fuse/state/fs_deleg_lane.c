/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane's part in how delegations end: operations kept for their return, what
 * is due, what nobody uses, and the end of the mount.
 */
#include "fs_deleg.h"
#include "fs_lane.h"
#include "fs_op.h"
#include "fs_part.h"

#define OPS 4u /* so many are returned at a time */

static struct fs_deleg *next_due(struct fs_lane *l)
{
	struct fs_deleg *d = NULL;

	mutex_lock(&l->fs->delegs->lock);
	if (!list_empty(&l->deleg->due)) {
		d = list_first(&l->deleg->due, struct fs_deleg, due);
		if (d->lost || !list_empty(&l->deleg->ops)) {
			list_del(&d->due);
			d->returning = !d->lost;
		} else {
			d = NULL;
		}
	}
	mutex_unlock(&l->fs->delegs->lock);
	return d;
}

static void lane_turn(struct fs_lane *l)
{
	struct fs_deleg *d;

	if (l->deleg->cnt == 0)
		return;
	while ((d = next_due(l)) != NULL) {
		if (d->returning)
			fs_deleg_return(l, d);
		else
			fs_deleg_return_end(d);
	}
}

static bool op_ended(struct fs_op *op)
{
	struct fs_lane *l = op->lane;

	fs_deleg_unbar(op);
	if (!op->deleg)
		return false;
	op->deleg = NULL;
	l->deleg->ops_busy--;
	list_push_back(&l->deleg->ops, &op->link);
	return true;
}

/* The lane reads no more: all are returned. */
static bool lane_drained(struct fs_lane *l)
{
	struct fs *fs = l->fs;

	if (l->deleg->cnt == 0)
		return l->deleg->ops_busy == 0;
	if (!l->deleg->drain) {
		l->deleg->drain = true;
		mutex_lock(&fs->delegs->lock);
		list_for_each (node, &fs->delegs->list) {
			struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

			if (d->lane == l)
				fs_deleg_return_due(d);
		}
		mutex_unlock(&fs->delegs->lock);
		lane_turn(l);
	}
	return false;
}

/* ---- from time to time ---- */

static uint64_t idle_ns(const struct fs *fs)
{
	uint64_t lease_s = nfs4_client_fsinfo(fs->client)->lease_s;

	return fs->delegs->idle_ns ? fs->delegs->idle_ns : (lease_s ? lease_s : 1) * NSEC_PER_SEC;
}

static bool is_idle(struct fs_deleg *d, uint64_t now_ns)
{
	bool open;

	if (d->ending || now_ns < d->used_ns + idle_ns(d->fs))
		return false;
	mutex_lock(&d->inode->lock);
	open = d->inode->opens > 0;
	mutex_unlock(&d->inode->lock);
	return !open;
}

static void timer_fire(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_deleg_lane, timer)->lane;
	uint64_t now_ns = reactor_now(l->reactor);
	struct fs *fs = l->fs;
	struct list *node;

	mutex_lock(&fs->delegs->lock);
	while ((node = list_pop_front(&l->deleg->late)) != NULL)
		fs_deleg_return_queue(container_of(node, struct fs_deleg, due));
	list_for_each (pos, &fs->delegs->list) {
		struct fs_deleg *d = container_of(pos, struct fs_deleg, lru);

		if (d->lane == l && is_idle(d, now_ns))
			fs_deleg_return_due(d);
	}
	mutex_unlock(&fs->delegs->lock);
	fs_deleg_lane_watch(l);
	fs_lane_turn(l);
}

void fs_deleg_lane_watch(struct fs_lane *l)
{
	if (l->deleg->cnt > 0 && !reactor_timer_armed(&l->deleg->timer))
		reactor_timer_in(l->reactor, &l->deleg->timer, idle_ns(l->fs) / 2);
}

static void free_ops(struct fs_lane *l)
{
	struct list *node;

	while ((node = list_pop_front(&l->deleg->ops)) != NULL)
		fs_op_free(container_of(node, struct fs_op, link));
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->deleg = mem;
	l->deleg->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	struct fs_op *op;

	list_init(&l->deleg->ops);
	list_init(&l->deleg->due);
	list_init(&l->deleg->late);
	reactor_timer_init(&l->deleg->timer, timer_fire);
	for (unsigned int i = 0; i < OPS; i++) {
		op = fs_op_alloc(l->fs);
		if (!op) {
			free_ops(l);
			return false;
		}
		list_push_back(&l->deleg->ops, &op->link);
	}
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->deleg->timer);
	free_ops(l);
}

static bool is_vouched(const struct fs_inode *in)
{
	return fs_deleg_vouches(in->deleg);
}

const struct fs_part fs_deleg_lane_part = {
	.lane_size = sizeof(struct fs_deleg_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_turn = lane_turn,
	.lane_drained = lane_drained,
	.op_ended = op_ended,
	.inode_is_vouched = is_vouched,
};
