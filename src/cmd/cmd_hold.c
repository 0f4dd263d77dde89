/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd.h"
#include "held.h"
#include "hold.h"
#include "holder.h"
#include "log.h"
#include "optval.h"

#define WAIT_S_MAX 31536000u /* a year */
/* Daemons ask once a second for a holder (mount_held.c). */
#define HOLD_QUIET_NS (3 * NSEC_PER_SEC)
#define HOLD_SPARE    64u

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs hold [--wait SECONDS] FOLDER\n"
	      "       rpcrdmafs hold FOLDER NAME PROGRAM [ARG]...\n"
	      "\n"
	      "Without a name: keeps mounts whose daemons are in other containers, while such a\n"
	      "container is replaced, until SIGTERM. With one: runs the program, a daemon in the\n"
	      "foreground with keep=auto; it goes on with the mount of that name if there is one.\n"
	      "It waits while another program has that name.\n"
	      "\n"
	      "  FOLDER   shared by these containers; all are of one user, or root's\n"
	      "  NAME     of a mount\n"
	      "  PROGRAM  rpcrdmafs -f -o keep=auto,... SOURCE MOUNTPOINT\n"
	      "  --wait   the mount fails if no program comes for so long (600); 0: it waits\n"
	      "  -h       this help\n",
		to);
}

static int fail(const char *what, int err)
{
	char fault[400];

	snprintf(fault, sizeof(fault), "%s: %s", what,
		err == EADDRINUSE ? "there is a holder already" : strerror(err));
	return cmd_fail("hold", fault);
}

static void on_signal(struct reactor_fd *src, uint32_t events)
{
	reactor_stop(src->reactor);
}

static int catch_signals(struct reactor *r, struct reactor_fd *src)
{
	sigset_t set;
	int fd, err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for notifiers */
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = reactor_fd_add(r, src, fd, EPOLLIN, on_signal);
	if (err != 0)
		close(fd);
	return err;
}

/* Each mount takes some. Returns: names that there is room for. */
static unsigned int names_fit(void)
{
	struct rlimit room = {0};

	if (getrlimit(RLIMIT_NOFILE, &room) == 0 && room.rlim_cur < room.rlim_max) {
		room.rlim_cur = room.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &room);
		(void)getrlimit(RLIMIT_NOFILE, &room);
	}
	/* Each has a socket, a program, and one that waits; some are for connections. */
	return room.rlim_cur > HOLD_SPARE
		       ? (unsigned int)((room.rlim_cur - HOLD_SPARE) / (HOLD_FDS + 3))
		       : 0;
}

static int hold(const char *dir, uint64_t wait_s)
{
	const struct holder_conf conf = {
		.dir = dir,
		.wait_ns = wait_s * NSEC_PER_SEC,
		.quiet_ns = HOLD_QUIET_NS,
		.program = "/proc/self/exe",
		.name_max = names_fit(),
	};
	struct reactor *r = reactor_new();
	struct reactor_fd signals = {0};
	struct holder *h;
	int err = r != NULL ? catch_signals(r, &signals) : -errno;

	if (r == NULL)
		return fail(dir, -err);
	h = err == 0 ? holder_new(r, &conf) : NULL;
	if (err == 0 && h == NULL)
		err = -errno;
	if (h != NULL) {
		reactor_run(r);
		holder_free(h);
	}
	if (signals.reactor != NULL) {
		reactor_fd_del(&signals);
		close(signals.fd);
	}
	reactor_free(r);
	return err == 0 ? 0 : fail(dir, -err);
}

static void say_waits(void)
{
	log_warn("another program has that name: this one waits until it has gone");
}

static int run(const char *dir, const char *name, char **argv)
{
	char fault[400];

	if (!hold_is_name(name)) {
		snprintf(fault, sizeof(fault),
			"%s: a name is of letters, digits, '-', '_' and '.', %u at most", name,
			HOLD_NAME - 1);
		return cmd_fail("hold", fault);
	}
	(void)held_exec(dir, name, argv, say_waits, fault, sizeof(fault));
	return cmd_fail("hold", fault);
}

int cmd_hold(int argc, char **argv)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"wait", required_argument, NULL, 'w'}, {0}};
	uint64_t wait_s = HOLD_WAIT_S;
	bool good = true;
	int c, cnt;

	optind = 0;
	/* Options behind the program are its own. */
	while ((c = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
		if (c == 'h') {
			help(stdout);
			return 0;
		}
		good &= c == 'w' && optval_uint(optarg, 0, WAIT_S_MAX, &wait_s);
	}
	cnt = argc - optind;
	if (!good || cnt == 0 || cnt == 2) {
		help(stderr);
		return 2;
	}
	return cnt == 1 ? hold(argv[optind], wait_s)
			: run(argv[optind], argv[optind + 1], argv + optind + 2);
}
