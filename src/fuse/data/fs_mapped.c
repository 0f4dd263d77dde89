/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_mapped.h"
#include "fs_background.h"
#include "fs_inode.h"
#include "fs_rw.h"
#include "fs_unstable.h"
#include "fs_writeback.h"

#define WAIT_NS NSEC_PER_SEC
#define TICK_NS NSEC_PER_MSEC

/* Are all up to `seq` over? Inode lock held. */
static bool are_over(const struct fs_unstable *r, uint64_t seq)
{
	return list_empty(&r->mapped) ||
	       list_first(&r->mapped, struct fs_rw, mapped_link)->mapped_seq > seq;
}

static void ended(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r = in->unstable;
	struct list woken;

	list_init(&woken);
	mutex_lock(&in->lock);
	list_del(&fs_rw(op)->mapped_link);
	list_for_each_safe (node, next, &r->mapped_waiters) {
		if (!are_over(r, container_of(node, struct fs_op, link)->writeback->seq))
			continue;
		list_del(node);
		list_push_back(&woken, node);
	}
	mutex_unlock(&in->lock);
	fs_op_wake_all(&woken);
}

void fs_mapped_begin(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r;

	mutex_lock(&in->lock);
	r = fs_unstable_of(in);
	if (r) { /* else there is no memory, and nobody waits */
		fs_rw(op)->mapped_seq = ++r->mapped_seq;
		list_push_back(&r->mapped, &fs_rw(op)->mapped_link);
		op->ended = ended;
	}
	mutex_unlock(&in->lock);
}

/* Those that are known of. */
static void wait_for_known(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r;
	bool waits;

	mutex_lock(&in->lock);
	r = in->unstable;
	waits = r && !are_over(r, r->mapped_seq);
	if (waits) {
		op->writeback->seq = r->mapped_seq;
		op->then = again;
		list_push_back(&r->mapped_waiters, &op->link);
	}
	mutex_unlock(&in->lock);
	if (!waits)
		again(op);
}

static bool goes_on(const struct fs_lane *l)
{
	return l->state == FS_LANE_RUNS && !l->fs->replaying;
}

static void look(struct fs_mapped_wait *w)
{
	struct fs_op *op = w->op;
	struct fs_lane *l = op->lane;

	w->unsure = !goes_on(l) || !fs_background_is_none(l);
	if (w->unsure && goes_on(l) && fs_op_now(op) - w->since_ns < WAIT_NS)
		reactor_timer_in(l->reactor, &w->tick, TICK_NS);
	else
		wait_for_known(op, w->again);
}

static void ticked(struct reactor_timer *t)
{
	look(container_of(t, struct fs_mapped_wait, tick));
}

void fs_mapped_await(struct fs_op *op, struct fs_mapped_wait *w, void (*again)(struct fs_op *op))
{
	fs_op_put_call(op);
	*w = (struct fs_mapped_wait){
		.op = op,
		.again = again,
		.since_ns = fs_op_now(op),
	};
	reactor_timer_init(&w->tick, ticked);
	look(w);
}
