/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RENAME. A target that is open here is renamed out of the way first, as in
 * fs_unlink.c, and delegations of both files are returned:
 *
 *   nothing open or delegated ---------------------------> RENAME
 *   LOOKUP target -- not open here, nothing delegated ---> RENAME
 *     LOOKUP source -- same file (a hard link) ----------> RENAME (does nothing)
 *       another file: target to .nfsXXXX if it is open --> RENAME
 *
 * Of the flags of renameat2(2) RENAME_NOREPLACE is made of other operations
 * (fs_noreplace.c). The others are refused, as by the kernel's client: NFS has
 * nothing for them.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_dentry.h"
#include "fs_noreplace.h"
#include "fs_op.h"
#include "fs_place.h"
#include "fs_reply.h"
#include "fs_silly.h"

struct renaming {
	struct fs_inode *target; /* referenced until it is out of the way */
	struct fs_inode *source; /* referenced until nothing is in its way */
};

static struct renaming *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct renaming);
	return op->work;
}

static void put_files(struct fs_op *op)
{
	fs_inode_put(op->lane->fs, work(op)->target);
	fs_inode_put(op->lane->fs, work(op)->source);
	work(op)->target = work(op)->source = NULL;
}

/* Is what was looked up in `dir` the root of another file system? */
static bool is_root_below(const struct nfs4_call *call, struct fs_inode *dir)
{
	return call->err == 0 && fs_facts_below(dir, &call->u.lookup.attr);
}

static void refused_target_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_reply_err(op, is_root_below(call, op->inode2) ? EBUSY : EIO);
}

static void refused_target_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh2, op->name2, refused_target_done);
}

static void refused_source_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (is_root_below(call, op->inode))
		fs_reply_err(op, EBUSY);
	else
		fs_op_call(op, refused_target_start);
}

/* NFS has no error for what another file system is mounted on; Linux says NFS4ERR_IO. */
static void refused_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, refused_source_done);
}

static void rename_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct nfs4_op_rename *o = &call->u.rename;

	fs_nameop_renamed(fs_op_now(op));
	if (call->err == -EIO && call->status == NFS4ERR_IO) {
		fs_op_call(op, refused_start);
		return;
	}
	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, &o->from_attr);
	if (op->inode2 != op->inode)
		fs_attr_update_own(
			op->lane->fs, op->inode2, &o->to_attr, op->attr_seq, fs_op_now(op));
	fs_dentry_moved(op->lane->fs, op->inode, op->inode2);
	fs_place_moved(op->lane->fs, op->inode, op->name, op->inode2, op->name2);
	fs_reply_err(op, 0);
}

static void rename_start(struct fs_op *op)
{
	op->call->u.rename = (struct nfs4_op_rename){
		.from_dir = &op->fh,
		.to_dir = &op->fh2,
		.from = fs_nameop_str(op->name),
		.to = fs_nameop_str(op->name2),
	};
	op->call->done = rename_done;
	fs_op_once(op);
	nfs4_rename(op->call);
}

static void source_clear(struct fs_op *op)
{
	if (op->abandoned) /* it waited: others may have given the names to other files since */
		fs_reply_err(op, EINTR);
	else
		fs_op_call(op, rename_start);
}

static void target_gone(struct fs_op *op)
{
	if (work(op)->source != NULL)
		fs_deleg_clear(op, work(op)->source, true, source_clear);
	else
		source_clear(op);
}

static void target_moved(struct fs_op *op, int err)
{
	if (err == 0) {
		target_gone(op);
		return;
	}
	fs_reply_err(op, err);
}

static void source_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_inode *target = work(op)->target;
	const struct nfs4_fh *fh = &call->u.lookup.fh;

	fs_nameop_read(op, &call->u.lookup.dir_attr);
	if (call->err != 0 || op->abandoned) {
		if (call->err != 0)
			fs_nameop_error(op);
		else
			fs_reply_err(op, EINTR);
		return;
	}
	work(op)->source = fs_inode_find(op->lane->fs, fh);
	if (target == NULL)
		target_gone(op);
	else if (work(op)->source == target)
		source_clear(op);
	else if (fs_silly_needed(target))
		fs_silly_rename(op, op->inode2, op->name2, target, false, target_moved);
	else
		fs_deleg_clear(op, target, true, target_gone);
}

static void source_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, source_done);
}

static void target_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_inode *target = NULL;

	if (op->abandoned) { /* others may have given the names to other files since */
		fs_reply_err(op, EINTR);
		return;
	}
	/* Whatever else is wrong with the target, RENAME will say it better. */
	if (call->err == 0)
		target = fs_inode_find(op->lane->fs, &call->u.lookup.fh);
	work(op)->target = target;
	if (atomic_load(&op->lane->fs->delegs->cnt) > 0 ||
		(target != NULL && fs_silly_needed(target))) {
		fs_op_call(op, source_start);
		return;
	}
	fs_op_call(op, rename_start);
}

static void target_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh2, op->name2, target_done);
}

void fs_do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
	const char *newname, unsigned int flags)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (op == NULL)
		return;
	if ((flags & ~(unsigned int)RENAME_NOREPLACE) != 0) {
		fs_reply_err(op, EINVAL);
		return;
	}
	op->inode2 = fs_inode_get(op->lane->fs, newparent);
	if (op->inode2 == NULL) {
		fs_reply_err(op, ESTALE);
		return;
	}
	if (!fs_nameop_name(op, op->name, name) || !fs_nameop_name(op, op->name2, newname))
		return;
	if (!fs_dentry_move(op->lane->fs, op->inode, op->inode2, op->name2, fs_op_now(op))) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	if (flags != 0) {
		fs_noreplace(op);
		return;
	}
	op->ended = put_files;
	fs_op_call(op, fs_nameop_any_in_use(op->lane->fs) ? target_start : rename_start);
}
