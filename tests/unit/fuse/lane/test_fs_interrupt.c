/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs_interrupt.h"
#include "file_rig.h"

/* ---- what /proc says ---- */

#define STATUS(pending, shared, blocked, ignored, caught)                                          \
	"Name:\tcat\nState:\tD (disk sleep)\nGroups:\t0 \nThreads:\t1\nSigQ:\t1/96365\n"           \
	"SigPnd:\t" pending "\nShdPnd:\t" shared "\nSigBlk:\t" blocked "\nSigIgn:\t" ignored       \
	"\nSigCgt:\t" caught "\nCapInh:\t0000000000000000\n"
#define NONE "0000000000000000"

Test(fs_interrupt, sigkill_of_a_thread_or_of_the_program_kills)
{
	cr_assert(fs_interrupt_is_killed(STATUS("0000000000000100", NONE, NONE, NONE, NONE)));
	cr_assert(fs_interrupt_is_killed(STATUS(NONE, "0000000000000100", NONE, NONE, NONE)));
	cr_assert_not(fs_interrupt_is_killed(STATUS(NONE, NONE, NONE, NONE, NONE)));
}

Test(fs_interrupt, a_signal_that_is_blocked_ignored_or_handled_does_not_kill)
{

	cr_assert(fs_interrupt_is_killed(STATUS(NONE, "0000000000004000", NONE, NONE, NONE)));
	cr_assert_not(fs_interrupt_is_killed(
		STATUS(NONE, "0000000000004000", "0000000000004000", NONE, NONE)));
	cr_assert_not(fs_interrupt_is_killed(
		STATUS(NONE, "0000000000004000", NONE, "0000000000004000", NONE)));
	cr_assert_not(fs_interrupt_is_killed(
		STATUS(NONE, "0000000000004000", NONE, NONE, "0000000000004000")));
	/* SIGALRM is handled, and SIGTERM behind it is not */
	cr_assert(fs_interrupt_is_killed(
		STATUS(NONE, "0000000000006000", NONE, NONE, "0000000000002000")));
}

Test(fs_interrupt, signals_that_stop_or_mean_nothing_do_not_kill)
{
	/* CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH: 17 to 23 and 28 */
	cr_assert_not(fs_interrupt_is_killed(STATUS(NONE, "00000000087f0000", NONE, NONE, NONE)));
	cr_assert(fs_interrupt_is_killed(STATUS(NONE, "8000000000000000", NONE, NONE, NONE)),
		"a real-time signal does");
}

/* gdb's ^C and the like: the tracer decides what its program gets. */
Test(fs_interrupt, of_a_traced_program_only_sigkill_is_certain)
{
	cr_assert_not(fs_interrupt_is_killed("State:\tD\nTracerPid:\t4711\n" STATUS(
		"0000000000000002", NONE, NONE, NONE, NONE)));
	cr_assert_not(fs_interrupt_is_killed("State:\tD\nTracerPid:\t4711\n" STATUS(
		NONE, "0000000000004000", NONE, NONE, NONE)));
	cr_assert(fs_interrupt_is_killed("State:\tD\nTracerPid:\t4711\n" STATUS(
		"0000000000000100", NONE, NONE, NONE, NONE)));
	cr_assert(fs_interrupt_is_killed(
		"State:\tD\nTracerPid:\t0\n" STATUS(NONE, "0000000000004000", NONE, NONE, NONE)));
}

Test(fs_interrupt, a_status_that_says_nothing_kills_nobody)
{
	cr_assert_not(fs_interrupt_is_killed(""));
	cr_assert_not(fs_interrupt_is_killed("SigPnd:"));
	cr_assert_not(fs_interrupt_is_killed("\nSigPnd:\nShdPnd:\n"));
}

/* proc(5): 52 fields, flags the 9th, exit_code the last. */
#define STAT(name, flags, code)                                                                    \
	"17 " name " D 1 17 17 0 -1 " flags " 1 2 3 4 5 6 7 8 20 0 1 0 100 1000 10 1 2 3 4 5 6 7 " \
	"0 0 0 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 6 7 " code "\n"

Test(fs_interrupt, a_program_that_a_signal_ends_is_dying_until_it_is_gone)
{
	cr_assert(fs_interrupt_dies_of_signal(STAT("(cat)", "4194564", "9")));
	cr_assert(fs_interrupt_dies_of_signal(STAT("(cat)", "4194564", "139")), "with a core dump");
	cr_assert_not(fs_interrupt_dies_of_signal(STAT("(cat)", "4194560", "9")), "it is stopped");
}

Test(fs_interrupt, a_program_that_exits_by_itself_waits_for_its_data)
{
	cr_assert_not(fs_interrupt_dies_of_signal(STAT("(cat)", "4194564", "0")));
	cr_assert_not(fs_interrupt_dies_of_signal(STAT("(cat)", "4194564", "256")));
}

Test(fs_interrupt, who_exits_hears_no_error_of_a_close)
{
	cr_assert(fs_interrupt_is_exiting(STAT("(cat)", "4194564", "0")));
	cr_assert(fs_interrupt_is_exiting(STAT("(cat)", "4194564", "9")));
	cr_assert_not(fs_interrupt_is_exiting(STAT("(cat)", "4194560", "0")));
	cr_assert_not(fs_interrupt_is_exiting("17 (cat) D 1 17"));
}

Test(fs_interrupt, a_name_may_contain_anything)
{
	cr_assert(fs_interrupt_dies_of_signal(STAT("(a) D 1 (b)", "4", "15")));
	cr_assert_not(fs_interrupt_dies_of_signal("17 (cat) D 1 17"));
	cr_assert_not(fs_interrupt_dies_of_signal(""));
}

/* ---- requests of programs that die ---- */

static pid_t victim;

/* A program that was killed and stays to be looked at. */
static void set_up(void)
{
	siginfo_t info;

	file_set_up_open(100000, O_RDWR);
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

static uint64_t send_read(pid_t pid)
{
	struct fuse_read_in in = {.fh = fh.fh, .size = 65536};

	return rig_send_of(pid, FUSE_READ, ino, &in, sizeof(in));
}

static void send_interrupt(uint64_t unique)
{
	struct fuse_interrupt_in in = {.unique = unique};

	rig_send_of(0, FUSE_INTERRUPT, 0, &in, sizeof(in));
}

static void expect_eintr(uint64_t unique, unsigned int wait_ms)
{
	cr_assert(rig_reply(&re, wait_ms));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, -EINTR);
}

/* The server is asked and does not answer before fake_release(); the program dies meanwhile. */
static void kill_while_held(uint64_t unique)
{
	rig.fake.hold = true;
	rig_settle();
	send_interrupt(unique);
	expect_eintr(unique, 3000);
}

Test(fs_interrupted, a_killed_program_does_not_wait_for_the_server)
{
	kill_while_held(send_read(victim));
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

/* Interrupted or not, the READ is answered by the server alone. */
static void waits_on(uint64_t unique)
{
	rig_settle();
	send_interrupt(unique);
	cr_assert_not(rig_reply(&re, 1500));
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.len, 65536);
}

Test(fs_interrupted, a_living_program_waits_on)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(getpid());
	waits_on(unique);
}

/* The pid is one of the mounter's namespace: here it is somebody else's. */
Test(fs_interrupted, the_death_of_another_users_program_answers_nobody)
{
	uint64_t unique;

	rig.fake.hold = true;
	rig.stranger = true;
	unique = send_read(victim);
	rig.stranger = false;
	waits_on(unique);
}

/* Write-back, and callers in another pid namespace: nobody to look at. */
Test(fs_interrupted, a_request_of_nobody_waits_on)
{
	uint64_t unique;

	rig.fake.hold = true;
	unique = send_read(0);
	waits_on(unique);
}

Test(fs_interrupted, an_interrupt_that_comes_too_late_changes_nothing)
{
	uint64_t unique = send_read(victim);

	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, 0);
	send_interrupt(unique);
	cr_assert_not(rig_reply(&re, 50));
	unique = send_read(victim);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, -EAGAIN, "libfuse gives the interrupt back");
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(rig.stats.interrupts, 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_interrupted, the_file_is_not_closed_before_its_read_has_ended)
{
	kill_while_held(send_read(victim));
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

	kill_while_held(rig_send_of(victim, FUSE_OPEN, ino, &in, sizeof(in)));
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(rig.fake.opens, 1, "the one of the set-up");
}

static uint64_t send_named(pid_t pid, uint32_t opcode, const char *name)
{
	return rig_send_of(pid, opcode, FUSE_ROOT_ID, name, strlen(name) + 1);
}

static uint32_t opened_with(void)
{
	struct fuse_open_out out;

	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	cr_assert_eq(rig_release(ino, out.fh), 0);
	rig_settle();
	return out.open_flags;
}

/* The kernel drops pages when it has the answer of the open: there was none. */
Test(fs_interrupted, an_open_of_nobody_drops_no_pages)
{
	struct fuse_open_in in = {.flags = O_RDONLY};

	opened_with();
	cr_assert(opened_with() & FOPEN_KEEP_CACHE);
	/* A write of ours, and no change by others: nobody but the open drops them. */
	cr_assert_eq(rig_write(ino, fh.fh, 0, "x", 1, O_RDWR), 1);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	rig.fake.hold = true;
	rig_send_of(victim, FUSE_OPEN, ino, &in, sizeof(in));
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.error, -EINTR);
	fake_release();
	rig_settle();
	cr_assert_not(opened_with() & FOPEN_KEEP_CACHE);
	cr_assert(opened_with() & FOPEN_KEEP_CACHE);
}

Test(fs_interrupted, a_name_that_was_looked_up_for_nobody_is_forgotten)
{
	size_t before = fs_inode_count(rig.fs);

	fake_add("other", 5);
	kill_while_held(send_named(victim, FUSE_LOOKUP, "other"));
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
	cr_assert_eq(fs_inode_count(rig.fs), before);
}

Test(fs_interrupted, a_file_that_was_made_for_nobody_is_closed_and_forgotten)
{
	struct {
		struct fuse_create_in in;
		char name[4];
	} create = {{.flags = O_RDWR, .mode = S_IFREG | 0644}, "new"};
	size_t before = fs_inode_count(rig.fs);

	kill_while_held(rig_send_of(victim, FUSE_CREATE, FUSE_ROOT_ID, &create, sizeof(create)));
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(fs_inode_count(rig.fs), before);
	cr_assert(fake_all_free());
}

static int serve_one_entry(struct nfs4_call *call)
{
	struct nfs4_op_readdir *o = &call->u.readdir;
	const struct nfs4_dirent de = {.cookie = 10, .name = {(char *)(uintptr_t) "f", 1}};

	call->status = NFS4_OK;
	o->eof = o->entry(call, &de);
	return 0;
}

/* The kernel closes the directory of the program before its READDIR is over. */
Test(fs_interrupted, a_directory_lives_until_its_readdir_has_ended)
{
	struct fuse_open_in open_in = {0};
	struct fuse_read_in in = {.size = 4096};
	struct fuse_release_in release_in = {0};

	rig.fake.other = serve_one_entry;
	cr_assert_eq(
		rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &open_in, sizeof(open_in), NULL, 0), 0);
	in.fh = release_in.fh = ((struct fuse_open_out *)re.body)->fh;
	kill_while_held(rig_send_of(victim, FUSE_READDIRPLUS, FUSE_ROOT_ID, &in, sizeof(in)));
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &release_in, sizeof(release_in),
			     NULL, 0),
		0);
	fake_release();
	rig_settle();
	cr_assert(fake_all_free());
}

static void expect_inval(int64_t off, int64_t len)
{
	const struct fuse_notify_inval_inode_out *out = (const void *)re.body;

	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, 0);
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(out->ino, ino);
	cr_assert_eq(out->off, off);
	cr_assert_eq(out->len, len);
}

/* Others may have read the old ones meanwhile. */
Test(fs_interrupted, pages_are_dropped_when_data_of_a_dead_program_is_written)
{
	struct {
		struct fuse_write_in in;
		char data[5];
	} write_of = {{.fh = fh.fh, .offset = 8192, .size = 5}, "late"};

	kill_while_held(rig_send_of(victim, FUSE_WRITE, ino, &write_of, sizeof(write_of.in) + 5));
	fake_release();
	expect_inval(8192, 5);
	cr_assert_eq(memcmp(file->data + 8192, "late", 5), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_interrupted, attributes_are_dropped_when_a_dead_program_changes_the_size)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE | FATTR_FH, .fh = fh.fh, .size = 10};

	kill_while_held(rig_send_of(victim, FUSE_SETATTR, ino, &in, sizeof(in)));
	fake_release();
	expect_inval(-1, 0);
	cr_assert_eq(file->attr.size, 10);
}

/* By name it is asked first whether the caller may. */
Test(fs_interrupted, a_dead_programs_truncate_is_not_done_late)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 10};
	uint64_t size = file->attr.size;

	cr_assert_neq(size, 10);
	kill_while_held(rig_send_of(victim, FUSE_SETATTR, ino, &in, sizeof(in)));
	fake_release();
	rig_settle();
	cr_assert_eq(file->attr.size, size);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 0);
	cr_assert(fake_all_free());
}

/* The kernel does so only when it is answered that there is a hole. */
Test(fs_interrupted, pages_are_dropped_when_a_dead_program_makes_a_hole)
{
	struct fuse_fallocate_in in = {.fh = fh.fh,
		.offset = 4096,
		.length = 8192,
		.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};

	kill_while_held(rig_send_of(victim, FUSE_FALLOCATE, ino, &in, sizeof(in)));
	fake_release();
	expect_inval(4096, 8192);
	cr_assert_eq(rig.fake.count[FAKE_DEALLOCATE], 1);
	cr_assert_eq(file->data[4097], 0);
	rig_settle();
	cr_assert(fake_all_free());
}

/* The name is looked up first, since a file is open: what it names may be another one then. */
Test(fs_interrupted, a_dead_programs_unlink_is_not_done_late)
{
	fake_add("other", 5);
	kill_while_held(send_named(victim, FUSE_UNLINK, "other"));
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_LOOKUP], 1);
	cr_assert_eq(rig.fake.count[FAKE_REMOVE], 0);
	cr_assert(fake_all_free());
}

static void late_rename(const char *to)
{
	struct {
		struct fuse_rename_in in;
		char names[16];
	} rename_of = {{.newdir = FUSE_ROOT_ID}, ""};
	size_t len = strlen(to) + 1;

	memcpy(rename_of.names, "other", 6);
	memcpy(rename_of.names + 6, to, len);
	fake_add("other", 5);
	kill_while_held(rig_send_of(
		victim, FUSE_RENAME, FUSE_ROOT_ID, &rename_of, sizeof(rename_of.in) + 6 + len));
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 0);
	cr_assert(fake_all_free());
}

Test(fs_interrupted, nor_is_its_rename)
{
	late_rename("free");
}

Test(fs_interrupted, nor_does_it_move_an_open_file_out_of_the_way)
{
	late_rename("f");
}

static uint64_t send_write(pid_t pid, const char data[5])
{
	struct {
		struct fuse_write_in in;
		char data[5];
	} write_of = {{.fh = fh.fh, .offset = 8192, .size = 5}, ""};

	memcpy(write_of.data, data, 5);
	return rig_send_of(pid, FUSE_WRITE, ino, &write_of, sizeof(write_of.in) + 5);
}

/* The next reply to `unique`; notifications pass by. */
static void expect_ok(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 3000));
	while (re.h.unique != unique);
	cr_assert_eq(re.h.error, 0);
}

/* The server may do them in any order: so the second is not sent before the first has ended. */
Test(fs_interrupted, what_a_dead_program_wrote_does_not_overtake_what_others_write)
{
	uint64_t unique;

	kill_while_held(send_write(victim, "dead"));
	unique = send_write(getpid(), "live");
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 1);
	fake_release();
	expect_ok(unique);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	cr_assert_eq(memcmp(file->data + 8192, "live", 5), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_interrupted, what_was_not_sent_yet_when_its_program_died_is_not_done)
{
	unsigned int calls_max = rig.fake.calls_max;
	uint64_t living, unique;

	rig.fake.hold = true;
	rig.fake.calls_max = rig.fake.calls + 1;
	living = send_read(getpid());
	rig_settle();
	unique = send_write(victim, "dead");
	expect_eintr(unique, 3000);
	rig.fake.calls_max = calls_max;
	fake_release();
	expect_ok(living);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
}

/*
 * On its way out a program closes one file after the other, and no FUSE_INTERRUPT comes for that:
 * they must not take a second each.
 */
Test(fs_interrupted, a_dying_program_closes_many_files_soon)
{
	struct fuse_flush_in in = {.fh = fh.fh};
	uint64_t unique, begin;

	cr_assert_eq(rig_write(ino, fh.fh, 0, "dirty", 5, O_RDWR), 5);
	kill_while_held(send_read(victim));
	begin = reactor_now(rig.fake.r);
	for (int i = 0; i < 20; i++) {
		unique = rig_send_of(victim, FUSE_FLUSH, ino, &in, sizeof(in));
		expect_eintr(unique, 20000);
	}
	cr_assert_lt(reactor_now(rig.fake.r) - begin, 20 * NSEC_PER_SEC);
	fake_release();
	rig_settle();
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(fake_all_free());
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
		rig_send_of(getpid(), FUSE_ACCESS, ino, &access_in, sizeof(access_in));
	rig_settle();
	flush = rig_send_of(victim, FUSE_FLUSH, ino, &in, sizeof(in));
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

/* What is void needs no buffer, and the others wait until nothing is abandoned any more. */
Test(fs_interrupted, a_dead_program_that_waits_for_the_last_buffer_keeps_it_from_nobody)
{
	uint64_t lookup, living, dead;
	unsigned int bufs_max = rig.fake.bufs_max;

	fake_add("other", 5);
	rig.fake.hold = true;
	lookup = send_named(victim, FUSE_LOOKUP, "other");
	rig_settle();
	send_interrupt(lookup);
	expect_eintr(lookup, 3000);
	rig.fake.bufs_max = rig.fake.bufs;
	living = send_read(getpid());
	rig_settle();
	dead = send_read(victim);
	expect_eintr(dead, 5000);
	fake_release();
	expect_ok(living);
	rig_settle();
	rig.fake.bufs_max = bufs_max;
	cr_assert(fake_all_free());
}
