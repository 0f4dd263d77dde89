/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep=systemd: the service manager holds /dev/fuse and the live records (its file descriptor
 * store, sd_pid_notify_with_fds(3)), and starts the unit's program again when the daemon is gone
 * (Restart=). It does what a keeper does otherwise (keeper.h).
 *
 * The store has, by name:
 *
 *   rpcrdmafs-fuse     /dev/fuse
 *   rpcrdmafs-live-N   the live records of the Nth program that serves; the highest counts
 *   rpcrdmafs-deaths   a file: struct keeper_deaths of the daemons
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_STORE_H
#define RPCRDMAFS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "keeper.h"

/* So many places it must have (FileDescriptorStoreMax=): one is for the next program's records. */
#define STORE_PLACES 4u

struct store_kept {
	struct keeper_crash crash; /* sock -1, pid 0 */
	uint64_t number;           /* of the records */
	int before;                /* the program before (store_before.h); -1: there is none */
};

/* Is there a manager that says so? By $FDSTORE, which ours has from 254 on, and the unit before. */
bool store_is_offered(void);
/*
 * store_take - does this process follow a daemon that died?
 *
 * At the start, before other threads begin: the variables of sd_listen_fds(3) are gone afterwards.
 * Returns: 1: yes, and the death is counted; 0: an ordinary start; -ELOOP: it is one of too many
 * deaths, each soon after the other (*ret is valid); -EBADMSG: what is there is of no use. In both
 * cases store_drop(ret->number) is the caller's next step. Another -errno: nobody knows what there
 * is, and a mount that is made now could be mistaken for it: the process is to end.
 */
int store_take(struct store_kept *ret);
/*
 * store_put - the store has these descriptors, and no records of other numbers
 *
 * Before a request is answered. They stay the caller's. number: 1, or the one before and 1. all:
 * it has nothing of this mount as yet.
 * Returns: 0: the manager has read that; -errno: it is not known what the store has.
 */
int store_put(int fuse_fd, int live_fd, uint64_t number, bool all);
/* For store_before.h. 0: it was sent, and the manager may take it; -errno. */
int store_put_one(const char *name, int fd);
/* All of that name. */
void store_remove_one(const char *name);
/* This program's end is no death (store_take()). */
void store_forgive(void);
/* The mount ends, or is given up: the store has nothing of it. number: the last one put. */
void store_drop(uint64_t number);

#endif
