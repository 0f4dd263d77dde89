/* SPDX-License-Identifier: BSD-3-Clause */
/*
 *   LOOKUP --> ACCESS -- nothing mounted on a name like this -----------------------> entry
 *                     \- LOOKUP of the directories of such names, from the root on --> entry
 *
 * The second is rare: root mounted something on a file of this name.
 */
#include "fs_op.h"
#include "fs_special.h"
#include "fs_covers.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_reply.h"
#include "fs_shadow.h"
#include "fs_unname.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAY_WRITE (ACCESS4_MODIFY | ACCESS4_EXTEND)

struct special {
	bool may;     /* the user may use it */
	uint64_t seq; /* attr_seq of the call that brought op->attr */
};

static struct special *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct special);
	return op->work;
}

/* op->mem: on the way to the directories where something is mounted on such a name. */
struct walk {
	struct nfs4_fh fh; /* so far */
	unsigned int left; /* paths */
	const char *at;    /* the next name of the first of them */
	char paths[];
};

/* ---- is something mounted on it? ---- */

static void tell(struct fs_op *op, bool may)
{
	op->shadow = !may;
	if (op->shadow)
		stats_count(&op->lane->stats->shadows, 1);
	op->attr_seq = work(op)->seq;
	fs_nameop_entry(op, &op->fh2, &op->attr);
}

static void tell_covered(struct fs_op *op)
{
	tell(op, !fs_shadow_was_told(op->lane->fs, op->inode, op->name));
}

static struct walk *walk_of(struct fs_op *op)
{
	return op->mem;
}

static void next_path(struct fs_op *op)
{
	struct walk *w = walk_of(op);

	w->at += strlen(w->at) + 1;
	w->left--;
	fs_inode_fh(op->lane->fs->root, &w->fh);
}

static void walk_start(struct fs_op *op);

/* A directory that the user may not search is not the one that he came through. */
static void walk_on(struct fs_op *op)
{
	struct walk *w = walk_of(op);

	while (w->left > 0 && *w->at == '\0') {
		if (fs_unname_same_fh(&w->fh, &op->fh)) {
			tell_covered(op);
			return;
		}
		next_path(op);
	}
	if (w->left > 0)
		fs_op_call(op, walk_start);
	else
		tell(op, work(op)->may);
}

static void walk_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct walk *w = walk_of(op);

	if (call->err != 0) {
		w->at += strlen(w->at);
		w->fh.len = 0;
	} else {
		w->at += strcspn(w->at, "/");
		w->at += *w->at == '/';
		w->fh = call->u.lookup.fh;
	}
	walk_on(op);
}

static void walk_start(struct fs_op *op)
{
	struct walk *w = walk_of(op);

	op->call->u.lookup = (struct nfs4_op_lookup){
		.dir = &w->fh,
		.name = {w->at, (uint32_t)strcspn(w->at, "/")},
		.ask = NFS4_DIR_NONE,
	};
	op->call->done = walk_done;
	nfs4_lookup(op->call);
}

static void decide(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	unsigned int cnt;
	size_t len;
	char *paths;
	struct walk *w;
	int err = fs_covers_of(&fs->covers, fs->dev, op->name, &paths, &cnt, &len);

	if (err != 0) {
		fs_reply_err(op, -err);
		return;
	}
	if (paths == NULL) {
		tell(op, work(op)->may);
		return;
	}
	w = malloc(sizeof(*w) + len);
	if (w == NULL) {
		free(paths);
		fs_reply_err(op, ENOMEM);
		return;
	}
	memcpy(w->paths, paths, len);
	free(paths);
	w->at = w->paths;
	w->left = cnt;
	fs_inode_fh(fs->root, &w->fh);
	op->mem = w;
	walk_on(op);
}

/* ---- what the user may ---- */

static bool may_use(const struct nfs4_attr *a, const struct nfs4_op_access *o)
{
	uint32_t writes = o->supported & MAY_WRITE;
	bool may_write = writes != 0 && (o->access & writes) == writes;

	return may_write || (a->type == NF4FIFO && (o->access & ACCESS4_READ));
}

static void access_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_access *o = &call->u.access;

	if (call->err != 0 && call->err != -EACCES) {
		fs_reply_err(op, -call->err);
		return;
	}
	work(op)->may = call->err == 0 && may_use(&op->attr, o);
	if (call->err == 0 && (o->attr.valid & NFS4_ATTR_STAT) == NFS4_ATTR_STAT) {
		op->attr = o->attr;
		work(op)->seq = op->attr_seq;
	}
	decide(op);
}

static void access_start(struct fs_op *op)
{
	op->call->u.access =
		(struct nfs4_op_access){.fh = &op->fh2, .want = ACCESS4_READ | MAY_WRITE};
	op->call->done = access_done;
	nfs4_access(op->call);
}

void fs_special_entry(struct fs_op *op, const struct nfs4_fh *fh, const struct nfs4_attr *a)
{
	op->fh2 = *fh;
	op->attr = *a;
	work(op)->seq = op->attr_seq;
	fs_op_call(op, access_start);
}
