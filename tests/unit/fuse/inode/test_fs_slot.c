/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fs_slot.h"

static struct fs_slots slots;
static char inodes[1024]; /* stand for inodes: only their addresses count */

static struct fs_inode *inode(unsigned int i)
{
	return (struct fs_inode *)(void *)&inodes[i];
}

static void set_up(void)
{
	fs_slot_init(&slots, UINT32_MAX);
}

static void tear_down(void)
{
	fs_slot_fini(&slots);
}

TestSuite(fs_slot, .init = set_up, .fini = tear_down);

static uint32_t take(unsigned int i)
{
	uint32_t generation, slot = fs_slot_take(&slots, inode(i), &generation);

	cr_assert_neq(slot, FS_SLOT_NONE);
	cr_assert_eq(generation, slots.generation);
	return slot;
}

Test(fs_slot, the_first_is_the_root)
{
	cr_assert_eq(take(0), 1);
	cr_assert_eq(slots.generation, 0, "it begins where it was told");
	cr_assert_eq(fs_slot_inode(&slots, 1), inode(0));
}

Test(fs_slot, what_was_never_given_out_is_none)
{
	take(0);
	cr_assert_null(fs_slot_inode(&slots, 0));
	cr_assert_null(fs_slot_inode(&slots, 2));
	cr_assert_null(fs_slot_inode(&slots, 256));
	cr_assert_null(fs_slot_inode(&slots, 100000));
	cr_assert_null(fs_slot_inode(&slots, UINT32_MAX));
	cr_assert_null(fs_slot_inode(&slots, (1ull << 32) + 1));
	cr_assert_null(fs_slot_inode(&slots, UINT64_MAX));
}

static unsigned int visited;

static void visit(void *ctx, struct fs_inode *in)
{
	struct fs_inode *const *order = ctx;

	cr_assert_eq(in, order[visited]);
	visited++;
}

Test(fs_slot, each_inode_is_visited_once_in_the_order_of_the_slots)
{
	struct fs_inode *order[599];

	for (unsigned int i = 0; i < 600; i++)
		take(i);
	fs_slot_give(&slots, 300);
	for (unsigned int slot = 1; slot <= 600; slot++)
		if (slot != 300)
			order[slot - (slot > 300) - 1] = fs_slot_inode(&slots, slot);
	fs_slot_each(&slots, visit, order);
	cr_assert_eq(visited, 599);
}

Test(fs_slot, those_of_another_table_are_put_in_any_order)
{
	static const uint64_t put[] = {1000, 1, 3};

	for (unsigned int i = 0; i < 3; i++)
		cr_assert(fs_slot_put(&slots, put[i], inode(i)));
	cr_assert_not(fs_slot_put(&slots, 3, inode(3)), "in use");
	cr_assert_not(fs_slot_put(&slots, 0, inode(3)), "no number");
	cr_assert_not(fs_slot_put(&slots, UINT64_MAX, inode(3)), "out of range");
	fs_slot_put_all(&slots, 77);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(fs_slot_inode(&slots, put[i]), inode(i));
	cr_assert_eq(take(3), 2, "the free one between them");
	cr_assert_eq(slots.generation, 78);
	for (unsigned int i = 4; i < 1000; i++) {
		uint32_t slot = take(i);

		cr_assert(slot != 1 && slot != 3 && slot != 1000);
		cr_assert_eq(fs_slot_inode(&slots, slot), inode(i));
	}
	cr_assert_eq(fs_slot_inode(&slots, 1000), inode(0));
	fs_slot_give(&slots, 1000);
	cr_assert_null(fs_slot_inode(&slots, 1000));
}

Test(fs_slot, a_number_is_used_again_with_another_generation)
{
	uint32_t first, second, slot;

	take(0);
	slot = fs_slot_take(&slots, inode(1), &first);
	fs_slot_give(&slots, slot);
	cr_assert_null(fs_slot_inode(&slots, slot));
	cr_assert_eq(fs_slot_take(&slots, inode(2), &second), slot);
	cr_assert_eq(fs_slot_inode(&slots, slot), inode(2));
	cr_assert_neq(second, first);
}

/* In any order; what is in use keeps its number and its chain. */
Test(fs_slot, a_thousand_come_and_go)
{
	uint32_t nr[1024];

	for (unsigned int i = 0; i < 1024; i++) {
		nr[i] = take(i);
		for (unsigned int j = 0; j < i; j++)
			cr_assert_neq(nr[i], nr[j]);
		*fs_slot_next(&slots, nr[i]) = i;
	}
	for (unsigned int i = 1; i < 1024; i += 2)
		fs_slot_give(&slots, nr[i]);
	for (unsigned int i = 0; i < 1024; i++)
		cr_assert_eq(fs_slot_inode(&slots, nr[i]), i % 2 ? NULL : inode(i));
	for (unsigned int i = 1; i < 1024; i += 2)
		cr_assert_leq(nr[i] = take(i), 1024, "numbers stay small");
	for (unsigned int i = 0; i < 1024; i++) {
		cr_assert_eq(fs_slot_inode(&slots, nr[i]), inode(i));
		if (i % 2 == 0)
			cr_assert_eq(*fs_slot_next(&slots, nr[i]), i);
	}
}

Test(fs_slot, what_is_free_is_given_back)
{
	uint32_t nr[1024];
	unsigned int left = 0;

	for (unsigned int i = 0; i < 1024; i++)
		nr[i] = take(i);
	for (unsigned int i = 1; i < 1024; i++)
		fs_slot_give(&slots, nr[i]);
	for (unsigned int i = 0; i < slots.chunks_cnt; i++)
		left += slots.chunks[i] != NULL;
	cr_assert_leq(left, 2);
	for (unsigned int i = 1; i < 1024; i++)
		cr_assert_null(fs_slot_inode(&slots, nr[i]));
	cr_assert_eq(fs_slot_inode(&slots, nr[0]), inode(0));
	for (unsigned int i = 1; i < 1024; i++)
		cr_assert_eq(fs_slot_inode(&slots, nr[i] = take(i)), inode(i));
}
