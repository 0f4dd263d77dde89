/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MKDIR, MKNOD, SYMLINK: NFS CREATE. It does not make regular files, which
 * mknod(2) may ask for: those are OPENed exclusively and closed again.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"
#include "log.h"

/* Calls longer than this may not fit inline: they are built in a data buffer. */
#define SHORT_TARGET 512

struct make {
	enum nfs4_ftype type;
	mode_t mode, umask;
	bool mode_unset; /* as for CREATE */
	dev_t rdev;
	struct nfs4_state state; /* MKNOD of a regular file */
};

static struct make *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct make);
	return op->work;
}

static struct nfs4_sattr mode_sattr(const struct fs_op *op, mode_t mode)
{
	return (struct nfs4_sattr){
		.set = NFS4_ATTR_MODE,
		.mode = mode & 07777,
		.umask = work(op)->umask,
		.use_umask = true,
	};
}

/* After a CREATE whose last operations failed: the object is there, look at it. */
static void look_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_nameop_read(op, &call->u.lookup.dir_attr);
	if (call->err == 0)
		fs_nameop_entry(op, &call->u.lookup.fh, &call->u.lookup.attr);
	else
		fs_nameop_error(op);
}

static void look_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, look_done);
}

static void create_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct nfs4_op_create *o = &call->u.create;

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, &o->dir_attr);
	if (o->fh.len == 0 || (o->attr.valid & NFS4_ATTR_TYPE) == 0)
		fs_op_call(op, look_start);
	else
		fs_nameop_entry(op, &o->fh, &o->attr);
}

static void create_start(struct fs_op *op)
{
	struct nfs4_op_create *o = &op->call->u.create;

	*o = (struct nfs4_op_create){
		.dir = &op->fh,
		.name = fs_nameop_str(op->name),
		.type = work(op)->type,
		.rdev_major = major(work(op)->rdev),
		.rdev_minor = minor(work(op)->rdev),
		.sattr = mode_sattr(op, work(op)->mode),
	};
	if (o->type == NF4LNK) {
		/* A symbolic link has all permissions and no umask, as symlink(2) makes it. */
		o->sattr = (struct nfs4_sattr){.set = NFS4_ATTR_MODE, .mode = 0777};
		o->linkdata = fs_nameop_str(op->mem);
		o->long_buf = op->buf;
	}
	op->call->done = create_done;
	fs_op_once(op);
	nfs4_create(op->call);
}

/* ---- regular files: OPEN, CLOSE, LOOKUP ---- */

static void regular_closed(struct nfs4_call *call)
{
	/* Made it is; if the CLOSE failed the server lets go of it with the lease. */
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0)
		log_warn("CLOSE of a file that mknod made: %s", strerror(-call->err));
	nfs4_state_forget(&work(op)->state);
	fs_op_call(op, look_start);
}

static void regular_close(struct fs_op *op)
{
	op->call->u.close = (struct nfs4_op_close){.fh = &op->fh2, .state = &work(op)->state};
	op->call->done = regular_closed;
	nfs4_close(op->call);
}

/* The session is dead. */
static void regular_failed(struct fs_op *op, int err)
{
	nfs4_state_forget(&work(op)->state);
	fs_reply_err(op, err);
}

static void regular_stamped(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0 && work(op)->mode_unset)
		log_warn_limited("mode of a file that mknod made: %s", strerror(-call->err));
	op->failed = regular_failed;
	fs_op_call(op, regular_close);
}

/* The server kept the verifier of the exclusive OPEN in the file's times, and still does. */
static void regular_stamp(struct fs_op *op)
{
	op->call->u.setattr = (struct nfs4_op_setattr){
		.fh = &op->fh2,
		.sattr = {.set = NFS4_ATTR_ATIME | NFS4_ATTR_MTIME,
			.atime_now = true,
			.mtime_now = true},
	};
	if (work(op)->mode_unset) {
		op->call->u.setattr.sattr.set |= NFS4_ATTR_MODE;
		op->call->u.setattr.sattr.mode = work(op)->mode & 07777 & ~work(op)->umask;
	}
	op->call->done = regular_stamped;
	nfs4_setattr(op->call);
}

static void regular_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_open *o = &call->u.open;
	bool stamped = o->stamped;

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_changed(op, &o->dir_attr);
	op->fh2 = o->fh;
	work(op)->mode_unset = o->mode_unset;
	if (op->fh2.len == 0) {
		fs_op_call(op, look_start);
		return;
	}
	nfs4_share_open(&work(op)->state, call);
	if (o->deleg_type == OPEN_DELEGATE_READ || o->deleg_type == OPEN_DELEGATE_WRITE)
		nfs4_return_refuse(call);
	op->failed = regular_failed;
	fs_op_call(op, stamped ? regular_close : regular_stamp);
}

static void regular_start(struct fs_op *op)
{
	struct nfs4_client *cl = op->lane->fs->client;

	op->call->u.open = (struct nfs4_op_open){
		.dir = &op->fh,
		.name = fs_nameop_str(op->name),
		.share_access = OPEN4_SHARE_ACCESS_WRITE,
		.owner = nfs4_owner_of_request(op->unique),
		.create = true,
		.sattr = mode_sattr(op, work(op)->mode),
	};
	nfs4_make_exclusive(cl, &op->call->u.open);
	op->call->done = regular_done;
	fs_op_once(op);
	nfs4_open(op->call);
}

/* ---- handlers ---- */

static struct fs_op *make_begin(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, enum nfs4_ftype type)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (op == NULL)
		return NULL;
	work(op)->mode = mode;
	work(op)->umask = fuse_req_ctx(req)->umask;
	work(op)->type = type;
	return fs_nameop_name(op, op->name, name) ? op : NULL;
}

void fs_do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fs_op *op = make_begin(req, parent, name, mode, NF4DIR);

	if (op != NULL)
		fs_op_call(op, create_start);
}

static bool node_type(mode_t mode, enum nfs4_ftype *ret_type)
{
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
		*ret_type = NF4REG;
		return true;
	case S_IFBLK:
		*ret_type = NF4BLK;
		return true;
	case S_IFCHR:
		*ret_type = NF4CHR;
		return true;
	case S_IFIFO:
		*ret_type = NF4FIFO;
		return true;
	case S_IFSOCK:
		*ret_type = NF4SOCK;
		return true;
	default:
		return false;
	}
}

void fs_do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	enum nfs4_ftype type;
	struct fs_op *op;

	if (!node_type(mode, &type)) {
		op = fs_op_begin(req, parent);
		if (op != NULL)
			fs_reply_err(op, EINVAL);
		return;
	}
	op = make_begin(req, parent, name, mode, type);
	if (op == NULL)
		return;
	if (type == NF4BLK || type == NF4CHR)
		work(op)->rdev = rdev;
	fs_op_call(op, type == NF4REG ? regular_start : create_start);
}

void fs_do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct fs_op *op = make_begin(req, parent, name, 0777, NF4LNK);
	size_t len = strlen(target);

	if (op == NULL)
		return;
	if (len >= PATH_MAX) {
		fs_reply_err(op, ENAMETOOLONG);
		return;
	}
	op->mem = strdup(target);
	if (op->mem == NULL)
		fs_reply_err(op, ENOMEM);
	else if (len > SHORT_TARGET)
		fs_op_call_buf(op, create_start);
	else
		fs_op_call(op, create_start);
}
