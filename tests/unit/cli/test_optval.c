/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "optval.h"

Test(optval, a_number_within_its_bounds_is_taken)
{
	uint64_t v = 7;

	cr_assert(optval_uint("20049", 1, 65535, &v));
	cr_assert_eq(v, 20049);
	cr_assert(optval_uint("0", 0, 0, &v));
	cr_assert_eq(v, 0);
	cr_assert(optval_uint("18446744073709551615", 0, UINT64_MAX, &v));
	cr_assert_eq(v, UINT64_MAX);
}

Test(optval, anything_else_leaves_the_value_alone)
{
	static const char *const bad[] = {
		"", " 1", "+1", "-1", "1 ", "1k", "0x10", "65536", "18446744073709551616", "a"};
	uint64_t v = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(optval_uint(bad[i], 1, 65535, &v), "\"%s\" was taken", bad[i]);
	cr_assert_not(optval_uint(NULL, 1, 65535, &v));
	cr_assert_eq(v, 7);
}

Test(optval, a_word_is_found_whole_or_not_at_all)
{
	static const char *const words[] = {"all", "pos", NULL};

	cr_assert_eq(optval_word("all", words), 0);
	cr_assert_eq(optval_word("pos", words), 1);
	cr_assert_eq(optval_word("po", words), -1);
	cr_assert_eq(optval_word("positive", words), -1);
	cr_assert_eq(optval_word(NULL, words), -1);
}
