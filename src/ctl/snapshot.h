/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mount counted until now: what the daemon tells its clients, who make of it what they
 * show. As text it is one line for each value that is not zero.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_SNAPSHOT_H
#define RPCRDMAFS_SNAPSHOT_H

#include <stdbool.h>
#include <stdio.h>

#include "latency.h"

/* X(name, meaning): what is there now, beside STATS_GAUGES */
#define SNAPSHOT_GAUGES(X)                                                                         \
	X(lanes, "connections with a thread each")                                                 \
	X(inodes, "files and directories the kernel holds")                                        \
	X(files, "open files")                                                                     \
	X(dirty_bytes, "bytes that programs wrote and the server has not got yet")                 \
	X(uncommitted_bytes, "bytes that the server has and may lose, kept until COMMIT")          \
	X(log_dropped, "lines of the log that nobody took in time")

struct snapshot {
	char *source, *mountpoint; /* malloced */
	uint64_t pid;
	uint64_t at_ns;      /* CLOCK_MONOTONIC of the daemon */
	uint64_t mounted_ns; /* since then */
#define X(name, meaning) uint64_t name;
	SNAPSHOT_GAUGES(X)
#undef X
	struct stats stats; /* of all lanes */
	struct latency latency;
};

/* Large: by these. NULL: out of memory. */
struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *s);
void snapshot_print(FILE *out, const struct snapshot *s);
/*
 * WIRE: text, which is changed, may be of another version's daemon: names that are not known are
 * passed over. NULL: it is no such text.
 */
struct snapshot *snapshot_parse(char *text);
/* `s` becomes what was counted since `before`, a reading of the same mount. */
void snapshot_subtract(struct snapshot *s, const struct snapshot *before);

#endif
