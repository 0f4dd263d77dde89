/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "latency.h"

static struct hist h;
static uint64_t rng = 88172645463325252ull;

static uint64_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Of any magnitude. */
static uint64_t rnd_ns(void)
{
	return rnd() >> (27 + rnd() % 30);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

Test(hist, buckets_follow_each_other_without_gaps)
{
	for (unsigned int i = 0; i + 1 < HIST_BUCKETS; i++) {
		uint64_t end = hist_bucket_end(i);

		cr_assert_eq(hist_bucket(end - 1), i);
		cr_assert_eq(hist_bucket(end), i + 1);
	}
	cr_assert_eq(hist_bucket(0), 0);
	cr_assert_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
	cr_assert_eq(hist_bucket_end(HIST_BUCKETS - 1), UINT64_MAX);
}

Test(hist, buckets_are_an_eighth_of_their_octave_wide)
{
	for (unsigned int i = HIST_SUB; i + 1 < HIST_BUCKETS; i++) {
		uint64_t begin = hist_bucket_end(i - 1), end = hist_bucket_end(i);

		cr_assert_leq((end - begin) * HIST_SUB, begin);
	}
}

/* What a brute-force sort says, to the width of a bucket. */
static void compare(size_t cnt, unsigned int permille)
{
	uint64_t *v = calloc(cnt, sizeof(*v)), rank = (cnt * permille + 999) / 1000, right, found;

	memset(&h, 0, sizeof(h));
	for (size_t i = 0; i < cnt; i++) {
		v[i] = rnd_ns();
		hist_add(&h, v[i]);
	}
	qsort(v, cnt, sizeof(*v), by_value);
	right = v[rank > 0 ? rank - 1 : 0];
	found = hist_percentile_ns(&h, permille);
	cr_assert_eq(hist_bucket(found), hist_bucket(right), "%u of %zu: %lu, not %lu", permille,
		cnt, (unsigned long)found, (unsigned long)right);
	free(v);
}

Test(hist, percentiles_are_those_of_a_sorted_list)
{
	static const unsigned int permille[] = {0, 1, 250, 500, 900, 990, 999, 1000};

	for (int round = 0; round < 200; round++)
		for (size_t i = 0; i < sizeof(permille) / sizeof(permille[0]); i++)
			compare(1 + rnd() % 500, permille[i]);
}

Test(hist, of_nothing_everything_is_zero)
{
	cr_assert_eq(hist_count(&h), 0);
	cr_assert_eq(hist_mean_ns(&h), 0);
	cr_assert_eq(hist_percentile_ns(&h, 500), 0);
}

Test(hist, the_mean_is_exact)
{
	hist_add(&h, 1000);
	hist_add(&h, 2000);
	hist_add(&h, 6000);
	cr_assert_eq(hist_mean_ns(&h), 3000);
	cr_assert_eq(hist_count(&h), 3);
}

Test(hist, an_interval_is_the_difference_of_two_readings)
{
	struct hist before = {0}, all = {0};

	hist_add(&h, 1000);
	hist_merge(&before, &h);
	hist_add(&h, 5000);
	hist_add(&h, 5000);
	hist_merge(&all, &h);
	hist_subtract(&all, &before);
	cr_assert_eq(hist_count(&all), 2);
	cr_assert_eq(hist_mean_ns(&all), 5000);
	cr_assert_eq(hist_bucket(hist_percentile_ns(&all, 1)), hist_bucket(5000));
}

Test(hist, the_longest_has_a_bucket_too)
{
	hist_add(&h, UINT64_MAX);
	cr_assert_eq(hist_percentile_ns(&h, 500), hist_bucket_end(HIST_BUCKETS - 2));
}

Test(hist, latencies_are_added_by_operation)
{
	static struct latency a, sum;

	hist_add(&a.fuse[15][LATENCY_RPC], 1000);
	hist_add(&a.nfs[25], 2000);
	latency_add(&sum, &a);
	latency_add(&sum, &a);
	cr_assert_eq(hist_count(&sum.fuse[15][LATENCY_RPC]), 2);
	cr_assert_eq(hist_count(&sum.nfs[25]), 2);
	latency_subtract(&sum, &a);
	cr_assert_eq(hist_count(&sum.fuse[15][LATENCY_RPC]), 1);
	cr_assert_str_eq(latency_fuse_name(15), "READ");
	cr_assert_null(latency_fuse_name(7));
	cr_assert_null(latency_fuse_name(LATENCY_FUSE_OPS));
	cr_assert_eq(latency_fuse_row(4096), LATENCY_FUSE_OPS - 1);
}
