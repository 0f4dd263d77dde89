/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages that threads have posted to a reactor (reactor.h): any number of senders, one
 * receiver, no lock.
 *
 * Ownership: a message is the mailbox's from mailbox_push() until it runs. Zeroed: empty.
 */
#ifndef RPCRDMAFS_MAILBOX_H
#define RPCRDMAFS_MAILBOX_H

#include <stdatomic.h>

#include "reactor.h"

struct mailbox {
	_Atomic(struct reactor_msg *) newest; /* a stack */
};

/* Any thread. True: it was empty; whoever pushed then wakes the receiver, also for later ones. */
bool mailbox_push(struct mailbox *mb, struct reactor_msg *msg);
/* Any thread; ordered with what the caller stored before (seq_cst). */
bool mailbox_has_some(struct mailbox *mb);
/* The receiver: runs all that are there, oldest first. False: there was none. */
bool mailbox_run(struct mailbox *mb);

#endif
