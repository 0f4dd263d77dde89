/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket of a running mount (ctl_proto.h, ctl_dir.h): one for each daemon, open to
 * root and to whoever runs it. No client can hold anything up: there are few connections, short
 * requests and time limits, and of too many silent ones the oldest goes.
 *
 * Context: the thread that runs the reactor.
 */
#ifndef RPCRDMAFS_CTL_H
#define RPCRDMAFS_CTL_H

#include <stdio.h>

#include "reactor.h"

struct ctl;

struct ctl_command {
	const char *name; /* NULL: behind the last one */
	/*
	 * Never waits for anything. argv[0] is the name. fd: what came with the request, or -1; it
	 * is closed afterwards (dup() what is kept). out: the answer; on an error one line that
	 * says why. Returns 0 or -errno.
	 */
	int (*run)(void *ctx, int argc, char **argv, int fd, FILE *out);
};

/*
 * ctl_start - listen
 *
 * commands is kept. GET /metrics is answered by the command "metrics".
 * Returns: NULL: there is no control socket, which one debug line says; a mount works without.
 */
struct ctl *ctl_start(struct reactor *r, const struct ctl_command *commands, void *ctx);
/* The socket is removed. c may be NULL. */
void ctl_end(struct ctl *c);

#endif
