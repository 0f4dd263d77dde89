/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "ctl_client.h"
#include "optval.h"

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

/* One question; its answer is a number in *ret. False: `fault` says why not. */
static bool ask(const struct ctl_daemon *d, const char *request, uint64_t *ret, char *fault,
	size_t fault_len)
{
	char *answer = ctl_client_ask(d, request, -1, fault, fault_len);
	bool good;

	if (answer == NULL)
		return false;
	answer[strcspn(answer, "\n")] = '\0';
	good = optval_uint(answer, 1, UINT64_MAX, ret);
	if (!good)
		snprintf(fault, fault_len, "the answer is no number");
	free(answer);
	return good;
}

/* done N: so many files could not be committed. */
int cmd_sync_daemon(const struct ctl_daemon *d, char *fault, size_t len)
{
	const struct timespec pause = {.tv_nsec = ASK_NS};
	char request[64], *answer;
	uint64_t ticket, failed;

	if (!ask(d, "sync", &ticket, fault, len))
		return -EIO;
	snprintf(request, sizeof(request), "sync %" PRIu64, ticket);
	while ((answer = ctl_client_ask(d, request, -1, fault, len)) != NULL) {
		bool done = strncmp(answer, "done ", 5) == 0;

		answer[strcspn(answer, "\n")] = '\0';
		if (done && !optval_uint(answer + 5, 0, UINT32_MAX, &failed))
			failed = UINT32_MAX;
		free(answer);
		if (done && failed == 0)
			return 0;
		if (done) {
			snprintf(fault, len, "%" PRIu64 " files could not be committed", failed);
			return -EIO;
		}
		nanosleep(&pause, NULL);
	}
	return -EIO;
}

int cmd_sync(int argc, char **argv)
{
	struct ctl_daemon d;
	char fault[400];
	int err = cmd_mount(argc, argv, 1, help, &d);

	if (err >= 0)
		return err;
	err = cmd_sync_daemon(&d, fault, sizeof(fault));
	free(d.mountpoint);
	return err == 0 ? 0 : cmd_fail("sync", fault);
}
