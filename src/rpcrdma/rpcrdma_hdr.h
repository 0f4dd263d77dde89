/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport header (RFC 8166 section 4): encoder of what a requester
 * sends, decoder of anything a peer may send. Counts are bounded where they
 * are read; what does not fit these bounds is -EBADMSG.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_RPCRDMA_HDR_H
#define RPCRDMAFS_RPCRDMA_HDR_H

#include "rpcrdma.h"
#include "rpcrdma_prot.h"
#include "xdr.h"

#define RPCRDMA_MAX_READ_SEGS (2 * RPCRDMA_MAX_SEGS) /* Position-Zero chunk and one other */

struct rpcrdma_seg {
	uint32_t handle; /* rkey */
	uint32_t len;
	uint64_t off; /* virtual address */
};

/* A Write or Reply chunk, or the segments of one Read chunk. */
struct rpcrdma_chunk {
	uint32_t cnt;
	struct rpcrdma_seg segs[RPCRDMA_MAX_SEGS];
};

struct rpcrdma_read_seg {
	uint32_t pos;
	struct rpcrdma_seg seg;
};

/* Arrays hold garbage past their counts: this lies on the stack of the I/O path. */
struct rpcrdma_hdr {
	uint32_t xid, vers, credits;
	uint32_t proc;
	/* RDMA_MSG, _NOMSG, _MSGP */
	uint32_t read_cnt;
	uint32_t write_cnt;
	bool has_reply;
	struct rpcrdma_read_seg reads[RPCRDMA_MAX_READ_SEGS];
	struct rpcrdma_chunk writes[RPCRDMA_MAX_RESULTS];
	struct rpcrdma_chunk reply;
	/* RDMA_ERROR */
	uint32_t err, vers_low, vers_high;
};

void rpcrdma_hdr_encode(struct xdr_enc *x, const struct rpcrdma_hdr *h);
/*
 * rpcrdma_hdr_decode - x stands behind the header on 0
 *
 * *h is filled up to the first thing that is wrong: after -EBADMSG only xid is
 * valid, and only with 16 bytes or more (RPCRDMA_HDR_FIXED).
 * Returns: 0; -EBADMSG: cut short, or counts out of bounds;
 *          -EPROTONOSUPPORT: another version (RDMA_ERROR excepted, which is the same in all);
 *          -EOPNOTSUPP: unknown rdma_proc.
 */
int rpcrdma_hdr_decode(struct xdr_dec *x, struct rpcrdma_hdr *h);

/* Bytes that the segments of a chunk name together. */
uint64_t rpcrdma_hdr_chunk_bytes(const struct rpcrdma_chunk *c);

#endif
