/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that go along with a message on a Unix socket (SCM_RIGHTS, unix(7)).
 *
 * Context: any thread.
 */
#ifndef RPCRDMAFS_RIGHTS_H
#define RPCRDMAFS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* With one message, at most. */
#define RIGHTS_MAX 16u

struct rights {
	int fds[RIGHTS_MAX]; /* the caller's, with FD_CLOEXEC */
	unsigned int cnt;
	bool cut;  /* others were lost: there were more, or no room for them here */
	uid_t uid; /* of the process that sent it, where SO_PASSCRED is set; else (uid_t)-1 */
};

/*
 * rights_send - one message, whole or not at all, and no SIGPIPE
 *
 * cnt: RIGHTS_MAX at most; 0: none. flags: as of sendmsg(2). Returns: 0; -errno.
 */
int rights_send(int sock, const void *p, size_t len, const int *fds, unsigned int cnt, int flags);
/*
 * rights_receive - what is there
 *
 * WIRE: any message. flags: as of recvmsg(2). Returns: its length, as much of it as `size`; 0: the
 * end, or an empty one; -errno. *ret is valid in any case.
 */
ssize_t rights_receive(int sock, void *to, size_t size, struct rights *ret, int flags);
void rights_close(struct rights *r);

#endif
