/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which version of a file the kernel holds, of its data and of its attributes.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_PAGES_H
#define RPCRDMAFS_FS_PAGES_H

#include "fs_inode.h"

/*
 * Are the kernel's pages of the inode those of a->change? If not the caller sees to it that they
 * are dropped, and then says so. compare: or whichever there are will do (nocto).
 */
bool fs_pages_good(struct fs_inode *in, const struct nfs4_attr *a, bool compare);
/*
 * They are: those that the kernel gets from here on are of a->change, or newer. seq: fs_attr_seq()
 * from before the call that brought `a`.
 */
void fs_pages_dropped(struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq);
/* Does the kernel hold attributes of another version than a's? */
bool fs_pages_told_other(struct fs_inode *in, const struct nfs4_attr *a);

#endif
