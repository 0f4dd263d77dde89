/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many requests a lane reads in a turn, and whether the next one is likely to be there in the
 * next turn: then it is read without asking epoll before (reactor_fd_expect()). Either guess is
 * wrong at the price of a read(2) that finds nothing, and then is not made again for a while.
 *
 * Context: the lane, or any thread; pure.
 */
#ifndef RPCRDMAFS_FS_PACE_H
#define RPCRDMAFS_FS_PACE_H

#include <stdbool.h>

/* Zero-initialised. */
struct fs_pace {
	unsigned int batch; /* requests to be read at most in this turn */
	unsigned int was;   /* the same, of the turn before */
	unsigned int hold;  /* so many more turns are to be full before it grows */
	unsigned int doubt; /* so many more are to begin at once before one is expected */
	bool full;          /* the turn before found as many as it might read */
	bool at_once;       /* this turn: see fs_pace_begin() */
};

/*
 * fs_pace_begin - a turn of reading begins
 *
 * at_once: what is there was there, or came, before the lane looked for it. Returns: how many
 * requests to read at most.
 */
unsigned int fs_pace_begin(struct fs_pace *p, bool at_once);
/*
 * fs_pace_end - and is over
 *
 * n: requests that there were. expected: epoll did not tell of them. Returns: some are likely to be
 * there in the next turn, and not so many that asking epoll does not matter.
 */
bool fs_pace_end(struct fs_pace *p, unsigned int n, bool expected);

#endif
