/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the answers of Reads go out.
 *
 * Context: pure. now_ns: of reactor_now(). A roce_pace of zeros has no limit.
 */
#ifndef RPCRDMAFS_ROCE_PACE_H
#define RPCRDMAFS_ROCE_PACE_H

#include <stdint.h>

/* The rate of answers: packets in a tick of a millisecond. */
struct roce_pace {
	uint64_t tick;   /* its number, by the clock of the reactor */
	uint32_t sent;   /* in this tick */
	uint32_t before; /* the most in one of the last ticks, less with each */
	uint32_t limit;  /* 0: none */
	uint32_t aim;    /* what the limit grows to */
	uint32_t grown;  /* ticks since it was cut */
};

/* The peer heard of congestion. */
void roce_pace_slower(struct roce_pace *p, uint64_t now_ns);
/* Some did not get there. */
void roce_pace_lost(struct roce_pace *p, uint64_t now_ns);
/* Packets that may go out in this tick; UINT32_MAX: there is no limit. */
uint32_t roce_pace_room(struct roce_pace *p, uint64_t now_ns);
void roce_pace_sent(struct roce_pace *p, uint32_t packets);
/* The last ones did not go out. */
void roce_pace_back(struct roce_pace *p, uint32_t packets);
/* After roce_pace_room(): how long this tick is yet. */
uint64_t roce_pace_wait_ns(const struct roce_pace *p, uint64_t now_ns);

#endif
