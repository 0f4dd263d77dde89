/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "ctl_client.h"

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs info [--json] MOUNT\n"
	      "\n"
	      "The server of a running mount, what was agreed on with it, and every option\n"
	      "in force with where its value is from: default, command line, or the limit\n"
	      "that lowered it.\n"
	      "\n"
	      "  MOUNT   mountpoint, or pid:N: the daemon with that PID\n"
	      "  --json  for programs\n"
	      "  -h      this help\n",
		to);
}

int cmd_info(int argc, char **argv)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}};
	const char *request = "info";
	char fault[400], *answer;
	struct ctl_daemon d;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'j') {
			request = "info json";
			continue;
		}
		help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (argc - optind != 1) {
		help(stderr);
		return 2;
	}
	if (ctl_client_find(argv[optind], &d, fault, sizeof(fault)) != 0)
		return cmd_fail("info", fault);
	answer = ctl_client_ask(&d, request, -1, fault, sizeof(fault));
	free(d.mountpoint);
	if (answer == NULL)
		return cmd_fail("info", fault);
	cmd_print(stdout, answer);
	free(answer);
	return fflush(stdout) == 0 ? 0 : 1;
}
