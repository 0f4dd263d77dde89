/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "fs_nameop.h"
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_op.h"
#include "fs_reply.h"

/* Of the last REMOVE and RENAME: any lane. */
static _Atomic uint64_t removed_ns, renamed_ns;

static void note_removed(uint64_t now_ns)
{
	atomic_store_explicit(&removed_ns, now_ns, memory_order_relaxed);
}

void fs_nameop_renamed(uint64_t now_ns)
{
	atomic_store_explicit(&renamed_ns, now_ns, memory_order_relaxed);
	note_removed(now_ns);
}

bool fs_nameop_cached(struct fs_op *op, struct nfs4_attr *ret)
{
	uint64_t since = fs_attr_cached(op->lane->fs, op->inode, ret, fs_op_now(op));

	/* 0, not cached, is never later. */
	if (since <= atomic_load_explicit(&renamed_ns, memory_order_relaxed))
		return false;
	return ret->nlink <= 1 || ret->type == NF4DIR ||
	       since > atomic_load_explicit(&removed_ns, memory_order_relaxed);
}

bool fs_nameop_name(struct fs_op *op, char dst[FS_NAME_MAX + 1], const char *name)
{
	if (fs_op_name(dst, name) && strlen(name) <= fs_facts(op->lane->fs, op->inode)->maxname)
		return true;
	fs_reply_err(op, ENAMETOOLONG);
	return false;
}

void fs_nameop_read(struct fs_op *op, const struct nfs4_attr *a)
{
	if (a->valid)
		fs_attr_update(op->lane->fs, op->inode, a, op->attr_seq, fs_op_now(op));
}

void fs_nameop_changed(struct fs_op *op, const struct nfs4_attr *a)
{
	fs_attr_update_own(op->lane->fs, op->inode, a, op->attr_seq, fs_op_now(op));
}

void fs_nameop_lookup(struct fs_op *op, const struct nfs4_fh *dir, const char *name,
	void (*done)(struct nfs4_call *call))
{
	op->call->u.lookup = (struct nfs4_op_lookup){
		.dir = dir,
		.name = fs_nameop_str(name),
		.ask = dir == &op->fh ? fs_attr_ask(op->lane->fs, op->inode, fs_op_now(op))
				      : NFS4_DIR_NONE,
	};
	op->call->done = done;
	nfs4_lookup(op->call);
}

void fs_nameop_remove(struct fs_op *op, void (*done)(struct nfs4_call *call))
{
	op->call->u.remove =
		(struct nfs4_op_remove){.dir = &op->fh, .name = fs_nameop_str(op->name)};
	op->call->done = done;
	fs_op_once(op);
	nfs4_remove(op->call);
}

void fs_nameop_remove_over(struct fs_op *op)
{
	note_removed(fs_op_now(op));
	if (op->call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, &op->call->u.remove.dir_attr);
	fs_reply_err(op, 0);
}

void fs_nameop_entry(struct fs_op *op, const struct nfs4_fh *fh, const struct nfs4_attr *a)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = fs_inode_lookup(fs, fh, a, 1);

	if (in == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	fs_inode_put(fs, op->inode2);
	op->inode2 = in;
	fs_attr_update(fs, in, a, op->attr_seq, fs_op_now(op));
	fs_reply_entry(op, op->inode, in, a);
}

void fs_nameop_error(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;

	/* The root keeps its place: there is no other way to it. */
	if (op->call->err == -ESTALE) {
		fs_attr_changed(op->inode);
		if (op->inode != fs->root && op->inode2 == NULL)
			fs_inode_unhash(fs, op->inode);
	}
	fs_reply_err(op, -op->call->err);
}
