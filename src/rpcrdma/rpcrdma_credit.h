/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits of the forward direction (RFC 8166 section 3.3): one until the
 * first reply of a connection, then the lower of asked and granted, which
 * may change with any message. With two or more, one is kept for the health
 * check (RFC 8267 section 6.7.2); a single one is shared.
 *
 * Beside them a limit of our own: the bytes that the server may write by RDMA for calls in flight,
 * where what it writes may get lost for want of room (fab_caps.max_inbound). One call alone may
 * have more.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_RPCRDMA_CREDIT_H
#define RPCRDMAFS_RPCRDMA_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct rpcrdma_credit {
	uint32_t asked;
	uint32_t granted;     /* 1..asked */
	uint32_t calls;       /* in flight; may exceed granted after the server took credits back */
	bool probe;           /* in flight too */
	uint64_t inbound;     /* bytes of Write and Reply chunks of the calls in flight ... */
	uint64_t inbound_max; /* ... at most now; 0: no limit */
	uint64_t inbound_room; /* ... at most where nothing is lost */
};

/* A new connection. */
void rpcrdma_credit_reset(struct rpcrdma_credit *c, uint32_t asked);
/* WIRE: any value; 0 is taken as 1. */
void rpcrdma_credit_grant(struct rpcrdma_credit *c, uint32_t granted);
/* May a call (or the probe, which may use the kept credit) be sent now? */
bool rpcrdma_credit_is_free(const struct rpcrdma_credit *c, bool probe);
/* Is there room for what the server may write for the call? */
bool rpcrdma_credit_has_room(const struct rpcrdma_credit *c, uint64_t inbound);
void rpcrdma_credit_take(struct rpcrdma_credit *c, bool probe, uint64_t inbound);
/* The call is over and its receive buffer posted again. */
void rpcrdma_credit_give(struct rpcrdma_credit *c, bool probe, uint64_t inbound);

#endif
