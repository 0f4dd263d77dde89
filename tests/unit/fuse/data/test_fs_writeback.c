/* SPDX-License-Identifier: BSD-3-Clause */
/* When a WRITE is answered, what is gathered, and when it is sent. */
#include "fs_writeback.h"
#include "writeback_rig.h"

TestSuite(fs_writeback, .init = dirty_set_up, .fini = rig_down);

static const struct fake_write *sent(unsigned int i)
{
	cr_assert_lt(i, rig.fake.log_cnt, "%u were sent", rig.fake.log_cnt);
	return &rig.fake.log[i];
}

/* ---- answered ---- */

Test(fs_writeback, a_write_is_answered_before_the_server_has_it)
{
	hold(FAKE_WRITE);
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	cr_assert_eq(count(FAKE_WRITE), 1, "sent at once");
	cr_assert_eq(rig.stats.writes_behind, 1);
	cr_assert_not(at_server(0, 20 * KIB));
	fake_release();
	rig_settle();
	cr_assert(at_server(0, 20 * KIB));
	cr_assert_eq(rig.stats.copied_bytes, 0);
	cr_assert(fs_file_is_dirty(rig_file(dfh.fh)));
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_not(fs_file_is_dirty(rig_file(dfh.fh)), "its close has nothing to wait for");
}

Test(fs_writeback, its_buffer_goes_out_as_it_was_received)
{
	struct rpcrdma_buf *buf;

	rig_settle();
	buf = rig.lane->rxbuf;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	rig_settle();
	cr_assert_eq(rig.fake.last_write, buf->data);
}

static void is_answered_by_the_server(uint32_t flags, uint32_t write_flags)
{
	uint64_t unique;

	hold(FAKE_WRITE);
	unique = put_send(0, 100, flags, write_flags);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(rig.stats.writes_behind, 0);
}

Test(fs_writeback, with_o_direct_the_server_answers)
{
	is_answered_by_the_server(O_RDWR | O_DIRECT, 0);
}

Test(fs_writeback, with_o_dsync_the_server_answers)
{
	is_answered_by_the_server(O_RDWR | O_DSYNC, 0);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
}

Test(fs_writeback, what_the_kernel_writes_of_mappings_the_server_answers)
{
	is_answered_by_the_server(O_RDWR, FUSE_WRITE_CACHE);
}

Test(fs_writeback, with_write_wait_the_server_answers)
{
	rig.fs->conf.write = FS_WRITE_WAIT;
	is_answered_by_the_server(O_RDWR, 0);
}

Test(fs_writeback, beyond_the_budget_of_bytes_the_server_answers)
{
	uint64_t unique;

	rig.fs->conf.dirty = 50 * KIB;
	hold(FAKE_WRITE);
	cr_assert_eq(put(0, 30 * KIB), 30 * KIB);
	unique = put_send(30 * KIB, 30 * KIB, O_RDWR, 0);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(rig.stats.writes_behind, 1);
	rig_settle();
	cr_assert_eq(put(0, 30 * KIB), 30 * KIB);
	cr_assert_eq(rig.stats.writes_behind, 2, "there is room again");
}

Test(fs_writeback, what_joins_counts_in_the_budget)
{
	uint64_t unique;

	rig.fs->conf.dirty = 10 * KIB;
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(put(i * KIB, KIB), KIB);
	hold(FAKE_WRITE);
	unique = put_send(40 * KIB, KIB, O_RDWR, 0);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	rig_settle();
	cr_assert(at_server(0, 10 * KIB), "sent, to make room");
	cr_assert_eq(rig.lane->writeback->bytes, 0);
}

Test(fs_writeback, beyond_the_budget_of_buffers_the_server_answers)
{
	uint64_t unique;

	rig.lane->writeback->max = 2;
	hold(FAKE_WRITE);
	cr_assert_eq(put(0, 100), 100);
	cr_assert_eq(put(1000, 100), 100);
	unique = put_send(2000, 100, O_RDWR, 0);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
}

/* ---- gathered ---- */

Test(fs_writeback, small_ones_that_follow_each_other_are_one_write)
{
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(put(i * 4 * KIB, 4 * KIB), 4 * KIB);
	cr_assert_eq(count(FAKE_WRITE), 0);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(sent(0)->len, 32 * KIB);
	cr_assert(at_server(0, 32 * KIB));
	cr_assert_eq(rig.stats.writes_joined, 7);
}

Test(fs_writeback, a_full_one_is_sent)
{
	for (unsigned int i = 0; i < RIG_WSIZE / (8 * KIB); i++)
		cr_assert_eq(put(i * 8 * KIB, 8 * KIB), 8 * KIB);
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(sent(0)->len, RIG_WSIZE);
	cr_assert(at_server(0, RIG_WSIZE));
}

Test(fs_writeback, none_is_longer_than_wsize)
{
	rig.fake.info.fs.wsize = 8 * KIB;
	cr_assert_eq(put(0, 6 * KIB), 6 * KIB);
	cr_assert_eq(put(6 * KIB, 6 * KIB), 6 * KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(sent(0)->len, 6 * KIB);
	cr_assert_eq(sent(1)->len, 6 * KIB);
}

Test(fs_writeback, what_is_written_again_replaces_what_waits)
{
	static const uint8_t other[100] = {1, 2, 3};

	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_write(dino, dfh.fh, 200, other, 100, O_RDWR), 100);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(sent(0)->len, KIB);
	cr_assert(at_server(0, 200));
	cr_assert_arr_eq(dfile->data + 200, other, 100);
	cr_assert(at_server(300, KIB - 300));
}

Test(fs_writeback, one_that_lands_elsewhere_sends_the_first)
{
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(9000, KIB), KIB);
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert(at_server(0, KIB));
	cr_assert_not(at_server(9000, KIB));
}

Test(fs_writeback, one_before_it_does_not_join)
{
	cr_assert_eq(put(KIB, KIB), KIB);
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert(at_server(0, 2 * KIB));
}

Test(fs_writeback, another_handles_does_not_join)
{
	struct fuse_open_out other;

	rig.uid = 2000;
	cr_assert_eq(rig_open(dino, O_RDWR, &other), 0);
	cr_assert_eq(put(0, 100), 100);
	cr_assert_eq(rig_write(dino, other.fh, 100, ddata + 100, 100, O_RDWR), 100);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_eq(sent(0)->uid, 1000);
	cr_assert_eq(sent(1)->uid, 2000);
	cr_assert_eq(rig_release(dino, other.fh), 0);
	rig_settle();
}

/* It would overtake the one that is on its way. */
Test(fs_writeback, one_that_would_reach_over_what_was_sent_waits)
{
	uint64_t unique;

	hold(FAKE_WRITE);
	cr_assert_eq(put(KIB, 20 * KIB), 20 * KIB);
	cr_assert_eq(put(0, KIB), KIB);
	unique = put_send(KIB, KIB, O_RDWR, 0);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
}

Test(fs_writeback, from_16_kib_on_nothing_is_copied)
{
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(KIB, 16 * KIB), 16 * KIB);
	cr_assert_eq(put(17 * KIB, 16 * KIB), 16 * KIB);
	rig_settle();
	cr_assert_eq(rig.stats.writes_joined, 0);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 3);
	cr_assert(at_server(0, 33 * KIB));
}

Test(fs_writeback, eager_gathers_nothing)
{
	rig.fs->conf.write = FS_WRITE_EAGER;
	hold(FAKE_WRITE);
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(KIB, KIB), KIB);
	cr_assert_eq(count(FAKE_WRITE), 2);
	fake_release();
}

Test(fs_writeback, what_waits_is_sent_after_a_moment)
{
	cr_assert_eq(put(0, KIB), KIB);
	for (int i = 0; i < 500 && count(FAKE_WRITE) == 0; i++)
		rig_turn();
	cr_assert_eq(count(FAKE_WRITE), 1);
	rig_settle();
	cr_assert(at_server(0, KIB));
	cr_assert_eq(put(KIB, KIB), KIB);
	for (int i = 0; i < 500 && count(FAKE_WRITE) == 1; i++)
		rig_turn();
	cr_assert_eq(count(FAKE_WRITE), 2, "and again");
}

Test(fs_writeback, a_lane_that_ends_sends_what_waits)
{
	cr_assert_eq(put(0, KIB), KIB);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 100 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert(at_server(0, KIB));
	cr_assert_eq(memcmp(dfile->stable, dfile->data, KIB), 0, "and commits it");
}

Test(fs_writeback, each_file_has_its_moment)
{
	struct fuse_open_out other;
	fuse_ino_t ino = rig_ino(fake_add("other", 0));

	cr_assert_eq(rig_open(ino, O_RDWR, &other), 0);
	cr_assert_eq(put(0, KIB), KIB);
	for (int i = 0; i < 100; i++)
		rig_turn();
	cr_assert_eq(rig_write(ino, other.fh, 0, ddata, KIB, O_RDWR), KIB);
	for (int i = 0; i < 600 && count(FAKE_WRITE) < 2; i++)
		rig_turn();
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_eq(rig_release(ino, other.fh), 0);
	rig_settle();
}

Test(fs_writeback, past_the_servers_largest_file_the_server_answers)
{
	uint64_t unique;

	rig.fake.info.fs.maxfilesize = 10 * KIB;
	cr_assert_eq(put(8 * KIB, KIB), KIB);
	hold(FAKE_WRITE);
	unique = put_send(9 * KIB, 2 * KIB, O_RDWR, 0);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(rig.stats.writes_joined, 0);
	cr_assert_eq(rig.stats.writes_behind, 1);
}

/* ---- durable ---- */

Test(fs_writeback, a_small_file_is_durable_after_one_call)
{
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(KIB, KIB), KIB);
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(count(FAKE_COMMIT), 0);
	cr_assert_eq(memcmp(dfile->stable, ddata, 2 * KIB), 0);
}

Test(fs_writeback, beside_data_to_commit_it_is_committed)
{
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	rig_settle();
	cr_assert_eq(put(20 * KIB, KIB), KIB);
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_COMMIT), 1);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
	cr_assert_eq(memcmp(dfile->stable, ddata, 21 * KIB), 0);
}

Test(fs_writeback, what_the_server_lost_is_written_again)
{
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(put(i * 20 * KIB, 20 * KIB), 20 * KIB);
	rig_settle();
	fake_restart();
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert(at_server(0, 60 * KIB));
	cr_assert_eq(memcmp(dfile->stable, ddata, 60 * KIB), 0);
}

Test(fs_writeback, gathered_data_is_unstable_too)
{
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(put(i * 8 * KIB, 8 * KIB), 8 * KIB);
	cr_assert_eq(put(60000, 100), 100); /* sends it, not to be committed yet */
	rig_settle();
	fake_restart();
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert(at_server(0, 40 * KIB));
	cr_assert_eq(memcmp(dfile->stable, ddata, 40 * KIB), 0);
}

/* A reservation of others does not count as data to be committed. */
Test(fs_writeback, a_small_file_is_durable_after_one_call_also_when_others_were_committed)
{
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_COMMIT), 1);
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_COMMIT), 1);
}

/* Each of a batch was answered, and the kernel has pages of each. */
Test(fs_writeback, an_error_of_a_batch_drops_the_pages_of_all_of_it)
{
	struct rig_reply re;
	uint64_t seen = 0;

	rig.lane->writeback->batch_max = 4;
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(put(i * 16 * KIB, 16 * KIB), 16 * KIB);
	rig.fake.dead = -EIO;
	rig_send(FUSE_FSYNC, dino, &(struct fuse_fsync_in){.fh = dfh.fh},
		sizeof(struct fuse_fsync_in), NULL, 0);
	while (rig_reply(&re, 200)) {
		struct fuse_notify_inval_inode_out out;

		if (re.h.unique != 0 || re.h.error != FUSE_NOTIFY_INVAL_INODE)
			continue;
		memcpy(&out, re.body, sizeof(out));
		if (out.off >= 0)
			seen |= 1u << out.off / (16 * KIB);
	}
	rig.fake.dead = 0;
	cr_assert_eq(seen, 7);
	rig_settle();
}
