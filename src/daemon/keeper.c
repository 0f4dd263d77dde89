/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "handover.h"
#include "keeper_run.h"
#include "log.h"
#include "process.h"
#include "rights.h"

/* SOCK PID */
#define KEPT "RPCRDMAFS_KEPT"
/* A keeper that does not end by itself within so long is killed. */
#define END_MS 2000

/* ---- variables ---- */

/* Exactly so many, with one space between them. */
static bool get_numbers(const char *text, uint64_t *to, unsigned int cnt)
{
	char *end;

	for (unsigned int i = 0; i < cnt; i++) {
		if (!isdigit((unsigned char)*text))
			return false;
		errno = 0;
		to[i] = strtoull(text, &end, 10);
		if (errno != 0 || *end != (i + 1 < cnt ? ' ' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

/* One that this process was given. No other program gets it. */
static bool take_fd(uint64_t number, int *ret)
{
	if (number <= STDERR_FILENO || number > INT_MAX ||
		fcntl((int)number, F_SETFD, FD_CLOEXEC) != 0)
		return false;
	*ret = (int)number;
	return true;
}

static bool take_socket(uint64_t number, int *ret)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return take_fd(number, ret) && getsockopt(*ret, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_SEQPACKET;
}

static bool take_pid(uint64_t number, pid_t *ret)
{
	*ret = (pid_t)number;
	return number > 0 && number <= INT_MAX;
}

/* The process that made the pair of sockets. */
static bool get_peer(int sock, pid_t *ret)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	*ret = peer.pid;
	return true;
}

static bool parse_crash(const char *text, struct keeper_crash *ret)
{
	uint64_t n[6];

	if (!get_numbers(text, n, 6) || n[3] > UINT_MAX)
		return false;
	ret->crashes = (unsigned int)n[3];
	ret->died_ns = n[4];
	return take_fd(n[0], &ret->live_fd) && take_fd(n[1], &ret->fuse_fd) &&
	       take_socket(n[2], &ret->sock) && take_pid(n[5], &ret->pid) &&
	       get_peer(ret->sock, &ret->keeper);
}

int keeper_take(struct keeper_crash *ret)
{
	const char *text = getenv(KEEPER_RUN_CRASHED);
	bool usable;

	if (text == NULL)
		return 0;
	usable = parse_crash(text, ret);
	unsetenv(KEEPER_RUN_CRASHED);
	if (!usable)
		return -EINVAL;
	/* It was executed by a descriptor, and would be called by its number. */
	(void)prctl(PR_SET_NAME, "rpcrdmafs");
	return 1;
}

int keeper_kept(pid_t *ret_pid)
{
	const char *text = getenv(KEPT);
	uint64_t n[2];
	bool usable;
	int sock;

	if (text == NULL)
		return -1;
	usable = get_numbers(text, n, 2) && take_pid(n[1], ret_pid) && take_socket(n[0], &sock);
	unsetenv(KEPT);
	return usable ? sock : -1;
}

/* ---- the process that is to be a keeper ---- */

/* A program that knows nothing of it passes it over. */
static void parse_before(struct keeper_run *ret)
{
	const char *text = getenv(KEEPER_RUN_BEFORE);
	uint64_t n[2];

	if (text == NULL || !get_numbers(text, n, 2) || !take_fd(n[0], &ret->before))
		ret->before = -1;
	else
		ret->before_ns = n[1];
	unsetenv(KEEPER_RUN_BEFORE);
}

static bool parse_asked(const char *text, struct keeper_run *ret)
{
	uint64_t n[7];
	int max;

	if (!get_numbers(text, n, 7) || n[5] > UINT_MAX || n[6] > 1)
		return false;
	ret->crashes = (unsigned int)n[5];
	ret->syslog = n[6] == 1;
	if (!take_fd(n[0], &ret->fuse) || !take_fd(n[1], &ret->live) ||
		!take_socket(n[2], &ret->sock) || !take_fd(n[3], &ret->args) ||
		!take_pid(n[4], &ret->pid))
		return false;
	max = ret->fuse > ret->live ? ret->fuse : ret->live;
	max = max > ret->sock ? max : ret->sock;
	max = max > ret->args ? max : ret->args;
	parse_before(ret);
	max = max > ret->before ? max : ret->before;
	close_range((unsigned int)max + 1, ~0u, 0); /* whatever the daemon was started with */
	return true;
}

static bool has_ended(int sock)
{
	struct pollfd p = {.fd = sock};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
}

bool keeper_is_asked(int argc, char **argv, int *ret_status)
{
	const char *text = getenv(KEEPER_RUN_ASKED);
	struct keeper_run w = {.wait = keeper_run_wait, .before = -1};
	bool usable;

	if (text == NULL)
		return false;
	*ret_status = 1;
	usable = argc == 2 && parse_asked(text, &w);
	unsetenv(KEEPER_RUN_ASKED); /* successors are none */
	if (!usable) {
		log_err("the variable " KEEPER_RUN_ASKED " is of no use");
		return true;
	}
	(void)prctl(PR_SET_NAME, "rpcrdmafs-keep"); /* nobody who looks for daemons finds it */
	if (w.syslog)
		log_to_syslog("rpcrdmafs");
	w.mountpoint = argv[1];
	w.program = handover_self();
	if (w.program < 0) {
		log_err("%s: the keeper's program: %s", w.mountpoint, strerror(-w.program));
		return true;
	}
	w.pidfd = keeper_run_pidfd(w.pid);
	/* If it is gone already the number may be somebody else's. */
	if (has_ended(w.sock) && w.pidfd >= 0) {
		close(w.pidfd);
		w.pidfd = -1;
	}
	*ret_status = keeper_run(&w);
	return true;
}

/* ---- the daemon ---- */

/*
 * A keeper that this process has started is its child. The one that has started this process is
 * not: its number may be somebody else's as soon as it has ended.
 */
static void kill_child(pid_t pid)
{
	siginfo_t si;

	if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0)
		kill(pid, SIGKILL);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void say_bye(int sock)
{
	(void)send(sock, KEEPER_RUN_BYE, strlen(KEEPER_RUN_BYE), MSG_NOSIGNAL);
}

void keeper_bye(int sock)
{
	if (sock < 0)
		return;
	say_bye(sock);
	close(sock);
}

void keeper_dismiss(int sock, pid_t pid)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int n;

	if (sock < 0)
		return;
	say_bye(sock);
	do
		n = poll(&p, 1, END_MS); /* it says nothing: that is its end */
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		kill_child(pid);
	close(sock);
	reap(pid);
}

/* This process's arguments: a file for another program, or -errno. */
static int arguments_file(void)
{
	struct arguments args;
	int err = arguments_of_self(&args), fd;
	ssize_t n;

	if (err != 0)
		return err;
	fd = memfd_create("rpcrdmafs-arguments", MFD_CLOEXEC);
	if (fd < 0) {
		err = -errno;
	} else {
		n = pwrite(fd, args.text, args.len, 0);
		err = n < 0 ? -errno : (size_t)n < args.len ? -ENOSPC : 0;
	}
	arguments_free(&args);
	if (err == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

static pid_t spawn(const struct keeper_conf *c, int sock)
{
	char name[] = KEEPER_RUN_NAME, variable[160];
	char *mountpoint = strdup(c->mountpoint), *argv[] = {name, mountpoint, NULL};
	int args = mountpoint == NULL ? -ENOMEM : arguments_file();
	pid_t pid = args;

	if (args >= 0) {
		keeper_run_asked(variable, sizeof(variable),
			(const int[]){PROCESS_FD, PROCESS_FD + 1, PROCESS_FD + 2, PROCESS_FD + 3},
			getpid(), c->crashes, c->syslog);
		pid = process_spawn("/proc/self/exe", argv, variable,
			(const int[]){c->fuse_fd, c->live_fd, sock, args}, 4);
		close(args);
	}
	free(mountpoint);
	return pid;
}

static void on_socket(struct reactor_fd *src, uint32_t events);

static int listen_to(struct keeper *k, int sock, pid_t pid)
{
	int err = reactor_fd_add(k->reactor, &k->src, sock, EPOLLIN, on_socket);

	if (err != 0)
		keeper_dismiss(sock, pid);
	else
		k->pid = pid;
	return err;
}

static int start(struct keeper *k)
{
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		return -errno;
	pid = spawn(&k->conf, sv[1]);
	close(sv[1]);
	if (pid < 0) {
		close(sv[0]);
		return pid;
	}
	return listen_to(k, sv[0], pid);
}

/* It was killed. */
static void start_again(struct keeper *k)
{
	const char *mountpoint = k->conf.mountpoint;
	int err;

	if (!keeper_run_count(&k->deaths, reactor_clock(k->reactor))) {
		log_err("%s: the keeper died %u times, one soon after the other: the mount goes on "
			"without one, and does not outlive this daemon",
			mountpoint, k->deaths.cnt);
		return;
	}
	err = start(k);
	if (err == 0)
		log_warn("%s: the keeper died: there is another one (PID %d)", mountpoint,
			(int)k->pid);
	else
		log_err("%s: the keeper died, and another one cannot be started: %s: the mount "
			"does not outlive this daemon",
			mountpoint, strerror(-err));
}

static void on_socket(struct reactor_fd *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, src);
	char text[16];
	ssize_t n = recv(src->fd, text, sizeof(text), MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	reactor_fd_del(src);
	close(src->fd);
	kill_child(k->pid); /* or it is dead already */
	reap(k->pid);
	k->pid = 0;
	start_again(k);
}

static int tell_next(const struct keeper_conf *c, int sock)
{
	int program = handover_self(), args, err;

	if (program < 0)
		return program;
	args = arguments_file();
	err = args < 0 ? args
		       : rights_send(sock, KEEPER_RUN_NEXT, strlen(KEEPER_RUN_NEXT),
				 (const int[]){c->live_fd, program, args}, KEEPER_RUN_NEXT_FDS,
				 MSG_DONTWAIT);
	if (args >= 0)
		close(args);
	close(program);
	return err;
}

int keeper_start(
	struct keeper *k, struct reactor *r, const struct keeper_conf *conf, int sock, pid_t pid)
{
	*k = (struct keeper){.reactor = r, .conf = *conf};
	if (sock < 0)
		return start(k);
	if (tell_next(conf, sock) == 0)
		return listen_to(k, sock, pid);
	keeper_dismiss(sock, pid); /* it was killed, say */
	return start(k);
}

void keeper_end(struct keeper *k)
{
	if (!keeper_is_there(k))
		return;
	reactor_fd_del(&k->src);
	keeper_dismiss(k->src.fd, k->pid);
	k->pid = 0;
}

void keeper_keep(struct keeper *k, bool keep)
{
	char value[32];

	if (!keeper_is_there(k))
		return;
	snprintf(value, sizeof(value), "%d %d", k->src.fd, (int)k->pid);
	if (keep && setenv(KEPT, value, 1) != 0)
		return;
	fcntl(k->src.fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
	if (!keep)
		unsetenv(KEPT);
}
