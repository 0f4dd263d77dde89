/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A name is dropped, if it still is the file's that is meant: see fs_unname.h.
 *
 *   RENAME to .nfsXXXX ---> LOOKUP -- this file, and it has another name --> REMOVE
 *                                  \- else: LINK by its name again, REMOVE (a directory: RENAME)
 *
 * REMOVE of a name that others know would take whatever they put there a moment ago.
 */
#include "fs_op.h"
#include "fs_unname.h"
#include "fs_attr.h"
#include "fs_nameop.h"
#include "fs_silly.h"
#include "log.h"

#include <errno.h>
#include <string.h>

static struct fs_unname *of(const struct fs_op *op)
{
	return op->mem;
}

/* It has to stay by the name that nobody knows. */
static void left_behind(struct fs_op *op, const char *why)
{
	log_warn_limited("%s: %s is left: %s", of(op)->name, of(op)->tmp, why);
	of(op)->done(op, 0);
}

static void is_back(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err)
		left_behind(op, strerror(-call->err));
	else
		of(op)->done(op, 0);
}

static void dir_back(struct fs_op *op)
{
	const struct fs_unname *n = of(op);

	op->call->u.rename = (struct nfs4_op_rename){.from_dir = n->dir_fh,
		.to_dir = n->dir_fh,
		.from = fs_nameop_str(n->tmp),
		.to = fs_nameop_str(n->name)};
	op->call->done = is_back;
	nfs4_rename(op->call);
}

static void tmp_removed(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_unname *n = of(op);

	if (call->err == -ENOTEMPTY || call->err == -EEXIST) {
		n->kept = true; /* a directory, which somebody uses */
		fs_op_call(op, dir_back);
		return;
	}
	if (call->err && call->err != -ENOENT) {
		left_behind(op, strerror(-call->err));
		return;
	}
	if (!call->err)
		fs_attr_update_own(op->lane->fs, n->dir, &call->u.remove.dir_attr, op->attr_seq,
			fs_op_now(op));
	n->done(op, 0);
}

static void tmp_remove(struct fs_op *op)
{
	op->call->u.remove =
		(struct nfs4_op_remove){.dir = of(op)->dir_fh, .name = fs_nameop_str(of(op)->tmp)};
	op->call->done = tmp_removed;
	nfs4_remove(op->call);
}

static void link_is_back(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err) /* EEXIST: there is another one by this name meanwhile */
		left_behind(op, strerror(-call->err));
	else
		fs_op_call(op, tmp_remove);
}

static void link_back(struct fs_op *op)
{
	const struct fs_unname *n = of(op);

	op->call->u.link = (struct nfs4_op_link){
		.file = &n->found, .dir = n->dir_fh, .name = fs_nameop_str(n->name)};
	op->call->done = link_is_back;
	nfs4_link(op->call);
}

static void tmp_found(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_lookup *o = &call->u.lookup;
	struct fs_unname *n = of(op);
	bool is_dir = (o->attr.valid & NFS4_ATTR_TYPE) && o->attr.type == NF4DIR;
	bool has_another = (o->attr.valid & NFS4_ATTR_NLINK) && o->attr.nlink > 1;

	if (call->err) {
		n->unknown = call->err != -ENOENT;
		n->done(op, -call->err);
		return;
	}
	n->found = o->fh;
	/* REMOVE of a directory never takes anything along. */
	n->kept = !fs_unname_same_fh(&o->fh, &n->wanted) || (!is_dir && !has_another);
	if (!n->kept)
		fs_op_call(op, tmp_remove);
	else
		fs_op_call(op, is_dir ? dir_back : link_back);
}

static void tmp_look(struct fs_op *op)
{
	fs_nameop_lookup(op, of(op)->dir_fh, of(op)->tmp, tmp_found);
}

/* Errors after which the name is as it was, or was not there. */
static bool is_answer(int err)
{
	return err == ENOENT || err == EACCES || err == EPERM || err == EROFS || err == ENOSPC ||
	       err == EDQUOT || err == ENAMETOOLONG || err == ESTALE;
}

static void moved(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_unname *n = of(op);

	if (!call->err || (call->err == -ENOENT && call->resent)) {
		fs_op_call(op, tmp_look);
		return;
	}
	n->unknown = call->status == NFS4_OK || !is_answer(-call->err);
	n->done(op, -call->err);
}

static void move(struct fs_op *op)
{
	const struct fs_unname *n = of(op);

	op->call->u.rename = (struct nfs4_op_rename){.from_dir = n->dir_fh,
		.to_dir = n->dir_fh,
		.from = fs_nameop_str(n->name),
		.to = fs_nameop_str(n->tmp)};
	op->call->done = moved;
	nfs4_rename(op->call);
}

void fs_unname(struct fs_op *op, bool new_one, uint64_t fileid, const struct nfs4_fh *wanted,
	void (*done)(struct fs_op *op, int err))
{
	struct fs_unname *n = of(op);

	n->dir = new_one ? op->inode2 : op->inode;
	n->dir_fh = new_one ? &op->fh2 : &op->fh;
	n->name = new_one ? op->name2 : op->name;
	n->wanted = *wanted;
	n->kept = n->unknown = false;
	n->done = done;
	fs_silly_name(op->lane->fs, fileid, n->tmp);
	fs_op_call(op, move);
}
