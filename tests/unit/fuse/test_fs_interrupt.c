/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs_rig.h"

/* ---- what /proc says ---- */

#define STATUS(pending, shared, blocked, ignored, caught)                                          \
	"Name:\tcat\nState:\tD (disk sleep)\nGroups:\t0 \nThreads:\t1\nSigQ:\t1/96365\n"           \
	"SigPnd:\t" pending "\nShdPnd:\t" shared "\nSigBlk:\t" blocked "\nSigIgn:\t" ignored       \
	"\nSigCgt:\t" caught "\nCapInh:\t0000000000000000\n"
#define NONE "0000000000000000"

Test(fs_interrupt, sigkill_of_a_thread_or_of_the_program_kills)
{
	cr_assert(fs_proc_is_killed(STATUS("0000000000000100", NONE, NONE, NONE, NONE)));
	cr_assert(fs_proc_is_killed(STATUS(NONE, "0000000000000100", NONE, NONE, NONE)));
	cr_assert_not(fs_proc_is_killed(STATUS(NONE, NONE, NONE, NONE, NONE)));
}

Test(fs_interrupt, a_signal_that_is_blocked_ignored_or_handled_does_not_kill)
{

	cr_assert(fs_proc_is_killed(STATUS(NONE, "0000000000004000", NONE, NONE, NONE)));
	cr_assert_not(fs_proc_is_killed(
		STATUS(NONE, "0000000000004000", "0000000000004000", NONE, NONE)));
	cr_assert_not(fs_proc_is_killed(
		STATUS(NONE, "0000000000004000", NONE, "0000000000004000", NONE)));
	cr_assert_not(fs_proc_is_killed(
		STATUS(NONE, "0000000000004000", NONE, NONE, "0000000000004000")));
	/* SIGALRM is handled, and SIGTERM behind it is not */
	cr_assert(fs_proc_is_killed(
		STATUS(NONE, "0000000000006000", NONE, NONE, "0000000000002000")));
}

Test(fs_interrupt, signals_that_stop_or_mean_nothing_do_not_kill)
{
	/* CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH: 17 to 23 and 28 */
	cr_assert_not(fs_proc_is_killed(STATUS(NONE, "00000000087f0000", NONE, NONE, NONE)));
	cr_assert(fs_proc_is_killed(STATUS(NONE, "8000000000000000", NONE, NONE, NONE)),
		"a real-time signal does");
}

Test(fs_interrupt, a_status_that_says_nothing_kills_nobody)
{
	cr_assert_not(fs_proc_is_killed(""));
	cr_assert_not(fs_proc_is_killed("SigPnd:"));
	cr_assert_not(fs_proc_is_killed("\nSigPnd:\nShdPnd:\n"));
}

/* proc(5): 52 fields, flags the 9th, exit_code the last. */
#define STAT(name, flags, code)                                                                    \
	"17 " name " D 1 17 17 0 -1 " flags " 1 2 3 4 5 6 7 8 20 0 1 0 100 1000 10 1 2 3 4 5 6 7 " \
	"0 0 0 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 6 7 " code "\n"

Test(fs_interrupt, a_program_that_a_signal_ends_is_dying_until_it_is_gone)
{
	cr_assert(fs_proc_dies_of_signal(STAT("(cat)", "4194564", "9")));
	cr_assert(fs_proc_dies_of_signal(STAT("(cat)", "4194564", "139")), "with a core dump");
	cr_assert_not(fs_proc_dies_of_signal(STAT("(cat)", "4194560", "9")), "it is stopped");
}

Test(fs_interrupt, a_program_that_exits_by_itself_waits_for_its_data)
{
	cr_assert_not(fs_proc_dies_of_signal(STAT("(cat)", "4194564", "0")));
	cr_assert_not(fs_proc_dies_of_signal(STAT("(cat)", "4194564", "256")));
}

Test(fs_interrupt, a_name_may_contain_anything)
{
	cr_assert(fs_proc_dies_of_signal(STAT("(a) D 1 (b)", "4", "15")));
	cr_assert_not(fs_proc_dies_of_signal("17 (cat) D 1 17"));
	cr_assert_not(fs_proc_dies_of_signal(""));
}

/* ---- requests of programs that die ---- */

static struct fake_file *file;
static struct fuse_open_out fh;
static fuse_ino_t ino;
static struct rig_reply re;
static pid_t victim;

/* A program that was killed and stays to be looked at. */
static void set_up(void)
{
	siginfo_t info;

	rig_up(NULL);
	file = fake_add("f", 100000);
	ino = rig_ino(file);
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
	victim = fork();
	if (victim == 0) {
		for (;;)
			pause();
	}
	kill(victim, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)victim, &info, WEXITED | WNOWAIT), 0);
}

static void tear_down(void)
{
	waitpid(victim, NULL, 0);
	rig_down();
}

TestSuite(fs_interrupted, .init = set_up, .fini = tear_down);

static uint64_t send_of(
	pid_t pid, uint32_t opcode, uint64_t nodeid, const void *arg, size_t arg_len)
{
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + arg_len),
		.opcode = opcode,
		.unique = (rig.unique += 2),
		.nodeid = nodeid,
		.pid = (uint32_t)pid,
	};
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)arg, arg_len}};

	cr_assert_eq(writev(rig.peer, iov, 2), (ssize_t)h.len);
	return h.unique;
}

static uint64_t send_read(pid_t pid)
{
	struct fuse_read_in in = {.fh = fh.fh, .size = 65536};

	return send_of(pid, FUSE_READ, ino, &in, sizeof(in));
}

static void send_interrupt(uint64_t unique)
{
	struct fuse_interrupt_in in = {.unique = unique};

	send_of(0, FUSE_INTERRUPT, 0, &in, sizeof(in));
}

static void expect_eintr(uint64_t unique, unsigned int wait_ms)
{
	cr_assert(rig_reply(&re, wait_ms));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, -EINTR);
}

Test(fs_interrupted, a_killed_program_does_not_wait_for_the_server)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(victim);
	rig_settle();
	send_interrupt(unique);
	expect_eintr(unique, 3000);
	cr_assert_not(fake_all_free(), "the READ may still write into its buffer");
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
	cr_assert_not(rig_reply(&re, 20), "one answer is enough");
}

Test(fs_interrupted, nor_does_one_that_the_kernel_says_nothing_about)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(victim);
	expect_eintr(unique, 5000);
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_interrupted, a_living_program_waits_on)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(getpid());
	rig_settle();
	send_interrupt(unique);
	cr_assert_not(rig_reply(&re, 1500));
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.len, 65536);
}

Test(fs_interrupted, the_file_is_not_closed_before_its_read_has_ended)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(victim);
	rig_settle();
	send_interrupt(unique);
	expect_eintr(unique, 3000);
	rig.fake.hold = false;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 0);
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
}

Test(fs_interrupted, a_file_opened_for_nobody_is_closed)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_of(victim, FUSE_OPEN, ino, &in, sizeof(in));
	rig_settle();
	send_interrupt(unique);
	expect_eintr(unique, 3000);
	rig.fake.hold = false;
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(rig.fake.opens, 1, "the one of the set-up");
}

/* The program's last act: the kernel waits for it whatever happens. */
Test(fs_interrupted, a_lane_that_is_full_still_reads_what_dying_programs_ask)
{
	struct fuse_flush_in in = {.fh = fh.fh};
	struct fuse_access_in access_in = {.mask = R_OK};
	uint64_t unique, flush;

	rig.fake.hold = true;
	unique = send_read(victim);
	for (int i = 0; i < 20; i++)
		send_of(getpid(), FUSE_ACCESS, ino, &access_in, sizeof(access_in));
	rig_settle();
	flush = send_of(victim, FUSE_FLUSH, ino, &in, sizeof(in));
	expect_eintr(unique, 5000);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, flush);
	fake_release();
	rig.fake.hold = false;
	for (int i = 0; i < 20; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.h.error, 0);
	}
	rig_settle();
	cr_assert(fake_all_free());
}
