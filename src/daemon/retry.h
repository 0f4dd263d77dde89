/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which failures of a mount may pass, and when it is tried again (nfs(5): bg, fg, retry=). Pure:
 * time is an argument, nanoseconds of the monotonic clock.
 */
#ifndef RPCRDMAFS_RETRY_H
#define RPCRDMAFS_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct retry {
	uint64_t end_ns; /* nothing is tried after that */
	unsigned int tries;
	bool bg;
};

/* The first attempt begins now. */
void retry_init(struct retry *r, uint64_t now_ns, uint32_t minutes, bool bg);
/*
 * retry_after - an attempt failed with `err`
 *
 * Returns: true: try again *ret_wait_ns from now; false: that was the last one.
 */
bool retry_after(struct retry *r, uint64_t now_ns, int err, uint64_t *ret_wait_ns);

/* ---- a mount is taken over, and programs wait for it ---- */

/* A program that cannot take it over within so long gives it back, or up. */
#define RETRY_TAKE_OVER_NS 20000000000ull

/* Does time not cure what failed on this side with this errno value (positive)? */
bool retry_is_hopeless(int err);
/*
 * retry_is_over - an attempt failed; has that been hopeless for so long, without a break?
 *
 * since_ns: 0 before the first attempt.
 */
bool retry_is_over(uint64_t *since_ns, uint64_t now_ns, bool hopeless);

#endif
