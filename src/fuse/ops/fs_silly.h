/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unlink of an open file, as the kernel's client does it: a name .nfsXXXX.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_SILLY_H
#define RPCRDMAFS_FS_SILLY_H

#include "fs_op.h"
#include "fs_tables.h"

#define FS_SILLY_NAME (4 + 16 + 8 + 1)
/* A name that nobody else uses or knows, of the form of the kernel's client's. */
void fs_silly_name(struct fs *fs, uint64_t fileid, char ret[FS_SILLY_NAME]);
/* All FS_TABLES_SILLY; one of them. Returns: 0; -EBADMSG; -ENOMEM. */
void fs_silly_tables_put(struct tables_out *t, struct fs *fs);
int fs_silly_tables_get(const struct tables_record *r, struct fs *fs);
/*
 * fs_silly_settle - files whose RENAME to .nfsXXXX the process before had sent, and not noted
 *
 * After the server was asked (nfs4_redo_was_done()), before lanes run. One that it had renamed goes
 * with its last close, or at once if that was before; of the others nothing is left. Returns:
 * false: out of memory.
 */
bool fs_silly_settle(struct fs *fs);
/* Those that were not settled are freed; before the inodes. */
void fs_silly_fini(struct fs *fs);
/* Is there a .nfs file of ours in that directory, or soon, or not gone yet? */
bool fs_silly_left(struct fs_inode *dir);
/* Is it open here, and its name still its own? Then rename instead of remove. */
bool fs_silly_needed(struct fs_inode *in);
/*
 * fs_silly_rename - rename dir/name, which is `in`, to dir/.nfsXXXX
 *
 * The file goes with its last close. Uses op->call; dir and in stay referenced by the caller
 * until `done`, name is copied. is_all: the request asks for nothing more (fs_op_once()). err:
 * positive errno or 0.
 */
void fs_silly_rename(struct fs_op *op, struct fs_inode *dir, const char *name, struct fs_inode *in,
	bool is_all, void (*done)(struct fs_op *op, int err));
/*
 * After a close, or an OPEN that failed: removes the .nfs file of op->inode if that was the last,
 * then ends the op, which is counted in fs->releasing.
 */
void fs_silly_finish(struct fs_op *op);

#endif
