/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "fs_handle.h"

#define MANY 5000u

static struct fs_handles handles;
static char files[MANY]; /* stand for files: only their addresses count */

static void tear_down(void)
{
	fs_handle_fini(&handles);
}

TestSuite(fs_handle, .fini = tear_down);

static uint64_t take(unsigned int i)
{
	uint64_t handle = fs_handle_take(&handles, &files[i]);

	cr_assert_neq(handle, FS_HANDLE_NONE);
	return handle;
}

Test(fs_handle, what_was_never_given_out_is_none)
{
	uint64_t handle = take(0);

	cr_assert_eq(fs_handle_of(&handles, handle), &files[0]);
	cr_assert_null(fs_handle_of(&handles, FS_HANDLE_NONE));
	cr_assert_null(fs_handle_of(&handles, handle + 1), "a slot that was never in use");
	cr_assert_null(fs_handle_of(&handles, handle + 64), "of a block that is not there");
	cr_assert_null(fs_handle_of(&handles, handle | UINT32_MAX), "behind the last block");
	cr_assert_null(fs_handle_of(&handles, handle + (1ull << 32)), "another generation");
	cr_assert_null(fs_handle_of(&handles, UINT64_MAX));
	cr_assert_null(fs_handle_of(&handles, (uintptr_t)&files[0]), "an address");
}

Test(fs_handle, a_slot_is_used_again_with_another_generation)
{
	uint64_t first = take(0), second;

	fs_handle_give(&handles, first);
	cr_assert_null(fs_handle_of(&handles, first));
	second = take(1);
	cr_assert_eq((uint32_t)second, (uint32_t)first);
	cr_assert_neq(second, first);
	cr_assert_null(fs_handle_of(&handles, first), "the old one is not the new one");
	cr_assert_eq(fs_handle_of(&handles, second), &files[1]);
}

/* Through seven blocks, and given back in another order than they were taken. */
Test(fs_handle, thousands_come_and_go)
{
	uint64_t handle[MANY];

	for (unsigned int i = 0; i < MANY; i++) {
		handle[i] = take(i);
		cr_assert_eq((uint32_t)handle[i], i + 1, "no number is left out");
	}
	for (unsigned int i = 0; i < MANY; i++)
		cr_assert_eq(fs_handle_of(&handles, handle[i]), &files[i]);
	for (unsigned int i = 1; i < MANY; i += 2)
		fs_handle_give(&handles, handle[i]);
	for (unsigned int i = 0; i < MANY; i++)
		cr_assert_eq(fs_handle_of(&handles, handle[i]), i % 2 ? NULL : &files[i]);
	for (unsigned int i = 1; i < MANY; i += 2)
		handle[i] = take(i);
	for (unsigned int i = 0; i < MANY; i++)
		cr_assert_eq(fs_handle_of(&handles, handle[i]), &files[i]);
	cr_assert_eq(handles.used, MANY, "free slots are used before new ones");
}

Test(fs_handle, those_of_another_table_are_put_in_any_order)
{
	static const uint64_t put[] = {9ull << 32 | 300, 4ull << 32 | 2, 7ull << 32 | 5};

	for (unsigned int i = 0; i < 3; i++)
		cr_assert(fs_handle_put(&handles, put[i], &files[i]));
	cr_assert_not(fs_handle_put(&handles, 8ull << 32 | 5, &files[3]), "in use");
	cr_assert_not(fs_handle_put(&handles, 8ull << 32, &files[3]), "no slot");
	cr_assert_not(fs_handle_put(&handles, UINT64_MAX, &files[3]), "out of range");
	fs_handle_put_all(&handles, 9);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(fs_handle_of(&handles, put[i]), &files[i]);
	for (unsigned int i = 3; i < 300; i++)
		cr_assert_leq((uint32_t)take(i), 300, "the free ones between them");
	cr_assert_eq(take(300), (9ull + 298) << 32 | 301, "then the next, and its generation");
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(fs_handle_of(&handles, put[i]), &files[i]);
}

Test(fs_handle, none_is_accepted_back)
{
	fs_handle_give(&handles, FS_HANDLE_NONE);
	cr_assert_eq(handles.free, 0);
}
