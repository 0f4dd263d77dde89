/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RELEASE: the last use of an open file is over. The kernel is answered at
 * once; the operation lives on through COMMIT (pages of a mapping may have
 * been written after the last flush), LOCKU, CLOSE, and the removal of a .nfs
 * file.
 * Nobody is left to hear of an error: it is logged.
 */
#include "fs_lock.h"
#include "fs_ops.h"
#include "fs_retain.h"

#include <string.h>

static void release_closed(struct fs_op *op, int err)
{
	struct fs *fs = op->lane->fs;
	struct fs_file *f = op->file;

	if (err)
		log_warn_limited("CLOSE of file %llu: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	fs_file_closed(fs, f);
	fs_file_put(fs, f); /* the handle's reference; op->file's remains */
	fs_silly_finish(op);
}

static void close_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (!call->err)
		fs_attr_update(
			op->lane->fs, op->inode, &call->u.close.attr, op->attr_seq, fs_op_now(op));
	release_closed(op, -call->err);
}

static void close_start(struct fs_op *op)
{
	memset(&op->call.u.close, 0, sizeof(op->call.u.close));
	op->call.u.close.fh = &op->fh;
	op->call.u.close.state = &op->file->state;
	op->call.done = close_done;
	nfs4_close(&op->call);
}

static void release_unlocked(struct fs_op *op)
{
	op->failed = release_closed;
	fs_op_call(op, close_start);
}

static void release_committed(struct fs_op *op, int err)
{
	int lost = fs_file_take_error(op->file);

	if (!err)
		err = lost;
	if (err)
		log_warn("file %llu closed, but its last data may be lost: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	fs_retain_drop(op->lane, op->file);
	fs_lock_release(op, release_unlocked);
}

void fs_release(struct fs_op *op)
{
	if (fs_interrupt_release_waits(op, fs_release))
		return;
	if (fs_file_is_dirty(op->file) || atomic_load(&op->inode->lockowners))
		fs_commit(op, release_committed);
	else
		release_committed(op, 0);
}

void fs_do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	fs_reply_early(op, 0);
	fs_release(op);
}
