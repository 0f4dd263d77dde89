/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "roce_int.h"

#define MS   NSEC_PER_MSEC
#define BIG  1000u /* packets in a tick, before congestion */
#define FEW  8u    /* the least */
#define NOON (43200 * NSEC_PER_SEC)

static struct roce_pace p;
static uint64_t now;

static void start(void)
{
	p = (struct roce_pace){0};
	now = NOON;
}

/* All that may go out in this tick does, at most n; then it is the next tick. */
static uint32_t out(uint32_t n)
{
	uint32_t room = roce_pace_room(&p, now);

	n = n < room ? n : room;
	roce_pace_sent(&p, n);
	now += roce_pace_wait_ns(&p, now);
	return n;
}

TestSuite(roce_pace, .init = start);

Test(roce_pace, there_is_no_limit_without_congestion)
{
	cr_assert_eq(roce_pace_room(&p, now), UINT32_MAX);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(out(BIG), BIG);
	cr_assert_eq(roce_pace_room(&p, now), UINT32_MAX);
}

Test(roce_pace, a_notice_halves_the_rate)
{
	out(BIG);
	out(BIG);
	roce_pace_slower(&p, now);
	cr_assert_eq(out(BIG), BIG / 2);
}

/* Packets of this tick that went out before it count, too. */
Test(roce_pace, the_tick_of_the_notice_has_no_more_than_that)
{
	out(BIG);
	cr_assert_eq(roce_pace_room(&p, now), UINT32_MAX);
	roce_pace_sent(&p, BIG - 100);
	roce_pace_slower(&p, now + MS / 2);
	cr_assert_eq(roce_pace_room(&p, now + MS / 2), 0);
	cr_assert_eq(roce_pace_wait_ns(&p, now + MS / 2), MS / 2);
	now += MS;
	cr_assert_lt(out(BIG), BIG);
}

/* The CNP was on its way. */
Test(roce_pace, a_notice_may_come_a_little_later)
{
	out(BIG);
	now += 2 * MS;
	roce_pace_slower(&p, now);
	cr_assert_eq(out(BIG), BIG / 8, "a half for each tick, and half of that");
}

Test(roce_pace, notices_of_one_tick_are_one)
{
	out(BIG);
	for (int i = 0; i < 20; i++)
		roce_pace_slower(&p, now + (uint64_t)i * MS / 20);
	cr_assert_eq(out(BIG), BIG / 2);
}

/* It grew by a half before it is halved again. */
Test(roce_pace, each_tick_with_one_makes_it_three_quarters)
{
	uint32_t last, n;

	out(BIG);
	roce_pace_slower(&p, now);
	for (last = out(BIG); last > 2 * FEW; last = n) {
		roce_pace_slower(&p, now);
		n = out(BIG);
		cr_assert(n + 1 >= last * 3 / 4 && n <= last * 3 / 4 + 1, "%u of %u", n, last);
	}
}

Test(roce_pace, some_packets_go_out_whatever_comes)
{
	for (int i = 0; i < 100; i++) {
		roce_pace_slower(&p, now);
		cr_assert_eq(out(BIG), FEW);
	}
}

Test(roce_pace, it_is_soon_what_it_was_then_more_and_at_last_there_is_no_limit)
{
	uint32_t last = 0, ticks = 0, n;

	out(BIG);
	roce_pace_slower(&p, now);
	for (int i = 0; i < 5; i++) {
		n = out(UINT32_MAX);
		cr_assert_gt(n, last);
		last = n;
	}
	cr_assert(last > 960 && last < BIG, "after five ticks nearly: %u", last);
	for (int i = 0; i < 5; i++)
		last = out(UINT32_MAX);
	cr_assert(last > BIG && last < BIG + 20, "slowly: %u", last);
	for (; roce_pace_room(&p, now) != UINT32_MAX; ticks++) {
		n = out(UINT32_MAX);
		cr_assert_gt(n, last);
		last = n;
		cr_assert_lt(ticks, 100);
	}
	cr_assert_gt(ticks, 10);
}

Test(roce_pace, it_grows_while_nothing_is_sent_as_well)
{
	out(BIG);
	roce_pace_slower(&p, now);
	now += 10 * NSEC_PER_SEC;
	cr_assert_eq(roce_pace_room(&p, now), UINT32_MAX);
}

/* A packet here and there may be lost without any congestion. */
Test(roce_pace, losses_halve_the_rate_as_far_as_64_packets)
{
	out(BIG);
	out(BIG);
	roce_pace_lost(&p, now);
	cr_assert_eq(out(BIG), BIG / 2);
	for (int i = 0; i < 20; i++) {
		roce_pace_lost(&p, now);
		out(BIG);
	}
	roce_pace_lost(&p, now);
	cr_assert_eq(out(BIG), 64);
}

Test(roce_pace, a_loss_takes_no_limit_of_congestion_away)
{
	for (int i = 0; i < 20; i++) {
		roce_pace_slower(&p, now);
		out(BIG);
	}
	roce_pace_slower(&p, now);
	roce_pace_lost(&p, now);
	cr_assert_eq(out(BIG), FEW);
	roce_pace_lost(&p, now);
	cr_assert_lt(out(BIG), 2 * FEW + 2);
}
