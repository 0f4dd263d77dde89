/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facts of an inode's file system (struct nfs4_fs). An export may lead into
 * others than the root's, each with its own longest name, largest file, transfer
 * sizes and attributes.
 *
 * They are asked for once for each file system, by the LOOKUP that first leads
 * into it, before its reply: READDIRPLUS gives the kernel no inode of a file
 * system that is not known. So the facts of whatever the kernel holds are
 * there without waiting, but where the server refused them.
 *
 * Context: any lane, without locks.
 */
#ifndef RPCRDMAFS_FS_FACTS_H
#define RPCRDMAFS_FS_FACTS_H

#include "fs_inode.h"

/* Those of the inode. Not known: nothing is too long or too large, and the server is asked. */
const struct nfs4_fs *fs_facts(const struct fs *fs, const struct fs_inode *in);
/* These attributes of the inode came: they tell its file system. */
void fs_facts_note(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a);
/* Sets what fs_facts() tells where they are not known; once the root's are there. */
void fs_facts_init(struct fs *fs);
/* Is what was found in the directory the root of another file system? Takes the directory's lock.
 */
bool fs_facts_below(struct fs_inode *dir, const struct nfs4_attr *a);
/* And of one that is not known? */
bool fs_facts_missing(struct fs *fs, struct fs_inode *dir, const struct nfs4_attr *a);
#endif
