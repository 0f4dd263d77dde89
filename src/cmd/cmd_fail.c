/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cmd.h"
#include "text.h"

int cmd_fail(const char *command, const char *fault)
{
	fprintf(stderr, "rpcrdmafs: %s: ", command);
	text_plain(stderr, fault);
	fputc('\n', stderr);
	return 1;
}

int cmd_fail_at(const char *command, const struct ctl_daemon *d, const char *fault)
{
	fprintf(stderr, "rpcrdmafs: %s: ", command);
	text_plain(stderr, d->mountpoint);
	fputs(": ", stderr);
	text_plain(stderr, fault);
	fputc('\n', stderr);
	return 1;
}
