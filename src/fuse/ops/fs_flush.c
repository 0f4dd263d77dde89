/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH and FSYNC: all that was written is durable, or the program hears that it is not.
 */
#include "fs_file.h"
#include "fs_interrupt.h"
#include "fs_lock.h"
#include "fs_op.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_writeback.h"

/*
 * What was lost earlier or just now is this handle's answer, once. If nobody waits for it, it is
 * the next one's: a program that ends closes what it has from its parent, too.
 */
static void reply_committed(struct fs_op *op, int err)
{
	int lost = 0, unheard = 0;

	if (fs_file_has_error(op->file) && fs_interrupt_is_awaited(op))
		lost = fs_file_take_error(op->file);
	if (!fs_reply_early(op, err ? err : lost))
		unheard = lost;
	if (lost)
		fs_file_told(op->file, unheard, unheard);
	fs_op_end(op);
}

/* close(2) of a file that was only read says nothing of what others wrote to it: fsync does. */
static void reply_flushed(struct fs_op *op, int err)
{
	if (op->file->share_access & OPEN4_SHARE_ACCESS_WRITE)
		reply_committed(op, err);
	else
		fs_reply_err(op, err);
}

static void flush_committed(struct fs_op *op, int err)
{
	fs_lockowner_flush_end(op, err, reply_flushed);
}

/*
 * All of the file, if it may have been written to by this handle: under a lock it may have been
 * through another one, and pages of a mapping the kernel writes through any.
 */
static void flush(struct fs_op *op)
{
	bool writes = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE;

	if ((writes && fs_writeback_is_dirty(op->inode)) || fs_lock_op(op)->owner)
		fs_commit(op, flush_committed);
	else
		flush_committed(op, 0);
}

/* close(2): what was written is durable, or the program hears that it is not. */
void fs_do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	if (!op)
		return;
	op->began = true; /* done also when its program died: closing is how it ends */
	fs_lockowner_flush_begin(op, flush);
}

void fs_do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	if (op)
		fs_commit(op, reply_committed);
}
