/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much is left when a mount ends: on a terminal in one line that is written over, elsewhere as
 * a line of the log every 5 s, and as the service's status. Nothing in the first second.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_PROGRESS_H
#define RPCRDMAFS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t start_ns, logged_ns;
	const char *mountpoint;
	bool tty, shown;
};

/* tty: standard error is a terminal, and ours. mountpoint lives as long as p. */
void progress_start(struct progress *p, uint64_t now_ns, const char *mountpoint, bool tty);
/* `left` bytes have to be written still; 0: what was written is made durable, files are closed. */
void progress_tell(struct progress *p, uint64_t now_ns, uint64_t left);
/* It is over: the line on the terminal goes. */
void progress_end(struct progress *p);

#endif
