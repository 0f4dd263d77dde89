/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keeper_start() executes this very program, which is the keeper then, and the daemon that follows.
 * /dev/fuse is a pipe.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper_run.h"
#include "log.h"

#define MOUNTPOINT "/nowhere/a mount"

static bool is_named(int fd, const char *want)
{
	char path[40], target[80];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return strcmp(target, want) == 0;
}

/*
 * The keeper starts this program as the one that follows. The first one is killed when it has told
 * the keeper of records of its own; the second one has them, and ends in order.
 */
static int follow(const struct keeper_crash *c)
{
	bool is_first = c->crashes == 1;
	struct keeper_conf conf = {
		.mountpoint = MOUNTPOINT, .fuse_fd = c->fuse_fd, .crashes = c->crashes};
	struct reactor *r = reactor_new();
	struct keeper k;
	pid_t before;

	conf.live_fd = is_first ? memfd_create("own", MFD_CLOEXEC) : c->live_fd;
	if (r == NULL ||
		!is_named(c->live_fd, is_first ? "/memfd:live (deleted)" : "/memfd:own (deleted)"))
		return 1;
	if (!is_first && (pread(c->live_fd, &before, sizeof(before), 0) != sizeof(before) ||
				 before != c->keeper))
		return 2;
	if (keeper_start(&k, r, &conf, c->sock, c->keeper) != 0 || k.pid != getppid())
		return 3;
	if (is_first) {
		if (pwrite(conf.live_fd, &k.pid, sizeof(k.pid), 0) != sizeof(k.pid))
			return 4;
		kill(getpid(), SIGKILL);
	}
	keeper_end(&k);
	reactor_free(r);
	return 0;
}

/* Before criterion's main(). */
static void __attribute__((constructor)) be_one_of_ours(int argc, char **argv)
{
	struct keeper_crash c;
	int status;

	if (keeper_is_asked(argc, argv, &status))
		_exit(status);
	if (keeper_take(&c) == 1)
		_exit(follow(&c));
}

static int fuse[2] = {-1, -1}; /* nobody reads it: unmounted */
static int live = -1;
static char lines[20][200];
static unsigned int line_cnt;

static void note_line(void *ctx, enum log_level level, const char *line)
{
	if (line_cnt < 20)
		snprintf(lines[line_cnt++], sizeof(lines[0]), "%s", line);
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
	live = memfd_create("live", MFD_CLOEXEC);
	cr_assert_geq(live, 0);
	/* Whose parent is gone is ours, to be ended by its PID. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	log_set_sink(note_line, NULL);
}

TestSuite(keeper, .init = set_up);

static struct reactor *reactor;
static struct keeper keeper;

static void start(void)
{
	const struct keeper_conf conf = {
		.mountpoint = MOUNTPOINT, .fuse_fd = fuse[1], .live_fd = live};

	reactor = reactor_new_virtual();
	cr_assert_not_null(reactor);
	cr_assert_eq(keeper_start(&keeper, reactor, &conf, -1, 0), 0);
	cr_assert(keeper_is_there(&keeper));
}

static void end(void)
{
	pid_t pid = keeper.pid;

	keeper_end(&keeper);
	cr_assert_not(keeper_is_there(&keeper));
	cr_assert(pid == 0 || (kill(pid, 0) == -1 && errno == ESRCH), "no process is left");
	reactor_free(reactor);
}

/* A file of /proc about the keeper, NULs as bars. */
static void read_proc(const char *name, char *to, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)keeper.pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	n = read(fd, to, size - 1);
	cr_assert_geq(n, 0);
	close(fd);
	to[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		to[i] = to[i] == '\0' ? '|' : to[i];
}

/* It has read what it does not know. */
static void wait_until_it_watches(void)
{
	int unread = 1;

	cr_assert_eq(send(keeper.src.fd, "hello", 5, 0), 5);
	while (unread > 0) {
		cr_assert_eq(ioctl(keeper.src.fd, SIOCOUTQ, &unread), 0);
		poll(NULL, 0, 1);
	}
}

static bool has_open(const char *want)
{
	char path[80], target[300];
	bool found = false;

	for (int fd = 3; fd < 100 && !found; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)keeper.pid, fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		found = strcmp(target, want) == 0;
	}
	return found;
}

static unsigned int count_fds(bool *ret_right)
{
	static const char *const names[] = {"pipe:", "/memfd:live", "socket:", "anon_inode:", NULL};
	char path[80], target[300];
	unsigned int cnt = 0, seen = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper.pid);
	d = opendir(path);
	cr_assert_not_null(d);
	while ((e = readdir(d)) != NULL) {
		ssize_t n;

		if (e->d_name[0] == '.' || strtoul(e->d_name, NULL, 10) < 3)
			continue;
		cnt++;
		n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
		cr_assert_gt(n, 0);
		target[n] = '\0';
		for (unsigned int i = 0; names[i] != NULL; i++)
			if (strncmp(target, names[i], strlen(names[i])) == 0)
				seen |= 1u << i;
		if (strstr(target, "test_keeper") != NULL)
			seen |= 1u << 4;
	}
	closedir(d);
	*ret_right = (seen | 1u << 3) == 0x1f; /* a pidfd where there are some */
	return cnt;
}

Test(keeper, has_what_it_needs_and_no_more)
{
	char text[400];
	bool right;
	int stray = open("/dev/null", O_RDONLY), pidfd = keeper_run_pidfd(getpid());

	dup2(stray, 40); /* the daemon was started with these */
	start();
	wait_until_it_watches();
	cr_assert_eq(count_fds(&right), pidfd >= 0 ? 5 : 4,
		"/dev/fuse, the records, the socket, the program, the daemon");
	cr_assert(right);
	read_proc("cmdline", text, sizeof(text));
	cr_assert_str_eq(text, "rpcrdmafs: keeper|" MOUNTPOINT "|");
	read_proc("comm", text, sizeof(text));
	cr_assert_str_eq(text, "rpcrdmafs-keep\n");
	cr_assert_eq(getsid(keeper.pid), keeper.pid, "a session of its own");
	kill(keeper.pid, SIGTERM);
	kill(keeper.pid, SIGINT);
	kill(keeper.pid, SIGHUP);
	cr_assert_not(reactor_turn(reactor, 0), "it does not mind");
	end();
	cr_assert_eq(line_cnt, 0);
}

/* Its end is in the socket then. */
static void kill_keeper(void)
{
	struct pollfd p = {.fd = keeper.src.fd, .events = POLLIN};

	cr_assert_eq(kill(keeper.pid, SIGKILL), 0);
	cr_assert_eq(poll(&p, 1, -1), 1);
	cr_assert(reactor_turn(reactor, 0));
}

Test(keeper, one_that_is_killed_is_replaced)
{
	pid_t first;

	start();
	first = keeper.pid;
	kill_keeper();
	cr_assert(keeper_is_there(&keeper));
	cr_assert_neq(keeper.pid, first);
	cr_assert(was_logged("the keeper died: there is another one"));
	wait_until_it_watches();
	end();
}

Test(keeper, unless_that_happens_too_often)
{
	start();
	for (unsigned int i = 0; i < 5; i++) {
		kill_keeper();
		cr_assert(keeper_is_there(&keeper));
	}
	kill_keeper();
	cr_assert_not(keeper_is_there(&keeper));
	cr_assert_eq(line_cnt, 6);
	cr_assert(was_logged("the mount goes on without one"));
	end();
}

static bool ended_well(void)
{
	int status;

	return waitpid(-1, &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Test(keeper, starts_this_program_with_these_arguments_again_and_again)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) { /* the daemon */
		start();
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_assert(ended_well(), "the keeper or the successor, which have no other parent now");
	cr_assert(ended_well(), "and the other one");
	cr_assert_eq(waitpid(-1, NULL, 0), -1, "no process is left");
}

/* ---- an upgrade ---- */

Test(keeper, goes_through_an_upgrade)
{
	const struct keeper_conf conf = {.mountpoint = MOUNTPOINT,
		.fuse_fd = fuse[1],
		.live_fd = memfd_create("own", MFD_CLOEXEC)};
	pid_t pid;
	int sock;

	start();
	cr_assert_eq(keeper_kept(&pid), -1);
	keeper_keep(&keeper, true);
	cr_assert_eq(fcntl(keeper.src.fd, F_GETFD), 0, "the next program has it");
	keeper_keep(&keeper, false);
	cr_assert_eq(fcntl(keeper.src.fd, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(keeper_kept(&pid), -1);
	keeper_keep(&keeper, true);
	sock = keeper_kept(&pid);
	cr_assert_eq(sock, keeper.src.fd);
	cr_assert_eq(pid, keeper.pid);
	cr_assert_eq(fcntl(sock, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(keeper_kept(&pid), -1, "once");
	reactor_fd_del(&keeper.src);
	cr_assert_eq(keeper_start(&keeper, reactor, &conf, sock, pid), 0);
	cr_assert_eq(keeper.pid, pid, "it is the same one");
	wait_until_it_watches();
	cr_assert(has_open("/memfd:own (deleted)"));
	cr_assert_not(has_open("/memfd:live (deleted)"));
	end();
}

Test(keeper, one_that_cannot_be_told_is_replaced)
{
	const struct keeper_conf conf = {
		.mountpoint = MOUNTPOINT, .fuse_fd = fuse[1], .live_fd = live};
	struct pollfd p;
	pid_t pid;
	int sock;

	start();
	keeper_keep(&keeper, true);
	sock = keeper_kept(&pid);
	reactor_fd_del(&keeper.src);
	p = (struct pollfd){.fd = sock, .events = POLLIN};
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(poll(&p, 1, -1), 1);
	cr_assert_eq(keeper_start(&keeper, reactor, &conf, sock, pid), 0);
	cr_assert(kill(pid, 0) == -1 && errno == ESRCH, "nothing is left of it");
	cr_assert(keeper_is_there(&keeper));
	cr_assert_neq(keeper.pid, pid);
	wait_until_it_watches();
	end();
}

/* Its PID may be somebody else's when it has ended. */
Test(keeper, one_that_is_no_child_of_ours_is_not_killed)
{
	const struct keeper_conf conf = {
		.mountpoint = MOUNTPOINT, .fuse_fd = fuse[1], .live_fd = live};
	int sv[2];

	reactor = reactor_new_virtual();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	cr_assert_eq(keeper_start(&keeper, reactor, &conf, sv[0], getppid()), 0);
	close(sv[1]);
	cr_assert(reactor_turn(reactor, 0));
	cr_assert_eq(kill(getppid(), 0), 0);
	cr_assert(was_logged("the keeper died: there is another one"));
	end();
}

Test(keeper, without_one_there_is_nothing_to_hand_on)
{
	struct keeper none = {0};

	keeper_keep(&none, true);
	cr_assert_null(getenv("RPCRDMAFS_KEPT"));
	keeper_end(&none);
	keeper_bye(-1);
}

/* ---- variables ---- */

Test(keeper, a_successor_knows_what_it_follows)
{
	struct keeper_crash c;
	char value[100];
	int sv[2];

	cr_assert_eq(keeper_take(&c), 0, "an ordinary start");
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	fcntl(live, F_SETFD, 0);
	fcntl(fuse[1], F_SETFD, 0);
	snprintf(value, sizeof(value), "%d %d %d 3 123456789012 77", live, fuse[1], sv[0]);
	setenv("RPCRDMAFS_CRASHED", value, 1);
	cr_assert_eq(keeper_take(&c), 1);
	cr_assert_eq(c.live_fd, live);
	cr_assert_eq(c.fuse_fd, fuse[1]);
	cr_assert_eq(c.sock, sv[0]);
	cr_assert_eq(c.crashes, 3);
	cr_assert_eq(c.died_ns, 123456789012);
	cr_assert_eq(c.pid, 77);
	cr_assert_eq(c.keeper, getpid(), "that made the sockets");
	cr_assert_eq(fcntl(live, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(fcntl(fuse[1], F_GETFD), FD_CLOEXEC);
	cr_assert_eq(fcntl(sv[0], F_GETFD), FD_CLOEXEC);
	cr_assert_eq(keeper_take(&c), 0, "once");
}

Test(keeper, variables_that_are_damaged_are_refused)
{
	/* Descriptors: L the records, F /dev/fuse, S the socket. */
	static const char *const wrong[] = {"", " ", "x", "L F S 1 2", "L F S 1 2 77 8",
		"L F S 1 2 77 ", " L F S 1 2 77", "L F S 1 2 0", "L F S -1 2 77", "L F S 1 2 -77",
		"L F F 1 2 77", "L 999 S 1 2 77", "0 F S 1 2 77", "L F S 4294967296 2 77",
		"L F S 1 99999999999999999999 77", "L F 4294967299 1 2 77", "L  F S 1 2 77",
		"L F S 1 2 4294967297"};
	static char name[] = "rpcrdmafs: keeper", mountpoint[] = MOUNTPOINT;
	char *arguments[] = {name, mountpoint, NULL};
	int sv[2], status = -1;
	struct keeper_crash c;
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char value[200] = "";

		for (const char *p = wrong[i]; *p != '\0'; p++) {
			size_t len = strlen(value);
			int fd = *p == 'L' ? live : *p == 'F' ? fuse[1] : *p == 'S' ? sv[0] : -1;

			if (fd >= 0)
				snprintf(value + len, sizeof(value) - len, "%d", fd);
			else
				snprintf(value + len, sizeof(value) - len, "%c", *p);
		}
		setenv("RPCRDMAFS_CRASHED", value, 1);
		cr_assert_eq(keeper_take(&c), -EINVAL, "\"%s\"", wrong[i]);
		cr_assert_null(getenv("RPCRDMAFS_CRASHED"));
		setenv("RPCRDMAFS_KEPT", value, 1);
		cr_assert_eq(keeper_kept(&pid), -1, "\"%s\"", wrong[i]);
		setenv("RPCRDMAFS_KEEPER", value, 1);
		cr_assert(keeper_is_asked(2, arguments, &status), "\"%s\"", wrong[i]);
		cr_assert_eq(status, 1);
		cr_assert_null(getenv("RPCRDMAFS_KEEPER"));
	}
	cr_assert_not(keeper_is_asked(2, arguments, &status));
}
