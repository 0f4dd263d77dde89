/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric of src/fabric/fab.h by nothing: memory is not registered, no
 * payload moves, and each Send is answered by null_srv_answer() without delay.
 * What the client costs by itself is what is left: percall.c measures its calls
 * by hand, null_daemon.c the whole program, whose reactor polls the fabric as
 * it polls a completion queue.
 *
 * The state is open to percall.c, which measures these functions alone.
 */
#ifndef RPCRDMAFS_NULL_FAB_H
#define RPCRDMAFS_NULL_FAB_H

#include "fab.h"
#include "list.h"
#include "rpcrdma_prot.h"

#define NULL_FAB_SENDS 1024u /* in flight */
#define NULL_FAB_RECVS 4096u

struct fab_mr {
	struct list link;
	uint32_t rkey;
};

struct fab_mw {
	struct list link;
	uint32_t rkey;
};

struct null_send {
	struct fab_sge sges[4]; /* transport header and what follows it; the client's buffers */
	unsigned int sge_cnt;
	uint64_t cookie;
	uint32_t rkey; /* of the window that its Send bound, 0: none */
};

struct null_recv {
	uint8_t *mem;
	uint64_t cookie;
	uint32_t len; /* of the message that is in it */
};

struct fab_ep {
	struct reactor *reactor;
	struct reactor_spin spin;
	const struct fab_ep_ops *ops;
	void *ctx;
	struct fab_caps caps;
	struct list mrs, mws;
	bool resolved, connected, leaving; /* events that are due */
	bool bound, unbound;               /* completions of the trial of windows that are due */
	uint64_t trial;                    /* their cookie */
	bool active;                       /* not IDLE */
	bool known;                        /* the device was resolved once */
	uint8_t priv[RPCRDMA_PRIV_LEN];
	uint32_t next_key;
	unsigned int busy;
	struct null_send sends[NULL_FAB_SENDS];
	unsigned int send_head, send_tail;
	struct null_recv recvs[NULL_FAB_RECVS];
	unsigned int recv_head, recv_tail;
};

/* Windows on the device; before the endpoint is made. */
extern bool null_fab_mw;
/* The endpoint that was made last. */
extern struct fab_ep *null_fab_last;

/* Time spent in null_srv_answer() by the reactors' polls, all lanes together, and its calls. */
struct null_fab_spent {
	_Atomic uint64_t server_ns, calls;
};
extern struct null_fab_spent *null_fab_spent;

/* Sends that wait for an answer. */
static inline unsigned int null_fab_sends(const struct fab_ep *ep)
{
	return ep->send_tail - ep->send_head;
}

/* Fills the receives of all Sends that wait. Without it null_fab_deliver() has nothing. */
void null_fab_answer(struct fab_ep *ep);
/* Completes the Sends that wait now, and their receives. */
void null_fab_deliver(struct fab_ep *ep);

#endif
