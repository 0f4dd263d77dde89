/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "log.h"

#define FDS_MAX 4u
/* Before the second successor; then twice that, and so on. */
#define PAUSE_NS (100 * NSEC_PER_MSEC)

int keeper_run_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

uint64_t keeper_run_wait(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (ns > 0 && nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

bool keeper_run_count(struct keeper_deaths *d, uint64_t now_ns)
{
	if (now_ns - d->since_ns > KEEPER_SOON_NS)
		d->cnt = 0;
	d->since_ns = now_ns;
	return ++d->cnt <= KEEPER_DEATHS;
}

/* ---- another program ---- */

/* This process's, and one more; the strings are shared. NULL: out of memory. */
static char **environment(char *variable)
{
	size_t cnt = 0;
	char **env;

	while (environ != NULL && environ[cnt] != NULL)
		cnt++;
	env = calloc(cnt + 2, sizeof(char *));
	if (env == NULL)
		return NULL;
	if (cnt > 0)
		memcpy(env, environ, cnt * sizeof(char *));
	env[cnt] = variable;
	return env;
}

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawnattr_setsigmask(attr, &none);
	if (err == 0)
		err = posix_spawnattr_setsigdefault(attr, &all);
	if (err == 0)
		err = posix_spawnattr_setflags(
			attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return err;
}

static int spawn(pid_t *ret, const char *program, char **argv, char **env, const int *fds,
	unsigned int fd_cnt)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	int err = posix_spawn_file_actions_init(&acts);

	if (err != 0)
		return err;
	err = posix_spawnattr_init(&attr);
	if (err == 0) {
		err = set_attributes(&attr);
		for (unsigned int i = 0; err == 0 && i < fd_cnt; i++)
			err = posix_spawn_file_actions_adddup2(
				&acts, fds[i], KEEPER_RUN_FD + (int)i);
		if (err == 0)
			err = posix_spawn(ret, program, &acts, &attr, argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&acts);
	return err;
}

pid_t keeper_run_spawn(
	const char *program, char **argv, char *variable, const int *fds, unsigned int fd_cnt)
{
	char **env = environment(variable);
	int above[FDS_MAX], err = env == NULL ? ENOMEM : 0;
	unsigned int cnt = 0;
	pid_t pid = -1;

	/* First out of the way: none may be where another one is to be. */
	for (; err == 0 && cnt < fd_cnt; cnt++) {
		above[cnt] = fcntl(fds[cnt], F_DUPFD_CLOEXEC, KEEPER_RUN_FD + (int)FDS_MAX);
		if (above[cnt] < 0) {
			err = errno;
			break;
		}
	}
	if (err == 0)
		err = spawn(&pid, program, argv, env, above, fd_cnt);
	while (cnt > 0)
		close(above[--cnt]);
	free(env);
	return err == 0 ? pid : -err;
}

/* ---- the process that is watched ---- */

/* Has it said bye? *sock is -1 if its end is closed. */
static bool hear(int *sock)
{
	char text[16];
	ssize_t n;

	for (;;) {
		n = recv(*sock, text, sizeof(text), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n <= 0) {
			*sock = -1;
			return false;
		}
		if (n == (ssize_t)strlen(KEEPER_RUN_BYE) &&
			memcmp(text, KEEPER_RUN_BYE, (size_t)n) == 0)
			return true;
	}
}

/* Waits until it has said bye (true), or is gone. */
static bool watch(struct keeper_run *w)
{
	struct pollfd p[] = {{.fd = w->sock, .events = POLLIN}, {.fd = w->pidfd, .events = POLLIN}};
	bool bye = false, gone = false;

	while (!bye && !gone && (p[0].fd >= 0 || p[1].fd >= 0)) {
		p[1].revents = 0;
		if (poll(p, 2, -1) < 0)
			continue;
		gone = p[1].revents != 0; /* all that it said is there to be heard then */
		if (p[0].fd >= 0)
			bye = hear(&p[0].fd);
	}
	if (w->sock >= 0)
		close(w->sock);
	if (w->pidfd >= 0)
		close(w->pidfd);
	w->sock = w->pidfd = -1;
	/* The daemon is no child of ours, the successors are. */
	while (!bye && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return bye;
}

static bool is_mounted(const struct keeper_run *w)
{
	struct pollfd p = {.fd = w->fuse};

	return poll(&p, 1, 0) >= 0 && (p.revents & (POLLERR | POLLNVAL)) == 0;
}

static int start_successor(
	struct keeper_run *w, struct arguments *args, unsigned int crashes, uint64_t died_ns)
{
	char program[32], variable[160];
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		return -errno;
	snprintf(program, sizeof(program), "/proc/self/fd/%d", w->program);
	snprintf(variable, sizeof(variable), KEEPER_RUN_CRASHED "=%d %d %d %u %" PRIu64 " %d",
		KEEPER_RUN_FD, KEEPER_RUN_FD + 1, KEEPER_RUN_FD + 2, crashes, died_ns, (int)w->pid);
	pid = keeper_run_spawn(
		program, args->argv, variable, (const int[]){w->live, w->fuse, sv[1]}, 3);
	close(sv[1]);
	if (pid < 0) {
		close(sv[0]);
		return pid;
	}
	w->sock = sv[0];
	w->pid = pid;
	w->pidfd = keeper_run_pidfd(pid);
	return 0;
}

static int keep(struct keeper_run *w, struct arguments *args)
{
	struct keeper_deaths deaths = {.cnt = w->crashes, .since_ns = w->wait(0)};

	while (!watch(w)) {
		uint64_t died_ns = w->wait(0);
		int err;

		if (!is_mounted(w))
			return 0;
		if (!keeper_run_count(&deaths, died_ns)) {
			log_err("%s: the daemon died %u times, one soon after the other: the mount "
				"is given up, and all use of it fails",
				w->mountpoint, deaths.cnt);
			return 1;
		}
		log_warn("%s: the daemon died: another one takes the mount over (%u)",
			w->mountpoint, deaths.cnt);
		if (deaths.cnt > 1)
			w->wait(PAUSE_NS << (deaths.cnt - 2));
		err = start_successor(w, args, deaths.cnt, died_ns);
		if (err != 0)
			log_err("%s: another daemon cannot be started: %s", w->mountpoint,
				strerror(-err));
	}
	return 0;
}

static void ignore_signals(void)
{
	static const int sigs[] = {SIGINT, SIGHUP, SIGTERM, SIGPIPE};

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], SIG_IGN);
}

int keeper_run(struct keeper_run *w)
{
	struct arguments args;
	int err, status = 1;

	ignore_signals();
	err = arguments_read(&args, w->args);
	close(w->args);
	if (err == 0) {
		status = keep(w, &args);
		arguments_free(&args);
	} else {
		log_err("%s: the daemon's arguments: %s", w->mountpoint, strerror(-err));
	}
	close(w->fuse);
	close(w->live);
	close(w->program);
	return status;
}
