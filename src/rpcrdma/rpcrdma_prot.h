/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of the wire: RPC-over-RDMA version 1 (RFC 8166 section 4), its CM
 * private data (RFC 8797 section 4) and the RPC words the transport looks at
 * (RFC 5531 section 9).
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_RPCRDMA_PROT_H
#define RPCRDMAFS_RPCRDMA_PROT_H

#include <stdint.h>

#define RPCRDMA_VERSION 1u

/* rdma_proc, RFC 8166 section 4.2.4 */
enum rpcrdma_proc {
	RDMA_MSG = 0,   /* RPC message inline, after the header */
	RDMA_NOMSG = 1, /* RPC message wholly in a chunk */
	RDMA_MSGP = 2,  /* RFC 8166 4.6.1: taken as RDMA_MSG, never sent */
	RDMA_DONE = 3,  /* RFC 8166 4.6.2: dropped, never sent */
	RDMA_ERROR = 4,
};

/* rdma_err, RFC 8166 section 4.5 */
enum rpcrdma_errcode {
	RDMA_ERR_VERS = 1,
	RDMA_ERR_CHUNK = 2,
};

/* Bytes of a transport header: fixed part and three empty lists; then by element. */
#define RPCRDMA_HDR_FIXED    16u
#define RPCRDMA_HDR_MIN      28u
#define RPCRDMA_HDR_READ_SEG 24u /* present, position, segment */
#define RPCRDMA_HDR_CHUNK    8u  /* present, segment count: a Write chunk */
#define RPCRDMA_HDR_REPLY    4u  /* segment count; `present` is in RPCRDMA_HDR_MIN */
#define RPCRDMA_HDR_SEG      16u

/* RFC 8166 section 3.3.2: the threshold when the peer said nothing. */
#define RPCRDMA_INLINE_DEFAULT 1024u
#define RPCRDMA_INLINE_MAX     65536u

/* RFC 8797 section 4.1 */
#define RPCRDMA_PRIV_MAGIC   0xf6ab0e18u
#define RPCRDMA_PRIV_VERSION 1u
#define RPCRDMA_PRIV_F_INV   0x01u /* the sender of this can take Send with Invalidate */
#define RPCRDMA_PRIV_LEN     8u

/* msg_type of RFC 5531: tells calls of the server from its replies (RFC 8167 section 4.1) */
#define RPC_MSG_CALL  0u
#define RPC_MSG_REPLY 1u

#endif
