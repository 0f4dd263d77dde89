/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log2-linear histograms of durations: each octave in 8 parts, so a value is known to 12.5 %, from
 * 128 ns to 137 s. One thread adds, without locks; others read it relaxed, as stats.h.
 */
#ifndef RPCRDMAFS_HIST_H
#define RPCRDMAFS_HIST_H

#include <stdint.h>

#define HIST_UNIT_SHIFT 7 /* 128 ns: the width of the smallest buckets */
#define HIST_SUB_BITS   3
#define HIST_SUB        (1u << HIST_SUB_BITS)
#define HIST_OCTAVES    27u
#define HIST_BUCKETS    ((HIST_OCTAVES + 1) * HIST_SUB) /* the last one has all that is longer */

struct hist {
	uint64_t sum_ns;
	uint64_t buckets[HIST_BUCKETS];
};

static inline unsigned int hist_bucket(uint64_t ns)
{
	uint64_t v = ns >> HIST_UNIT_SHIFT;
	unsigned int octave;

	if (v < HIST_SUB)
		return (unsigned int)v;
	octave = 63u - (unsigned int)__builtin_clzll(v) - HIST_SUB_BITS;
	if (octave >= HIST_OCTAVES)
		return HIST_BUCKETS - 1;
	return (octave + 1) * HIST_SUB + (unsigned int)((v >> octave) & (HIST_SUB - 1));
}

/* The first nanosecond that is in a later bucket; UINT64_MAX for the last one. */
uint64_t hist_bucket_end(unsigned int bucket);

static inline void hist_add(struct hist *h, uint64_t ns)
{
	uint64_t *b = &h->buckets[hist_bucket(ns)];

	__atomic_store_n(b, *b + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->sum_ns, h->sum_ns + ns, __ATOMIC_RELAXED);
}

/* Adds what was counted in `from`, which may be in use. */
void hist_merge(struct hist *to, const struct hist *from);
/* Takes off what was counted before: an earlier reading of the same. */
void hist_subtract(struct hist *from, const struct hist *before);
uint64_t hist_count(const struct hist *h);
/* Average; 0 of none. */
uint64_t hist_mean_ns(const struct hist *h);
/*
 * The middle of the bucket that has the value which `permille` of all do not exceed; 0 of none, and
 * for what took less than 128 ns.
 */
uint64_t hist_percentile_ns(const struct hist *h, unsigned int permille);

#endif
