/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_append.h"
#include "fs_asked_buf.h"
#include "fs_batch.h"
#include "fs_writeback.h"
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Others may be as quick each time; a server for which no size is the right one, for ever. */
#define MISSES_MAX 64u
/* No file is so large that a write behind its end would overflow. */
#define SIZE_MAX_SANE ((uint64_t)INT64_MAX - (1u << 30))

/* ---- requests ---- */

void fs_append_begin(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	const struct fs_unstable *r;

	fs_rw(op)->asked = op->off;
	if (!(op->fi.flags & O_APPEND) || (op->fi.flags & O_DIRECT) || op->fi.writepage)
		return;
	mutex_lock(&in->lock);
	r = in->unstable;
	fs_rw(op)->append = !fs_part_inode_is_vouched(op->lane->fs, in) &&
			    (!r || (uint64_t)op->off >= r->kernel_end);
	fs_rw(op)->redone = op->lane->redone;
	if (fs_rw(op)->append && r && op->off + r->shift >= 0)
		op->off += r->shift;
	mutex_unlock(&in->lock);
}

void fs_append_answer(struct fs_op *op, size_t count)
{
	struct fs_inode *in = op->inode;
	uint64_t end = (uint64_t)fs_rw(op)->asked + count;

	if (!(op->fi.flags & O_APPEND) || fs_rw(op)->redone)
		return; /* others need not know it; of one that is moved it is not the kernel's */
	mutex_lock(&in->lock);
	if (in->unstable && in->unstable->kernel_end < end)
		in->unstable->kernel_end = end;
	mutex_unlock(&in->lock);
}

/* ---- another end ---- */

static void call_for(struct fs_op *op, void (*start)(struct fs_op *op))
{
	op->failed = fs_rw(op)->gave_up;
	fs_op_call(op, start);
}

/* As it was asked for. */
static void go_plain(struct fs_op *op)
{
	fs_rw(op)->plain = true;
	call_for(op, fs_rw(op)->again);
}

void fs_append_note(struct fs_op *op)
{
	if (!op->writeback->active && fs_rw(op)->asked != op->off)
		fs_asked_buf_move(op->lane, op->buf, op->unique, (uint64_t)op->off);
}

/* The op, its batch, and all that appends behind it: they follow each other. */
static void move(struct fs_op *op, uint64_t end)
{
	struct fs_inode *in = op->inode;
	off_t by = (off_t)end - op->off;
	struct fs_unstable *r;

	mutex_lock(&in->lock);
	r = in->unstable;
	op->off += by;
	list_for_each (node, &r->writebacks) {
		struct fs_op *c = container_of(node, struct fs_writeback, link)->op;

		if (!op->writeback->active || !fs_rw(c)->append)
			continue;
		if (c != op)
			c->off += by;
		fs_writeback_moved(c);
	}
	r->shift = op->off - fs_rw(op)->asked;
	in->attr.size = end;
	mutex_unlock(&in->lock);
	fs_append_note(op);
	fs_rw(op)->moved = true;
	fs_attr_by_others(op->lane->fs, in);
}

/* Is data unstable that would lie behind this end? */
static bool is_unstable_beyond(struct fs_inode *in, uint64_t end)
{
	const struct fs_unstable *r;
	bool beyond;

	mutex_lock(&in->lock);
	r = in->unstable;
	beyond = r->cnt > 0 && r->v[r->cnt - 1]->off + r->v[r->cnt - 1]->len > end;
	mutex_unlock(&in->lock);
	return beyond;
}

static void look(struct fs_op *op);

/* Nothing was lost: another made it shorter. */
static void committed(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_rw(op)->committed = true;
	if (!call->err && fs_unstable_committed(op, &call->u.commit.verf))
		call_for(op, look);
	else
		go_plain(op);
}

static void commit(struct fs_op *op)
{
	fs_commit_call(op, committed);
}

static void move_on(struct fs_op *op, uint64_t end)
{
	move(op, end);
	call_for(op, fs_rw(op)->again);
}

/* Its data begins with these bytes. */
static bool begins_with(struct fs_op *op, const uint8_t *p, size_t len)
{
	struct nfs4_op_write w = {.offset = (uint64_t)op->off};

	fs_batch_data(op, &w);
	for (unsigned int i = 0; i < w.data_cnt && len > 0; i++) {
		size_t n = w.data[i].len < len ? w.data[i].len : len;

		if (memcmp(w.data[i].p, p, n) != 0)
			return false;
		p += n;
		len -= n;
	}
	return len == 0;
}

/*
 * The same bytes are there: it was done, or is as good as done. Else nobody can tell what became of
 * it, and what others appended stays.
 */
static void compared(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_read *r = &call->u.read;
	struct rpcrdma_buf *buf = r->sink.buf;
	bool there = !call->err && r->len > 0 && begins_with(op, r->data, r->len);

	fs_asked_buf_put(op->lane, buf);
	if (call->err && call->status == NFS4_OK) {
		fs_append_doom(op, -call->err);
		fs_rw(op)->gave_up(op, -call->err);
	} else if (there) {
		go_plain(op);
	} else {
		move_on(op, fs_rw(op)->end);
	}
}

/* Of its data, as much as is in the file, and in one READ and buffer. */
static uint32_t compared_len(struct fs_op *op)
{
	uint64_t len = fs_rw(op)->end - (uint64_t)op->off;
	uint32_t rsize = fs_facts(op->lane->fs, op->inode)->rsize;
	struct nfs4_op_write w = {.offset = (uint64_t)op->off};
	size_t all = 0;

	fs_batch_data(op, &w);
	for (unsigned int i = 0; i < w.data_cnt; i++)
		all += w.data[i].len;
	len = len < all ? len : all;
	len = len < rsize ? len : rsize;
	return (uint32_t)(len < op->lane->fs->data_size ? len : op->lane->fs->data_size);
}

/* False: there is no buffer. */
static bool compare(struct fs_op *op)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get_above(op->lane->xprt, 0);
	uint32_t len = compared_len(op);
	struct nfs4_op_read *r = &op->call->u.read;

	if (!buf)
		return false;
	buf->owner = NULL;
	*r = (struct nfs4_op_read){
		.fh = &op->fh,
		.state = op->file->share_access & OPEN4_SHARE_ACCESS_READ ? op->file->state : NULL,
		.offset = (uint64_t)op->off,
		.count = len,
		.sink = {.buf = buf, .p = buf->data, .len = len},
	};
	op->call->done = compared;
	nfs4_read(op->call);
	return true;
}

static void looked(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_attr *a = &call->u.getattr.attr;

	if (call->err && call->status == NFS4_OK) {
		fs_append_doom(op, -call->err);
		fs_rw(op)->gave_up(op, -call->err);
		return;
	}
	if (call->err || !(a->valid & NFS4_ATTR_SIZE)) {
		go_plain(op);
		return;
	}
	if (a->size > SIZE_MAX_SANE) { /* WIRE */
		fs_rw(op)->gave_up(op, EFBIG);
		return;
	}
	if (a->size < (uint64_t)op->off && is_unstable_beyond(op->inode, a->size)) {
		if (fs_rw(op)->committed)
			go_plain(op);
		else
			call_for(op, commit);
		return;
	}
	fs_rw(op)->end = a->size;
	if (fs_rw(op)->redone && !fs_rw(op)->sought && a->size > (uint64_t)op->off) {
		fs_rw(op)->sought = true;
		if (compare(op))
			return;
	}
	if (a->size != (uint64_t)op->off)
		move_on(op, a->size);
	else
		call_for(op, fs_rw(op)->again);
}

static void look(struct fs_op *op)
{
	op->call->u.getattr = (struct nfs4_op_getattr){.fh = &op->fh};
	op->call->done = looked;
	nfs4_getattr(op->call);
}

/* VERIFY is one of the operations that each server must have. */
static bool is_refused(enum nfs4_status status)
{
	return status == NFS4ERR_NOTSUPP || status == NFS4ERR_ATTRNOTSUPP ||
	       status == NFS4ERR_OP_ILLEGAL;
}

bool fs_append_missed(struct fs_op *op, void (*again)(struct fs_op *op),
	void (*gave_up)(struct fs_op *op, int err))
{
	const struct nfs4_call *call = op->call;
	const struct nfs4_op_write *w = &call->u.write;

	if (!w->at_end || (call->status != NFS4ERR_NOT_SAME && !is_refused(call->status)))
		return false;
	fs_rw(op)->again = again;
	fs_rw(op)->gave_up = gave_up;
	if (is_refused(call->status) || w->unsure || fs_rw(op)->done > 0 ||
		fs_rw(op)->misses++ >= MISSES_MAX)
		go_plain(op);
	else
		call_for(op, look);
	return true;
}

void fs_append_over(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;

	if (fs_rw(op)->moved)
		fs_notify_inval_inode(fs, op->inode, 0, 0);
	else if (fs_rw(op)->append && fs_rw(op)->asked != op->off)
		fs_notify_inval_inode(fs, op->inode, fs_rw(op)->asked, (off_t)op->size);
}

/* ---- no answer ---- */

void fs_append_doom(struct fs_op *op, int err)
{
	struct fs_inode *in = op->inode;

	if (!fs_rw(op)->append || !op->writeback->active)
		return;
	mutex_lock(&in->lock);
	list_for_each (node, &in->unstable->writebacks) {
		struct fs_op *c = container_of(node, struct fs_writeback, link)->op;

		if (c == in->unstable->open)
			break; /* others may still join it, and its batch */
		if (c != op && fs_rw(c)->append)
			fs_rw(c)->doomed = err;
	}
	mutex_unlock(&in->lock);
}

int fs_append_doomed(struct fs_op *op)
{
	int err;

	if (!fs_rw(op)->append)
		return 0;
	mutex_lock(&op->inode->lock);
	err = fs_rw(op)->doomed;
	mutex_unlock(&op->inode->lock);
	return err;
}

/* ---- the kernel's end ---- */

static void told(struct fs_inode *in, uint64_t size)
{
	mutex_assert_held(&in->lock);
	fs_unstable_shorter(in, size);
	if (in->unstable)
		in->unstable->shift = 0;
}

void fs_append_read(struct fs_op *op, size_t len)
{
	struct fs_inode *in = op->inode;

	if (!op->req || len >= op->size)
		return;
	mutex_lock(&in->lock);
	fs_unstable_shorter(in, (uint64_t)op->off + len);
	mutex_unlock(&in->lock);
}

const struct fs_part fs_append_part = {
	.inode_told = told,
};
