/* SPDX-License-Identifier: BSD-3-Clause */
#include "file_rig.h"

#include <stdlib.h>

static struct fuse_open_out a, b; /* two opens */

static void set_up(void)
{
	file_set_up(100);
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
}

static void tear_down(void)
{
	rig_down();
	cr_expect_eq(fake_locks.cnt, 0, "locks left on the server");
}

TestSuite(fs_lock, .init = set_up, .fini = tear_down);

static struct fuse_file_lock getlk(
	uint64_t owner, uint32_t type, uint64_t first, uint64_t last, int expect)
{
	uint64_t unique = lk_send(FUSE_GETLK, ino, a.fh, owner, type, first, last);
	struct fuse_lk_out out = {0};

	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(-re.h.error, expect);
	if (!expect)
		memcpy(&out, re.body, sizeof(out));
	return out.lk;
}

/* ---- fcntl ---- */

Test(fs_lock, is_held_on_the_server_and_refused_to_others)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), 0);
	cr_assert_eq(fake_locks.cnt, 1);
	cr_assert_eq(fake_locks.v[0].off, 10);
	cr_assert_eq(fake_locks.v[0].end, 20);
	cr_assert_eq(setlk(ino, b.fh, 2, F_RDLCK, 19, 30), EAGAIN);
	cr_assert_eq(setlk(ino, b.fh, 2, F_RDLCK, 20, 30), 0);
	cr_assert_eq(setlk(ino, b.fh, 2, F_UNLCK, 0, TO_END), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, TO_END), 0);
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert(fake_all_free());
}

Test(fs_lock, of_one_owner_do_not_conflict_whichever_open_they_go_through)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 99), 0);
	cr_assert_eq(setlk(ino, b.fh, 1, F_WRLCK, 50, TO_END), 0);
	cr_assert_eq(fake_locks.cnt, 2);
	cr_assert_eq(setlk(ino, b.fh, 1, F_UNLCK, 0, TO_END), 0);
}

Test(fs_lock, to_the_end_has_no_end)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 5, TO_END), 0);
	cr_assert_eq(fake_locks.v[0].end, UINT64_MAX);
	cr_assert_eq(getlk(2, F_RDLCK, 1000, 1000, 0).end, TO_END);
}

Test(fs_lock, getlk_tells_who_is_in_the_way_but_not_oneself)
{
	struct fuse_file_lock lk;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), 0);
	lk = getlk(2, F_RDLCK, 0, TO_END, 0);
	cr_assert_eq(lk.type, F_WRLCK);
	cr_assert_eq(lk.start, 10);
	cr_assert_eq(lk.end, 19);
	cr_assert_eq(lk.pid, LK_PID(1));
	/* Another client's owner, whose name is no name of ours or that of one who holds nothing.
	 */
	fake_locks.v[0].owner += 1000;
	cr_assert_eq(getlk(2, F_RDLCK, 0, TO_END, 0).pid, 0);
	fake_locks.v[0].owner -= 1000;
	cr_assert_eq(getlk(1, F_WRLCK, 0, TO_END, 0).type, F_UNLCK);
	cr_assert_eq(getlk(2, F_WRLCK, 20, TO_END, 0).type, F_UNLCK);
	getlk(2, F_UNLCK, 0, TO_END, EINVAL);
}

Test(fs_lock, getlk_bounds_what_the_server_says)
{
	struct fuse_file_lock lk;

	fake_lock_foreign(file, UINT64_MAX - 10, 5, false);
	lk = getlk(2, F_WRLCK, 0, TO_END, 0);
	cr_assert_eq(lk.type, F_RDLCK);
	cr_assert_eq(lk.start, INT64_MAX);
	fake_unlock_foreign(file);
	fake_lock_foreign(file, 7, INT64_MAX, true);
	lk = getlk(2, F_WRLCK, 0, TO_END, 0);
	cr_assert_eq(lk.start, 7);
	cr_assert_eq(lk.end, TO_END);
	fake_unlock_foreign(file);
}

Test(fs_lock, needs_an_open_for_what_it_locks)
{
	struct fuse_open_out r, w;

	cr_assert_eq(rig_open(ino, O_RDONLY, &r), 0);
	cr_assert_eq(rig_open(ino, O_WRONLY, &w), 0);
	cr_assert_eq(setlk(ino, r.fh, 1, F_WRLCK, 0, 9), EBADF);
	cr_assert_eq(setlk(ino, w.fh, 1, F_RDLCK, 0, 9), EBADF);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, r.fh, 1, F_WRLCK), 3000), EBADF);
	cr_assert_eq(count(FAKE_LOCK), 0);
	cr_assert_eq(setlk(ino, r.fh, 1, F_RDLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, w.fh, 2, F_WRLCK, 10, 19), 0);
}

Test(fs_lock, giving_back_what_nobody_holds_asks_nobody)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, TO_END), 0);
	cr_assert_eq(count(FAKE_LOCKU), 0);
}

Test(fs_lock, that_the_server_cannot_hold_is_an_error)
{
	fake_locks.refuse = EOPNOTSUPP;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), EOPNOTSUPP);
	cr_assert_eq(answer_to(setlkw(ino, a.fh, 1, F_WRLCK, 0, 9), 3000), EOPNOTSUPP);
	getlk(1, F_WRLCK, 0, 9, EOPNOTSUPP);
	fake_locks.refuse = 0;
	rig.fake.dead = -EIO;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), EIO);
	rig.fake.dead = 0;
	cr_assert(fake_all_free());
}

/* ---- flock ---- */

Test(fs_lock, flock_is_a_lock_of_the_whole_file_of_an_owner_of_its_own)
{
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), 0);
	cr_assert_eq(fake_locks.v[0].off, 0);
	cr_assert_eq(fake_locks.v[0].end, UINT64_MAX);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 2, F_RDLCK), 3000), EAGAIN);
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), EAGAIN, "fcntl of the same number");
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 2, F_RDLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 2, F_UNLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_UNLCK), 3000), 0);
	cr_assert_eq(fake_locks.cnt, 0);
}

/* The kernel does not wait for a RELEASE; the program that does hears of nobody's lock. */
Test(fs_lock, flock_is_not_refused_because_of_a_file_that_is_being_closed)
{
	struct fuse_release_in in = {.fh = a.fh};
	struct fuse_open_out c;
	fuse_ino_t other = rig_ino(fake_add("other", 0));
	uint64_t release, lock;
	unsigned int before;

	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	release = rig_send(FUSE_RELEASE, ino, &in, sizeof(in), NULL, 0);
	lock = flock_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK);
	for (int i = 0; i < 1000 && count(FAKE_LOCK) < 3; i++)
		reactor_turn(rig.fake.r, 0);
	cr_assert_eq(count(FAKE_LOCK), 3, "it was refused, and asked for again");
	fake_release();
	cr_assert_eq(answer_to(release, 3000), 0);
	cr_assert_eq(answer_to(lock, 3000), 0);
	/* Not for ever: the lock may be somebody else's. */
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(rig_open(other, O_RDONLY, &c), 0);
	rig.fake.hold_ops = 1u << FAKE_CLOSE;
	cr_assert_eq(rig_release(other, c.fh), 0);
	before = count(FAKE_LOCK);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), EAGAIN);
	cr_assert_leq(count(FAKE_LOCK) - before, 100);
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
}

/* What the server said may be older than the close, and heard after it. */
Test(fs_lock, a_file_that_was_closed_meanwhile_is_a_reason_to_ask_again)
{
	struct fuse_open_out c;
	fuse_ino_t other = rig_ino(fake_add("other", 0));
	uint64_t lock;

	cr_assert_eq(rig_open(other, O_RDONLY, &c), 0);
	fake_lock_foreign(file, 7, INT64_MAX, true);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	lock = flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK);
	cr_assert_eq(rig_release(other, c.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCK), 1);
	fake_release();
	cr_assert_eq(answer_to(lock, 3000), EAGAIN);
	cr_assert_eq(count(FAKE_LOCK), 2);
	rig_settle();
	fake_unlock_foreign(file);
	cr_assert(fake_all_free());
}

Test(fs_lock, two_flocks_that_upgrade_do_not_wait_for_each_other)
{
	uint64_t first, second;

	cr_assert_eq(answer_to(flock_send(FUSE_SETLKW, ino, a.fh, 1, F_RDLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLKW, ino, b.fh, 2, F_RDLCK), 3000), 0);
	first = flock_send(FUSE_SETLKW, ino, a.fh, 1, F_WRLCK);
	no_answer(50);
	second = flock_send(FUSE_SETLKW, ino, b.fh, 2, F_WRLCK);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, 0);
	if (re.h.unique == first) {
		cr_assert_eq(rig_release(ino, a.fh), 0);
		cr_assert_eq(answer_to(second, 3000), 0);
	} else {
		cr_assert_eq(rig_release(ino, b.fh), 0);
		cr_assert_eq(answer_to(first, 3000), 0);
	}
}

/* ---- one thing at a time ---- */

Test(fs_lock, threads_of_one_owner_take_turns)
{
	rig.fake.calls_max = 64;
	rig.fake.hold = true;
	for (unsigned int i = 0; i < 10; i++)
		lk_send(FUSE_SETLK, ino, i % 2 ? a.fh : b.fh, 1, i % 3 ? F_WRLCK : F_UNLCK, i, i);
	rig_settle();
	cr_assert_leq(count(FAKE_LOCK) + count(FAKE_LOCKU), 1);
	cr_assert_leq(rig.fake.calls, 1, "who waits for its turn holds no call");
	fake_release();
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.h.error, 0);
	}
	rig_settle();
	cr_assert(fake_all_free());
}

/* ---- without an answer ---- */

Test(fs_lock, that_may_be_held_is_given_back_before_anything_else)
{
	uint64_t unique;

	fake_locks.silent = 1;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), ETIMEDOUT);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 1);
	cr_assert_eq(fake_locks.cnt, 0);
	/* Nor is the next LOCKU answered. */
	fake_locks.silent = 2;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), ETIMEDOUT);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 2);
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 50, 59);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 3);
	cr_assert_eq(count(FAKE_LOCK), 2);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(count(FAKE_LOCK), 3);
	cr_assert_eq(fake_locks.cnt, 1);
}

/* 10 to 19 may be locked: neither the LOCK nor the LOCKU was answered. */
static void in_doubt(void)
{
	fake_locks.silent = 2;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), ETIMEDOUT);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 1);
}

Test(fs_lock, stays_in_doubt_when_something_else_is_given_back)
{
	in_doubt();
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 100, 109), 0);
	cr_assert_eq(count(FAKE_LOCKU), 2);
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 50, 59), 0);
	cr_assert_eq(count(FAKE_LOCKU), 3);
}

Test(fs_lock, in_doubt_twice_is_given_back_as_a_whole)
{
	const struct nfs4_call *call;
	uint64_t unique;

	in_doubt();
	fake_locks.silent = 1;
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 100, 109), ETIMEDOUT);
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 50, 59);
	rig_settle();
	call = list_first(&rig.fake.pending, struct nfs4_call, link);
	cr_assert_eq(call->u.locku.offset, 0);
	cr_assert_eq(call->u.locku.length, NFS4_LOCK_TO_END);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
}

Test(fs_lock, stays_in_doubt_until_the_close_if_need_be)
{
	fake_locks.lost_ok = true;
	fake_locks.silent = 1000;
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), ETIMEDOUT);
	rig_settle();
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 10, 19), ETIMEDOUT);
	cr_assert_eq(count(FAKE_LOCK), 1, "no LOCK before the LOCKU is answered");
	cr_assert_eq(flush_as(ino, a.fh, 1), 0);
	cr_assert_eq(rig_release(ino, a.fh), 0);
	rig_settle();
	cr_assert_eq(fake_locks.freed, 0, "the open that it may hang on stays");
	cr_assert_eq(rig_release(ino, b.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert_eq(fake_locks.freed, 1);
	fake_locks.silent = 0;
}

/* ---- what others wrote ---- */

Test(fs_lock, shows_what_others_did_under_theirs)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, 9), 0);
	fake_touch(file);
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 0, 9);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(((struct fuse_notify_inval_inode_out *)re.body)->off, 0);
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), 0, "nothing to drop");
}

Test(fs_lock, asks_again_if_it_cannot_find_out)
{
	uint64_t unique;

	rig.fake.fail[FAKE_GETATTR] = EIO;
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 0, 9);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(answer_to(unique, 3000), 0);
}

/* ---- FLUSH ---- */

Test(fs_lock, goes_when_its_owner_closes_any_handle)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 20, 29), 0);
	cr_assert_eq(setlk(ino, b.fh, 2, F_WRLCK, 40, 49), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 1, F_RDLCK), 3000), EAGAIN);
	cr_assert_eq(flush_as(ino, b.fh, 1), 0);
	cr_assert_eq(count(FAKE_LOCKU), 1);
	cr_assert_eq(fake_lock_held(file), 1, "that of the other owner stays");
	cr_assert_eq(fake_locks.freed, 1);
	cr_assert_eq(flush_as(ino, b.fh, 2), 0);
	cr_assert_eq(fake_locks.freed, 2);
	cr_assert_eq(fake_lock_held(file), 0);
}

Test(fs_lock, costs_a_close_nothing_where_there_is_none)
{
	unsigned int before = 0;

	cr_assert_eq(flush_as(ino, a.fh, 1), 0);
	for (int i = 0; i < FAKE_OPS; i++)
		before += rig.fake.count[i];
	cr_assert_eq(before, 2, "the two opens");
}

Test(fs_lock, goes_after_the_data_that_was_written_under_it)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(rig_write(ino, a.fh, 0, "x", 1, O_RDWR), 1);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	lk_send(FUSE_SETLK, ino, b.fh, 1, F_UNLCK, 0, 4);
	no_answer(20);
	cr_assert_eq(count(FAKE_COMMIT), 1);
	cr_assert_eq(count(FAKE_LOCKU), 0);
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(count(FAKE_LOCKU), 1);
	/* Written through one handle, another one is closed, which cannot write. */
	cr_assert_eq(rig_open(ino, O_RDONLY, &b), 0);
	cr_assert_eq(rig_write(ino, a.fh, 0, "x", 1, O_RDWR), 1);
	cr_assert_eq(flush_as(ino, b.fh, 1), 0);
	cr_assert_eq(count(FAKE_COMMIT), 2);
	cr_assert_eq(count(FAKE_LOCKU), 2);
}

/* The kernel uses the numbers of owners again. */
Test(fs_lock, that_is_asked_for_behind_a_close_is_not_swept_away_by_it)
{
	struct fuse_flush_in in = {.fh = a.fh, .lock_owner = 1};
	uint64_t flush, lock, number;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	number = fake_locks.v[0].owner;
	cr_assert_eq(rig_write(ino, a.fh, 0, "x", 1, O_RDWR), 1);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	flush = rig_send(FUSE_FLUSH, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	lock = lk_send(FUSE_SETLK, ino, b.fh, 1, F_WRLCK, 50, 59);
	no_answer(20);
	cr_assert_eq(count(FAKE_LOCK), 1);
	fake_release();
	cr_assert_eq(answer_to(flush, 3000), 0);
	/* Written since: the pages of the other handle go. */
	cr_assert(rig_reply(&re, 3000));
	if (re.h.unique == 0)
		cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, lock);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(fake_locks.cnt, 1);
	cr_assert_eq(fake_locks.v[0].off, 50);
	cr_assert_neq(fake_locks.v[0].owner, number, "the server frees that one");
}

/* ---- RELEASE ---- */

Test(fs_lock, of_an_open_file_goes_before_it_is_closed)
{
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 71, F_RDLCK), 3000), 0);
	cr_assert_eq(setlk(ino, a.fh, 72, F_RDLCK, 3, 4), 0); /* OFD: no FLUSH names it */
	cr_assert_eq(setlk(ino, b.fh, 2, F_RDLCK, 3, 4), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	cr_assert_eq(rig_release(ino, a.fh), 0);
	rig_settle();
	cr_assert_eq(fake_locks.freed, 0);
	fake_release();
	rig_settle();
	cr_assert_eq(fake_locks.freed, 2);
	cr_assert_eq(fake_locks.cnt, 1, "that of the other open file stays");
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	cr_assert_eq(rig_release(ino, b.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	fake_release();
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert(fake_all_free());
}

Test(fs_lock, that_cannot_be_given_back_does_not_keep_the_file_open)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(rig_release(ino, b.fh), 0);
	fake_locks.silent = 2;
	cr_assert_eq(rig_release(ino, a.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 2, "once more at the end of the open");
	cr_assert_eq(count(FAKE_CLOSE), 1);
}

Test(fs_lock, is_given_back_at_the_end_of_the_mount)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 2, F_RDLCK), 3000), EAGAIN);
	/* tear_down() finds none */
}
