/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With keep= a small process of its own tells the kernel what it must forget (FUSE_NOTIFY_*). Such
 * a call waits for pages and directories that requests have locked, and cannot be killed meanwhile.
 * A daemon that is killed while a thread of its own waits there is not dead until somebody answers
 * those requests, and its successor, which would, is started when it is dead.
 *
 * A holder (held.h) runs it in its own container: the daemon's could not end before it.
 *
 * There is a socket (FS_NOTIFY_LINES) for each thread of fs_notify.c that may wait so, and another
 * one whose end is that of the notifier.
 *
 * Context: the main thread. Nothing here calls fork() without exec.
 */
#ifndef RPCRDMAFS_NOTIFIER_H
#define RPCRDMAFS_NOTIFIER_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs.h"
#include "keeper.h"
#include "reactor.h"

/* Zero-initialised: there is none. */
struct notifier {
	struct reactor_fd src; /* our end of the last socket, while there is one */
	struct reactor *reactor;
	struct fs *fs;
	const char *mountpoint;
	struct keeper_deaths deaths;
	pid_t pid; /* 0: it is no child of ours */
};

/*
 * notifier_is_asked - is this process to be a notifier?
 *
 * First of all in main(). If so it was one, and *ret_status is the exit status.
 */
bool notifier_is_asked(int argc, char **argv, int *ret_status);
/*
 * notifier_start - from now on the mount's notices are written by a notifier
 *
 * When /dev/fuse is there. One that is killed is followed by another, unless that happens too
 * often: then the log says so, and the daemon's threads write themselves. Returns: 0; -errno: there
 * is none, and nothing was logged.
 */
int notifier_start(struct notifier *n, struct reactor *r, struct fs *fs, const char *mountpoint);
/* It has ended afterwards, unless it waits in the kernel. Harmless if there is none. */
void notifier_end(struct notifier *n);

#endif
