/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to a server, as a lane makes it, and a few NULL calls of NFS on it: without a
 * session, and nothing of it stays at the server.
 *
 * Context: the thread of the reactor. `done` runs from there, once, never from inside a call.
 */
#ifndef RPCRDMAFS_PROBE_CONN_H
#define RPCRDMAFS_PROBE_CONN_H

#include <stdint.h>

#include "nfs4.h"
#include "reactor.h"

#define PROBE_CONN_CALLS 5u /* of which the quickest counts */

/* Does the server invalidate the window of a call when it replies? */
enum probe_inval {
	PROBE_INVAL_UNKNOWN,
	PROBE_INVAL_YES,
	PROBE_INVAL_NO,
	PROBE_INVAL_STATIC, /* there is no window, by memreg=static or for want of them */
};

/* All that was found out. */
struct probe_found {
	char peer[80]; /* the server's address and port */
	bool up;       /* there was a connection: all up to `calls` is known */
	struct rpcrdma_facts facts;
	char device[64];
	enum rpcrdma_memreg memreg;
	uint32_t send_max, recv_max; /* inline, in force */
	unsigned int calls;          /* that were answered */
	uint64_t rtt_ns;             /* of the quickest; if there is any */
	enum probe_inval inval;
};

struct probe_conn;

/*
 * conf: of a mount; what concerns data and silence is ours, and no step of connecting takes all of
 * the time that is left (ns). NULL with errno.
 */
struct probe_conn *probe_conn_new(struct reactor *r, const struct rpcrdma_conf *conf,
	uint64_t left_ns, void (*done)(void *ctx), void *ctx);
/* src may be NULL. False: it came to nothing at once, there is a failure, and no `done`. */
bool probe_conn_start(struct probe_conn *p, const struct sockaddr *src, const struct sockaddr *dst);
/* So many seconds are over: what is there by now decides, and `done` follows soon. */
void probe_conn_time_is_up(struct probe_conn *p, unsigned int seconds);
/* The user does not want to know any more; `done` follows. */
void probe_conn_interrupt(struct probe_conn *p);
/* When it is done: err 0: the server answers. */
const struct nfs4_failure *probe_conn_failure(const struct probe_conn *p);
const struct probe_found *probe_conn_found(const struct probe_conn *p);
/* When it is done, also from `done`. NULL is accepted. */
void probe_conn_free(struct probe_conn *p);

#endif
