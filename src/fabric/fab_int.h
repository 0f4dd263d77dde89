/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the fabric share.
 *
 *   fab_ep.c   the endpoint's life: states, loss, draining, teardown
 *   fab_cm.c   librdmacm: address, route, connection, its events
 *   fab_dev.c  the device: our own context, protection domain, capabilities
 *   fab_qp.c   queue pair
 *   fab_post.c posts, held back and chained while completions are delivered
 *   fab_cq.c   completion queue: polling, arming, dispatch
 *   fab_mem.c  registrations and windows
 *
 * librdmacm keeps one context for each device and shares it among all threads
 * of the process. An endpoint opens a context of its own instead: its
 * asynchronous events are then nobody else's, lanes share no lock in the
 * provider, and the device can be let go when it is removed. The price is that
 * librdmacm does not know the queue pair: fab_qp.c moves it from state to state.
 *
 * I1 (work request): what is posted, or held to be, has a record until its owner was told once;
 *    DRAINED and FAILED come after the last of them, with the queue pair and its windows gone.
 *    Asserted: fab_qp_wr_put(), finish()
 *    Test: fab_ep::what_is_never_flushed_is_told_before_the_end
 *
 * Context: the lane that owns the endpoint.
 */
#ifndef RPCRDMAFS_FAB_INT_H
#define RPCRDMAFS_FAB_INT_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "fab.h"
#include "list.h"
#include "reactor.h"

#define FAB_DRAIN_NS    (3 * NSEC_PER_SEC) /* flushed work requests may take this long */
#define FAB_POLL_BATCH  32                 /* completions taken at once */
#define FAB_CHAIN_MAX   (FAB_MAX_WINS + 1) /* binds and Send of one call */
#define FAB_HELD_MAX    64                 /* work requests that one post takes */
#define FAB_SEND_SGES   32                 /* buffers of a Send at most */
#define FAB_SPIN_FLIGHT 8  /* with more calls in flight completions come by themselves */
#define FAB_PRIV_MAX    56 /* private data of a connection request */

enum ep_state {
	EP_IDLE,
	EP_RESOLVING,
	EP_RESOLVED,
	EP_CONNECTING,
	EP_UP,
	EP_DRAINING, /* the final event follows once nothing is outstanding */
};

/* Kind of a work request: upper half of its wr_id, the lower one is an index. */
enum wr_kind {
	WR_FREE,
	WR_SEND,
	WR_RECV,
	WR_INV,
	/* In wr_id only; the index is that of what ends the chain: */
	WR_BIND,     /* ... its Send */
	WR_INV_MORE, /* ... the last invalidation */
};

#define WR_ID(kind, idx) ((uint64_t)(kind) << 32 | (idx))
#define WR_NONE          UINT32_MAX

/* A posted work request that owes its owner a callback. */
struct fab_wr {
	uint64_t cookie;
	uint32_t next_free;
	uint16_t slots; /* of the send queue, freed by its completion */
	uint8_t kind;
	bool broke; /* what comes before it in its chain broke the connection */
};

/* The device. Stays open over reconnects; verbs is NULL when closed. */
struct fab_dev {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct reactor_fd async;
	/* Bound to the device to hear of its removal even while there is no connection. */
	struct rdma_cm_id *watch;
	struct list mrs; /* struct fab_mr; outlives the device as a list of shells */
	struct fab_caps caps;
	bool is_rxe;
	bool gone;    /* to be closed as soon as nothing is outstanding */
	bool removed; /* the kernel said so: librdmacm's context is of no use either */
};

struct fab_mr {
	struct list link;
	struct ibv_mr *mr; /* NULL: the device is gone */
	uint32_t lkey, rkey;
};

struct fab_mw {
	struct list link;
	struct ibv_mw *mw;
	uint8_t stride; /* odd: from one key to the next, all 256 before one comes again */
};

/* What waits to be posted, in order (fab_post.c). */
struct fab_chain {
	bool held; /* until fab_post_release() */
	unsigned int send_cnt, sge_cnt, recv_cnt;
	struct ibv_send_wr sends[FAB_HELD_MAX];
	struct ibv_sge sges[FAB_HELD_MAX];
	struct ibv_recv_wr recvs[FAB_HELD_MAX];
	struct ibv_sge recv_sges[FAB_HELD_MAX];
};

/* One endpoint. Owner: its lane. */
struct fab_ep {
	struct reactor *r;
	struct fab_conf conf;
	const struct fab_ep_ops *ops;
	void *ctx;

	enum ep_state state;    /* by fab_ep_set_state() only */
	enum fab_step step;     /* of the attempt that runs */
	struct fab_event final; /* DRAINED or FAILED: sent when draining ends */
	/* CONNECTING: the attempt took too long. DRAINING: time to finish. */
	struct reactor_timer timer;
	char name[128];

	struct rdma_event_channel *ch;
	struct reactor_fd ch_fd;
	struct rdma_cm_id *id;
	bool cm_connected; /* rdma_connect() was called: the peer is to be told of the end */
	uint8_t priv[FAB_PRIV_MAX];
	uint8_t priv_len;

	struct fab_dev dev;

	struct ibv_comp_channel *comp;
	struct reactor_fd comp_fd;
	struct reactor_spin spin;
	struct ibv_cq *cq;
	bool armed;
	bool delivering;      /* completions are being delivered */
	unsigned int unacked; /* events of the completion queue */
	unsigned int busy;

	struct ibv_qp *qp;
	struct fab_qp_conf qp_conf;
	struct fab_path path; /* the numbers; addresses are the CM's */
	struct fab_wr *wrs;
	uint32_t wr_cnt, wr_free, wr_used;
	uint32_t sq_used;
	struct list mws;
	struct fab_chain chain;
};

/* fab_ep.c */
/* The only place that changes ep->state. */
void fab_ep_set_state(struct fab_ep *ep, enum ep_state to);
void fab_ep_emit(struct fab_ep *ep, const struct fab_event *ev);
/* The connection broke, err as in DOWN: reports it once. Before UP: the attempt failed. */
void fab_ep_lost(struct fab_ep *ep, int err);
/* The attempt that runs failed. */
void fab_ep_fail(struct fab_ep *ep, enum fab_step step, int err);
/* After completions were dispatched: ends the drain when it was the last one. */
void fab_ep_drain_check(struct fab_ep *ep);
void fab_ep_set_name(struct fab_ep *ep, const struct sockaddr *dst);

/* fab_cm.c */
void fab_cm_close(struct fab_ep *ep);
void fab_cm_disconnect(struct fab_ep *ep);
void fab_cm_destroy_id(struct fab_ep *ep);
/* An id bound to the device of ep->id; NULL: none to be had. */
struct rdma_cm_id *fab_cm_watch(struct fab_ep *ep);

/* fab_dev.c */
/* The device of ep->id: opened unless it is open already. */
int fab_dev_open(struct fab_ep *ep, bool *ret_new);
/* Also deregisters all memory. The shells of the fab_mr stay. */
void fab_dev_close(struct fab_ep *ep);
/* What is known to be gone; closed as soon as nothing is outstanding. */
void fab_dev_gone(struct fab_ep *ep);

/* fab_mem.c */
void fab_mem_release_mr(struct fab_mr *mr); /* at the device, the shell stays */
void fab_mem_free_mrs(struct fab_ep *ep);
void fab_mem_free_mws(struct fab_ep *ep);

/* fab_qp.c */
int fab_qp_to_rts(struct fab_ep *ep);
void fab_qp_to_err(struct fab_ep *ep);
void fab_qp_destroy(struct fab_ep *ep);
/* A record of a post that takes `slots` of the send queue; WR_NONE: as many are out as may be. */
uint32_t fab_qp_wr_get(struct fab_ep *ep, enum wr_kind kind, unsigned int slots, uint64_t cookie);
/* Gives the work request back to the free list; its callback is the caller's. */
struct fab_wr fab_qp_wr_put(struct fab_ep *ep, uint32_t idx);

/* fab_post.c */
/* The chain goes to the device with fab_post_release(), or when it gets long. */
void fab_post_hold(struct fab_ep *ep);
/* If the device does not take it the connection is lost, and its owners hear so. */
void fab_post_release(struct fab_ep *ep);

/* fab_cq.c */
int fab_cq_create(struct fab_ep *ep, uint32_t cqe);
void fab_cq_destroy(struct fab_ep *ep);
/* Tells a work request's owner, and forgets it. */
void fab_cq_deliver(
	struct fab_ep *ep, uint32_t idx, enum fab_status status, uint32_t len, uint32_t inv_rkey);
/* One batch. Returns: true if there was anything. */
bool fab_cq_poll(struct fab_ep *ep);
/* Tells the owners of all that is still outstanding that it was flushed. */
void fab_cq_flush_rest(struct fab_ep *ep);

#endif
