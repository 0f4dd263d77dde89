/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"

#include <stddef.h>
#include <string.h>

/* One line for each command. */
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"info", cmd_info},
	{"capture", cmd_capture},
	{"hold", cmd_hold},
	{"leave", cmd_leave},
	{"log", cmd_log},
	{"set", cmd_set},
	{"stat", cmd_stat},
	{"sync", cmd_sync},
	{"upgrade", cmd_upgrade},
};

int cmd_run(int argc, char **argv, int *ret_status)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		*ret_status = commands[i].run(argc - 1, argv + 1);
		return 1;
	}
	return 0;
}
