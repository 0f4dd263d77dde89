/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"

/* The unit of block counts: fragment and block size alike, since programs mix them up. */
#define BLOCK 4096u

static void statfs_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_statfs *o = &call->u.statfs;
	struct statvfs st;

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	memset(&st, 0, sizeof(st));
	st.f_bsize = st.f_frsize = BLOCK;
	st.f_blocks = o->bytes_total / BLOCK;
	st.f_bfree = o->bytes_free / BLOCK;
	st.f_bavail = o->bytes_avail / BLOCK;
	st.f_files = o->files_total;
	st.f_ffree = o->files_free;
	st.f_favail = o->files_avail;
	st.f_namemax = o->maxname != 0 && o->maxname < FS_NAME_MAX ? o->maxname : FS_NAME_MAX;
	fs_reply_statfs(op, &st);
}

static void statfs_start(struct fs_op *op)
{
	op->call->u.statfs = (struct nfs4_op_statfs){.fh = &op->fh};
	op->call->done = statfs_done;
	nfs4_statfs(op->call);
}

void fs_do_statfs(fuse_req_t req, fuse_ino_t ino)
{
	/* libfuse says 0 where the kernel gave no inode */
	struct fs_op *op = fs_op_begin(req, ino != 0 ? ino : FUSE_ROOT_ID);

	if (op != NULL)
		fs_op_call(op, statfs_start);
}
