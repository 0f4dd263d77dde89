/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file system depends on this process: when memory is short, the system must not have it
 * wait for dirty pages that it is to write itself, not kill it first, and not throw its code
 * away, which may lie on this very mount. Each is done where it is permitted.
 * Data may be swapped out: locked memory could not be given back piece by piece.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_PROTECT_H
#define RPCRDMAFS_PROTECT_H

#include <stdbool.h>

#define PROTECT_OOM_SCORE (-900)

/*
 * protect_process - from reclaim and the OOM killer (PR_SET_IO_FLUSHER, oom_score_adj)
 *
 * After the last fork() without exec and before other threads begin, which inherit it. A score
 * that somebody chose for the OOM killer (not 0) is left alone.
 */
void protect_process(void);
/*
 * protect_code - the code of the program and its libraries stays in memory (mlock2(2))
 *
 * When all libraries are there that it needs to serve.
 * Returns: 0; -errno: not permitted (RLIMIT_MEMLOCK), some or all of it may be thrown away.
 */
int protect_code(void);

#endif
