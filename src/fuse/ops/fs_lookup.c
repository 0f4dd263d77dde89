/* SPDX-License-Identifier: BSD-3-Clause */
/* LOOKUP: names are cached by the kernel, so each request asks the server. */
#include <errno.h>
#include <string.h>

#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"
#include "fs_shadow.h"
#include "fs_special.h"
#include "log.h"

static void entry_of(struct fs_op *op)
{
	fs_nameop_entry(op, &op->fh2, &op->attr);
}

/* ---- of a file system that is not known yet: what it can do is asked first ---- */

/* WIRE: of another one, if the server tells nothing of this: then it stays unknown. */
static void facts_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_fs *facts = &call->u.facts.fs;

	if (call->err)
		log_debug("file system %llx:%llx: what it can do is not known",
			(unsigned long long)op->attr.fsid_major,
			(unsigned long long)op->attr.fsid_minor);
	else if (facts->fsid_major == op->attr.fsid_major &&
		 facts->fsid_minor == op->attr.fsid_minor)
		nfs4_fs_learn(op->lane->fs->client, facts);
	entry_of(op);
}

/* With the call that the op has. */
static void ask_facts(struct fs_op *op)
{
	op->call->u.facts = (struct nfs4_op_facts){.fh = &op->fh2};
	op->call->done = facts_done;
	nfs4_fs_facts(op->call);
}

/* ---- LOOKUP ---- */

static void found(struct fs_op *op, const struct nfs4_op_lookup *o)
{
	if (fs_shadow_is_guarded(op->lane->fs, &o->attr)) {
		fs_special_entry(op, &o->fh, &o->attr);
		return;
	}
	op->fh2 = o->fh;
	op->attr = o->attr;
	if (fs_facts_missing(op->lane->fs, op->inode, &op->attr))
		ask_facts(op);
	else
		entry_of(op);
}

static void lookup_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct nfs4_op_lookup *o = &call->u.lookup;

	fs_nameop_read(op, &o->dir_attr);
	if (call->err == 0)
		found(op, o);
	else if (call->err == -ENOENT)
		fs_reply_negative(op, op->inode);
	else
		fs_nameop_error(op);
}

static void lookup_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, lookup_done);
}

void fs_do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (op != NULL && fs_nameop_name(op, op->name, name))
		fs_op_call(op, lookup_start);
}
