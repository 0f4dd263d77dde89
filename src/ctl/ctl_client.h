/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of control sockets: which daemon is behind a mount, and what it says. No
 * mountpoint is looked at but in the kernel's table: with a dead server it would not answer.
 *
 * Context: a command's only thread. Functions wait for an answer CTL_CLIENT_MS at most.
 */
#ifndef RPCRDMAFS_CTL_CLIENT_H
#define RPCRDMAFS_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl_dir.h"

#define CTL_CLIENT_MS    10000
#define CTL_STRANGERS_MS 10000 /* for all daemons of other users together, to say that they are */

struct ctl_daemon {
	char dir[CTL_PATH_MAX]; /* the folder of its socket, */
	uid_t owner;            /* which is this user's */
	pid_t pid;              /* as the socket's name says (ctl_dir_connect()) */
	uid_t uid;              /* of its process, as the kernel says */
	int64_t until_ms; /* it is asked and waited for until then (ctl_client_now_ms()); 0: for
			     ever */
	char dev[32];     /* "0:52", as /proc/self/mountinfo has it; "" if it does not know */
	char *mountpoint; /* as it says; malloced */
};

/* The clock of until_ms: never 0, and nobody sets it. */
int64_t ctl_client_now_ms(void);
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
 * A socket that another process listens on than its name says is passed over. strangers_ms:
 * CTL_STRANGERS_MS; it is one deadline over all daemons of others, of which one user has a part.
 * Ownership: *ret and each mountpoint are the caller's to free. Returns: how many.
 */
size_t ctl_client_find_all(unsigned int strangers_ms, struct ctl_daemon **ret);
/*
 * ctl_client_find - the daemon behind a mount, or the one that "pid:N" names
 *
 * A mount's is looked for in this user's folder and, by root, in that of the user who mounted; N in
 * all, but only sockets of that name are asked, this user's first.
 * Returns: 0: ret->mountpoint is the caller's to free; -errno: fault says why.
 */
int ctl_client_find(const char *mount, struct ctl_daemon *ret, char *fault, size_t len);
/* The first half of it: of a mount with that device and user. True: as above. */
bool ctl_client_find_dev(const char *dev, uid_t uid, struct ctl_daemon *ret);

#endif
