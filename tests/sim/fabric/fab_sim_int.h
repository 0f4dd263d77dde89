/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the simulated fabric: the endpoint and its queues. */
#ifndef RPCRDMAFS_FAB_SIM_INT_H
#define RPCRDMAFS_FAB_SIM_INT_H

#include "fab_sim.h"
#include "list.h"

enum sim_state {
	SIM_IDLE,
	SIM_RESOLVING,
	SIM_RESOLVED,
	SIM_CONNECTING,
	SIM_UP,
	SIM_DRAINING,
};

enum sim_ev_kind {
	SIM_EV_EVENT,        /* ops->event */
	SIM_EV_ACCEPT,       /* the connect request reaches the server */
	SIM_EV_TO_SERVER,    /* a client's Send arrives */
	SIM_EV_SENT,         /* its completion */
	SIM_EV_TO_CLIENT,    /* a server's Send arrives */
	SIM_EV_RECV_FLUSHED, /* a receive comes back empty */
	SIM_EV_INVALIDATED,
	SIM_EV_CUT,    /* break the connection now */
	SIM_EV_CLOSED, /* tell the server */
};

/* Something that will happen; heap memory, on the endpoint's queue. */
struct sim_ev {
	struct list link;
	uint64_t at_ns;
	uint64_t seq;
	enum sim_ev_kind kind;
	struct fab_event event;
	enum fab_status status;
	uint64_t cookie;
	uint32_t inv_rkey;
	uint8_t *data;
	uint32_t len;
	struct sim_wr *wr;
	int err;
};

/* A work request of the send queue: a Send with its binds, or an invalidation. */
struct sim_wr {
	struct list link;
	uint64_t cookie;
	unsigned int slots;               /* of the send queue */
	struct fab_mw *inv[FAB_MAX_WINS]; /* LOCAL_INV of them */
	unsigned int inv_cnt;             /* 0: Send */
	struct fab_sge sges[8];
	unsigned int sge_cnt;
	uint8_t *copy; /* what was sent: the buffers must not change before the completion */
};

struct sim_recv {
	struct list link;
	uint8_t *addr;
	uint32_t len;
	const struct fab_mr *mr;
	uint64_t cookie;
};

struct fab_mr {
	struct list link;
	struct fab_ep *ep;
	uint8_t *addr;
	size_t len;
	unsigned int access;
	bool bind;
	bool dead; /* kept until the endpoint goes, to notice uses */
	uint32_t rkey;
	unsigned int bound; /* windows */
};

struct fab_mw {
	struct list link;
	struct fab_ep *ep;
	bool dead, bound, invalidating;
	bool trial; /* bound without a Send: no call's, not counted */
	uint32_t rkey;
	struct fab_mr *mr;
	uint8_t *addr;
	uint64_t len;
	unsigned int access;
};

struct fab_sim_conn {
	struct fab_ep *ep;
	const struct fab_sim_srv_ops *ops;
	void *ctx;
	uint8_t priv[256];
	size_t priv_len;
	uint32_t recv_size;
	unsigned int recvs;
	bool hostile;
	struct list waiting; /* sim_ev SIM_EV_TO_CLIENT that found no receive (rnr_waits) */
};

struct fab_ep {
	struct list world_link;
	uint64_t id;
	struct reactor *reactor;
	struct fab_conf conf;
	const struct fab_ep_ops *ops;
	void *ctx;
	enum sim_state state;
	struct fab_caps caps;
	bool have_caps, setup, doomed, new_device;
	struct sockaddr_storage dst;
	struct fab_qp_conf qp;
	uint8_t priv[256];
	size_t priv_len;
	struct fab_sim_conn *conn; /* NULL: none, or closed */

	struct list events;
	uint64_t ev_seq;
	struct reactor_timer timer;
	unsigned int in_callback;
	bool freed;

	struct list sq, rq; /* sim_wr, sim_recv outstanding */
	unsigned int sq_used, rq_used;
	uint64_t last_to_server_ns, last_sent_ns, last_to_client_ns;

	struct list mrs, mws;
	char name[80];
};

/* fab_sim.c */
struct fab_sim_stats *sim_stats(void); /* under sim_lock() */
void sim_lock(void);
void sim_unlock(void);
#define SIM_COUNT(field)                                                                           \
	do {                                                                                       \
		sim_lock();                                                                        \
		sim_stats()->field++;                                                              \
		sim_unlock();                                                                      \
	} while (0)
/*
 * Each fabric call that can fail starts with it. Returns: 0 or -errno to fail with.
 * ep may be NULL.
 */
int sim_call(struct fab_ep *ep);
void sim_world_add(struct fab_ep *ep);
void sim_world_del(struct fab_ep *ep);
void sim_keys_add(int keys, int windows);
void sim_objects_add(int n);
bool sim_find_listener(
	const struct sockaddr *dst, const struct fab_sim_srv_ops **ret_ops, void **ret_ctx);
/* -errno if this connect is to be refused by the settings, 0 if not. */
int sim_take_refusal(void);
uint32_t sim_new_key(void);

/* fab_sim_ep.c */
struct sim_ev *sim_ev_add(struct fab_ep *ep, enum sim_ev_kind kind, uint64_t at_ns);
void sim_ev_insert(struct fab_ep *ep, struct sim_ev *ev);
/* Ends whatever the endpoint is doing with `err`: DOWN or FAILED follows. */
void sim_ep_break(struct fab_ep *ep, int err);

/* fab_sim_mem.c */
bool sim_mr_check(const struct fab_ep *ep, const struct fab_mr *mr, const void *addr, uint64_t len,
	const char *what);
int sim_bind_check(const struct fab_ep *ep, const struct fab_bind *b);
void sim_bind(const struct fab_bind *b);
void sim_unbind(struct fab_mw *mw);
struct fab_mw *sim_find_window(struct fab_ep *ep, uint32_t rkey);
void sim_free_windows(struct fab_ep *ep);
void sim_kill_mrs(struct fab_ep *ep);
void sim_free_mrs(struct fab_ep *ep);

#endif
