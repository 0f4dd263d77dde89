/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of one mount, from what the user asked for to its end. */
#ifndef RPCRDMAFS_MOUNT_H
#define RPCRDMAFS_MOUNT_H

#include "options.h"

/*
 * mount_run - connect, find the export, mount, serve, until it is unmounted
 *
 * Context: the main thread, after background_start() if there is one; other
 * threads start and end inside. A mount that fails says why in one line.
 * Returns: the exit status: 0 when it was unmounted, 1 when it could not be
 * mounted.
 */
int mount_run(struct options *opt);

#endif
