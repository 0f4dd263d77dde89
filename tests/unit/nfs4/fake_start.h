/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nfs4_call_start() for tests of operations alone: instead of a session, it
 * remembers the descriptor, whose encode and decode the test then runs itself.
 */
#ifndef RPCRDMAFS_FAKE_START_H
#define RPCRDMAFS_FAKE_START_H

#include "nfs4_int.h"

/* The descriptor that op, nfs4_lookup for instance, starts its calls with. */
const struct nfs4_opdesc *fake_start(void (*op)(struct nfs4_call *call), struct nfs4_call *call);

#endif
