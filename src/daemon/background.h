/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going to the background only when the mount is usable: the parent stays
 * until the child says so, and exits with the child's status otherwise.
 *
 * Context: the main thread, before any other thread exists.
 */
#ifndef RPCRDMAFS_BACKGROUND_H
#define RPCRDMAFS_BACKGROUND_H

#include <stdbool.h>

/*
 * background_start - fork; returns in the child only
 *
 * The parent waits for background_ready() or for the child's death and exits.
 * Returns: 0 in the child; -errno if it could not fork.
 */
int background_start(void);
/* Does that parent wait still? Then standard error is theirs who mount. */
bool background_is_waited_for(void);
/*
 * background_leave - a session of our own, with /dev/null for standard streams
 *
 * A process that is started afterwards holds nothing of those who mount. When something is
 * mounted, or when nobody is to wait for that any more (bg); before background_ready(). Without
 * background_start() both do nothing.
 */
void background_leave(void);
/* The mount is usable, and kept if it is to be: the parent exits with 0. */
void background_ready(void);

#endif
