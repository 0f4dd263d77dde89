/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane, for its operations and parts; fs.h has how it is made and stopped. */
#ifndef RPCRDMAFS_FS_LANE_H
#define RPCRDMAFS_FS_LANE_H

#include "fs_int.h"

/* Something was given back: resumes parked ops, then reading, then a stop in progress. */
void fs_lane_turn(struct fs_lane *l);
/* It takes a turn, and looks for requests. Any thread, while the lane has something in work. */
void fs_lane_kick(struct fs_lane *l);

#endif
