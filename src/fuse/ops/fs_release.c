/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RELEASE: the last use of an open file is over. The kernel is answered at
 * once; the operation lives on through COMMIT (pages of a mapping may have
 * been written after the last flush), LOCKU, CLOSE (or OPEN_DOWNGRADE, if what
 * else its user has open there needs less), and the removal of a .nfs file.
 * Nobody is left on this handle to hear of an error: it is logged, and if data
 * is lost by it the file's other handles hear of it.
 */
#include "fs_ahead.h"
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_interrupt.h"
#include "fs_live.h"
#include "fs_lock.h"
#include "fs_op.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_unstable.h"
#include "fs_share.h"
#include "fs_silly.h"
#include "fs_part.h"
#include "log.h"

#include <errno.h>
#include <string.h>

static void release_closed(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_file *f = op->file;

	fs_share_closed(fs, f);
	fs_deleg_touch(op, op->inode);
	fs_file_put(fs, f); /* the handle's reference; op->file's remains */
	fs_silly_finish(op);
}

/* ---- the share's open; the op is alone in it ---- */

static void share_closed(struct fs_op *op)
{
	fs_share_leave_downgraded(op->file->share, 0);
	release_closed(op);
}

static void close_failed(struct fs_op *op, int err)
{
	log_warn_limited("CLOSE of file %llu: %s", (unsigned long long)fs_inode_fileid(op->inode),
		strerror(err));
	share_closed(op);
}

static void close_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err) {
		close_failed(op, -call->err);
		return;
	}
	fs_attr_update(op->lane->fs, op->inode, &call->u.close.attr, op->attr_seq, fs_op_now(op));
	share_closed(op);
}

static void close_start(struct fs_op *op)
{
	memset(&op->call->u.close, 0, sizeof(op->call->u.close));
	op->call->u.close.fh = &op->fh;
	op->call->u.close.state = op->file->state;
	op->call->done = close_done;
	nfs4_close(op->call);
}

static void share_unlocked(struct fs_op *op)
{
	if (nfs4_deleg_close(op->file->state)) {
		share_closed(op);
		return;
	}
	op->failed = close_failed;
	fs_op_call(op, close_start);
}

/* It stays open for more than is needed: the next to close it tries again. */
static void downgrade_failed(struct fs_op *op, int err)
{
	log_warn_limited("OPEN_DOWNGRADE of file %llu: %s",
		(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	fs_share_leave(op->file->share);
	release_closed(op);
}

static void downgrade_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err) {
		downgrade_failed(op, -call->err);
		return;
	}
	fs_share_leave_downgraded(op->file->share, call->u.downgrade.share_access);
	release_closed(op);
}

static void downgrade_start(struct fs_op *op)
{
	op->call->u.downgrade = (struct nfs4_op_downgrade){
		.fh = &op->fh,
		.state = op->file->state,
		.share_access = (uint32_t)op->off,
	};
	op->call->done = downgrade_done;
	nfs4_downgrade(op->call);
}

static void share_alone(struct fs_op *op)
{
	struct fs_share *sh = op->file->share;
	uint32_t left;

	if (!fs_share_left(sh, &left)) { /* others opened it meanwhile, or closed it */
		fs_share_leave(sh);
		release_closed(op);
	} else if (!left) {
		fs_lockowner_release_share(op, share_unlocked);
	} else if (nfs4_deleg_serves(&sh->state)) { /* for more than it need be, until then */
		fs_share_leave(sh);
		release_closed(op);
	} else {
		op->off = left;
		op->failed = downgrade_failed;
		fs_op_call(op, downgrade_start);
	}
}

/* ---- the file ---- */

static void release_unlocked(struct fs_op *op)
{
	if (!fs_share_drop(op, op->file->share, op->file->share_access, share_alone))
		release_closed(op);
}

static void release_committed(struct fs_op *op, int err)
{
	int lost = fs_file_take_error(op->file);

	if (!err)
		err = lost;
	if (err)
		log_warn("file %llu closed, but its last data may be lost: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	if (fs_unstable_drop(op->lane, op->file, err ? err : EIO) || lost)
		atomic_fetch_add(&op->lane->fs->lost_files, 1);
	fs_lockowner_release(op, release_unlocked);
}

static void release_heard(struct fs_op *op)
{
	if (fs_interrupt_release_waits(op, release_heard) || fs_ahead_close(op, release_heard))
		return;
	if (fs_file_is_dirty(op->file) || atomic_load(&op->inode->lockowners))
		fs_commit(op, release_committed);
	else
		release_committed(op, 0);
}

/* Returns: true: nothing of it is left to be waited for, to be written, or to be told. */
static bool note_released(struct fs_op *op)
{
	struct fs_file *f = op->file;
	bool quiet;

	mutex_lock(&op->inode->lock);
	f->released = true;
	fs_live_data(f);
	quiet = f->abandoned == 0 && !f->ahead && f->unstable == 0 && f->writebacks == 0 &&
		!f->write_err && !f->next_err;
	mutex_unlock(&op->inode->lock);
	return quiet;
}

static void release_noted(struct fs_op *op, bool quiet)
{
	atomic_fetch_add(&op->lane->fs->releasing, 1); /* until fs_silly_finish() is done */
	if (quiet && !atomic_load(&op->inode->lockowners))
		release_unlocked(op);
	else
		release_heard(op);
}

void fs_release(struct fs_op *op)
{
	bool quiet = note_released(op);

	release_noted(op, quiet);
}

void fs_do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);
	bool quiet;

	if (!op)
		return;
	quiet = note_released(op); /* once it is answered nobody asks again */
	fs_reply_early(op, 0);
	release_noted(op, quiet);
}

const struct fs_part fs_release_part = {
	.file_left = fs_release,
};
