/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "rpcrdma_credit.h"

static struct rpcrdma_credit c;

static unsigned int take_all(void)
{
	unsigned int cnt = 0;

	while (rpcrdma_credit_is_free(&c, false)) {
		rpcrdma_credit_take(&c, false, 0);
		cnt++;
	}
	return cnt;
}

static void fresh(void)
{
	rpcrdma_credit_reset(&c, 64);
}

TestSuite(rpcrdma_credit, .init = fresh);

Test(rpcrdma_credit, one_call_until_the_first_grant)
{
	cr_assert_eq(take_all(), 1);
	cr_assert_not(rpcrdma_credit_is_free(&c, true));
}

Test(rpcrdma_credit, one_of_the_granted_is_kept_for_the_probe)
{
	rpcrdma_credit_grant(&c, 64);
	cr_assert_eq(take_all(), 63);
	cr_assert(rpcrdma_credit_is_free(&c, true));
	rpcrdma_credit_take(&c, true, 0);
	cr_assert_not(rpcrdma_credit_is_free(&c, true));
}

Test(rpcrdma_credit, a_probe_in_flight_takes_nothing_from_the_calls)
{
	rpcrdma_credit_grant(&c, 4);
	rpcrdma_credit_take(&c, true, 0);
	cr_assert_eq(take_all(), 3);
}

Test(rpcrdma_credit, more_than_asked_is_clamped)
{
	rpcrdma_credit_grant(&c, 1000000);
	cr_assert_eq(c.granted, 64);
	rpcrdma_credit_grant(&c, UINT32_MAX);
	cr_assert_eq(take_all(), 63);
}

Test(rpcrdma_credit, zero_is_taken_as_one)
{
	rpcrdma_credit_grant(&c, 0);
	cr_assert_eq(c.granted, 1);
	cr_assert_eq(take_all(), 1);
}

Test(rpcrdma_credit, credits_taken_back_are_waited_for)
{
	rpcrdma_credit_grant(&c, 10);
	cr_assert_eq(take_all(), 9);
	rpcrdma_credit_grant(&c, 3);
	for (int i = 0; i < 7; i++) {
		cr_assert_not(rpcrdma_credit_is_free(&c, false));
		rpcrdma_credit_give(&c, false, 0);
	}
	rpcrdma_credit_give(&c, false, 0);
	cr_assert(rpcrdma_credit_is_free(&c, false));
}

Test(rpcrdma_credit, the_single_credit_is_shared_with_the_probe)
{
	rpcrdma_credit_take(&c, true, 0);
	cr_assert_not(rpcrdma_credit_is_free(&c, false));
	rpcrdma_credit_give(&c, true, 0);
	cr_assert(rpcrdma_credit_is_free(&c, false));
}

Test(rpcrdma_credit, a_new_connection_starts_with_one_again)
{
	rpcrdma_credit_grant(&c, 64);
	take_all();
	rpcrdma_credit_reset(&c, 64);
	cr_assert_eq(take_all(), 1);
}

Test(rpcrdma_credit, what_the_server_may_write_has_a_limit_but_for_one_call_alone)
{
	c.inbound_max = 1000;
	rpcrdma_credit_reset(&c, 64);
	rpcrdma_credit_grant(&c, 64);
	cr_assert(rpcrdma_credit_has_room(&c, UINT64_MAX));
	rpcrdma_credit_take(&c, false, 600);
	cr_assert(rpcrdma_credit_has_room(&c, 400));
	cr_assert_not(rpcrdma_credit_has_room(&c, 401));
	cr_assert_not(rpcrdma_credit_has_room(&c, UINT64_MAX));
	cr_assert(rpcrdma_credit_has_room(&c, 0));
	rpcrdma_credit_take(&c, false, 400);
	cr_assert_not(rpcrdma_credit_has_room(&c, 1));
	rpcrdma_credit_give(&c, false, 600);
	cr_assert(rpcrdma_credit_has_room(&c, 600));
	rpcrdma_credit_give(&c, false, 400);
	rpcrdma_credit_take(&c, false, 5000);
	cr_assert_not(rpcrdma_credit_has_room(&c, 1));
	rpcrdma_credit_reset(&c, 64);
	cr_assert(rpcrdma_credit_has_room(&c, 5000), "a new connection");
	c.inbound_max = 0;
	rpcrdma_credit_take(&c, false, 5000);
	cr_assert(rpcrdma_credit_has_room(&c, UINT64_MAX), "no limit");
}
