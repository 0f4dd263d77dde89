/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A holder (holder.h) and the programs that it holds descriptors for (held.h): what they say to
 * each other. In the holder's folder, which is its user's alone, are two kinds of sockets:
 *
 *   hold.sock     SEQPACKET. A program says its NAME, or "again NAME" if it had that from a holder
 *                 that has ended. It hears "wait" if another one is called so now, or may be, and
 *                 when that is gone "held NAME:NAME...", with so many descriptors; or "error WHY".
 *                 It is that name's until the connection is closed. Then it may say "notifier",
 *                 with descriptors: the holder's program runs with these (notifier.h).
 *   NAME.notify   DGRAM, what sd_notify(3) needs: FDSTORE=1, FDSTOREREMOVE=1 and BARRIER=1, with
 *                 FDNAME=. All else is passed over.
 *
 * So the program itself is one of a service manager with a file descriptor store, whoever that is.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_HOLD_H
#define RPCRDMAFS_HOLD_H

#include <stdbool.h>

/* The variable of a program that is to be a notifier (notifier.h). */
#define HOLD_RUN_VARIABLE "RPCRDMAFS_NOTIFIER"

#define HOLD_SOCKET "hold.sock"
#define HOLD_NOTIFY ".notify"
#define HOLD_HELD   "held"
#define HOLD_WAIT   "wait"
#define HOLD_ERROR  "error "
#define HOLD_AGAIN  "again "
#define HOLD_RUN    "notifier"
#define HOLD_TEXT   600u /* bytes of a message, at most */
#define HOLD_FDS    8u   /* of one name, at most */
#define HOLD_NAME   48u  /* bytes of a name of either kind, with its end */
#define HOLD_FOLDER 50u  /* bytes of the folder's path, at most: sun_path has 108 */
#define HOLD_WAIT_S 600u /* a mount that nobody takes over fails then */

/* Letters, digits, '-', '_' and '.', which is not the first. */
bool hold_is_name(const char *name);

#endif
