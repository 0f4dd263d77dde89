/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_session_int.h"

static struct nfs4_slots t;

static uint32_t get(uint32_t *seqid)
{
	return nfs4_slot_get(&t, seqid);
}

Test(nfs4_slot, lowest_free_slot_comes_first)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 3, 3);
	cr_assert_eq(get(&seqid), 0);
	cr_assert_eq(get(&seqid), 1);
	cr_assert_eq(get(&seqid), 2);
	cr_assert_eq(get(&seqid), NFS4_SLOT_NONE);
	nfs4_slot_done(&t, 1);
	nfs4_slot_done(&t, 0);
	cr_assert_eq(get(&seqid), 0);
	cr_assert_eq(get(&seqid), 1);
}

Test(nfs4_slot, numbers_start_at_one_and_grow_with_each_reply)
{
	uint32_t seqid = 0;

	nfs4_slot_init(&t, 2, 2);
	for (uint32_t want = 1; want < 5; want++) {
		cr_assert_eq(get(&seqid), 0);
		cr_assert_eq(seqid, want);
		nfs4_slot_done(&t, 0);
	}
	get(&seqid);
	get(&seqid);
	cr_assert_eq(seqid, 1, "each slot has its own");
}

Test(nfs4_slot, number_is_unchanged_when_the_server_did_not_take_the_call)
{
	uint32_t seqid = 0;

	nfs4_slot_init(&t, 2, 2);
	get(&seqid);
	nfs4_slot_done(&t, 0);
	get(&seqid);
	nfs4_slot_cancel(&t, 0);
	cr_assert_eq(get(&seqid), 0);
	cr_assert_eq(seqid, 2);
}

Test(nfs4_slot, number_wraps_to_zero)
{
	uint32_t seqid = 0;

	nfs4_slot_init(&t, 1, 1);
	t.seqid[0] = UINT32_MAX;
	get(&seqid);
	cr_assert_eq(seqid, UINT32_MAX);
	nfs4_slot_done(&t, 0);
	get(&seqid);
	cr_assert_eq(seqid, 0);
}

Test(nfs4_slot, orphan_is_not_used_before_a_new_session)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 2, 2);
	get(&seqid);
	nfs4_slot_orphan(&t, 0);
	cr_assert_eq(t.orphan_cnt, 1);
	cr_assert_eq(t.busy_cnt, 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(get(&seqid), 1);
		nfs4_slot_done(&t, 1);
	}
	nfs4_slot_init(&t, 2, 2);
	cr_assert_eq(get(&seqid), 0);
	cr_assert_eq(seqid, 1);
	cr_assert_eq(t.orphan_cnt, 0);
}

Test(nfs4_slot, table_is_worn_when_half_of_it_is_orphaned)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 4, 4);
	cr_assert_not(nfs4_slot_worn(&t));
	nfs4_slot_orphan(&t, get(&seqid));
	cr_assert_not(nfs4_slot_worn(&t));
	nfs4_slot_orphan(&t, get(&seqid));
	cr_assert(nfs4_slot_worn(&t));
	nfs4_slot_init(&t, 1, 1);
	cr_assert_not(nfs4_slot_worn(&t));
	nfs4_slot_orphan(&t, get(&seqid));
	cr_assert(nfs4_slot_worn(&t));
}

Test(nfs4_slot, highest_is_of_slots_in_use)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 130, 130);
	cr_assert_eq(nfs4_slot_highest(&t), 0);
	for (uint32_t i = 0; i < 130; i++) {
		cr_assert_eq(get(&seqid), i);
		cr_assert_eq(nfs4_slot_highest(&t), i);
	}
	nfs4_slot_orphan(&t, 129);
	cr_assert_eq(nfs4_slot_highest(&t), 129, "an orphan may still be running");
	for (uint32_t i = 2; i < 129; i++)
		nfs4_slot_done(&t, i);
	nfs4_slot_init(&t, 130, 130);
	get(&seqid);
	get(&seqid);
	nfs4_slot_done(&t, 0);
	cr_assert_eq(nfs4_slot_highest(&t), 1);
}

Test(nfs4_slot, servers_limits_are_honoured_both_ways)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 64, 64);
	nfs4_slot_set_highest(&t, 63, 1);
	cr_assert_eq(t.limit, 2);
	get(&seqid);
	get(&seqid);
	cr_assert_eq(get(&seqid), NFS4_SLOT_NONE);
	nfs4_slot_set_highest(&t, 2, 63);
	cr_assert_eq(get(&seqid), 2);
	cr_assert_eq(get(&seqid), NFS4_SLOT_NONE);
	nfs4_slot_set_highest(&t, 63, 63);
	cr_assert_eq(get(&seqid), 3);
	/* WIRE: more than the session has, and nothing at all */
	nfs4_slot_set_highest(&t, UINT32_MAX, UINT32_MAX);
	cr_assert_eq(t.limit, 64);
	nfs4_slot_set_highest(&t, 0, 0);
	cr_assert_eq(t.limit, 1, "one slot is always left");
}

Test(nfs4_slot, the_table_grows_to_what_the_server_takes_and_we_asked_for)
{
	uint32_t seqid, cnt = 0;

	nfs4_slot_init(&t, 2, 100);
	for (int i = 0; i < 2; i++) {
		get(&seqid);
		nfs4_slot_done(&t, 0);
	}
	nfs4_slot_set_highest(&t, 9, 4);
	cr_assert_eq(t.limit, 5);
	nfs4_slot_set_highest(&t, 3, 9);
	cr_assert_eq(t.limit, 4, "it shrinks again");
	nfs4_slot_set_highest(&t, 1000, 1000);
	cr_assert_eq(nfs4_slot_get(&t, &seqid), 0);
	cr_assert_eq(seqid, 3, "its number goes on");
	while (nfs4_slot_get(&t, &seqid) != NFS4_SLOT_NONE) {
		cr_assert_eq(seqid, 1);
		cnt++;
	}
	cr_assert_eq(cnt, 99);
	cr_assert_eq(nfs4_slot_highest(&t), 99);
}

Test(nfs4_slot, bad_slot_lowers_the_limit_below_it)
{
	nfs4_slot_init(&t, 8, 8);
	cr_assert(nfs4_slot_cut(&t, 5));
	cr_assert_eq(t.limit, 5);
	cr_assert(nfs4_slot_cut(&t, 7), "one below is refused already");
	cr_assert_eq(t.limit, 5);
	cr_assert_not(nfs4_slot_cut(&t, 0));
	cr_assert_eq(t.limit, 5);
}

Test(nfs4_slot, more_slots_than_there_is_room_for_are_left_alone)
{
	uint32_t seqid, cnt = 0;

	nfs4_slot_init(&t, 100000, 100000);
	while (get(&seqid) != NFS4_SLOT_NONE)
		cnt++;
	cr_assert_eq(cnt, NFS4_SLOT_MAX);
	cr_assert_eq(nfs4_slot_highest(&t), NFS4_SLOT_MAX - 1);
}

Test(nfs4_slot, unsure_number_is_stepped_back_once_and_only_if_refused)
{
	uint32_t seqid;

	nfs4_slot_init(&t, 1, 1);
	cr_assert_eq(nfs4_slot_get(&t, &seqid), 0);
	nfs4_slot_unsure(&t, 0);
	cr_assert_eq(nfs4_slot_get(&t, &seqid), 0);
	cr_assert_eq(seqid, 2);
	/* Never sent: still unsure. */
	nfs4_slot_cancel(&t, 0);
	cr_assert_eq(nfs4_slot_get(&t, &seqid), 0);
	cr_assert_eq(seqid, 2);
	cr_assert(nfs4_slot_step_back(&t, 0, &seqid));
	cr_assert_eq(seqid, 1);
	cr_assert_not(nfs4_slot_step_back(&t, 0, &seqid));
	nfs4_slot_done(&t, 0);
	cr_assert_eq(nfs4_slot_get(&t, &seqid), 0);
	cr_assert_eq(seqid, 2);
	/* Taken: nothing to step back to. */
	nfs4_slot_unsure(&t, 0);
	nfs4_slot_get(&t, &seqid);
	nfs4_slot_done(&t, 0);
	nfs4_slot_get(&t, &seqid);
	cr_assert_eq(seqid, 4);
	cr_assert_not(nfs4_slot_step_back(&t, 0, &seqid));
}

Test(nfs4_slot, a_call_of_ours_is_known_by_slot_and_number_while_it_is_out)
{
	uint32_t seqid = 0;

	nfs4_slot_init(&t, 2, 2);
	cr_assert_not(nfs4_slot_is_busy(&t, 0, 1), "not sent yet");
	get(&seqid);
	cr_assert(nfs4_slot_is_busy(&t, 0, 1));
	cr_assert_not(nfs4_slot_is_busy(&t, 0, 2));
	cr_assert_not(nfs4_slot_is_busy(&t, 1, 1));
	cr_assert_not(nfs4_slot_is_busy(&t, 2, 1), "a slot that there is not");
	cr_assert_not(nfs4_slot_is_busy(&t, UINT32_MAX, 1));
	nfs4_slot_done(&t, 0);
	cr_assert_not(nfs4_slot_is_busy(&t, 0, 1));
	get(&seqid);
	nfs4_slot_orphan(&t, 0);
	cr_assert_not(nfs4_slot_is_busy(&t, 0, 2), "its reply will not come");
}
