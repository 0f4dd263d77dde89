/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_session_int.h"

Test(nfs4_lease, due_at_two_thirds)
{
	cr_assert_eq(nfs4_lease_due_ns(0, 90), 60 * NSEC_PER_SEC);
	cr_assert_eq(nfs4_lease_due_ns(7 * NSEC_PER_SEC, 90), 67 * NSEC_PER_SEC);
	cr_assert_eq(nfs4_lease_due_ns(0, 30), 20 * NSEC_PER_SEC);
}

Test(nfs4_lease, unknown_lease_is_taken_as_a_short_one)
{
	cr_assert_eq(nfs4_lease_due_ns(0, 0), 40 * NSEC_PER_SEC);
}

Test(nfs4_lease, absurd_leases_do_no_harm)
{
	cr_assert_eq(nfs4_lease_due_ns(0, 1), NSEC_PER_SEC, "not in a busy loop");
	cr_assert_gt(nfs4_lease_due_ns(NSEC_PER_SEC, UINT32_MAX), UINT32_MAX * NSEC_PER_SEC / 3);
}
