/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read ahead, what is answered from it, and when that is over. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs_ahead.h"
#include "file_rig.h"
#include "fs_writeback.h"

#define KIB  1024u
#define PART (8 * KIB)

static void set_up(void)
{
	file_set_up(200 * KIB);
	rig.fs->conf.readahead = 1u << 20;
	rig.lane->ahead->max = 4;
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
}

TestSuite(fs_ahead, .init = set_up, .fini = rig_down);

static uint64_t read_send(uint64_t off, uint32_t len, uint32_t flags)
{
	struct fuse_read_in in = {.fh = fh.fh, .offset = off, .size = len, .flags = flags};

	return rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
}

/* A read(2) that is right. */
static void reads(uint64_t off, uint32_t len)
{
	cr_assert_eq(rig_read(&re, ino, fh.fh, off, len), (int)len);
	cr_assert_arr_eq(re.body, file->data + off, len);
	rig_settle();
}

/* Two that follow each other: [PART * 2, 64 KiB) is fetched, and the 64 KiB behind it. */
static void stream(void)
{
	reads(0, PART);
	reads(PART, PART);
}

Test(fs_ahead, a_stream_is_read_ahead)
{
	reads(0, PART);
	cr_assert_eq(count(FAKE_READ), 1);
	reads(PART, PART);
	cr_assert_eq(count(FAKE_READ), 4);
	cr_assert_eq(rig.stats.reads_ahead, 2);
	for (uint32_t off = 2 * PART; off < 64 * KIB; off += PART)
		reads(off, PART);
	cr_assert_eq(rig.stats.reads_from_ahead, 6);
	cr_assert_eq(rig.stats.copied_bytes, 0);
}

Test(fs_ahead, all_of_a_file_is_read_once)
{
	for (uint32_t off = 0; off < 200 * KIB; off += PART)
		reads(off, PART);
	cr_assert_eq(rig.stats.bytes_read, 200 * KIB);
	cr_assert_eq(rig.lane->ahead->cnt, 0, "who read the last gave the buffer back");
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_ahead, the_end_of_the_file_is_short)
{
	file->attr.size = 60 * KIB;
	fake_touch(file);
	stream();
	for (uint32_t off = 2 * PART; off < 56 * KIB; off += PART)
		reads(off, PART);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 56 * KIB, PART), 4 * KIB);
	cr_assert_eq(rig.stats.reads_from_ahead, 6);
}

Test(fs_ahead, nothing_is_without_the_option)
{
	rig.fs->conf.readahead = 0;
	stream();
	reads(2 * PART, PART);
	cr_assert_eq(count(FAKE_READ), 3);
}

Test(fs_ahead, random_reads_are_no_stream)
{
	static const uint32_t at[] = {0, 100, 20, 180, 60, 140};

	for (size_t i = 0; i < 6; i++)
		reads(at[i] * KIB, KIB);
	cr_assert_eq(count(FAKE_READ), 6);
	cr_assert_eq(rig.stats.reads_ahead, 0);
}

Test(fs_ahead, direct_reads_are_no_stream)
{
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(answer_to(read_send(i * PART, PART, O_DIRECT), 1000), 0);
	rig_settle();
	cr_assert_eq(rig.stats.reads_ahead, 0);
}

static struct list *flying[2];

/* The two blocks of a stream are on their way, and do not land before land(). */
static void fly(void)
{
	uint64_t second;

	reads(0, PART);
	rig.fake.hold_ops = 1u << FAKE_READ;
	second = read_send(PART, PART, 0);
	rig_settle();
	cr_assert_eq(count(FAKE_READ), 4);
	for (int i = 1; i >= 0; i--) {
		flying[i] = rig.fake.pending.prev;
		list_del(flying[i]);
	}
	fake_release();
	cr_assert_eq(answer_to(second, 1000), 0);
	rig_settle();
}

static void land(void)
{
	list_push_back(&rig.fake.pending, flying[0]);
	list_push_back(&rig.fake.pending, flying[1]);
	fake_release();
}

Test(fs_ahead, the_request_goes_before_what_follows_it)
{
	reads(0, PART);
	rig.fake.hold_ops = 1u << FAKE_READ;
	read_send(PART, PART, 0);
	rig_settle();
	cr_assert_eq(
		container_of(rig.fake.pending.next, struct nfs4_call, link)->u.read.offset, PART);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
}

Test(fs_ahead, a_read_waits_for_what_is_on_its_way)
{
	uint64_t unique;

	fly();
	unique = read_send(2 * PART, PART, 0);
	no_answer(50);
	land();
	cr_assert_eq(answer_to(unique, 1000), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_READ), 5, "and a block more");
	cr_assert_eq(rig.stats.reads_from_ahead, 1);
}

Test(fs_ahead, after_an_error_who_reads_there_asks_the_server)
{
	uint64_t unique;

	fly();
	unique = read_send(2 * PART, PART, 0);
	rig_settle();
	rig.fake.fail[FAKE_READ] = EIO;
	land();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(count(FAKE_READ), 6, "and a block more");
	cr_assert_eq(rig.stats.reads_from_ahead, 0);
	rig_settle();
	cr_assert_eq(rig.lane->ahead->cnt, 2, "without the one that failed");
}

Test(fs_ahead, a_broken_stream_gives_its_buffers_back)
{
	stream();
	cr_assert_eq(rig.lane->ahead->cnt, 2);
	reads(150 * KIB, KIB);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	reads(8 * PART, PART);
	reads(9 * PART, PART);
	reads(10 * PART, PART);
	cr_assert_eq(rig.stats.reads_from_ahead, 1, "a new one begins, before its end");
}

/* Requests that reach over the end of a block are the server's: it is not kept for them. */
Test(fs_ahead, blocks_that_the_stream_has_passed_go)
{
	for (uint32_t off = 0; off < 180 * KIB; off += 5 * KIB)
		reads(off, 5 * KIB);
	cr_assert_leq(rig.lane->ahead->cnt, 2);
	cr_assert_gt(rig.stats.reads_from_ahead, 20);
}

Test(fs_ahead, no_more_than_the_budget_is_fetched)
{
	rig.lane->ahead->max = 1;
	stream();
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	reads(2 * PART, PART);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
}

Test(fs_ahead, nothing_is_fetched_when_buffers_are_short)
{
	rig.fake.bufs_max = 3;
	stream();
	cr_assert_eq(rig.stats.reads_ahead, 0);
}

/* ---- stale ---- */

static void other_data(void)
{
	memset(file->data, 'n', sizeof(file->data));
	fake_touch(file);
}

Test(fs_ahead, our_write_is_seen)
{
	static const uint8_t mine[PART] = {7, 7, 7};

	stream();
	cr_assert_eq(rig_write(ino, fh.fh, 2 * PART, mine, PART, O_RDWR), (int)PART);
	reads(2 * PART, PART);
	cr_assert_eq(re.body[0], 7);
	cr_assert_eq(rig.stats.reads_from_ahead, 0);
}

Test(fs_ahead, what_is_written_back_is_seen)
{
	static const uint8_t mine[PART] = {7, 7, 7};

	rig.fs->conf.write = FS_WRITE_LAZY;
	rig.lane->writeback->max = 4;
	stream();
	cr_assert_eq(rig_write(ino, fh.fh, 2 * PART, mine, PART, O_RDWR), (int)PART);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 2 * PART, PART), (int)PART);
	cr_assert_arr_eq(re.body, mine, PART);
}

/* A block that is short would make the file so. */
Test(fs_ahead, what_is_written_behind_the_end_is_seen)
{
	static const uint8_t mine[20 * KIB] = {7, 7, 7};
	uint64_t unique;

	rig.fs->conf.write = FS_WRITE_EAGER;
	rig.lane->writeback->max = 4;
	file->attr.size = 60 * KIB;
	fake_touch(file);
	stream();
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	cr_assert_eq(rig_write(ino, fh.fh, 70 * KIB, mine, sizeof(mine), O_RDWR), sizeof(mine));
	unique = read_send(56 * KIB, PART, 0);
	no_answer(50);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.len, PART);
}

/* Fetched while the server had lost what we wrote there, and not got it again. */
Test(fs_ahead, what_the_server_lost_is_not_believed)
{
	static const uint8_t mine[PART] = {7, 7, 7};

	cr_assert_eq(rig_write(ino, fh.fh, 2 * PART, mine, PART, O_RDWR), (int)PART);
	rig_settle();
	fake_restart();
	rig.fake.gen++;
	stream();
	cr_assert_eq(rig_read(&re, ino, fh.fh, 2 * PART, PART), (int)PART);
	cr_assert_arr_eq(re.body, mine, PART);
}

Test(fs_ahead, a_truncation_is_seen)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 2 * PART + 10};

	stream();
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 2 * PART, PART), 10);
}

Test(fs_ahead, a_change_that_attributes_tell_is_seen)
{
	stream();
	other_data();
	rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
	while (rig_reply(&re, 200))
		;
	reads(2 * PART, PART);
	cr_assert_eq(re.body[0], 'n');
}

Test(fs_ahead, a_change_that_another_open_finds_is_seen)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct fuse_open_out second;

	stream();
	other_data();
	rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
	do
		cr_assert(rig_reply(&re, 1000));
	while (re.h.unique == 0);
	memcpy(&second, re.body, sizeof(second));
	reads(2 * PART, PART);
	cr_assert_eq(re.body[0], 'n');
	cr_assert_eq(rig_release(ino, second.fh), 0);
	rig_settle();
}

Test(fs_ahead, what_is_old_is_not_believed)
{
	rig.fs->conf.acregmin_s = 0;
	stream();
	memset(file->data, 'n', sizeof(file->data));
	for (int i = 0; i < 5; i++)
		rig_turn();
	reads(2 * PART, PART);
	cr_assert_eq(re.body[0], 'n');
}

Test(fs_ahead, what_nobody_reads_goes_after_a_moment)
{
	rig.fs->conf.acregmin_s = 0;
	stream();
	cr_assert_eq(rig.lane->ahead->cnt, 2);
	for (int i = 0; i < 700; i++)
		rig_turn();
	cr_assert_eq(rig.lane->ahead->cnt, 0);
}

/* ---- the end ---- */

Test(fs_ahead, a_close_comes_after_what_is_on_its_way)
{
	fly();
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	land();
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	cr_assert(fake_all_free());
}

/* A lane that has answered a read may be about to note it when another one closes the file. */
Test(fs_ahead, of_a_released_file_nothing_is_read_ahead)
{
	struct fs_file *f = fs_file_get(fs_handle_of(&rig.fs->file_handles, fh.fh));
	unsigned int calls;

	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	calls = count(FAKE_READ);
	fs_ahead_note(rig.lane, f, 0, PART);
	fs_ahead_note(rig.lane, f, PART, PART);
	rig_settle();
	cr_assert_eq(count(FAKE_READ), calls);
	cr_assert_null(f->ahead);
	fs_file_put(rig.fs, f);
	cr_assert(fake_all_free());
}

Test(fs_ahead, a_close_comes_after_what_was_given_up_too)
{
	fly();
	reads(150 * KIB, KIB);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	land();
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert(fake_all_free());
}

Test(fs_ahead, a_lane_that_ends_gives_everything_back)
{
	stream();
	cr_assert_eq(rig.lane->ahead->cnt, 2);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 100 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
}

/* Granted, whatever notices come before the answer. */
static void locks(void)
{
	uint64_t unique = lk_send(FUSE_SETLK, ino, fh.fh, 1, F_RDLCK, 0, TO_END);

	do
		cr_assert(rig_reply(&re, 3000));
	while (re.h.unique != unique);
	cr_assert_eq(re.h.error, 0);
	rig_settle();
	while (rig_reply(&re, 1))
		;
}

/* Which attributes our own write made nobody knows: so whose the next change is. */
Test(fs_ahead, a_lock_ends_what_was_read_after_our_own_write)
{
	rig.fs->conf.write = FS_WRITE_LAZY;
	cr_assert_eq(rig_write(ino, fh.fh, 100 * KIB, "x", 1, O_RDWR), 1);
	rig_run_for(300 * NSEC_PER_MSEC); /* the server has it */
	stream();
	cr_assert_eq(rig.stats.reads_ahead, 2);
	memset(file->data + 2 * PART, 0x5a, PART);
	fake_touch(file);
	locks();
	reads(2 * PART, PART);
}
