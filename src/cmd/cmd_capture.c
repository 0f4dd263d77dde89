/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "cmd.h"
#include "ctl_client.h"

static void help(FILE *to)
{
	fprintf(to,
		"usage: rpcrdmafs capture [-d] [-s MIB] [-t SECONDS] MOUNT FILE\n"
		"       rpcrdmafs capture MOUNT stop\n"
		"\n"
		"Writes what a mount sends and receives to FILE, as pcapng for Wireshark and\n"
		"tshark, until Ctrl-C. FILE must not be there yet.\n"
		"\n"
		"  MOUNT       mountpoint, or pid:N: the daemon with that PID\n"
		"  stop        ends a capture that somebody else has begun\n"
		"  -d          the contents of files, too\n"
		"  -s MIB      at most so much, then it ends (default: %u)\n"
		"  -t SECONDS  for so long\n"
		"  -h          this help\n",
		CAPTURE_MIB_DEFAULT);
}

struct wanted {
	bool data;
	unsigned long mib, seconds; /* seconds: 0: until a signal */
};

/* A whole number from 1 on; 0: it is none. */
static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	return text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n > max ? 0 : n;
}

/* Waits for the first of: a signal, the time, the end of the capture. Signals are blocked. */
static void wait_for_end(const struct ctl_daemon *d, const struct wanted *w)
{
	const struct timespec step = {.tv_nsec = 500000000};
	unsigned long steps = 0;
	char fault[200], *state;
	sigset_t set;
	bool runs;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	while (sigtimedwait(&set, NULL, &step) < 0) {
		if (w->seconds != 0 && ++steps >= 2 * w->seconds)
			return;
		state = ctl_client_ask(d, "capture state", -1, fault, sizeof(fault));
		runs = state != NULL && strncmp(state, "running", 7) == 0;
		free(state);
		if (!runs)
			return; /* full, or the daemon is gone */
	}
}

static int stop(const struct ctl_daemon *d)
{
	char fault[400], *answer = ctl_client_ask(d, "capture stop", -1, fault, sizeof(fault));

	if (answer == NULL)
		return cmd_fail("capture", fault);
	fputs("rpcrdmafs: capture ", stderr);
	cmd_print(stderr, answer);
	free(answer);
	return 0;
}

static int capture_into(const struct ctl_daemon *d, const char *path, const struct wanted *w)
{
	char fault[400], request[100], *answer;
	sigset_t set;
	int fd;

	/* Not ended between the start and the wait: the capture would go on. */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = capture_open(path);
	if (fd < 0) {
		snprintf(fault, sizeof(fault), "%s: %s%s", path, strerror(-fd),
			fd == -EEXIST ? ": remove it, or name another file" : "");
		return cmd_fail("capture", fault);
	}
	snprintf(request, sizeof(request), "capture start %lu %s", w->mib,
		w->data ? "data" : "messages");
	answer = ctl_client_ask(d, request, fd, fault, sizeof(fault));
	close(fd);
	if (answer == NULL) {
		unlink(path);
		return cmd_fail("capture", fault);
	}
	free(answer);
	if (isatty(STDERR_FILENO) && w->seconds == 0)
		fprintf(stderr, "rpcrdmafs: capturing into %s; Ctrl-C ends it\n", path);
	wait_for_end(d, w);
	return stop(d);
}

int cmd_capture(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct wanted w = {.mib = CAPTURE_MIB_DEFAULT};
	struct ctl_daemon d;
	char fault[400];
	int c, status;

	optind = 0;
	while ((c = getopt_long(argc, argv, "ds:t:h", longs, NULL)) != -1) {
		if (c == 'd')
			w.data = true;
		else if (c == 's' && (w.mib = number(optarg, 1ul << 20)) == 0)
			return cmd_fail("capture", "-s: expected MiB, from 1 to 1048576");
		else if (c == 't' && (w.seconds = number(optarg, 86400ul * 365)) == 0)
			return cmd_fail("capture", "-t: expected seconds, 1 or more");
		else if (c == 'h' || c == '?') {
			help(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (argc - optind != 2) {
		help(stderr);
		return 2;
	}
	if (ctl_client_find(argv[optind], &d, fault, sizeof(fault)) != 0)
		return cmd_fail("capture", fault);
	status = strcmp(argv[optind + 1], "stop") == 0 ? stop(&d)
						       : capture_into(&d, argv[optind + 1], &w);
	free(d.mountpoint);
	return status;
}
