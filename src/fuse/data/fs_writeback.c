/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_append.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_reply.h"
#include "fs_batch.h"
#include "fs_part.h"
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* What is open is sent after so long, whether it is full or not. */
#define OPEN_NS (200 * NSEC_PER_MSEC)

static uint64_t begin_of(const struct fs_op *op)
{
	return (uint64_t)op->off;
}

static uint64_t end_of(const struct fs_op *op)
{
	return (uint64_t)op->off + op->size;
}

/* ---- sending; a writeback is taken from its inode first, by one thread ---- */

static void send_now(struct fs_op *c)
{
	list_del(&c->writeback->open_link);
	c->writeback->send(c);
}

/* Nothing joins it any more: who got it sends it. NULL: none is open. Inode lock held. */
static struct fs_op *take_open(struct fs_unstable *r)
{
	struct fs_op *c = r->open;

	r->open = NULL;
	return c;
}

/* From `l`'s thread. No lock held. */
static void send_from(struct fs_lane *l, struct fs_op *c)
{
	if (!c)
		return;
	if (c->lane == l) {
		send_now(c);
		return;
	}
	c->then = send_now;
	fs_op_wake(c);
}

/* The one that is open for longest, if it is since then. False: there is none. */
static bool send_oldest(struct fs_lane *l, uint64_t since)
{
	struct fs_op *c;
	bool mine;

	if (list_empty(&l->writeback->open))
		return false;
	c = list_first(&l->writeback->open, struct fs_writeback, open_link)->op;
	if (c->writeback->since > since)
		return false;
	mutex_lock(&c->inode->lock);
	mine = c->inode->unstable->open == c;
	if (mine)
		take_open(c->inode->unstable);
	mutex_unlock(&c->inode->lock);
	if (mine)
		send_now(c);
	else
		list_del(&c->writeback->open_link); /* another lane has asked for it */
	return true;
}

static void arm(struct fs_lane *l)
{
	const struct fs_op *c;

	if (list_empty(&l->writeback->open))
		return;
	c = list_first(&l->writeback->open, struct fs_writeback, open_link)->op;
	reactor_timer_set(l->reactor, &l->writeback->timer, c->writeback->since + OPEN_NS);
}

static void ticked(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_writeback_lane, timer)->lane;

	while (send_oldest(l, reactor_now(l->reactor) - OPEN_NS))
		;
	arm(l);
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->writeback = mem;
	l->writeback->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	list_init(&l->writeback->open);
	reactor_timer_init(&l->writeback->timer, ticked);
	l->writeback->max = l->unstable->bufs_max / 2;
	if (l->writeback->max > l->ops_cnt / 2)
		l->writeback->max = l->ops_cnt / 2;
	fs_batch_lane_init(l);
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->writeback->timer);
}

/* The open ones are sent. */
static void lane_stop(struct fs_lane *l)
{
	while (send_oldest(l, UINT64_MAX))
		;
}

static void op_made(struct fs_op *op, void *mem)
{
	struct fs_writeback *w = mem;

	w->op = op;
	list_init(&w->link);
	list_init(&w->open_link);
	list_init(&w->parts);
	list_init(&w->part_link);
	op->writeback = w;
}

static bool is_dirty(const struct fs_inode *in)
{
	return fs_writeback_any(in);
}

const struct fs_part fs_writeback_part = {
	.op_size = sizeof(struct fs_writeback),
	.op_made = op_made,
	.lane_size = sizeof(struct fs_writeback_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_stop = lane_stop,
	.inode_is_dirty = is_dirty,
};

/* ---- who overlaps whom. Inode lock held ---- */

static bool overlaps(const struct fs_op *c, uint64_t off, uint64_t end)
{
	return begin_of(c) < end && off < end_of(c);
}

/* Any but `but`. */
static bool is_free(
	const struct fs_unstable *r, const struct fs_op *but, uint64_t off, uint64_t end)
{
	list_for_each (node, &r->writebacks) {
		const struct fs_op *c = container_of(node, struct fs_writeback, link)->op;

		if (c != but && overlaps(c, off, end))
			return false;
	}
	return true;
}

/* Is something in the way of one that waits? Carriers are in the order of their seq. */
static bool is_in_the_way(const struct fs_unstable *r, const struct fs_op *op)
{
	list_for_each (node, &r->writebacks) {
		const struct fs_op *c = container_of(node, struct fs_writeback, link)->op;

		if (c->writeback->seq > op->writeback->seq)
			break;
		if (overlaps(c, op->writeback->off, op->writeback->end))
			return true;
	}
	return false;
}

static bool is_first(const struct fs_unstable *r, const struct fs_op *c)
{
	return r->writebacks.next == &c->writeback->link;
}

/* ---- requests ---- */

static bool may_write_back(const struct fs_op *op)
{
	const struct fs_lane *l = op->lane;

	return l->fs->conf.write != FS_WRITE_WAIT && !fs_rw(op)->sync && !op->fi.writepage &&
	       !(op->fi.flags & O_DIRECT) && l->state == FS_LANE_RUNS;
}

/* Bytes that the buffer of `c`, the last of a batch or its head, takes from its first one on. */
static size_t room_of(const struct fs_op *head, const struct fs_op *c)
{
	const struct fs *fs = c->lane->fs;
	size_t room = (size_t)(c->buf->data + fs->data_size - fs_rw(c)->data);
	size_t before = (size_t)(c->off - head->off);
	uint32_t wsize = fs_facts(fs, head->inode)->wsize;

	if (wsize < before)
		return 0; /* it was restarted, and takes less now */
	return room < wsize - before ? room : wsize - before;
}

/* Does it fit in, at the end or inside? Inode lock held. */
static bool fits(const struct fs_op *head, const struct fs_op *c, const struct fs_op *op)
{
	return c->file == op->file && fs_append_joins(c, op) && begin_of(op) >= begin_of(c) &&
	       begin_of(op) <= end_of(c) && end_of(op) - begin_of(c) <= room_of(head, c);
}

void fs_writeback_moved(struct fs_op *c)
{
	c->writeback->kept.appends = fs_rw(c)->append;
	fs_kept_data(c->lane->fs, &c->writeback->kept, c->file, (uint64_t)c->off, fs_rw(c)->data,
		(uint32_t)c->size);
}

bool fs_writeback_join(struct fs_op *op, const void *data)
{
	struct fs_inode *in = op->inode;
	struct fs_op *head, *c, *full = NULL;
	struct fs_unstable *r;
	bool joins = false;
	size_t at, before;

	if (!may_write_back(op) || op->size >= FS_UNSTABLE_LARGE || fs_op_is_too_big(op))
		return false;
	mutex_lock(&in->lock);
	r = in->unstable;
	head = r ? r->open : NULL;
	c = head ? fs_batch_last(head) : NULL;
	if (c && fits(head, c, op) && is_free(r, c, begin_of(op), end_of(op))) {
		joins = true;
		at = (size_t)(op->off - c->off);
		before = c->size;
		memcpy((uint8_t *)(uintptr_t)fs_rw(c)->data + at, data, op->size);
		if (c->size < at + op->size)
			c->size = at + op->size;
		fs_kept_request(op->lane->fs, &c->writeback->kept, op->unique);
		if (fs_rw(c)->asked != c->off)
			fs_writeback_moved(c);
		atomic_fetch_add(&c->lane->writeback->bytes, c->size - before);
		if (c->size == room_of(head, c))
			full = take_open(r);
	}
	mutex_unlock(&in->lock);
	if (!joins)
		return false;
	stats_count(&op->lane->stats->copied_bytes, op->size);
	stats_count(&op->lane->stats->writes_joined, 1);
	fs_append_answer(op, op->size);
	send_from(op->lane, full);
	fs_reply_write(op, op->size);
	return true;
}

/* Does it wait for others, which join it or its batch? */
static bool stays_open(struct fs_op *c)
{
	if (c->lane->fs->conf.write != FS_WRITE_LAZY || c->size >= room_of(c, c))
		return false;
	return c->size < FS_UNSTABLE_LARGE || !fs_batch_is_full(c);
}

/* Inode lock held. Returns the one to be sent now that was open before it, maybe with it. */
static struct fs_op *list_writeback(struct fs_op *c, struct fs_unstable *r, bool *ret_joined)
{
	struct fs_op *open = r->open;

	c->writeback->seq = ++r->writeback_seq;
	list_push_back(&r->writebacks, &c->writeback->link);
	fs_unstable_listed(c->file, 1);
	r->appends += fs_rw(c)->append;
	*ret_joined = open && fs_batch_takes(open, c);
	if (*ret_joined) {
		fs_batch_add(open, c);
		return fs_batch_is_full(open) ? take_open(r) : NULL;
	}
	take_open(r);
	/* An append has to wait for all before it, so others may join it meanwhile. */
	if (stays_open(c) || (fs_rw(c)->append && !is_first(r, c)))
		r->open = c;
	return open;
}

bool fs_writeback_begin(struct fs_op *op, void (*send)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	struct fs_lane *l = op->lane;
	struct fs_op *before;
	struct fs_unstable *r;
	bool stays, joined;

	/* What is refused for its place is refused by the server, at once. */
	if (!may_write_back(op) || op->abandoned || fs_op_is_too_big(op))
		return false;
	if (l->writeback->cnt >= l->writeback->max ||
		atomic_load(&l->writeback->bytes) + op->size > l->fs->conf.dirty) {
		send_oldest(l, UINT64_MAX); /* there will be room */
		return false;
	}
	mutex_lock(&in->lock);
	r = fs_unstable_of(in);
	if (!r || !is_free(r, NULL, begin_of(op), end_of(op))) {
		mutex_unlock(&in->lock);
		return false;
	}
	op->writeback->send = send;
	op->writeback->since = fs_op_now(op);
	fs_kept_request(l->fs, &op->writeback->kept, op->unique);
	if (fs_rw(op)->asked != op->off)
		fs_writeback_moved(op);
	before = list_writeback(op, r, &joined);
	stays = r->open == op;
	mutex_unlock(&in->lock);
	op->began = op->writeback->active = true;
	l->writeback->cnt++;
	atomic_fetch_add(&l->writeback->bytes, op->size);
	stats_count(&l->stats->writes_behind, 1);
	stats_count(&l->stats->writes_coupled, joined);
	fs_append_answer(op, op->size);
	fs_reply_write_early(op, op->size);
	if (stays) {
		list_push_back(&l->writeback->open, &op->writeback->open_link);
		if (!reactor_timer_armed(&l->writeback->timer))
			arm(l);
	}
	/* What ends by that may want this one, and send it; or it is a part of that. */
	send_from(l, before);
	if (!stays && !joined)
		send(op);
	return true;
}

/* ---- the end of a writeback ---- */

/* Those for whom nothing is in the way any more. Inode lock held. */
static void take_waiters(struct fs_unstable *r, struct list *ret)
{
	list_for_each_safe (node, next, &r->writeback_waiters) {
		const struct fs_op *op = container_of(node, struct fs_op, link);

		if (op->writeback->active ? !is_first(r, op) : is_in_the_way(r, op))
			continue;
		list_del(node);
		list_push_back(ret, node);
	}
}

void fs_writeback_take_back(struct fs_op *op, int err)
{
	log_warn_limited("WRITE to file %llu, answered before: %s",
		(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	atomic_fetch_add(&op->lane->fs->lost_bytes, op->size - fs_rw(op)->done);
	fs_notify_inval_inode(op->lane->fs, op->inode, op->off, (off_t)op->size);
	mutex_lock(&op->inode->lock);
	fs_file_tell_error(op->inode, err);
	mutex_unlock(&op->inode->lock);
}

void fs_writeback_done(struct fs_op *op, int err)
{
	struct fs_inode *in = op->inode;
	struct fs_lane *l = op->lane;
	struct fs_unstable *r = in->unstable;
	struct fs_op *next = NULL;
	struct list woken;

	assert(op->writeback->active && list_empty(&op->writeback->parts));
	list_init(&woken);
	if (err)
		fs_writeback_take_back(op, err);
	mutex_lock(&in->lock);
	list_del(&op->writeback->link);
	fs_kept_drop(l->fs, &op->writeback->kept);
	fs_unstable_listed(op->file, -1);
	r->appends -= fs_rw(op)->append;
	take_waiters(r, &woken);
	/* It was open only because it had to wait. */
	if (r->open && is_first(r, r->open) && !stays_open(r->open))
		next = take_open(r);
	mutex_unlock(&in->lock);
	l->writeback->cnt--;
	atomic_fetch_sub(&l->writeback->bytes, op->size);
	fs_op_wake_all(&woken);
	if (next) {
		next->then = send_now;
		fs_op_wake(next);
	}
	op->writeback->active = false;
	fs_op_end(op);
}

/* ---- waiting ---- */

bool fs_writeback_turn(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	bool first;

	mutex_lock(&in->lock);
	first = is_first(in->unstable, op);
	if (!first) {
		op->then = again;
		list_push_back(&in->unstable->writeback_waiters, &op->link);
	}
	mutex_unlock(&in->lock);
	return first;
}

bool fs_writeback_beyond(const struct fs_inode *in, uint64_t off)
{
	mutex_assert_held(&in->lock);
	return in->unstable && !is_free(in->unstable, NULL, off, FS_WRITEBACK_ALL);
}

bool fs_writeback_is_dirty(const struct fs_inode *in)
{
	/* In this order: what was written back is unstable before it is not written back. */
	return atomic_load(&in->is_written_back) || atomic_load(&in->is_unstable);
}

/* It, or its batch, is all there is to be committed. Inode lock held. */
static bool is_alone(const struct fs_unstable *r, struct fs_op *c)
{
	return r->writebacks.next == &c->writeback->link &&
	       r->writebacks.prev == &fs_batch_last(c)->writeback->link && r->cnt == 0 &&
	       r->reserved == 0 && r->io == 0;
}

/* alone: beside appends the file's end must not be another one. */
static bool wait_for(struct fs_op *op, struct fs_inode *in, uint64_t off, uint64_t end,
	bool durable, bool alone, void (*again)(struct fs_op *op))
{
	struct fs_op *wanted = NULL;
	struct fs_unstable *r;
	bool waits = false;

	mutex_lock(&in->lock);
	r = in->unstable;
	if (alone && r && r->appends > 0) {
		off = 0;
		end = FS_WRITEBACK_ALL;
	}
	if (fs_writeback_any(in)) {
		op->writeback->seq = r->writeback_seq;
		op->writeback->off = off;
		op->writeback->end = end;
		waits = is_in_the_way(r, op);
	}
	if (waits) {
		if (r->open && begin_of(r->open) < end && off < end_of(fs_batch_last(r->open)))
			wanted = take_open(r);
		if (wanted && durable && is_alone(r, wanted))
			fs_rw(wanted)->sync = true;
		op->then = again;
		list_push_back(&r->writeback_waiters, &op->link);
	}
	mutex_unlock(&in->lock);
	if (!waits)
		return false;
	/* It may be woken already, but runs on this thread, later. */
	fs_op_put_call(op);
	send_from(op->lane, wanted);
	return true;
}

bool fs_writeback_wait(struct fs_op *op, struct fs_inode *in, uint64_t off, uint64_t end,
	bool durable, void (*again)(struct fs_op *op))
{
	return atomic_load(&in->is_written_back) &&
	       wait_for(op, in, off, end, durable, false, again);
}

bool fs_writeback_wait_to_write(struct fs_op *op, void (*again)(struct fs_op *op))
{
	return atomic_load(&op->inode->is_written_back) &&
	       wait_for(op, op->inode, begin_of(op), end_of(op), false, !fs_rw(op)->append, again);
}
