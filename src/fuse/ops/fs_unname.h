/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing a name that others may give to another file at any time. NFS removes by name alone;
 * this takes nothing of theirs away, and no file's last name (but one that was taken away while
 * the server was asked).
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_UNNAME_H
#define RPCRDMAFS_FS_UNNAME_H

#include <string.h>

#include "fs_op.h"
#include "fs_silly.h"

/* op->mem points at it: first in what the user keeps there. */
struct fs_unname {
	/* for `done` */
	struct nfs4_fh found; /* what had the name; with `kept` */
	bool kept;            /* it is there again: another file's, or the last name of this one */
	bool unknown;         /* nobody knows what the server did */
	/* its own */
	struct nfs4_fh wanted;
	struct fs_inode *dir;
	const struct nfs4_fh *dir_fh;
	const char *name;
	char tmp[FS_SILLY_NAME];
	void (*done)(struct fs_op *op, int err);
};

/*
 * fs_unname - op->inode/name, or op->inode2/name2 with new_one, stands for *wanted no more
 *
 * A directory only if it is empty. err: positive errno, or 0: so it is, maybe since others saw to
 * it; the name may be somebody else's (`kept`).
 */
void fs_unname(struct fs_op *op, bool new_one, uint64_t fileid, const struct nfs4_fh *wanted,
	void (*done)(struct fs_op *op, int err));

static inline bool fs_unname_same_fh(const struct nfs4_fh *a, const struct nfs4_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

#endif
