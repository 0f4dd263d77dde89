/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "fs_pace.h"

TestSuite(fs_pace);

static struct fs_pace pace;

/* A turn in which so many are there. Returns: some are expected in the next one. */
static bool turn(unsigned int there, bool at_once, bool expected, unsigned int *ret_reads)
{
	unsigned int most = fs_pace_begin(&pace, at_once);
	unsigned int n = there < most ? there : most;

	*ret_reads = n < most ? n + 1 : n; /* one finds nothing */
	return fs_pace_end(&pace, n, expected);
}

Test(fs_pace, what_is_left_is_read_at_twice_the_pace)
{
	unsigned int reads;

	for (unsigned int most = 1; most <= 16; most *= 2) {
		turn(100, most > 1, false, &reads);
		cr_assert_eq(reads, most);
	}
	for (int i = 0; i < 3; i++) {
		turn(100, true, false, &reads);
		cr_assert_eq(reads, 16, "and no faster");
	}
	turn(5, true, false, &reads);
	turn(5, true, false, &reads);
	cr_assert_eq(reads, 5, "as many as there were");
	turn(0, true, false, &reads);
	turn(1, false, false, &reads);
	cr_assert_eq(reads, 1);
}

Test(fs_pace, what_came_after_a_wait_was_not_left)
{
	unsigned int reads;

	for (int i = 0; i < 100; i++) {
		cr_assert_not(turn(1, false, false, &reads));
		cr_assert_eq(reads, 1);
	}
}

/* One program, one request after the other, each there before the lane looks. */
Test(fs_pace, reads_that_find_nothing_are_rare)
{
	unsigned int reads, all = 0;

	for (int i = 0; i < 1000; i++) {
		turn(1, i > 0, false, &reads);
		all += reads;
	}
	cr_assert_lt(all, 1000 + 1000 / 16);
	cr_assert_gt(all, 1000, "it looks whether there are more");
}

Test(fs_pace, what_comes_at_once_is_expected)
{
	unsigned int reads;

	cr_assert_not(turn(1, false, false, &reads));
	cr_assert(turn(1, true, false, &reads));
	cr_assert(turn(1, true, true, &reads));
	cr_assert_not(turn(1, false, false, &reads), "it came after a wait");
}

/* Epoll costs each of them little, and other descriptors would wait. */
Test(fs_pace, but_not_where_many_come)
{
	unsigned int reads;

	cr_assert_not(turn(100, false, false, &reads));
	cr_assert(turn(100, true, false, &reads), "two");
	cr_assert(turn(100, true, true, &reads), "four");
	cr_assert_not(turn(100, true, true, &reads), "eight");
	cr_assert_not(turn(100, true, false, &reads));
}

Test(fs_pace, and_not_for_a_while_when_it_was_not_there)
{
	unsigned int reads, until = 0;

	cr_assert_not(turn(1, false, false, &reads));
	cr_assert(turn(1, true, false, &reads));
	cr_assert_not(turn(0, true, true, &reads));
	for (int i = 0; i < 100; i++)
		cr_assert_not(turn(1, false, false, &reads), "waits make up for nothing");
	while (!turn(1, true, false, &reads))
		until++;
	cr_assert_eq(until, 15);
}

/* Epoll told of it, and another lane was faster. */
Test(fs_pace, what_another_lane_took_was_no_wrong_guess)
{
	unsigned int reads;

	turn(1, true, false, &reads);
	cr_assert_not(turn(0, true, false, &reads));
	cr_assert(turn(1, true, false, &reads));
}
