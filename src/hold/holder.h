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

struct holder_conf {
	const char *dir; /* is made if it is not there */
	/*
	 * A mount that nobody takes within so long after its daemon has gone is given up: all use
	 * of it fails then. 0: it is held for ever.
	 */
	uint64_t wait_ns;
	/* Daemons of a holder that has ended come first: newcomers wait for so long. */
	uint64_t quiet_ns;
	const char *program; /* runs as a notifier; lives as long as the holder */
	unsigned int name_max;
};

/*
 * Returns: NULL with errno: EADDRINUSE: there is one already; EPERM: the folder is somebody
 * else's.
 */
struct holder *holder_new(struct reactor *r, const struct holder_conf *conf);
/* All that it holds is closed, and its sockets are removed. The log names what nobody has. */
void holder_free(struct holder *h);

#endif
