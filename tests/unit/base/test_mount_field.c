/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "mount_field.h"

static void is(const char *field, const char *right)
{
	char s[64];

	strcpy(s, field);
	mount_field_str(s);
	cr_expect_str_eq(s, right, "%s", field);
}

Test(mount_field, escapes_are_what_they_stand_for)
{
	is("", "");
	is("/mnt/a", "/mnt/a");
	is("/a\\040b\\011\\012\\134", "/a b\t\n\\");
	is("\\040", " ");
	is("\\377", "\377");
}

Test(mount_field, anything_else_stays)
{
	is("\\", "\\");
	is("\\04", "\\04");
	is("\\08 \\400", "\\08 \\400");
	is("\\\\040", "\\ ");
	is("\\134040", "\\040"); /* once, not twice */
}

Test(mount_field, no_byte_behind_the_length_is_looked_at)
{
	char to[8] = "xxxxxxx";

	cr_assert_eq(mount_field(to, "a\\040", 4), 4);
	cr_assert_str_eq(to, "a\\04xxx");
	cr_assert_eq(mount_field(to, "a\\040", 5), 2);
	cr_assert_arr_eq(to, "a ", 2);
}
