/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"
#include "fs_sync.h"
#include "fs_writeback.h"

static struct fake_file *other;
static struct fuse_open_out ofh;
static fuse_ino_t oino;
static const char data[100] = "data";
static unsigned int failed;

static void set_up(void)
{
	file_set_up_open(0, O_RDWR);
	other = fake_add("g", 0);
	oino = rig_ino(other);
	cr_assert_eq(rig_open(oino, O_RDWR, &ofh), 0);
}

TestSuite(fs_sync, .init = set_up, .fini = rig_down);

static void put(fuse_ino_t to, const struct fuse_open_out *h, uint64_t off)
{
	cr_assert_eq(rig_write(to, h->fh, off, data, sizeof(data), O_RDWR), (int)sizeof(data));
}

Test(fs_sync, commits_all_that_is_open_and_written)
{
	uint64_t ticket;

	put(ino, &fh, 0);
	put(oino, &ofh, 0);
	ticket = fs_sync_wish(rig.fs);
	cr_assert_not(fs_sync_is_done(rig.fs, ticket, &failed));
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_eq(failed, 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert_arr_eq(file->stable, data, sizeof(data));
	cr_assert_arr_eq(other->stable, data, sizeof(data));
}

Test(fs_sync, sends_what_waits_to_be_gathered)
{
	uint64_t ticket;

	rig.lane->writeback->max = 6;
	rig.fs->conf.write = FS_WRITE_LAZY;
	put(ino, &fh, 0);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 0);
	ticket = fs_sync_wish(rig.fs);
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_arr_eq(file->stable, data, sizeof(data));
}

Test(fs_sync, of_nothing_is_done_soon)
{
	uint64_t ticket = fs_sync_wish(rig.fs);

	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
}

/* The end of a COMMIT or a round arms the timer; the next wish's kick may come first. */
Test(fs_sync, a_kick_before_the_timer_leaves_it_in_its_queue)
{
	uint64_t ticket = fs_sync_wish(rig.fs);

	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	put(ino, &fh, 0);
	ticket = fs_sync_wish(rig.fs);
	reactor_timer_in(rig.lane->reactor, &rig.fs->sync->timer, 0);
	fs_sync_turn(rig.lane);
	cr_assert(reactor_timer_armed(&rig.fs->sync->timer));
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_arr_eq(file->stable, data, sizeof(data));
}

/* The COMMIT that is on its way may not cover what was written since. */
Test(fs_sync, a_wish_meanwhile_is_for_another_round)
{
	uint64_t first, second;

	put(ino, &fh, 0);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	first = fs_sync_wish(rig.fs);
	rig_settle();
	put(ino, &fh, 1000);
	second = fs_sync_wish(rig.fs);
	rig_settle();
	cr_assert_not(fs_sync_is_done(rig.fs, first, &failed));
	fake_release();
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, first, &failed));
	cr_assert(fs_sync_is_done(rig.fs, second, &failed));
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert_arr_eq(file->stable + 1000, data, sizeof(data));
}

Test(fs_sync, a_commit_that_fails_is_told_and_the_others_are_tried)
{
	uint64_t ticket;

	put(ino, &fh, 0);
	put(oino, &ofh, 0);
	rig.fake.fail[FAKE_COMMIT] = EIO;
	ticket = fs_sync_wish(rig.fs);
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_eq(failed, 1);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	ticket = fs_sync_wish(rig.fs);
	rig_settle();
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_eq(failed, 0);
}

Test(fs_sync, waits_for_an_operation)
{
	struct fuse_read_in in = {.fh = ofh.fh, .size = 100};
	uint64_t ticket;

	put(ino, &fh, 0);
	rig.fake.calls_max = rig.fake.bufs_max = 32;
	rig.fake.hold_ops = 1u << FAKE_READ;
	for (int i = 0; i < 15; i++)
		rig_send(FUSE_READ, oino, &in, sizeof(in), NULL, 0);
	rig_settle();
	ticket = fs_sync_wish(rig.fs);
	rig_settle();
	cr_assert_not(fs_sync_is_done(rig.fs, ticket, &failed));
	fake_release();
	rig_run_for(NSEC_PER_SEC);
	cr_assert(fs_sync_is_done(rig.fs, ticket, &failed));
	cr_assert_arr_eq(file->stable, data, sizeof(data));
	while (rig_reply(&re, 0))
		;
}

Test(fs_sync, the_end_of_a_mount_does_not_wait_for_it)
{
	put(ino, &fh, 0);
	put(oino, &ofh, 0);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	fs_sync_wish(rig.fs);
	rig_settle();
	fs_lane_stop(rig.lane);
	fake_release();
	for (int i = 0; i < 1000 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert_arr_eq(other->stable, data, sizeof(data), "by its close");
}
