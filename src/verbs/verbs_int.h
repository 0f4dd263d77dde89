/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric on librdmacm and libibverbs: what its files share.
 *
 *   verbs.c      the table (fab_impl.h)
 *   verbs_ep.c   the endpoint's life: states, loss, draining, teardown
 *   verbs_cm.c   librdmacm: address, route, connection, its events
 *   verbs_dev.c  the device: our own context, protection domain, capabilities
 *   verbs_qp.c   queue pair
 *   verbs_post.c posts, held back and chained while completions are delivered
 *   verbs_cq.c   completion queue: polling, arming, dispatch
 *   verbs_mem.c  registrations and windows
 *   verbs_lib.c  both libraries, loaded at run time: ibv.open_device() is ibv_open_device()
 *   verbs_probe.c: is there a device, before librdmacm is asked
 *
 * librdmacm keeps one context for each device and shares it among all threads
 * of the process. An endpoint opens a context of its own instead: its
 * asynchronous events are then nobody else's, lanes share no lock in the
 * provider, and the device can be let go when it is removed. The price is that
 * librdmacm does not know the queue pair: verbs_qp.c moves it from state to state.
 *
 * I1 (work request): what is posted, or held to be, has a record until its owner was told once;
 *    DRAINED and FAILED come after the last of them, with the queue pair and its windows gone.
 *    Asserted: verbs_qp_wr_put(), finish()
 *    Test: verbs_ep::what_is_never_flushed_is_told_before_the_end
 *
 * Context: the lane that owns the endpoint.
 */
#ifndef RPCRDMAFS_VERBS_INT_H
#define RPCRDMAFS_VERBS_INT_H

#include "fab_impl.h"
#include "list.h"
#include "reactor.h"
#include "verbs_lib.h"

#define VERBS_DRAIN_NS    (3 * NSEC_PER_SEC) /* flushed work requests may take this long */
#define VERBS_POLL_BATCH  32                 /* completions taken at once */
#define VERBS_CHAIN_MAX   (FAB_MAX_WINS + 1) /* binds and Send of one call */
#define VERBS_HELD_MAX    64                 /* work requests that one post takes */
#define VERBS_SEND_SGES   32                 /* buffers of a Send at most */
#define VERBS_SPIN_FLIGHT 8  /* with more calls in flight completions come by themselves */
#define VERBS_PRIV_MAX    56 /* private data of a connection request */

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
struct verbs_wr {
	uint64_t cookie;
	uint32_t next_free;
	uint16_t slots; /* of the send queue, freed by its completion */
	uint8_t kind;
	bool broke; /* what comes before it in its chain broke the connection */
};

/* The device. Stays open over reconnects; verbs is NULL when closed. */
struct verbs_dev {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct reactor_fd async;
	/* Bound to the device to hear of its removal even while there is no connection. */
	struct rdma_cm_id *watch;
	struct list mrs; /* struct verbs_mr; outlives the device as a list of shells */
	struct fab_caps caps;
	bool is_rxe;
	bool gone;    /* to be closed as soon as nothing is outstanding */
	bool removed; /* the kernel said so: librdmacm's context is of no use either */
};

struct verbs_mr {
	struct fab_mr base;
	struct list link;
	struct ibv_mr *mr; /* NULL: the device is gone */
	uint32_t lkey, rkey;
};

struct verbs_mw {
	struct fab_mw base;
	struct list link;
	struct ibv_mw *mw;
	uint8_t stride; /* odd: from one key to the next, all 256 before one comes again */
};

/* The work requests that wait to be posted, in order (verbs_post.c). */
struct verbs_chain {
	bool held; /* until verbs_post_release() */
	unsigned int send_cnt, sge_cnt, recv_cnt;
	struct ibv_send_wr sends[VERBS_HELD_MAX];
	struct ibv_sge sges[VERBS_HELD_MAX];
	struct ibv_recv_wr recvs[VERBS_HELD_MAX];
	struct ibv_sge recv_sges[VERBS_HELD_MAX];
};

/* One endpoint. Owner: its lane. */
struct verbs_ep {
	struct fab_ep base;
	struct reactor *r;
	struct fab_conf conf;
	const struct fab_ep_ops *ops;
	void *ctx;

	enum ep_state state;    /* by verbs_ep_set_state() only */
	enum fab_step step;     /* of the attempt that runs */
	struct fab_event final; /* DRAINED or FAILED: sent when draining ends */
	/* CONNECTING: the attempt took too long. DRAINING: time to finish. */
	struct reactor_timer timer;
	char name[128];
	char why[224]; /* of verbs_cm_resolve(), as fab_ep_why() */

	struct rdma_event_channel *ch;
	struct reactor_fd ch_fd;
	struct rdma_cm_id *id;
	bool cm_connected; /* rdma_connect() was called: the peer is to be told of the end */
	uint8_t priv[VERBS_PRIV_MAX];
	uint8_t priv_len;

	struct verbs_dev dev;

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
	struct verbs_wr *wrs;
	uint32_t wr_cnt, wr_free, wr_used;
	uint32_t sq_used;
	struct list mws;
	struct verbs_chain chain;
};

static inline struct verbs_mr *verbs_mr_of(const struct fab_mr *mr)
{
	return container_of(mr, struct verbs_mr, base);
}

static inline struct verbs_mw *verbs_mw_of(const struct fab_mw *mw)
{
	return container_of(mw, struct verbs_mw, base);
}

/* ---- as fab.h says of the functions of the same names; of its own objects ---- */

struct verbs_ep *verbs_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx);
void verbs_ep_free(struct verbs_ep *ep);
void verbs_ep_disconnect(struct verbs_ep *ep);
bool verbs_ep_path(const struct verbs_ep *ep, struct fab_path *ret);
int verbs_cm_resolve(struct verbs_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
int verbs_cm_connect(struct verbs_ep *ep, const void *priv, size_t priv_len);
int verbs_qp_setup(struct verbs_ep *ep, const struct fab_qp_conf *conf);
struct verbs_mr *verbs_mem_reg(
	struct verbs_ep *ep, void *addr, size_t len, unsigned int access, bool bind);
void verbs_mem_dereg(struct verbs_mr *mr);
struct verbs_mw *verbs_mem_mw_alloc(struct verbs_ep *ep);
uint32_t verbs_mem_mw_next_rkey(const struct verbs_mw *mw);
int verbs_post_send(struct verbs_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie);
int verbs_post_recv(
	struct verbs_ep *ep, void *addr, uint32_t len, const struct verbs_mr *mr, uint64_t cookie);
int verbs_post_bind(struct verbs_ep *ep, const struct fab_bind *bind, uint64_t cookie);
int verbs_post_invalidate(
	struct verbs_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie);

/* verbs_ep.c */
/* The only place that changes ep->state. */
void verbs_ep_set_state(struct verbs_ep *ep, enum ep_state to);
void verbs_ep_emit(struct verbs_ep *ep, const struct fab_event *ev);
/* The connection broke, err as in DOWN: reports it once. Before UP: the attempt failed. */
void verbs_ep_lost(struct verbs_ep *ep, int err);
/* The attempt that runs failed. */
void verbs_ep_fail(struct verbs_ep *ep, enum fab_step step, int err);
/* After completions were dispatched: ends the drain when it was the last one. */
void verbs_ep_drain_check(struct verbs_ep *ep);
void verbs_ep_set_name(struct verbs_ep *ep, const struct sockaddr *dst);

/* verbs_cm.c */
void verbs_cm_close(struct verbs_ep *ep);
void verbs_cm_disconnect(struct verbs_ep *ep);
void verbs_cm_destroy_id(struct verbs_ep *ep);
/* An id bound to the device of ep->id; NULL: none to be had. */
struct rdma_cm_id *verbs_cm_watch(struct verbs_ep *ep);

/* verbs_probe.c */
/*
 * Returns: -ENODEV: there is no device, or why says in words what stands in its way; 0: librdmacm
 * is to be asked.
 */
int verbs_probe(char *why, size_t why_len);
extern const char *verbs_probe_root; /* where /sys and /dev are; tests have their own */

/* verbs_dev.c */
/* The device of ep->id: opened unless it is open already. */
int verbs_dev_open(struct verbs_ep *ep, bool *ret_new);
/* Also deregisters all memory. The shells of the fab_mr stay. */
void verbs_dev_close(struct verbs_ep *ep);
/* The device is known to be gone; it is closed as soon as nothing is outstanding. */
void verbs_dev_gone(struct verbs_ep *ep);

/* verbs_mem.c */
void verbs_mem_release_mr(struct verbs_mr *mr); /* at the device, the shell stays */
void verbs_mem_free_mrs(struct verbs_ep *ep);
void verbs_mem_free_mws(struct verbs_ep *ep);

/* verbs_qp.c */
int verbs_qp_to_rts(struct verbs_ep *ep);
void verbs_qp_to_err(struct verbs_ep *ep);
void verbs_qp_destroy(struct verbs_ep *ep);
/* A record of a post that takes `slots` of the send queue; WR_NONE: as many are out as may be. */
uint32_t verbs_qp_wr_get(
	struct verbs_ep *ep, enum wr_kind kind, unsigned int slots, uint64_t cookie);
/* Gives the work request back to the free list; its callback is the caller's. */
struct verbs_wr verbs_qp_wr_put(struct verbs_ep *ep, uint32_t idx);

/* verbs_post.c */
/* The chain goes to the device with verbs_post_release(), or when it gets long. */
void verbs_post_hold(struct verbs_ep *ep);
/* If the device does not take it the connection is lost, and its owners hear so. */
void verbs_post_release(struct verbs_ep *ep);

/* verbs_cq.c */
int verbs_cq_create(struct verbs_ep *ep, uint32_t cqe);
void verbs_cq_destroy(struct verbs_ep *ep);
/* Tells a work request's owner, and forgets it. */
void verbs_cq_deliver(
	struct verbs_ep *ep, uint32_t idx, enum fab_status status, uint32_t len, uint32_t inv_rkey);
/* One batch. Returns: true if there was anything. */
bool verbs_cq_poll(struct verbs_ep *ep);
/* Tells the owners of all that is still outstanding that it was flushed. */
void verbs_cq_flush_rest(struct verbs_ep *ep);

#endif
