/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this room share. One struct rpcrdma is a lane's transport;
 * its parts are grouped by the file that writes them.
 *
 * Who owns a request:
 *   FREE    the pool
 *   HELD    the user, from rpcrdma_req_get() or ->done
 *   QUEUED  the transport, waiting for a credit, a window or the connection
 *   FLIGHT  the transport and the fabric: `pending` says what is still to come
 *   ENDED   the transport, about to run ->done
 *
 * I2 (request): it is its owner's alone. One that rpcrdma_send() took comes back once: the first
 *    end that is decided counts, and its XID finds it no more when ->done runs.
 *    Asserted: rpcrdma_req_set_state(), rpcrdma_req_put(), rpcrdma_send(), deliver()
 *    Test: rpcrdma_req::comes_back_once_whatever_ends_it
 * I3 (flight): a request leaves FLIGHT with nothing pending: by completions, or because DRAINED
 *    says that none follows (I1). Before that its message and its buffers are not used again.
 *    Asserted: rpcrdma_req_cleared(), finish(), deliver()
 *    Test: rpcrdma_send::a_request_is_not_finished_before_its_send_completed
 *
 * The others, where they hold: I4 and I6 rpcrdma_mem.c, I5 rpcrdma_win.c, I7 rpcrdma_conn.c; all
 * of them in docs/ARCHITECTURE.md, "Ownership".
 *
 * Context: lane.
 */
#ifndef RPCRDMAFS_RPCRDMA_INT_H
#define RPCRDMAFS_RPCRDMA_INT_H

#include "fab.h"
#include "rpcrdma.h"
#include "rpcrdma_chunk.h"
#include "rpcrdma_credit.h"
#include "roce_frame.h"

#define RPCRDMA_REVERSE_CREDITS 8u  /* backchannel calls the server may have outstanding */
#define RPCRDMA_REVERSE_RECVS   16u /* receives beyond one for each forward credit */
#define RPCRDMA_REVERSE_SENDS   8u
#define RPCRDMA_RECV_ARMOUR     16384u /* a receive is at least this long, whatever was offered */
/* A call that was on so many connections when they were lost is sent only by itself ... */
#define RPCRDMA_SUSPECT_LOSSES 2u
/*
 * ... and ends when it alone lost so many that had answered something else. A link that breaks by
 * itself after every few calls takes three of them now and then, and no call is to end for that.
 */
#define RPCRDMA_ALONE_LOSSES 10u
/* A connection that answers others is given so many timeo to answer a call. */
#define RPCRDMA_SLOW_TIMEOS 5u
/* Of one call: args, long call, results or a Reply chunk. */
#define RPCRDMA_MAX_WINS (RPCRDMA_MAX_ARGS + 1u + RPCRDMA_MAX_RESULTS)
#define RPCRDMA_SEND_HDR 2304u /* room before a request's head: zeros, then the header */

/* req->pending */
enum {
	RPCRDMA_PENDING_SEND = 1 << 0,  /* the Send has not completed */
	RPCRDMA_PENDING_REPLY = 1 << 1, /* no reply yet */
	RPCRDMA_PENDING_INV = 1 << 2,   /* a window may still be reachable */
};

#define RPCRDMA_CSTATES(X)                                                                         \
	X(IDLE, "never connected, or between attempts")                                            \
	X(RESOLVING, "address")                                                                    \
	X(CONNECTING, "queue pair, receives, windows are there; waits for the peer, tries one")    \
	X(UP, "calls flow")                                                                        \
	X(DRAINING, "given up; waits for the last completion")                                     \
	X(BACKOFF, "waits before it tries again")                                                  \
	X(FAILED, "the first connection failed")                                                   \
	X(STOPPED, "rpcrdma_stop() is complete")

enum rpcrdma_cstate {
#define X(name, meaning) RPCRDMA_C_##name,
	RPCRDMA_CSTATES(X)
#undef X
};

/* Have this device's windows been tried (rpcrdma_trial.c)? */
enum rpcrdma_trial {
	RPCRDMA_T_DUE,
	RPCRDMA_T_BINDING,
	RPCRDMA_T_BOUND,
	RPCRDMA_T_INVALIDATING,
	RPCRDMA_T_PASSED,
	RPCRDMA_T_FAILED, /* none are used on this device */
};

enum rpcrdma_reqstate {
	RPCRDMA_R_FREE,
	RPCRDMA_R_HELD,
	RPCRDMA_R_QUEUED,
	RPCRDMA_R_FLIGHT,
	RPCRDMA_R_ENDED,
};

enum rpcrdma_winstate {
	RPCRDMA_W_FREE,  /* not reachable; in win_free */
	RPCRDMA_W_BOUND, /* the peer may use it */
	RPCRDMA_W_INVALIDATING,
};

#define RPCRDMA_HEAD_MIN 2048u /* the longest call without data: a RENAME of long names */
#define RPCRDMA_COPIES   2u

struct rpcrdma_bufpriv {
	struct fab_mr *src; /* windows: the only one, local; static: the peer may read */
	struct fab_mr *dst; /* static: the peer may write */
	bool taken;
	unsigned int calls; /* that name it, from rpcrdma_send() to ->done */
};

/* A type-2 window of this connection. */
struct rpcrdma_win {
	struct list link; /* win_free */
	struct fab_mw *mw;
	enum rpcrdma_winstate state; /* by rpcrdma_win_set_state() only */
	uint32_t rkey;               /* BOUND, INVALIDATING */
	struct rpcrdma_reqpriv *owner;
};

/* A receive buffer. */
struct rpcrdma_rep {
	uint8_t *mem;
	bool posted;
};

/* Memory of one buffer that a call exposes in one direction. */
struct rpcrdma_expo {
	struct rpcrdma_buf *buf;
	unsigned int access; /* FAB_REMOTE_READ or FAB_REMOTE_WRITE */
	uint8_t *lo, *hi;
	uint32_t rkey; /* set when keys are known */
};

struct rpcrdma_reqpriv {
	struct rpcrdma *x;
	struct rpcrdma_req *req; /* NULL: FREE */
	struct list free_link;
	struct rpcrdma_reqpriv *hash_next;
	uint32_t idx;
	uint8_t *head;               /* in sendmem; RPCRDMA_SEND_HDR bytes lie before it */
	enum rpcrdma_reqstate state; /* by rpcrdma_req_set_state() only */
	bool is_probe;
	bool waited;               /* counted as a credit wait */
	bool sent_once;            /* the next post is a retransmission */
	bool ended;                /* req->end is decided; pending bits keep it */
	unsigned int losses;       /* connections that were lost while it waited for its reply */
	unsigned int alone_losses; /* ... with nothing else on them */
	bool timed_out;            /* the connection is replaced for it */
	struct rpcrdma_plan plan;
	uint64_t inbound;    /* as rpcrdma_chunk_inbound() says of the plan */
	uint32_t limits_seq; /* of the limits the plan was made with */
	struct rpcrdma_win *wins[RPCRDMA_MAX_WINS];
	unsigned int win_cnt;
	bool invalidating;       /* those not invalidated by the reply are on their way */
	struct rpcrdma_rep *rep; /* holds the reply */
	bool misplaced;          /* it is to: the server wrote it into the first Write chunk */
	uint64_t soft_deadline_ns;
};

/* How the messages of this transport get into the capture (rpcrdma_tap.c). */
struct rpcrdma_tap {
	struct capture_batch *batch; /* with the first message */
	uint32_t run;                /* of the capture ... */
	uint64_t generation;         /* ... and connection that the flows are of */
	struct roce_flow out, in;
	uint8_t peer_priv[RPCRDMA_PRIV_LEN];
	uint8_t peer_priv_len;
};

struct rpcrdma_fab {
	enum fab_kind kind; /* of the endpoint */
	bool both;          /* this attempt was begun with the other one */
	bool device;        /* a device was connected with */
};

/* When connections came and went. */
struct rpcrdma_seen {
	uint64_t up_ns;   /* this one was established */
	uint64_t loss_ns; /* a loss was logged last; 0: none was */
	bool loss_logged; /* the last one was: that there is a connection again is, too */
};

struct rpcrdma {
	struct reactor *reactor;
	struct rpcrdma_conf conf;
	const struct rpcrdma_ops *ops;
	void *ctx;
	struct stats *stats;
	struct fab_ep *ep;
	struct rpcrdma_fab fab; /* rpcrdma_fabric.c */
	uint64_t rng;

	/* rpcrdma_conn.c */
	enum rpcrdma_cstate state;
	char detail[320]; /* why there is no device or no connection, for the user */
	bool ever_up;     /* ->up ran once: failures are retried from now on */
	bool was_up;      /* this connection was up: ->down is due */
	bool reached;     /* the server accepted: another attempt is worth it though none was up */
	bool good;        /* this connection brought a reply: reconnect at once */
	bool stopping;
	bool in_batch;       /* completions are being delivered: posts wait for their end */
	bool not_responding; /* said so in the log */
	bool retry_now;      /* rpcrdma_reconnect(): no back-off */
	bool report_due;     /* ->failed or ->stopped waits for the kick timer */
	struct rpcrdma_seen seen;
	int down_err;
	enum fab_step down_step;
	uint64_t generation;
	uint64_t backoff_ns;
	struct reactor_timer backoff_timer, kick_timer;
	struct sockaddr_storage src, dst; /* src: AF_UNSPEC: any */
	uint64_t turn;                    /* of conf.addrs: dst's */
	bool addr_used;                   /* this connection is counted there */
	char peer[80];

	/* rpcrdma_setup.c */
	struct rpcrdma_limits limits;
	uint32_t limits_seq;
	enum rpcrdma_memreg memreg; /* never AUTO once connected */
	bool windows_short;         /* static for this connection only */

	/* rpcrdma_trial.c */
	enum rpcrdma_trial trial; /* by set_state() of that file only */
	unsigned int trial_losses;
	struct rpcrdma_win *trial_win; /* not in win_free; FREE to all others */
	struct reactor_timer trial_timer;

	/* rpcrdma_mem.c */
	struct slab data_slab, send_slab, recv_slab, rsend_slab, copy_slab;
	uint32_t head_size;
	/* Of calls that turned out too long for inline: few are, and never for long. */
	struct rpcrdma_buf copies[RPCRDMA_COPIES];
	struct rpcrdma_bufpriv copyprivs[RPCRDMA_COPIES];
	struct list copy_free;
	size_t page;
	struct rpcrdma_buf *bufs;
	struct rpcrdma_bufpriv *bufprivs;
	struct list buf_free;
	unsigned int buf_free_cnt;
	struct fab_mr *send_mr, *recv_mr, *rsend_mr;
	struct rpcrdma_rep *reps;
	unsigned int rep_cnt;
	uint32_t recv_size;
	uint8_t *private_reply; /* static: a Reply chunk's message where the peer cannot write */
	bool want_unblock;      /* a get failed */
	bool unblock_due;       /* ... and something came back since */

	/* rpcrdma_win.c */
	struct rpcrdma_win *wins;
	unsigned int win_cnt;
	struct list win_free;
	unsigned int win_free_cnt;

	/* rpcrdma_req.c */
	struct rpcrdma_reqpriv *reqs; /* conf.credits of the user, then the probe's */
	struct list req_free;
	struct rpcrdma_reqpriv **hash;
	uint32_t hash_mask;
	uint32_t next_xid;
	struct list ended; /* ->done is due */

	/* rpcrdma_send.c */
	struct list queue;  /* to be sent, in order */
	struct list flight; /* sent, in order */
	unsigned int flight_cnt;
	unsigned int sends_out; /* Sends without a completion */
	struct rpcrdma_credit credit;

	/* rpcrdma_timeo.c */
	struct reactor_timer timeo_timer;

	/* rpcrdma_probe.c */
	struct rpcrdma_req probe;
	struct reactor_timer probe_timer;
	uint64_t last_rx_ns;
	uint64_t probe_sent_ns; /* 0: none is waited for */
	bool prove;             /* the next connection must answer a probe before calls are sent */
	bool proving;           /* this one has not answered it */
	struct reactor_timer stall_timer;
	uint64_t ack_wait_ns;   /* one lost packet costs an adapter so long; 0: not known */
	uint64_t send_moved_ns; /* the first of sends_out was posted then, or another completed */

	/* rpcrdma_reverse.c */
	uint32_t rcalls[RPCRDMA_REVERSE_RECVS]; /* xids of calls not answered yet */
	unsigned int rcall_cnt;
	uint32_t rsend_busy; /* bit per send buffer */

	/* rpcrdma_tap.c */
	struct rpcrdma_tap tap;
};

/* Cookies of Sends: requests by index, then the backchannel's buffers. */
static inline uint32_t rpcrdma_rsend_cookie(const struct rpcrdma *x, uint32_t i)
{
	return x->conf.credits + 1 + i;
}

/* Of the posts of rpcrdma_trial.c; no Send and no invalidation of a call has it. */
#define RPCRDMA_TRIAL_COOKIE UINT64_MAX

/*
 * What may not run inside a call (->done, ->unblocked, posting) runs from the reactor, soon:
 * rpcrdma_conn.c's.
 */
static inline void rpcrdma_kick(struct rpcrdma *x)
{
	if (!reactor_timer_armed(&x->kick_timer))
		reactor_timer_in(x->reactor, &x->kick_timer, 0);
}

/* xorshift64*: for XIDs and jitter, not for secrets. */
static inline uint64_t rpcrdma_random(struct rpcrdma *x)
{
	x->rng ^= x->rng >> 12;
	x->rng ^= x->rng << 25;
	x->rng ^= x->rng >> 27;
	return x->rng * 0x2545f4914f6cdd1dull >> 16;
}

/* ---- rpcrdma_addr.c ---- */

/* The next attempt is from src (NULL: any) to dst. */
void rpcrdma_addr_set(struct rpcrdma *x, const struct sockaddr *src, const struct sockaddr *dst);
const struct sockaddr *rpcrdma_addr_src(const struct rpcrdma *x); /* NULL: any */
/* The rest does nothing without conf.addrs. */

/* An attempt came to nothing. */
void rpcrdma_addr_failed(struct rpcrdma *x);
/* Connected. False: the other transports are elsewhere by now, this connection is to be dropped. */
bool rpcrdma_addr_up(struct rpcrdma *x);
/* The connection that rpcrdma_addr_up() agreed to, if it did, is gone. */
void rpcrdma_addr_down(struct rpcrdma *x);
/* Before an attempt: to the address that is in use now. */
void rpcrdma_addr_next(struct rpcrdma *x);

/* ---- rpcrdma_conn.c ---- */
extern const struct fab_ep_ops rpcrdma_fab_ops;
void rpcrdma_conn_init(struct rpcrdma *x);
/* rpcrdma_fabric.c: an endpoint of this kind, in place of the one that there is. 0 or -errno. */
int rpcrdma_fabric_use(struct rpcrdma *x, enum fab_kind kind, const struct fab_ep_ops *ops);
/* An attempt begins, to x->dst: as fab_ep_resolve(). */
int rpcrdma_fabric_resolve(struct rpcrdma *x, const struct fab_ep_ops *ops);
/*
 * The attempt failed at that step with *err. True: it goes on with the other fabric, and the log
 * has the reason. Else *err and x->detail are of the one that was tried last.
 */
bool rpcrdma_fabric_other(
	struct rpcrdma *x, enum fab_step step, int *err, const struct fab_ep_ops *ops);
/* Calls flow: a device that carries them is waited for from now on. */
void rpcrdma_fabric_up(struct rpcrdma *x);
/* Gives the connection up; calls in flight are sent again on the next one. Harmless when down. */
void rpcrdma_conn_drop(struct rpcrdma *x, int err, const char *why);
/* Established, and windows tried if that was due: calls flow. */
void rpcrdma_conn_up(struct rpcrdma *x);
/* Something valid came from the peer. */
void rpcrdma_conn_alive(struct rpcrdma *x);

/* ---- rpcrdma_setup.c ---- */
/* After RESOLVED: memory, queue pair, windows, receives. 0 or -errno (logged). */
int rpcrdma_setup(struct rpcrdma *x, bool new_device);
/* The device's windows were tried in vain: what was asked for decides what is next. */
void rpcrdma_setup_no_windows(struct rpcrdma *x);
/* The connection is up with what was set up for it. */
void rpcrdma_setup_works(const struct rpcrdma *x);

/* ---- rpcrdma_priv.c ---- */
/* Our RFC 8797 private data; returns its length. */
size_t rpcrdma_priv_encode(const struct rpcrdma *x, uint8_t priv[RPCRDMA_PRIV_LEN]);
/* Inline sizes of the peer, from what it sent. False: it sent none that RFC 8797 knows. */
bool rpcrdma_priv_decode(const uint8_t *priv, size_t len, uint32_t *ret_send, uint32_t *ret_recv);
/* Sets the limits of this connection from what the peer sent. */
void rpcrdma_priv_apply(struct rpcrdma *x, const uint8_t *priv, size_t len);

/* ---- rpcrdma_mem.c ---- */
int rpcrdma_mem_init(struct rpcrdma *x);
void rpcrdma_mem_fini(struct rpcrdma *x);
/* Of an object of the device that could not be had: errno, in words that help. */
const char *rpcrdma_mem_strerror(int err);
/* Registers what is not registered; 0 or -errno, logged. */
int rpcrdma_mem_reg(struct rpcrdma *x);
/* The device is another one: the endpoint freed all registrations. */
void rpcrdma_mem_forget(struct rpcrdma *x);
/* Frees the data buffers' registrations (another strategy follows, or other keys). */
void rpcrdma_mem_dereg_data(struct rpcrdma *x);
/*
 * With static registrations the peer can write into a Reply chunk while it is decoded, after what
 * was checked: moves the reply to memory that it cannot reach. Just before ->done.
 */
void rpcrdma_mem_privatize(struct rpcrdma *x, struct rpcrdma_req *req);
/* by 1: the call is the transport's now, and so are the buffers it names; by -1: no more. */
void rpcrdma_mem_lend(const struct rpcrdma_req *req, int by);
bool rpcrdma_mem_span_is_valid(const struct rpcrdma *x, const struct rpcrdma_span *span);
/* Lets the ->unblocked callback run if someone waits. */
void rpcrdma_mem_freed(struct rpcrdma *x);
int rpcrdma_mem_post_rep(struct rpcrdma *x, struct rpcrdma_rep *rep);

/* ---- rpcrdma_win.c ---- */
/*
 * So many it gets: as the device has, and such that each bind and each invalidation finds room in
 * the send queue. A call that has no window waits; an invalidation cannot.
 */
unsigned int rpcrdma_win_most(const struct rpcrdma *x);
int rpcrdma_win_init(struct rpcrdma *x);
void rpcrdma_win_fini(struct rpcrdma *x);
int rpcrdma_win_alloc(struct rpcrdma *x);
/* The endpoint freed them all with the connection. */
void rpcrdma_win_forget(struct rpcrdma *x);
struct rpcrdma_win *rpcrdma_win_get(struct rpcrdma *x, struct rpcrdma_reqpriv *owner);
/* Not bound: back to the free list. */
void rpcrdma_win_put(struct rpcrdma *x, struct rpcrdma_win *win);
void rpcrdma_win_set_state(struct rpcrdma_win *win, enum rpcrdma_winstate state);
/* The bound window with this key, NULL: none. */
struct rpcrdma_win *rpcrdma_win_by_rkey(struct rpcrdma *x, uint32_t rkey);
/*
 * Takes the windows of a call back after its reply, which named inv_rkey (0: none).
 * Returns 0: PENDING_INV is clear or clears by completions; -EBADMSG: the key is not this
 * call's; -errno of the fabric. On an error the connection must be given up.
 */
int rpcrdma_win_fence(struct rpcrdma_reqpriv *priv, uint32_t inv_rkey);
void rpcrdma_win_invalidated(struct rpcrdma *x, uint64_t cookie, enum fab_status status);

/* ---- rpcrdma_trial.c ---- */
void rpcrdma_trial_init(struct rpcrdma *x);
/* When established. Returns: true: rpcrdma_conn_up() or the loss of the connection follows. */
bool rpcrdma_trial_start(struct rpcrdma *x);
/* One of its posts completed. */
void rpcrdma_trial_step(struct rpcrdma *x, enum fab_status status);
void rpcrdma_trial_drained(struct rpcrdma *x);
void rpcrdma_trial_new_device(struct rpcrdma *x);

/* ---- rpcrdma_req.c ---- */
int rpcrdma_req_init(struct rpcrdma *x);
/* The only place that changes priv->state. */
void rpcrdma_req_set_state(struct rpcrdma_reqpriv *priv, enum rpcrdma_reqstate to);
void rpcrdma_req_fini(struct rpcrdma *x);
/* Lends the request kept for the health check to x->probe. */
void rpcrdma_req_lend_probe(struct rpcrdma *x);
struct rpcrdma_reqpriv *rpcrdma_req_find(struct rpcrdma *x, uint32_t xid);
void rpcrdma_req_hash(struct rpcrdma *x, struct rpcrdma_reqpriv *priv);
void rpcrdma_req_unhash(struct rpcrdma *x, struct rpcrdma_reqpriv *priv);
/* Decides how a request ends; only the first decision counts. */
void rpcrdma_req_decide(struct rpcrdma_reqpriv *priv, enum rpcrdma_end end);
/* A pending bit cleared: finishes the request when it was the last. From the reactor only. */
void rpcrdma_req_cleared(struct rpcrdma_reqpriv *priv, uint32_t bits);
/* Ends a request that is not in flight, from the reactor, soon. */
void rpcrdma_req_end_later(struct rpcrdma_reqpriv *priv, enum rpcrdma_end end);
/* Runs ->done of those. */
void rpcrdma_req_run_ended(struct rpcrdma *x);
/* DRAINED: nothing is pending any more; ends or queues again what was in flight. */
void rpcrdma_req_drained(struct rpcrdma *x);
/* Every queued request ends. */
void rpcrdma_req_end_queue(struct rpcrdma *x, enum rpcrdma_end end);

/* ---- rpcrdma_expose.c ---- */
unsigned int rpcrdma_expose(const struct rpcrdma_req *req, const struct rpcrdma_plan *plan,
	struct rpcrdma_expo expos[RPCRDMA_MAX_WINS]);
/* Header of a planned call; keys from the exposures. */
void rpcrdma_expose_hdr(const struct rpcrdma_reqpriv *priv, const struct rpcrdma_expo *expos,
	unsigned int cnt, struct rpcrdma_hdr *h);

/* ---- rpcrdma_send.c ---- */
/* Sends what credits, windows and the queue pair allow. */
void rpcrdma_send_pump(struct rpcrdma *x);
/*
 * Posts one call. 0, -EAGAIN (windows, copies, queue full: try again after a completion), -errno.
 */
int rpcrdma_send_transmit(struct rpcrdma_reqpriv *priv);
/* The peer reads it no more. Does nothing for a call that is not a copy. */
void rpcrdma_send_copy_put(struct rpcrdma_reqpriv *priv);
void rpcrdma_send_done(struct rpcrdma *x, uint64_t cookie, enum fab_status status);
void rpcrdma_send_flight_changed(struct rpcrdma *x);

/* ---- rpcrdma_reply.c ---- */
void rpcrdma_reply_receive(struct rpcrdma *x, uint64_t cookie, uint32_t len, uint32_t inv_rkey,
	enum fab_status status);

/* ---- rpcrdma_timeo.c ---- */
void rpcrdma_timeo_init(struct rpcrdma *x);
void rpcrdma_timeo_start(struct rpcrdma_reqpriv *priv); /* accepted by rpcrdma_send() */
void rpcrdma_timeo_sent(struct rpcrdma_reqpriv *priv);  /* put on the wire */
void rpcrdma_timeo_fini(struct rpcrdma *x);

/* ---- rpcrdma_probe.c ---- */
void rpcrdma_probe_init(struct rpcrdma *x);
void rpcrdma_probe_start(struct rpcrdma *x); /* connection is up */
void rpcrdma_probe_stop(struct rpcrdma *x);  /* connection is going or gone */
/* They count sends_out. */
void rpcrdma_probe_send_posted(struct rpcrdma *x);
void rpcrdma_probe_send_done(struct rpcrdma *x);

/* ---- rpcrdma_reverse.c ---- */
/* Takes the message if it is a call. */
bool rpcrdma_reverse_receive(
	struct rpcrdma *x, const struct rpcrdma_hdr *h, const uint8_t *msg, size_t len);
void rpcrdma_reverse_sent(struct rpcrdma *x, uint32_t i);
void rpcrdma_reverse_reset(struct rpcrdma *x);

#endif
