/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs_metalane.h"
#include "fs_rig.h"
#include "fs_unstable.h"

#define READS 60u /* the rig's lane has 16 operations */

static struct fs_lane *meta;
static struct stats meta_stats;
static bool meta_idle;
static struct fake_file *file;
static struct fuse_open_out fh;
static fuse_ino_t ino;
static struct rig_reply re;

static void on_report(void *ctx, enum fs_lane_event event)
{
	meta_idle = event == FS_LANE_ENDED;
}

static void start(bool with)
{
	const struct fs_conf conf = {
		.source = "server:/export",
		.mountpoint = "/nowhere",
		.cto = true,
		.metalane = with,
	};

	rig_up(&conf);
	rig.fake.calls_max = 2 * READS;
	if (with) {
		meta = fs_lane_new(rig.fs, rig.fake.r, NULL, 4, on_report, NULL, &meta_stats);
		cr_assert_not_null(meta);
		fs_metalane_make(meta);
		cr_assert_eq(fs_lane_start(meta), 0);
	}
	file = fake_add("f", 100000);
	ino = rig_ino(file);
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
}

static void set_up(void)
{
	start(true);
}

static void tear_down(void)
{
	if (meta) {
		fs_lane_stop(meta);
		fs_lane_stop(rig.lane);
		for (int i = 0; i < 1000 && !(meta_idle && rig.idle); i++)
			rig_turn();
		cr_expect(meta_idle);
		fs_lane_free(meta);
	}
	rig_down();
}

TestSuite(fs_metalane, .init = set_up, .fini = tear_down);

static void send_reads(unsigned int cnt)
{
	struct fuse_read_in in = {.fh = fh.fh, .size = 4096};

	for (unsigned int i = 0; i < cnt; i++)
		rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
}

Test(fs_metalane, data_and_what_waits_for_it_is_not_metadata)
{
	static const uint32_t data[] = {FUSE_READ, FUSE_WRITE, FUSE_FSYNC, FUSE_FLUSH, FUSE_RELEASE,
		FUSE_FALLOCATE, FUSE_LSEEK, FUSE_COPY_FILE_RANGE, FUSE_FORGET, FUSE_BATCH_FORGET,
		FUSE_INTERRUPT, FUSE_INIT, FUSE_DESTROY, 0, UINT32_MAX};

	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++)
		cr_assert_not(fs_metalane_is_metadata(data[i]), "%u", data[i]);
	cr_assert(fs_metalane_is_metadata(FUSE_GETATTR));
	cr_assert(fs_metalane_is_metadata(FUSE_SETLKW));
}

Test(fs_metalane, the_metadata_lane_answers_what_carries_no_data)
{
	struct fuse_attr_out out;
	uint64_t before = rig.stats.handed_over;

	cr_assert_geq(before, 1, "the OPEN of the set-up");
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.size, 100000);
	cr_assert_eq(rig.stats.handed_over, before + 1);
	cr_assert_eq(meta_stats.fuse_replies, before + 1);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), 4096);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "abc", 3, O_RDWR), 3);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig.stats.handed_over, before + 1);
	cr_assert_eq(meta_stats.fuse_replies, before + 1);
}

Test(fs_metalane, a_stat_does_not_wait_for_reads)
{
	struct fuse_getattr_in in = {0};
	uint64_t unique;

	rig.fake.hold_ops = 1u << FAKE_READ;
	send_reads(READS);
	rig_settle();
	unique = rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	rig.fake.hold_ops = 0;
	fake_release();
	for (unsigned int i = 0; i < READS; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.len, 4096);
	}
}

TestSuite(fs_no_handover, .fini = rig_down);

Test(fs_no_handover, without_such_a_lane_it_does)
{
	struct fuse_getattr_in in = {0};
	uint64_t unique;

	start(false);
	rig.fake.hold_ops = 1u << FAKE_READ;
	send_reads(READS);
	rig_settle();
	unique = rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	cr_assert_not(rig_reply(&re, 100));
	rig.fake.hold_ops = 0;
	fake_release();
	for (unsigned int i = 0; i < READS; i++)
		cr_assert(rig_reply(&re, 3000));
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
}

/* WRITEs that wait for a call keep their buffers; READs must leave some to receive into. */
Test(fs_metalane, nor_for_reads_that_have_taken_all_buffers_but_a_few)
{
	struct fuse_attr_out out;

	rig.fake.hold_ops = 1u << FAKE_READ;
	send_reads(READS);
	rig_settle();
	cr_assert_geq(rig.fake.bufs_max - rig.fake.bufs, meta->unstable->bufs_max / 2 - 1);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	rig.fake.hold_ops = 0;
	fake_release();
	for (unsigned int i = 0; i < READS; i++)
		cr_assert(rig_reply(&re, 3000));
}

Test(fs_metalane, what_is_too_long_to_be_forwarded_stays)
{
	struct {
		struct fuse_setxattr_in in;
		char name_and_value[8 + 2000];
	} set = {{.size = 2000}, "user.ab"};
	uint64_t before = rig.stats.handed_over;

	/* libfuse 3.14 on a kernel without SETXATTR_EXT: the short form of the header. */
	rig_call(&re, FUSE_SETXATTR, ino, &set, FUSE_COMPAT_SETXATTR_IN_SIZE, set.name_and_value,
		sizeof(set.name_and_value));
	cr_assert_eq(rig.stats.handed_over, before);
}

Test(fs_metalane, more_than_the_lane_has_operations_wait_their_turn)
{
	struct fuse_getattr_in in = {0};
	struct fuse_attr_out out;

	rig.fake.hold_ops = 1u << FAKE_GETATTR;
	for (unsigned int i = 0; i < 100; i++)
		rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	rig.fake.hold_ops = 0;
	fake_release();
	for (unsigned int i = 0; i < 100; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.h.error, 0);
	}
	cr_assert_eq(rig_getattr(ino, &out), 0);
}

Test(fs_metalane, an_interrupt_may_come_before_its_request)
{
	struct {
		struct fuse_in_header h;
		char name[6];
	} lookup = {
		{.len = sizeof(lookup), .opcode = FUSE_LOOKUP, .nodeid = FUSE_ROOT_ID}, "other"};
	pid_t victim = fork();
	siginfo_t info;

	if (victim == 0) {
		for (;;)
			pause();
	}
	kill(victim, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)victim, &info, WEXITED | WNOWAIT), 0);
	fake_add("other", 5);
	lookup.h.len = (uint32_t)(sizeof(lookup.h) + sizeof(lookup.name));
	lookup.h.uid = geteuid();
	lookup.h.gid = getegid();
	lookup.h.pid = (uint32_t)victim;
	lookup.h.unique = (rig.unique += 2);
	rig.fake.hold = true;
	fs_metalane_interrupt(meta, lookup.h.unique);
	cr_assert_eq(write(rig.peer, &lookup, lookup.h.len), (ssize_t)lookup.h.len);
	cr_assert(rig_reply(&re, 500));
	cr_assert_eq(re.h.unique, lookup.h.unique);
	cr_assert_eq(re.h.error, -EINTR);
	rig.fake.hold = false;
	fake_release();
	rig_settle();
	waitpid(victim, NULL, 0);
}

Test(fs_metalane, the_metadata_lane_ends_after_those_that_read)
{
	struct fuse_attr_out out;

	fs_lane_stop(meta);
	rig_settle();
	cr_assert_not(meta_idle);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
}
