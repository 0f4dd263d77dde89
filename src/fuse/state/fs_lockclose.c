/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of this mount whose last descriptor is closed. close(2) does not wait
 * for the RELEASE, which is a background request: while max_background of them
 * are unanswered the kernel keeps the others to itself. A lock that is in the
 * way may so be one that nobody has any more, for all that the kernel has not
 * said yet; then it is waited for, a second at most.
 *
 * Requests that may be background ones are counted (fs_background.h). With fewer than
 * max_background of them the kernel keeps none back, and /dev/fuse is in order: what was closed
 * before this lock was asked for has been read, by whichever lane.
 */
#include "fs_background.h"
#include "fs_lock.h"
#include "fs_op.h"

#define WAIT_NS NSEC_PER_SEC
#define TICK_NS NSEC_PER_MSEC

/* ---- who is in the way ---- */

enum holder {
	GONE,    /* not one of this mount's, or not any more */
	HOLDS,   /* ... and nobody has said that it goes */
	RELEASED /* its file is being closed */
};

static enum holder holder_is(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	enum holder h = GONE;

	mutex_lock(&fs->locks->lock);
	for (struct fs_lockowner *o = atomic_load(&op->inode->lockowners); o; o = o->next)
		if (o->lo.number == fs_lock_op(op)->holder && o->holding)
			h = o->file && o->file->released ? RELEASED : HOLDS;
	mutex_unlock(&fs->locks->lock);
	return h;
}

static bool may_go(struct fs_op *op, enum holder h)
{
	uint64_t waited = fs_op_now(op) - fs_lock_op(op)->since;

	if (h == GONE || waited >= WAIT_NS || op->lane->state != FS_LANE_RUNS || !op->req)
		return false;
	if (fs_background_is_kept(op))
		fs_lock_op(op)->full = true;
	else if (h == HOLDS && (waited < FS_BACKGROUND_NS || fs_lock_op(op)->full))
		return fs_background_is_unread(op->lane);
	return h == RELEASED || fs_background_is_kept(op);
}

static void look(struct fs_op *op)
{
	enum holder h = holder_is(op);

	if (may_go(op, h))
		reactor_timer_in(op->lane->reactor, &fs_lock_op(op)->tick, TICK_NS);
	else
		fs_lock_op(op)->again(op);
}

static void ticked(struct reactor_timer *t)
{
	look(container_of(t, struct fs_lock_op, tick)->op);
}

bool fs_lockclose_await(struct fs_op *op, uint64_t holder, void (*again)(struct fs_op *op))
{
	if (fs_lock_op(op)->since == 0)
		fs_lock_op(op)->since = fs_op_now(op);
	fs_lock_op(op)->holder = holder;
	fs_lock_op(op)->again = again;
	if (!may_go(op, holder_is(op)))
		return false;
	fs_lockowner_turn_over(op);
	fs_op_put_call(op);
	fs_lock_op(op)->op = op;
	reactor_timer_init(&fs_lock_op(op)->tick, ticked);
	reactor_timer_in(op->lane->reactor, &fs_lock_op(op)->tick, TICK_NS);
	return true;
}
