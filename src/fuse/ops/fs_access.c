/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ACCESS: always asked of the server, which alone knows what its ACLs, its
 * export options and its view of this user allow. Root is nobody special.
 */
#include <errno.h>
#include <unistd.h>

#include "fs_attr.h"
#include "fs_nameop.h"
#include "fs_op.h"

#define DIR_WRITE  (ACCESS4_MODIFY | ACCESS4_EXTEND | ACCESS4_DELETE)
#define FILE_WRITE (ACCESS4_MODIFY | ACCESS4_EXTEND)
#define ALL        (ACCESS4_READ | ACCESS4_LOOKUP | DIR_WRITE | ACCESS4_EXECUTE)

/* What must be granted for `mask` (R_OK...) on an object of this type. */
static uint32_t access_bits(enum nfs4_ftype type, unsigned int mask)
{
	uint32_t want = 0;

	if (mask & R_OK)
		want |= ACCESS4_READ;
	if (mask & W_OK)
		want |= type == NF4DIR ? DIR_WRITE : FILE_WRITE;
	if (mask & X_OK)
		want |= type == NF4DIR ? ACCESS4_LOOKUP : ACCESS4_EXECUTE;
	return want;
}

static void access_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_access *o = &call->u.access;
	uint32_t want = access_bits(o->attr.type, op->may.mask);

	if (call->err == 0) {
		if (o->attr.valid)
			fs_attr_update(
				op->lane->fs, op->may.inode, &o->attr, op->attr_seq, fs_op_now(op));
		/* A bit the server does not know (DELETE on some) it cannot refuse either. */
		if ((o->supported & ~o->access & want) != 0)
			call->err = -EACCES;
	}
	op->may.then(op);
}

static void access_start(struct fs_op *op)
{
	op->call->u.access = (struct nfs4_op_access){
		.fh = op->may.inode == op->inode ? &op->fh : &op->fh2,
		.want = ALL,
	};
	op->call->done = access_done;
	nfs4_access(op->call);
}

void fs_access_check(
	struct fs_op *op, struct fs_inode *in, unsigned int mask, void (*then)(struct fs_op *op))
{
	op->may.inode = in;
	op->may.mask = mask & (R_OK | W_OK | X_OK);
	op->may.then = then;
	fs_op_call(op, access_start);
}

void fs_do_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct fs_op *op = fs_op_begin(req, ino);

	/* Without an error there is nothing to tell but 0. */
	if (op != NULL)
		fs_access_check(op, op->inode, (unsigned int)mask, fs_nameop_error);
}
