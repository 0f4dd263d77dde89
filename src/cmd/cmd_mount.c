/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stddef.h>

#include "cmd.h"

int cmd_mount(int argc, char **argv, int cnt, void (*help)(FILE *to), struct ctl_daemon *ret)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	char fault[400];
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		help(c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (argc - optind != cnt) {
		help(stderr);
		return 2;
	}
	if (ctl_client_find(argv[optind], ret, fault, sizeof(fault)) != 0)
		return cmd_fail(argv[0], fault);
	return -1;
}
