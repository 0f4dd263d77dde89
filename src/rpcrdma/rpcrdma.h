/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC-over-RDMA version 1 (RFC 8166, 8167, 8797, 8267 section 3 and 6), as a
 * requester and a backchannel responder, over one fabric endpoint.
 *
 * The user builds an RPC call (header and body, see rpc.h) in memory that the
 * transport lends, names what may move by RDMA (`args`, `results`) and how
 * long the rest of the reply can become. The transport chooses the message
 * form, exposes memory for exactly as long as the call runs, resends calls
 * after a reconnect, and hands the reply up when nothing of ours is reachable
 * by the peer any more.
 *
 * Context: every call by the lane that owns the transport; callbacks come from
 * the lane's reactor, never from inside a call.
 */
#ifndef RPCRDMAFS_RPCRDMA_H
#define RPCRDMAFS_RPCRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "addrs.h"
#include "capture.h"
#include "list.h"
#include "reactor.h"
#include "slab.h"
#include "stats.h"

struct rpcrdma;

/* How memory is exposed (design section 4). */
enum rpcrdma_memreg {
	RPCRDMA_MEMREG_AUTO, /* windows where the device has type 2B, else static */
	RPCRDMA_MEMREG_MW,
	RPCRDMA_MEMREG_STATIC,
};

/* The fabric that carries the messages (fab.h). */
enum rpcrdma_fabric {
	RPCRDMA_FABRIC_VERBS, /* an RDMA device */
	RPCRDMA_FABRIC_SOFT,  /* RoCEv2 on a UDP socket of this process */
	RPCRDMA_FABRIC_AUTO,  /* a device if one leads to the server, else the other */
};

#define RPCRDMA_MAX_CREDITS 1024 /* requests a transport can have */
#define RPCRDMA_MAX_RESULTS 4    /* DDP results (Write chunks) of one call */
#define RPCRDMA_MAX_ARGS    8    /* pieces of a call's DDP argument */
#define RPCRDMA_MAX_SEGS    16   /* segments of one chunk */

struct rpcrdma_conf {
	enum rpcrdma_fabric fabric;
	enum rpcrdma_memreg memreg;
	unsigned int credits;  /* asked for in each call; default 64 */
	uint32_t inline_size;  /* Send and Receive size offered: 1024..65536, default 4096 */
	size_t data_size;      /* bytes of payload a data buffer holds: max(rsize, wsize) */
	unsigned int data_cnt; /* data buffers of the lane */
	uint32_t max_seg;      /* largest segment of a chunk, bytes; 0: no limit (tests: 4096...) */
	uint64_t timeo_ns;     /* no reply for so long: reconnect and resend, or fail if soft */
	unsigned int retrans;  /* soft: give up after so many resends */
	uint64_t resolve_timeout_ns, connect_timeout_ns;
	uint8_t ack_timeout, retry_count, tos;   /* fab.h */
	uint64_t backoff_min_ns, backoff_max_ns; /* between attempts to reconnect, with jitter */
	uint64_t idle_probe_ns;    /* silence after which a connection is probed; 0: never */
	uint64_t probe_timeout_ns; /* a probe unanswered for so long: the connection is dead */
	/* Where the server is, for all transports of a client; NULL: where rpcrdma_connect() says.
	 */
	struct addrs *addrs;
	/* Of data buffers, each with a page before its data; it is there as long as the transport.
	 */
	struct slab_memory data_mem;
	struct capture *capture; /* what is sent and received goes there as well; may be NULL */
	uint64_t send_stall_ns;  /* and so is one whose Sends do not complete, at least; 0: never */
};

void rpcrdma_conf_default(struct rpcrdma_conf *conf);

/*
 * A data buffer: registered memory of the lane, lent to one owner at a time
 * (receive loop, request, transport). It starts RPCRDMA_DATA_LEAD bytes before
 * a page boundary so that the payload of a FUSE WRITE, which comes 80 bytes
 * into the request, is page aligned.
 */
#define RPCRDMA_DATA_LEAD 80u

struct rpcrdma_buf {
	uint8_t *mem;     /* `data` minus RPCRDMA_DATA_LEAD: where a FUSE request is received */
	uint8_t *data;    /* page aligned, data_size bytes and a page of slack */
	struct list link; /* the owner's */
	void *owner;      /* debugging and asserts */
	/* the transport's own fields follow in rpcrdma_int.h's view */
	struct rpcrdma_bufpriv *priv;
};

/* Part of a data buffer. */
struct rpcrdma_span {
	struct rpcrdma_buf *buf;
	uint8_t *p; /* inside buf */
	uint32_t len;
};

/* Why a request ended without a reply. */
enum rpcrdma_end {
	RPCRDMA_REPLY,    /* reply/reply_len hold the RPC reply */
	RPCRDMA_TIMEDOUT, /* soft: timeo and retrans used up */
	RPCRDMA_TOOSMALL, /* ERR_CHUNK: the server could not use our chunks; the call may have been
			     executed (RFC 8166 4.5.x): retry with a larger Reply chunk or fail */
	RPCRDMA_REFUSED,  /* ERR_VERS, or a header we sent is refused: will not work again */
	RPCRDMA_UNANSWERED, /* give_back: not answered in time; it may have been executed, or be yet
			     */
	RPCRDMA_GIVENUP,    /* one connection after the other was lost with this call alone on it:
			       it may have been executed */
	RPCRDMA_BADREPLY,   /* the reply breaks the protocol: connection replaced, call not repeated
			     */
	RPCRDMA_SHUTDOWN,   /* rpcrdma_stop() */
};

/* A result that may be placed directly (RFC 8267): a READ's data, in order of the operations. */
struct rpcrdma_result {
	struct rpcrdma_span sink; /* where to; len = room. An empty buf: an unused Write chunk */
	uint32_t got;             /* set on reply: bytes written by RDMA Write; may include up
				     to 3 of XDR round-up: the result's own count is the truth */
	bool used;                /* set on reply: the server wrote into the chunk (got > 0) */
};

/*
 * One call. Embedded in rpc_call; the fields of the first group are set by the
 * user before rpcrdma_send() and not touched until ->done.
 */
struct rpcrdma_req {
	/* the call message: RPC header and XDR body, in order head, args, tail */
	uint8_t *head; /* from rpcrdma_req_get(): room for head_room bytes, at least 2048 */
	size_t head_room;
	size_t head_len; /* bytes encoded at head */
	/*
	 * The DDP-eligible argument (WRITE data, without round-up) in pieces that follow each
	 * other, each of one byte or more; arg_cnt 0: none. However many, they are one Read chunk.
	 */
	struct rpcrdma_span args[RPCRDMA_MAX_ARGS];
	unsigned int arg_cnt;
	size_t tail_len; /* bytes of head (or long_call), at its end, that follow args' round-up */
	/*
	 * A message that is likely not to fit inline, or head, is built in a data buffer: len > 0,
	 * head_len 0. It is copied inline if it fits after all, else sent as RDMA_NOMSG by
	 * Position-Zero Read chunk (RFC 8166 section 3.5.3), args beside it as a normal Read chunk.
	 * One in head that does not fit inline, and has no args, is copied and sent in that way.
	 */
	struct rpcrdma_span long_call;

	struct rpcrdma_result results[RPCRDMA_MAX_RESULTS];
	unsigned int result_cnt;
	size_t reply_max; /* longest reply message without the DDP results, bytes */
	struct rpcrdma_span
		reply_sink; /* Reply chunk to use when reply_max exceeds inline; len = room */
	bool soft;          /* may end with RPCRDMA_TIMEDOUT */
	bool give_back;     /* may end with RPCRDMA_UNANSWERED, instead of being sent again */

	/* when done: the reply message, valid only during ->done */
	const uint8_t *reply;
	size_t reply_len;
	enum rpcrdma_end end;

	/*
	 * Runs exactly once for each accepted call, from the reactor. The request and all its
	 * buffers are the user's again. It may send again or put the request.
	 */
	void (*done)(struct rpcrdma_req *req);

	/* the transport's */
	uint32_t xid;
	uint32_t idx;
	uint32_t pending; /* SEND | REPLY | INV bits */
	struct list link;
	uint64_t deadline_ns, sent_ns;
	/* when done, by reactor_clock(): first posted (0: never), and over */
	uint64_t posted_ns, over_ns;
	unsigned int resends;
	struct rpcrdma_reqpriv *priv;
};

/* A call from the server (RFC 8167), valid only during ->reverse_call. */
struct rpcrdma_rcall {
	uint32_t xid;
	const uint8_t *msg; /* RPC message, xid included */
	size_t len;
};

struct rpcrdma_ops {
	/* Connected and ready: calls flow. first: the first connection of this transport. */
	void (*up)(void *ctx, bool first);
	/*
	 * Connection lost; calls in flight are kept and resent after ->up unless soft ends them.
	 * err: -errno, why.
	 */
	void (*down)(void *ctx, int err);
	/* The first connection failed for good (bad address, refused, no device ...): nothing
	 * follows. */
	void (*failed)(void *ctx, int err, const char *step);
	/* rpcrdma_stop() is complete: every request came back, rpcrdma_free() may be called. */
	void (*stopped)(void *ctx);
	/* A request or a credit became free after rpcrdma_req_get() or _buf_get() said none. */
	void (*unblocked)(void *ctx);
	/*
	 * A backchannel call. The user answers with rpcrdma_reverse_reply() during the callback or
	 * later with a copy; NULL member: calls are dropped.
	 */
	void (*reverse_call)(void *ctx, const struct rpcrdma_rcall *call);
};

/*
 * rpcrdma_new - a transport to `dst`, not connected yet
 *
 * Ownership: conf is copied; stats belongs to the lane and outlives the transport.
 * Returns: NULL with errno.
 */
struct rpcrdma *rpcrdma_new(struct reactor *r, const struct rpcrdma_conf *conf,
	const struct rpcrdma_ops *ops, void *ctx, struct stats *stats);
/*
 * During ->failed, and after an error of rpcrdma_connect(): one line that says more than errno and
 * step do; "" if there is nothing to add.
 */
const char *rpcrdma_failure_detail(const struct rpcrdma *x);
/* src may be NULL; with conf.addrs dst is not looked at. Returns 0: ->up or ->failed follows;
 * -errno. */
int rpcrdma_connect(struct rpcrdma *x, const struct sockaddr *src, const struct sockaddr *dst);
/*
 * rpcrdma_stop - end every call with RPCRDMA_SHUTDOWN and close the connection
 *
 * ->stopped follows, also when the peer is dead.
 */
void rpcrdma_stop(struct rpcrdma *x);
/* After ->stopped or ->failed, or before rpcrdma_connect(). NULL is accepted. */
void rpcrdma_free(struct rpcrdma *x);

/* Drops the connection and makes it anew at once (a lost session's last resort, tests). */
void rpcrdma_reconnect(struct rpcrdma *x, const char *why);
bool rpcrdma_is_up(const struct rpcrdma *x);
/* Counts the connections: a call sent on an older one was or will be resent. */
uint64_t rpcrdma_generation(const struct rpcrdma *x);
/* Bytes of RPC message that fit inline each way now, worst-case header taken off. */
size_t rpcrdma_inline_call_max(const struct rpcrdma *x);
size_t rpcrdma_inline_reply_max(const struct rpcrdma *x);
size_t rpcrdma_data_size(const struct rpcrdma *x);
/*
 * Bytes of a result that the server is best asked for in one call, once connected: data_size, or a
 * power of two that has room twice where what it writes may get lost (fab_caps.max_inbound).
 */
size_t rpcrdma_result_size(const struct rpcrdma *x);
enum rpcrdma_memreg rpcrdma_memreg(const struct rpcrdma *x); /* what AUTO became */
const char *rpcrdma_peer_name(const struct rpcrdma *x);
/* Once ->up ran: the RDMA device, and the inline thresholds of this connection. */
const char *rpcrdma_device_name(const struct rpcrdma *x);
void rpcrdma_thresholds(const struct rpcrdma *x, uint32_t *ret_send, uint32_t *ret_recv);

/* A connection, and what the server said when it accepted and when it answered. */
struct rpcrdma_facts {
	enum rpcrdma_fabric fabric;            /* never AUTO */
	struct sockaddr_storage local, remote; /* of its packets; AF_UNSPEC: not known */
	uint32_t mtu;                          /* bytes of payload of a packet; 0: not known */
	unsigned int version;                  /* of RPC-over-RDMA */
	uint32_t asked, granted;               /* credits; granted is 1 before the first reply */
	uint64_t max_inbound;          /* bytes that the server writes at a time; 0: any number */
	bool has_priv;                 /* there was private data (RFC 8797): */
	uint32_t peer_send, peer_recv; /* bytes that the server sends and takes inline */
};

/* Of the connection that is up; false: none is, *ret is untouched. */
bool rpcrdma_facts(const struct rpcrdma *x, struct rpcrdma_facts *ret);

/*
 * rpcrdma_req_get / _put - lend a request's message memory
 *
 * get fills idx, head, head_room, clears the rest but `done`.
 * Returns: 0; -EAGAIN: all requests are in use, ->unblocked tells when not.
 */
int rpcrdma_req_get(struct rpcrdma *x, struct rpcrdma_req *req);
void rpcrdma_req_put(struct rpcrdma *x, struct rpcrdma_req *req);

/* NULL: none free, ->unblocked tells. put by the lane that got it. */
struct rpcrdma_buf *rpcrdma_buf_get(struct rpcrdma *x);
/* The same, but so many must stay free: with no more than that there it is NULL. */
struct rpcrdma_buf *rpcrdma_buf_get_above(struct rpcrdma *x, unsigned int left);
void rpcrdma_buf_put(struct rpcrdma *x, struct rpcrdma_buf *buf);
unsigned int rpcrdma_buf_free_count(const struct rpcrdma *x);

/*
 * rpcrdma_send - hand a built call to the transport
 *
 * Ownership: on 0 the request and all its spans belong to the transport until ->done.
 * A call without a credit, or while the connection is down, waits inside.
 * The XID is in the message's first word already (rpcrdma_next_xid()).
 * Returns: 0: ->done follows, never from here.
 *          -EMSGSIZE: fits no message form with the buffers given: do not retry.
 *          -EINVAL: a span outside its buffer, lengths that contradict each other: a bug.
 *          -ESHUTDOWN: rpcrdma_stop() was called.
 */
int rpcrdma_send(struct rpcrdma *x, struct rpcrdma_req *req);

/* A new XID, never one of a call in flight; random start. */
uint32_t rpcrdma_next_xid(struct rpcrdma *x);

/*
 * rpcrdma_reverse_reply - answer a backchannel call, inline
 *
 * msg: RPC reply (xid included), copied. len at most rpcrdma_inline_call_max().
 * Returns: 0; -EMSGSIZE; -ENOTCONN (the connection the call came on is gone: drop it);
 *          -EAGAIN: no send buffer: drop it, the server asks again.
 */
int rpcrdma_reverse_reply(struct rpcrdma *x, const void *msg, size_t len);

#endif
