/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fs_sync_wish() of fs.h: all files that are open are committed, one after the other.
 *
 * Context: the mount's first lane, unless stated.
 */
#ifndef RPCRDMAFS_FS_SYNC_H
#define RPCRDMAFS_FS_SYNC_H

#include "fs_op.h"

/* Goes on with what is wished. Any lane; does nothing on others than the first. */
void fs_sync_turn(struct fs_lane *l);

/* Of a mount. */
struct fs_sync {
	_Atomic uint64_t wished, done; /* tickets */
	_Atomic unsigned int failed;   /* files, in the last round that is over */
	/* The first lane's: the round in work, which is for tickets up to `covers` */
	struct fs_lane *lane;
	struct reactor_timer timer;
	struct fs_file **files; /* referenced from `next` on; NULL: no round */
	size_t cnt, next;
	uint64_t covers;
	unsigned int failing;
	bool busy;         /* a COMMIT is on its way */
	uint64_t replayed; /* the ticket of what was done again after a crash; 0: none */
};

extern const struct fs_part fs_sync_part;

#endif
