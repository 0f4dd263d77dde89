/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPCRDMAFS_FS_CURRENT_H
#define RPCRDMAFS_FS_CURRENT_H

struct fs_lane;
struct stats;

/* The lane whose thread this is, or NULL; libfuse calls handlers without one. */
struct fs_lane *fs_current(void);
/* Its counters, or NULL. */
struct stats *fs_current_stats(void);
void fs_current_set(struct fs_lane *l, struct stats *stats);

#endif
