/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_current.h"

#include <stddef.h>

static __thread struct fs_lane *current;
static __thread struct stats *current_stats;

struct fs_lane *fs_current(void)
{
	return current;
}

struct stats *fs_current_stats(void)
{
	return current_stats;
}

void fs_current_set(struct fs_lane *l, struct stats *stats)
{
	current = l;
	current_stats = stats;
}
