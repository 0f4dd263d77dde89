/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UNLINK: REMOVE. A file that is open here is renamed instead and goes with its
 * last close (fs_silly.c), because NFS has no file without a name. Which file a
 * name stands for only the server knows: it is asked, if anything is open at
 * all, or delegated.
 */
#include <errno.h>
#include <string.h>

#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"
#include "fs_silly.h"

static void remove_done(struct nfs4_call *call)
{
	fs_nameop_remove_over(fs_op_of(call));
}

static void remove_start(struct fs_op *op)
{
	fs_nameop_remove(op, remove_done);
}

static void silly_done(struct fs_op *op, int err)
{
	fs_nameop_renamed(fs_op_now(op));
	fs_reply_err(op, err);
}

static void victim_clear(struct fs_op *op)
{
	if (op->abandoned) /* it waited: the same */
		fs_reply_err(op, EINTR);
	else if (fs_silly_needed(op->inode2))
		fs_silly_rename(op, op->inode, op->name, op->inode2, true, silly_done);
	else
		fs_op_call(op, remove_start);
}

static void victim_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_nameop_read(op, &call->u.lookup.dir_attr);
	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	if (op->abandoned) { /* others may have given the name to another file since */
		fs_reply_err(op, EINTR);
		return;
	}
	op->inode2 = fs_inode_find(op->lane->fs, &call->u.lookup.fh);
	if (op->inode2 == NULL)
		fs_op_call(op, remove_start);
	else if (fs_silly_needed(op->inode2))
		fs_silly_rename(op, op->inode, op->name, op->inode2, true, silly_done);
	else
		fs_deleg_clear(op, op->inode2, true, victim_clear);
}

static void victim_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, victim_done);
}

void fs_do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (op == NULL || !fs_nameop_name(op, op->name, name))
		return;
	fs_op_call(op, fs_nameop_any_in_use(op->lane->fs) ? victim_start : remove_start);
}
