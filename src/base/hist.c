/* SPDX-License-Identifier: BSD-3-Clause */
#include "hist.h"

static uint64_t peek(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static uint64_t bucket_begin(unsigned int bucket)
{
	unsigned int octave = bucket / HIST_SUB, part = bucket % HIST_SUB;

	if (octave == 0)
		return (uint64_t)part << HIST_UNIT_SHIFT;
	return (uint64_t)(HIST_SUB + part) << (octave - 1 + HIST_UNIT_SHIFT);
}

uint64_t hist_bucket_end(unsigned int bucket)
{
	return bucket + 1 < HIST_BUCKETS ? bucket_begin(bucket + 1) : UINT64_MAX;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	to->sum_ns += peek(&from->sum_ns);
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		to->buckets[i] += peek(&from->buckets[i]);
}

void hist_subtract(struct hist *from, const struct hist *before)
{
	from->sum_ns -= before->sum_ns;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		from->buckets[i] -= before->buckets[i];
}

uint64_t hist_count(const struct hist *h)
{
	uint64_t cnt = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		cnt += h->buckets[i];
	return cnt;
}

uint64_t hist_mean_ns(const struct hist *h)
{
	uint64_t cnt = hist_count(h);

	return cnt ? h->sum_ns / cnt : 0;
}

uint64_t hist_percentile_ns(const struct hist *h, unsigned int permille)
{
	uint64_t cnt = hist_count(h), below = 0, rank;

	if (!cnt)
		return 0;
	/* The smallest value that so many do not exceed: rank counts from 1, rounded up. */
	rank = (uint64_t)(((unsigned __int128)cnt * permille + 999) / 1000);
	if (rank == 0)
		rank = 1;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		uint64_t begin = bucket_begin(i);

		below += h->buckets[i];
		if (below < rank)
			continue;
		/* What took no time at all is in the first: no more than that is claimed. */
		return i > 0 && i + 1 < HIST_BUCKETS ? begin + (hist_bucket_end(i) - begin) / 2
						     : begin;
	}
	return 0;
}
