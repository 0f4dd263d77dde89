/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "rpcrdma_credit.h"

static struct rpcrdma_credit c;

static unsigned int take_all(void)
{
	unsigned int cnt = 0;

	while (rpcrdma_credit_is_free(&c, false)) {
		rpcrdma_credit_take(&c, false);
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
	rpcrdma_credit_take(&c, true);
	cr_assert_not(rpcrdma_credit_is_free(&c, true));
}

Test(rpcrdma_credit, a_probe_in_flight_takes_nothing_from_the_calls)
{
	rpcrdma_credit_grant(&c, 4);
	rpcrdma_credit_take(&c, true);
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
		rpcrdma_credit_give(&c, false);
	}
	rpcrdma_credit_give(&c, false);
	cr_assert(rpcrdma_credit_is_free(&c, false));
}

Test(rpcrdma_credit, the_single_credit_is_shared_with_the_probe)
{
	rpcrdma_credit_take(&c, true);
	cr_assert_not(rpcrdma_credit_is_free(&c, false));
	rpcrdma_credit_give(&c, true);
	cr_assert(rpcrdma_credit_is_free(&c, false));
}

Test(rpcrdma_credit, a_new_connection_starts_with_one_again)
{
	rpcrdma_credit_grant(&c, 64);
	take_all();
	rpcrdma_credit_reset(&c, 64);
	cr_assert_eq(take_all(), 1);
}
