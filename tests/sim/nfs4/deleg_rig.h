/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set-up of tests of delegations: a client, and files with one each. Its end
 * checks that nothing is left, neither here nor on the server.
 */
#ifndef RPCRDMAFS_DELEG_RIG_H
#define RPCRDMAFS_DELEG_RIG_H

#include "sim_held.h"
#include "sim_log.h"

#define DELEG_FILES 4

/* The test's world. */
extern struct sim_nfs w;
/* Its file, of deleg_begin*(). */
extern struct sim_held h;
/* Its files, of deleg_files_begin(). */
extern struct sim_held files[DELEG_FILES];

/* Mounted by so many lanes; the server gives delegations of the kinds `delegs`. */
void deleg_begin(unsigned int lanes, uint32_t delegs);
/* And `h` has a delegation of `type`, which nothing uses. */
void deleg_begin_idle(unsigned int lanes, uint32_t type);
/* And it serves an open. */
void deleg_begin_served(unsigned int lanes, uint32_t type);
/* `left`: client IDs that may remain on the server. Nothing may have been lost. */
void deleg_end(unsigned int left);

/* `cnt` files, each with a delegation; those with a bit in `served` are open by it. */
void deleg_files_begin(unsigned int lanes, unsigned int cnt, uint32_t type, unsigned int served);
/* Reads by the first lane and the last; `what` and `where` tell which case it is. */
void deleg_use(struct sim_held *f, const char *what, uint64_t where);
/* All files are claimed, returned and closed, as a living user does it; `left` as for deleg_end().
 */
void deleg_files_end(unsigned int cnt, unsigned int left);

#endif
