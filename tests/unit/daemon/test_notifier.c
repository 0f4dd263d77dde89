/* SPDX-License-Identifier: BSD-3-Clause */
/* notifier_start() executes this very program. /dev/fuse is a socket. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "notifier.h"

#define HANG_MS 60000

/* Before criterion's main(). */
static void __attribute__((constructor)) be_one(int argc, char **argv)
{
	int status;

	if (notifier_is_asked(argc, argv, &status))
		_exit(status);
}

static int fuse = -1, kernel = -1; /* the ends of a socket */
static int lines[FS_NOTIFY_LINES];
static char last_line[200];
static unsigned int line_cnt;
static struct reactor *reactor;
static struct notifier notifier;

int __wrap_fs_handover_device(const struct fs *fs);
int __wrap_fs_handover_device(const struct fs *fs)
{
	return fuse;
}

void __wrap_fs_notify_through(struct fs *fs, const int *to);
void __wrap_fs_notify_through(struct fs *fs, const int *to)
{
	for (unsigned int i = 0; i < FS_NOTIFY_LINES; i++) {
		if (lines[i] >= 0)
			close(lines[i]);
		lines[i] = to[i];
	}
}

static void note_line(void *ctx, enum log_level level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
	line_cnt++;
}

static void set_up(void)
{
	int sv[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	fuse = sv[0];
	kernel = sv[1];
	for (unsigned int i = 0; i < FS_NOTIFY_LINES; i++)
		lines[i] = -1;
	/* Whose parent is gone is ours. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	log_set_sink(note_line, NULL);
	reactor = reactor_new_virtual();
	cr_assert_not_null(reactor);
}

static void start(void)
{
	cr_assert_eq(notifier_start(&notifier, reactor, NULL, "/nowhere/a mount"), 0);
	cr_assert_gt(notifier.pid, 0);
}

static void tear_down(void)
{
	pid_t pid = notifier.pid;

	notifier_end(&notifier);
	cr_assert_eq(notifier.pid, 0);
	/* On a busy machine it is not waited for until its end. */
	for (int i = 0; pid != 0 && i < 60000 && kill(pid, 0) == 0; i++) {
		(void)waitpid(pid, NULL, WNOHANG);
		usleep(1000);
	}
	cr_assert(pid == 0 || (kill(pid, 0) == -1 && errno == ESRCH), "no process is left");
	reactor_free(reactor);
}

TestSuite(notifier, .init = set_up, .fini = tear_down);

/* The notice goes that way, and so does the answer. */
static void writes(unsigned int line)
{
	char notice[40], got[100];
	struct pollfd p = {.fd = lines[line], .events = POLLIN};
	int32_t said = 0;

	memset(notice, (int)line + 1, sizeof(notice));
	cr_assert_eq(send(lines[line], notice, sizeof(notice), MSG_NOSIGNAL), sizeof(notice));
	cr_assert_eq(poll(&p, 1, HANG_MS), 1, "line %u", line);
	cr_assert_eq(recv(lines[line], &said, sizeof(said), 0), sizeof(said));
	cr_assert_eq(said, sizeof(notice));
	cr_assert_eq(recv(kernel, got, sizeof(got), MSG_DONTWAIT), sizeof(notice));
	cr_assert_eq(memcmp(got, notice, sizeof(notice)), 0);
}

Test(notifier, writes_what_comes_over_any_line)
{
	start();
	for (unsigned int i = 0; i < FS_NOTIFY_LINES; i++)
		writes(i);
	writes(0);
	cr_assert_eq(line_cnt, 0);
}

Test(notifier, an_error_is_an_answer)
{
	int32_t said = 0;

	close(fuse);
	fuse = open("/dev/null", O_RDONLY | O_CLOEXEC);
	start();
	cr_assert_eq(send(lines[3], "notice", 6, 0), 6);
	cr_assert_eq(recv(lines[3], &said, sizeof(said), 0), sizeof(said));
	cr_assert_eq(said, -EBADF);
}

/* Nobody reads what is written. Returns: over how many lines no answer came. */
static unsigned int fill(void)
{
	static char notice[FS_NOTIFY_MAX];
	unsigned int waiting = 0;

	for (unsigned int i = 0; i < 3; i++) {
		struct pollfd p = {.fd = lines[i], .events = POLLIN};
		int32_t said;

		do
			cr_assert_gt(send(lines[i], notice, sizeof(notice), 0), 0);
		while (poll(&p, 1, 500) == 1 && recv(lines[i], &said, sizeof(said), 0) > 0);
		waiting++;
	}
	return waiting;
}

Test(notifier, one_that_waits_does_not_keep_a_dead_daemon)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) { /* the daemon */
		start();
		_exit(fill() == 3 && kill(getpid(), SIGKILL) == 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	cr_assert_gt(waitpid(-1, &status, 0), 0, "the notifier, which has no other parent now");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void kill_it(void)
{
	struct pollfd p = {.fd = notifier.src.fd, .events = POLLIN};

	cr_assert_eq(kill(notifier.pid, SIGKILL), 0);
	cr_assert_eq(poll(&p, 1, HANG_MS), 1);
	cr_assert(reactor_turn(reactor, 0));
}

Test(notifier, one_that_is_killed_is_replaced)
{
	pid_t first;

	start();
	first = notifier.pid;
	kill_it();
	cr_assert_gt(notifier.pid, 0);
	cr_assert_neq(notifier.pid, first);
	cr_assert_not_null(strstr(last_line, "the notifier died: there is another one"));
	writes(0);
}

Test(notifier, unless_that_happens_too_often)
{
	start();
	for (unsigned int i = 0; i < 5; i++) {
		kill_it();
		cr_assert_gt(notifier.pid, 0);
	}
	kill_it();
	cr_assert_eq(notifier.pid, 0);
	cr_assert_eq(line_cnt, 6);
	cr_assert_not_null(strstr(last_line, "too often"));
}

Test(notifier, has_what_it_needs_and_no_more)
{
	char path[40];
	unsigned int cnt = 0;
	struct dirent *e;
	DIR *d;

	cr_assert_gt(dup2(kernel, 40), 0); /* the daemon was started with it */
	start();
	writes(FS_NOTIFY_LINES - 1);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)notifier.pid);
	d = opendir(path);
	cr_assert_not_null(d);
	while ((e = readdir(d)) != NULL)
		cnt += e->d_name[0] != '.' && strtoul(e->d_name, NULL, 10) > 2;
	closedir(d);
	cr_assert_eq(cnt, 1 + FS_NOTIFY_LINES + 1, "/dev/fuse, the lines, the last socket");
}
