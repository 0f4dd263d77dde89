/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that is killed, and the next one, which goes on with what the server holds for both:
 * from memory that outlives them (nfs4_live.h).
 */
#ifndef RPCRDMAFS_LIVE_RIG_H
#define RPCRDMAFS_LIVE_RIG_H

#include "nfs4_keep.h"
#include "sim_nfs.h"

/* The memory of the process that runs. */
extern struct live *live_rig_now;
/* The next one dies as well, before what it took up is in its own memory. */
extern bool live_rig_again;

/* Clients that are made from now on have such memory. */
void live_rig_begin(void);
void live_rig_end(void);

/*
 * It says nothing any more, and nothing that comes reaches it; the server is restarted then. Client
 * and sessions are gone, and what the test had of them is not to be used any more.
 */
void live_rig_die(struct sim_nfs *w, bool restart);
/* The next client, not started. `get`: what is done with the records of opens, locks, delegations.
 */
void live_rig_take_up(
	struct sim_nfs *w, unsigned int lanes, int (*get)(const struct tables_record *r));
/* Its lanes are up, "/" is mounted. */
void live_rig_up(struct sim_nfs *w);

#endif
