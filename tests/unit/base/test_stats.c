/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

static const char *op_name(unsigned int op)
{
	return op == 25 ? "READ" : NULL;
}

static char *print(const struct stats *s, const char *(*name)(unsigned int))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	stats_print(out, s, name);
	fclose(out);
	return text;
}

Test(stats, prints_gauges_always_and_counters_that_are_not_zero)
{
	struct stats s = {.rpcs = 3, .credits = 32};
	char *text = print(&s, op_name);

	cr_assert_str_eq(text, "rpcs=3\ncredits=32\nin_flight=0\nin_flight_max=0\nslots=0\n"
			       "delegations=0\n");
	free(text);
}

Test(stats, prints_operations_by_name_or_number)
{
	struct stats s = {.ops = {[25] = UINT64_MAX, [STATS_OPS - 1] = 2}};
	char *text = print(&s, op_name);

	cr_assert_not_null(strstr(text, "\nop_READ=18446744073709551615\nop_79=2\n"));
	free(text);
	text = print(&s, NULL);
	cr_assert_not_null(strstr(text, "\nop_25=18446744073709551615\nop_79=2\n"));
	free(text);
}

Test(stats, sum_adds_all_but_the_maximum)
{
	struct stats a = {.fuse_requests = 1, .invals = 5, .slots = 64, .in_flight_max = 7};
	struct stats b = {.fuse_requests = 2, .in_flight = 3, .slots = 32, .in_flight_max = 9};
	struct stats sum = {0};

	a.ops[9] = 4;
	b.ops[9] = 6;
	stats_add(&sum, &a);
	cr_assert_eq(memcmp(&sum, &a, sizeof(sum)), 0);
	stats_add(&sum, &b);
	cr_assert_eq(sum.fuse_requests, 3);
	cr_assert_eq(sum.invals, 5);
	cr_assert_eq(sum.in_flight, 3);
	cr_assert_eq(sum.slots, 96);
	cr_assert_eq(sum.in_flight_max, 9);
	cr_assert_eq(sum.ops[9], 10);
	stats_add(&sum, &a);
	cr_assert_eq(sum.in_flight_max, 9);
}

Test(stats, sum_misses_no_field)
{
	struct stats s, sum = {0};
	const unsigned char *p = (const unsigned char *)&sum;

	memset(&s, 1, sizeof(s));
	stats_add(&sum, &s);
	for (size_t i = 0; i < offsetof(struct stats, latency); i++)
		cr_assert_eq(p[i], 1, "byte %zu", i);
}

Test(stats, count_and_set)
{
	struct stats s = {0};

	stats_count(&s.rpcs, 2);
	stats_count(&s.rpcs, 3);
	stats_set(&s.credits, 9);
	stats_set(&s.credits, 8);
	cr_assert_eq(s.rpcs, 5);
	cr_assert_eq(s.credits, 8);
}
