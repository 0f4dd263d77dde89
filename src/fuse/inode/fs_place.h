/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open directories that this mount removes, or replaces by a rename. NFS has no directory without
 * a name: the server knows it no more, but a program that has it open may ask for its attributes.
 * Requests speak of names, not of what has them: an inode remembers by a number where the kernel
 * was told that it is. It is a guess that counts only when the server says ESTALE.
 *
 * Context: any lane. Takes the table's lock, and those of inodes inside.
 */
#ifndef RPCRDMAFS_FS_PLACE_H
#define RPCRDMAFS_FS_PLACE_H

#include "fs_inode.h"

/* The beginning of each open directory (fs_dir.c). */
struct fs_open_dir {
	struct list link;       /* fs->dirs, table lock */
	struct fs_inode *inode; /* referenced */
};

/* The kernel is told that `in`, a directory, is dir/name. */
void fs_place_note(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name);
/* RMDIR was done. */
void fs_place_removed(struct fs *fs, struct fs_inode *dir, const char *name);
/* RENAME was done, of whatever it is. */
void fs_place_moved(struct fs *fs, struct fs_inode *from, const char *name, struct fs_inode *to,
	const char *name2);
/*
 * fs_place_last - the server says ESTALE: is `in` a directory that was open when we removed it?
 *
 * Then its last attributes are copied, without links.
 */
bool fs_place_last(struct fs_inode *in, struct nfs4_attr *ret);

#endif
