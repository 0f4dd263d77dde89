/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * renameat2(2) with RENAME_NOREPLACE. NFS has no such RENAME, but operations that the server does
 * at once and that never replace anything:
 *
 *   file       LINK to the new name, or EEXIST; then the old name is dropped
 *   directory  CREATE of an empty one by the new name, or EEXIST; then RENAME onto it, which
 *              replaces nothing but an empty directory
 *
 * Anybody may give a name to another file at any time, so names are dropped with care
 * (fs_unname.h).
 *
 * If the old name cannot be dropped the new one is, unless nobody knows what the server did, or
 * whose LINK it was. A crash in between leaves both names, or one and .nfsXXXX, or the directory
 * and an empty one: never less than there was.
 *
 * What cannot be undone is not begun: EINVAL, as from the kernel's client for all of it, where
 * files cannot have two names or a sticky directory would not let go of one. So it is where there
 * is no room for a second name.
 *
 * Context: the lane of the op.
 */
#include "fs_noreplace.h"
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_dentry.h"
#include "fs_op.h"
#include "fs_place.h"
#include "fs_reply.h"
#include "fs_unname.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Attributes of what is renamed. */
#define NEEDED                                                                                     \
	(NFS4_ATTR_TYPE | NFS4_ATTR_FSID | NFS4_ATTR_FILEID | NFS4_ATTR_NLINK | NFS4_ATTR_OWNER)

/* op->mem; op->inode and name are the old directory and name, inode2 and name2 the new ones. */
struct noreplace {
	struct fs_unname drop; /* first */
	struct nfs4_fh fh;     /* what is renamed */
	struct nfs4_fh empty;  /* the directory made in its place; len 0: not known which */
	uint64_t fileid;
	bool is_dir;
	struct fs_inode *in; /* of the file, if it is known here; referenced */
	bool not_ours;       /* the LINK may have been somebody else's */
	int err;             /* why the new name is dropped */
};

static struct noreplace *of(const struct fs_op *op)
{
	return op->mem;
}

static void ended(struct fs_op *op)
{
	fs_inode_put(op->lane->fs, of(op)->in);
}

static void changed(struct fs_op *op, struct fs_inode *in, const struct nfs4_attr *attr)
{
	fs_attr_update_own(op->lane->fs, in, attr, op->attr_seq, fs_op_now(op));
}

static void finish(struct fs_op *op, int err)
{
	struct noreplace *n = of(op);

	fs_nameop_renamed(fs_op_now(op));
	if (n->in)
		fs_attr_changed(n->in); /* its ctime */
	if (!err) {
		fs_dentry_moved(op->lane->fs, op->inode, op->inode2);
		fs_place_moved(op->lane->fs, op->inode, op->name, op->inode2, op->name2);
	}
	fs_reply_err(op, err);
}

/* What a plain RENAME has no need of: EINVAL, programs do it otherwise. */
static int otherwise(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EMLINK ? EINVAL : err;
}

/* ---- files ---- */

static void new_dropped(struct fs_op *op, int err)
{
	struct noreplace *n = of(op);

	if (err && err != ENOENT)
		log_warn_limited("renaming %s to %s: both names are left: %s", op->name, op->name2,
			strerror(err));
	/* It is the last name that the file has: it was renamed then. */
	if (n->drop.kept && fs_unname_same_fh(&n->drop.found, &n->fh))
		n->err = 0;
	finish(op, n->err);
}

static void old_dropped(struct fs_op *op, int err)
{
	struct noreplace *n = of(op);

	if (n->drop.kept && fs_unname_same_fh(&n->drop.found, &n->fh)) {
		finish(op, ENOENT); /* somebody removed the new name: nothing has changed */
	} else if (n->not_ours && err == ENOENT) {
		finish(op, 0); /* somebody did the same, or we did */
	} else if (err == 0 || n->drop.unknown || n->not_ours) {
		finish(op, err);
	} else {
		n->err = otherwise(err);
		fs_unname(op, true, n->fileid, &n->fh, new_dropped);
	}
}

/* Somebody has made the name: or was it this LINK, which the server forgot? */
static void linked_by(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct noreplace *n = of(op);

	if (call->err || !fs_unname_same_fh(&call->u.lookup.fh, &n->fh)) {
		fs_reply_err(op, EEXIST);
		return;
	}
	n->not_ours = true;
	fs_unname(op, false, n->fileid, &n->fh, old_dropped);
}

static void look_by_whom(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh2, op->name2, linked_by);
}

static void linked(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct noreplace *n = of(op);

	switch (-call->err) {
	case 0:
		changed(op, op->inode2, &call->u.link.dir_attr);
		fs_unname(op, false, n->fileid, &n->fh, old_dropped);
		break;
	case EEXIST:
		if (call->resent)
			fs_op_call(op, look_by_whom);
		else
			fs_reply_err(op, EEXIST);
		break;
	case EOPNOTSUPP:
	case EPERM: /* also of file systems without links */
		fs_reply_err(op, EINVAL);
		break;
	default:
		fs_reply_err(op, otherwise(-call->err));
		break;
	}
}

static void link_start(struct fs_op *op)
{
	op->call->u.link = (struct nfs4_op_link){
		.file = &of(op)->fh, .dir = &op->fh2, .name = fs_nameop_str(op->name2)};
	op->call->done = linked;
	nfs4_link(op->call);
}

static void link_clear(struct fs_op *op)
{
	if (op->abandoned) /* it waited: others may have given the names to other files since */
		fs_reply_err(op, EINTR);
	else
		fs_op_call(op, link_start);
}

/* ---- directories ---- */

static void empty_dropped(struct fs_op *op, int err)
{
	if (err && err != ENOENT)
		log_warn_limited("renaming %s: an empty directory %s is left: %s", op->name,
			op->name2, strerror(err));
	finish(op, of(op)->err);
}

static void dir_refused(struct fs_op *op, int err)
{
	struct noreplace *n = of(op);

	n->err = err;
	if (err == EEXIST || err == ENOTEMPTY)
		finish(op, EEXIST); /* somebody took it */
	else if (n->empty.len == 0)
		empty_dropped(op, ESTALE);
	else
		fs_unname(op, true, n->fileid, &n->empty, empty_dropped);
}

/* Was it this RENAME, which the server forgot? */
static void renamed_by(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct noreplace *n = of(op);

	if (!call->err && fs_unname_same_fh(&call->u.lookup.fh, &n->fh))
		finish(op, 0);
	else
		dir_refused(op, n->err);
}

static void look_where(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh2, op->name2, renamed_by);
}

static void dir_renamed(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_rename *o = &call->u.rename;

	if (!call->err) {
		fs_nameop_changed(op, &o->from_attr);
		if (op->inode2 != op->inode)
			changed(op, op->inode2, &o->to_attr);
		finish(op, 0);
	} else if (call->status == NFS4_OK) {
		finish(op, -call->err); /* maybe it is done */
	} else if (call->resent) {
		of(op)->err = -call->err;
		fs_op_call(op, look_where);
	} else {
		dir_refused(op, -call->err);
	}
}

static void dir_rename(struct fs_op *op)
{
	op->call->u.rename = (struct nfs4_op_rename){
		.from_dir = &op->fh,
		.to_dir = &op->fh2,
		.from = fs_nameop_str(op->name),
		.to = fs_nameop_str(op->name2),
	};
	op->call->done = dir_renamed;
	nfs4_rename(op->call);
}

static void dir_made(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_create *o = &call->u.create;

	if (call->err) {
		fs_reply_err(op, otherwise(-call->err));
		return;
	}
	of(op)->empty = o->fh;
	changed(op, op->inode2, &o->dir_attr);
	fs_op_call(op, dir_rename);
}

static void dir_start(struct fs_op *op)
{
	op->call->u.create = (struct nfs4_op_create){
		.dir = &op->fh2,
		.name = fs_nameop_str(op->name2),
		.type = NF4DIR,
		.sattr = {.set = NFS4_ATTR_MODE, .mode = 0700},
	};
	op->call->done = dir_made;
	nfs4_create(op->call);
}

/* ---- what it is, and whether the name is free ---- */

static void target_free(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct noreplace *n = of(op);

	if (op->abandoned) {
		fs_reply_err(op, EINTR);
	} else if (call->err != -ENOENT) {
		fs_reply_err(op, call->err ? -call->err : EEXIST);
	} else if (n->is_dir) {
		fs_op_call(op, dir_start);
	} else {
		n->in = fs_inode_find(op->lane->fs, &n->fh);
		if (n->in)
			fs_deleg_clear(op, n->in, true, link_clear);
		else
			link_clear(op);
	}
}

static void target_look(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh2, op->name2, target_free);
}

/*
 * Will who may make a name in the directory be allowed to remove it? Not in a sticky one, unless it
 * or the file is his; and root may be nobody there.
 */
static bool lets_go(const struct fs_op *op, struct fs_inode *dir, const struct nfs4_attr *file)
{
	uint32_t uid = op->cred.uid;
	bool lets;

	mutex_lock(&dir->lock);
	lets = dir->attr_known && (!(dir->attr.mode & S_ISVTX) ||
					  (uid != 0 && (dir->attr.uid == uid || file->uid == uid)));
	mutex_unlock(&dir->lock);
	return lets;
}

/* Is the directory known to be in another file system? */
static bool is_elsewhere(struct fs_inode *dir, const struct nfs4_attr *file)
{
	const struct nfs4_attr *a = &dir->attr;
	bool is;

	mutex_lock(&dir->lock);
	is = dir->attr_known &&
	     (a->fsid_major != file->fsid_major || a->fsid_minor != file->fsid_minor);
	mutex_unlock(&dir->lock);
	return is;
}

static void source_found(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_lookup *o = &call->u.lookup;
	struct noreplace *n = of(op);

	fs_nameop_read(op, &o->dir_attr);
	if (op->abandoned || call->err) {
		fs_reply_err(op, op->abandoned ? EINTR : -call->err);
		return;
	}
	if ((o->attr.valid & NEEDED) != NEEDED) {
		fs_reply_err(op, EINVAL);
		return;
	}
	if (is_elsewhere(op->inode2, &o->attr)) {
		fs_reply_err(op, EXDEV);
		return;
	}
	n->fh = o->fh;
	n->fileid = o->attr.fileid;
	n->is_dir = o->attr.type == NF4DIR;
	if (!n->is_dir && (!lets_go(op, op->inode, &o->attr) || !lets_go(op, op->inode2, &o->attr)))
		fs_reply_err(op, EINVAL);
	else
		fs_op_call(op, target_look);
}

static void source_look(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, source_found);
}

void fs_noreplace(struct fs_op *op)
{
	op->mem = calloc(1, sizeof(struct noreplace));
	if (!op->mem) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	op->ended = ended;
	fs_op_call(op, source_look);
}
