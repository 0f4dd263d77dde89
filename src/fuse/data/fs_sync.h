/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fs_sync_wish() of fs.h: all files that are open are committed, one after the other.
 *
 * Context: the mount's first lane, unless stated.
 */
#ifndef RPCRDMAFS_FS_SYNC_H
#define RPCRDMAFS_FS_SYNC_H

#include "fs_int.h"

/* Goes on with what is wished. Any lane; does nothing on others than the first. */
void fs_sync_turn(struct fs_lane *l);

extern const struct fs_part fs_sync_part;

#endif
