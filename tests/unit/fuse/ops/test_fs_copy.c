/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_file_range. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_copy.h"
#include "fs_copy.h"

#define LARGE 200000u /* more than two reads */

static struct fake_file *from, *to;
static fuse_ino_t from_ino, to_ino;
static struct fuse_open_out from_fh, to_fh;
static struct rig_reply re;

static void set_up(void)
{
	rig_up(NULL);
	rig.fake.info.minor = 2;
	from = fake_add("from", LARGE);
	to = fake_add("to", 0);
	from_ino = rig_ino(from);
	to_ino = rig_ino(to);
	cr_assert_eq(rig_open(from_ino, O_RDONLY, &from_fh), 0);
	cr_assert_eq(rig_open(to_ino, O_RDWR, &to_fh), 0);
}

static void tear_down(void)
{
	if (rig.idle) {
		rig_down();
		return;
	}
	rig_settle();
	while (rig_reply(&re, 5))
		cr_expect_eq(re.h.unique, 0);
	rig_release(from_ino, from_fh.fh);
	rig_release(to_ino, to_fh.fh);
	rig_settle();
	cr_expect(fake_all_free());
	cr_expect_eq(rig.lane->copywait->cnt, 0);
	rig_down();
}

TestSuite(fs_copy, .init = set_up, .fini = tear_down);

static struct fuse_copy_file_range_in request(uint64_t off_in, uint64_t off_out, uint64_t len)
{
	return (struct fuse_copy_file_range_in){
		.fh_in = from_fh.fh,
		.off_in = off_in,
		.nodeid_out = to_ino,
		.fh_out = to_fh.fh,
		.off_out = off_out,
		.len = len,
	};
}

static int64_t answer(void)
{
	const struct fuse_write_out *out = (const void *)re.body;

	if (re.h.error)
		return re.h.error;
	cr_assert_eq(re.len, sizeof(*out));
	return out->size;
}

/* The next answer; notices for the kernel between are not. */
static void next(unsigned int wait_ms)
{
	do
		cr_assert(rig_reply(&re, wait_ms));
	while (!re.h.unique);
}

static int64_t end(unsigned int wait_ms)
{
	next(wait_ms);
	return answer();
}

static bool is_answered(unsigned int wait_ms)
{
	while (rig_reply(&re, wait_ms))
		if (re.h.unique)
			return true;
	return false;
}

static int64_t send_copy(const struct fuse_copy_file_range_in *in)
{
	rig_send(FUSE_COPY_FILE_RANGE, from_ino, in, sizeof(*in), NULL, 0);
	return end(3000);
}

/* The bytes copied, or -errno. */
static int64_t copy(uint64_t off_in, uint64_t off_out, uint64_t len)
{
	struct fuse_copy_file_range_in in = request(off_in, off_out, len);

	return send_copy(&in);
}

/* Starts one that the server goes on with. */
static void begin(uint64_t len)
{
	struct fuse_copy_file_range_in in = request(0, 0, len);

	fake_copy.async = true;
	rig_send(FUSE_COPY_FILE_RANGE, from_ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	cr_assert_not_null(fake_copy.off);
	cr_assert_eq(rig.fake.calls, 0, "who waits holds no call");
	cr_assert_eq(rig.lane->copywait->cnt, 1);
}

static void is_copied(uint64_t off_in, uint64_t off_out, uint64_t len)
{
	cr_expect_arr_eq(to->data + off_out, from->data + off_in, len);
	cr_expect_arr_eq(to->stable + off_out, from->data + off_in, len);
}

/* ---- synchronous ---- */

Test(fs_copy, the_server_copies_and_no_data_travels)
{
	struct fuse_attr_out out;

	cr_assert_eq(copy(100, 5000, 1000), 1000);
	is_copied(100, 5000, 1000);
	cr_expect_eq(rig.fake.count[FAKE_READ] + rig.fake.count[FAKE_WRITE], 0);
	cr_expect_eq(rig.fake.count[FAKE_COMMIT], 0, "it is durable");
	cr_assert(fake_copy.last.synchronous);
	cr_assert_eq(rig_getattr(to_ino, &out), 0);
	cr_expect_eq(out.attr.size, 6000);
	cr_expect_eq(rig.fake.count[FAKE_GETATTR], 0, "the attributes came with it");
}

/* A daemon that takes over does again what was not answered, and the others wait for that. */
Test(fs_copy, a_long_one_is_answered_in_parts)
{
	cr_assert_eq(copy(0, 0, 1u << 30), LARGE);
	cr_assert_eq(fake_copy.last.count, (64u << 20) - LARGE, "behind the source's end");
}

/* Its inodes change places on the way. */
Test(fs_copy, each_inode_is_held_as_before)
{
	uint32_t from_refs = rig_inode(from_ino)->refs, to_refs = rig_inode(to_ino)->refs;

	cr_assert_eq(copy(100, 5000, 1000), 1000);
	cr_expect_eq(rig_inode(from_ino)->refs, from_refs);
	cr_expect_eq(rig_inode(to_ino)->refs, to_refs);
}

Test(fs_copy, parts_make_a_whole)
{
	fake_copy.part = 300;
	cr_assert_eq(copy(7, 0, 1000), 1000);
	is_copied(7, 0, 1000);
	cr_expect_eq(rig.fake.count[FAKE_COPY], 4);
}

Test(fs_copy, what_is_not_durable_is_committed_once)
{
	fake_copy.part = 300;
	fake_copy.unstable = true;
	cr_assert_eq(copy(0, 0, 1000), 1000);
	is_copied(0, 0, 1000);
	cr_expect_eq(rig.fake.count[FAKE_COMMIT], 1);
}

Test(fs_copy, what_the_server_lost_is_copied_again)
{
	fake_copy.part = 300;
	fake_copy.unstable = true;
	fake_copy.restarts = 2;
	cr_assert_eq(copy(0, 0, 1000), 1000);
	is_copied(0, 0, 1000);
	rig.fake.restarts_in_commit = 1;
	cr_assert_eq(copy(0, 0, 2000), 2000);
	is_copied(0, 0, 2000);
}

Test(fs_copy, but_not_for_ever)
{
	fake_copy.unstable = true;
	rig.fake.restarts_in_commit = 100;
	cr_expect_eq(copy(0, 0, 1000), -EOPNOTSUPP);
	cr_expect_leq(rig.fake.count[FAKE_COPY], 5);
}

Test(fs_copy, what_goes_beyond_the_sources_end_is_short)
{
	cr_expect_eq(copy(LARGE - 10, 0, 100), 10);
	cr_expect_eq(copy(LARGE, 0, 100), -EOPNOTSUPP, "the kernel sees for itself");
	cr_expect_eq(copy(0, 0, 0), 0);
}

Test(fs_copy, what_cannot_be_is_refused)
{
	struct fuse_copy_file_range_in in = request(0, 0, 10);

	in.flags = 1;
	cr_expect_eq(
		rig_call(&re, FUSE_COPY_FILE_RANGE, from_ino, &in, sizeof(in), NULL, 0), EINVAL);
	in = request(0, 1000, 10);
	in.nodeid_out = from_ino;
	in.fh_out = from_fh.fh;
	cr_expect_eq(send_copy(&in), -EOPNOTSUPP, "one file, not by blocks");
	rig.fake.info.minor = 1;
	cr_expect_eq(copy(0, 0, 10), -ENOSYS, "the kernel remembers");
	cr_expect_eq(rig.fake.count[FAKE_COPY], 0);
}

Test(fs_copy, where_the_kernel_can_do_it_itself_it_is_asked_to)
{
	static const struct {
		int err;
		int answer;
	} rows[] = {{EOPNOTSUPP, EOPNOTSUPP}, {EXDEV, EXDEV}, {EINVAL, EOPNOTSUPP},
		{EACCES, EOPNOTSUPP}, {EBADF, EOPNOTSUPP}, {ENOSPC, ENOSPC}, {ESTALE, ESTALE},
		{EIO, EIO}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rig.fake.fail[FAKE_COPY] = rows[i].err;
		cr_expect_eq(copy(0, 0, 10), -rows[i].answer, "%s", strerror(rows[i].err));
	}
	rig.fake.fail[FAKE_COMMIT] = EIO;
	fake_copy.unstable = true;
	cr_expect_eq(copy(0, 0, 10), -EIO);
}

Test(fs_copy, a_source_that_cannot_be_committed_is_copied_by_the_program)
{
	struct fuse_open_out out;

	cr_assert_eq(rig_open(from_ino, O_WRONLY, &out), 0);
	cr_assert_eq(rig_write(from_ino, out.fh, 0, "new", 3, O_WRONLY), 3);
	rig.fake.fail[FAKE_COMMIT] = EIO;
	cr_assert_eq(copy(0, 0, 10), -EOPNOTSUPP);
	cr_assert_eq(rig.fake.count[FAKE_COPY], 0);
	cr_assert_eq(rig_fsync(from_ino, out.fh), 0);
	cr_assert_eq(rig_release(from_ino, out.fh), 0);
}

Test(fs_copy, what_is_unstable_of_both_files_is_committed_before)
{
	struct fuse_open_out out;
	uint8_t data[64];

	memset(data, 7, sizeof(data));
	cr_assert_eq(rig_open(from_ino, O_WRONLY, &out), 0);
	cr_assert_eq(rig_write(from_ino, out.fh, 0, data, sizeof(data), 0), sizeof(data));
	memset(data, 9, sizeof(data));
	cr_assert_eq(rig_write(to_ino, to_fh.fh, 32, data, sizeof(data), 0), sizeof(data));
	/* What is written again would be on top of the copy, or come too late. */
	fake_restart();
	cr_assert_eq(copy(0, 0, 64), 64);
	memset(data, 7, sizeof(data));
	cr_expect_arr_eq(to->data, data, sizeof(data));
	cr_assert_eq(rig_fsync(to_ino, to_fh.fh), 0);
	cr_expect_arr_eq(to->stable, data, sizeof(data));
	memset(data, 9, sizeof(data));
	cr_expect_arr_eq(to->stable + 64, data, 32);
	cr_assert_eq(rig_release(from_ino, out.fh), 0);
}

/* ---- CLONE ---- */

Test(fs_copy, where_blocks_can_be_shared_they_are)
{
	struct fuse_attr_out out;

	fake_copy.block = 4096;
	fake_copy.async = true;
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], 1);
	cr_expect_eq(rig.fake.count[FAKE_COPY] + rig.fake.count[FAKE_COMMIT], 0);
	cr_assert_eq(rig_getattr(to_ino, &out), 0);
	cr_expect_eq(out.attr.size, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_GETATTR], 0, "the attributes came with it");
}

Test(fs_copy, what_is_no_whole_block_is_copied)
{
	fake_copy.block = 4096;
	cr_assert_eq(copy(4096, 8192, 10000), 10000);
	is_copied(4096, 8192, 10000);
	cr_expect_eq(fake_copy.last_clone.count, 8192);
	cr_expect_eq(fake_copy.last.offset, 16384);
	cr_expect_eq(fake_copy.last.count, 10000 - 8192);
	/* The source's end in the middle of the destination. */
	cr_assert_eq(rig_write(to_ino, to_fh.fh, LARGE, "beyond", 6, 0), 6);
	cr_assert_eq(copy(196608, 196608, LARGE - 196608), LARGE - 196608);
	cr_expect_arr_eq(to->data + LARGE, "beyond", 6);
	cr_expect_eq(fake_copy.last.count, LARGE - 196608, "%lu", fake_copy.last.count);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], 1);
}

Test(fs_copy, what_cannot_be_shared_is_not_asked_for)
{
	fake_copy.block = 4096;
	cr_assert_eq(copy(1, 0, 10000), 10000);
	cr_assert_eq(copy(0, 1, 10000), 10000);
	cr_assert_eq(copy(0, 0, 100), 100);
	rig.fake.info.fs.clone_blksize = 16384;
	cr_assert_eq(copy(4096, 0, 30000), 30000);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], 0);
	cr_assert_eq(copy(16384, 0, 30000), 30000);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], 1);
	cr_expect_eq(fake_copy.last_clone.count, 16384);
}

Test(fs_copy, a_server_that_cannot_clone_is_asked_once)
{
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], 1);
}

static void in_file_system(uint64_t number)
{
	from->attr.fsid_major = to->attr.fsid_major = number;
	rig_inode(from_ino)->attr.fsid_major = number;
	rig_inode(to_ino)->attr.fsid_major = number;
}

/* Each file system is asked once, as long as so many can be remembered. */
Test(fs_copy, file_systems_that_cannot_clone_are_told_apart)
{
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < FS_NO_CLONE; i++) {
			in_file_system(i);
			cr_assert_eq(copy(0, 0, LARGE), LARGE);
			cr_expect_eq(rig.fake.count[FAKE_CLONE], round ? FS_NO_CLONE : i + 1);
		}
	}
	fake_copy.block = 4096;
	in_file_system(FS_NO_CLONE);
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	cr_expect_eq(rig.fake.count[FAKE_CLONE], FS_NO_CLONE + 1);
	cr_expect_eq(rig.fake.count[FAKE_COPY], 2 * FS_NO_CLONE);
}

Test(fs_copy, what_it_does_not_clone_it_copies)
{
	static const int errs[] = {EINVAL, EXDEV, EACCES, EOPNOTSUPP};

	fake_copy.block = 4096;
	for (unsigned int i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		rig.fake.fail[FAKE_CLONE] = errs[i]; /* EOPNOTSUPP: a stateid, not CLONE itself */
		cr_assert_eq(copy(0, 0, LARGE), LARGE);
		is_copied(0, 0, LARGE);
		cr_expect_eq(rig.fake.count[FAKE_CLONE], i + 1);
		cr_expect_eq(rig.fake.count[FAKE_COPY], i + 1);
	}
	rig.fake.fail[FAKE_CLONE] = ENOSPC;
	cr_expect_eq(copy(0, 0, LARGE), -ENOSPC);
	rig.fake.fail[FAKE_CLONE] = ENOSPC;
	cr_assert_eq(copy(0, 0, 8192), -ENOSPC);
}

Test(fs_copy, within_a_file_blocks_are_shared_or_the_kernel_copies)
{
	struct fuse_copy_file_range_in in = request(0, 8192, 4096 + 10);

	cr_assert_eq(copy(0, 0, 10000), 10000);
	fake_copy.block = 4096;
	rig.fs->clones->cnt = 0;
	in.fh_in = to_fh.fh;
	rig_send(FUSE_COPY_FILE_RANGE, to_ino, &in, sizeof(in), NULL, 0);
	cr_assert_eq(end(3000), 4096, "whole blocks");
	cr_expect_arr_eq(to->data + 8192, from->data, 4096);
	cr_expect_eq(rig.fake.count[FAKE_COPY], 1, "that of the start");
	in.off_in = 4096;
	in.off_out = 12288;
	in.len = 10;
	rig_send(FUSE_COPY_FILE_RANGE, to_ino, &in, sizeof(in), NULL, 0);
	cr_assert_eq(end(3000), -EOPNOTSUPP, "the rest");
	in.len = 4096;
	rig.fake.fail[FAKE_CLONE] = EINVAL;
	rig_send(FUSE_COPY_FILE_RANGE, to_ino, &in, sizeof(in), NULL, 0);
	cr_assert_eq(end(3000), -EOPNOTSUPP, "refused");
	cr_expect_eq(rig.fake.count[FAKE_COPY], 1);
}

/* ---- asynchronous ---- */

Test(fs_copy, a_large_one_may_go_on_and_its_end_is_heard_of)
{
	begin(LARGE);
	cr_expect_not(fake_copy.last.synchronous);
	cr_assert_not(is_answered(20));
	fake_copy_end(NFS4_OK, LARGE, FILE_SYNC4);
	cr_assert_eq(end(1000), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_COPY], 1);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_CANCEL], 0);
}

Test(fs_copy, its_end_may_be_known_already)
{
	fake_copy.async = fake_copy.early = true;
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	is_copied(0, 0, LARGE);
}

Test(fs_copy, an_end_that_is_not_durable_is_committed)
{
	begin(LARGE);
	fake_copy_end(NFS4_OK, LARGE, UNSTABLE4);
	cr_assert_eq(end(1000), LARGE);
	is_copied(0, 0, LARGE);
}

Test(fs_copy, an_end_that_is_short_goes_on)
{
	begin(LARGE);
	fake_copy_end(NFS4_OK, 150000, FILE_SYNC4);
	cr_assert_eq(end(1000), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(fake_copy.last.src_offset, 150000);
}

Test(fs_copy, an_error_comes_again_synchronously)
{
	begin(LARGE);
	rig.fake.fail[FAKE_COPY] = ENOSPC;
	fake_copy_end(NFS4ERR_NOSPC, 1000, FILE_SYNC4);
	cr_assert_eq(end(1000), -ENOSPC);
}

Test(fs_copy, without_a_back_channel_none_goes_on)
{
	fake_copy.async = fake_copy.no_back = true;
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
	cr_expect(fake_copy.last.synchronous);
}

Test(fs_copy, it_is_asked_for_and_heard_of_after_all)
{
	begin(LARGE);
	for (int i = 0; i < 50 && rig.fake.count[FAKE_OFFLOAD_STATUS] == 0; i++)
		cr_assert_not(is_answered(100));
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_STATUS], 1);
	fake_copy_end(NFS4_OK, LARGE, FILE_SYNC4);
	cr_assert_eq(end(1000), LARGE);
}

Test(fs_copy, what_was_abandoned_is_copied_again)
{
	begin(LARGE);
	fake_copy.poll_err = -EIO;
	fake_copy.poll_status = NFS4ERR_BAD_STATEID;
	cr_assert_eq(end(5000), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect(fake_copy.last.synchronous);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_STATUS], 2, "the callback had its time");
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_CANCEL], 0);
	/* It will not be heard of next time either. */
	cr_assert_eq(copy(0, 0, LARGE), LARGE);
}

Test(fs_copy, an_end_that_comes_with_the_answer_is_good)
{
	begin(LARGE);
	rig.fake.hold_ops = 1u << FAKE_OFFLOAD_STATUS;
	cr_assert_not(is_answered(1200));
	fake_copy.complete = true;
	fake_copy_end(NFS4_OK, LARGE, FILE_SYNC4);
	cr_assert_not(is_answered(20), "its call is in use");
	fake_release();
	cr_assert_eq(end(1000), LARGE);
	cr_expect_eq(rig.fake.count[FAKE_COPY], 1);
}

Test(fs_copy, a_server_that_cannot_be_asked_is_told_to_stop)
{
	begin(LARGE);
	fake_copy.poll_err = -EOPNOTSUPP;
	fake_copy.poll_status = NFS4ERR_NOTSUPP;
	cr_assert_eq(end(5000), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_CANCEL], 1);
	cr_expect_not(fake_copy.running);
}

Test(fs_copy, what_a_restart_took_is_copied_again)
{
	begin(LARGE);
	fake_copy.new_client = true;
	fake_copy.async = false;
	cr_assert_eq(end(3000), LARGE);
	is_copied(0, 0, LARGE);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_STATUS] + rig.fake.count[FAKE_OFFLOAD_CANCEL], 0);
}

Test(fs_copy, who_has_data_to_write_again_does_not_wait_for_it)
{
	begin(LARGE);
	rig.fake.calls_max = 1;
	cr_assert_eq(rig_write(to_ino, to_fh.fh, 250000, "data", 4, 0), 4);
	fake_restart();
	cr_assert_eq(rig_fsync(to_ino, to_fh.fh), 0);
	cr_expect_arr_eq(to->stable + 250000, "data", 4);
	fake_copy_end(NFS4_OK, LARGE, FILE_SYNC4);
	cr_assert_eq(end(1000), LARGE);
}

Test(fs_copy, a_dead_session_ends_it)
{
	begin(LARGE);
	rig.fake.dead = -EIO;
	cr_assert_eq(end(3000), -EIO);
	rig.fake.dead = 0;
	cr_expect_null(fake_copy.off);
}

Test(fs_copy, a_lane_that_stops_ends_it)
{
	begin(LARGE);
	fs_lane_stop(rig.lane);
	cr_assert_eq(end(3000), -EINTR);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_CANCEL], 1);
	for (int i = 0; i < 1000 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_expect_eq(rig.lane->copywait->cnt, 0);
}

/* ---- programs that die ---- */

Test(fs_copy, the_server_stops_when_the_program_is_killed)
{
	struct fuse_copy_file_range_in in = request(0, 0, LARGE);
	struct fuse_interrupt_in intr;
	siginfo_t info;
	pid_t victim = fork();

	if (victim == 0) {
		for (;;)
			pause();
	}
	kill(victim, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)victim, &info, WEXITED | WNOWAIT), 0);
	fake_copy.async = true;
	intr.unique = rig_send_of(victim, FUSE_COPY_FILE_RANGE, from_ino, &in, sizeof(in));
	rig_settle();
	cr_assert(fake_copy.running);
	rig_send_of(0, FUSE_INTERRUPT, 0, &intr, sizeof(intr));
	cr_assert_eq(end(3000), -EINTR);
	cr_assert(fake_copy.running);
	/* Neither file is closed before, and nobody's data is overtaken. */
	rig_send(FUSE_WRITE, to_ino, &(struct fuse_write_in){.fh = to_fh.fh, .size = 4},
		sizeof(struct fuse_write_in), "data", 4);
	rig_settle();
	cr_expect_eq(rig.fake.count[FAKE_WRITE], 0);
	rig_send(FUSE_RELEASE, from_ino, &(struct fuse_release_in){.fh = from_fh.fh},
		sizeof(struct fuse_release_in), NULL, 0);
	next(3000);
	cr_assert_eq(re.h.error, 0);
	cr_expect_eq(rig.fake.count[FAKE_CLOSE], 0);
	cr_assert_eq(end(3000), 4);
	cr_expect_not(fake_copy.running);
	cr_expect_eq(rig.fake.count[FAKE_OFFLOAD_CANCEL], 1);
	rig_settle();
	cr_expect_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_not(is_answered(20));
	cr_assert_eq(rig_open(from_ino, O_RDONLY, &from_fh), 0);
	waitpid(victim, NULL, 0);
}
