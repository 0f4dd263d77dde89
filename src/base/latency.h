/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the time of requests goes, of one lane, by operation. Three phases add up to what a
 * program waits for: see enum latency_phase.
 */
#ifndef RPCRDMAFS_LATENCY_H
#define RPCRDMAFS_LATENCY_H

#include "hist.h"
#include "stats.h"

/* FUSE operation numbers 0..55 (7.45 ends at 52); what is larger is counted as the last. */
#define LATENCY_FUSE_OPS 56u

enum latency_phase {
	LATENCY_QUEUE, /* before its calls were sent: for a slot, a credit, a session */
	LATENCY_RPC,   /* from sent to answered, resends included */
	LATENCY_FUSE,  /* the rest, until the kernel has its answer */
	LATENCY_PHASES
};

struct latency {
	struct hist fuse[LATENCY_FUSE_OPS][LATENCY_PHASES];
	struct hist
		nfs[STATS_OPS]; /* LATENCY_RPC of each call, for programs or not, by NFS number */
};

/* "queue", "rpc", "fuse" */
const char *latency_phase_name(enum latency_phase phase);
/* "READ" for 15; NULL for a number without a name. */
const char *latency_fuse_name(unsigned int opcode);
/* The row a FUSE operation is counted in. */
static inline unsigned int latency_fuse_row(uint32_t opcode)
{
	return opcode < LATENCY_FUSE_OPS ? opcode : LATENCY_FUSE_OPS - 1;
}
void latency_add(struct latency *to, const struct latency *from);
void latency_subtract(struct latency *from, const struct latency *before);

#endif
