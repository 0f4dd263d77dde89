/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_ahead.h"
#include "fs_append.h"
#include "fs_block.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_reply.h"
#include "fs_part.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Requests of a stream may come in another order by so many: the kernel has several in flight. */
#define SLACK 4u
/* Requests that follow each other before anything is fetched. */
#define RUN_MIN 2u
/* Operations that are left to requests. */
#define OPS_SPARE 8u
#define TICK_NS   (500 * NSEC_PER_MSEC)

/* No request finds any of them any more. Inode lock held. */
static void drop_all(struct fs_ahead *a, struct list *gone)
{
	fs_block_detach_before(&a->blocks, UINT64_MAX, gone);
	a->upto = 0;
}

/* ---- fetching ---- */

void fs_ahead_landed(struct fs_op *b, bool failed, size_t len, bool eof)
{
	struct fs_inode *in = b->inode;
	struct fs_ahead *a = b->file->ahead;
	struct list woken, gone;

	list_init(&woken);
	list_init(&gone);
	fs_op_put_call(b);
	mutex_lock(&in->lock);
	b->block->flying = false;
	if (--a->flying == 0 && a->closer) {
		list_push_back(&woken, &a->closer->link);
		a->closer = NULL;
	}
	b->block->len = len;
	b->block->eof = eof;
	list_splice_back(&woken, &b->block->waiters);
	if (b->block->dropped)
		list_push_back(&gone, &b->block->link);
	else if (failed)
		fs_block_detach(b, &gone);
	mutex_unlock(&in->lock);
	fs_op_wake_all(&woken);
	fs_block_send_home(b->lane, &gone);
}

/* Whoever reads there asks for itself, and hears of the error. */
static void fetch_failed(struct fs_op *b, int err)
{
	fs_ahead_landed(b, true, 0, false);
}

static void fetch_done(struct nfs4_call *call)
{
	struct fs_op *b = fs_op_of(call);
	const struct nfs4_op_read *r = &call->u.read;

	if (call->err) {
		fetch_failed(b, -call->err);
		return;
	}
	stats_count(&b->lane->stats->bytes_read, r->len);
	if (r->len && r->data != b->buf->data) {
		memcpy(b->buf->data, r->data, r->len);
		stats_count(&b->lane->stats->copied_bytes, r->len);
	}
	fs_ahead_landed(b, false, r->len, r->eof);
}

static void fetch_start(struct fs_op *b)
{
	struct fs_inode *in = b->inode;
	struct nfs4_op_read *r = &b->call->u.read;

	mutex_lock(&in->lock);
	b->block->seq = in->attr_seq;
	b->block->inval = in->inval_want;
	mutex_unlock(&in->lock);
	b->block->since = fs_op_now(b);
	*r = (struct nfs4_op_read){
		.fh = &b->fh,
		.state = b->file->state,
		.offset = (uint64_t)b->off,
		.count = (uint32_t)b->size,
		.sink = {.buf = b->buf, .p = b->buf->data, .len = (uint32_t)b->size},
	};
	b->call->done = fetch_done;
	nfs4_read(b->call);
}

static bool has_room(const struct fs_lane *l)
{
	return l->ahead->cnt < l->ahead->max && l->ops_free > OPS_SPARE && list_empty(&l->parked) &&
	       rpcrdma_buf_free_count(l->xprt) > l->unstable->bufs_max / 2;
}

/* Inode lock held. NULL: there is no room. */
static struct fs_op *new_block(struct fs_lane *l, struct fs_file *f, uint64_t off, size_t size)
{
	struct fs_op *b = has_room(l) ? fs_op_new(l) : NULL;

	if (!b)
		return NULL;
	b->off = (off_t)off;
	b->size = size;
	b->inode = f->inode; /* the caller references it */
	b->file = fs_file_get(f);
	b->cred = f->cred;
	fs_block_begin(b, &f->ahead->blocks);
	f->ahead->flying++;
	return b;
}

/* How far ahead the stream is read: more the longer it goes on. */
static uint64_t window(const struct fs *fs, const struct fs_ahead *a)
{
	uint64_t most = fs->conf.readahead, w = fs->data_size;

	for (unsigned int i = RUN_MIN; i < a->run && w < most; i++)
		w *= 2;
	return w < most ? w : most;
}

/* Is it the next one of the stream, or one beside it? Inode lock held. */
static bool follows(const struct fs_ahead *a, uint64_t off, size_t size)
{
	uint64_t slack = SLACK * size;

	return a->run > 0 && off + slack >= a->next && off <= a->next + slack;
}

static struct fs_ahead *ahead_of(struct fs_file *f)
{
	if (!f->ahead) {
		f->ahead = calloc(1, sizeof(*f->ahead));
		if (f->ahead)
			list_init(&f->ahead->blocks);
	}
	return f->ahead;
}

struct fs_op *fs_ahead_first(struct fs_lane *l, struct fs_file *f, size_t size)
{
	struct fs_ahead *a = ahead_of(f);
	struct fs_op *b = a ? new_block(l, f, 0, size) : NULL;

	mutex_assert_held(&f->inode->lock);
	if (!b)
		return NULL;
	/* Who reads it from its begin goes on with what follows it. */
	a->run = 1;
	a->upto = size;
	b->block->seq = f->inode->attr_seq;
	b->block->inval = f->inode->inval_want;
	b->block->since = fs_op_now(b);
	return b;
}

static void fetch(struct fs_lane *l, struct fs_file *f, struct list *born)
{
	struct fs_ahead *a = f->ahead;
	uint64_t until = a->next + window(l->fs, a), end = f->inode->attr.size;
	uint64_t from = a->upto > a->next ? a->upto : a->next;
	uint32_t rsize = fs_facts(l->fs, f->inode)->rsize;
	struct fs_op *b;

	if (rsize > l->fs->data_size)
		rsize = (uint32_t)l->fs->data_size;
	/* After the first one each begins where READs like to. */
	while (from < until && from < end && (b = new_block(l, f, from, rsize - from % rsize))) {
		list_push_back(born, &b->link);
		from = fs_block_end(b);
	}
	a->upto = from;
}

void fs_ahead_arm(struct fs_lane *l)
{
	if (l->ahead->cnt > 0 && !reactor_timer_armed(&l->ahead->timer))
		reactor_timer_in(l->reactor, &l->ahead->timer, TICK_NS);
}

static void start_all(struct fs_lane *l, struct list *born)
{
	struct list *node;

	while ((node = list_pop_front(born))) {
		struct fs_op *b = container_of(node, struct fs_op, link);

		fs_inode_ref(l->fs, b->inode);
		b->failed = fetch_failed;
		stats_count(&l->stats->reads_ahead, 1);
		fs_op_call_buf(b, fetch_start);
	}
	fs_ahead_arm(l);
}

bool fs_ahead_may(const struct fs_lane *l, int flags)
{
	const struct fs_conf *conf = &l->fs->conf;

	return conf->readahead && !conf->noac && !(flags & O_DIRECT) && l->state == FS_LANE_RUNS;
}

void fs_ahead_note(struct fs_lane *l, struct fs_file *f, uint64_t off, size_t size)
{
	struct fs_inode *in = f->inode;
	struct list born, gone;
	struct fs_ahead *a;

	list_init(&born);
	list_init(&gone);
	mutex_lock(&in->lock);
	a = f->released ? NULL : ahead_of(f);
	if (a && follows(a, off, size)) {
		a->run++;
		a->next = off + size > a->next ? off + size : a->next;
		/* Not just behind it: others may be about to read there. */
		if (a->next > SLACK * size)
			fs_block_detach_before(&a->blocks, a->next - SLACK * size, &gone);
		if (a->run >= RUN_MIN && in->attr_known)
			fetch(l, f, &born);
	} else if (a) {
		drop_all(a, &gone);
		a->run = 1;
		a->next = off + size;
	}
	mutex_unlock(&in->lock);
	fs_block_send_home(l, &gone);
	start_all(l, &born);
}

/* ---- serving ---- */

static void reply_from(struct fs_op *op, struct fs_op *b)
{
	struct fs_file *f = fs_file_get(op->file);
	struct fs_inode *in = f->inode;
	struct fs_lane *l = op->lane;
	size_t at = (size_t)(op->off - b->off), len = b->block->len - at;
	struct list gone;

	if (len > op->size)
		len = op->size;
	list_init(&gone);
	stats_count(&l->stats->reads_from_ahead, 1);
	fs_append_read(op, len);
	fs_reply_data(op, b->buf->data + at, len); /* op is over */
	mutex_lock(&in->lock);
	fs_block_read_over(b, (uint64_t)b->off + at + len, &gone);
	mutex_unlock(&in->lock);
	fs_block_send_home(l, &gone);
	fs_file_put(l->fs, f);
}

/*
 * A block that ends the file is not believed while more is written back: nor is what the server
 * may have lost meanwhile. Inode lock held.
 */
static bool may_serve(const struct fs_op *op)
{
	return !fs_rw(op)->checked && !fs_unstable_suspect_locked(op) &&
	       !fs_writeback_beyond(op->inode, (uint64_t)op->off);
}

bool fs_ahead_serve(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	struct fs_op *b = NULL;
	struct list gone;
	bool waits = false;

	/* Without the option what there is came with the OPEN, before anybody had the handle. */
	if (!op->lane->fs->conf.readahead && !op->file->ahead)
		return false;
	if (op->abandoned || op->fi.flags & O_DIRECT)
		return false;
	list_init(&gone);
	mutex_lock(&in->lock);
	if (op->file->ahead && may_serve(op))
		b = fs_block_find(&op->file->ahead->blocks, op);
	if (b && !b->block->flying && fs_block_is_stale(b, fs_op_now(op))) {
		drop_all(op->file->ahead, &gone);
		b = NULL;
	}
	waits = b && b->block->flying;
	if (waits) {
		op->then = again;
		list_push_back(&b->block->waiters, &op->link);
	} else if (b) {
		b->block->readers++;
	}
	mutex_unlock(&in->lock);
	fs_block_send_home(op->lane, &gone);
	if (waits)
		fs_op_put_call(op);
	else if (b)
		reply_from(op, b);
	return b != NULL;
}

/* ---- the end ---- */

bool fs_ahead_close(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	struct fs_ahead *a;
	struct list gone;
	bool waits = false;

	list_init(&gone);
	mutex_lock(&in->lock);
	a = op->file->ahead;
	if (a) {
		drop_all(a, &gone);
		waits = a->flying > 0;
	}
	if (waits) {
		op->then = again;
		a->closer = op;
	}
	mutex_unlock(&in->lock);
	fs_block_send_home(op->lane, &gone);
	return waits;
}

static void file_gone(struct fs_file *f)
{
	free(f->ahead);
}

/* Blocks of the lane that are old, or all. */
static void drop_old(struct fs_lane *l, bool all)
{
	uint64_t now = reactor_now(l->reactor);
	struct list gone;

	list_init(&gone);
	list_for_each (node, &l->ahead->blocks) {
		struct fs_op *b = container_of(node, struct fs_block, lane_link)->op;

		mutex_lock(&b->inode->lock);
		if (!b->block->dropped && (all || (!b->block->flying && fs_block_is_stale(b, now))))
			fs_block_detach(b, &gone);
		mutex_unlock(&b->inode->lock);
	}
	fs_block_send_home(l, &gone);
}

static void ticked(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_ahead_lane, timer)->lane;

	drop_old(l, false);
	if (l->ahead->cnt > 0)
		reactor_timer_in(l->reactor, &l->ahead->timer, TICK_NS);
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->ahead = mem;
	l->ahead->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	list_init(&l->ahead->blocks);
	reactor_timer_init(&l->ahead->timer, ticked);
	l->ahead->max = l->unstable->bufs_max / 4;
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->ahead->timer);
}

/* The blocks that it has are over. */
static void lane_stop(struct fs_lane *l)
{
	drop_old(l, true);
}

const struct fs_part fs_ahead_part = {
	.op_size = sizeof(struct fs_block),
	.op_made = fs_block_made,
	.lane_size = sizeof(struct fs_ahead_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_stop = lane_stop,
	.file_gone = file_gone,
};
