/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons and their successors are shells here, /dev/fuse is a pipe: when nobody reads it, poll()
 * says of it what it says of an unmounted one.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper_run.h"
#include "log.h"
#include "process.h"

#define MOUNTPOINT "/nowhere/a mount"

static int fuse[2] = {-1, -1}; /* nobody reads it: unmounted */
static int live = -1;
static int out[2] = {-1, -1}; /* what the programs say */
static char lines[20][200];
static unsigned int line_cnt;
static uint64_t waits[20];
static unsigned int wait_cnt;
static uint64_t now = 100 * NSEC_PER_SEC;

static void note_line(void *ctx, enum log_level level, const char *line)
{
	if (line_cnt < 20)
		snprintf(lines[line_cnt++], sizeof(lines[0]), "%s", line);
}

static uint64_t note_wait(uint64_t ns)
{
	if (ns > 0 && wait_cnt < 20)
		waits[wait_cnt++] = ns;
	now += ns;
	return now;
}

static bool was_logged(const char *words)
{
	for (unsigned int i = 0; i < line_cnt; i++)
		if (strstr(lines[i], words) != NULL)
			return true;
	return false;
}

static void set_up(void)
{
	cr_assert_eq(pipe2(fuse, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	live = memfd_create("live", MFD_CLOEXEC);
	cr_assert_geq(live, 0);
	/* Whose parent is gone is ours, to be ended by its PID. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	log_set_sink(note_line, NULL);
	/* A keeper that was started by a daemon has no others. */
	cr_assert_eq(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
}

TestSuite(keeper_run, .init = set_up);

static int program(void)
{
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

/* sh -c script "first one" "" "third" */
static int arguments(const char *script)
{
	int fd = memfd_create("arguments", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(
		dprintf(fd, "sh%c-c%c%s%cfirst one%c%cthird%c", 0, 0, script, 0, 0, 0, 0) > 0, 1);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* A daemon that does nothing; *ret_sock: its end of the socket. */
static pid_t daemon_of(struct keeper_run *w, const char *script, int *ret_sock)
{
	int sv[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	*ret_sock = sv[1];
	*w = (struct keeper_run){
		.mountpoint = MOUNTPOINT,
		.program = program(),
		.before = -1,
		.args = arguments(script),
		.fuse = fuse[1],
		.live = live,
		.sock = sv[0],
		.pid = pid,
		.pidfd = keeper_run_pidfd(pid),
		.wait = note_wait,
	};
	return pid;
}

/* Has been killed, and is not waited for by anybody yet. */
static void kill_it(pid_t pid)
{
	siginfo_t si;

	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* All that programs have said so far. */
static void read_out(char *said, size_t size)
{
	ssize_t n;

	cr_assert_eq(fcntl(out[0], F_SETFL, O_NONBLOCK), 0);
	n = read(out[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
}

Test(keeper_run, ends_when_the_daemon_says_bye)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	keeper_bye(sock);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert_eq(line_cnt, 0);
	kill_it(pid);
	reap(pid);
}

Test(keeper_run, hears_the_bye_of_one_that_is_gone)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	cr_assert_eq(send(sock, "what", 4, 0), 4);
	keeper_bye(sock);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert_eq(line_cnt, 0);
	reap(pid);
}

Test(keeper_run, ends_when_the_mount_is_gone_too)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	close(fuse[0]);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert_eq(line_cnt, 0);
	close(sock);
}

/* The descriptors are as the variable says. No pipes: the shell would have these as well. */
#define SAYS                                                                                       \
	"exec >&2; echo \"$RPCRDMAFS_CRASHED|$RPCRDMAFS_KEEPER|$HOME_OF|$0|$1|$2\";"               \
	"[ -p /proc/$$/fd/4 ] && [ -S /proc/$$/fd/5 ] && ls /proc/$$/fd;"                          \
	"readlink /proc/$$/fd/3;"
#define BYE "printf bye >&5;"

Test(keeper_run, a_daemon_that_was_killed_is_followed_by_another_one)
{
	struct keeper_run w;
	char said[1000], want[1000];
	int sock, status;
	pid_t pid = daemon_of(&w, SAYS BYE "exit 7", &sock), follower;

	setenv("HOME_OF", "the daemon's", 1);
	dup2(out[1], STDERR_FILENO);
	close(sock); /* the end of the process counts */
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 0, "the successor serves");
	follower = waitpid(-1, &status, 0);
	cr_assert_gt(follower, 0, "it goes on without the keeper");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	read_out(said, sizeof(said));
	snprintf(want, sizeof(want),
		"3 4 5 1 %" PRIu64
		" %d||the daemon's|first one||third\n0\n1\n2\n3\n4\n5\n/memfd:live (deleted)\n",
		now, (int)pid);
	cr_assert_str_eq(said, want);
	cr_assert_eq(wait_cnt, 0, "at once");
	cr_assert(was_logged(MOUNTPOINT ": the daemon died: another one takes the mount over (1)"));
	cr_assert_eq(fcntl(w.fuse, F_GETFD), -1, "the keeper has let go of it");
}

/* In a child, whose descriptors are out of the way. */
static void keep_from_there(struct keeper_run *w, int program)
{
	int *const others[] = {&w->fuse, &w->live, &w->sock, &w->args, &w->pidfd};

	for (unsigned int i = 0; i < 5; i++)
		*others[i] = fcntl(*others[i], F_DUPFD_CLOEXEC, 20);
	fuse[0] = fcntl(fuse[0], F_DUPFD_CLOEXEC, 20);
	w->program = dup3(w->program, program, O_CLOEXEC);
	_exit(keeper_run(w));
}

Test(keeper_run, the_program_may_be_where_another_descriptor_is_to_be)
{
	for (int i = 0; i < 3; i++) {
		struct keeper_run w;
		int sock, status;
		pid_t pid = daemon_of(&w, BYE "exit 7", &sock), run;

		kill_it(pid);
		run = fork();
		cr_assert_geq(run, 0);
		if (run == 0)
			keep_from_there(&w, PROCESS_FD + i);
		cr_assert_eq(waitpid(run, &status, 0), run);
		cr_assert_eq(status, 0);
		reap(pid);
		cr_assert_gt(waitpid(-1, &status, 0), 0);
		cr_assert_eq(WEXITSTATUS(status), 7);
		close(sock);
	}
}

Test(keeper_run, without_pidfd_the_end_of_the_socket_tells)
{
	struct keeper_run w;
	int sock, status;
	pid_t pid = daemon_of(&w, BYE, &sock);

	close(w.pidfd);
	w.pidfd = -1;
	kill_it(pid);
	close(sock);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert(was_logged("another one takes the mount over (1)"));
	cr_assert_gt(waitpid(-1, &status, 0), 0);
}

Test(keeper_run, a_successor_that_dies_at_once_is_started_five_times_in_all)
{
	struct keeper_run w;
	char said[1000];
	int sock;
	pid_t pid =
		daemon_of(&w, "echo \"$RPCRDMAFS_CRASHED\" | cut -d' ' -f4 >&2; kill -9 $$", &sock);

	dup2(out[1], STDERR_FILENO);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 1);
	read_out(said, sizeof(said));
	cr_assert_str_eq(said, "1\n2\n3\n4\n5\n");
	cr_assert_eq(wait_cnt, 4);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(waits[i], (100 << i) * NSEC_PER_MSEC);
	cr_assert_eq(line_cnt, 6);
	cr_assert(was_logged("the mount is given up"));
	cr_assert_eq(waitpid(-1, NULL, 0), -1, "all were waited for");
	cr_assert_eq(poll(&(struct pollfd){.fd = fuse[0]}, 1, 0), 1, "/dev/fuse is closed");
	close(sock);
}

Test(keeper_run, crashes_that_were_counted_before_count)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	w.crashes = 5;
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 1);
	cr_assert_eq(line_cnt, 1);
	close(sock);
}

Test(keeper_run, a_program_that_cannot_be_executed_is_a_death)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	close(w.program);
	w.program = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 1);
	cr_assert(was_logged("another daemon cannot be started"));
	close(sock);
}

/* ---- the next records ---- */

#define FDS_MAX 4

static void say(int sock, const char *text, const int *fds, unsigned int cnt)
{
	struct iovec iov = {.iov_base = (void *)text, .iov_len = strlen(text)};
	union {
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = &control.align;

	if (cnt > 0) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_LEN(cnt * sizeof(int));
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(cnt * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, cnt * sizeof(int));
	}
	cr_assert_eq(sendmsg(sock, &mh, 0), (ssize_t)strlen(text));
}

/* They are the keeper's alone afterwards. */
static void say_next(int sock, int records, int program, int args)
{
	say(sock, "next", (const int[]){records, program, args}, 3);
	close(records);
	close(program);
	close(args);
}

static int next_records(void)
{
	int fd = memfd_create("next", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static unsigned int open_cnt(void)
{
	unsigned int cnt = 0;

	for (int fd = 3; fd < 100; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

Test(keeper_run, the_next_records_count_even_if_they_were_told_last)
{
	struct keeper_run w;
	char said[1000];
	int sock, status;
	pid_t pid = daemon_of(&w, "exit 0", &sock);
	unsigned int before = open_cnt(), pidfd_cnt = w.pidfd >= 0;

	dup2(out[1], STDERR_FILENO);
	say_next(sock, next_records(), program(), arguments("exit 0"));
	say_next(sock, next_records(), program(),
		arguments("readlink /proc/$$/fd/3 >&2; echo $1 >&2;" BYE "exit 7"));
	close(sock);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert_gt(waitpid(-1, &status, 0), 0);
	cr_assert_eq(WEXITSTATUS(status), 7, "with its arguments");
	read_out(said, sizeof(said));
	cr_assert_str_eq(said, "/memfd:next (deleted)\n\n");
	cr_assert_eq(line_cnt, 1);
	cr_assert_eq(open_cnt(), before - 6 - pidfd_cnt, "nothing is left of those before");
}

Test(keeper_run, with_records_it_cannot_use_it_ends)
{
	/* One too few, one too many, and arguments that are none. */
	static const unsigned int cnts[] = {0, 2, 4, 3};

	for (unsigned int i = 0; i < 4; i++) {
		struct keeper_run w;
		int sock, fds[] = {next_records(), program(), memfd_create("none", MFD_CLOEXEC),
				  next_records()};
		pid_t pid;
		unsigned int before, pidfd_cnt;

		pid = daemon_of(&w, "exit 0", &sock);
		w.fuse = fcntl(fuse[1], F_DUPFD_CLOEXEC, 60);
		w.live = fcntl(live, F_DUPFD_CLOEXEC, 60);
		before = open_cnt();
		pidfd_cnt = w.pidfd >= 0;
		say(sock, "next", fds, cnts[i]);
		cr_assert_eq(keeper_run(&w), 1, "%u", cnts[i]);
		cr_assert_eq(line_cnt, i + 1);
		cr_assert(was_logged(i < 3 ? "the next records: Bad message"
					   : "the next records: No data available"));
		cr_assert_eq(open_cnt(), before - 5 - pidfd_cnt, "%u", cnts[i]);
		kill_it(pid);
		reap(pid);
	}
}

/* A shell is the keeper's next program; the mountpoint is what it is to do. */
Test(keeper_run, it_executes_the_next_program)
{
	char path[] = "/tmp/rpcrdmafs-keeper-XXXXXX", said[1000], want[1000];
	int script = mkstemp(path), sock, status, other = open("/bin/bash", O_RDONLY | O_CLOEXEC);
	struct keeper_run w;
	pid_t pid = daemon_of(&w, "exit 0", &sock), run;

	cr_assert_geq(script, 0);
	cr_assert_geq(other, 0);
	cr_assert_gt(dprintf(script, "read -r f l s a rest <<<\"$RPCRDMAFS_KEEPER\"\n"
				     "echo \"$0 $rest\" >&2; cd /proc/$$/fd\n"
				     "[ -p $f ] && [ -S $s ] && readlink $l $a >&2\n"
				     "tr '\\0' ' ' <&$a >&2\n"
				     "read -r b since <<<\"$RPCRDMAFS_BEFORE\"\n"
				     "[ $b -ef /bin/sh ] && echo $since >&2; exit 9\n"),
		0);
	close(script);
	dup2(out[1], STDERR_FILENO);
	w.mountpoint = path;
	w.crashes = 3;
	w.syslog = true;
	run = fork();
	cr_assert_geq(run, 0);
	if (run == 0) {
		close(sock);
		_exit(keeper_run(&w));
	}
	say_next(sock, next_records(), other, arguments("next"));
	cr_assert_eq(waitpid(run, &status, 0), run);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	read_out(said, sizeof(said));
	snprintf(want, sizeof(want),
		"%s %d 3 1\n/memfd:next (deleted)\n/memfd:arguments (deleted)\n"
		"sh -c next first one  third %" PRIu64 "\n",
		path, (int)pid, now);
	cr_assert_str_eq(said, want);
	unlink(path);
	kill_it(pid);
	reap(pid);
	close(sock);
}

/* Daemons that die until there were so many deaths. Which of two shells is their program? */
#define DIES_UNTIL(n)                                                                              \
	"echo ${BASH_VERSION:+new} >&2; [ $(echo $RPCRDMAFS_CRASHED | cut -d' ' -f4) -ge " n       \
	" ] || kill -9 $$;" BYE

/* dash was followed by bash, so long ago. */
static void say_programs(uint64_t ago_ns, const char *script, char *said, size_t size)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, script, &sock);

	dup2(out[1], STDERR_FILENO);
	w.before = w.program;
	w.before_ns = now - ago_ns;
	w.program = open("/bin/bash", O_RDONLY | O_CLOEXEC);
	kill_it(pid);
	cr_assert_eq(keeper_run(&w), 0);
	close(sock);
	read_out(said, size);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

Test(keeper_run, a_program_that_dies_three_times_soon_is_followed_by_the_one_before)
{
	char said[200];

	say_programs(0, DIES_UNTIL("4"), said, sizeof(said));
	cr_assert_str_eq(said, "new\nnew\n\n\n");
	cr_assert(was_logged("died 3 times in its first minute: the one before goes on"));
}

Test(keeper_run, twice_is_not_enough)
{
	char said[200];

	say_programs(0, DIES_UNTIL("2"), said, sizeof(said));
	cr_assert_str_eq(said, "new\nnew\n");
}

Test(keeper_run, what_comes_later_is_no_reason)
{
	char said[200];

	say_programs(61 * NSEC_PER_SEC, DIES_UNTIL("4"), said, sizeof(said));
	cr_assert_str_eq(said, "new\nnew\nnew\nnew\n");
}

Test(keeper_run, one_that_cannot_be_executed_is_no_reason_to_end)
{
	struct keeper_run w;
	int sock;
	pid_t pid = daemon_of(&w, "exit 0", &sock);

	say_next(sock, next_records(), open("/etc/passwd", O_RDONLY | O_CLOEXEC),
		arguments("exit 0"));
	cr_assert_eq(send(sock, "bye", 3, 0), 3);
	cr_assert_eq(keeper_run(&w), 0);
	cr_assert_eq(line_cnt, 1);
	cr_assert(was_logged("the keeper goes on as the program before: Permission denied") ||
		  was_logged("the keeper goes on as the program before: Exec format error"));
	kill_it(pid);
	reap(pid);
	close(sock);
}

/* In a child, whose descriptors are where others are to be. */
static void spawn_from_there(void)
{
	static char sh[] = "sh", c[] = "-c", variable[] = "SAID=a word",
		    script[] = "exec >&2; echo $SAID; readlink /proc/$$/fd/3; [ -p /proc/$$/fd/4 ]";
	char *argv[] = {sh, c, script, NULL};
	int status = -1, records = fcntl(live, F_DUPFD_CLOEXEC, 20),
	    device = fcntl(fuse[1], F_DUPFD_CLOEXEC, 20);
	pid_t pid;

	dup2(out[1], STDERR_FILENO);
	dup2(records, PROCESS_FD + 1);
	dup2(device, PROCESS_FD);
	pid = process_spawn(
		"/bin/sh", argv, variable, (const int[]){PROCESS_FD + 1, PROCESS_FD}, 2);
	_exit(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
}

Test(keeper_run, descriptors_may_be_where_others_are_to_be)
{
	char said[100];
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		spawn_from_there();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	read_out(said, sizeof(said));
	cr_assert_str_eq(said, "a word\n/memfd:live (deleted)\n");
}

Test(keeper_run, deaths_that_are_not_soon_after_another_do_not_count)
{
	struct keeper_deaths d = {0};
	uint64_t t = 1000 * NSEC_PER_SEC;

	for (unsigned int i = 0; i < 5; i++)
		cr_assert(keeper_run_count(&d, t += NSEC_PER_SEC));
	cr_assert_not(keeper_run_count(&d, t += NSEC_PER_SEC), "six of them");
	cr_assert(keeper_run_count(&d, t += 3 * NSEC_PER_SEC));
	cr_assert_eq(d.cnt, 1);
	for (unsigned int i = 1; i < 100; i++)
		cr_assert(keeper_run_count(&d, t += 3 * NSEC_PER_SEC), "again and again");
}
