/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_current.h"

#include <stddef.h>

static __thread struct fs_lane *current;

struct fs_lane *fs_current(void)
{
	return current;
}

void fs_current_set(struct fs_lane *l)
{
	current = l;
}
