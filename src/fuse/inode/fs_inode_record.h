/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of an inode (FS_TABLES_INODE), for fs_inode_tables.c and fs_live.c.
 *
 * Context: inode lock held.
 */
#ifndef RPCRDMAFS_FS_INODE_RECORD_H
#define RPCRDMAFS_FS_INODE_RECORD_H

#include "fs_tables.h"

enum {
	INODE_GENERATION = 10,
	INODE_FH = 12,
	INODE_TYPE = 13,
	INODE_FILEID = 14,
	INODE_FSID_MAJOR = 15,
	INODE_FSID_MINOR = 16,
	INODE_KNOWN = 17, /* KNOWN_*: which attributes follow */
	INODE_MODE = 18,
	INODE_UID = 19,
	INODE_GID = 20,
	INODE_TOLD_CHANGE = 21,
	INODE_DATA_CHANGE = 22,
	INODE_FLAGS = 23, /* FLAG_* */
	INODE_NFS_NAMES = 24,
};

#define FLAG_UNHASHED (1u << 0)
#define FLAG_REMOVED  (1u << 1)
#define FLAG_OPENED   (1u << 2)

/*
 * Without its lookups, and without the versions that the kernel was told. opened: the kernel may
 * have pages of it.
 */
void fs_inode_record_put(struct tables_out *t, const struct fs_inode *in, bool opened);
/* Does b say of what the record has something else than a? */
bool fs_inode_record_differs(const struct nfs4_attr *a, const struct nfs4_attr *b);
/* Of what the record has `to` is as `a` says. */
void fs_inode_record_note(struct nfs4_attr *to, const struct nfs4_attr *a);
/* The attributes that it has. */
void fs_inode_record_attr(const struct tables_record *r, struct nfs4_attr *a);

#endif
