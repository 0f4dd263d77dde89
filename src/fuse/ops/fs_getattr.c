/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GETATTR: the kernel asks when its own copy expired, or when a read made the
 * access time stale. In the latter case ours is often still good.
 */
#include <errno.h>
#include <string.h>

#include "fs_attr.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_place.h"
#include "fs_reply.h"

static void getattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct nfs4_attr attr;

	if (call->err == -ESTALE && fs_place_last(op->inode, &attr)) {
		fs_attr_changed(op->inode);
		fs_inode_unhash(op->lane->fs, op->inode);
		fs_reply_attr(op, op->inode, &attr);
		return;
	}
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

static void ask(struct fs_op *op)
{
	fs_op_call(op, getattr_start);
}

/* Times and blocks are those of all that was written before: the server must have it. */
void fs_do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fi != NULL ? fs_op_begin_file(req, fi) : fs_op_begin(req, ino);
	struct nfs4_attr attr;

	if (op == NULL)
		return;
	if (fs_nameop_cached(op, &attr))
		fs_reply_attr(op, op->inode, &attr);
	else if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, ask))
		ask(op);
}
