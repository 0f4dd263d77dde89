/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "fs_deleg.h"
#include "fs_meta.h"

static void link_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;
	struct nfs4_op_link *o = &call->u.link;

	if (call->err != 0) {
		fs_meta_error(op);
		return;
	}
	fs_meta_changed(op, &o->dir_attr);
	fs_attr_update_own(fs, op->inode2, &o->attr, op->attr_seq, fs_op_now(op));
	fs_meta_entry(op, &op->fh2, &o->attr);
}

static void link_start(struct fs_op *op)
{
	op->call.u.link = (struct nfs4_op_link){
		.file = &op->fh2,
		.dir = &op->fh,
		.name = fs_meta_str(op->name),
	};
	op->call.done = link_done;
	nfs4_link(&op->call);
}

static void link_clear(struct fs_op *op)
{
	fs_op_call(op, link_start);
}

void fs_do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
	struct fs_op *op = fs_op_begin(req, newparent);

	op->inode2 = fs_inode_get(op->lane->fs, ino);
	op->own = true;
	if (fs_meta_name(op, op->name, newname))
		fs_deleg_clear(op, op->inode2, true, link_clear);
}
