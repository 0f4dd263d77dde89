/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs_file.h"
#include "fs_inode.h"
#include "fs_op.h"
#include "fs_unstable.h"
#include "fs_rig.h"

#define LARGE FS_UNSTABLE_LARGE

static struct fake_file *file, *other;
static struct fuse_open_out fh, fh2, ofh;
static fuse_ino_t ino, oino;
static uint8_t a[RIG_WSIZE], b[RIG_WSIZE], want[FAKE_SIZE];

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
	cr_assert_eq(rig_open(ino, O_RDWR, &fh2), 0);
	cr_assert_eq(rig_open(oino, O_RDWR, &ofh), 0);
}

/* Nothing is held any more, and nobody lost a buffer. */
static void tear_down(void)
{
	struct rig_reply re;

	while (rig_reply(&re, 0))
		;
	rig_down();
}

TestSuite(fs_unstable, .init = set_up, .fini = tear_down);

static void put(const struct fuse_open_out *h, uint64_t off, const void *p, uint32_t len)
{
	cr_assert_eq(rig_write(ino, h->fh, off, p, len, O_RDWR), (int)len);
	memcpy(want + off, p, len);
}

static void assert_stable(size_t len)
{
	cr_assert_arr_eq(file->stable, want, len);
	cr_assert_arr_eq(file->data, want, len);
	cr_assert_eq(file->stable_size, len);
}

static uint64_t send_write(uint64_t off, const void *p, uint32_t len)
{
	struct fuse_write_in in = {.fh = fh.fh, .offset = off, .size = len, .flags = O_RDWR};

	return rig_send(FUSE_WRITE, ino, &in, sizeof(in), p, len);
}

static uint64_t send_fsync(void)
{
	struct fuse_fsync_in in = {.fh = fh.fh};

	return rig_send(FUSE_FSYNC, ino, &in, sizeof(in), NULL, 0);
}

static void replies(unsigned int cnt)
{
	struct rig_reply re;

	while (cnt-- > 0) {
		cr_assert(rig_reply(&re, 1000), "%u missing", cnt + 1);
		cr_assert_eq(re.h.error, 0);
	}
}

Test(fs_unstable, a_large_write_keeps_its_buffer_until_commit)
{
	put(&fh, 0, a, LARGE);
	cr_assert_eq(rig.lane->unstable->bufs, 1);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert_leq(rig.fake.bufs, 1);
}

Test(fs_unstable, a_small_write_is_copied_and_its_buffer_goes_back)
{
	put(&fh, 0, a, LARGE - 1);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert_gt(rig.lane->unstable->bytes, LARGE - 1);
	cr_assert_eq(rig.stats.copied_bytes, LARGE - 1);
	cr_assert_eq(rig.stats.copied_bytes_large, 0);
	rig_settle();
	cr_assert_leq(rig.fake.bufs, 1);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
}

Test(fs_unstable, what_is_lost_is_written_again_and_the_newest_bytes_win)
{
	put(&fh, 0, a, LARGE);
	put(&fh, 100, b, 50);          /* splits it */
	put(&fh, 60, a, 20);           /* the first part loses its middle */
	put(&fh, LARGE - 10, b, 1000); /* over its end */
	put(&fh, 140, a, 20);          /* over an end and a start */
	fake_restart();
	cr_assert_eq(file->attr.size, 0);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE + 990);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 6, "adjacent pieces went together");
	cr_assert_eq(rig.stats.verifier_changes, 1);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
}

Test(fs_unstable, a_write_that_covers_older_data_releases_it)
{
	put(&fh, 4096, a, LARGE);
	put(&fh, 0, a, 100);
	put(&fh2, 0, b, RIG_WSIZE);
	cr_assert_eq(rig.lane->unstable->bufs, 1);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert_eq(rig_file(fh.fh)->unstable, 0, "nothing of it is left");
	fake_restart();
	cr_assert_eq(rig_flush(ino, fh2.fh), 0);
	assert_stable(RIG_WSIZE);
}

Test(fs_unstable, a_synchronous_write_takes_its_range_over)
{
	put(&fh, 0, a, LARGE);
	cr_assert_eq(rig_write(ino, fh.fh, 1000, b, 500, O_RDWR | O_DSYNC), 500);
	memcpy(want + 1000, b, 500);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, each_part_goes_under_the_credential_of_its_handle)
{
	rig_file(fh2.fh)->cred.uid = 77;
	put(&fh, 0, a, 100);
	put(&fh2, 100, b, 100);
	put(&fh, 200, a, 100);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.log_cnt, 6);
	cr_assert_eq(rig.fake.log[3].uid, 1000);
	cr_assert_eq(rig.fake.log[4].uid, 77);
	cr_assert_eq(rig.fake.log[5].uid, 1000);
	assert_stable(300);
}

Test(fs_unstable, a_second_restart_is_survived_too)
{
	put(&fh, 0, a, LARGE);
	put(&fh, LARGE, b, 100);
	rig.fake.restarts_in_commit = 2;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 3);
	cr_assert_eq(rig.fake.log[3].stable, UNSTABLE4);
	cr_assert_eq(rig.stats.verifier_changes, 2);
	assert_stable(LARGE + 100);
}

Test(fs_unstable, a_server_without_a_verifier_gets_it_file_sync_in_the_end)
{
	put(&fh, 0, a, LARGE);
	rig.fake.restarts_in_commit = 1000;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 3);
	cr_assert_eq(rig.fake.log[rig.fake.log_cnt - 1].stable, FILE_SYNC4);
	assert_stable(LARGE);
}

Test(fs_unstable, a_commit_releases_only_what_was_answered_before_it_was_sent)
{
	put(&fh, 0, a, 100);
	rig.fake.hold = true;
	send_fsync();
	rig_settle();
	send_write(100, b, 100);
	memcpy(want + 100, b, 100);
	rig_settle();
	list_push_back(&rig.fake.pending, list_pop_front(&rig.fake.pending)); /* COMMIT last */
	fake_release();
	replies(2);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_gt(rig.lane->unstable->bytes, 0);
	/* Nobody can know that this COMMIT had it: it is written again. */
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.log[rig.fake.log_cnt - 1].off, 100);
	assert_stable(200);
}

Test(fs_unstable, a_write_under_a_new_verifier_starts_the_rewrite_at_once)
{
	put(&fh, 0, a, LARGE);
	fake_restart();
	put(&fh, LARGE, b, 100);
	rig_settle();
	cr_assert_eq(rig.stats.verifier_changes, 1);
	cr_assert_eq(rig.lane->unstable->bufs, 0, "committed too");
	assert_stable(LARGE + 100);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
}

Test(fs_unstable, nothing_passes_the_gate_while_data_is_written_again)
{
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	fake_restart();
	send_fsync();
	for (int i = 0; i < 50 && rig.fake.count[FAKE_WRITE] < 2; i++) {
		reactor_turn(rig.fake.r, 0);
		rig.fake.hold = rig.fake.count[FAKE_WRITE] == 2;
	}
	cr_assert(rig.fake.hold, "the rewrite is on its way");
	send_write(10, b, 10);
	memcpy(want + 10, b, 10);
	rig_send(FUSE_READ, ino, &(struct fuse_read_in){.fh = fh.fh, .size = 100},
		sizeof(struct fuse_read_in), NULL, 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	cr_assert_eq(rig.fake.count[FAKE_READ], 0);
	fake_release();
	for (int i = 0; i < 3; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert_eq(re.h.error, 0);
		if (re.len == 100)
			cr_assert_arr_eq(re.body + 50, want + 50, 50);
	}
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, a_rewrite_waits_for_writes_on_their_way)
{
	struct fs_inode *in = rig_inode(ino);

	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.hold = true;
	send_fsync();
	rig_settle();
	send_write(10, b, 10);
	memcpy(want + 10, b, 10);
	rig_settle();
	fake_release();
	for (int i = 0; i < 50 && !in->unstable->rewriter; i++) {
		rig.fake.hold = rig.fake.count[FAKE_COMMIT] == 1 && rig.fake.calls == 1;
		reactor_turn(rig.fake.r, 0);
	}
	fake_release();
	replies(2);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, a_read_of_lost_data_waits_until_it_is_there_again)
{
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.gen++; /* the client ID was made anew */
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 1000), 1000);
	cr_assert_arr_eq(re.body, want, 1000);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert(fake_all_free());
}

Test(fs_unstable, so_does_one_of_its_middle)
{
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.gen++;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 1000, 1000), 1000);
	cr_assert_arr_eq(re.body, want + 1000, 1000);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert(fake_all_free());
}

Test(fs_unstable, a_read_that_was_on_its_way_over_a_restart_is_done_again)
{
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	rig.fake.hold = true;
	rig_send(FUSE_READ, ino, &(struct fuse_read_in){.fh = fh.fh, .size = 100},
		sizeof(struct fuse_read_in), NULL, 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_READ], 1);
	fake_restart();
	rig.fake.gen++;
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.len, 100);
	cr_assert_arr_eq(re.body, want, 100);
	cr_assert_eq(rig.fake.count[FAKE_READ], 2);
}

/* The server's file ends before the hole now; the kernel would make it that short. */
Test(fs_unstable, a_read_of_a_hole_before_lost_data_does_not_end_the_file)
{
	static const char zeros[100];
	struct rig_reply re;

	put(&fh, 5 * LARGE, a, 100);
	fake_restart();
	rig.fake.gen++;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 4 * LARGE, 100), 100);
	cr_assert_arr_eq(re.body, zeros, 100);
	cr_assert(fake_all_free());
}

Test(fs_unstable, a_read_elsewhere_does_not_wait)
{
	struct rig_reply re;

	put(&fh, 0, a, 100);
	put(&fh, 1000, a, 100);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	put(&fh, 0, b, 100);
	rig.fake.gen++;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 500, 600), 600);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
}

Test(fs_unstable, half_of_the_buffers_start_a_commit_in_the_background)
{
	cr_assert_eq(rig.lane->unstable->bufs_max, 4);
	rig_write(oino, ofh.fh, 0, a, LARGE, O_RDWR);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
	put(&fh, 0, a, LARGE);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_arr_eq(other->stable, a, LARGE, "of the oldest file");
	cr_assert_eq(rig.lane->unstable->bufs, 1);
	cr_assert(fake_all_free());
	/* And the next one. */
	rig_write(oino, ofh.fh, LARGE, a, LARGE, O_RDWR);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	assert_stable(LARGE);
}

Test(fs_unstable, after_a_restart_what_is_from_before_is_asked_for_at_once)
{
	put(&fh, 0, a, 100);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
	fake_restart();
	rig.fake.gen++;
	rig_write(oino, ofh.fh, 0, b, 100, O_RDWR);
	rig_settle();
	assert_stable(100);
	cr_assert_eq(other->stable_size, 0, "what is from after it can wait");
}

Test(fs_unstable, there_is_one_commit_in_the_background_at_a_time)
{
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	rig_write(oino, ofh.fh, 0, a, LARGE, O_RDWR);
	put(&fh, 0, a, LARGE);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	put(&fh, LARGE, a, 100);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
}

/* ---- files whose COMMIT fails ---- */

static unsigned int refused_commits;

static int refuse_commit_of_file(struct nfs4_call *call)
{
	if (fake_file_of(call->u.commit.fh) != file)
		return 0;
	refused_commits++;
	return -EIO;
}

static void put_other(uint32_t off)
{
	cr_assert_eq(rig_write(oino, ofh.fh, off, a, LARGE, O_RDWR), (int)LARGE);
}

/* Half of the budget is the file's, and its COMMIT fails. */
static void fail_commits_of_file(void)
{
	rig.fake.bufs_max = 64;
	rig.lane->unstable->bufs_max = 8;
	rig.fake.refuse_commit = refuse_commit_of_file;
	for (uint32_t i = 0; i < 4; i++)
		put(&fh, i * LARGE, a, LARGE);
	rig_settle();
	cr_assert_eq(refused_commits, 1);
}

Test(fs_unstable, a_file_whose_commit_fails_does_not_keep_others_from_theirs)
{
	fail_commits_of_file();
	for (uint32_t i = 0; i < 40; i++) {
		put_other(i % 16 * LARGE);
		cr_assert_eq(rig.fake.last_stable, UNSTABLE4, "write %u", i);
	}
	rig_settle();
	cr_assert_eq(refused_commits, 1, "it is not asked for again at once");
	cr_assert_leq(rig.fake.count[FAKE_COMMIT], 1 + 20, "at half of what is left");
	cr_assert_arr_eq(other->stable, a, LARGE);
	rig.fake.refuse_commit = NULL;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(4 * LARGE);
	cr_assert_eq(rig.lane->unstable->late_bufs, 0);
}

Test(fs_unstable, writes_to_a_file_whose_commit_fails_are_file_sync_until_one_succeeds)
{
	fail_commits_of_file();
	put(&fh, 4 * LARGE, a, LARGE);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	rig.fake.refuse_commit = NULL;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	put(&fh, 5 * LARGE, a, LARGE);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
}

Test(fs_unstable, they_are_unstable_again_when_its_data_was_given_up)
{
	fail_commits_of_file();
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig.lane->unstable->late_bufs, 0);
	cr_assert_eq(rig_fsync(ino, fh2.fh), EIO);
	put(&fh2, 0, a, LARGE);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
	put(&fh2, LARGE, a, LARGE);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
	rig.fake.refuse_commit = NULL;
}

Test(fs_unstable, a_commit_that_failed_is_tried_again_less_and_less_often)
{
	uint64_t end_ns = reactor_now(rig.fake.r) + 20 * NSEC_PER_SEC;

	fail_commits_of_file();
	for (uint32_t i = 0; reactor_now(rig.fake.r) < end_ns; i++) {
		rig_settle();
		put_other(i % 16 * LARGE);
	}
	cr_assert_eq(refused_commits, 5, "%u, after 0, 1, 3, 7 and 15 s", refused_commits);
	rig.fake.refuse_commit = NULL;
}

Test(fs_unstable, without_a_session_no_commit_is_tried_in_a_loop)
{
	put_other(0);
	rig.fake.dead = -ESHUTDOWN;
	rig.lane->unstable->bufs_max = 2;
	fs_commit_background(rig.lane, NULL);
	rig_settle();
	cr_assert_eq(rig.lane->unstable->late_bufs, 1);
	rig.fake.dead = 0;
}

Test(fs_unstable, without_a_buffer_to_keep_writes_are_file_sync)
{
	rig.lane->commit->busy = true; /* for ever */
	for (int i = 0; i < 6; i++)
		put(&fh, (uint64_t)i * LARGE, a, LARGE);
	cr_assert_eq(rig.lane->unstable->bufs, 4);
	cr_assert_eq(rig.fake.log[3].stable, UNSTABLE4);
	cr_assert_eq(rig.fake.log[4].stable, FILE_SYNC4);
	cr_assert_eq(rig.fake.log[5].stable, FILE_SYNC4);
	put(&fh, 6 * LARGE, b, 100);
	cr_assert_eq(rig.fake.log[6].stable, UNSTABLE4, "copies have a budget of their own");
	rig.lane->commit->busy = false;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(6 * LARGE + 100);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

Test(fs_unstable, without_memory_for_copies_small_writes_are_file_sync)
{
	rig.lane->unstable->bytes = FS_UNSTABLE_BYTES - 600;
	rig.lane->commit->busy = true; /* for ever */
	put(&fh, 0, a, 100);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
	put(&fh, 100, a, 100);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	put(&fh, 20, b, 20);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	fake_restart();
	rig.lane->unstable->bytes -= FS_UNSTABLE_BYTES - 600;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(200);
}

Test(fs_unstable, a_failed_write_gives_its_reservation_back)
{
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(rig_write(ino, fh.fh, 0, a, LARGE, O_RDWR), -ENOSPC);
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(rig_write(ino, fh.fh, 0, a, 100, O_RDWR), -ENOSPC);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert(fake_all_free());
}

Test(fs_unstable, a_write_in_parts_that_met_two_servers_is_lost_as_a_whole)
{
	rig.fake.short_count = 10000;
	rig.fake.hold = true;
	send_write(0, a, LARGE);
	memcpy(want, a, LARGE);
	rig_settle();
	fake_release();
	for (int i = 0; i < 50 && rig.fake.log_cnt == 0; i++)
		reactor_turn(rig.fake.r, 0);
	fake_restart();
	rig.fake.short_count = 0;
	replies(1);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

/*
 * Just between a COMMIT that waits for a call and its start: the WRITE is answered before it, and
 * under the same verifier, but the server that had its first part is gone.
 */
Test(fs_unstable, a_commit_that_waited_does_not_release_what_was_found_lost_meanwhile)
{
	put(&fh, LARGE, b, 100);
	rig.fake.short_count = 10000;
	rig.fake.hold = true;
	send_write(0, a, LARGE);
	memcpy(want, a, LARGE);
	rig_settle();
	fake_release();
	for (int i = 0; i < 50 && rig.fake.log_cnt < 2; i++)
		reactor_turn(rig.fake.r, 0);
	cr_assert_eq(rig.fake.log_cnt, 2, "the first part");
	fake_restart();
	rig.fake.short_count = 0;
	rig.fake.hold = true;
	rig.fake.calls_max = 1;
	send_fsync();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0, "it waits for a call");
	fake_release();
	replies(2);
	rig.fake.calls_max = 64;
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE + 100);
}

Test(fs_unstable, a_rewrite_in_parts_that_met_two_servers_starts_again)
{
	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.short_count = 10000;
	send_fsync();
	for (int i = 0; i < 50 && rig.fake.log_cnt < 2; i++)
		reactor_turn(rig.fake.r, 0);
	fake_restart();
	replies(1);
	assert_stable(LARGE);
}

Test(fs_unstable, truncation_is_not_undone)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 1000};
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	put(&fh, LARGE, b, 100);
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 1000);
	cr_assert_arr_eq(file->stable, a, 1000);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
}

static int truncate_without_an_answer(struct nfs4_call *call)
{
	file->attr.size = file->stable_size = call->u.setattr.sattr.size;
	fake_touch(file);
	return -ETIMEDOUT; /* status: none */
}

static int refuse_to_truncate(struct nfs4_call *call)
{
	call->status = NFS4ERR_ACCESS;
	return -EACCES;
}

/* With `soft`: it may have been done. The data behind it is not written again, and not forgotten.
 */
Test(fs_unstable, nor_is_one_without_an_answer)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 1000};
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	rig.fake.refuse_setattr = truncate_without_an_answer;
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), ETIMEDOUT);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), ETIMEDOUT);
	cr_assert_eq(file->attr.size, 1000);
	cr_assert_arr_eq(file->stable, a, 1000);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
}

Test(fs_unstable, nor_is_an_open_with_o_trunc_without_an_answer)
{
	struct fuse_open_in in = {.flags = O_RDWR | O_TRUNC};
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	rig.fake.refuse_setattr = truncate_without_an_answer;
	cr_assert_eq(rig_call(&re, FUSE_OPEN, ino, &in, sizeof(in), NULL, 0), ETIMEDOUT);
	rig_settle();
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), ETIMEDOUT);
	cr_assert_eq(file->attr.size, 0);
}

Test(fs_unstable, one_without_an_answer_that_cuts_nothing_is_no_error)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = LARGE};
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	rig.fake.refuse_setattr = truncate_without_an_answer;
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), ETIMEDOUT);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, one_that_is_refused_cuts_nothing)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 1000};
	struct rig_reply re;

	put(&fh, 0, a, LARGE);
	rig.fake.refuse_setattr = refuse_to_truncate;
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), EACCES);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, nor_is_an_open_with_o_trunc)
{
	struct fuse_open_out h;

	put(&fh, 0, a, LARGE);
	cr_assert_eq(rig_open(ino, O_RDWR | O_TRUNC, &h), 0);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 0);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

Test(fs_unstable, the_close_of_a_handle_waits_for_its_data)
{
	put(&fh, 0, a, LARGE);
	cr_assert_eq(rig_release(ino, fh2.fh), 0);
	fake_restart();
	rig.fake.hold = true;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	fake_release();
	rig_settle();
	assert_stable(LARGE);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_unstable, a_close_whose_commit_fails_gives_the_data_up)
{
	put(&fh, 0, a, LARGE);
	cr_assert_eq(rig_release(ino, fh2.fh), 0);
	rig.fake.fail[FAKE_COMMIT] = ETIMEDOUT;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
}

Test(fs_unstable, without_an_answer_all_that_is_lost_is_given_up)
{
	put(&fh, 0, a, 100);
	put(&fh, 1000, a, 100);
	put(&fh, 2000, a, 100);
	fake_restart();
	rig.fake.fail[FAKE_WRITE] = ETIMEDOUT; /* with call->status NFS4_OK: nobody answered */
	cr_assert_eq(rig_fsync(ino, fh.fh), ETIMEDOUT);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 4);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
}

Test(fs_unstable, a_rewrite_of_which_the_server_takes_more_than_there_was_fails)
{
	put(&fh, 0, a, 100);
	fake_restart();
	rig.fake.wrong_count = 1;
	cr_assert_eq(rig_fsync(ino, fh.fh), EIO);
	rig.fake.wrong_count = 0;
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert(fake_all_free());
}

Test(fs_unstable, a_rewrite_needs_no_more_than_the_receive_buffer)
{
	put(&fh, 0, a, LARGE);
	fake_restart();
	rig_settle();
	rig.fake.bufs_max = 2; /* one held, one to receive in */
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

Test(fs_unstable, a_full_gate_cannot_starve_the_rewrite)
{
	rig.fake.bufs_max = 4;
	rig.lane->unstable->bufs_max = 2;
	rig.lane->commit->busy = true; /* for ever */
	put(&fh, 0, a, LARGE);
	put(&fh, LARGE, a, LARGE);
	fake_restart();
	rig.fake.hold = true;
	send_fsync();
	for (int i = 0; i < 4; i++)
		send_write((uint64_t)i * 100, b, 100);
	memcpy(want, b, 100);
	memcpy(want + 100, b, 100);
	memcpy(want + 200, b, 100);
	memcpy(want + 300, b, 100);
	rig_settle();
	fake_release();
	replies(5);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(2 * LARGE);
}

/* ---- a second lane ---- */

static struct stats stats2;
static int committed_err = -1;

static void committed(struct fs_op *op, int err)
{
	committed_err = err;
	fs_op_end(op);
}

static void commit_on(struct fs_lane *l)
{
	struct fs_op *op = fs_op_new(l);

	op->file = fs_file_get(rig_file(fh.fh));
	op->inode = fs_inode_ref(rig.fs, op->file->inode);
	op->cred = op->file->cred;
	fs_commit(op, committed);
}

Test(fs_unstable, buffers_go_back_to_their_own_lane)
{
	struct fs_lane *l2 = fs_lane_new(rig.fs, rig.fake.r, NULL, 4, NULL, NULL, &stats2);

	put(&fh, 0, a, LARGE);
	put(&fh, LARGE, a, 100);
	fake_restart();
	commit_on(l2);
	for (int i = 0; i < 50 && rig.lane->unstable->bufs > 0; i++)
		reactor_turn(rig.fake.r, 0);
	cr_assert_eq(rig.lane->unstable->bufs, 0);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert(rig.lane->unstable->return_posted || rig.fake.bufs <= 1, "by message");
	rig_settle();
	cr_assert_eq(committed_err, 0);
	cr_assert_leq(rig.fake.bufs, 1);
	assert_stable(LARGE + 100);
	fs_lane_free(l2);
	rig.fs->lanes_cnt--;
}

Test(fs_unstable, of_two_lanes_one_writes_again_and_the_other_waits)
{
	struct fs_lane *l2 = fs_lane_new(rig.fs, rig.fake.r, NULL, 4, NULL, NULL, &stats2);

	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.hold = true;
	commit_on(l2);
	send_fsync();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	fake_release();
	replies(1);
	rig_settle();
	cr_assert_eq(committed_err, 0);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	assert_stable(LARGE);
	fs_lane_free(l2);
	rig.fs->lanes_cnt--;
}

Test(fs_unstable, a_size_without_what_is_unstable_is_not_believed)
{
	struct fuse_attr_out out;

	put(&fh, 0, a, LARGE);
	fake_restart();
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.size, LARGE);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	assert_stable(LARGE);
}

/* Both have found it lost and wait for a buffer; READs of another file have them all. */
Test(fs_unstable, of_two_that_waited_for_a_buffer_one_writes_again)
{
	struct fuse_read_in in = {.fh = ofh.fh, .size = 100};
	struct list reads;

	put(&fh, 0, a, LARGE);
	fake_restart();
	rig.fake.hold = true;
	send_fsync();
	send_fsync();
	rig_settle();
	rig.fake.bufs_max = rig.fake.bufs + 2;
	for (int i = 0; i < 3; i++)
		rig_send(FUSE_READ, oino, &in, sizeof(in), NULL, 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_READ], 3, "the last with the receive buffer");
	list_init(&reads);
	for (int i = 0; i < 3; i++) {
		struct list *node = rig.fake.pending.prev;

		list_del(node);
		list_push_back(&reads, node);
	}
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 1);
	list_splice_back(&rig.fake.pending, &reads);
	fake_release();
	replies(5);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	assert_stable(LARGE);
	cr_assert(fake_all_free());
}

/* ---- found lost while a COMMIT waited for a call ---- */

static struct rig_reply re;

/* A WRITE has the only call, and its answer is of another server. */
static uint64_t write_that_holds_up(void)
{
	uint64_t unique;

	fake_restart();
	rig.fake.calls_max = 1;
	rig.fake.hold = true;
	unique = send_write(1000, b, 100);
	rig_settle();
	return unique;
}

Test(fs_unstable, an_fsync_that_waited_for_a_call_writes_again_what_is_lost)
{
	uint64_t written, synced;

	put(&fh, 0, a, 100);
	written = write_that_holds_up();
	synced = send_fsync();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, written);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, synced);
	cr_assert_eq(re.h.error, 0);
	cr_assert_arr_eq(file->stable, a, 100);
}

Test(fs_unstable, so_does_a_close)
{
	struct fuse_release_in in = {.fh = fh2.fh};

	put(&fh2, 0, a, 100);
	write_that_holds_up();
	rig_send(FUSE_RELEASE, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	fake_release();
	while (rig_reply(&re, 100))
		;
	rig_run_for(20 * NSEC_PER_SEC);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0, "the other handle hears of it");
	cr_assert_arr_eq(file->stable, a, 100);
}

/* ---- answers that are overtaken ---- */

/* Attributes from between two WRITEs come after the answer to the second one. */
static void size_stays(int flags)
{
	struct fuse_getattr_in in = {0};
	struct fuse_open_out open;
	struct fuse_attr_out out;
	struct nfs4_attr between, now;
	uint64_t unique;

	cr_assert_eq(rig_open(ino, flags, &open), 0);
	cr_assert_eq(rig_write(ino, open.fh, 0, a, 4096, flags), 4096);
	between = file->attr;
	rig.fake.hold_ops = 1ull << FAKE_GETATTR;
	unique = rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	cr_assert_eq(rig_write(ino, open.fh, 4096, b, 4096, flags), 4096);
	now = file->attr;
	file->attr = between;
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	file->attr = now;
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.size, 8192);
	cr_assert_eq(rig_release(ino, open.fh), 0);
}

Test(fs_unstable, the_size_of_a_direct_write_stays)
{
	size_stays(O_RDWR | O_DIRECT);
}

Test(fs_unstable, the_size_of_a_durable_write_stays)
{
	size_stays(O_RDWR | O_DSYNC);
}

Test(fs_unstable, the_size_of_a_durable_direct_write_stays)
{
	size_stays(O_RDWR | O_DIRECT | O_DSYNC);
}

static void answer_after_notices(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 1000));
	while (re.h.unique == 0);
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
}

static void stat_now(struct fuse_attr_out *ret)
{
	const struct fuse_getattr_in in = {0};

	answer_after_notices(rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0));
	memcpy(ret, re.body, sizeof(*ret));
}

/* A stat is executed, another client writes, an OPEN is executed and answered; then the stat is. */
Test(fs_unstable, what_an_open_brought_is_not_taken_back)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct nfs4_attr before = file->attr, now;
	struct fuse_attr_out out;
	struct fuse_open_out open;

	rig_inode(ino)->attr_ns = 0;
	rig.fake.hold_ops = 1ull << FAKE_GETATTR;
	rig_send(FUSE_GETATTR, ino, &(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in),
		NULL, 0);
	rig_settle();
	file->attr.size = 5000;
	fake_touch(file);
	now = file->attr;
	answer_after_notices(rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0));
	memcpy(&open, re.body, sizeof(open));
	file->attr = before;
	fake_release();
	rig_settle();
	while (rig_reply(&re, 1))
		;
	file->attr = now;
	stat_now(&out);
	cr_assert_eq(out.attr.size, 5000);
	/* A server whose time has gone back is believed all the same. */
	file->attr.ctime.tv_sec -= 1000;
	file->attr.change++;
	file->attr.size = 6000;
	rig_inode(ino)->attr_ns = 0;
	stat_now(&out);
	stat_now(&out);
	cr_assert_eq(out.attr.size, 6000);
	cr_assert_gt(out.attr_valid, 0);
	cr_assert_eq(rig_release(ino, open.fh), 0);
}

/* ---- CREATE ---- */

/* By a name that the kernel did not know, while lost data is written again. */
Test(fs_unstable, a_create_that_cuts_comes_after_what_is_written_again)
{
	const struct {
		struct fuse_create_in in;
		char name[2];
	} req = {.in = {.flags = O_RDWR | O_CREAT | O_TRUNC, .mode = 0644}, .name = "f"};
	struct fuse_open_out open;
	uint64_t synced, created;

	put(&fh, 0, a, 100);
	fake_restart();
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	synced = send_fsync();
	rig_settle();
	created = rig_send(FUSE_CREATE, FUSE_ROOT_ID, &req, sizeof(req.in) + 2, NULL, 0);
	cr_assert_not(rig_reply(&re, 100), "it waits");
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert(re.h.unique == synced || re.h.unique == created);
	if (re.h.unique == created)
		memcpy(&open, re.body + sizeof(struct fuse_entry_out), sizeof(open));
	cr_assert(rig_reply(&re, 1000));
	if (re.h.unique == created)
		memcpy(&open, re.body + sizeof(struct fuse_entry_out), sizeof(open));
	cr_assert_eq(re.h.error, 0);
	rig_settle();
	cr_assert_eq(file->attr.size, 0);
	cr_assert(fs_unstable_is_empty(rig_inode(ino)));
	cr_assert_eq(rig_release(ino, open.fh), 0);
}
