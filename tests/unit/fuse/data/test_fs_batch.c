/* SPDX-License-Identifier: BSD-3-Clause */
/* Large writes that are written back and follow each other go to the server as one WRITE. */
#include "fs_writeback.h"
#include "writeback_rig.h"
#include "fs_inode.h"
#include "fs_unstable.h"
#include "fs_batch.h"

#define PIECE (16 * KIB)

static struct rig_reply re;

static void set_up(void)
{
	dirty_set_up();
	rig.fake.info.fs.wsize = 3 * RIG_WSIZE;
	rig.fake.bufs_max = rig.fake.calls_max = 16;
	rig.lane->writeback->max = 12;
	rig.lane->unstable->bufs_max = 32;
	rig.lane->writeback->batch_max = 8;
}

TestSuite(fs_batch, .init = set_up, .fini = rig_down);

static const struct fake_write *sent(unsigned int i)
{
	cr_assert_lt(i, rig.fake.log_cnt, "%u were sent", rig.fake.log_cnt);
	return &rig.fake.log[i];
}

/* `cnt` pieces from `first` on, each answered. */
static void pieces(unsigned int first, unsigned int cnt)
{
	for (unsigned int i = first; i < first + cnt; i++)
		cr_assert_eq(put(i * PIECE, PIECE), (int)PIECE);
}

static bool pieces_are_there(unsigned int first, unsigned int cnt)
{
	for (unsigned int i = first; i < first + cnt; i++)
		if (!at_server(i * PIECE, PIECE))
			return false;
	return true;
}

static bool is_stable(unsigned int cnt)
{
	return memcmp(dfile->stable, dfile->data, cnt * PIECE) == 0;
}

/* The answer to this one; what the kernel is told meanwhile is passed over. Positive errno. */
static int answered(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 1000), "no answer");
	while (re.h.unique == 0);
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static int fsync_of(uint64_t fh)
{
	struct fuse_fsync_in in = {.fh = fh};

	return answered(rig_send(FUSE_FSYNC, dino, &in, sizeof(in), NULL, 0));
}

/* Nothing is written back any more, and nothing is booked. */
static void is_over(void)
{
	cr_assert_eq(rig.lane->writeback->cnt, 0);
	cr_assert_eq(rig.lane->writeback->bytes, 0);
	cr_assert_eq(rig.fake.calls, 0);
	cr_assert_eq(rig.lane->ops_free, rig.lane->ops_cnt);
}

/* ---- made up ---- */

Test(fs_batch, pieces_that_follow_each_other_are_one_write)
{
	pieces(0, 4);
	cr_assert_eq(count(FAKE_WRITE), 0);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(sent(0)->len, 4 * PIECE);
	cr_assert(pieces_are_there(0, 4));
	cr_assert_eq(rig.stats.writes_behind, 4);
	cr_assert_eq(rig.stats.writes_coupled, 3);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	is_over();
}

Test(fs_batch, it_has_eight_pieces_at_most)
{
	pieces(0, 9);
	cr_assert_eq(count(FAKE_WRITE), 1, "full");
	rig_settle();
	cr_assert_eq(sent(0)->len, 8 * PIECE);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(sent(1)->off, 8 * PIECE);
	cr_assert(pieces_are_there(0, 9));
}

Test(fs_batch, it_is_sent_when_another_of_its_size_would_not_fit)
{
	rig.fake.info.fs.wsize = 50 * KIB;
	pieces(0, 2);
	cr_assert_eq(count(FAKE_WRITE), 0);
	pieces(2, 1);
	cr_assert_eq(count(FAKE_WRITE), 1);
	rig_settle();
	cr_assert_eq(sent(0)->len, 3 * PIECE);
}

Test(fs_batch, one_that_no_other_would_fit_to_is_sent_at_once)
{
	rig.fake.info.fs.wsize = 50 * KIB;
	cr_assert_eq(put(0, 30 * KIB), 30 * KIB);
	cr_assert_eq(count(FAKE_WRITE), 1);
}

Test(fs_batch, one_that_does_not_fit_begins_the_next)
{
	rig.fake.info.fs.wsize = 60 * KIB;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	cr_assert_eq(put(20 * KIB, 44 * KIB), 44 * KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert(at_server(0, 64 * KIB));
}

Test(fs_batch, what_does_not_follow_sends_it)
{
	pieces(0, 2);
	pieces(3, 1);
	cr_assert_eq(count(FAKE_WRITE), 1);
	rig_settle();
	cr_assert_eq(sent(0)->len, 2 * PIECE);
	cr_assert_not(pieces_are_there(3, 1));
	pieces(2, 1);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert(pieces_are_there(0, 4));
	cr_assert_eq(count(FAKE_WRITE), 3, "one before it is not in it");
}

Test(fs_batch, another_handles_is_not_in_it)
{
	struct fuse_open_out other;

	rig.uid = 2000;
	cr_assert_eq(rig_open(dino, O_RDWR, &other), 0);
	pieces(0, 2);
	cr_assert_eq(
		rig_write(dino, other.fh, 2 * PIECE, ddata + 2 * PIECE, PIECE, O_RDWR), (int)PIECE);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_eq(sent(0)->uid, 1000);
	cr_assert_eq(sent(1)->uid, 2000);
	cr_assert_eq(rig_release(dino, other.fh), 0);
	rig_settle();
}

Test(fs_batch, small_ones_join_the_last)
{
	pieces(0, 2);
	cr_assert_eq(put(2 * PIECE, KIB), KIB);
	cr_assert_eq(put(2 * PIECE + KIB, KIB), KIB);
	cr_assert_eq(rig.stats.writes_joined, 2);
	cr_assert_eq(rig.lane->writeback->bytes, 34 * KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert(at_server(0, 34 * KIB));
	cr_assert_eq(rig.stats.copied_bytes, 2 * KIB);
	is_over();
}

Test(fs_batch, small_ones_do_not_make_it_longer_than_wsize)
{
	rig.fake.info.fs.wsize = 40 * KIB;
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(KIB, PIECE), (int)PIECE);
	cr_assert_eq(put(17 * KIB, PIECE), (int)PIECE);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(put(33 * KIB, 8 * KIB), 8 * KIB);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(sent(0)->len, 33 * KIB);
	cr_assert_eq(sent(1)->len, 8 * KIB);
	cr_assert(at_server(0, 41 * KIB));
}

Test(fs_batch, a_large_one_joins_small_ones)
{
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(put(KIB, KIB), KIB);
	cr_assert_eq(put(2 * KIB, PIECE), (int)PIECE);
	cr_assert_eq(count(FAKE_WRITE), 0);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert(at_server(0, 18 * KIB));
}

Test(fs_batch, eager_makes_no_batch)
{
	rig.fs->conf.write = FS_WRITE_EAGER;
	pieces(0, 3);
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 3);
	cr_assert_eq(rig.stats.writes_coupled, 0);
}

Test(fs_batch, it_is_sent_after_a_moment)
{
	pieces(0, 2);
	for (int i = 0; i < 500 && count(FAKE_WRITE) == 0; i++)
		rig_turn();
	rig_settle();
	cr_assert_eq(sent(0)->len, 2 * PIECE);
}

Test(fs_batch, beyond_the_budget_it_is_sent_and_the_server_answers)
{
	uint64_t unique;

	rig.fs->conf.dirty = 50 * KIB;
	pieces(0, 3);
	hold(FAKE_WRITE);
	unique = put_send(3 * PIECE, PIECE, O_RDWR, 0);
	no_answer(50);
	cr_assert_eq(count(FAKE_WRITE), 2);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	rig_settle();
	cr_assert(pieces_are_there(0, 4));
	is_over();
}

Test(fs_batch, a_lane_that_ends_sends_it)
{
	pieces(0, 3);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 100 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert(pieces_are_there(0, 3));
	cr_assert(is_stable(3));
}

/* As if another lane had received it. */
Test(fs_batch, other_lanes_are_not_in_it)
{
	struct fs_rw rw = {0};
	struct fs_op other = {.size = PIECE, .off = PIECE, .work = &rw};
	struct fs_inode *in = fs_inode_get(rig.fs, dino);
	struct fs_op *head;

	pieces(0, 1);
	head = in->unstable->open;
	cr_assert_not_null(head);
	other.lane = head->lane;
	other.file = head->file;
	cr_assert(fs_batch_takes(head, &other));
	other.lane = NULL;
	cr_assert_not(fs_batch_takes(head, &other));
	fs_inode_put(rig.fs, in);
}

/* ---- wanted ---- */

Test(fs_batch, a_read_of_a_car_sends_it)
{
	pieces(0, 3);
	cr_assert_eq(rig_read(&re, dino, dfh.fh, 2 * PIECE + 5, 100), 100);
	cr_assert_arr_eq(re.body, ddata + 2 * PIECE + 5, 100);
	cr_assert_eq(count(FAKE_WRITE), 1);
}

Test(fs_batch, a_write_over_a_car_waits)
{
	static const uint8_t other[PIECE] = {7};
	uint64_t unique;

	hold(FAKE_WRITE);
	pieces(0, 3);
	unique = put_send(PIECE, PIECE, O_RDWR, 0);
	no_answer(50);
	cr_assert_eq(count(FAKE_WRITE), 1);
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(rig_write(dino, dfh.fh, PIECE, other, PIECE, O_RDWR), (int)PIECE);
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_arr_eq(dfile->data + PIECE, other, PIECE);
	cr_assert(pieces_are_there(0, 1));
	cr_assert(pieces_are_there(2, 1));
	cr_assert(is_stable(3));
}

Test(fs_batch, a_lone_one_is_durable_after_one_call)
{
	pieces(0, 3);
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 1);
	cr_assert_eq(count(FAKE_COMMIT), 0);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	cr_assert(is_stable(3));
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

Test(fs_batch, behind_another_it_is_committed)
{
	pieces(0, 9);
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_eq(count(FAKE_COMMIT), 1);
	cr_assert(is_stable(9));
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

/* ---- unstable ---- */

Test(fs_batch, each_is_unstable_and_written_again)
{
	pieces(0, 8);
	rig_settle();
	cr_assert_eq(rig.lane->unstable->bufs, 8);
	fake_restart();
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert(pieces_are_there(0, 8));
	cr_assert(is_stable(8));
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

Test(fs_batch, what_may_not_be_unstable_is_file_sync)
{
	rig.lane->unstable->bufs_max = 5;
	pieces(0, 8);
	rig_settle();
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert(is_stable(8));
	is_over();
}

/* ---- answered in part ---- */

Test(fs_batch, what_is_not_covered_goes_by_itself)
{
	rig.fake.short_count = 3 * PIECE + 100;
	pieces(0, 8);
	for (int i = 0; i < 100 && rig.fake.log_cnt < 1; i++)
		reactor_turn(rig.fake.r, 0);
	rig.fake.short_count = 0;
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 6);
	cr_assert_eq(sent(0)->len, 3 * PIECE + 100);
	for (unsigned int i = 1; i < 6; i++)
		cr_assert_eq(sent(i)->len, PIECE);
	cr_assert_eq(sent(1)->off, 3 * PIECE, "from its begin");
	cr_assert(pieces_are_there(0, 8));
	is_over();
	fake_restart();
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert(pieces_are_there(0, 8));
	cr_assert(is_stable(8));
}

Test(fs_batch, the_first_goes_on_with_what_is_left_of_it)
{
	rig.fake.short_count = 1000;
	pieces(0, 8);
	for (int i = 0; i < 100 && rig.fake.log_cnt < 1; i++)
		reactor_turn(rig.fake.r, 0);
	rig.fake.short_count = 0;
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 9);
	cr_assert(pieces_are_there(0, 8));
	is_over();
}

Test(fs_batch, a_server_that_writes_little_gets_all_the_same)
{
	rig.fake.short_count = 5 * KIB;
	pieces(0, 8);
	rig_settle();
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert(pieces_are_there(0, 8));
	cr_assert(is_stable(8));
	is_over();
}

Test(fs_batch, a_server_that_takes_less_by_now_gets_it_in_parts)
{
	pieces(0, 4);
	rig.fake.info.fs.wsize = 40 * KIB;
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(sent(0)->len, 2 * PIECE);
	cr_assert(pieces_are_there(0, 4));
	is_over();
}

Test(fs_batch, a_server_that_takes_less_than_a_piece_gets_it_in_parts)
{
	pieces(0, 3);
	rig.fake.info.fs.wsize = 10 * KIB;
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert_eq(sent(0)->len, 10 * KIB);
	cr_assert(pieces_are_there(0, 3));
	is_over();
}

/* With one call for all of them. */
Test(fs_batch, those_that_go_by_themselves_wait_for_calls)
{
	rig.fake.calls_max = 1;
	rig.fake.short_count = PIECE;
	pieces(0, 8);
	rig_settle();
	cr_assert_eq(rig_fsync(dino, dfh.fh), 0);
	cr_assert(pieces_are_there(0, 8));
	is_over();
}

/* ---- errors ---- */

static enum nfs4_status status_of_error;
static uint64_t bad_off = UINT64_MAX;

/* WRITEs that touch bad_off fail as a server's. */
static int refuse(struct nfs4_call *call)
{
	const struct nfs4_op_write *w = &call->u.write;
	uint64_t end = w->offset;

	for (unsigned int i = 0; i < w->data_cnt; i++)
		end += w->data[i].len;
	if (bad_off < w->offset || bad_off >= end)
		return 0;
	call->status = status_of_error;
	return -ENOSPC;
}

Test(fs_batch, an_error_is_of_those_only_that_it_is_of)
{
	status_of_error = NFS4ERR_NOSPC;
	bad_off = 5 * PIECE + 1;
	rig.fake.refuse_write = refuse;
	pieces(0, 8);
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 9);
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(pieces_are_there(i, 1), i != 5, "piece %u", i);
	cr_assert_eq(fsync_of(dfh.fh), ENOSPC);
	cr_assert_eq(fsync_of(dfh.fh), 0, "told once");
	is_over();
}

Test(fs_batch, an_error_of_the_first_is_its_own)
{
	status_of_error = NFS4ERR_NOSPC;
	bad_off = 1;
	rig.fake.refuse_write = refuse;
	pieces(0, 3);
	cr_assert_eq(fsync_of(dfh.fh), ENOSPC);
	cr_assert(pieces_are_there(1, 2));
	cr_assert(memcmp(dfile->stable + PIECE, ddata + PIECE, 2 * PIECE) == 0);
	is_over();
}

Test(fs_batch, without_an_answer_all_fail_at_once)
{
	status_of_error = NFS4_OK;
	bad_off = 1;
	rig.fake.refuse_write = refuse;
	pieces(0, 3);
	cr_assert_eq(fsync_of(dfh.fh), ENOSPC);
	cr_assert_eq(count(FAKE_WRITE), 1);
	is_over();
}

Test(fs_batch, without_a_session_all_fail)
{
	pieces(0, 3);
	rig.fake.dead = -EIO;
	cr_assert_eq(fsync_of(dfh.fh), EIO);
	rig.fake.dead = 0;
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 0);
	is_over();
}
