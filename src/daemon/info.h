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

/* ---- for info.c, info_opts.c and probe_print.c ---- */

struct info {
	FILE *out;
	bool json;
	const char *comma; /* JSON: before the next member */
};

/* "label   value", or a member `key` that is a string, or a number. */
void info_text(struct info *i, const char *key, const char *label, const char *value);
void info_number(
	struct info *i, const char *key, const char *label, uint64_t value, const char *unit);

/* An option: where its value is from. */
void info_option(struct info *i, const char *name, const char *value, const char *from);
/* info_opts.c: all options. */
void info_opts_put(struct info *i, const struct mount *m);

#endif
