/* SPDX-License-Identifier: BSD-3-Clause */
/* O_APPEND: to the end that the file has at the server. */
#include "fs_writeback.h"
#include "writeback_rig.h"
#include "fs_append.h"
#include "fs_inode.h"

#define BEGIN 100u /* the file's size at first */
#define PIECE (16 * KIB)

static struct rig_reply re;
static uint8_t want[FAKE_SIZE];
static unsigned int drops, whole_drops; /* that the kernel was told */
static uint64_t drop_off;

static void set_up(void)
{
	dirty_set_up();
	rig.fake.calls_max = rig.fake.bufs_max = 16;
	rig.lane->unstable->bufs_max = 32;
	rig.lane->writeback->max = 12;
	memcpy(want, dfile->data, sizeof(want));
	drops = whole_drops = 0;
}

static void note_drop(void)
{
	struct fuse_notify_inval_inode_out out;

	memcpy(&out, re.body, sizeof(out));
	if (re.h.error != FUSE_NOTIFY_INVAL_INODE || out.off < 0)
		return;
	drops++;
	whole_drops += out.off == 0 && out.len == 0;
	drop_off = (uint64_t)out.off;
}

static void tear_down(void)
{
	while (rig_reply(&re, 0))
		;
	rig_down();
}

TestSuite(fs_append, .init = set_up, .fini = tear_down);

static int answered(uint64_t unique)
{
	for (;;) {
		cr_assert(rig_reply(&re, 3000), "no answer");
		if (re.h.unique != 0)
			break;
		note_drop();
	}
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static void settle(void)
{
	rig_settle();
	while (rig_reply(&re, 0)) {
		cr_assert_eq(re.h.unique, 0);
		note_drop();
	}
}

static uint64_t send_as(uint64_t fh, uint64_t off, const void *p, uint32_t len, int flags)
{
	struct fuse_write_in in = {.fh = fh, .offset = off, .size = len, .flags = (uint32_t)flags};

	return rig_send(FUSE_WRITE, dino, &in, sizeof(in), p, len);
}

/* The kernel takes `off` for the end; the bytes are to be at `at`. */
static void append_as(uint64_t fh, uint64_t off, uint32_t len, uint64_t at)
{
	static uint8_t next;

	next++;
	memset(want + at, next, len);
	cr_assert_eq(answered(send_as(fh, off, want + at, len, O_RDWR | O_APPEND)), 0);
}

static void append(uint64_t off, uint32_t len, uint64_t at)
{
	append_as(dfh.fh, off, len, at);
}

static int sync_all(void)
{
	struct fuse_fsync_in in = {.fh = dfh.fh};
	int err = answered(rig_send(FUSE_FSYNC, dino, &in, sizeof(in), NULL, 0));

	settle();
	return err;
}

static void is_there(uint64_t size)
{
	cr_assert_eq(dfile->attr.size, size, "%llu bytes", (unsigned long long)dfile->attr.size);
	cr_assert_arr_eq(dfile->data, want, size);
	cr_assert_eq(rig.lane->writeback->cnt, 0);
	cr_assert_eq(rig.lane->writeback->bytes, 0);
}

static void is_stable(uint64_t size)
{
	cr_assert_eq(sync_all(), 0);
	is_there(size);
	cr_assert_arr_eq(dfile->stable, want, size);
	cr_assert_eq(dfile->stable_size, size);
}

/* Another client appends, durably. */
static void others_append(uint32_t len)
{
	uint64_t at = dfile->attr.size;

	memset(dfile->data + at, 0xee, len);
	memset(dfile->stable + at, 0xee, len);
	memset(want + at, 0xee, len);
	dfile->attr.size = dfile->stable_size = at + len;
	fake_touch(dfile);
}

static void others_cut(uint64_t size)
{
	memset(dfile->data + size, 0, FAKE_SIZE - size);
	memset(dfile->stable + size, 0, FAKE_SIZE - size);
	dfile->attr.size = dfile->stable_size = size;
	fake_touch(dfile);
}

/* ---- what others did ---- */

Test(fs_append, goes_behind_what_another_client_appended)
{
	others_append(50);
	append(BEGIN, 10, 150);
	is_stable(160);
	cr_assert_eq(rig.fake.missed, 1);
	cr_assert_geq(whole_drops, 1, "the kernel has nothing old of it");
}

Test(fs_append, leaves_no_hole_where_another_client_truncated)
{
	others_cut(20);
	append(BEGIN, 10, 20);
	is_stable(30);
	cr_assert_geq(whole_drops, 1);
}

/* The kernel goes on from where it was, until somebody asks for the size. */
Test(fs_append, those_that_follow_are_shifted_and_their_pages_dropped)
{
	struct fuse_attr_out out;

	others_append(50);
	append(BEGIN, 10, 150);
	cr_assert_eq(sync_all(), 0);
	whole_drops = drops = 0;
	append(110, 10, 160);
	is_stable(170);
	cr_assert_eq(rig.fake.missed, 1, "once");
	cr_assert_eq(whole_drops, 0);
	cr_assert_eq(drops, 1);
	cr_assert_eq(drop_off, 110);
	cr_assert_eq(rig_getattr(dino, &out), 0);
	cr_assert_eq(out.attr.size, 170);
	append(170, 10, 170);
	is_stable(180);
	cr_assert_eq(rig.fake.missed, 1);
	cr_assert_eq(drops, 1);
}

Test(fs_append, what_waits_behind_one_that_is_moved_follows_it)
{
	hold(FAKE_WRITE);
	append(BEGIN, PIECE, 150);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(BEGIN + PIECE, PIECE, 150 + PIECE);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(BEGIN + 2 * PIECE, 10, 150 + 2 * PIECE);
	others_append(50);
	fake_release();
	is_stable(160 + 2 * PIECE);
	cr_assert_eq(rig.fake.missed, 1);
}

Test(fs_append, each_of_two_clients_loses_nothing)
{
	uint64_t kernel = BEGIN, end = BEGIN;

	for (unsigned int i = 0; i < 20; i++) {
		if (i % 3 == 0) {
			others_append(7);
			end += 7;
		}
		append(kernel, 11, end);
		kernel += 11;
		end += 11;
		rig_run_for(300 * NSEC_PER_MSEC);
	}
	is_stable(end);
	cr_assert_eq(rig.fake.missed, 7);
}

/* The truncation is durable, and so is what was written: nothing is written again. */
Test(fs_append, truncated_by_another_while_data_is_not_committed)
{
	append(BEGIN, 10, BEGIN);
	rig_run_for(300 * NSEC_PER_MSEC);
	cr_assert_eq(count(FAKE_COMMIT), 0);
	others_cut(20);
	append(110, 10, 20);
	rig_run_for(300 * NSEC_PER_MSEC);
	settle();
	cr_assert_geq(count(FAKE_COMMIT), 1);
	is_stable(30);
}

/* Not another's truncation: the server was restarted, and lost what was not committed. */
Test(fs_append, behind_data_that_the_server_lost)
{
	append(BEGIN, 10, BEGIN);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(110, PIECE, 110);
	rig_run_for(300 * NSEC_PER_MSEC);
	cr_assert_eq(dfile->attr.size, 110 + PIECE);
	fake_restart();
	rig.fake.gen++;
	cr_assert_eq(dfile->attr.size, BEGIN);
	append(110 + PIECE, 10, 110 + PIECE);
	is_stable(120 + PIECE);
}

/* ---- ours alone ---- */

Test(fs_append, small_ones_are_gathered)
{
	for (unsigned int i = 0; i < 100; i++)
		append(BEGIN + i * 10, 10, BEGIN + i * 10);
	is_stable(BEGIN + 1000);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(rig.fake.at_end, 1);
	cr_assert_eq(rig.fake.missed, 0);
	cr_assert_eq(drops, 0);
}

Test(fs_append, one_after_the_other_is_on_its_way)
{
	hold(FAKE_WRITE);
	for (unsigned int i = 0; i < 6; i++)
		append(BEGIN + i * PIECE, PIECE, BEGIN + i * PIECE);
	rig_run_for(300 * NSEC_PER_MSEC);
	cr_assert_eq(count(FAKE_WRITE), 1);
	fake_release();
	is_stable(BEGIN + 6 * PIECE);
	cr_assert_eq(rig.fake.missed, 0);
	cr_assert_eq(drops, 0);
}

/* Write=eager: each is sent at once, if it may; meanwhile others join the next. */
Test(fs_append, sent_at_once_those_that_wait_are_gathered)
{
	rig.fs->conf.write = FS_WRITE_EAGER;
	hold(FAKE_WRITE);
	for (unsigned int i = 0; i < 100; i++)
		append(BEGIN + i * 10, 10, BEGIN + i * 10);
	cr_assert_eq(count(FAKE_WRITE), 1);
	fake_release();
	settle();
	cr_assert_eq(count(FAKE_WRITE), 2);
	is_stable(BEGIN + 1000);
	cr_assert_eq(rig.fake.missed, 0);
}

Test(fs_append, batches_too)
{
	rig.fake.info.fs.wsize = 3 * RIG_WSIZE;
	rig.lane->writeback->batch_max = 4;
	for (unsigned int i = 0; i < 8; i++)
		append(BEGIN + i * PIECE, PIECE, BEGIN + i * PIECE);
	is_stable(BEGIN + 8 * PIECE);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_eq(rig.fake.at_end, 2);
}

/* The server takes a batch up to the middle of one: its rest has its place, and no other. */
Test(fs_append, a_batch_that_is_cut_is_not_doubled)
{
	rig.fake.info.fs.wsize = 3 * RIG_WSIZE;
	rig.lane->writeback->batch_max = 4;
	rig.fake.short_count = 2 * PIECE + 100;
	for (unsigned int i = 0; i < 8; i++)
		append(BEGIN + i * PIECE, PIECE, BEGIN + i * PIECE);
	is_stable(BEGIN + 8 * PIECE);
}

Test(fs_append, a_batch_is_moved_as_a_whole)
{
	rig.fake.info.fs.wsize = 3 * RIG_WSIZE;
	rig.lane->writeback->batch_max = 4;
	others_append(50);
	for (unsigned int i = 0; i < 8; i++)
		append(BEGIN + i * PIECE, PIECE, 150 + i * PIECE);
	is_stable(150 + 8 * PIECE);
	cr_assert_eq(rig.fake.missed, 1);
	cr_assert_eq(rig.fake.at_end, 2);
}

Test(fs_append, two_handles_in_turns)
{
	struct fuse_open_out other;

	cr_assert_eq(rig_open(dino, O_RDWR | O_APPEND, &other), 0);
	for (unsigned int i = 0; i < 10; i++)
		append_as(i % 2 ? other.fh : dfh.fh, BEGIN + i * 10, 10, BEGIN + i * 10);
	is_stable(BEGIN + 100);
	cr_assert_eq(rig.fake.missed, 0);
}

/* Beside it the end would be behind that. */
Test(fs_append, what_is_written_otherwise_waits_for_it)
{
	uint64_t unique;

	hold(FAKE_WRITE);
	append(BEGIN, 10, BEGIN);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(110, 10, 110);
	memset(want + 120, 'p', 10);
	unique = send_as(dfh.fh, 120, want + 120, 10, O_RDWR);
	rig_run_for(300 * NSEC_PER_MSEC);
	cr_assert_eq(count(FAKE_WRITE), 1);
	fake_release();
	cr_assert_eq(answered(unique), 0);
	is_stable(130);
	cr_assert_eq(rig.fake.missed, 0);
}

Test(fs_append, answered_by_the_server_it_is_bound_to_the_end_too)
{
	rig.fs->conf.write = FS_WRITE_WAIT;
	others_append(50);
	append(BEGIN, 10, 150);
	append(110, 10, 160);
	settle();
	is_there(170);
	cr_assert_eq(rig.fake.at_end, 2);
	cr_assert_eq(rig.fake.missed, 1);
	cr_assert_geq(whole_drops, 1);
}

Test(fs_append, with_o_dsync_it_is_durable)
{
	others_append(50);
	memset(want + 150, 's', 10);
	cr_assert_eq(
		answered(send_as(dfh.fh, BEGIN, want + 150, 10, O_RDWR | O_APPEND | O_DSYNC)), 0);
	is_there(160);
	cr_assert_eq(dfile->stable_size, 160);
}

/* Beyond the budget too, after those that are written back. */
Test(fs_append, beyond_the_budget_it_keeps_its_place)
{
	uint64_t unique;

	rig.lane->writeback->max = 2;
	hold(FAKE_WRITE);
	append(BEGIN, PIECE, BEGIN);
	append(BEGIN + PIECE, PIECE, BEGIN + PIECE);
	memset(want + BEGIN + 2 * PIECE, 'b', PIECE);
	unique = send_as(
		dfh.fh, BEGIN + 2 * PIECE, want + BEGIN + 2 * PIECE, PIECE, O_RDWR | O_APPEND);
	rig_run_for(300 * NSEC_PER_MSEC);
	cr_assert_eq(count(FAKE_WRITE), 1);
	fake_release();
	cr_assert_eq(answered(unique), 0);
	is_stable(BEGIN + 3 * PIECE);
	cr_assert_eq(rig.fake.missed, 0);
}

/* ---- to its own offset ---- */

/* RWF_NOAPPEND: the kernel knows that the file is longer. */
Test(fs_append, below_the_kernels_end_it_is_none)
{
	append(BEGIN, 10, BEGIN);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(0, 10, 0);
	is_stable(110);
	cr_assert_eq(rig.fake.at_end, 1);
}

Test(fs_append, after_a_truncation_here_the_end_is_nearer)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 20};

	append(BEGIN, 10, BEGIN);
	cr_assert_eq(sync_all(), 0);
	cr_assert_eq(answered(rig_send(FUSE_SETATTR, dino, &in, sizeof(in), NULL, 0)), 0);
	append(20, 10, 20);
	is_stable(30);
	cr_assert_eq(rig.fake.at_end, 2);
}

/* The kernel makes the file as short as the answer is. */
Test(fs_append, after_a_short_read_too)
{
	struct fuse_read_in in = {.fh = dfh.fh, .size = 4096};

	append(BEGIN, 10, BEGIN);
	cr_assert_eq(sync_all(), 0);
	others_cut(20);
	cr_assert_eq(answered(rig_send(FUSE_READ, dino, &in, sizeof(in), NULL, 0)), 0);
	cr_assert_eq(re.len, 20);
	others_append(5);
	append(20, 10, 25);
	is_stable(35);
}

Test(fs_append, with_o_direct_the_offset_is_the_kernels)
{
	memset(want + BEGIN, 'd', 10);
	cr_assert_eq(
		answered(send_as(dfh.fh, BEGIN, want + BEGIN, 10, O_RDWR | O_APPEND | O_DIRECT)),
		0);
	is_there(110);
	cr_assert_eq(rig.fake.at_end, 0);
}

static bool executed_once;

/* It was executed, the answer lost, and with it the session that would know. */
static int loses_the_answer(struct nfs4_call *call)
{
	struct nfs4_op_write *w = &call->u.write;

	if (executed_once)
		return 0;
	executed_once = true;
	memcpy(dfile->data + w->offset, w->data[0].p, w->data[0].len);
	dfile->attr.size = w->offset + w->data[0].len;
	w->unsure = true;
	call->status = NFS4ERR_NOT_SAME;
	return -EIO;
}

Test(fs_append, what_may_be_there_already_is_not_there_twice)
{
	executed_once = false;
	rig.fake.refuse_write = loses_the_answer;
	append(BEGIN, 10, BEGIN);
	is_stable(110);
}

static int knows_no_verify(struct nfs4_call *call)
{
	if (!call->u.write.at_end)
		return 0;
	call->status = NFS4ERR_NOTSUPP;
	return -EOPNOTSUPP;
}

Test(fs_append, where_the_server_knows_no_verify)
{
	rig.fake.refuse_write = knows_no_verify;
	append(BEGIN, 10, BEGIN);
	is_stable(110);
}

static int never_the_same(struct nfs4_call *call)
{
	if (!call->u.write.at_end)
		return 0;
	call->status = NFS4ERR_NOT_SAME;
	return -EIO;
}

Test(fs_append, where_no_size_is_the_right_one)
{
	rig.fake.refuse_write = never_the_same;
	append(BEGIN, 10, BEGIN);
	is_stable(110);
	cr_assert_leq(count(FAKE_GETATTR), 70);
}

Test(fs_append, done_in_parts)
{
	rig.fake.short_count = 7;
	append(BEGIN, 20, BEGIN);
	is_stable(120);
}

/* ---- errors ---- */

static int full_once(struct nfs4_call *call)
{
	rig.fake.refuse_write = NULL;
	call->status = NFS4ERR_NOSPC;
	return -ENOSPC;
}

Test(fs_append, one_that_fails_leaves_no_hole)
{
	hold(FAKE_WRITE);
	append(BEGIN, PIECE, BEGIN);
	rig_run_for(300 * NSEC_PER_MSEC);
	append(BEGIN + PIECE, 10, BEGIN);
	rig.fake.refuse_write = full_once;
	fake_release();
	cr_assert_eq(sync_all(), ENOSPC);
	is_there(BEGIN + 10);
}

/* Each would wait for its own time. */
Test(fs_append, without_an_answer_those_behind_it_fail_too)
{
	hold(FAKE_WRITE);
	for (unsigned int i = 0; i < 4; i++) {
		append(BEGIN + i * PIECE, PIECE, BEGIN + i * PIECE);
		rig_run_for(300 * NSEC_PER_MSEC);
	}
	rig.fake.fail[FAKE_WRITE] = ETIMEDOUT;
	fake_release();
	cr_assert_eq(sync_all(), ETIMEDOUT);
	cr_assert_eq(count(FAKE_WRITE), 1);
	is_there(BEGIN);
	append(BEGIN + 4 * PIECE, 10, BEGIN);
	cr_assert_eq(sync_all(), 0);
}

Test(fs_append, without_an_answer_to_where_the_end_is_it_fails)
{
	others_append(50);
	rig.fake.fail[FAKE_GETATTR] = ETIMEDOUT;
	append(BEGIN, 10, 150);
	cr_assert_eq(sync_all(), ETIMEDOUT);
	is_there(150);
	cr_assert(fake_all_free());
}
