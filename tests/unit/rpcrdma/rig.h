/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport on the fake fabric with virtual time, a small server behind it
 * and calls that remember how they ended.
 */
#ifndef RPCRDMAFS_RIG_H
#define RPCRDMAFS_RIG_H

#include "fake_fab.h"
#include "rpcrdma_int.h"

struct rig {
	struct reactor *r;
	struct rpcrdma_conf conf;
	uint32_t src; /* IPv4 address to connect from; 0: any */
	struct rpcrdma *x;
	struct stats stats;
	/* the client's callbacks */
	unsigned int up, down, failed, stopped, unblocked, rcalls;
	int err;
	char step[16];
	uint32_t rcall_xid;
	bool answer_rcalls;
	/* the server */
	bool silent;        /* takes calls and says nothing */
	bool no_inval;      /* plain Sends */
	uint32_t grant;     /* credits */
	uint8_t body[8192]; /* results behind the RPC reply header */
	size_t body_len;
	uint8_t data[65536];    /* goes into Write chunks, one after the other */
	size_t data_len;        /* into each ... */
	size_t data_len2;       /* ... but for the second, if not 0 */
	unsigned int calls;     /* seen */
	struct rpcrdma_hdr hdr; /* of the last */
	uint8_t msg[131072];    /* its message, chunks put in */
	size_t msg_len;
	size_t inline_len; /* bytes behind its header */
	uint32_t xids[512];
};

extern struct rig rig;

struct call {
	struct rpcrdma_req req;
	unsigned int done;
	unsigned int order; /* of completion, from 1 */
	enum rpcrdma_end end;
	uint8_t reply[8192];
	size_t reply_len;
	bool keep;                 /* do not put the request */
	unsigned int open_windows; /* of all calls, when it was done */
};

const struct rpcrdma_ops *rpcrdma_test_ops(void);
/* Before each test: defaults, nothing made. */
void rig_init(void);
/* Makes the transport and connects; true if it came up. */
bool rig_connect(void);
/* Expected errors are not to be seen. */
void rig_quiet(void);
/* The same; lines of LOG_LVL_WARN and worse are counted, the last one is kept. */
struct rig_log {
	unsigned int lines;
	char last[256];
};
struct rig_log *rig_log(void);
/* Lets `ns` of virtual time pass. */
void rig_run(uint64_t ns);
/* Stops, frees, checks that everything came back. */
void rig_fini(void);

/* Takes a request and encodes a call of `words` words; the rest is the test's. */
void call_init(struct call *c, unsigned int words);
int call_send(struct call *c);
/* call_init, call_send, no chunks. */
void call_start(struct call *c, bool soft);

/* Server side: the reply to the last call as the rig would send it. */
void rig_reply(uint32_t xid);
/* RDMA_ERROR */
void rig_error(uint32_t xid, uint32_t err);
/* A header of the server with empty lists, and `len` bytes behind it. */
void rig_send_hdr(struct rpcrdma_hdr *h, const void *body, size_t len, uint32_t inv_rkey);
/* The one key of the last call. */
uint32_t rig_key(void);
/* A call of the server. */
void rig_reverse_call(uint32_t xid);

void put_be32(uint8_t *p, uint32_t v);
uint32_t get_be32(const uint8_t *p);

#endif
