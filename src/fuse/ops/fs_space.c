/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a file has data and where it has none: fallocate (ALLOCATE, DEALLOCATE)
 * and lseek with SEEK_DATA and SEEK_HOLE (SEEK), RFC 7862 sections 4 and 6.
 *
 * With NFSv4.1 fallocate is EOPNOTSUPP, and lseek ENOSYS: the kernel then takes
 * the whole file for data, which is always true enough.
 *
 * No file has a byte past the server's maxfilesize: EFBIG, whatever is asked for.
 */
#include "fs_attr.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_mapped.h"
#include "fs_notify.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_share.h"

#include <errno.h>
#include <linux/falloc.h>
#include <string.h>

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

struct seek {
	bool hole;    /* SEEK_HOLE, else SEEK_DATA */
	bool mapped;  /* somebody might write when it came */
	bool written; /* the kernel has written what it held there */
	struct fs_mapped_wait wait;
};

static struct seek *seek(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct seek);
	return op->work;
}

/* ---- fallocate ---- */

struct space {
	bool punch;
};

static struct space *space(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct space);
	return op->work;
}

static void space_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_rewrite_leave(op);
	/* The kernel drops pages of the hole, and takes the size, when it hears of success. */
	if (!op->req)
		fs_notify_inval_inode(op->lane->fs, op->inode, op->off, (off_t)op->size);
	if (call->err) {
		fs_attr_changed(op->inode); /* a part of it may be done */
		fs_reply_err(op, -call->err);
		return;
	}
	fs_attr_update_own(
		op->lane->fs, op->inode, &call->u.allocate.attr, op->attr_seq, fs_op_now(op));
	fs_reply_err(op, 0);
}

static void space_start(struct fs_op *op);

static void gate_is_open(struct fs_op *op)
{
	fs_op_call(op, space_start);
}

static void space_start(struct fs_op *op)
{
	if (op->abandoned) { /* it waited: others may have written since */
		fs_reply_err(op, EINTR);
		return;
	}
	if (!fs_rewrite_enter(op, gate_is_open))
		return;
	op->call->u.allocate = (struct nfs4_op_allocate){
		.fh = &op->fh,
		.state = op->file->state,
		.offset = (uint64_t)op->off,
		.len = op->size,
	};
	op->call->done = space_done;
	if (space(op)->punch)
		nfs4_deallocate(op->call);
	else
		nfs4_allocate(op->call);
}

static void punch_committed(struct fs_op *op, int err)
{
	if (err)
		fs_reply_err(op, err);
	else
		fs_op_call(op, space_start);
}

void fs_do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	if (op == NULL)
		return;
	op->off = offset;
	op->size = (size_t)length;
	space(op)->punch = mode == PUNCH;
	if (fs_op_is_too_big(op))
		fs_reply_err(op, EFBIG);
	else if (mode != 0 && mode != PUNCH)
		fs_reply_err(op, EOPNOTSUPP); /* NFS has no other, and no size kept with ALLOCATE */
	else if (mode == PUNCH)
		/* Data that is unstable and then written again would fill the hole. */
		fs_commit(op, punch_committed);
	else if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, gate_is_open))
		gate_is_open(op);
}

/* ---- lseek ---- */

static void seek_start(struct fs_op *op);

static void seek_again(struct fs_op *op)
{
	fs_op_call(op, seek_start);
}

/* All of that is at the server, too: that it is written the kernel says before it is. */
static void seek_written(struct fs_op *op)
{
	fs_mapped_await(op, &seek(op)->wait, seek_again);
}

/* Who writes through a mapping told only the kernel, and that does not write it for a SEEK. */
static bool may_be_mapped(struct fs_inode *in)
{
	bool writers;

	mutex_lock(&in->lock);
	writers = in->writers > 0;
	mutex_unlock(&in->lock);
	return writers;
}

/* Where the server sees a hole the kernel may hold data: then it writes it, and we ask again. */
static bool asks_again(struct fs_op *op, const struct nfs4_op_seek *s, bool none)
{
	off_t off = op->off, len = 0;

	if (seek(op)->written || !(seek(op)->mapped || may_be_mapped(op->inode)))
		return false;
	if (seek(op)->hole) {
		if (none || s->eof)
			return false;
		off = (off_t)s->found; /* it may be none; nor may those that follow */
	} else if (!none) {
		len = (off_t)s->found - off;
		if (len == 0)
			return false;
	}
	seek(op)->written = true;
	fs_op_notify_range(op, op->inode, off, len, seek_written);
	return true;
}

static void seek_sized(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_attr *a = &call->u.getattr.attr;
	uint64_t size = a->size;

	if (call->err) {
		fs_reply_err(op, -call->err);
		return;
	}
	if (!(a->valid & NFS4_ATTR_SIZE) || size > INT64_MAX) { /* WIRE */
		fs_reply_err(op, EIO);
		return;
	}
	mutex_lock(&op->inode->lock);
	if (size < fs_unstable_end(op->inode))
		size = fs_unstable_end(op->inode);
	mutex_unlock(&op->inode->lock);
	if ((uint64_t)op->off >= size)
		fs_reply_err(op, ENXIO);
	else
		fs_reply_lseek(op, seek(op)->hole ? (off_t)size : op->off);
}

/* The kernel may have data for any hole: all is data, which is always true enough. */
static void seek_unsure(struct fs_op *op)
{
	op->call->u.getattr = (struct nfs4_op_getattr){.fh = &op->fh};
	op->call->done = seek_sized;
	nfs4_getattr(op->call);
}

static void seek_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_seek *s = &call->u.seek;
	/* A server may say it in both ways. */
	bool none = call->err == -ENXIO || (!call->err && s->eof && !seek(op)->hole);

	if (call->err == -EOPNOTSUPP)
		fs_reply_err(op, ENOSYS); /* the kernel remembers */
	else if (call->err && !none)
		fs_reply_err(op, -call->err);
	else if (!none && (s->found < s->offset || s->found > INT64_MAX)) /* WIRE */
		fs_reply_err(op, EIO);
	else if (fs_unstable_suspect(op)) /* it was restarted on the way */
		seek_start(op);
	else if (asks_again(op, s, none))
		return;
	else if (seek(op)->wait.unsure)
		seek_unsure(op);
	else if (none)
		fs_reply_err(op, ENXIO);
	else
		fs_reply_lseek(op, (off_t)s->found);
}

static void seek_committed(struct fs_op *op, int err)
{
	if (err)
		fs_reply_err(op, err);
	else
		fs_op_call(op, seek_start);
}

static void seek_start(struct fs_op *op)
{
	/* What the server lost would look like a hole. */
	if (fs_unstable_suspect(op)) {
		fs_commit(op, seek_committed);
		return;
	}
	op->call->u.seek = (struct nfs4_op_seek){
		.fh = &op->fh,
		.state = op->file->state,
		.offset = (uint64_t)op->off,
		.what = seek(op)->hole ? NFS4_CONTENT_HOLE : NFS4_CONTENT_DATA,
	};
	op->call->done = seek_done;
	nfs4_seek(op->call);
}

void fs_do_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	if (op == NULL)
		return;
	op->off = off;
	op->size = (size_t)(INT64_MAX - off); /* all that follows */
	seek(op)->hole = whence == SEEK_HOLE;
	seek(op)->mapped = may_be_mapped(op->inode);
	seek(op)->written = false;
	if (off < 0)
		fs_reply_err(op, ENXIO);
	else if (whence != SEEK_DATA && whence != SEEK_HOLE)
		fs_reply_err(op, EINVAL);
	else if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, seek_again))
		seek_again(op);
}
