/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side of a program that a holder (holder.h) keeps descriptors for: it gets them at its start,
 * as a service manager would give them (sd_listen_fds(3)), and is found again by a holder that was
 * started anew.
 *
 * Context: the only thread; all others: any one thread.
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
/* Did a holder start this program? */
bool held_is(void);
/* The connection to the holder that knows it: its end is the holder's. -1: there is none now. */
int held_connection(void);
/* That one has ended, and is closed. */
void held_forget(void);
/*
 * held_again - another connection, after that
 *
 * Returns: it, non-blocking, which the program stays known by; -errno: nobody listens, as yet.
 */
int held_again(void);
/*
 * held_notifier - the holder runs a notifier with these descriptors (notifier.h)
 *
 * Where it is it does not keep the program's container from ending. cnt: RIGHTS_MAX at most.
 * Returns: 0: it was asked for that; -errno: there is no holder.
 */
int held_notifier(const int *fds, unsigned int cnt);
/*
 * held_answer - does the holder know this program again?
 *
 * When the connection of held_again() is readable. Returns: 1: yes, and whatever is put into it is
 * held from now on; 0: not yet; -errno: it never will, by this connection.
 */
int held_answer(int connection);

#endif
