/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side of a program that a holder (holder.h) keeps descriptors for: it gets them at its start,
 * as a service manager would give them (sd_listen_fds(3)), and is found again by a holder that was
 * started anew.
 *
 * Context: the only thread; held_again() and held_answer(): any one thread.
 */
#ifndef RPCRDMAFS_HELD_H
#define RPCRDMAFS_HELD_H

#include <stdbool.h>
#include <stddef.h>

/* Where it is: CONNECTION FOLDER/NAME. */
#define HELD_VARIABLE "RPCRDMAFS_HELD"

/*
 * held_exec - this process is that program from now on, called `name` by the holder in `dir`
 *
 * Waits while another program is called so; wait() is called once then. argv: as of execvp(3). The
 * program's variables are those of this process, NOTIFY_SOCKET and FDSTORE, and LISTEN_PID,
 * LISTEN_FDS and LISTEN_FDNAMES if there is something for it.
 * Returns only if that is not possible: -1, with a line in fault.
 */
int held_exec(const char *dir, const char *name, char **argv, void (*wait)(void), char *fault,
	size_t len);
/* The connection to the holder that started this program: its end is the holder's. -1: none did. */
int held_connection(void);
/*
 * held_again - another connection, after the end of that one
 *
 * Returns: it, non-blocking, which the program stays known by; -errno: nobody listens, as yet.
 */
int held_again(void);
/*
 * held_answer - does the holder know this program again?
 *
 * When the connection of held_again() is readable. Returns: 1: yes, and whatever is put into it is
 * held from now on; 0: not yet; -errno: it never will, by this connection.
 */
int held_answer(int connection);

#endif
