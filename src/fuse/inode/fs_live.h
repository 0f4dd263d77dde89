/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that the kernel knows of this mount, as it is now, in memory that outlives this process
 * (live.h): records of fs_tables.h, put anew before the kernel is told of a change. A process that
 * takes the mount over after a crash reads them (fs_handover.c).
 *
 * Left out is what it can do without: names that the kernel may walk (until their time is over it
 * walks them), and which version of a file's attributes and pages the kernel has (none: they are
 * asked for again).
 *
 * Context: any lane. Without such memory (fs->live) each does nothing.
 */
#ifndef RPCRDMAFS_FS_LIVE_H
#define RPCRDMAFS_FS_LIVE_H

#include "fs_inode.h"
#include "nfs4_keep.h"

struct fs_file;

/* Where the records stand in live.h. */
enum {
	FS_LIVE_RANK_MOUNT = 20,
	FS_LIVE_RANK_INODE = 30,
	FS_LIVE_RANK_OPENS = NFS4_KEEP_RANK_OPENS, /* group: the open owner's number */
	FS_LIVE_RANK_SILLY = 50,
	FS_LIVE_RANK_DIR = 60,
	FS_LIVE_RANK_REQUEST = 70,
};
enum {
	FS_LIVE_MINOR_SHARE = 0,
	FS_LIVE_MINOR_FILE = 20,
	FS_LIVE_MINOR_LOCKOWNER = 25,
};

/* The one record in t takes the place of *ref; t is freed. */
void fs_live_put(
	const struct fs *fs, live_ref *ref, const struct live_key *key, struct tables_out *t);

/* It is made, or something of it has changed: table lock held. */
void fs_live_inode_locked(struct fs *fs, struct fs_inode *in);
/* The same without that lock. */
void fs_live_inode(struct fs *fs, struct fs_inode *in);
/* in->nlookup has changed, table lock held. */
void fs_live_lookups(struct fs *fs, struct fs_inode *in);
/* It is about to be freed: table lock held. */
void fs_live_inode_gone(struct fs *fs, struct fs_inode *in);

/*
 * fs_live_data - an open file has errors to be told, or not any more; or its RELEASE has come; or,
 * with f->data_goes, data that is not durable (f->unstable, f->writebacks), or none any more
 *
 * One number beside its record (f->live_ref), as it changes all the time. Inode lock held.
 */
void fs_live_data(const struct fs_file *f);
/*
 * That number, read: f->lost is set, f->left if the file was released, and the errors that it has:
 * EIO if data went with the process. f: no other thread knows it yet.
 */
void fs_live_data_get(struct fs_file *f, uint64_t data);

#endif
