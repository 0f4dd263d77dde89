/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_lane.h"
#include "fs_part.h"
#include "log.h"

void fs_lane_pause(struct fs_lane *l)
{
	if (l->state != FS_LANE_RUNS)
		return;
	fs_lane_set_state(l, FS_LANE_PAUSED);
	fs_lane_stop_reading(l);
	l->stalled = false;
}

bool fs_lane_pause_is_quiet(const struct fs_lane *l)
{
	return l->state == FS_LANE_PAUSED && l->ops_free == l->ops_cnt && list_empty(&l->parked);
}

void fs_lane_pause_end(struct fs_lane *l)
{
	if (l->state != FS_LANE_PAUSED)
		return;
	fs_lane_set_state(l, FS_LANE_RUNS);
	if (l != l->fs->metalane && fs_lane_start_reading(l) != 0)
		log_err("lane cannot read /dev/fuse again");
	fs_part_lane_started(l->fs, l);
	fs_lane_kick(l);
}
