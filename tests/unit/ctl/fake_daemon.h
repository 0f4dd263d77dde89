/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes with control sockets that say and do what a test wants.
 *
 * Context: the test's only thread; they end with it.
 */
#ifndef RPCRDMAFS_FAKE_DAEMON_H
#define RPCRDMAFS_FAKE_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#define FAKE_USER 65534

struct fake_daemon {
	const char *dir;    /* is made if it is not there */
	const char *name;   /* of the socket; NULL: its PID.sock */
	const char *answer; /* to each request; NULL: none ever comes */
	uid_t uid;
	bool in_own_pids; /* as PID 1 of a namespace */
	pid_t pid;        /* here */
};

/* A /run of the test's own. Skips the test if this user cannot have one. */
void fake_daemon_run(void);
/* A folder of this test's user, to be used by others too; static. */
const char *fake_daemon_dir(void);
/* It listens when this returns. */
void fake_daemon_start(struct fake_daemon *f);
/* Connections that all of them have taken. */
unsigned int fake_daemon_asked(void);
/* A socket that nobody listens on. */
void fake_daemon_dead(const char *path);

#endif
