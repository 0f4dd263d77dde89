/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric contract: what a reliable RDMA endpoint is. src/verbs implements
 * it on librdmacm and libibverbs, src/roce on a UDP socket, without a device;
 * which of them is chosen with each endpoint (fab.c). tests/sim implements it in
 * memory, and is linked instead of all that.
 *
 * One endpoint (fab_ep) belongs to one lane for the whole mount and is
 * connected again and again:
 *
 *   IDLE -fab_ep_resolve-> RESOLVING -RESOLVED-> RESOLVED -fab_ep_connect->
 *   CONNECTING -ESTABLISHED-> UP -DOWN-> DRAINING -DRAINED-> IDLE
 *
 * Any failure before UP ends with one FAILED event and the state IDLE; what was
 * posted by then comes back flushed before it.
 * Messages that had arrived when the connection was lost are delivered before DOWN.
 * After DOWN draining starts by itself. fab_ep_disconnect() in any state but
 * IDLE leads to DRAINED, exactly once (instead of FAILED, if that was on its
 * way); it does nothing in DRAINING and IDLE. After DRAINED no completion
 * arrives and no work request is outstanding.
 *
 * Memory (fab_mr) lives as long as the device is the same: RESOLVED says when
 * it is not. Windows (fab_mw) belong to one connection: they are allocated
 * between RESOLVED and DRAINED and freed by fab_ep at teardown (before the
 * queue pair, which rxe needs).
 *
 * Context: every call by the lane; every callback from the lane's reactor,
 * never from inside a call.
 */
#ifndef RPCRDMAFS_FAB_H
#define RPCRDMAFS_FAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "reactor.h"
#include "stats.h"

struct capture; /* capture.h */
struct fab_ep;
struct fab_mr;
struct fab_mw;

/* What the device behind a resolved endpoint can do. */
struct fab_caps {
	char dev_name[64];
	bool mw2b;        /* type 2B memory windows and remote invalidation */
	bool captures;    /* fab_conf.capture gets what is sent and received */
	uint32_t max_sge; /* of a Send */
	uint32_t max_wr;  /* of one queue */
	uint32_t max_mw;  /* windows */
	uint32_t max_rd;  /* RDMA Reads the device serves at once on a queue pair */
	uint64_t max_mr_size;
	/*
	 * Bytes that the peer may be asked to write at a time, lest they get lost; 0: any number.
	 * While it is connected they are fewer after losses, and more again: look before each call.
	 */
	uint64_t max_inbound;
};

enum fab_event_type {
	FAB_EV_RESOLVED,    /* address known, device open: caps valid */
	FAB_EV_ESTABLISHED, /* connected: priv/priv_len from the peer */
	FAB_EV_FAILED,      /* resolve or connect failed: err, step */
	FAB_EV_DOWN,        /* connection lost (err) or closed by the peer (err = 0) */
	FAB_EV_DRAINED,     /* all work requests came back, queue pair and windows are gone */
};

/* The step that FAILED happened in: names the message the user sees. */
enum fab_step {
	FAB_STEP_ADDR,    /* no RDMA device leads to the address */
	FAB_STEP_ROUTE,   /* no path */
	FAB_STEP_SETUP,   /* queue pair, completion queue: resources, memlock */
	FAB_STEP_CONNECT, /* refused, unreachable, timed out */
};

struct fab_event {
	enum fab_event_type type;
	int err; /* FAILED, DOWN: -errno (-ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ENODEV,
		    -ENETUNREACH, -ECONNRESET, -ENOMEM ...) */
	enum fab_step step;
	bool new_device; /* RESOLVED: first time, or earlier fab_mr are gone (freed by the endpoint)
			  */
	const uint8_t *priv;
	size_t priv_len; /* may be padded by the CM: never trust it to be exact */
};

/* Completion status, from the work request's point of view. */
enum fab_status {
	FAB_OK,
	FAB_FLUSHED, /* the connection went down first */
	FAB_ERROR,   /* this one broke the connection: DOWN follows */
};

struct fab_ep_ops {
	void (*event)(void *ctx, const struct fab_event *ev);
	/* A Send completed: its buffers are ours again. Chained binds and invalidations are done.
	 */
	void (*sent)(void *ctx, uint64_t cookie, enum fab_status status);
	/*
	 * A Receive completed with `len` bytes. inv_rkey: the key that the peer's
	 * Send with Invalidate named, 0 if none. The buffer is the caller's until posted again.
	 */
	void (*received)(void *ctx, uint64_t cookie, uint32_t len, uint32_t inv_rkey,
		enum fab_status status);
	/* The windows of one fab_mw_invalidate() are no longer reachable. */
	void (*invalidated)(void *ctx, uint64_t cookie, enum fab_status status);
	/* After a batch of completions was delivered: the time to post what they caused. */
	void (*batch_done)(void *ctx);
	/*
	 * Memory that the peer reads or writes, by the address that it was told: is it a message,
	 * not contents of a file? Asked for each packet of a capture without these
	 * (fab_caps.captures), also from inside a call. NULL: never.
	 */
	bool (*is_message)(void *ctx, uint64_t addr, uint64_t len);
};

enum fab_kind {
	FAB_VERBS, /* an RDMA device */
	FAB_SOFT,  /* RoCEv2 in this process */
};

struct fab_conf {
	enum fab_kind kind;
	uint64_t resolve_timeout_ns; /* address and route, each */
	uint64_t connect_timeout_ns; /* from fab_ep_connect to ESTABLISHED: our own timer */
	uint8_t ack_timeout; /* RoCE local ACK timeout exponent (4.096 us << n), 0: default */
	uint8_t retry_count; /* 0..7 transport retries */
	uint8_t tos;         /* of IP, without the bits of ECN, of what both sides send */
	struct stats *stats; /* of the lane, for what FAB_SOFT counts; they outlive the endpoint */
	struct capture *capture; /* so does this; may be NULL */
};

/* Queue sizes of a connection. */
struct fab_qp_conf {
	uint32_t send_wr; /* Sends and bind/invalidate requests outstanding at most */
	uint32_t recv_wr;
	uint32_t max_send_sge;
};

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx);
/* State IDLE only; frees every fab_mr left. NULL is accepted. */
void fab_ep_free(struct fab_ep *ep);

/*
 * fab_ep_resolve - find the way to dst, and the device on it
 *
 * src may be NULL. Returns: 0: RESOLVED or FAILED follows; -errno: nothing follows. -ENODEV: there
 * is no device, -ELIBACC: no library that knows devices; fab_ep_why() may tell more.
 */
int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
/* Valid from RESOLVED until the device changes. */
const struct fab_caps *fab_ep_caps(const struct fab_ep *ep);
/*
 * fab_ep_setup - make the queue pair (state RESOLVED)
 *
 * After it receives can be posted, windows allocated.
 * Returns: 0; -errno: call fab_ep_disconnect(). -ENOMEM: memlock or device limit.
 */
int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf);
/*
 * fab_ep_connect - resolve the route and connect (state RESOLVED, after setup)
 *
 * priv: RFC 8797 private data, copied. RNR retry is 7, responder resources as
 * many as the device has (at least 1), initiator depth 0.
 * Returns: 0: ESTABLISHED or FAILED follows; -errno: call fab_ep_disconnect().
 */
int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len);
/* Ends the connection or the attempt; DRAINED follows (also when the peer is dead). */
void fab_ep_disconnect(struct fab_ep *ep);

/*
 * fab_ep_set_busy - how many calls are in flight
 *
 * A few: their completions are worth spinning for. 0 (idle) or many: no spinning.
 */
void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight);

enum fab_access {
	FAB_LOCAL = 0,            /* local only, windows may be bound to it */
	FAB_REMOTE_READ = 1 << 0, /* the peer may read all of it */
	FAB_REMOTE_WRITE = 1 << 1,
};

/*
 * fab_mr_reg - register memory with the endpoint's device (RESOLVED or later)
 *
 * access: FAB_LOCAL or one or both REMOTE bits.
 * bind: windows will be bound to it.
 * Returns: the registration; NULL with errno (ENOMEM: usually RLIMIT_MEMLOCK).
 */
struct fab_mr *fab_mr_reg(
	struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind);
void fab_mr_dereg(struct fab_mr *mr); /* no window bound to it; NULL is accepted */
uint32_t fab_mr_rkey(const struct fab_mr *mr);

/* A window of this connection; NULL with errno. Freed by the endpoint at teardown. */
struct fab_mw *fab_mw_alloc(struct fab_ep *ep);
uint32_t fab_mw_rkey(const struct fab_mw *mw);

/* One local buffer of a Send; its registration. */
struct fab_sge {
	const void *addr;
	uint32_t len;
	const struct fab_mr *mr;
};

/* A window to bind before the Send, in the same post. The window's rkey changes. */
struct fab_bind {
	struct fab_mw *mw;
	const struct fab_mr *mr;
	void *addr;
	uint64_t len;
	unsigned int access; /* FAB_REMOTE_READ or FAB_REMOTE_WRITE */
};

#define FAB_MAX_WINS 15u /* windows that one post binds or invalidates */

/*
 * fab_mw_next_rkey - the rkey that the next bind of this window will have
 *
 * To be encoded before the post that binds it. Idempotent until bound.
 */
uint32_t fab_mw_next_rkey(const struct fab_mw *mw);

/*
 * Posts. From within a callback of a completion, and from ->batch_done, they go to the device
 * together when that batch is over: one doorbell for all. Should the device refuse them then, the
 * connection is lost, and each completes as flushed.
 */

/*
 * fab_post_send - bind windows, then Send, in one post
 *
 * sges: 1..max_send_sge; binds: up to FAB_MAX_WINS, may be NULL with bind_cnt 0.
 * Returns: 0: ops->sent(cookie) follows exactly once. -ENOTCONN, -ENOMEM
 * (queue full), -errno: nothing was posted, nothing is bound, nothing follows;
 * an error but these two means the connection must be given up.
 */
int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie);
/*
 * fab_answered - a message of the peer answers this Send
 *
 * So the peer has it, and all Sends before it: a connection delivers in order. An endpoint that is
 * told so asks for fewer acknowledgements. From ->received(), while the connection is up; the
 * Send may have completed, and another one must not have its cookie. ->sent() of it and of those
 * before it may run before this returns.
 */
void fab_answered(struct fab_ep *ep, uint64_t cookie);
/*
 * fab_mw_bind - bind one window, without a Send
 *
 * To see whether the device does it. Returns: as fab_post_send(); ops->sent(cookie) tells.
 */
int fab_mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie);
/*
 * fab_post_recv - give a buffer to the receive queue (after setup)
 *
 * Returns: 0: ops->received(cookie) follows; -errno: nothing follows.
 */
int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie);
/*
 * fab_mw_invalidate - take bound windows back, in one post
 *
 * mws: 1..FAB_MAX_WINS. The caller keeps the state of each window: invalidating
 * one that is not bound crashes rxe's kernel.
 * Returns: 0: ops->invalidated(cookie) follows once, for all of them; -errno: the connection must
 * be given up.
 */
int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie);

/* What the packets of a connection carry in their headers. */
struct fab_path {
	struct sockaddr_storage local,
		remote;                 /* AF_INET or AF_INET6; on InfiniBand those of IPoIB */
	uint32_t local_qpn, remote_qpn; /* 24 bits; 0: not known (iWARP has no such number) */
	uint32_t local_psn, remote_psn; /* packet sequence numbers it started with */
	uint32_t mtu;                   /* bytes of payload of a packet */
	uint64_t ack_ns;   /* a packet not acknowledged for so long is sent again; 0: not known */
	uint8_t ack_tries; /* ... so often */
};

/* Local ACK Timeout of a queue pair (IBA volume 1, 9.7.6.1.3): 5 bits; 0: endless. */
static inline uint64_t fab_ack_ns(uint8_t timeout)
{
	return timeout ? 4096ull << (timeout & 31) : 0;
}

/* Of the connection that is up. Returns: false: none is; *ret is untouched. */
bool fab_ep_path(const struct fab_ep *ep, struct fab_path *ret);

/* For logs: "rxe0 10.0.0.1:20049"; valid until the next call on this endpoint. */
const char *fab_ep_name(const struct fab_ep *ep);
/* After an error of fab_ep_resolve(), and during FAILED: one line that says more; or "". */
const char *fab_ep_why(const struct fab_ep *ep);

#endif
