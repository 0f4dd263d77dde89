/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that programs were told is written, until the server has it on stable storage: in memory
 * that outlives this process (fs_live.h), to be written again by whoever takes the mount over after
 * a crash.
 *
 * It is the requests as they came (fs_asked.h), until a part of their range is written over, cut
 * off, or was to be appended elsewhere: then it is a record of its own, with the same place in the
 * order in which all is written again.
 *
 * Context: the inode's lock. Without such memory, or with fs->data_goes, nothing is done.
 */
#ifndef RPCRDMAFS_FS_KEPT_H
#define RPCRDMAFS_FS_KEPT_H

#include "fs_fs.h"
#include "tables.h"

struct fs_file;

/* Of a writeback, or of an extent. Zeroed: nothing is kept. */
struct fs_kept {
	uint64_t unique; /* of a request: mostly there is one */
	uint64_t *more;  /* of others behind it */
	uint32_t cnt;    /* of all of them */
	live_ref data;   /* or one record instead of them */
	uint64_t order;  /* of the first request */
	bool appends;    /* to the end, which was where the record says */
};

/* The request is about to be answered, and its data is in what `k` is of. unique 0: it has been. */
void fs_kept_request(struct fs *fs, struct fs_kept *k, uint64_t unique);
/* It is these bytes of the file now, and no others. */
void fs_kept_data(struct fs *fs, struct fs_kept *k, const struct fs_file *f, uint64_t off,
	const void *p, uint32_t len);
/* It is durable, or given up. */
void fs_kept_drop(struct fs *fs, struct fs_kept *k);
/* From one to another, which has none. */
void fs_kept_move(struct fs_kept *to, struct fs_kept *from);
/* FS_TABLES_DATA of the process before is to be written. Returns: 0; -EBADMSG; -ENOMEM. */
int fs_kept_get(struct fs *fs, const struct tables_record *r);

#endif
