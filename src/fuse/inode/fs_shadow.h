/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Special files of a mount that several users share. The kernel opens FIFOs and devices, and
 * connects to sockets, without asking us: where it does not judge the mode (default_permissions)
 * nobody would. But it asks for the inode, and what a FIFO's or a socket's inode is connects those
 * who use it. So there are two nodeids for such a file:
 *
 *   the inode's own             for users who may use it
 *   with FS_INO_SHADOW          for all others: the same file to whatever reaches us (attributes,
 *                               links, removal), to the kernel another inode: another FIFO, a
 *                               socket that nobody is bound to, a device with the number 0:0
 *
 * Their names are given no time: each walk is a LOOKUP as the user who walks, and ACCESS follows
 * it. Readers and writers of a FIFO are not told apart: the kernel asks for neither.
 *
 * The kernel drops a name whose nodeid is another one than before, and what is mounted on it goes
 * with it. So a name that something is mounted on (fs_covers.h) keeps the nodeid it was told with:
 * who walks it comes to what is mounted there.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_SHADOW_H
#define RPCRDMAFS_FS_SHADOW_H

#include "fs_inode.h"

/* Is it a special file, and has it two nodeids? */
bool fs_shadow_is_guarded(const struct fs *fs, const struct nfs4_attr *a);
/* The kernel is told that dir/name is this one, or its shadow: e is made so. */
void fs_shadow_tell(struct fs *fs, const struct fs_inode *dir, const char *name, bool shadow,
	struct fuse_entry_param *e);
/* Was the shadow what the kernel was told last? Some thousand names later that is forgotten. */
bool fs_shadow_was_told(struct fs *fs, const struct fs_inode *dir, const char *name);

/* Names that are known so, by number; and those of the process before this one (fs_tables.h). */
void fs_shadow_each(struct fs *fs, void (*fn)(void *ctx, uint64_t number), void *ctx);
void fs_shadow_put_back(struct fs *fs, uint64_t number);

#endif
