/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunk plan: how a call and its reply travel. Made once when the call is
 * accepted and kept over resends, as long as the connection's limits allow it.
 *
 *   call   inline              message fits, args gathered from where they lie
 *          Read chunk          args by RDMA Read, the rest inline
 *          long                whole message by Position-Zero Read chunk (RDMA_NOMSG)
 *          long + Read chunk   both; args a multiple of 4 (see rpcrdma_chunk.c)
 *   reply  inline              everything fits the peer's Send
 *          Write chunks        one for each result, in order; the rest inline
 *          Reply chunk         everything, results included
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_RPCRDMA_CHUNK_H
#define RPCRDMAFS_RPCRDMA_CHUNK_H

#include "rpcrdma_hdr.h"

enum rpcrdma_callform {
	RPCRDMA_CALL_INLINE,
	RPCRDMA_CALL_READ,
	RPCRDMA_CALL_LONG,
	RPCRDMA_CALL_LONG_READ,
};

enum rpcrdma_replyform {
	RPCRDMA_REPLY_INLINE,
	RPCRDMA_REPLY_WRITE,
	RPCRDMA_REPLY_CHUNK,
};

/* What the connection and the configuration allow. */
struct rpcrdma_limits {
	uint32_t send_max; /* bytes of one Send: what the peer receives */
	uint32_t recv_max; /* bytes the peer may send */
	uint32_t max_seg;  /* longest segment, 0: no limit */
	uint32_t max_sge;  /* local buffers of one Send */
};

struct rpcrdma_plan {
	enum rpcrdma_callform call;
	enum rpcrdma_replyform reply;
	uint32_t proc;            /* RDMA_MSG or RDMA_NOMSG */
	uint32_t args_pos;        /* XDR position of args in the message, a multiple of 4 */
	uint32_t write_cnt;       /* Write chunks: results[0..write_cnt) */
	uint32_t hdr_len;         /* transport header, bytes */
	uint32_t send_len;        /* of the Send: header and inline part */
	bool copies;              /* RPCRDMA_CALL_LONG of a message that was built in head ... */
	struct rpcrdma_span copy; /* ... from here, while it is on its way (rpcrdma_send.c) */
};

/* The memory that a Position-Zero Read chunk is of. */
static inline const struct rpcrdma_span *rpcrdma_chunk_long_span(
	const struct rpcrdma_req *req, const struct rpcrdma_plan *plan)
{
	return plan->copies ? &plan->copy : &req->long_call;
}

/* Local buffers a Send needs when an arg is gathered: header+head, the arg, pad, tail. */
#define RPCRDMA_MAX_SGE 4u

/*
 * rpcrdma_chunk_plan - decide
 *
 * Returns: 0; -EMSGSIZE: no form fits with the buffers given; -EINVAL: the request contradicts
 * itself (lengths, a span outside its buffer).
 */
int rpcrdma_chunk_plan(
	const struct rpcrdma_req *req, const struct rpcrdma_limits *lim, struct rpcrdma_plan *plan);

/* Bytes that may be placed for a result: 0 makes an empty Write chunk. */
static inline uint32_t rpcrdma_chunk_result_room(const struct rpcrdma_result *r)
{
	return r->sink.buf ? r->sink.len : 0;
}

/* Bytes that the server may write by RDMA for the reply of a planned call. */
uint64_t rpcrdma_chunk_inbound(const struct rpcrdma_req *req, const struct rpcrdma_plan *plan);
/* The `max_seg` that piece i of the args is cut by: all of them have RPCRDMA_MAX_SEGS at most. */
uint32_t rpcrdma_chunk_args_seg(const struct rpcrdma_req *req, unsigned int i, uint32_t max_seg);
/* Segments that a chunk of `len` bytes is cut into. */
uint32_t rpcrdma_chunk_seg_count(uint32_t len, uint32_t max_seg);
/* Cuts `len` bytes at `p`, exposed by `rkey`, into a chunk. */
void rpcrdma_chunk_fill(
	struct rpcrdma_chunk *c, const void *p, uint32_t len, uint32_t rkey, uint32_t max_seg);

/*
 * rpcrdma_chunk_got - bytes a returned chunk carries, checked against what was offered
 *
 * RFC 8166 section 3.4.6: lengths may shrink, the rest stays. A shorter segment is the last one
 * used, or the data has a hole.
 * Returns: bytes; -EBADMSG: more than offered, or with a hole.
 */
int64_t rpcrdma_chunk_got(const struct rpcrdma_chunk *got, uint32_t room, uint32_t max_seg);

/* Header room that a call or an inline reply with one chunk of `bytes` may need. */
uint32_t rpcrdma_chunk_worst_call_hdr(uint32_t bytes, uint32_t max_seg);
uint32_t rpcrdma_chunk_worst_reply_hdr(uint32_t bytes, uint32_t max_seg);

#endif
