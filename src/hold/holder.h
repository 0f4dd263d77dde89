/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A holder: a process that keeps what daemons put into it (store.h) for the ones that come after
 * them. It does for a container what systemd's file descriptor store does for a unit, and starts
 * nothing. It is in a container of its own, so that it stays when theirs goes.
 *
 * It listens to root and to the user that it runs as.
 *
 * Context: the only thread of its process.
 */
#ifndef RPCRDMAFS_HOLDER_H
#define RPCRDMAFS_HOLDER_H

#include <stdint.h>

#include "reactor.h"

struct holder;

/*
 * holder_new - a holder in a folder, which is made if it is not there
 *
 * wait_ns: what nobody takes within so long after its daemon has gone is given up: all use of that
 * mount fails then; 0: it is held for ever.
 * Returns: NULL with errno: EADDRINUSE: there is one already; EPERM: the folder is somebody
 * else's.
 */
struct holder *holder_new(struct reactor *r, const char *dir, uint64_t wait_ns);
/* All that it holds is closed, and its sockets are removed. The log names what nobody has. */
void holder_free(struct holder *h);

#endif
