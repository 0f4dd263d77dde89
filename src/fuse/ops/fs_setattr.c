/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SETATTR: chmod, chown, truncate, utimens. What else changes with them (suid
 * cleared by chown, times by truncate) is the server's business; its new
 * attributes are replied.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_nameop.h"
#include "fs_reply.h"
#include "fs_share.h"

struct setattr {
	int to_set;
	struct stat st;
};

static struct setattr *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct setattr);
	return op->work;
}

/* Nothing here that NFS could set (ctime, hints of the kernel): only the attributes are wanted. */
#define SETTABLE                                                                                   \
	(FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE |         \
		FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |              \
		FUSE_SET_ATTR_MTIME_NOW)

static struct nfs4_sattr sattr_of(const struct stat *st, int to_set)
{
	struct nfs4_sattr s = {
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.atime = st->st_atim,
		.mtime = st->st_mtim,
		.atime_now = to_set & FUSE_SET_ATTR_ATIME_NOW,
		.mtime_now = to_set & FUSE_SET_ATTR_MTIME_NOW,
	};

	if (to_set & FUSE_SET_ATTR_MODE)
		s.set |= NFS4_ATTR_MODE;
	if (to_set & FUSE_SET_ATTR_UID)
		s.set |= NFS4_ATTR_OWNER;
	if (to_set & FUSE_SET_ATTR_GID)
		s.set |= NFS4_ATTR_GROUP;
	if (to_set & FUSE_SET_ATTR_SIZE)
		s.set |= NFS4_ATTR_SIZE;
	if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW))
		s.set |= NFS4_ATTR_ATIME;
	if (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW))
		s.set |= NFS4_ATTR_MTIME;
	return s;
}

static void getattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_read(op, &call->u.getattr.attr);
	fs_reply_attr(op, op->inode, &call->u.getattr.attr);
}

static void getattr_start(struct fs_op *op)
{
	op->call->u.getattr = (struct nfs4_op_getattr){.fh = &op->fh};
	op->call->done = getattr_done;
	nfs4_getattr(op->call);
}

static void rights_changed(struct fs_op *op)
{
	if (work(op)->to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fs_deleg_rights_changed(op->inode);
}

static void setattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct nfs4_attr *a = &call->u.setattr.attr;

	if (work(op)->to_set & FUSE_SET_ATTR_SIZE)
		fs_unstable_truncated(op, (uint64_t)work(op)->st.st_size);
	fs_rewrite_leave(op);
	if (call->err != 0) {
		/* A server may have set some of them before it failed. */
		fs_attr_changed(op->inode);
		rights_changed(op);
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, a);
	rights_changed(op);
	if ((a->valid & NFS4_ATTR_STAT) == 0)
		fs_op_call(op, getattr_start); /* the SETATTR was done, its GETATTR failed */
	else
		fs_reply_attr(op, op->inode, a);
}

static void setattr_start(struct fs_op *op);

static void gate_is_open(struct fs_op *op)
{
	fs_op_call(op, setattr_start);
}

static void setattr_start(struct fs_op *op)
{
	if (op->abandoned) { /* it waited: others may have written since */
		fs_reply_err(op, EINTR);
		return;
	}
	if (work(op)->to_set & FUSE_SET_ATTR_SIZE && !fs_rewrite_enter(op, gate_is_open))
		return;
	op->call->u.setattr = (struct nfs4_op_setattr){
		.fh = &op->fh,
		.state = op->file != NULL && (work(op)->to_set & FUSE_SET_ATTR_SIZE)
				 ? op->file->state
				 : NULL,
		.sattr = sattr_of(&work(op)->st, work(op)->to_set),
	};
	op->call->done = setattr_done;
	nfs4_setattr(op->call);
}

static void setattr_clear(struct fs_op *op)
{
	fs_deleg_clear(op, op->inode, false, gate_is_open);
}

/* A WRITE that came after it would undo it: the size, the times, a suid bit. */
static void setattr_in_order(struct fs_op *op)
{
	bool cuts = work(op)->to_set & FUSE_SET_ATTR_SIZE;

	if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, !cuts, setattr_clear))
		setattr_clear(op);
}

static void getattr_ask(struct fs_op *op)
{
	fs_op_call(op, getattr_start);
}

static void truncate_checked(struct fs_op *op)
{
	if (op->call->err != 0)
		fs_nameop_error(op);
	else
		setattr_in_order(op);
}

void fs_do_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct fs_op *op = fi != NULL ? fs_op_begin_file(req, fi) : fs_op_begin(req, ino);

	if (op == NULL)
		return;
	op->own = true;
	work(op)->st = *attr;
	work(op)->to_set = to_set;
	/*
	 * truncate(2) by name: as it is for open(2), who may not write the file may not. A server
	 * lets the owner do it whatever the mode is, as it cannot know that the file is not open
	 * for writing.
	 */
	if ((to_set & FUSE_SET_ATTR_SIZE) && fi == NULL)
		fs_access_check(op, op->inode, W_OK, truncate_checked);
	else if (to_set & SETTABLE)
		setattr_in_order(op);
	else if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, getattr_ask))
		getattr_ask(op);
}
