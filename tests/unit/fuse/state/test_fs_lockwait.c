/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_lock.h"
#include "file_rig.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fuse_open_out a, b; /* two opens */

#define OFTEN (100 * NSEC_PER_MSEC)

static void set_up(void)
{
	file_set_up(100);
	rig.fs->locks->poll_ns = 3600 * NSEC_PER_SEC; /* but for who sets it OFTEN */
	cr_assert_eq(rig_open(ino, O_RDWR, &a), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &b), 0);
}

static void tear_down(void)
{
	rig_down();
	cr_expect_eq(fake_locks.cnt, 0, "locks left on the server");
}

TestSuite(fs_lockwait, .init = set_up, .fini = tear_down);

/* ---- woken ---- */

Test(fs_lockwait, holds_nothing_while_it_sleeps)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 5, 14);
	no_answer(30);
	cr_assert(fake_all_free());
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, 4), 0);
	no_answer(20);
	/* Another byte of it is still held. */
	lk_send(FUSE_SETLK, ino, a.fh, 1, F_UNLCK, 5, 9);
	cr_assert(rig_reply(&re, 3000));
	cr_assert(rig_reply(&re, 3000), "woken by the unlock, not by time");
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(fake_locks.v[0].off, 5);
	cr_assert_eq(fake_locks.v[0].end, 15);
}

Test(fs_lockwait, is_woken_when_the_server_calls)
{
	uint64_t unique;

	fake_lock_foreign(file, 0, NFS4_LOCK_TO_END, true);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 5, 14);
	no_answer(30);
	cr_assert_eq(count(FAKE_LOCK), 1);
	fake_unlock_foreign(file);
	fake_lock_notify(12345);
	fake_lock_notify(container_of(rig.fs->locks->waits.next, struct fs_lockwait, link)
				 ->owner->lo.number);
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(count(FAKE_LOCK), 2);
}

Test(fs_lockwait, asks_by_itself_if_nobody_says_anything)
{
	uint64_t unique;

	rig.fs->locks->poll_ns = 2 * NSEC_PER_SEC;
	fake_lock_foreign(file, 0, NFS4_LOCK_TO_END, true);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 5, 14);
	no_answer(100);
	cr_assert_eq(count(FAKE_LOCK), 1);
	fake_unlock_foreign(file);
	cr_assert_eq(answer_to(unique, 10000), 0);
	cr_assert_geq(count(FAKE_LOCK), 2);
}

/* The lock goes after the server has refused it and before we hear that. */
Test(fs_lockwait, is_woken_also_by_what_comes_before_its_refusal)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	fake_lock_foreign(file, 20, 1, true);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 20);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCK), 2);
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, 9), 0);
	rig.fake.hold_ops = 0;
	reactor_timer_in(rig.fake.r, &rig.fake.timer, 0);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCK), 3, "refused for the other one, and tried again at once");
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	fake_unlock_foreign(file);
}

Test(fs_lockwait, readers_come_all_at_once)
{
	uint64_t unique[10];

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	for (unsigned int i = 0; i < 10; i++)
		unique[i] = setlkw(ino, b.fh, 10 + i, F_RDLCK, 0, 9);
	no_answer(50);
	lk_send(FUSE_SETLK, ino, a.fh, 1, F_UNLCK, 0, 9);
	cr_assert(rig_reply(&re, 3000));
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.h.unique, unique[i]);
		cr_assert_eq(re.h.error, 0);
	}
	/* A lock to write that becomes one to read lets them in too. */
	cr_assert_eq(setlk(ino, b.fh, 10, F_UNLCK, 0, 9), 0);
	for (unsigned int i = 1; i < 10; i++)
		cr_assert_eq(setlk(ino, b.fh, 10 + i, F_UNLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	unique[0] = setlkw(ino, b.fh, 10, F_RDLCK, 0, 9);
	no_answer(20);
	lk_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK, 0, 9);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(answer_to(unique[0], 3000), 0);
}

/* ---- many ---- */

#define MANY  300u
#define FILES 6u

Test(fs_lockwait, hundreds_sleep_and_nothing_else_does)
{
	uint64_t unique[MANY];
	struct fuse_attr_out attr;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	for (unsigned int i = 0; i < MANY; i++) {
		unique[i] = setlkw(ino, b.fh, 1000 + i, F_WRLCK, 0, 9);
		if (i % 8 == 0)
			rig_settle();
	}
	no_answer(100);
	cr_assert(fake_all_free());
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	rig.fake.count[FAKE_LOCK] = 0;
	/* The unlock that frees them all: one after the other, as they came. */
	lk_send(FUSE_SETLK, ino, a.fh, 1, F_UNLCK, 0, 9);
	cr_assert(rig_reply(&re, 3000));
	for (unsigned int i = 0; i < MANY; i++) {
		cr_assert_eq(answer_to(unique[i], 3000), 0);
		cr_assert_eq(fake_locks.cnt, 1);
		lk_send(FUSE_SETLK, ino, b.fh, 1000 + i, F_UNLCK, 0, 9);
		cr_assert(rig_reply(&re, 3000));
	}
	cr_assert_leq(count(FAKE_LOCK), MANY * 3 / 2, "%u calls", count(FAKE_LOCK));
	cr_assert(fake_all_free());
}

Test(fs_lockwait, of_many_files_leave_operations_to_others)
{
	struct fake_file *f[FILES];
	struct fuse_attr_out attr;
	fuse_ino_t inos[FILES];

	rig.fs->locks->poll_ns = OFTEN;
	for (unsigned int i = 0; i < FILES; i++) {
		f[i] = fake_add((char[2]){(char)('0' + i), 0}, 0);
		fake_lock_foreign(f[i], 0, 10, true);
		inos[i] = rig_ino(f[i]);
		cr_assert_eq(rig_open(inos[i], O_RDWR, &fh), 0);
		setlkw(inos[i], fh.fh, 1, F_WRLCK, 0, 9);
		rig_settle();
	}
	/* Each is tried when its time comes, and the server is slow. */
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	no_answer(1500);
	cr_assert_eq(rig.lane->ops_free, rig.lane->ops_cnt / 4 * 3);
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	for (unsigned int i = 0; i < FILES; i++)
		fake_unlock_foreign(f[i]);
	fake_release();
	for (unsigned int i = 0; i < FILES; i++) {
		cr_assert(rig_reply(&re, 10000));
		cr_assert_eq(re.h.error, 0);
	}
	rig_settle();
	cr_assert(fake_all_free());
}

/* ---- interrupted ---- */

Test(fs_lockwait, a_signal_ends_it)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	no_answer(30);
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	cr_assert_eq(setlk(ino, a.fh, 1, F_UNLCK, 0, 9), 0);
	rig_settle();
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert(list_empty(&rig.fs->locks->waits));
	cr_assert(list_empty(&rig.lane->lockwait->waits));
}

Test(fs_lockwait, a_signal_that_comes_first_ends_it_too)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	interrupt(rig.unique + 4);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	/* libfuse answers the interrupt EAGAIN when the request is there: ask again. */
	cr_assert(rig_reply(&re, 3000));
	if (re.h.unique != unique) {
		interrupt(unique);
		cr_assert(rig_reply(&re, 3000));
	}
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, -EINTR);
}

Test(fs_lockwait, what_is_granted_after_the_signal_is_given_back)
{
	uint64_t unique;

	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	rig_settle();
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	/* Closed meanwhile: LOCK, LOCKU, CLOSE. */
	cr_assert_eq(rig_release(ino, a.fh), 0);
	cr_assert_eq(rig_release(ino, b.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	fake_release();
	rig_settle();
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert_geq(count(FAKE_LOCKU), 1);
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert(fake_all_free());
}

Test(fs_lockwait, a_signal_while_it_waits_for_its_turn_leaves_nothing_to_do)
{
	uint64_t first, unique;

	rig.fake.hold_ops = 1u << FAKE_LOCK;
	first = lk_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK, 0, 9);
	unique = setlkw(ino, a.fh, 1, F_WRLCK, 10, 19);
	rig_settle();
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	fake_release();
	cr_assert_eq(answer_to(first, 1000), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCK), 1);
	cr_assert_eq(fake_locks.cnt, 1);
}

/* The lock to read that it has must not go with the one to write that it did not want any more. */
Test(fs_lockwait, a_signal_does_not_cost_what_is_held_already)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = setlkw(ino, a.fh, 1, F_WRLCK, 0, 9);
	rig_settle();
	interrupt(unique);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert(fake_locks.v[0].write);
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), 0);
	/* Refused: EINTR instead of sleep. */
	cr_assert_eq(setlk(ino, b.fh, 2, F_RDLCK, 0, 9), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = setlkw(ino, a.fh, 1, F_WRLCK, 0, 9);
	rig_settle();
	interrupt(unique);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	cr_assert_eq(fake_locks.cnt, 2);
}

Test(fs_lockwait, who_does_not_sleep_is_not_interrupted)
{
	uint64_t unique;

	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = lk_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK, 0, 9);
	rig_settle();
	interrupt(unique);
	no_answer(50);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
}

/* The program would take EINTR for no lock, ask again, and lose what it then has. */
Test(fs_lockwait, a_signal_that_comes_after_the_grant_is_too_late)
{
	uint64_t unique, again;

	rig.fake.hold_ops = 1u << FAKE_GETATTR;
	unique = setlkw(ino, a.fh, 1, F_WRLCK, 0, 9);
	rig_settle();
	cr_assert_eq(fake_locks.cnt, 1);
	interrupt(unique);
	rig_settle();
	again = lk_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK, 0, 9);
	rig_settle();
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(answer_to(again, 3000), 0);
	rig_settle();
	cr_assert_eq(fake_locks.cnt, 1, "taken back although it is held");
	cr_assert(fake_all_free());
}

static uint64_t lk_of(pid_t pid, uint32_t opcode, uint32_t type, uint32_t flags)
{
	struct fuse_lk_in in = {.fh = a.fh,
		.owner = 1,
		.lk = {.end = flags ? TO_END : 9, .type = type},
		.lk_flags = flags};
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + sizeof(in)),
		.opcode = opcode,
		.unique = (rig.unique += 2),
		.nodeid = ino,
		.uid = geteuid(),
		.gid = getegid(),
		.pid = (uint32_t)pid,
	};
	struct iovec iov[2] = {{&h, sizeof(h)}, {&in, sizeof(in)}};

	cr_assert_eq(writev(rig.peer, iov, 2), (ssize_t)h.len);
	return h.unique;
}

static pid_t start_victim(void)
{
	pid_t victim = fork();

	if (victim == 0)
		for (;;)
			pause();
	return victim;
}

/* It stays to be looked at. */
static void kill_victim(pid_t victim)
{
	siginfo_t info;

	kill(victim, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)victim, &info, WEXITED | WNOWAIT), 0);
}

/* The kernel says nothing of the second signal. */
Test(fs_lockwait, a_signal_that_kills_ends_also_what_another_one_did_not)
{
	uint64_t unique;
	pid_t victim = start_victim();

	rig.fs->locks->poll_ns = OFTEN;
	cr_assert_eq(setlk(ino, a.fh, 1, F_RDLCK, 0, 9), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = lk_of(victim, FUSE_SETLKW, F_WRLCK, 0);
	rig_settle();
	interrupt(unique);
	no_answer(300);
	kill_victim(victim);
	cr_assert_eq(answer_to(unique, 10000), EINTR);
	cr_assert_eq(rig.stats.interrupts, 1);
	fake_release();
	rig_settle();
	cr_assert(list_empty(&rig.fs->locks->waits));
	cr_assert(fake_all_free());
	waitpid(victim, NULL, 0);
}

Test(fs_lockwait, nobody_sleeps_on_for_a_program_that_died_while_its_old_lock_went)
{
	uint64_t unique;
	pid_t victim = start_victim();

	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_RDLCK), 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, b.fh, 2, F_RDLCK), 3000), 0);
	rig.fake.hold_ops = 1u << FAKE_LOCKU;
	unique = lk_of(victim, FUSE_SETLKW, F_WRLCK, FUSE_LK_FLOCK);
	rig_settle();
	cr_assert_eq(count(FAKE_LOCKU), 1);
	kill_victim(victim);
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	fake_release();
	rig_settle();
	cr_assert(list_empty(&rig.fs->locks->waits));
	cr_assert(list_empty(&rig.lane->lockwait->waits));
	waitpid(victim, NULL, 0);
}

/* Others share it: it must not go for a moment when they ask for it again. */
Test(fs_lockwait, an_unlock_that_was_never_sent_leaves_no_doubt)
{
	struct fuse_access_in in = {.mask = R_OK};
	unsigned int calls_max = rig.fake.calls_max;
	uint64_t living, unique;
	pid_t victim = start_victim();

	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), 0);
	rig.fake.hold = true;
	rig.fake.calls_max = rig.fake.calls + 1;
	living = rig_send(FUSE_ACCESS, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	unique = lk_of(victim, FUSE_SETLK, F_UNLCK, FUSE_LK_FLOCK);
	rig_settle();
	kill_victim(victim);
	cr_assert_eq(answer_to(unique, 5000), EINTR);
	rig.fake.calls_max = calls_max;
	fake_release();
	cr_assert_eq(answer_to(living, 3000), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK), 3000), 0);
	cr_assert_eq(count(FAKE_LOCKU), 0);
	cr_assert_eq(fake_locks.cnt, 1);
	waitpid(victim, NULL, 0);
}

Test(fs_lockwait, unless_it_dies)
{
	uint64_t unique;
	pid_t victim = start_victim();

	kill_victim(victim);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	unique = lk_of(victim, FUSE_SETLK, F_WRLCK, 0);
	rig_settle();
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	fake_release();
	rig_settle();
	cr_assert_eq(fake_locks.cnt, 0);
	waitpid(victim, NULL, 0);
}

/* ---- the end ---- */

Test(fs_lockwait, ends_with_the_mount)
{
	uint64_t asleep, asking;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	asleep = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	no_answer(30);
	rig.fake.hold_ops = 1u << FAKE_LOCK;
	asking = setlkw(ino, b.fh, 3, F_WRLCK, 0, 9);
	rig_settle();
	fs_lane_stop(rig.lane);
	cr_assert_eq(answer_to(asleep, 3000), EIO);
	cr_assert_not(rig.idle);
	fake_release();
	cr_assert_eq(answer_to(asking, 3000), EIO);
}

Test(fs_lockwait, ends_with_an_error_of_the_server)
{
	uint64_t unique;

	rig.fs->locks->poll_ns = OFTEN;
	fake_lock_foreign(file, 0, 10, true);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	no_answer(50);
	fake_locks.refuse = ENOLCK;
	cr_assert_eq(answer_to(unique, 10000), ENOLCK);
	fake_locks.refuse = 0;
	fake_unlock_foreign(file);
	cr_assert(list_empty(&rig.fs->locks->waits));
}

/* ---- lanes ---- */

static struct fs_lane *other; /* another lane, with a reactor of its own, run by hand */
static struct reactor *other_r;
static struct stats other_stats;
static bool other_idle;

static void on_report(void *ctx, enum fs_lane_event event)
{
	other_idle = event == FS_LANE_ENDED;
}

static void lanes_up(void)
{
	set_up();
	other_r = reactor_new_virtual();
	other = fs_lane_new(rig.fs, other_r, NULL, 16, on_report, NULL, &other_stats);
	cr_assert_eq(fs_lane_start(other), 0);
}

static void lanes_down(void)
{
	fs_lane_stop(other);
	for (int i = 0; i < 1000 && !other_idle; i++) {
		reactor_turn(other_r, NSEC_PER_MSEC);
		reactor_turn(rig.fake.r, 0);
	}
	cr_expect(other_idle);
	tear_down();
}

static void both(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++) {
		reactor_turn(other_r, NSEC_PER_MSEC);
		rig_turn();
	}
}

static void expect(uint64_t unique, int err)
{
	struct iovec iov = {&re, sizeof(re)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = -1;

	for (int i = 0; i < 1000 && n < 0; i++) {
		n = recvmsg(rig.peer, &msg, MSG_DONTWAIT);
		if (n < 0)
			both(1);
	}
	cr_assert_geq(n, (ssize_t)sizeof(re.h), "no answer");
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(-re.h.error, err);
}

TestSuite(fs_locklanes, .init = lanes_up, .fini = lanes_down);

static void other_reads(void)
{
	for (int i = 0; i < 5; i++)
		reactor_turn(other_r, NSEC_PER_MSEC);
}

Test(fs_locklanes, an_unlock_on_one_wakes_who_sleeps_on_another)
{
	uint64_t unique, unlock;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	other_reads();
	both(10);
	cr_assert_not(list_empty(&other->lockwait->waits));
	unlock = lk_send(FUSE_SETLK, ino, a.fh, 1, F_UNLCK, 0, 9);
	reactor_turn(rig.fake.r, 0);
	expect(unlock, 0);
	expect(unique, 0);
	cr_assert_eq(fake_locks.cnt, 1);
}

Test(fs_locklanes, a_signal_read_by_one_ends_the_sleep_on_another)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, a.fh, 1, F_WRLCK, 0, 9), 0);
	unique = setlkw(ino, b.fh, 2, F_WRLCK, 0, 9);
	other_reads();
	both(10);
	cr_assert_not(list_empty(&other->lockwait->waits));
	interrupt(unique);
	rig_settle();
	expect(unique, EINTR);
	cr_assert(list_empty(&other->lockwait->waits));
}

Test(fs_locklanes, an_owner_takes_turns_across_them)
{
	uint64_t unique[6];

	rig.fake.hold = true;
	for (unsigned int i = 0; i < 6; i++) {
		unique[i] = lk_send(FUSE_SETLK, ino, a.fh, 1, F_WRLCK, i * 10, i * 10 + 5);
		if (i % 2)
			other_reads();
		else
			rig_settle();
	}
	cr_assert_eq(count(FAKE_LOCK), 1);
	fake_release();
	for (unsigned int i = 0; i < 6; i++)
		expect(unique[i], 0);
	cr_assert_eq(fake_locks.cnt, 6);
}
