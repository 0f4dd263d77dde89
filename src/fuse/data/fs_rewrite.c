/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that the server lost is written again: adjacent extents together,
 * copied into one buffer (the one that holds it may be another lane's), under the
 * credential and the open of the handle that wrote them. One operation does it
 * for an inode, with the gate closed, because a WRITE on its way could be
 * overtaken by older data.
 *
 * The order matters: a buffer and a call first, then the gate. What waits at
 * the gate may hold all other buffers.
 */
#include "fs_asked_buf.h"
#include "fs_attr.h"
#include "fs_extent.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_op.h"
#include "fs_part.h"
#include "fs_unstable.h"
#include "log.h"

#include <errno.h>
#include <string.h>

static void next_batch(struct fs_op *op);

static void put_buf(struct fs_op *op)
{
	if (op->buf)
		fs_asked_buf_put(op->lane, op->buf);
	op->buf = NULL;
}

/* ---- the gate ---- */

/* Inode lock held. */
static void wait_here(struct fs_op *op, struct fs_unstable *r, void (*again)(struct fs_op *op))
{
	op->then = again;
	list_push_back(&r->waiters, &op->link);
}

/* Inode lock held. */
static void count_abandoned(struct fs_op *op, struct fs_unstable *r)
{
	r->abandoned++;
	op->gated_abandoned = true;
}

bool fs_rewrite_enter(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r;
	bool closed;

	mutex_lock(&in->lock);
	r = fs_unstable_of(in);
	closed = r && (r->rewriting || (r->abandoned && !op->abandoned));
	if (closed) {
		wait_here(op, r, again);
	} else if (r) {
		r->io++;
		op->gated = true;
		if (op->abandoned)
			count_abandoned(op, r);
	}
	mutex_unlock(&in->lock);
	/* It may have been woken already, but runs on this thread, later. */
	if (closed)
		fs_op_put_call(op);
	return !closed;
}

static void op_abandoned(struct fs_op *op)
{
	if (!op->gated)
		return;
	mutex_lock(&op->inode->lock);
	count_abandoned(op, op->inode->unstable);
	mutex_unlock(&op->inode->lock);
}

void fs_rewrite_left(struct fs_op *op, struct list *to_wake)
{
	struct fs_unstable *r = op->inode->unstable;

	mutex_assert_held(&op->inode->lock);
	if (!op->gated)
		return;
	if (op->gated_abandoned && --r->abandoned == 0 && !r->rewriting)
		list_splice_back(to_wake, &r->waiters);
	if (--r->io == 0 && r->rewriter) {
		list_push_front(to_wake, &r->rewriter->link);
		r->rewriter = NULL;
	}
	op->gated = op->gated_abandoned = false;
}

void fs_rewrite_leave(struct fs_op *op)
{
	struct list to_wake;

	if (!op->gated)
		return;
	list_init(&to_wake);
	mutex_lock(&op->inode->lock);
	fs_rewrite_left(op, &to_wake);
	mutex_unlock(&op->inode->lock);
	fs_op_wake_all(&to_wake);
}

bool fs_rewrite_wait(struct fs_op *op, void (*again)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;
	bool closed;

	mutex_lock(&in->lock);
	closed = in->unstable && in->unstable->rewriting;
	if (closed)
		wait_here(op, in->unstable, again);
	mutex_unlock(&in->lock);
	/* It may have been woken already, but runs on this thread, later. */
	if (closed)
		fs_op_put_call(op);
	return closed;
}

static void gate_open(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct list woken;

	list_init(&woken);
	mutex_lock(&in->lock);
	in->unstable->rewriting = false;
	list_splice_back(&woken, &in->unstable->waiters);
	mutex_unlock(&in->lock);
	fs_op_wake_all(&woken);
}

bool fs_rewrite_is_due(struct fs_inode *in)
{
	bool lost;

	mutex_lock(&in->lock);
	lost = in->unstable && in->unstable->lost > 0;
	mutex_unlock(&in->lock);
	return lost;
}

/* ---- one batch ---- */

/* Copies the next lost data into op->buf. False: none. */
static bool gather(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r = in->unstable;
	size_t room = op->lane->fs->data_size;

	op->commit->file = NULL;
	op->commit->len = 0;
	mutex_lock(&in->lock);
	for (size_t i = 0; i < r->cnt; i++) {
		struct fs_extent *e = r->v[i];

		if (!op->commit->file && !e->lost)
			continue;
		if (!op->commit->file) {
			op->commit->file = fs_file_get(e->mem->file);
			op->commit->off = e->off;
		} else if (!e->lost || e->mem->file != op->commit->file ||
			   e->off != op->commit->off + op->commit->len ||
			   op->commit->len + e->len > room) {
			break;
		}
		memcpy(op->buf->data + op->commit->len, e->p, e->len);
		op->commit->len += e->len;
		e->moving = true;
	}
	mutex_unlock(&in->lock);
	stats_count(&op->lane->stats->copied_bytes, op->commit->len);
	if (op->commit->len >= FS_UNSTABLE_LARGE)
		stats_count(&op->lane->stats->copied_bytes_large, op->commit->len);
	return op->commit->len > 0;
}

static bool is_moving(const struct fs_extent *e, void *ctx)
{
	return e->moving;
}

static bool is_moving_or_lost(const struct fs_extent *e, void *ctx)
{
	return e->moving || e->lost;
}

static void batch_over(struct fs_op *op, struct fs_unstable_mem *dead)
{
	fs_unstable_mem_free(op->lane, dead);
	fs_file_put(op->lane->fs, op->commit->file);
	op->commit->file = NULL;
	next_batch(op);
}

static void batch_written(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r = in->unstable;
	struct fs_unstable_mem *dead = NULL;

	mutex_lock(&in->lock);
	if (op->commit->durable)
		fs_extent_remove(r, is_moving, NULL, &dead);
	for (size_t i = 0; i < r->cnt; i++) {
		struct fs_extent *e = r->v[i];

		if (!e->moving)
			continue;
		e->moving = e->lost = false;
		r->lost--;
		e->seq = ++in->write_seq;
		e->verf = op->commit->verf;
		e->mem->gen = op->commit->gen;
	}
	if (!op->commit->durable)
		fs_unstable_new_verf(r, &op->commit->verf);
	mutex_unlock(&in->lock);
	batch_over(op, dead);
}

/* Given up; without an answer of the server all that is lost, or it would take as long each time.
 */
static void batch_failed(struct fs_op *op, int err, bool all)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable_mem *dead = NULL;
	uint64_t bytes;

	log_err("file %llu: data that the server lost cannot be written again: %s",
		(unsigned long long)fs_inode_fileid(in), strerror(err));
	mutex_lock(&in->lock);
	fs_file_tell_error(in, err); /* before its record goes */
	bytes = fs_extent_remove(in->unstable, all ? is_moving_or_lost : is_moving, NULL, &dead);
	mutex_unlock(&in->lock);
	atomic_fetch_add(&op->lane->fs->lost_bytes, bytes);
	batch_over(op, dead);
}

static void write_start(struct fs_op *op);

static void write_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_write *w = &call->u.write;
	bool first = op->commit->part == 0;

	if (call->err) {
		fs_attr_changed(op->inode);
		batch_failed(op, -call->err, call->status == NFS4_OK);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, &w->attr, op->attr_seq, fs_op_now(op));
	if (w->count == 0 || w->count > w->data[0].len) { /* WIRE: no progress, or more than sent */
		batch_failed(op, EIO, false);
		return;
	}
	if (first)
		op->commit->verf = w->verf;
	/* The server was another one again in the middle: from the start. */
	if (!op->commit->durable &&
		memcmp(&op->commit->verf, &w->verf, sizeof(op->commit->verf)) != 0)
		op->commit->part = 0;
	else
		op->commit->part += w->count;
	if (op->commit->part < op->commit->len)
		fs_op_call(op, write_start);
	else
		batch_written(op);
}

static void write_start(struct fs_op *op)
{
	struct nfs4_op_write *w = &op->call->u.write;
	uint32_t left = op->commit->len - op->commit->part;
	uint32_t wsize = fs_facts(op->lane->fs, op->inode)->wsize;

	if (op->commit->part == 0)
		op->commit->gen = nfs4_client_generation(op->lane->fs->client);
	memset(w, 0, sizeof(*w));
	op->call->cred = &op->commit->file->cred;
	w->fh = &op->fh;
	w->state = op->commit->file->state;
	w->offset = op->commit->off + op->commit->part;
	w->data[0].buf = op->buf;
	w->data[0].p = op->buf->data + op->commit->part;
	w->data[0].len = left < wsize ? left : wsize;
	w->data_cnt = 1;
	w->stable = op->commit->durable ? FILE_SYNC4 : UNSTABLE4;
	op->call->done = write_done;
	nfs4_write(op->call);
}

static void next_batch(struct fs_op *op)
{
	if (gather(op)) {
		op->commit->part = 0;
		fs_op_call(op, write_start);
		return;
	}
	put_buf(op);
	gate_open(op);
	op->commit->rewritten(op);
}

/* ---- the whole ---- */

/* With a buffer and a call. */
static void rewrite_begin(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_unstable *r = in->unstable;
	bool wait, drain = false;

	op->last_buf = false;
	mutex_lock(&in->lock);
	wait = r->rewriting;
	if (wait) {
		wait_here(op, r, op->commit->rewritten);
	} else {
		r->rewriting = true;
		drain = r->io > 0;
		if (drain) {
			op->then = next_batch;
			r->rewriter = op;
		}
	}
	mutex_unlock(&in->lock);
	if (wait) {
		put_buf(op);
		fs_op_put_call(op);
	} else if (!drain) {
		next_batch(op);
	}
}

void fs_rewrite(struct fs_op *op, bool durable, void (*done)(struct fs_op *op))
{
	op->commit->durable = durable;
	op->commit->rewritten = done;
	op->last_buf = true; /* WRITEs that have the others may wait for this */
	fs_op_call_buf(op, rewrite_begin);
}

const struct fs_part fs_rewrite_part = {
	.op_abandoned = op_abandoned,
};
