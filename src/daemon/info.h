/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `rpcrdmafs info` shows of a mount: the server, what was agreed on with it, every option in
 * force and where its value is from.
 *
 * Context: the main thread, while the mount serves.
 */
#ifndef RPCRDMAFS_INFO_H
#define RPCRDMAFS_INFO_H

#include <stdio.h>

#include "mount_int.h"

void info_print(FILE *out, const struct mount *m, bool json);

/* ---- for info.c and info_opts.c ---- */

struct info {
	FILE *out;
	bool json;
	const char *comma; /* JSON: before the next member */
};

/* An option: where its value is from. */
void info_option(struct info *i, const char *name, const char *value, const char *from);
/* info_opts.c: all options. */
void info_opts_put(struct info *i, const struct mount *m);

#endif
