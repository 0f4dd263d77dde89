/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of programs that no lane knows of yet: background requests that the kernel keeps to
 * itself, what lies in /dev/fuse, and what a lane is just reading.
 *
 * The kernel keeps background requests back while max_background of them are unanswered, and does
 * not say which requests are such. Those that may be are counted in fs->background, with the
 * answers that were begun, ever, and those that are being given: while one is given the kernel lets
 * the next request out. fs->full_ns is when there were max_background last.
 *
 * Context: the lane of the op, or `l`.
 */
#ifndef RPCRDMAFS_FS_BACKGROUND_H
#define RPCRDMAFS_FS_BACKGROUND_H

#include "fs_op.h"

/* Its request was read. */
void fs_background_begin(struct fs_op *op);
/* Right before its answer, and after it. */
void fs_background_end(struct fs_op *op);
void fs_background_answered(struct fs_lane *l);
/* How many are unanswered. */
unsigned int fs_background_cnt(const struct fs *fs);
/* Does the kernel keep some back, or did it until right before? */
bool fs_background_is_kept(const struct fs_op *op);
/* Is anything in /dev/fuse, or does another lane read? */
bool fs_background_is_unread(const struct fs_lane *l);
/*
 * fs_background_is_none - all that the kernel was asked for before this call is known of
 *
 * False: it may be, or not; ask again a little later. By the kernel's order: whatever programs ask
 * for meanwhile does not count.
 */
bool fs_background_is_none(const struct fs_lane *l);
/* An answer lets out of the kernel what is in /dev/fuse after so long. */
#define FS_BACKGROUND_NS (5 * NSEC_PER_MSEC)

#endif
