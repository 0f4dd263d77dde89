/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "ctl_client.h"

/* How often it asks, and how long nobody may answer while the process is there. */
#define ASK_NS     50000000
#define SILENT_MAX 600u /* of these */

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs leave MOUNT\n"
	      "\n"
	      "The daemon ends, and the mount waits for the next one, which whoever keeps it\n"
	      "starts: systemd (`systemctl restart` does this), or a container's runtime, with\n"
	      "`rpcrdmafs hold`. Files stay open, locks are held. Data that programs wrote is on\n"
	      "the server before, if that takes less than 10 s.\n"
	      "\n"
	      "  MOUNT  mountpoint, or pid:N: the daemon with that PID\n"
	      "  -h     this help\n",
		to);
}

/* Returns: it has gone; false: fault says why it stays. */
static bool wait_for_end(const struct ctl_daemon *d, char *fault, size_t len)
{
	const struct timespec pause = {.tv_nsec = ASK_NS};
	bool stays = false;

	for (unsigned int silent = 0; !stays && silent < SILENT_MAX; silent++) {
		char *answer;

		if (kill(d->pid, 0) != 0 && errno == ESRCH)
			return true;
		if (cmd_upgrade_is_late(d, fault, len))
			break;
		answer = ctl_client_ask(d, "upgrade state", -1, fault, len);
		if (answer != NULL) {
			silent = 0;
			stays = strncmp(answer, "running", 7) != 0;
		}
		if (stays)
			snprintf(
				fault, len, "it goes on: %.*s", (int)strcspn(answer, "\n"), answer);
		free(answer);
		nanosleep(&pause, NULL);
	}
	return false;
}

int cmd_leave(int argc, char **argv)
{
	struct ctl_daemon d;
	char fault[400], *answer;
	bool left = false;
	int err = cmd_mount(argc, argv, 1, help, &d);

	if (err >= 0)
		return err;
	answer = ctl_client_ask(&d, "upgrade leave", -1, fault, sizeof(fault));
	cmd_upgrade_limit(&d, NULL, ctl_client_now_ms());
	if (answer != NULL)
		left = wait_for_end(&d, fault, sizeof(fault));
	free(answer);
	free(d.mountpoint);
	return left ? 0 : cmd_fail("leave", fault);
}
