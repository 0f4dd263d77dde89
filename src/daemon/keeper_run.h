/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper's own process. It waits for the end of the daemon; if that said bye before, or the
 * mount is gone, it ends. Otherwise it starts a successor with the daemon's arguments, gives it
 * /dev/fuse and the live records, and waits for the end of that one.
 *
 * A successor, and the next program of an upgrade, have live records of their own. They say so in
 * one message with descriptors. So at any moment there is one keeper, with one set of records:
 * those before the message, or those in it, whether it was read before the daemon died or not. If
 * the message came with another program, the keeper executes that; if it cannot, it goes on as it
 * is. If that program's daemons die three times in its first minute, the program before it is that
 * of the next ones.
 *
 * The end of a process is what its pidfd says: then all threads are gone, with descriptors, locks
 * of files and RDMA resources. The socket is closed before that, while the others still are, so its
 * end alone counts only where the system has no pidfd (ENOSYS, or a filter).
 */
#ifndef RPCRDMAFS_KEEPER_RUN_H
#define RPCRDMAFS_KEEPER_RUN_H

#include "keeper.h"

#define KEEPER_RUN_BYE "bye"
/* With SCM_RIGHTS: so many descriptors, in this order: LIVE PROGRAM ARGS. */
#define KEEPER_RUN_NEXT     "next"
#define KEEPER_RUN_NEXT_FDS 3u
/* Variables, each of decimal numbers. */
#define KEEPER_RUN_ASKED   "RPCRDMAFS_KEEPER"  /* FUSE LIVE SOCK ARGS PID CRASHES SYSLOG */
#define KEEPER_RUN_BEFORE  "RPCRDMAFS_BEFORE"  /* with that: PROGRAM SINCE_NS */
#define KEEPER_RUN_CRASHED "RPCRDMAFS_CRASHED" /* LIVE FUSE SOCK CRASHES DIED_NS PID */
#define KEEPER_RUN_NAME    "rpcrdmafs: keeper"
/* Descriptors become the keeper's. */
struct keeper_run {
	const char *mountpoint;
	int program;        /* of successors */
	int before;         /* the one before that; -1: there is none, or its minute is over */
	uint64_t before_ns; /* CLOCK_MONOTONIC: until then */
	int args;           /* their arguments (arguments.h) */
	int fuse, live;
	int sock, pidfd; /* of the daemon; pidfd -1: the socket's end is the daemon's */
	pid_t pid;
	unsigned int crashes; /* that count */
	bool syslog;          /* it is where it logs to */
	/* Waits so long; returns the time then. */
	uint64_t (*wait)(uint64_t ns);
};

/* Until no keeper is needed. Signals are ignored from now on. Returns: the exit status. */
int keeper_run(struct keeper_run *w);
/* The variable KEEPER_RUN_ASKED. fds: FUSE LIVE SOCK ARGS, as the keeper has them. */
void keeper_run_asked(
	char *to, size_t size, const int *fds, pid_t pid, unsigned int crashes, bool to_syslog);
/* The process's pidfd; -1: there is none. */
int keeper_run_pidfd(pid_t pid);
/* The real time, for keeper_run.wait. */
uint64_t keeper_run_wait(uint64_t ns);
/* One more. Returns: false: they are too many. */
bool keeper_run_count(struct keeper_deaths *d, uint64_t now_ns);

#endif
