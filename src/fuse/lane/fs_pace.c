/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_pace.h"

/* Requests taken in one turn, at most: completions wait no longer than that. */
#define BATCH_MAX 16u
/* Where more come in a turn epoll costs each of them little, and other descriptors wait longer. */
#define EXPECT_MAX 4u
/* So many right guesses make up for a wrong one. */
#define WARY 16u

/*
 * As many as there were the last time, so that a read that finds nothing is rare: what is left
 * makes the descriptor ready again, at once, and then it is twice as many.
 */
unsigned int fs_pace_begin(struct fs_pace *p, bool at_once)
{
	if (p->batch == 0)
		p->batch = 1;
	p->was = p->batch;
	p->at_once = at_once;
	if (!p->full || !at_once)
		return p->batch;
	if (p->hold > 0)
		p->hold--;
	else if (p->batch < BATCH_MAX)
		p->batch *= 2;
	return p->batch;
}

bool fs_pace_end(struct fs_pace *p, unsigned int n, bool expected)
{
	p->full = n == p->batch;
	if (!p->full) {
		if (p->batch > p->was && n <= p->was)
			p->hold = WARY;
		p->batch = n > 0 ? n : 1;
	}
	if (n == 0 && expected)
		p->doubt = WARY;
	else if (p->at_once && p->doubt > 0)
		p->doubt--;
	return n > 0 && n <= EXPECT_MAX && p->at_once && p->doubt == 0;
}
