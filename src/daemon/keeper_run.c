/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "fs.h"
#include "log.h"
#include "mountinfo.h"
#include "process.h"
#include "rights.h"

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

void keeper_run_asked(
	char *to, size_t size, const int *fds, pid_t pid, unsigned int crashes, bool to_syslog)
{
	snprintf(to, size, KEEPER_RUN_ASKED "=%d %d %d %d %d %u %d", fds[0], fds[1], fds[2], fds[3],
		(int)pid, crashes, to_syslog);
}

/* ---- the next records ---- */

struct keeping {
	struct keeper_run *w;
	struct arguments args; /* of successors */
	struct keeper_deaths deaths;
	unsigned int early;     /* since there is w->before */
	struct mountinfo mount; /* as it was at first */
};

static void set_cloexec(const struct keeper_run *w, int args, int flag)
{
	const int fds[] = {w->fuse, w->live, w->sock, args, w->before};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		(void)fcntl(fds[i], F_SETFD, flag);
}

/* Returns only if that program cannot be executed: -errno. */
static int become(const struct keeping *k, int args)
{
	const struct keeper_run *w = k->w;
	char name[] = KEEPER_RUN_NAME, variable[160], before[40];
	char *mountpoint = strdup(w->mountpoint), *argv[] = {name, mountpoint, NULL}, **env;
	int err;

	snprintf(before, sizeof(before), "%d %" PRIu64, w->before, w->before_ns);
	err = mountpoint == NULL || setenv(KEEPER_RUN_BEFORE, before, 1) != 0 ? -ENOMEM : 0;
	keeper_run_asked(variable, sizeof(variable), (const int[]){w->fuse, w->live, w->sock, args},
		w->pid, k->deaths.cnt, w->syslog);
	env = process_environment(variable);
	if (env == NULL)
		err = -ENOMEM;
	if (err == 0) {
		set_cloexec(w, args, 0);
		fexecve(w->program, argv, env);
		err = -errno;
		set_cloexec(w, args, FD_CLOEXEC);
	}
	free(env);
	free(mountpoint);
	unsetenv(KEEPER_RUN_BEFORE); /* successors are no keepers */
	return err;
}

static bool is_same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static void put_in_place(int *fd, int next)
{
	if (*fd >= 0)
		close(*fd);
	*fd = next;
}

static void is_before(struct keeping *k, int program)
{
	put_in_place(&k->w->before, program);
	k->w->before_ns = k->w->wait(0);
	k->early = 0;
}

/* One more daemon has died: is its program any better than the one before? */
static void judge_program(struct keeping *k, uint64_t died_ns)
{
	struct keeper_run *w = k->w;

	if (w->before < 0)
		return;
	if (died_ns - w->before_ns > KEEPER_EARLY_NS) {
		put_in_place(&w->before, -1);
	} else if (++k->early == KEEPER_EARLY_DEATHS) {
		log_err("%s: the program that had taken over died %u times in its first minute: "
			"the one before goes on",
			w->mountpoint, k->early);
		put_in_place(&w->program, w->before);
		w->before = -1;
	}
}

/* The descriptors become ours. Returns: 0; -errno: they are of no use. */
static int take_next(struct keeping *k, const int *fds)
{
	struct keeper_run *w = k->w;
	bool is_other = !is_same_file(w->program, fds[1]);
	struct arguments args;
	int err;

	put_in_place(&w->live, fds[0]);
	if (is_other)
		is_before(k, w->program);
	else
		close(w->program);
	w->program = fds[1];
	if (is_other) {
		err = become(k, fds[2]);
		log_warn("%s: the keeper goes on as the program before: %s", w->mountpoint,
			strerror(-err));
	}
	err = arguments_read(&args, fds[2]);
	close(fds[2]);
	if (err != 0)
		return err;
	arguments_free(&k->args);
	k->args = args;
	return 0;
}

/* ---- the process that is watched ---- */

enum heard {
	HEARD_NOTHING, /* any more, for now */
	HEARD_SOMETHING,
	HEARD_BYE,
	HEARD_END,   /* its end is closed */
	HEARD_WRONG, /* whatever is done now would be done with the wrong records */
};

static bool is_text(const char *text, ssize_t len, const char *want)
{
	return len == (ssize_t)strlen(want) && memcmp(text, want, (size_t)len) == 0;
}

static enum heard hear(struct keeping *k)
{
	char text[16];
	struct rights r;
	ssize_t n = rights_receive(k->w->sock, text, sizeof(text), &r, MSG_DONTWAIT);
	int err = -EBADMSG;

	if (n == -EAGAIN || n == -EINTR)
		return HEARD_NOTHING;
	if (n <= 0)
		return HEARD_END;
	if (is_text(text, n, KEEPER_RUN_NEXT) && r.cnt == KEEPER_RUN_NEXT_FDS && !r.cut) {
		err = take_next(k, r.fds);
		if (err == 0)
			return HEARD_SOMETHING;
	} else {
		rights_close(&r);
		if (!is_text(text, n, KEEPER_RUN_NEXT))
			return is_text(text, n, KEEPER_RUN_BYE) ? HEARD_BYE : HEARD_SOMETHING;
	}
	log_err("%s: the next records: %s", k->w->mountpoint, strerror(-err));
	return HEARD_WRONG;
}

/* Waits until it is gone (HEARD_END), has said bye, or something wrong. */
static enum heard watch(struct keeping *k)
{
	struct keeper_run *w = k->w;
	struct pollfd p[] = {{.fd = w->sock, .events = POLLIN}, {.fd = w->pidfd, .events = POLLIN}};
	enum heard heard = HEARD_NOTHING;
	bool gone = false;

	while (!gone && (p[0].fd >= 0 || p[1].fd >= 0)) {
		p[1].revents = 0;
		if (poll(p, 2, -1) < 0)
			continue;
		gone = p[1].revents != 0; /* all that it said is there to be heard then */
		if (p[0].fd < 0)
			continue;
		do
			heard = hear(k);
		while (heard == HEARD_SOMETHING);
		if (heard == HEARD_BYE || heard == HEARD_WRONG)
			break;
		if (heard == HEARD_END)
			p[0].fd = -1;
	}
	if (w->sock >= 0)
		close(w->sock);
	if (w->pidfd >= 0)
		close(w->pidfd);
	w->sock = w->pidfd = -1;
	if (heard == HEARD_BYE || heard == HEARD_WRONG)
		return heard;
	/* The daemon is no child of ours, the successors are. */
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return HEARD_END;
}

static bool is_mounted(const struct keeper_run *w)
{
	struct pollfd p = {.fd = w->fuse};

	return poll(&p, 1, 0) >= 0 && (p.revents & (POLLERR | POLLNVAL)) == 0;
}

/* "": the table of mounts does not have it. */
static void find_mount(const struct keeper_run *w, char path[PATH_MAX], struct mountinfo *ret)
{
	if (!mountinfo_path("/", w->mountpoint, path) || !mountinfo_mounted(path, ret))
		ret->dev[0] = '\0';
}

/* As a notifier that waits in the kernel has the device open too. If it is that mount. */
static void abort_mount(const struct keeping *k)
{
	char path[PATH_MAX];
	struct mountinfo now;

	find_mount(k->w, path, &now);
	if (now.dev[0] != '\0' && strcmp(now.dev, k->mount.dev) == 0)
		fs_handover_abort(path);
}

static int start_successor(struct keeping *k, uint64_t died_ns)
{
	struct keeper_run *w = k->w;
	char path[32], variable[160];
	int sv[2], program;
	pid_t pid;

	/* Not where one of the others is to be. */
	program = fcntl(w->program, F_DUPFD_CLOEXEC, PROCESS_FD + (int)PROCESS_FDS);
	if (program < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0) {
		pid = -errno;
		close(program);
		return pid;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	snprintf(variable, sizeof(variable), KEEPER_RUN_CRASHED "=%d %d %d %u %" PRIu64 " %d",
		PROCESS_FD, PROCESS_FD + 1, PROCESS_FD + 2, k->deaths.cnt, died_ns, (int)w->pid);
	pid = process_spawn(
		path, k->args.argv, variable, (const int[]){w->live, w->fuse, sv[1]}, 3);
	close(sv[1]);
	close(program);
	if (pid < 0) {
		close(sv[0]);
		return pid;
	}
	w->sock = sv[0];
	w->pid = pid;
	w->pidfd = keeper_run_pidfd(pid);
	return 0;
}

static int keep(struct keeping *k)
{
	struct keeper_run *w = k->w;
	struct keeper_deaths *deaths = &k->deaths;
	enum heard heard;

	while ((heard = watch(k)) == HEARD_END) {
		uint64_t died_ns = w->wait(0);
		int err;

		if (!is_mounted(w))
			return 0;
		if (!keeper_run_count(deaths, died_ns)) {
			log_err("%s: the daemon died %u times, one soon after the other: the mount "
				"is given up, and all use of it fails",
				w->mountpoint, deaths->cnt);
			abort_mount(k);
			return 1;
		}
		judge_program(k, died_ns);
		log_warn("%s: the daemon died: another one takes the mount over (%u)",
			w->mountpoint, deaths->cnt);
		if (deaths->cnt > 1)
			w->wait(PAUSE_NS << (deaths->cnt - 2));
		err = start_successor(k, died_ns);
		if (err != 0)
			log_err("%s: another daemon cannot be started: %s", w->mountpoint,
				strerror(-err));
	}
	return heard == HEARD_BYE ? 0 : 1;
}

static void ignore_signals(void)
{
	static const int sigs[] = {SIGINT, SIGHUP, SIGTERM, SIGPIPE};

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], SIG_IGN);
}

int keeper_run(struct keeper_run *w)
{
	struct keeping k = {.w = w, .deaths = {.cnt = w->crashes, .since_ns = w->wait(0)}};
	char path[PATH_MAX];
	int err, status = 1;

	ignore_signals();
	find_mount(w, path, &k.mount);
	err = arguments_read(&k.args, w->args);
	close(w->args);
	if (err == 0) {
		status = keep(&k);
		arguments_free(&k.args);
	} else {
		log_err("%s: the daemon's arguments: %s", w->mountpoint, strerror(-err));
	}
	put_in_place(&w->before, -1);
	close(w->fuse);
	close(w->live);
	close(w->program);
	return status;
}
