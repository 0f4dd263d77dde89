/* SPDX-License-Identifier: BSD-3-Clause */
/* COMMITs that nobody asks for: of what is unstable for long, or of a file that others change. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs_attr.h"
#include "fs_inode.h"
#include "fs_unstable.h"
#include "fs_rig.h"

#define LARGE FS_UNSTABLE_LARGE

static struct fake_file *file, *other;
static struct fuse_open_out fh, ofh;
static fuse_ino_t ino, oino;
static uint8_t a[LARGE], b[LARGE], want[FAKE_SIZE];
static struct rig_reply re;

static void set_up(void)
{
	rig_up(NULL);
	file = fake_add("f", 0);
	other = fake_add("g", 0);
	ino = rig_ino(file);
	oino = rig_ino(other);
	for (size_t i = 0; i < sizeof(a); i++) {
		a[i] = (uint8_t)(i * 13 + 1);
		b[i] = (uint8_t)(i * 7 + i / 256 + 2);
	}
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
	cr_assert_eq(rig_open(oino, O_RDWR, &ofh), 0);
}

static void tear_down(void)
{
	while (rig_reply(&re, 0))
		;
	rig_down();
}

TestSuite(fs_commit_age, .init = set_up, .fini = tear_down);

static void put(uint64_t off, const void *p, uint32_t len)
{
	cr_assert_eq(rig_write(ino, fh.fh, off, p, len, O_RDWR), (int)len);
	memcpy(want + off, p, len);
}

static void assert_stable(size_t len)
{
	cr_assert_arr_eq(file->stable, want, len);
	cr_assert_arr_eq(file->data, want, len);
	cr_assert_eq(file->stable_size, len);
}

static unsigned int commits(void)
{
	return rig.fake.count[FAKE_COMMIT];
}

Test(fs_commit_age, data_is_committed_after_a_while_though_nobody_asks)
{
	put(0, a, 100);
	put(100, a, LARGE);
	rig_run_for(4 * NSEC_PER_SEC);
	cr_assert_eq(commits(), 0);
	rig_run_for(6 * NSEC_PER_SEC);
	cr_assert_eq(commits(), 1);
	cr_assert_eq(rig.stats.commits_by_age, 1);
	assert_stable(100 + LARGE);
	rig_run_for(60 * NSEC_PER_SEC);
	cr_assert_eq(commits(), 1);
}

/* Another client wrote over it meanwhile, durably: a restart of the server must not undo that. */
Test(fs_commit_age, what_another_wrote_later_is_not_written_over)
{
	put(0, a, 100);
	rig_run_for(10 * NSEC_PER_SEC);
	memcpy(file->data, b, 100);
	memcpy(file->stable, b, 100);
	memcpy(want, b, 100);
	fake_touch(file);
	fake_restart();
	rig.fake.gen++;
	put(100, a, 100);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(200);
}

Test(fs_commit_age, one_file_after_the_other_is_committed)
{
	put(0, a, 100);
	cr_assert_eq(rig_write(oino, ofh.fh, 0, a, LARGE, O_RDWR), (int)LARGE);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	rig_run_for(10 * NSEC_PER_SEC);
	cr_assert_eq(commits(), 1);
	fake_release();
	rig_settle();
	cr_assert_eq(commits(), 2);
	assert_stable(100);
	cr_assert_arr_eq(other->stable, a, LARGE);
}

Test(fs_commit_age, a_copy_is_not_committed_more_often)
{
	for (uint32_t i = 0; i < 64; i++) {
		put(i % 8 * LARGE, a, LARGE);
		rig_run_for(200 * NSEC_PER_MSEC);
	}
	cr_assert_eq(commits(), 32, "each time that half of the buffers was used");
	cr_assert_eq(rig.stats.commits_by_age, 0);
}

Test(fs_commit_age, a_file_that_grows_a_little_is_committed_every_few_seconds)
{
	for (uint32_t i = 0; i < 600; i++) {
		put(i * 100, a, 100);
		rig_run_for(100 * NSEC_PER_MSEC);
	}
	cr_assert_geq(commits(), 6);
	cr_assert_leq(commits(), 12);
}

/* Requests come first: two of 16 operations are theirs. */
Test(fs_commit_age, waits_for_an_operation)
{
	struct fuse_read_in in = {.fh = ofh.fh, .size = 100};

	rig.fake.calls_max = rig.fake.bufs_max = 32;
	for (int reads = 14; reads <= 15; reads++) {
		unsigned int before = commits();

		put(0, reads == 14 ? a : b, 100);
		rig.fake.hold_ops = 1u << FAKE_READ;
		for (int i = 0; i < reads; i++)
			rig_send(FUSE_READ, oino, &in, sizeof(in), NULL, 0);
		rig_run_for(10 * NSEC_PER_SEC);
		cr_assert_eq(commits(), before, "%d", reads);
		fake_release();
		for (int i = 0; i < reads; i++)
			cr_assert(rig_reply(&re, 1000));
		rig_run_for(2 * NSEC_PER_SEC);
		assert_stable(100);
	}
}

Test(fs_commit_age, a_file_whose_commit_fails_is_tried_again)
{
	put(0, a, 100);
	rig.fake.fail[FAKE_COMMIT] = EIO;
	rig_run_for(10 * NSEC_PER_SEC);
	cr_assert_eq(commits(), 2);
	assert_stable(100);
}

/* ---- somebody else changes the file ---- */

/* As stat is told it; notifications are passed over. */
static uint64_t size_told(void)
{
	struct fuse_getattr_in in = {0};
	uint64_t unique = rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	struct fuse_attr_out out;

	do {
		cr_assert(rig_reply(&re, 1000));
	} while (re.h.unique != unique);
	cr_assert_eq(re.h.error, 0);
	memcpy(&out, re.body, sizeof(out));
	return out.attr.size;
}

Test(fs_commit_age, a_change_by_another_has_the_data_committed_at_once)
{
	put(0, a, 100);
	cr_assert_eq(size_told(), 100);
	rig_run_for(3 * NSEC_PER_SEC);
	fake_touch(file);
	cr_assert_eq(size_told(), 100);
	rig_settle();
	cr_assert_eq(commits(), 1);
	assert_stable(100);
}

Test(fs_commit_age, a_truncation_by_another_is_seen)
{
	put(0, a, 100);
	cr_assert_eq(size_told(), 100);
	rig_run_for(3 * NSEC_PER_SEC);
	file->attr.size = file->stable_size = 10;
	fake_touch(file);
	size_told();
	rig_settle();
	cr_assert_eq(commits(), 1);
	cr_assert_eq(size_told(), 10);
}

/* As an answer that another lane got: what has the data is told by a message. */
Test(fs_commit_age, a_change_that_another_lane_sees_does_so_too)
{
	struct fs_inode *in = fs_inode_get(rig.fs, ino);

	put(0, a, 100);
	cr_assert_eq(size_told(), 100);
	fake_touch(file);
	fs_attr_update(rig.fs, in, &file->attr, fs_attr_seq(in), reactor_now(rig.fake.r));
	fs_inode_put(rig.fs, in);
	rig_settle();
	cr_assert_eq(commits(), 1);
	assert_stable(100);
}
