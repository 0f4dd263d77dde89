/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CREATE: OPEN by name. O_EXCL goes as EXCLUSIVE4_1, whose verifier makes a
 * repeated call safe; the server keeps that verifier in the file's times. If the
 * OPEN's COMPOUND did not get to giving it proper ones, a SETATTR does.
 */
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_share.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct create {
	uint32_t mode, umask;
	bool mode_unset; /* the OPEN made the file without its mode */
};

static struct create *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct create);
	return op->work;
}

static void undo(struct fs_op *op, int err)
{
	struct fs *fs = op->lane->fs;

	fs_reply_early(op, err);
	fs_inode_forget(fs, fs_inode_ino(fs, op->inode2), 1);
	fs_inode_put(fs, op->inode);
	op->inode = op->inode2; /* from here on it is a release */
	op->inode2 = NULL;
	fs_release(op);
}

static void create_reply(struct fs_op *op)
{
	fs_reply_create(op, op->inode, op->inode2, op->file, undo);
}

static bool is_regular(const struct nfs4_attr *a)
{
	return (a->valid & NFS4_ATTR_TYPE) && a->type == NF4REG;
}

/* ---- O_EXCL: the server did not say that the times are set, nor what the file is ---- */

static void attr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err || !is_regular(&call->u.getattr.attr)) {
		undo(op, call->err ? -call->err : EIO);
		return;
	}
	op->attr = call->u.getattr.attr;
	fs_attr_update(op->lane->fs, op->inode2, &op->attr, op->attr_seq, fs_op_now(op));
	create_reply(op);
}

static void attr_start(struct fs_op *op)
{
	op->call->u.getattr = (struct nfs4_op_getattr){.fh = &op->fh2};
	op->call->done = attr_done;
	nfs4_getattr(op->call);
}

/* A file with odd times is a file; one that others may read, or its owner may not, is another. */
static void times_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err && work(op)->mode_unset) {
		undo(op, -call->err);
		return;
	}
	if (call->err)
		log_warn_limited("times of a new file: %s", strerror(-call->err));
	op->failed = undo;
	fs_op_call(op, attr_start);
}

static void times_start(struct fs_op *op)
{
	struct nfs4_op_setattr *s = &op->call->u.setattr;

	memset(s, 0, sizeof(*s));
	s->fh = &op->fh2;
	s->sattr.set = NFS4_ATTR_ATIME | NFS4_ATTR_MTIME;
	s->sattr.atime_now = s->sattr.mtime_now = true;
	if (work(op)->mode_unset) {
		s->sattr.set |= NFS4_ATTR_MODE;
		s->sattr.mode = work(op)->mode & ~work(op)->umask;
	}
	op->call->done = times_done;
	nfs4_setattr(op->call);
}

/* ---- O_TRUNC of a file that was there, by a name that the kernel did not know ---- */

/* It is the file that is cut, and its gate: op->inode is that meanwhile. */
static void exchange(struct fs_op *op)
{
	struct fs_inode *in = op->inode;

	op->inode = op->inode2;
	op->inode2 = in;
}

static void cut_failed(struct fs_op *op, int err)
{
	exchange(op);
	undo(op, err);
}

static void cut_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_attr *a = &call->u.setattr.attr;

	fs_unstable_truncated(op, 0);
	fs_rewrite_leave(op);
	if (call->err) {
		cut_failed(op, -call->err);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, a, op->attr_seq, fs_op_now(op));
	op->attr = *a;
	exchange(op);
	create_reply(op);
}

static void cut_start(struct fs_op *op);

static void gate_is_open(struct fs_op *op)
{
	fs_op_call(op, cut_start);
}

static void cut_start(struct fs_op *op)
{
	uint32_t writes = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE;

	if (op->abandoned) { /* it waited: others may have written since */
		cut_failed(op, EINTR);
		return;
	}
	if (!fs_rewrite_enter(op, gate_is_open))
		return;
	op->call->u.setattr = (struct nfs4_op_setattr){
		.fh = &op->fh,
		.state = writes ? op->file->state : NULL,
		.sattr = {.set = NFS4_ATTR_SIZE},
	};
	op->call->done = cut_done;
	nfs4_setattr(op->call);
}

/* Data that was written before it has come after it, or is to be written again. */
static void cut_again(struct fs_op *op)
{
	exchange(op);
	op->failed = cut_failed;
	gate_is_open(op);
}

/* The server has the file open: op->file takes it over. */
static bool create_take(struct fs_op *op, const struct nfs4_op_open *o, bool made)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = fs_inode_lookup(fs, &o->fh, &o->attr, 1);
	struct fs_share *sh;
	struct fs_file *f;

	if (!in)
		return false;
	op->inode2 = in;
	f = fs_file_new(fs, in, &op->cred, fs_share_access(op->fi.flags), op->fi.flags);
	sh = f ? fs_share_of_owner(in, o->owner) : NULL;
	if (f && !sh)
		sh = fs_share_new(fs, in, &op->cred, o->owner);
	if (!sh) {
		if (f)
			fs_file_put(fs, f);
		fs_inode_forget(fs, fs_inode_ino(fs, in), 1);
		return false;
	}
	fs_share_give(sh, f);
	op->file = fs_file_get(f);
	nfs4_share_open(&sh->state, op->call);
	fs_deleg_opened_by_name(op, in);
	if (made || o->truncate)
		fs_attr_update_own(fs, in, &o->attr, op->attr_seq, fs_op_now(op));
	else
		fs_attr_update(fs, in, &o->attr, op->attr_seq, fs_op_now(op));
	fs_share_opened(op, f);
	return true;
}

static void create_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;
	const struct nfs4_op_open *o = &call->u.open;
	bool made = o->exclusive || o->cinfo.before != o->cinfo.after;
	bool stamped = o->stamped || !o->exclusive, cuts = o->truncate && !made;

	if (call->err) {
		fs_reply_err(op, -call->err);
		return;
	}
	fs_attr_update_own(fs, op->inode, &o->dir_attr, op->attr_seq, fs_op_now(op));
	op->attr = o->attr;
	work(op)->mode_unset = o->mode_unset;
	if (!create_take(op, o, made)) {
		/* Out of memory, or no filehandle: the lease's end will close it. */
		log_err("a created file could not be taken over");
		fs_reply_err(op, ENOMEM);
		return;
	}
	if (!stamped) {
		op->failed = undo;
		fs_op_call(op, times_start);
	} else if (!is_regular(&op->attr)) {
		undo(op, EIO);
	} else if (!made && !fs_share_allows(op->fi.flags, o->access)) {
		undo(op, EACCES); /* it existed: its mode counts */
	} else if (!cuts) {
		create_reply(op);
	} else if (!fs_writeback_wait(op, op->inode2, 0, FS_WRITEBACK_ALL, false, cut_again)) {
		if (fs_unstable_is_empty(op->inode2))
			create_reply(op);
		else
			cut_again(op);
	}
}

static void create_start(struct fs_op *op)
{
	struct nfs4_op_open *o = &op->call->u.open;
	struct fs *fs = op->lane->fs;

	memset(o, 0, sizeof(*o));
	o->dir = &op->fh;
	o->name.p = op->name;
	o->name.len = (uint32_t)strlen(op->name);
	o->share_access = fs_share_access(op->fi.flags);
	o->owner = nfs4_owner_of_request(op->unique);
	o->create = true;
	o->truncate = (op->fi.flags & O_TRUNC) != 0;
	if (op->fi.flags & O_EXCL)
		nfs4_make_exclusive(fs->client, o);
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = work(op)->mode;
	o->sattr.umask = work(op)->umask;
	o->sattr.use_umask = true;
	op->call->done = create_done;
	fs_op_once(op);
	nfs4_open(op->call);
}

void fs_do_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (!op)
		return;
	op->fi = *fi;
	work(op)->mode = mode & 07777;
	work(op)->umask = fuse_req_ctx(req)->umask & 0777;
	if (!fs_op_name(op->name, name))
		fs_reply_err(op, ENAMETOOLONG);
	else
		fs_op_call(op, create_start);
}
