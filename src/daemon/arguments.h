/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of a process, as /proc/PID/cmdline has them: each with a NUL at its end. */
#ifndef RPCRDMAFS_ARGUMENTS_H
#define RPCRDMAFS_ARGUMENTS_H

#include <stddef.h>

struct arguments {
	char **argv; /* into text; NULL at the end */
	char *text;
	size_t len;
};

/*
 * arguments_read - from a descriptor's position to its end
 *
 * Returns: 0: for arguments_free(); -errno (-ENODATA: there is none; -E2BIG: more than 256 KiB).
 */
int arguments_read(struct arguments *ret, int fd);
/* Those of this process, as it was started. */
int arguments_of_self(struct arguments *ret);
void arguments_free(struct arguments *a);

#endif
