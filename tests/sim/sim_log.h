/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of a test program: its lines are not printed, those that tests ask about are counted.
 * Both functions fit `.init`.
 */
#ifndef RPCRDMAFS_SIM_LOG_H
#define RPCRDMAFS_SIM_LOG_H

struct sim_said {
	unsigned int lost;    /* an open, lock or delegation was not given back */
	unsigned int again;   /* the client ID, soon after the last time */
	unsigned int flags;   /* what a flag of SEQUENCE says */
	unsigned int smaller; /* the server takes less at once than before */
};
/* Since sim_log_count(); tests may set it to 0. */
extern struct sim_said sim_said;

void sim_log_count(void);
/* Counts nothing. */
void sim_log_quiet(void);

#endif
