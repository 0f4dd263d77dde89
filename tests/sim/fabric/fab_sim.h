/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric of src/fabric/fab.h in memory: linked instead of the others, with
 * a server side for a responder in the same process, faults on request and a
 * judge that records what the client must not do.
 *
 * A connection lives on the reactor of its client's endpoint: the server's
 * callbacks run there too. Everything happens by timers, so it works with
 * virtual and with real time. What is shared (settings, counters, failures,
 * listeners) is under one mutex.
 *
 * Context: functions on a connection: callbacks of that connection, or the
 * thread of its reactor. All others: any thread.
 */
#ifndef RPCRDMAFS_FAB_SIM_H
#define RPCRDMAFS_FAB_SIM_H

#include "fab.h"

/* Settings; changed under the caller's care: before threads start, or with one thread. */
struct fab_sim_conf {
	struct fab_caps caps;
	uint64_t resolve_ns, connect_ns;
	uint64_t wire_ns;      /* one way */
	uint64_t sent_late_ns; /* Send completions come so much later than the ACK: after replies */
	int resolve_err;       /* -errno: each resolve fails so, at resolve_step */
	enum fab_step resolve_step;
	int refuse_err;          /* -errno: connects are refused ... */
	unsigned int refuse_cnt; /* ... so many times; 0: always */
	/* Connects are never answered: only the client's timer ends them. Any thread, any time. */
	_Atomic bool connect_silent;
	bool blackhole;   /* Sends vanish and complete only by flush */
	bool rnr_waits;   /* a Send to a client without receives waits (RNR retry 7) and is
			     no failure; false: it breaks the connection and is one */
	bool flush_first; /* flushed completions come before DOWN, not after it */
	uint8_t pad_priv; /* bytes of padding after the private data, as the CM does */
};

struct fab_sim_conf *fab_sim_conf(void);
/* Default settings, no listeners, no failures, counters 0. No endpoint may exist. */
void fab_sim_reset(void);

/* ---- judge ---- */

/* Records a failure: the test that runs fails at its end. */
void fab_sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
unsigned int fab_sim_failures(void);
/* The first of them, "" if none; valid until fab_sim_reset(). */
const char *fab_sim_failure(void);
/* Keys with which the peer could reach memory now: registrations and bound windows. */
unsigned int fab_sim_live_keys(void);
/* The bound windows among them. */
unsigned int fab_sim_live_windows(void);
/* Endpoints and registrations not freed. */
unsigned int fab_sim_live_objects(void);

struct fab_sim_stats {
	uint64_t sends, recvs, binds, local_invals, remote_invals;
	uint64_t rdma_reads, rdma_writes, connects, downs;
};

struct fab_sim_stats fab_sim_stats(void);

/* ---- faults ---- */

/*
 * Calls that can fail, counted over all endpoints: ep_new, resolve, setup,
 * connect, mr_reg, mw_alloc, mw_bind, post_send, post_recv, mw_invalidate.
 */
uint64_t fab_sim_calls(void);
/* The nth call from now (1: the next) fails with errno `err` (positive) and does nothing. */
void fab_sim_fail_call(uint64_t nth, int err);
/* After the nth call from now the connection (or the attempt) of its endpoint breaks. */
void fab_sim_cut_after(uint64_t nth);
/* Both are done with: false while one is still to come. */
bool fab_sim_fault_hit(void);
/* Breaks every connection and attempt; -ENODEV: the device is another one at the next resolve. */
void fab_sim_break_all(int err);

/* Messages of the server that are on their way to clients, or being handled there. Any thread. */
unsigned int fab_sim_undelivered(void);

/* ---- server ---- */

struct fab_sim_conn;

struct fab_sim_srv_ops {
	/*
	 * A connection is asked for. 0: taken (call fab_sim_conn_init()); -errno: refused.
	 * A taken one may still die before anything arrives: ->closed comes in any case.
	 */
	int (*accept)(void *ctx, struct fab_sim_conn *conn, const uint8_t *priv, size_t priv_len);
	/* A message took one of the receives. */
	void (*received)(void *conn_ctx, const uint8_t *msg, uint32_t len);
	/* The connection is gone, and conn with it when this returns. */
	void (*closed)(void *conn_ctx);
	/* For the judge, may be NULL: the client just posted this; this just reached the client. */
	void (*posted)(void *conn_ctx, const uint8_t *msg, uint32_t len);
	void (*delivered)(void *conn_ctx, const uint8_t *msg, uint32_t len);
};

/* addr NULL: every address nobody else listens on. Returns 0 or -EADDRINUSE. */
int fab_sim_listen(const struct sockaddr *addr, const struct fab_sim_srv_ops *ops, void *ctx);
void fab_sim_unlisten(void *ctx);

/* In ->accept: context of the callbacks, private data of the answer, receives of `recv_size`. */
void fab_sim_conn_init(struct fab_sim_conn *conn, void *conn_ctx, const void *priv, size_t priv_len,
	uint32_t recv_size, unsigned int recvs);
struct reactor *fab_sim_conn_reactor(struct fab_sim_conn *conn);
void fab_sim_conn_post_recvs(struct fab_sim_conn *conn, unsigned int cnt);
unsigned int fab_sim_conn_recvs(const struct fab_sim_conn *conn);
/* inv_rkey 0: a plain Send. What the client has to be able to take is checked on arrival. */
void fab_sim_conn_send(struct fab_sim_conn *conn, const void *msg, uint32_t len, uint32_t inv_rkey);
/*
 * RDMA Read and Write, done at once. What the client did not allow is a failure
 * (unless hostile) and breaks the connection: -EACCES.
 */
int fab_sim_conn_read(
	struct fab_sim_conn *conn, uint32_t rkey, uint64_t addr, void *dst, size_t len);
int fab_sim_conn_write(
	struct fab_sim_conn *conn, uint32_t rkey, uint64_t addr, const void *src, size_t len);
/* The server misbehaves on this connection: what it causes is no failure of the client. */
void fab_sim_conn_set_hostile(struct fab_sim_conn *conn, bool hostile);
/* The server ends the connection; 0: in order. */
void fab_sim_conn_close(struct fab_sim_conn *conn, int err);
/* The same, behind what was sent so far. */
void fab_sim_conn_close_later(struct fab_sim_conn *conn, int err);

#endif
