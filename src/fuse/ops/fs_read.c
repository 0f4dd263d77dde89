/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ. The server writes into a registered buffer (or the data comes inline
 * and is left where it was received), and one writev hands it to the kernel.
 * A request larger than rsize, or one that the server answers in part, takes
 * several READs one after the other; an error in any of them is the answer,
 * because the kernel would take a short one for the end of the file; and so is
 * a READ that brings nothing and is not the end. The server first gets the data
 * that is written back in that range (fs_writeback.h).
 */
#include "fs_current.h"
#include "fs_ahead.h"
#include "fs_append.h"
#include "fs_asked_buf.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void read_start(struct fs_op *op);

static void read_in_order(struct fs_op *op)
{
	if (!fs_ahead_serve(op, read_in_order))
		fs_op_call_buf(op, read_start);
}

static void read_again(struct fs_op *op, int err)
{
	fs_rw(op)->checked = err != 0; /* more cannot be done: it reads what there is */
	fs_op_call_buf(op, read_start);
}

/*
 * The server lost what was written to this file, or was restarted and may have: it is committed,
 * or written again, before what it reads there is believed.
 */
static void commit_lost(struct fs_op *op)
{
	fs_asked_buf_put(op->lane, op->buf);
	op->buf = NULL;
	fs_rw(op)->done = 0;
	fs_commit(op, read_again);
}

/* Inode lock held. */
static bool may_be_lost(struct fs_op *op)
{
	return !fs_rw(op)->checked && fs_unstable_suspect_locked(op);
}

/* Before it is read: may data be lost? Notes also whether more is written back behind it. */
static bool lost_before(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	bool lost;

	if (!fs_writeback_is_dirty(in))
		return false;
	mutex_lock(&in->lock);
	lost = may_be_lost(op);
	fs_rw(op)->grows |= fs_writeback_beyond(in, (uint64_t)op->off);
	mutex_unlock(&in->lock);
	return lost;
}

/* It was restarted while it answered. */
static bool waits_for_lost(struct fs_op *op)
{
	if (fs_rw(op)->checked || !fs_unstable_suspect(op))
		return false;
	commit_lost(op);
	return true;
}

/*
 * What ends here was not the end: it was written back, and the server may not have had it. The
 * kernel would make the file that short.
 */
static bool waits_for_end(struct fs_op *op, const struct nfs4_op_read *r)
{
	if (!fs_rw(op)->grows || (!r->eof && r->len != 0) || fs_rw(op)->done + r->len >= op->size)
		return false;
	fs_asked_buf_put(op->lane, op->buf);
	op->buf = NULL;
	fs_rw(op)->done = 0;
	if (!fs_writeback_wait(
		    op, op->inode, (uint64_t)op->off, FS_WRITEBACK_ALL, false, read_in_order))
		read_in_order(op);
	return true;
}

static void reply(struct fs_op *op, const uint8_t *data, size_t len)
{
	fs_append_read(op, len);
	fs_reply_data(op, data, len);
}

static void read_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_read *r = &call->u.read;
	uint8_t *place = op->buf->data + fs_rw(op)->done;
	bool whole = fs_rw(op)->done == 0 && (r->eof || r->len == op->size);

	if (call->err) {
		fs_reply_err(op, -call->err);
		return;
	}
	if (waits_for_lost(op) || waits_for_end(op, r))
		return;
	/* WIRE: no progress. The kernel would take it for the end, and cut the file off there. */
	if (r->len == 0 && !r->eof) {
		fs_reply_err(op, EIO);
		return;
	}
	stats_count(&op->lane->stats->bytes_read, r->len);
	if (whole) {
		reply(op, r->data, r->len);
		return;
	}
	if (r->len && r->data != place) {
		/* A part that came inline must join the others. */
		memcpy(place, r->data, r->len);
		stats_count(&op->lane->stats->copied_bytes, r->len);
	}
	fs_rw(op)->done += r->len;
	if (r->eof || fs_rw(op)->done == op->size)
		reply(op, op->buf->data, fs_rw(op)->done);
	else
		fs_op_call(op, read_start);
}

static void read_start(struct fs_op *op)
{
	struct nfs4_op_read *r = &op->call->u.read;
	size_t left = op->size - fs_rw(op)->done;
	uint32_t rsize = fs_facts(op->lane->fs, op->inode)->rsize;

	if (fs_rw(op)->done == 0)
		fs_rw(op)->grows = false;
	if (lost_before(op)) {
		commit_lost(op);
		return;
	}
	memset(r, 0, sizeof(*r));
	r->fh = &op->fh;
	r->state = op->file->state;
	r->offset = (uint64_t)op->off + fs_rw(op)->done;
	r->count = left < rsize ? (uint32_t)left : rsize;
	r->sink.buf = op->buf;
	r->sink.p = op->buf->data + fs_rw(op)->done;
	r->sink.len = r->count;
	op->call->done = read_done;
	nfs4_read(op->call);
}

void fs_do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);
	struct fs_lane *l = fs_current();
	struct fs_file *f;

	if (!op)
		return;
	f = fs_ahead_may(l, fi->flags) ? fs_file_get(op->file) : NULL;
	/* The kernel asks for at most what INIT agreed on: max_pages. */
	if (size > l->fs->data_size)
		size = l->fs->data_size;
	op->off = off;
	op->size = size;
	if (size == 0)
		fs_reply_data(op, NULL, 0);
	else if (!fs_writeback_wait(
			 op, op->inode, (uint64_t)off, (uint64_t)off + size, false, read_in_order))
		read_in_order(op);
	if (f) { /* the op may be over, and the file released */
		fs_ahead_note(l, f, (uint64_t)off, size);
		fs_file_put(l->fs, f);
	}
}
