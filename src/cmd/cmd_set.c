/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <unistd.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "ctl_client.h"
#include "ctl_proto.h"
#include "text.h"

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs set MOUNT OPTION[,OPTION]...\n"
	      "\n"
	      "The mount goes on with other options, until it is unmounted: files stay open, "
	      "locks\n"
	      "are held, requests wait meanwhile. An option that needs another mount is refused.\n"
	      "\n"
	      "  MOUNT   mountpoint, or pid:N: the daemon with that PID\n"
	      "  OPTION  as with -o: write=eager, nconnect=4, soft ...\n"
	      "  -h      this help\n",
		to);
}

/* One word of a request; malloced, or NULL: no option looks like that. */
static char *escaped(const char *list)
{
	for (const char *p = list; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			return NULL;
	return ctl_proto_escape(list);
}

static int set(const struct ctl_daemon *d, const char *list, char *fault, size_t len)
{
	char *word = escaped(list), *request = NULL;
	uint64_t pause_ns = 0;
	int err = -1;

	if (word == NULL || asprintf(&request, "upgrade set %s", word) < 0)
		snprintf(fault, len, "unknown option %s", list);
	else
		err = cmd_upgrade_ask(d, request, -1, &pause_ns, fault, len);
	free(word);
	free(request);
	if (err == 0) {
		text_plain(stdout, d->mountpoint);
		printf(": set; requests waited %" PRIu64 " ms\n", pause_ns / 1000000);
	}
	return err;
}

int cmd_set(int argc, char **argv)
{
	struct ctl_daemon d;
	char fault[400];
	int err = cmd_mount(argc, argv, 2, help, &d);

	if (err >= 0)
		return err;
	err = set(&d, argv[optind + 1], fault, sizeof(fault));
	free(d.mountpoint);
	return err == 0 ? 0 : cmd_fail("set", fault);
}
