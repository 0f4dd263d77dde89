/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that the kernel asked and that are not answered, as they came, in memory that outlives
 * this process (fs_live.h). Whoever takes the mount over after a crash does them again: the kernel
 * does not ask twice.
 *
 * All are received into such memory, where the data buffers of the lanes are. A WRITE stays where
 * it is: its buffer is the request's record, without a copy, until the buffer is needed for
 * something else, or the data is to be held beside it (fs_asked_buf_lend()). Of the others a copy
 * is made at once, in a place that is there for it.
 *
 * A request that was done and whose answer did not reach the kernel is so done twice. Of one whose
 * answer was not noted the kernel knows (fs_replay_get()).
 *
 * A WRITE that was answered stays until its data is durable (fs_kept.h).
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_ASKED_H
#define RPCRDMAFS_FS_ASKED_H

#include "fs_lane.h"
#include "tables.h"

/* Fields of FS_TABLES_REQUEST. */
enum {
	FS_ASKED_BYTES = 10, /* several: piece by piece */
	FS_ASKED_STATE = 11, /* STATE_* */
};

/* In the order in which they come, if they do. */
enum {
	FS_ASKED_NEW = 0,
	FS_ASKED_INTERRUPTED = 1, /* a FUSE_INTERRUPT of it came */
	FS_ASKED_KEPT = 2,        /* a WRITE that is answered, or about to be */
};

/* With fs->live; else there is nothing to be noted, and the others do nothing. 0 or -ENOMEM. */
int fs_asked_new(struct fs *fs);
void fs_asked_free(struct fs *fs);
/*
 * It came: len bytes of a FUSE request. A FUSE_INTERRUPT is noted with the one that it is about.
 * buf: the record of the data buffer that it is in; LIVE_NONE: there is none.
 */
void fs_asked_note(struct fs *fs, const void *req, size_t len, live_ref buf);
/* It is noted, and a WRITE that was answered by another process: FS_ASKED_KEPT. */
void fs_asked_acknowledged(struct fs *fs, const void *req);
/* The answer was written. */
void fs_asked_answered(struct fs *fs, uint64_t unique);
/* Data that was acknowledged is written again by that request, until it is answered. */
void fs_asked_rewrite(struct fs *fs, uint64_t unique);
/*
 * A request that data may have come after, which was acknowledged, is done again: that data waits
 * until it is answered, or waits for the kernel alone.
 */
void fs_asked_precede(struct fs *fs, uint64_t unique);
/* Is one of those, or of these, not answered? */
bool fs_asked_rewrites(const struct fs *fs);
bool fs_asked_precedes(const struct fs *fs);
/* Is this one of them, and not answered? */
bool fs_asked_is_rewrite(struct fs *fs, uint64_t unique);
/* Is this one of them, and not answered? unique 0: no. */
bool fs_asked_is_awaited(struct fs *fs, uint64_t unique);
/* Is it there, and not answered? */
bool fs_asked_is(struct fs *fs, uint64_t unique);
/*
 * fs_asked_keep - the data of a WRITE is needed when it is answered, too, until fs_asked_release()
 *
 * *ret_order: the place of the request among all (struct live_key.group). Returns: false: it is not
 * there.
 */
bool fs_asked_keep(struct fs *fs, uint64_t unique, uint64_t *ret_order);
void fs_asked_release(struct fs *fs, uint64_t unique);
/*
 * The process before has answered this one, or may have: nothing that the kernel asks for now may
 * come before. It is noted (fs_replay_add()). fs_asked_awaits(): there are such that are not
 * answered yet; data is once it is written back, or written.
 */
void fs_asked_await(struct fs *fs, uint64_t unique);
/* The server has done it; its answer waits for the kernel, which may wait for us. */
void fs_asked_await_no_more(struct fs *fs, uint64_t unique);
bool fs_asked_awaits(const struct fs *fs);
/* The bytes of a record's fields FS_ASKED_BYTES; `to` has room for r->len. Returns their length. */
size_t fs_asked_get_bytes(const struct tables_record *r, void *to);
#endif
