/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OPEN of a file that the kernel knows, and the part of close-to-open that is
 * done there: each open asks the server, unless a delegation says that nothing
 * has changed (fs_deleg.h), and what the kernel holds of the file
 * is kept only if the change attribute that comes back is the one its pages
 * belong to.
 *
 * Pages: without FOPEN_KEEP_CACHE the kernel drops them itself. Attributes
 * (above all the size, which bounds every read): it would believe for their
 * whole time, so the notify thread takes them away before the OPEN is answered.
 *
 * Nothing is permitted by the client: the server checked the OPEN, and ACCESS
 * in the same COMPOUND says whether it is a file to read or only one to
 * execute (servers let READ through for those).
 */
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_nameop.h"
#include "fs_notify.h"
#include "fs_openread.h"
#include "fs_pages.h"
#include "fs_reply.h"
#include "fs_share.h"
#include "fs_silly.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void undo(struct fs_op *op, int err)
{
	fs_reply_early(op, err);
	fs_release(op);
}

static void reply_opened(struct fs_op *op)
{
	fs_reply_open(op, op->file, undo);
}

static void open_ready(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	/*
	 * Pages known to be stale go now, although the kernel would drop them after this open: in
	 * between a GETATTR could tell the new size. Not with O_TRUNC: there it truncates them, and
	 * own changes never wait.
	 */
	bool stale = fs_stat_pages_stale(in) && !(op->fi.flags & O_TRUNC);

	op->fi.keep_cache = fs_pages_good(op->inode, &op->attr, op->lane->fs->conf.cto);
	if (stale || (op->lane->fs->conf.cto && fs_pages_told_other(in, &op->attr)))
		fs_op_notify(op, in, stale, reply_opened);
	else
		reply_opened(op);
}

/* The kernel's client asks whether the file may be written first, and says that. */
static void trunc_checked(struct fs_op *op)
{
	undo(op, op->call->err != 0 ? -op->call->err : EROFS);
}

static void trunc_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;

	fs_unstable_truncated(op, 0);
	fs_rewrite_leave(op);
	if (call->err == -EROFS) {
		fs_access_check(op, op->inode, W_OK, trunc_checked);
		return;
	}
	if (call->err) {
		undo(op, -call->err);
		return;
	}
	fs_attr_update_own(fs, op->inode, &call->u.setattr.attr, op->attr_seq, fs_op_now(op));
	op->attr = call->u.setattr.attr;
	op->attr_seq = fs_attr_seq(op->inode);
	open_ready(op);
}

static void trunc_start(struct fs_op *op);

static void gate_is_open(struct fs_op *op)
{
	fs_op_call(op, trunc_start);
}

/* O_TRUNC: an OPEN by filehandle cannot truncate. */
static void trunc_start(struct fs_op *op)
{
	struct nfs4_op_setattr *s = &op->call->u.setattr;

	if (op->abandoned) { /* it waited: others may have written since */
		undo(op, EINTR);
		return;
	}
	if (!fs_rewrite_enter(op, gate_is_open))
		return;
	memset(s, 0, sizeof(*s));
	s->fh = &op->fh;
	/* Without write access in the stateid the server must decide by the user alone. */
	s->state = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE ? op->file->state : NULL;
	s->sattr.set = NFS4_ATTR_SIZE;
	op->call->done = trunc_done;
	nfs4_setattr(op->call);
}

/* A WRITE that came after it would make the file long again. */
static void trunc_in_order(struct fs_op *op)
{
	if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, gate_is_open))
		gate_is_open(op);
}

/* Its name may have been removed meanwhile, and be kept for it. */
static void not_opened(struct fs_op *op, int err)
{
	struct fs *fs = op->lane->fs;

	fs_file_not_opened(fs, op->file);
	fs_file_put(fs, op->file);
	fs_reply_early(op, err);
	atomic_fetch_add(&fs->releasing, 1);
	fs_silly_finish(op);
}

static void trunc_may(struct fs_op *op)
{
	if (op->call->err)
		undo(op, -op->call->err);
	else
		trunc_in_order(op);
}

/*
 * The OPEN was for reading only, and the server's SETATTR lets the owner cut whatever the mode is:
 * it cannot know that the file is not open for writing. `access` is what the OPEN said; a bit that
 * it lacks the server may not know.
 */
static void trunc_begin(struct fs_op *op, uint32_t access)
{
	const uint32_t change = ACCESS4_MODIFY | ACCESS4_EXTEND;

	if ((op->file->share_access & OPEN4_SHARE_ACCESS_WRITE) || (access & change) == change)
		trunc_in_order(op);
	else
		fs_access_check(op, op->inode, W_OK, trunc_may);
}

static void open_failed(struct fs_op *op, int err)
{
	fs_openread_end(op, false);
	fs_share_leave(op->file->share);
	not_opened(op, err);
}

static void open_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;
	const struct nfs4_op_open *o = &call->u.open;

	if (call->err) {
		open_failed(op, -call->err);
		return;
	}
	nfs4_share_open(op->file->state, call);
	op->attr = o->attr;
	fs_attr_update(fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
	fs_deleg_opened(op);
	fs_share_opened(op, op->file);
	fs_share_leave(op->file->share);
	fs_openread_end(op, true);
	if (!fs_share_allows(op->fi.flags, o->access))
		undo(op, EACCES);
	else if (op->fi.flags & O_TRUNC)
		trunc_begin(op, o->access);
	else
		open_ready(op);
}

static void open_start(struct fs_op *op)
{
	struct nfs4_op_open *o = &op->call->u.open;

	memset(o, 0, sizeof(*o));
	o->file = &op->fh;
	o->share_access = op->file->share_access;
	o->owner = op->file->share->owner;
	o->want_deleg = fs_deleg_wanted(op);
	fs_openread_begin(op);
	op->call->done = open_done;
	nfs4_open(op->call);
}

static void open_ask(struct fs_op *op);

static void open_inside(struct fs_op *op)
{
	struct fs_share *sh = op->file->share;

	if (fs_share_is_over(sh)) { /* a CLOSE came first, or it is lost */
		fs_share_leave(sh);
		fs_share_put(sh);
		fs_share_give(NULL, op->file);
		open_ask(op);
		return;
	}
	op->failed = open_failed;
	fs_op_call(op, open_start);
}

static void open_ask(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_file *f = op->file;

	fs_share_give(fs_share_join(fs, op->inode, &op->cred, op->unique), f);
	if (f->share) {
		fs_share_enter(op, f->share, false, open_inside);
		return;
	}
	not_opened(op, ENOMEM);
}

static void open_begin(struct fs_op *op)
{
	if (fs_deleg_open(op))
		open_ready(op);
	else if (op->fi.flags & O_TRUNC)
		fs_deleg_clear(op, op->inode, false, open_ask);
	else
		fs_deleg_await(op, op->file->share_access & OPEN4_SHARE_ACCESS_WRITE, open_ask);
}

void fs_do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin(req, ino);
	struct fs_file *f;

	if (!op)
		return;
	op->fi = *fi;
	f = fs_file_new(op->lane->fs, op->inode, &op->cred, fs_share_access(fi->flags), fi->flags);
	if (!f) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	op->file = fs_file_get(f); /* one reference for the handle, one for the op */
	fs_file_opening(op->lane->fs, f);
	open_begin(op);
}
