/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of a directory as READDIR and READDIRPLUS tell the kernel.
 *
 * Context: the op's lane, op->req not answered yet.
 */
#ifndef RPCRDMAFS_FS_DIRENTRY_H
#define RPCRDMAFS_FS_DIRENTRY_H

#include "fs_dirpack.h"
#include "fs_op.h"

/* Offsets of an entry's successor; those of others are the server's cookies. */
#define FS_DIRENTRY_DOT    1
#define FS_DIRENTRY_DOTDOT 2
/* Bytes of a reply; it is made on the stack. */
#define FS_DIRENTRY_MAX (64u * 1024)

struct fs_direntries {
	bool plus;        /* READDIRPLUS: with attributes, and counted as looked up */
	size_t len, room; /* room: at most FS_DIRENTRY_MAX */
	char mem[FS_DIRENTRY_MAX];
};

/* `.` and `..`, unless op->off is behind them. False: no room for both. */
bool fs_direntry_dots(struct fs_op *op, struct fs_direntries *out);
/* An entry of p. False: no room; nothing is counted then. */
bool fs_direntry_add(struct fs_op *op, struct fs_direntries *out, const struct fs_dirpack *p,
	const struct fs_dirrec *rec);

#endif
