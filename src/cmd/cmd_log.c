/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "ctl_client.h"

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs log MOUNT [LEVEL|ops=on|ops=off]\n"
	      "\n"
	      "What a running mount logs. Without more it says what it is now.\n"
	      "\n"
	      "  MOUNT  mountpoint, or pid:N: the daemon with that PID\n"
	      "  LEVEL  error, warn, info or debug: what is less is not logged\n"
	      "  ops=   on: a line for each request that a program made, when it is answered\n"
	      "  -h     this help\n"
	      "\n"
	      "The log is the system log (daemon), or standard error with -f.\n",
		to);
}

int cmd_log(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	char fault[400], request[300], *answer;
	struct ctl_daemon d;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (argc - optind < 1 || argc - optind > 2) {
		help(stderr);
		return 2;
	}
	if (snprintf(request, sizeof(request), "log %s",
		    argc - optind == 2 ? argv[optind + 1] : "") >= (int)sizeof(request))
		return cmd_fail("log", "that is no level");
	if (ctl_client_find(argv[optind], &d, fault, sizeof(fault)) != 0)
		return cmd_fail("log", fault);
	answer = ctl_client_ask(&d, request, -1, fault, sizeof(fault));
	free(d.mountpoint);
	if (answer == NULL)
		return cmd_fail("log", fault);
	cmd_print(stdout, answer);
	free(answer);
	return 0;
}
