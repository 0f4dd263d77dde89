/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_share.h"
#include "file_rig.h"

static struct fuse_open_out a, b;

static void set_up(void)
{
	file_set_up(100);
}

TestSuite(fs_share, .init = set_up, .fini = rig_down);
TestSuite(fs_access, .init = set_up, .fini = rig_down);

static uint64_t open_send(int flags)
{
	struct fuse_open_in in = {.flags = (uint32_t)flags};

	return rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
}

static void closed(uint64_t handle)
{
	cr_assert_eq(rig_release(ino, handle), 0);
	rig_settle();
}

/* Of who may write nobody asks whether he may read. */
Test(fs_share, each_kind_of_open_needs_its_own_right)
{
	cr_assert(fs_share_allows(O_RDONLY, ACCESS4_READ));
	cr_assert(fs_share_allows(O_RDWR, ACCESS4_READ));
	cr_assert(fs_share_allows(O_WRONLY, ACCESS4_MODIFY));
	cr_assert_not(fs_share_allows(O_RDONLY, ACCESS4_MODIFY));
	cr_assert_not(fs_share_allows(O_RDWR, ACCESS4_MODIFY));
}

Test(fs_share, a_users_opens_are_one_and_each_is_asked_for)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &b), 0);
	cr_assert_eq(count(FAKE_OPEN), 2);
	cr_assert_eq(rig.fake.opens, 1);
	closed(a.fh);
	cr_assert_eq(count(FAKE_CLOSE), 0);
	cr_assert_eq(rig_read(&re, ino, b.fh, 0, 10), 10);
	closed(b.fh);
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert_eq(count(FAKE_DOWNGRADE), 0);
	cr_assert(fake_all_free());
}

Test(fs_share, another_user_has_one_of_its_own)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	rig.uid = 2000;
	cr_assert_eq(rig_open(ino, O_RDONLY, &b), 0);
	cr_assert_eq(rig.fake.opens, 2);
	closed(a.fh);
	cr_assert_eq(rig.fake.last_cred.uid, 1000);
	closed(b.fh);
	cr_assert_eq(rig.fake.last_cred.uid, 2000);
	cr_assert_eq(count(FAKE_CLOSE), 2);
}

Test(fs_share, what_is_left_may_need_less)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	cr_assert_eq(rig.fake.held[0].access, OPEN4_SHARE_ACCESS_BOTH);
	closed(b.fh);
	cr_assert_eq(count(FAKE_DOWNGRADE), 1);
	cr_assert_eq(rig.fake.held[0].access, OPEN4_SHARE_ACCESS_READ);
	closed(a.fh);
	cr_assert_eq(count(FAKE_CLOSE), 1);
}

Test(fs_share, a_downgrade_that_fails_is_tried_again_by_the_next)
{
	struct fuse_open_out c;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &c), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fake.fail[FAKE_DOWNGRADE] = ETIMEDOUT;
	closed(b.fh);
	closed(a.fh);
	cr_assert_eq(count(FAKE_DOWNGRADE), 2);
	cr_assert_eq(rig.fake.held[0].access, OPEN4_SHARE_ACCESS_READ);
	closed(c.fh);
}

Test(fs_share, an_open_waits_for_a_downgrade)
{
	uint64_t unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fake.hold_ops = 1u << FAKE_DOWNGRADE;
	closed(b.fh);
	unique = open_send(O_RDWR);
	rig_settle();
	cr_assert_eq(count(FAKE_OPEN), 2);
	cr_assert_eq(rig.fake.calls, 1, "who waits holds no call");
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(rig.fake.opens, 1);
	cr_assert_eq(rig.fake.held[0].access, OPEN4_SHARE_ACCESS_BOTH);
}

Test(fs_share, an_open_beside_a_close_has_another_owner)
{
	uint64_t unique, owner;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	owner = rig.fake.last_open.owner;
	rig.fake.hold_ops = 1u << FAKE_CLOSE;
	closed(a.fh);
	unique = open_send(O_RDONLY);
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_neq(rig.fake.last_open.owner, owner);
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_share, a_close_waits_for_an_open_and_then_is_none)
{
	uint64_t unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	rig.fake.hold_ops = 1u << FAKE_OPEN;
	unique = open_send(O_RDONLY);
	rig_settle();
	cr_assert_eq(rig_release(ino, a.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_share, a_close_comes_after_an_open_that_fails)
{
	uint64_t unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	rig.fake.hold_ops = 1u << FAKE_OPEN;
	rig.fake.fail[FAKE_OPEN] = EACCES;
	unique = open_send(O_RDWR);
	rig_settle();
	cr_assert_eq(rig_release(ino, a.fh), 0);
	rig_settle();
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), EACCES);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert(fake_all_free());
}

Test(fs_share, opens_go_side_by_side)
{
	rig.fake.hold_ops = 1u << FAKE_OPEN;
	open_send(O_RDONLY);
	open_send(O_RDWR);
	rig_settle();
	cr_assert_eq(count(FAKE_OPEN), 2);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_share, nobody_joins_one_that_is_lost)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	rig_file(a.fh)->share->state.is_there = true;
	cr_assert_eq(rig_open(ino, O_RDONLY, &b), 0);
	cr_assert_eq(rig.fake.opens, 2);
	closed(a.fh);
	closed(b.fh);
	cr_assert_eq(count(FAKE_CLOSE), 2);
}

Test(fs_share, a_lock_waits_for_a_downgrade)
{
	uint64_t unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fake.hold_ops = 1u << FAKE_DOWNGRADE;
	closed(b.fh);
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 0, 9);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCK), 0);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(count(FAKE_LOCK), 1);
}

Test(fs_share, a_downgrade_waits_for_a_lock)
{
	uint64_t unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 0, 9);
	rig_settle();
	closed(b.fh);
	cr_assert_eq(count(FAKE_DOWNGRADE), 0);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_DOWNGRADE), 1);
}

Test(fs_share, a_created_file_is_one_that_later_opens_join)
{
	fuse_ino_t made;

	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_create("f", O_RDWR | O_CREAT, 0600, &b, &made), 0);
	cr_assert_eq(made, ino);
	cr_assert_eq(rig.fake.opens, 2, "whichever file it is only the reply says");
	closed(a.fh);
	cr_assert_eq(rig.fake.opens, 1);
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig.fake.opens, 1);
	closed(b.fh);
	closed(a.fh);
	cr_assert_eq(rig.fake.opens, 0);
}

Test(fs_share, locks_of_one_file_go_with_it_those_of_others_stay)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &b), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 71, F_RDLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 72, F_RDLCK), 3000), 0);
	cr_assert_eq(setlk(ino, b.fh, 1, F_RDLCK, 0, 9), 0);
	closed(a.fh);
	cr_assert_eq(fake_locks.cnt, 2);
	cr_assert_eq(count(FAKE_CLOSE), 0);
	closed(b.fh);
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert(fake_all_free());
}

Test(fs_share, a_lock_through_two_files_goes_with_the_last_it_was_asked_through)
{
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, b.fh, 1, F_RDLCK, 20, 29), 0);
	closed(a.fh);
	cr_assert_eq(fake_locks.cnt, 2);
	closed(b.fh);
	cr_assert_eq(fake_locks.cnt, 0);
}

Test(fs_share, an_open_that_waits_and_whose_lane_stops_ends)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fake.hold_ops = 1u << FAKE_DOWNGRADE;
	closed(b.fh);
	open_send(O_RDONLY);
	rig_settle();
	fs_lane_stop(rig.lane);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, 0);
	/* rig_down() finds nothing open */
}

Test(fs_share, a_credential_is_all_of_it)
{
	const struct rpc_cred one = {
		.flavor = RPC_AUTH_SYS, .uid = 1, .gid = 2, .gids_cnt = 2, .gids = {3, 4}};
	struct rpc_cred other = one;

	cr_assert(fs_share_same_cred(&one, &other));
	other.uid++;
	cr_assert_not(fs_share_same_cred(&one, &other));
	other = one;
	other.gid++;
	cr_assert_not(fs_share_same_cred(&one, &other));
	other = one;
	other.gids_cnt--;
	cr_assert_not(fs_share_same_cred(&one, &other));
	other = one;
	other.gids[1]++;
	cr_assert_not(fs_share_same_cred(&one, &other));
	other = one;
	other.flavor = RPC_AUTH_NONE;
	cr_assert_not(fs_share_same_cred(&one, &other));
}

/* The server holds less than before: nothing more is to be given up. */
Test(fs_share, is_given_up_in_part_once)
{
	struct fuse_open_out both, one, two;

	cr_assert_eq(rig_open(ino, O_RDWR, &both), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &one), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &two), 0);
	cr_assert_eq(rig_release(ino, both.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_DOWNGRADE), 1);
	cr_assert_eq(rig_release(ino, one.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_DOWNGRADE), 1);
	cr_assert_eq(rig_release(ino, two.fh), 0);
	rig_settle();
}

/* Else one that wants to be alone never is. */
Test(fs_share, an_open_does_not_overtake_a_close_that_waits)
{
	struct fuse_open_out both, out;
	unsigned int before;

	cr_assert_eq(rig_open(ino, O_RDWR, &both), 0);
	before = count(FAKE_OPEN);
	rig.fake.hold_ops = 1u << FAKE_OPEN;
	open_send(O_RDONLY);
	rig_settle();
	cr_assert_eq(rig_release(ino, both.fh), 0);
	rig_settle();
	open_send(O_RDONLY);
	rig_settle();
	cr_assert_eq(count(FAKE_OPEN), before + 1);
	fake_release();
	for (int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert_eq(re.h.error, 0);
		memcpy(&out, re.body, sizeof(out));
		cr_assert_eq(rig_release(ino, out.fh), 0);
	}
	rig_settle();
}

/* ---- ACCESS ---- */

static int may(fuse_ino_t what, uint32_t mask)
{
	struct fuse_access_in in = {.mask = mask};

	return rig_call(&re, FUSE_ACCESS, what, &in, sizeof(in), NULL, 0);
}

Test(fs_access, asks_for_what_the_kind_of_object_needs)
{
	rig.fake.files[0].attr.type = NF4DIR;
	cr_assert_eq(may(ino, R_OK | W_OK | X_OK), 0);
	cr_assert_eq(may(FUSE_ROOT_ID, R_OK | W_OK | X_OK), 0);
	rig.fake.denied = ACCESS4_DELETE;
	cr_assert_eq(may(ino, W_OK), 0);
	cr_assert_eq(may(FUSE_ROOT_ID, W_OK), EACCES);
	rig.fake.denied = ACCESS4_LOOKUP;
	cr_assert_eq(may(ino, X_OK), 0);
	cr_assert_eq(may(FUSE_ROOT_ID, X_OK), EACCES);
	rig.fake.denied = ACCESS4_EXECUTE;
	cr_assert_eq(may(ino, X_OK), EACCES);
	cr_assert_eq(may(FUSE_ROOT_ID, X_OK), 0);
	rig.fake.denied = ACCESS4_READ;
	cr_assert_eq(may(ino, R_OK), EACCES);
	cr_assert_eq(may(ino, W_OK), 0);
}

Test(fs_access, what_the_server_does_not_know_it_cannot_refuse)
{
	rig.fake.unknown = ACCESS4_DELETE;
	cr_assert_eq(may(FUSE_ROOT_ID, W_OK), 0);
}
