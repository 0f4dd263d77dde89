/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock right after the close of the last descriptor that held one in its way. */
#include "file_rig.h"
#include "fs_background.h"

#define AT_MOST_MS 1100

static struct fuse_open_out a, b;
static uint64_t reads[2];

static void set_up(void)
{
	file_set_up(100);
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
	rig.fs->max_background = 2;
}

static void tear_down(void)
{
	rig_down();
	cr_expect_eq(fake_locks.cnt, 0, "locks left on the server");
}

TestSuite(fs_lockclose, .init = set_up, .fini = tear_down);

/* As many requests as the kernel sends: what is closed now it keeps. */
static void fill(void)
{
	rig.fake.hold_ops = 1u << FAKE_READ;
	for (int i = 0; i < 2; i++) {
		struct fuse_read_in in = {.fh = b.fh, .offset = (uint64_t)i * 50, .size = 10};

		reads[i] = rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	}
	rig_settle();
	cr_assert_eq(fs_background_cnt(rig.fs), 2);
}

static void drain(void)
{
	fake_release();
	for (int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert(re.h.unique == reads[0] || re.h.unique == reads[1]);
	}
	cr_assert_eq(fs_background_cnt(rig.fs), 0);
}

static uint64_t send_release(const struct fuse_open_out *f)
{
	struct fuse_release_in in = {.fh = f->fh};

	return rig_send(FUSE_RELEASE, ino, &in, sizeof(in), NULL, 0);
}

/* The answer to `unique`, with those to what came before it. */
static int answer_among(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 3000), "no answer");
	while (re.h.unique != unique);
	return -re.h.error;
}

static uint64_t now_ns(void)
{
	return reactor_now(rig.fake.r);
}

static void close_while_full(uint64_t lock)
{
	no_answer(50);
	drain();
	send_release(&a);
	cr_assert_eq(answer_among(lock), 0);
}

Test(fs_lockclose, waits_for_a_release_that_the_kernel_keeps_back)
{
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, TO_END), 0);
	fill();
	close_while_full(lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, TO_END));
	cr_assert_eq(setlk(ino, b.fh, 2, F_UNLCK, 0, TO_END), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_lockclose, of_a_flock_too)
{
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), 0);
	fill();
	close_while_full(flock_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK));
	rig_settle();
	cr_assert_eq(rig_release(ino, b.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_lockclose, a_test_waits_too)
{
	struct fuse_lk_out out;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, TO_END), 0);
	fill();
	close_while_full(lk_send(FUSE_GETLK, ino, b.fh, 2, F_WRLCK, 0, TO_END));
	memcpy(&out, re.body, sizeof(out));
	cr_assert_eq(out.lk.type, F_UNLCK);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_lockclose, but_not_for_ever)
{
	uint64_t begin_ns, lock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, TO_END), 0);
	fill();
	begin_ns = now_ns();
	lock = lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, TO_END);
	cr_assert_eq(answer_to(lock, AT_MOST_MS), EAGAIN);
	cr_assert_geq(now_ns() - begin_ns, NSEC_PER_SEC);
	cr_assert_leq(count(FAKE_LOCK), 3, "asked once when it came, and once at the end");
	drain();
}

/* The program that asks may have the lock's owner close it: it is not kept from that. */
Test(fs_lockclose, its_owner_may_close_files_meanwhile)
{
	uint64_t lock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, b.fh, 2, F_WRLCK, 20, 29), 0);
	fill();
	lock = lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, 9);
	no_answer(50);
	cr_assert_eq(flush_as(ino, b.fh, 2), 0);
	cr_assert_eq(answer_to(lock, AT_MOST_MS), EAGAIN);
	drain();
}

Test(fs_lockclose, waits_for_no_other_clients_lock)
{
	fake_lock_foreign(file, 0, 10, true);
	fill();
	cr_assert_eq(answer_to(lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, 9), 20), EAGAIN);
	cr_assert_eq(count(FAKE_LOCK), 1);
	drain();
	fake_unlock_foreign(file);
}

/* A program that tries again and again for a lock that another one has. */
Test(fs_lockclose, waits_for_nothing_where_the_kernel_keeps_nothing)
{
	uint64_t begin_ns;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, TO_END), 0);
	begin_ns = now_ns();
	cr_assert_eq(setlk(ino, b.fh, 2, F_WRLCK, 0, TO_END), EAGAIN);
	cr_assert_eq(count(FAKE_LOCK), 2);
	cr_assert_lt(now_ns() - begin_ns, 5 * NSEC_PER_MSEC);
}

/* The close writes first, and that takes long. */
Test(fs_lockclose, waits_for_a_release_in_work)
{
	uint64_t lock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, TO_END), 0);
	cr_assert_eq(rig_write(ino, a.fh, 0, "data", 4, 0), 4);
	rig.fake.hold_ops = 1u << FAKE_COMMIT | 1u << FAKE_WRITE;
	send_release(&a);
	lock = lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, TO_END);
	cr_assert(rig_reply(&re, 1000)); /* of the RELEASE */
	no_answer(300);
	fake_release();
	cr_assert_eq(answer_among(lock), 0);
	cr_assert_eq(setlk(ino, b.fh, 2, F_UNLCK, 0, TO_END), 0);
}

/* It has neither the owner's turn nor a call. */
Test(fs_lockclose, holds_nothing_while_it_waits)
{
	uint64_t lock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	fill();
	lock = lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, 9);
	rig_settle();
	cr_assert_eq(rig.fake.calls, 2, "of the reads");
	cr_assert_eq(setlk(ino, b.fh, 2, F_RDLCK, 20, 29), 0);
	cr_assert_eq(answer_to(lock, AT_MOST_MS), EAGAIN);
	drain();
	cr_assert_eq(setlk(ino, b.fh, 2, F_UNLCK, 0, TO_END), 0);
}

/* It may be the RELEASE that another lane is just reading. */
Test(fs_lockclose, waits_for_what_another_lane_reads)
{
	struct fs_lane other = {.fs = rig.fs, .reading = true};
	uint64_t lock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	list_push_back(&rig.fs->lanes, &other.link);
	lock = lk_send(FUSE_SETLK, ino, b.fh, 2, F_WRLCK, 0, 9);
	no_answer(2);
	other.reading = false;
	send_release(&a);
	cr_assert_eq(answer_among(lock), 0);
	/* Not for as long as it reads. */
	other.reading = true;
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(answer_to(lk_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK, 0, 9), 20), EAGAIN);
	list_del(&other.link);
	cr_assert_eq(setlk(ino, b.fh, 2, F_UNLCK, 0, TO_END), 0);
}
