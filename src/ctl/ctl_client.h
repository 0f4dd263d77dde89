/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of control sockets: which daemon is behind a mount, and what it says. No
 * mountpoint is looked at but in the kernel's table: with a dead server it would not answer.
 *
 * Context: a command's only thread. Functions wait for a daemon CTL_CLIENT_MS at most.
 */
#ifndef RPCRDMAFS_CTL_CLIENT_H
#define RPCRDMAFS_CTL_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

#include "ctl_dir.h"

#define CTL_CLIENT_MS 10000

struct ctl_daemon {
	char dir[CTL_PATH_MAX]; /* the folder of its socket, */
	uid_t owner;            /* which is this user's */
	pid_t pid;              /* as the socket's name says (ctl_dir_connect()) */
	uid_t uid;              /* of its process, as the kernel says */
	char dev[32];           /* "0:52", as /proc/self/mountinfo has it; "" if it does not know */
	char *mountpoint;       /* as it says; malloced */
};

/*
 * ctl_client_ask - one request, one answer
 *
 * fd: goes with it; -1: none. Returns: the answer, malloced; NULL: fault says why.
 */
char *ctl_client_ask(
	const struct ctl_daemon *d, const char *request, int fd, char *fault, size_t len);
/*
 * ctl_client_find_all - the daemons of this user, by PID; behind root's own also those of others
 *
 * A socket that another process listens on than its name says is passed over.
 * Ownership: *ret and each mountpoint are the caller's to free. Returns: how many.
 */
size_t ctl_client_find_all(struct ctl_daemon **ret);
/*
 * ctl_client_find - the daemon behind a mount, or the one that "pid:N" names
 *
 * Returns: 0: ret->mountpoint is the caller's to free; -errno: fault says why.
 */
int ctl_client_find(const char *mount, struct ctl_daemon *ret, char *fault, size_t len);

#endif
