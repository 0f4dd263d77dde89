/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages that a transport sends and receives, on their way into a capture.
 *
 * Context: the lane.
 */
#ifndef RPCRDMAFS_RPCRDMA_TAP_H
#define RPCRDMAFS_RPCRDMA_TAP_H

#include "rpcrdma_int.h"

/* Messages are to be told; not if the fabric captures. While connected. */
static inline bool rpcrdma_tap_is_on(const struct rpcrdma *x)
{
	return capture_is_on(x->conf.capture) && !fab_ep_caps(x->ep)->captures;
}

/* If it is on: a Send was posted. hdr: of a call, whose Read chunks follow it; NULL: it has none.
 */
void rpcrdma_tap_sent(struct rpcrdma *x, const struct fab_sge *sges, unsigned int cnt,
	const struct rpcrdma_hdr *hdr);
/*
 * If it is on: a message arrived. hdr: as decoded, NULL if it is not one. call: that it answers, or
 * NULL.
 */
void rpcrdma_tap_received(struct rpcrdma *x, const uint8_t *msg, uint32_t len, uint32_t inv_rkey,
	const struct rpcrdma_hdr *hdr, const struct rpcrdma_reqpriv *call);
/* Always: what the peer said when it accepted. */
void rpcrdma_tap_established(struct rpcrdma *x, const uint8_t *priv, size_t len);
/* Of fab_ep_ops: a long call, or a Reply chunk, of a call in flight. */
bool rpcrdma_tap_is_message(void *ctx, uint64_t addr, uint64_t len);

#endif
