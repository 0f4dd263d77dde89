/* SPDX-License-Identifier: BSD-3-Clause */
#include "notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held.h"
#include "hold.h"
#include "keeper_run.h"
#include "log.h"
#include "process.h"

/* FUSE is the first descriptor; the others follow: lines, and the last one. */
#define ASKED   HOLD_RUN_VARIABLE
#define LINES   FS_NOTIFY_LINES
#define FD_FUSE PROCESS_FD
#define FD_LINE (FD_FUSE + 1)
#define FD_END  (FD_LINE + LINES)
/* How long its end is waited for. */
#define END_MS  2000
#define TICK_MS 10

/* ---- the process ---- */

/* A line: each notice is answered with what write(2) said of it. */
static void *serve(void *arg)
{
	const int *line = arg;
	char notice[FS_NOTIFY_MAX];

	for (;;) {
		ssize_t n = recv(*line, notice, sizeof(notice), 0);
		int32_t said;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		n = write(FD_FUSE, notice, (size_t)n);
		said = n < 0 ? -errno : (int32_t)n;
		(void)send(*line, &said, sizeof(said), MSG_NOSIGNAL);
	}
}

static int run(void)
{
	static int lines[LINES];
	struct pollfd end = {.fd = FD_END, .events = POLLIN};
	pthread_t thread;

	for (int i = 0; i < LINES; i++) {
		lines[i] = FD_LINE + i;
		if (pthread_create(&thread, NULL, serve, &lines[i]) != 0)
			return 1;
		pthread_detach(thread);
	}
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	return 0; /* with it the threads; one that waits in the kernel ends when it can */
}

bool notifier_is_asked(int argc, char **argv, int *ret_status)
{
	if (getenv(ASKED) == NULL)
		return false;
	unsetenv(ASKED);
	(void)prctl(PR_SET_NAME, "rpcrdmafs-note"); /* nobody who looks for daemons finds it */
	close_range(FD_END + 1, ~0u, 0);
	*ret_status = run();
	return true;
}

/* ---- the daemon ---- */

static void close_all(int *fds, unsigned int cnt)
{
	while (cnt > 0)
		close(fds[--cnt]);
}

/* Pairs of sockets. Returns: 0; -errno: there are none. */
static int make_lines(int *ours, int *theirs, unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++) {
		int sv[2], err;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0) {
			err = -errno;
			close_all(ours, i);
			close_all(theirs, i);
			return err;
		}
		ours[i] = sv[0];
		theirs[i] = sv[1];
	}
	return 0;
}

/* Returns its PID; 0: it is the holder's child; -errno. */
static pid_t spawn(const struct notifier *n, const int *theirs)
{
	char name[] = "rpcrdmafs: notifier", variable[] = ASKED "=1";
	int fds[LINES + 2] = {fs_handover_device(n->fs)};
	char *mountpoint, *argv[] = {name, NULL, NULL};
	pid_t pid = -ENOMEM;

	memcpy(fds + 1, theirs, (LINES + 1) * sizeof(int));
	if (held_notifier(fds, LINES + 2) == 0)
		return 0;
	mountpoint = strdup(n->mountpoint);
	argv[1] = mountpoint;
	if (mountpoint != NULL)
		pid = process_spawn("/proc/self/exe", argv, variable, fds, LINES + 2);
	free(mountpoint);
	return pid;
}

static void on_end(struct reactor_fd *src, uint32_t events);

static int start(struct notifier *n)
{
	int ours[LINES + 1], theirs[LINES + 1], err = make_lines(ours, theirs, LINES + 1);
	pid_t pid;

	if (err != 0)
		return err;
	pid = spawn(n, theirs);
	close_all(theirs, LINES + 1);
	err = pid < 0 ? pid : reactor_fd_add(n->reactor, &n->src, ours[LINES], EPOLLIN, on_end);
	if (err != 0) {
		close_all(ours, LINES + 1); /* one that was started ends by that */
		return err;
	}
	n->pid = pid;
	fs_notify_through(n->fs, ours);
	return 0;
}

/* True: it has ended. */
static bool reap(pid_t pid)
{
	for (int i = 0; i < END_MS / TICK_MS; i++) {
		pid_t n = waitpid(pid, NULL, WNOHANG);

		if (n == pid || (n < 0 && errno != EINTR))
			return true;
		poll(NULL, 0, TICK_MS);
	}
	return false;
}

static void forget(struct notifier *n)
{
	reactor_fd_del(&n->src);
	close(n->src.fd);
	n->pid = 0;
}

static void on_end(struct reactor_fd *src, uint32_t events)
{
	struct notifier *n = container_of(src, struct notifier, src);
	pid_t pid = n->pid;
	int err = -ELOOP;

	forget(n);
	if (pid > 0) {
		kill(pid, SIGKILL); /* or it is dead already */
		(void)reap(pid);
	}
	if (keeper_run_count(&n->deaths, reactor_clock(n->reactor)))
		err = start(n);
	if (err == 0)
		log_warn("%s: the notifier died: there is another one", n->mountpoint);
	else
		log_err("%s: the notifier died, and there is no other one: %s: if this daemon is "
			"killed, the mount may hang",
			n->mountpoint, err == -ELOOP ? "too often" : strerror(-err));
}

int notifier_start(struct notifier *n, struct reactor *r, struct fs *fs, const char *mountpoint)
{
	*n = (struct notifier){.reactor = r, .fs = fs, .mountpoint = mountpoint};
	return start(n);
}

void notifier_end(struct notifier *n)
{
	pid_t pid = n->pid;

	if (n->src.reactor == NULL)
		return;
	forget(n);
	if (pid > 0)
		(void)reap(pid);
}
