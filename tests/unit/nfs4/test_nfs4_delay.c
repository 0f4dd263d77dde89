/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_session_int.h"

Test(nfs4_delay, doubles_from_a_tenth_of_a_second_to_fifteen)
{
	static const unsigned int ms[] = {
		100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000};

	for (uint32_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
		cr_assert_eq(nfs4_delay_ns(i), ms[i] * NSEC_PER_MSEC, "%u", i);
	cr_assert_eq(nfs4_delay_ns(UINT32_MAX), 15 * NSEC_PER_SEC);
}

Test(nfs4_delay, total_is_the_sum_of_the_waits)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 20; i++) {
		cr_assert_eq(nfs4_delay_total_ns(i), sum);
		sum += nfs4_delay_ns(i);
	}
}
