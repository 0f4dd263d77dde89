/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a process before this one read and did not answer (fs_tables.h): lanes take them
 * before what is in /dev/fuse.
 *
 * Context: fs_replay_add(): before lanes run; the others: any lane.
 */
#ifndef RPCRDMAFS_FS_REPLAY_H
#define RPCRDMAFS_FS_REPLAY_H

#include "fs_lane.h"

/* req: len bytes, as the kernel sends it; copied. False: out of memory. */
bool fs_replay_add(struct fs *fs, const void *req, size_t len);
/* Are there any left? */
bool fs_replay_any(const struct fs *fs);
/* The oldest one, at most `size` bytes long. 0: there is none any more. */
size_t fs_replay_take(struct fs *fs, void *ret, size_t size);
void fs_replay_fini(struct fs *fs);

#endif
