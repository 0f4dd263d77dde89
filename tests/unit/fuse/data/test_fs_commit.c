/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs_file.h"
#include "file_rig.h"
#include "fs_unstable.h"

static struct fuse_open_out fh2;
static const char data[100] = "data";

static void set_up(void)
{
	file_set_up_open(100, O_RDWR);
	cr_assert_eq(rig_open(ino, O_RDWR, &fh2), 0);
}

TestSuite(fs_commit, .init = set_up, .fini = rig_down);

static void write_to(const struct fuse_open_out *h)
{
	cr_assert_eq(rig_write(ino, h->fh, 0, data, sizeof(data), O_RDWR), (int)sizeof(data));
}

Test(fs_commit, close_of_a_written_file_commits_it_once)
{
	write_to(&fh);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
}

Test(fs_commit, close_of_a_handle_that_cannot_write_asks_nothing)
{
	struct fuse_open_out reader;

	cr_assert_eq(rig_open(ino, O_RDONLY, &reader), 0);
	write_to(&fh);
	cr_assert_eq(rig_flush(ino, reader.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
}

/* The kernel writes pages of a mapping through any handle that may write. */
Test(fs_commit, close_of_a_handle_that_may_write_commits_what_others_wrote)
{
	write_to(&fh);
	cr_assert_eq(rig_flush(ino, fh2.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_arr_eq(file->stable, data, sizeof(data));
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
}

Test(fs_commit, fsync_commits_what_any_handle_wrote)
{
	write_to(&fh);
	cr_assert_eq(rig_fsync(ino, fh2.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
}

Test(fs_commit, with_another_verifier_writes_the_data_again)
{
	write_to(&fh);
	fake_restart();
	cr_assert_arr_neq(file->data, data, sizeof(data));
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.stats.verifier_changes, 1);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert_arr_eq(file->stable, data, sizeof(data));
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig_flush(ino, fh2.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
}

Test(fs_commit, data_that_cannot_be_written_again_is_an_error_once_on_each_handle)
{
	struct fuse_open_out reader;

	cr_assert_eq(rig_open(ino, O_RDONLY, &reader), 0);
	write_to(&fh);
	fake_restart();
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(rig_fsync(ino, fh.fh), ENOSPC);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig_flush(ino, fh2.fh), ENOSPC);
	cr_assert_eq(rig_flush(ino, fh2.fh), 0);
	cr_assert_eq(rig_flush(ino, reader.fh), 0, "it has written nothing");
	cr_assert_eq(rig_fsync(ino, reader.fh), ENOSPC, "but the file is not what was written");
	cr_assert_eq(rig_fsync(ino, reader.fh), 0);
	cr_assert_eq(rig.lane->unstable->bytes, 0);
}

Test(fs_commit, a_write_answered_after_the_commit_was_sent_stays_dirty)
{
	write_to(&fh);
	rig.fake.hold = true;
	/* COMMIT goes out first; the WRITE is answered before it, but started after. */
	rig_send(FUSE_FSYNC, ino, &(struct fuse_fsync_in){.fh = fh.fh},
		sizeof(struct fuse_fsync_in), NULL, 0);
	rig_settle();
	rig_send(FUSE_WRITE, ino, &(struct fuse_write_in){.fh = fh.fh, .size = sizeof(data)},
		sizeof(struct fuse_write_in), data, sizeof(data));
	rig_settle();
	/* the other way round */
	struct list *commit = list_pop_front(&rig.fake.pending);

	list_push_back(&rig.fake.pending, commit);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
}

Test(fs_commit, a_failed_commit_is_an_error_and_can_be_tried_again)
{
	write_to(&fh);
	rig.fake.fail[FAKE_COMMIT] = ETIMEDOUT;
	cr_assert_eq(rig_fsync(ino, fh.fh), ETIMEDOUT);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
}

static bool writes_the_first(const struct nfs4_call *call)
{
	return call->state == (int)FAKE_WRITE && call->u.write.offset == 0;
}

/* The WRITE that finds it and the COMMIT have the same new verifier. */
Test(fs_commit, a_loss_that_a_write_finds_meanwhile_is_fsyncs_too)
{
	uint64_t unique;

	write_to(&fh);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	unique = rig_send(FUSE_FSYNC, ino, &(struct fuse_fsync_in){.fh = fh.fh},
		sizeof(struct fuse_fsync_in), NULL, 0);
	rig_settle();
	fake_restart();
	rig.fake.holds = writes_the_first;
	cr_assert_eq(rig_write(ino, fh.fh, 8192, data, sizeof(data), O_RDWR), (int)sizeof(data));
	fake_release();
	cr_assert_not(rig_reply(&re, 50), "it is not written again yet");
	rig.fake.holds = NULL;
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert_arr_eq(file->stable, data, sizeof(data));
}

/* A handle whose COMMIT failed gives up its own extents only. */
Test(fs_commit, a_handle_that_goes_without_its_commit_takes_nothing_of_others)
{
	write_to(&fh);
	cr_assert_eq(rig_write(ino, fh2.fh, 8192, data, sizeof(data), O_RDWR), (int)sizeof(data));
	rig.fake.fail[FAKE_COMMIT] = EIO;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig_fsync(ino, fh2.fh), EIO, "of what the other wrote");
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 2);
	cr_assert_arr_eq(file->stable + 8192, data, sizeof(data));
	cr_assert_eq(rig_fsync(ino, fh2.fh), 0);
}

/* A program writes and ends, another one has the file open and syncs it later. */
Test(fs_commit, data_that_a_closed_handle_could_not_commit_is_the_others_error_once)
{
	struct fuse_open_out reader;

	cr_assert_eq(rig_open(ino, O_RDONLY, &reader), 0);
	write_to(&fh);
	rig.fake.fail[FAKE_COMMIT] = ENOSPC;
	cr_assert_eq(rig_flush(ino, fh.fh), ENOSPC);
	rig.fake.fail[FAKE_COMMIT] = ENOSPC;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig_fsync(ino, fh2.fh), ENOSPC);
	cr_assert_eq(rig_fsync(ino, fh2.fh), 0);
	cr_assert_eq(rig_fsync(ino, reader.fh), ENOSPC);
	cr_assert_eq(rig_fsync(ino, reader.fh), 0);
}

/* A mount that ends without its server: the files that are left open are closed. */
Test(fs_commit, data_that_the_end_of_a_mount_loses_is_counted)
{
	write_to(&fh);
	cr_assert_eq(rig_write(ino, fh2.fh, 8192, data, 50, O_RDWR), 50);
	cr_assert_eq(fs_losses(rig.fs).bytes, 0);
	rig.fake.dead = -ESHUTDOWN;
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 1000 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert_eq(fs_losses(rig.fs).bytes, sizeof(data) + 50);
	cr_assert_eq(fs_losses(rig.fs).files, 2);
	rig.fake.opens = 0; /* the server's, until the lease is over */
}

Test(fs_commit, data_that_was_written_back_and_refused_is_counted)
{
	rig.fs->conf.write = FS_WRITE_EAGER;
	rig.fake.fail[FAKE_WRITE] = EDQUOT;
	write_to(&fh);
	rig_settle();
	while (rig_reply(&re, 0)) /* its pages are dropped */
		;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(fs_losses(rig.fs).bytes, sizeof(data));
	cr_assert_eq(fs_losses(rig.fs).files, 1);
}

Test(fs_commit, a_commit_that_failed_and_lost_nothing_is_nobodys_error)
{
	write_to(&fh);
	rig.fake.fail[FAKE_COMMIT] = EIO;
	cr_assert_eq(rig_flush(ino, fh.fh), EIO);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_arr_eq(file->stable, data, sizeof(data));
	cr_assert_eq(rig_fsync(ino, fh2.fh), 0);
}
