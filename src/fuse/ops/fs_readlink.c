/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <string.h>

#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"

static void readlink_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_str *t = &call->u.readlink.target;
	char target[PATH_MAX];

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	memcpy(target, t->p, t->len); /* at most 4095: nfs4.h */
	target[t->len] = '\0';
	fs_reply_readlink(op, target);
}

static void readlink_start(struct fs_op *op)
{
	op->call->u.readlink = (struct nfs4_op_readlink){
		.fh = &op->fh,
		.sink = {op->buf, op->buf->data, PATH_MAX + 512},
	};
	op->call->done = readlink_done;
	nfs4_readlink(op->call);
}

void fs_do_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs_op *op = fs_op_begin(req, ino);

	if (op != NULL)
		fs_op_call_buf(op, readlink_start);
}
