/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that sleep until they have their lock.
 *
 * A signal ends the wait: libfuse says so from whichever lane read the
 * FUSE_INTERRUPT, and the request's lane answers EINTR, also while the server
 * is being asked; the operation then goes on, abandoned, and takes back what it is
 * granted (fs_lock.c). Only where the owner holds a part of the range already,
 * or was just granted it, the answer is waited for: it could not be put back as
 * it was.
 */
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_interrupt.h"
#include "fs_lane.h"
#include "fs_lock.h"
#include "fs_op.h"
#include "fs_part.h"

#include <errno.h>
#include <stdlib.h>

#define POLL_MAX_NS    (5 * NSEC_PER_SEC)
#define POLL_DOUBLINGS 6u

/* ---- who is tried ---- */

static bool conflict(const struct fs_lockrange *r, uint64_t off, uint64_t len, bool write)
{
	return (r->write || write) && fs_lock_overlap(r->off, r->len, off, len);
}

/* The oldest of the inode that is worth it, one at a time. locks_lock held. */
static void try_next(struct fs *fs, const struct fs_inode *in)
{
	struct fs_lockwait *first = NULL;

	list_for_each (node, &fs->locks->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, link);

		if (w->inode != in)
			continue;
		if (w->trying)
			return;
		if (w->woken && !w->op && !first)
			first = w;
	}
	if (!first)
		return;
	first->trying = true;
	first->woken = false;
	first->lane->lockwait->due = true;
	fs_lane_kick(first->lane);
}

/*
 * Others of w's inode need not be tried for what is in w's way too, or for w itself; unless it may
 * be their own. locks_lock held.
 */
static void leave_asleep(struct fs *fs, const struct fs_lockwait *w, uint64_t off, uint64_t len,
	bool write, bool granted)
{
	list_for_each (node, &fs->locks->waits) {
		struct fs_lockwait *o = container_of(node, struct fs_lockwait, link);

		if (o == w || o->inode != w->inode || o->op || o->trying ||
			!conflict(&o->range, off, len, write))
			continue;
		if (granted ? o->owner != w->owner : !o->owner->holding)
			o->woken = false;
	}
}

/* locks_lock held. */
static void wake_range(struct fs *fs, const struct fs_inode *in, uint64_t off, uint64_t len)
{
	bool any = false;

	fs->locks->frees++;
	list_for_each (node, &fs->locks->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, link);

		if (w->inode == in && fs_lock_overlap(w->range.off, w->range.len, off, len))
			any = w->woken = true;
	}
	if (any)
		try_next(fs, in);
}

void fs_lockwait_wake(struct fs_op *op, uint64_t off, uint64_t len)
{
	struct fs *fs = op->lane->fs;

	mutex_lock(&fs->locks->lock);
	wake_range(fs, op->inode, off, len);
	mutex_unlock(&fs->locks->lock);
	/* Who is on this lane asks before the unlock is answered: it comes before a lock again. */
	fs_lane_turn(op->lane);
}

void fs_lockwait_freed(void *ctx, uint64_t number)
{
	struct fs *fs = ctx;

	mutex_lock(&fs->locks->lock);
	fs->locks->frees++;
	list_for_each (node, &fs->locks->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, link);

		if (w->owner->lo.number != number)
			continue;
		w->woken = true;
		try_next(fs, w->inode);
	}
	mutex_unlock(&fs->locks->lock);
}

/* ---- from time to time ---- */

/* A little less for some, so that not all come at once. */
static uint64_t interval(struct fs_lockwait *w)
{
	uint64_t first = w->lane->fs->locks->poll_ns, ns = first << w->doublings;

	if (w->doublings < POLL_DOUBLINGS)
		w->doublings++;
	if (ns > POLL_MAX_NS && ns > first)
		ns = POLL_MAX_NS;
	return ns - ns / 8 * (((uintptr_t)w >> 6) % 8) / 8;
}

static void set_timer(struct fs_lane *l)
{
	uint64_t due_ns = REACTOR_NEVER;

	list_for_each (node, &l->lockwait->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, lane_link);

		if (w->due_ns < due_ns)
			due_ns = w->due_ns;
	}
	if (due_ns == REACTOR_NEVER)
		reactor_timer_cancel(l->reactor, &l->lockwait->timer);
	else
		reactor_timer_set(l->reactor, &l->lockwait->timer, due_ns);
}

static void poll_fire(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_lockwait_lane, timer)->lane;
	uint64_t now_ns = reactor_now(l->reactor);

	mutex_lock(&l->fs->locks->lock);
	list_for_each (node, &l->lockwait->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, lane_link);

		if (w->due_ns > now_ns)
			continue;
		w->due_ns = now_ns + interval(w);
		w->woken = true;
		try_next(l->fs, w->inode);
		if (w->signalled)
			l->lockwait->signal = l->lockwait->due = true;
	}
	mutex_unlock(&l->fs->locks->lock);
	set_timer(l);
	fs_lane_turn(l);
}

/* ---- a sleeper's life ---- */

/* From libfuse, on any lane, with its lock of the request. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct fs_lane *l = data;

	l->lockwait->signal = true;
	l->lockwait->due = true;
	fs_lane_kick(l);
}

bool fs_lockwait_new(struct fs_op *op, void (*ask)(struct fs_op *op))
{
	struct fs_lane *l = op->lane;
	struct fs_lockwait *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->lane = l;
	w->ask = ask;
	w->inode = op->inode;
	w->file = fs_file_get(op->file);
	w->owner = fs_lockowner_ref(l->fs, fs_lock_op(op)->owner);
	w->range = fs_lock_op(op)->range;
	w->req = op->req;
	w->unique = op->unique;
	w->due_ns = REACTOR_NEVER;
	w->op = op;
	fs_lock_op(op)->wait = w;
	op->req = NULL;
	list_push_back(&l->lockwait->waits, &w->lane_link);
	mutex_lock(&l->fs->locks->lock);
	list_push_back(&l->fs->locks->waits, &w->link);
	mutex_unlock(&l->fs->locks->lock);
	fuse_req_interrupt_func(w->req, on_interrupt, l);
	return true;
}

bool fs_lockwait_answer(struct fs_lockwait *w, int err)
{
	fuse_req_t req = w->req;

	if (!req)
		return false;
	w->req = NULL;
	/* Waits for an on_interrupt() in progress: none comes for this lane's sake afterwards. */
	fuse_req_interrupt_func(req, NULL, NULL);
	stats_count(&w->lane->stats->fuse_replies, 1);
	return fuse_reply_err(req, err) != -ENOENT;
}

/* locks_lock held. */
static void stop_trying(struct fs_lockwait *w)
{
	if (w->trying && w->op)
		w->lane->lockwait->tries--;
	w->trying = false;
}

void fs_lockwait_granted(struct fs_op *op)
{
	struct fs_lockwait *w = fs_lock_op(op)->wait;
	struct fs *fs = op->lane->fs;

	if (!w)
		return;
	mutex_lock(&fs->locks->lock);
	stop_trying(w);
	list_del(&w->link);
	leave_asleep(fs, w, w->range.off, w->range.len, w->range.write, true);
	try_next(fs, w->inode);
	mutex_unlock(&fs->locks->lock);
}

/* Nobody waits any more. */
static void wait_over(struct fs_lockwait *w)
{
	struct fs *fs = w->lane->fs;

	mutex_lock(&fs->locks->lock);
	stop_trying(w);
	list_del(&w->link);
	try_next(fs, w->inode);
	mutex_unlock(&fs->locks->lock);
	list_del(&w->lane_link);
	fs_lockowner_put(fs, w->owner);
	fs_file_put(fs, w->file);
	free(w);
}

void fs_lockwait_done(struct fs_op *op)
{
	if (fs_lock_op(op)->wait)
		wait_over(fs_lock_op(op)->wait);
	fs_lock_op(op)->wait = NULL;
}

void fs_lockwait_asks(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;

	if (!fs_lock_op(op)->wait)
		return;
	mutex_lock(&fs->locks->lock);
	fs_lock_op(op)->wait->frees = fs->locks->frees;
	mutex_unlock(&fs->locks->lock);
}

void fs_lockwait_sleep(struct fs_op *op, const struct nfs4_denied *denied)
{
	struct fs_lockwait *w = fs_lock_op(op)->wait;
	struct fs_lane *l = op->lane;
	struct fs *fs = l->fs;

	fs_lock_op(op)->wait = NULL;
	w->due_ns = reactor_now(l->reactor) + interval(w);
	mutex_lock(&fs->locks->lock);
	stop_trying(w);
	w->op = NULL;
	/* What was freed meanwhile may be just what was in the way. */
	if (w->frees == fs->locks->frees)
		leave_asleep(fs, w, denied->offset, denied->length, denied->write, false);
	try_next(fs, w->inode);
	mutex_unlock(&fs->locks->lock);
	set_timer(l);
	fs_lockowner_over(op);
	fs_op_end(op);
}

/* ---- on the lane ---- */

static void signalled(struct fs_lockwait *w)
{
	struct fs_op *op = w->op;

	if (!op) {
		fs_lockwait_answer(w, EINTR);
		wait_over(w);
	} else if (fs_lock_op(op)->held && !fs_interrupt_is_dying(fuse_req_ctx(w->req))) {
		/* The kernel will not say that another signal came: this may be the last. */
		w->signalled = true;
		w->due_ns = reactor_now(w->lane->reactor) + interval(w);
		set_timer(w->lane);
	} else {
		fs_interrupt_abandon(op);
		fs_lockwait_answer(w, EINTR);
	}
}

static void look_for_signals(struct fs_lane *l)
{
	if (!atomic_exchange(&l->lockwait->signal, false))
		return;
	list_for_each_safe (node, next, &l->lockwait->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, lane_link);

		if (w->req && fuse_req_interrupted(w->req)) {
			if (!w->signalled)
				stats_count(&l->stats->interrupts, 1);
			signalled(w);
		}
	}
}

/* Sleepers take no more than a part of the operations, and always may have one. */
static bool room(const struct fs_lane *l)
{
	return l->ops_free > 0 && (l->lockwait->tries == 0 || l->lockwait->tries < l->ops_cnt / 4);
}

static void start(struct fs_lockwait *w)
{
	struct fs_lane *l = w->lane;
	struct fs_op *op = fs_op_new(l);

	op->file = fs_file_get(w->file);
	op->on_file = true;
	op->inode = fs_inode_ref(l->fs, w->inode);
	op->cred = w->file->cred;
	fs_lock_op(op)->owner = fs_lockowner_ref(l->fs, w->owner);
	fs_lock_op(op)->range = w->range;
	fs_lock_op(op)->wait = w;
	mutex_lock(&l->fs->locks->lock);
	w->op = op;
	mutex_unlock(&l->fs->locks->lock);
	l->lockwait->tries++;
	w->ask(op);
}

static void lane_turn(struct fs_lane *l)
{
	if (!l->lockwait->due)
		return;
	l->lockwait->due = false;
	look_for_signals(l);
	list_for_each_safe (node, next, &l->lockwait->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, lane_link);
		bool due;

		mutex_lock(&l->fs->locks->lock);
		due = w->trying && !w->op;
		mutex_unlock(&l->fs->locks->lock);
		if (!due)
			continue;
		if (!room(l)) {
			l->lockwait->due = true; /* when an operation ends */
			break;
		}
		start(w);
	}
}

/* Nobody sleeps any more: EIO. */
static void lane_stop(struct fs_lane *l)
{
	list_for_each_safe (node, next, &l->lockwait->waits) {
		struct fs_lockwait *w = container_of(node, struct fs_lockwait, lane_link);

		if (w->op)
			continue; /* it ends by itself */
		fs_lockwait_answer(w, EIO);
		wait_over(w);
	}
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->lockwait = mem;
	l->lockwait->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	list_init(&l->lockwait->waits);
	reactor_timer_init(&l->lockwait->timer, poll_fire);
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->lockwait->timer);
}

/* The owners' files are closed: the server has nothing of them. */
static void inode_gone(struct fs_inode *in)
{
	struct fs_lockowner *owner = atomic_load(&in->lockowners);

	while (owner) {
		struct fs_lockowner *next = owner->next;

		live_drop(owner->live, &owner->live_ref);
		free(owner);
		owner = next;
	}
}

const struct fs_part fs_lockwait_part = {
	.lane_size = sizeof(struct fs_lockwait_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_stop = lane_stop,
	.lane_turn = lane_turn,
	.inode_gone = inode_gone,
};
