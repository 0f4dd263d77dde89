/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "ctl_client.h"

/* How often it asks whether all is done. */
#define ASK_NS 50000000

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs sync MOUNT\n"
	      "\n"
	      "Makes durable on the server what programs wrote to the mount until now, and waits "
	      "for\n"
	      "that. sync(1) and syncfs(2) do not: the kernel tells a FUSE file system nothing of "
	      "them.\n"
	      "\n"
	      "  MOUNT  mountpoint, or pid:N: the daemon with that PID\n"
	      "  -h     this help\n"
	      "\n"
	      "What the kernel holds of shared mappings it writes with sync(1) before.\n",
		to);
}

static int say(const char *fault)
{
	fprintf(stderr, "rpcrdmafs: sync: %s\n", fault);
	return 1;
}

/* One question; its answer is a number in *ret. False: `fault` says why not. */
static bool ask(const struct ctl_daemon *d, const char *request, unsigned long long *ret,
	char *fault, size_t fault_len)
{
	char *answer = ctl_ask(d, request, -1, fault, fault_len);
	bool good;

	if (answer == NULL)
		return false;
	good = sscanf(answer, "%llu", ret) == 1;
	if (!good)
		snprintf(fault, fault_len, "the answer is no number");
	free(answer);
	return good;
}

/* done N: so many files could not be committed. */
static int wait_for(const struct ctl_daemon *d)
{
	const struct timespec pause = {.tv_nsec = ASK_NS};
	char fault[400], request[64], *answer;
	unsigned long long ticket;
	unsigned int failed;

	if (!ask(d, "sync", &ticket, fault, sizeof(fault)))
		return say(fault);
	snprintf(request, sizeof(request), "sync %llu", ticket);
	while ((answer = ctl_ask(d, request, -1, fault, sizeof(fault))) != NULL) {
		bool done = sscanf(answer, "done %u", &failed) == 1;

		free(answer);
		if (done) {
			if (failed == 0)
				return 0;
			snprintf(fault, sizeof(fault), "%u files could not be committed", failed);
			return say(fault);
		}
		nanosleep(&pause, NULL);
	}
	return say(fault);
}

int cmd_sync(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct ctl_daemon d;
	char fault[400];
	int c, status;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (argc - optind != 1) {
		help(stderr);
		return 2;
	}
	if (ctl_find(argv[optind], &d, fault, sizeof(fault)) != 0)
		return say(fault);
	status = wait_for(&d);
	free(d.mountpoint);
	return status;
}
