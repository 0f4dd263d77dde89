/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of one mount, from what the user asked for to its end. */
#ifndef RPCRDMAFS_MOUNT_H
#define RPCRDMAFS_MOUNT_H

#include "handover.h"
#include "options.h"

/*
 * mount_retry_run - connect, find the export, mount, serve, until it is unmounted
 *
 * Context: the main thread, after background_start() if there is one; other
 * threads start and end inside. A mount that fails says why in one line, and
 * is tried again for opt->retry_min minutes if that may pass; with opt->bg the
 * parent of background_start() does not wait for that. handover: the mount is there already, and
 * another program has left it to this one, which is in the background; taken. NULL: none has.
 * Returns: the exit status: 0 when it was unmounted, MOUNT_EX_* when it could
 * not be mounted.
 */
#define MOUNT_EX_USAGE 1 /* and, but for mount.rpcrdmafs, whatever else fails */
/* As mount.rpcrdmafs, those of mount(8): */
#define MOUNT_EX_SYSERR 2
#define MOUNT_EX_USER   8 /* interrupted */
#define MOUNT_EX_FAIL   32

int mount_retry_run(struct options *opt, struct handover *handover);

#endif
