/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "retry.h"

#define S 1000000000ull

static struct retry r;
static uint64_t wait_ns;

Test(retry, what_a_user_must_mend_is_not_tried_again)
{
	static const int permanent[] = {
		EINVAL, EACCES, EPERM, ENOENT, ENOTDIR, EPROTONOSUPPORT, ENOMEM, EINTR, EBUSY};

	retry_init(&r, 0, 10, true);
	for (unsigned int i = 0; i < sizeof(permanent) / sizeof(permanent[0]); i++)
		cr_assert_not(retry_after(&r, S, permanent[i], &wait_ns), "%d", permanent[i]);
}

Test(retry, time_cures_a_want_of_what_others_have)
{
	cr_assert_not(retry_is_hopeless(ENOMEM));
	cr_assert_not(retry_is_hopeless(EMFILE));
	cr_assert_not(retry_is_hopeless(ENFILE));
	cr_assert_not(retry_is_hopeless(EAGAIN));
	cr_assert(retry_is_hopeless(ESTALE));
	cr_assert(retry_is_hopeless(EPROTO));
	cr_assert(retry_is_hopeless(EBADMSG));
}

/* A server that was away for long comes back with another root, for a moment. */
Test(retry, a_take_over_is_given_up_when_it_was_hopeless_for_20_s_and_not_before)
{
	uint64_t since = 0;

	cr_assert_not(retry_is_over(&since, 1 * S, false));
	cr_assert_not(retry_is_over(&since, 100 * S, false));
	cr_assert_not(retry_is_over(&since, 101 * S, true), "it is so since now");
	cr_assert_not(retry_is_over(&since, 121 * S - 1, true));
	cr_assert_not(retry_is_over(&since, 122 * S, false), "not any more");
	cr_assert_not(retry_is_over(&since, 123 * S, true));
	cr_assert_not(retry_is_over(&since, 142 * S, true));
	cr_assert(retry_is_over(&since, 143 * S, true));
}

Test(retry, a_server_or_network_that_may_come_is_tried_again)
{
	static const int passing[] = {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENODEV,
		EADDRNOTAVAIL, EADDRINUSE, EAGAIN, ECONNRESET};

	for (unsigned int i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		retry_init(&r, 0, 1, false);
		cr_assert(retry_after(&r, S, passing[i], &wait_ns), "%d", passing[i]);
	}
}

Test(retry, zero_minutes_are_one_attempt)
{
	retry_init(&r, 5 * S, 0, false);
	cr_assert_not(retry_after(&r, 5 * S, ECONNREFUSED, &wait_ns));
}

Test(retry, waits_double_up_to_10_s_in_the_foreground_and_30_s_in_the_background)
{
	static const unsigned int fg[] = {1, 2, 4, 8, 10, 10}, bg[] = {1, 2, 4, 8, 16, 30, 30};

	retry_init(&r, 0, 100, false);
	for (unsigned int i = 0; i < sizeof(fg) / sizeof(fg[0]); i++) {
		cr_assert(retry_after(&r, 0, ETIMEDOUT, &wait_ns));
		cr_assert_eq(wait_ns, fg[i] * S);
	}
	retry_init(&r, 0, 100, true);
	for (unsigned int i = 0; i < sizeof(bg) / sizeof(bg[0]); i++) {
		cr_assert(retry_after(&r, 0, ETIMEDOUT, &wait_ns));
		cr_assert_eq(wait_ns, bg[i] * S);
	}
}

Test(retry, the_last_attempt_is_when_the_minutes_are_over)
{
	retry_init(&r, 0, 1, false);
	r.tries = 10;
	cr_assert(retry_after(&r, 59 * S, ETIMEDOUT, &wait_ns));
	cr_assert_eq(wait_ns, S);
	cr_assert_not(retry_after(&r, 60 * S, ETIMEDOUT, &wait_ns));
}
