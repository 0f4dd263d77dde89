/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens and locks, for the process that takes the mount over (fs_tables.h). A FILE or
 * LOCKOWNER belongs to the SHARE that stands before it.
 *
 * Context: to put, the main thread while no lane runs anything; to get, before lanes start.
 */
#ifndef RPCRDMAFS_FS_SHARE_TABLES_H
#define RPCRDMAFS_FS_SHARE_TABLES_H

#include "fs_share.h"
#include "fs_tables.h"

/* Where reading is. */
struct fs_share_tables {
	struct fs *fs;
	struct fs_share *share; /* the last one; referenced */
};

/* All SHARE, FILE and LOCKOWNER; what is opened or closed now is none. */
void fs_share_tables_put(struct tables_out *t, struct fs *fs);
/* All LOCKWAIT. */
void fs_share_tables_put_waits(struct tables_out *t, struct fs *fs);
/* One of them. Returns: 0; -EBADMSG; -ENOMEM. */
int fs_share_tables_get(struct fs_share_tables *at, const struct tables_record *r);
/* No SHARE, FILE or LOCKOWNER follows. */
void fs_share_tables_end(struct fs_share_tables *at);

#endif
