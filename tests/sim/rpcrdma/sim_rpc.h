/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport (src/rpcrdma) and a server in one virtual world, for scenario
 * tests: calls of the server's test program with everything about their
 * replies checked, and an end that checks that everything came back.
 */
#ifndef RPCRDMAFS_SIM_RPC_H
#define RPCRDMAFS_SIM_RPC_H

#include "fab_sim.h"
#include "nfsd_sim.h"
#include "rpcrdma.h"

#define SIM_SEC  NSEC_PER_SEC
#define SIM_MSEC NSEC_PER_MSEC

struct sim_rpc {
	struct reactor *r;
	struct nfsd_sim *srv;
	struct rpcrdma *x;
	struct rpcrdma_conf conf;
	struct stats st;
	/* callbacks seen */
	unsigned int up, down, failed, stopped, unblocked, reverse;
	int err;
	const char *step;
	/* calls */
	unsigned int started, done, wrong;
	unsigned int ends[8]; /* by enum rpcrdma_end */
	bool reverse_answers; /* answers reverse calls as nothing implemented */
	bool refuse_wrong;    /* a reply with wrong contents is expected here: only counted */
};

enum sim_call_kind {
	SIM_CALL_NULL,
	SIM_CALL_ECHO,      /* a: bytes, inline */
	SIM_CALL_LONG,      /* a: bytes, built in a data buffer; reply by Reply chunk if need be */
	SIM_CALL_SINK,      /* a: bytes of DDP argument, b: bytes that follow it */
	SIM_CALL_SINK_LONG, /* the same with a long call: b bytes follow */
	SIM_CALL_SOURCE,    /* a: bytes; n results of it (DDP) */
	SIM_CALL_BIG,       /* a: bytes, Reply chunk */
};

struct sim_call {
	struct rpcrdma_req req; /* first */
	struct sim_rpc *w;
	enum sim_call_kind kind;
	uint32_t a, b, n;
	uint32_t room; /* SOURCE, BIG: sink room, 0: as large as needed */
	bool soft;
	bool busy, good;
	unsigned int done_cnt;
	enum rpcrdma_end end;
	uint32_t reply_words[8]; /* of the reply after the RPC header */
	struct rpcrdma_buf *bufs[RPCRDMA_MAX_RESULTS + 2];
	unsigned int buf_cnt;
	void (*then)(struct sim_call *c); /* after it is done and everything is put back */
};

/* Small and quick settings: 8 data buffers of 64 KiB, 16 credits. */
void sim_rpc_conf(struct rpcrdma_conf *conf);
/* Resets the fabric; conf, sconf may be NULL. Not connected yet. */
void sim_rpc_open(
	struct sim_rpc *w, const struct rpcrdma_conf *conf, const struct nfsd_sim_conf *sconf);
/* Makes the transport only (fabric and server are there): 0 or -errno. */
int sim_rpc_new(struct sim_rpc *w);
int sim_rpc_connect(struct sim_rpc *w);
/* Connects and runs until it is up or failed; true: up. */
bool sim_rpc_up(struct sim_rpc *w);
/* Turns the reactor until `cnt` calls are done, or `ns` of virtual time are over. */
bool sim_rpc_wait(struct sim_rpc *w, unsigned int cnt, uint64_t ns);
void sim_rpc_run(struct sim_rpc *w, uint64_t ns);
/* Starts a call; 0 or what kept it from starting (-EAGAIN: no request or buffer). */
int sim_rpc_call(struct sim_rpc *w, struct sim_call *c);
/* Starts it and waits for it: true if it ended with a good reply. */
bool sim_rpc_do(struct sim_rpc *w, struct sim_call *c);
/*
 * Stops, frees, and checks: everything answered exactly once, all buffers and requests back, no
 * key alive, nothing recorded. Returns NULL or what is wrong.
 */
const char *sim_rpc_close(struct sim_rpc *w);
/* The same without a stop (after ->failed). */
const char *sim_rpc_close_failed(struct sim_rpc *w);

#define SIM_RPC_CLOSE(w)                                                                           \
	do {                                                                                       \
		const char *wrong_ = sim_rpc_close(w);                                             \
		cr_assert(wrong_ == NULL, "%s", wrong_);                                           \
	} while (0)

#endif
