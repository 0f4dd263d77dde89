/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "ctl_client.h"
#include "text.h"

/* How often it asks how far it is, and how long nobody may answer: a program gives a mount that it
 * cannot take over back after 20 s. */
#define ASK_NS     50000000
#define SILENT_MAX 1800u /* of these */
/* For all mounts of another user: the package's postinst and ExecReload wait for this, too. */
#define STRANGER_MS 60000

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs upgrade [--check] MOUNT [PROGRAM]\n"
	      "       rpcrdmafs upgrade [--check] --all [PROGRAM]\n"
	      "\n"
	      "The mount goes on with another program, in the same process: files stay open,\n"
	      "locks are held, requests wait meanwhile and none is refused. Waits until it is\n"
	      "done. A program that cannot go on gives the mount back to the one before.\n"
	      "\n"
	      "  MOUNT    mountpoint, or pid:N: the daemon with that PID\n"
	      "  PROGRAM  another rpcrdmafs than the one that you are using now; a file of\n"
	      "           root's or of the user who mounted, that nobody else may write to\n"
	      "  --all    all mounts of this user; root: of all users\n"
	      "  --check  only asks the program whether it could take over\n"
	      "  -h       this help\n",
		to);
}

/* Its line, malloced, without the newline; NULL: nobody answers. */
static char *ask(const struct ctl_daemon *d, const char *request, int fd, char *fault, size_t len)
{
	char *answer = ctl_client_ask(d, request, fd, fault, len);

	if (answer != NULL)
		answer[strcspn(answer, "\n")] = '\0';
	return answer;
}

void cmd_upgrade_limit(struct ctl_daemon *d, const struct ctl_daemon *before, int64_t now_ms)
{
	if (d->owner == geteuid())
		return;
	d->until_ms = before != NULL && before->owner == d->owner ? before->until_ms
								  : now_ms + STRANGER_MS;
}

bool cmd_upgrade_is_late(const struct ctl_daemon *d, char *fault, size_t len)
{
	if (d->until_ms == 0 || ctl_client_now_ms() < d->until_ms)
		return false;
	snprintf(fault, len, "another user's: it is not waited for any longer");
	return true;
}

/*
 * False: it was given up, or nobody answers any more. `before`: hand-overs that there were. A check
 * leaves *ret_pause_ns as it is.
 */
static bool wait_for_end(const struct ctl_daemon *d, uint64_t before, uint64_t *ret_pause_ns,
	char *fault, size_t len)
{
	const struct timespec pause = {.tv_nsec = ASK_NS};
	uint64_t count;
	bool over = false, good = false;

	for (unsigned int silent = 0; !over && silent < SILENT_MAX; silent++) {
		char *answer;

		if (cmd_upgrade_is_late(d, fault, len))
			break;
		answer = ask(d, "upgrade state", -1, fault, len);

		if (answer == NULL) {
			/* It is being executed. */
		} else if (strncmp(answer, "failed ", 7) == 0) {
			snprintf(fault, len, "%s", answer + 7);
			over = true;
		} else if (strcmp(answer, "checked") == 0) {
			over = good = true;
		} else if (sscanf(answer, "done %" SCNu64 " %" SCNu64, &count, ret_pause_ns) == 2 &&
			   count > before) {
			over = good = true;
		} else if (strncmp(answer, "done ", 5) == 0) {
			snprintf(
				fault, len, "the program could not go on, and the one before does");
			over = true;
		} else {
			silent = 0;
		}
		free(answer);
		if (!over)
			nanosleep(&pause, NULL);
	}
	return good;
}

/* A wish: a program, and whether it is only asked. */
struct wish {
	int program;
	bool check;
};

int cmd_upgrade_ask(const struct ctl_daemon *d, const char *request, int fd, uint64_t *ret_pause_ns,
	char *fault, size_t len)
{
	struct ctl_daemon limited = *d;
	char *answer;
	uint64_t before;
	bool good;

	if (limited.until_ms == 0)
		cmd_upgrade_limit(&limited, NULL, ctl_client_now_ms());
	answer = ask(&limited, request, fd, fault, len);
	good = answer != NULL && sscanf(answer, "%" SCNu64, &before) == 1;

	if (answer != NULL && !good)
		snprintf(fault, len, "%s", answer);
	free(answer);
	return good && wait_for_end(&limited, before, ret_pause_ns, fault, len) ? 0 : -1;
}

static int upgrade_one(const struct ctl_daemon *d, const struct wish *w)
{
	char fault[400];
	uint64_t pause_ns = 0;

	if (cmd_upgrade_ask(d, w->check ? "upgrade check" : "upgrade start", w->program, &pause_ns,
		    fault, sizeof(fault)) != 0)
		return cmd_fail_at("upgrade", d, fault);
	text_plain(stdout, d->mountpoint);
	if (w->check)
		puts(": the program could take over");
	else
		printf(": upgraded; requests waited %" PRIu64 " ms\n", pause_ns / 1000000);
	return 0;
}

static int upgrade_all(const struct wish *w)
{
	struct ctl_daemon *all = NULL;
	size_t cnt = ctl_client_find_all(CTL_STRANGERS_MS, &all);
	int status = 0;

	for (size_t i = 0; i < cnt; i++) {
		cmd_upgrade_limit(&all[i], i > 0 ? &all[i - 1] : NULL, ctl_client_now_ms());
		status |= upgrade_one(&all[i], w);
	}
	for (size_t i = 0; i < cnt; i++)
		free(all[i].mountpoint);
	free(all);
	return status;
}

static int upgrade_named(const char *mount, const struct wish *w)
{
	struct ctl_daemon d;
	char fault[400];
	int status;

	if (ctl_client_find(mount, &d, fault, sizeof(fault)) != 0)
		return cmd_fail("upgrade", fault);
	status = upgrade_one(&d, w);
	free(d.mountpoint);
	return status;
}

int cmd_upgrade(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
		{"all", no_argument, NULL, 'a'}, {"check", no_argument, NULL, 'c'}, {0}};
	const char *path = "/proc/self/exe", *mount = NULL;
	char fault[400];
	struct wish w = {0};
	bool all = false;
	int c, status;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'a' || c == 'c') {
			all |= c == 'a';
			w.check |= c == 'c';
			continue;
		}
		help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (!all && optind < argc)
		mount = argv[optind++];
	if (optind < argc)
		path = argv[optind++];
	if (optind < argc || (!all && mount == NULL)) {
		help(stderr);
		return 2;
	}
	w.program = open(path, O_RDONLY | O_CLOEXEC);
	if (w.program < 0) {
		snprintf(fault, sizeof(fault), "%s: %s", path, strerror(errno));
		return cmd_fail("upgrade", fault);
	}
	status = all ? upgrade_all(&w) : upgrade_named(mount, &w);
	close(w.program);
	return status;
}
