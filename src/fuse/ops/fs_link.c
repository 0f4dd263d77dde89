/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LINK. With fs.protected_hardlinks a user may link somebody else's file only if
 * he may read and write it. The kernel asks for that right where it checks
 * permission itself; with FUSE it is on us, that is, on the server.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"

static void link_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;
	struct nfs4_op_link *o = &call->u.link;

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, &o->dir_attr);
	fs_attr_update_own(fs, op->inode2, &o->attr, op->attr_seq, fs_op_now(op));
	fs_nameop_entry(op, &op->fh2, &o->attr);
}

static void link_start(struct fs_op *op)
{
	op->call->u.link = (struct nfs4_op_link){
		.file = &op->fh2,
		.dir = &op->fh,
		.name = fs_nameop_str(op->name),
	};
	op->call->done = link_done;
	fs_op_once(op);
	nfs4_link(op->call);
}

static void link_clear(struct fs_op *op)
{
	fs_op_call(op, link_start);
}

static void link_allowed(struct fs_op *op)
{
	fs_deleg_clear(op, op->inode2, true, link_clear);
}

static bool hardlinks_protected(void)
{
	int fd = open("/proc/sys/fs/protected_hardlinks", O_RDONLY | O_CLOEXEC);
	char on = '0';

	if (fd < 0)
		return false;
	if (read(fd, &on, 1) != 1)
		on = '0';
	close(fd);
	return on != '0';
}

static bool is_foreign(struct fs_inode *in, uint32_t uid)
{
	bool foreign;

	mutex_lock(&in->lock);
	foreign = in->attr.uid != uid;
	mutex_unlock(&in->lock);
	return foreign && uid != 0;
}

static void foreign_checked(struct fs_op *op)
{
	if (op->call->err == -EACCES)
		fs_reply_err(op, EPERM);
	else if (op->call->err != 0)
		fs_nameop_error(op);
	else
		link_allowed(op);
}

void fs_do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
	struct fs_op *op = fs_op_begin(req, newparent);

	if (op == NULL)
		return;
	op->inode2 = fs_inode_get(op->lane->fs, ino);
	if (op->inode2 == NULL) {
		fs_reply_err(op, ESTALE);
		return;
	}
	op->own = true;
	op->shadow = (ino & FS_INO_SHADOW) != 0;
	if (!fs_nameop_name(op, op->name, newname))
		return;
	if (is_foreign(op->inode2, op->cred.uid) && hardlinks_protected())
		fs_access_check(op, op->inode2, R_OK | W_OK, foreign_checked);
	else
		link_allowed(op);
}
