/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cmd.h"

int cmd_fail(const char *command, const char *fault)
{
	fprintf(stderr, "rpcrdmafs: %s: %s\n", command, fault);
	return 1;
}
