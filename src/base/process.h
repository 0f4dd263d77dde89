/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another program, as a process of its own.
 *
 * Context: any thread. Nothing here calls fork() without exec.
 */
#ifndef RPCRDMAFS_PROCESS_H
#define RPCRDMAFS_PROCESS_H

#include <sys/types.h>

/* The first descriptor that is passed on, and how many can be. */
#define PROCESS_FD  3
#define PROCESS_FDS 16u

/*
 * process_spawn - in a session of its own, with no signal blocked or ignored
 *
 * program: a path. variable: "NAME=value", one more than those of this process. fds: it has these
 * as PROCESS_FD and following, PROCESS_FDS at most, standard streams, and what of ours has no
 * FD_CLOEXEC. Returns: its PID, or -errno.
 */
pid_t process_spawn(
	const char *program, char **argv, char *variable, const int *fds, unsigned int fd_cnt);
/* This process's variables, and one more; the strings are shared. NULL: out of memory. */
char **process_environment(char *variable);

#endif
