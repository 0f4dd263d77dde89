/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "fs_int.h"

TestSuite(fs_cred);

static uint32_t gids[RPC_MAX_GROUPS];

static unsigned int parse(const char *status)
{
	return fs_cred_parse_groups(status, gids, RPC_MAX_GROUPS);
}

Test(fs_cred, groups_are_taken_from_their_line)
{
	cr_assert_eq(
		parse("Name:\tcat\nGid:\t5\t5\t5\t5\nGroups:\t4 24 1000 4294967294 \nNStgid:\t9\n"),
		4);
	cr_assert_eq(gids[0], 4);
	cr_assert_eq(gids[1], 24);
	cr_assert_eq(gids[2], 1000);
	cr_assert_eq(gids[3], 4294967294u);
}

Test(fs_cred, a_user_without_groups_has_none)
{
	cr_assert_eq(parse("Name:\tcat\nGroups:\t \nNStgid:\t9\n"), 0);
	cr_assert_eq(parse("Name:\tcat\n"), 0);
	cr_assert_eq(parse(""), 0);
}

Test(fs_cred, a_program_cannot_name_itself_into_a_group)
{
	/* The kernel escapes a newline in Name: what follows it is on the same line. */
	cr_assert_eq(parse("Name:\tx\\nGroups:\t0\nGroups:\t7 \n"), 1);
	cr_assert_eq(gids[0], 7);
}

Test(fs_cred, more_than_sixteen_groups_are_cut)
{
	cr_assert_eq(parse("X:\nGroups:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 \n"), 16);
	cr_assert_eq(gids[15], 16);
}

Test(fs_cred, a_number_cut_by_the_end_of_the_text_is_no_group)
{
	cr_assert_eq(parse("X:\nGroups:\t10 100"), 1);
	cr_assert_eq(gids[0], 10);
}
