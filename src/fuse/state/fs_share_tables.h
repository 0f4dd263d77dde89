/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens and locks, for the process that takes the mount over (fs_tables.h). A FILE or
 * LOCKOWNER belongs to the SHARE that stands before it.
 *
 * Context: to put, the main thread while no lane runs anything; to get, before lanes start.
 */
#ifndef RPCRDMAFS_FS_SHARE_TABLES_H
#define RPCRDMAFS_FS_SHARE_TABLES_H

#include "fs_lock.h"
#include "fs_share.h"
#include "fs_tables.h"

/* ---- as it is now (fs_live.h). Any lane; without fs->live each does nothing ---- */

/* A share is made. Inode lock held. */
void fs_share_tables_live(struct fs *fs, struct fs_share *sh);
/* The server has it open for something else (sh->access). Inode lock held. */
void fs_share_tables_live_access(struct fs *fs, const struct fs_share *sh);
/* It is open, by the request `unique`, which is not answered yet; 0: by none. Inode lock held. */
void fs_share_tables_live_file(struct fs *fs, struct fs_file *f, uint64_t unique);
/* fs->locks->lock held: it is about to lock by this file, for this share. */
void fs_share_tables_live_owner(struct fs *fs, struct fs_lockowner *o);

/* Where reading is. */
struct fs_share_tables {
	struct fs *fs;
	struct fs_share *share; /* the last one; referenced */
	bool apart;             /* of live.h: its state is a record of its own, or there is none */
	bool closed;            /* it has no FILE as yet: the server is to close it */
	/* Owners of its locks, referenced, whose NFS4_KEEP_LOCKS may follow */
	struct fs_lockowner **owners;
	size_t owners_cnt;
};

/* All SHARE, FILE and LOCKOWNER; what is opened or closed now is none. */
void fs_share_tables_put(struct tables_out *t, struct fs *fs);
/* All LOCKWAIT. */
void fs_share_tables_put_waits(struct tables_out *t, struct fs *fs);
/* One of them. Returns: 0; -EBADMSG; -ENOMEM. */
int fs_share_tables_get(struct fs_share_tables *at, const struct tables_record *r);
/*
 * A request that may not have been answered: whether the kernel knows of an open file that it made
 * is found out when it is done again (fs_file_of_request()).
 */
void fs_share_tables_unanswered(struct fs *fs, uint64_t unique);
/* Data that went with the process before: whoever has the file open is told, once. */
void fs_share_tables_lost(struct fs *fs);
/* Files that the kernel does not know of, or has released, are closed. Returns: 0; -ENOMEM. */
int fs_share_tables_close(struct fs *fs);
/* No SHARE, FILE or LOCKOWNER follows. Returns: 0; -ENOMEM. */
int fs_share_tables_end(struct fs_share_tables *at);

#endif
