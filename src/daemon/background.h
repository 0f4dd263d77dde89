/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going to the background only when the mount is usable: the parent stays
 * until the child says so, and exits with the child's status otherwise.
 *
 * Context: the main thread, before any other thread exists.
 */
#ifndef RPCRDMAFS_BACKGROUND_H
#define RPCRDMAFS_BACKGROUND_H

/*
 * background_start - fork; returns in the child only
 *
 * The parent waits for background_ready() or for the child's death and exits.
 * Returns: 0 in the child; -errno if it could not fork.
 */
int background_start(void);
/* The mount is usable: the parent exits with 0; standard streams go to /dev/null. */
void background_ready(void);

#endif
