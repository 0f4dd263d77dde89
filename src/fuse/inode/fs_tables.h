/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records in which a mount's daemon writes down for its successor what the kernel knows (see
 * tables.h for their form, nfs4_keep.h for what the server has). In this order:
 *
 *   MOUNT                      once
 *   INODE, NAMES               each inode; of a directory, the names the kernel may walk
 *   SHARE, FILE.., LOCKOWNER.. each share, then what is open by it, and whose locks hang on it
 *   SILLY, DIR, LOCKWAIT       .nfs files; open directories; requests that sleep for a lock
 *   REQUEST, DATA              after a crash: what the kernel asked, and was not answered, and data
 *                              that is not durable
 *   READ                       the same as a REQUEST, if there is none of that number
 *
 * Numbers of types and fields never get another meaning: what is added has new ones.
 *
 * Context: to put, the main thread while no lane runs anything; to get, before lanes start.
 */
#ifndef RPCRDMAFS_FS_TABLES_H
#define RPCRDMAFS_FS_TABLES_H

#include "fs_inode.h"
#include "tables.h"

enum fs_tables_type {
	FS_TABLES_MOUNT = 100,
	FS_TABLES_INODE = 101,
	FS_TABLES_NAMES = 102,
	FS_TABLES_SHARE = 103,
	FS_TABLES_FILE = 104,
	FS_TABLES_LOCKOWNER = 105,
	FS_TABLES_SILLY = 106,
	FS_TABLES_DIR = 107,
	FS_TABLES_LOCKWAIT = 108,
	FS_TABLES_REQUEST = 109,
	FS_TABLES_DATA = 110,
};

/* Fields that several records have. */
enum {
	FS_TABLES_SLOT = 1,   /* of the inode it is about */
	FS_TABLES_HANDLE = 2, /* of an open file or directory */
	FS_TABLES_CRED = 3,
	FS_TABLES_NLOOKUP = 11,
};

/* ---- fs_inode_tables.c ---- */

/* All INODE and NAMES. */
void fs_inode_tables_put(struct tables_out *t, struct fs *fs);
/* One INODE or NAMES. Returns: 0; -EBADMSG; -ENOMEM. */
int fs_inode_tables_get(const struct tables_record *r, struct fs *fs, uint64_t now_ns);
/* By FS_TABLES_SLOT, or another field that has a slot; not referenced. NULL: there is none. */
struct fs_inode *fs_inode_tables_of(const struct tables_record *r, uint16_t field, struct fs *fs);

#endif
