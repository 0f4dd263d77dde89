/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the session engine share: the client, the session of a
 * lane, the slot table, the life of a call and the set-up calls. Operations
 * (nfs4_lookup.c ...) do not see this header.
 *
 * Who does what:
 *   nfs4_client.c      the client ID and the token that serialises changes to it
 *   nfs4_exchange.c    EXCHANGE_ID and the other calls about client IDs (codecs)
 *   nfs4_session_xdr.c CREATE_SESSION and the other calls about sessions (codecs)
 *   nfs4_slot.c        slots and their sequence numbers
 *   nfs4_compound.c    COMPOUND and SEQUENCE, both ways
 *   nfs4_call.c        a call from get to put
 *   nfs4_reply.c       what comes back for it
 *   nfs4_owners.c      names of owners in it, and in what is sent
 *   nfs4_idmap.c       calls that wait for them
 *   nfs4_reply_chunk.c Reply chunks for replies without a bound
 *   nfs4_cb.c          the server's calls to us
 *   nfs4_session.c     the state machine of a session
 *   nfs4_stop.c        how it ends
 *   nfs4_setup.c       client ID, session, RECLAIM_COMPLETE: at start and in recovery
 *   nfs4_steps.c       the calls it makes for that
 *   nfs4_recover.c     which failure means what
 *   nfs4_lease.c       renewal; the back channel of a new connection
 *   nfs4_state.c       opens, and what calls on them must wait for
 *   nfs4_reclaim.c     opens and their locks, reclaimed after a restart
 *   nfs4_share.c       OPENs that become one, OPEN_DOWNGRADE, what a delegation served
 *   nfs4_lockowner.c   byte-range locks on them (nfs4_lock.h)
 *   nfs4_deleg.c       delegations (nfs4_deleg.h)
 *   nfs4_recall.c      what the server says of them
 *   nfs4_return.c      the user returns one
 *   nfs4_return_list.c those that nobody wants
 *   nfs4_return_send.c how these are returned
 *   nfs4_offload.c     copies that the server goes on with
 *   nfs4_revoke.c      single opens, locks and delegations that the server took away
 *   nfs4_revoked.c     stateids of these, until they are freed
 *   nfs4_revoke_free.c FREE_STATEID of them
 */
#ifndef RPCRDMAFS_NFS4_SESSION_INT_H
#define RPCRDMAFS_NFS4_SESSION_INT_H

#include <stdatomic.h>

#include "idmap.h"
#include "mutex.h"
#include "nfs4_cb.h"
#include "nfs4_codec.h"
#include "nfs4_offload_int.h"
#include "nfs4_live.h"
#include "nfs4_redo.h"
#include "nfs4_slot.h"
#include "nfs4_state.h"

/* ---- calls (nfs4_call.c) ---- */

/*
 * nfs4_call.state. Changed by call_set_state() only.
 *
 * I8 (call): it is its owner's alone: the user's, the transport's, or on one list of the session.
 *    One that nfs4_call_start() took ends once, and not before that returned.
 *    Asserted: nfs4_call_start(), nfs4_call_put(), call_timer(), nfs4_reply_done(),
 *    nfs4_call_finish()
 *    Test: nfs4_session::soft_call_that_waited_for_its_slot_ends_once
 * I10 (stateid): a call takes it with its slot and keeps it as long as that, whatever becomes of
 *    the open meanwhile: what is sent again on a slot is the same call, byte for byte.
 *    Asserted: call_take()
 *    Test: nfs4_revoke::what_is_sent_again_has_the_stateid_it_had
 */
enum nfs4_call_state {
	NFS4_CALL_IDLE,    /* the user's */
	NFS4_CALL_WAITING, /* on sess->waiting: for a slot or for the session */
	NFS4_CALL_SENT,    /* the transport's */
	NFS4_CALL_DELAYED, /* on sess->delayed: NFS4ERR_DELAY; may own a slot */
	NFS4_CALL_IDMAP,   /* on sess->idmap_waits: owners are asked for, of its reply or before it
			    * goes
			    */
	NFS4_CALL_ENDING,  /* on sess->ending: ->done follows in the next turn */
};

/* For DELAY and GRACE (nfs4_delay.c): 0.1 s doubling to 15 s; total: of the first `tries`. */
uint64_t nfs4_delay_ns(uint32_t tries);
uint64_t nfs4_delay_total_ns(uint32_t tries);

/*
 * For nfs4_reply.c, of a call that came back from the transport: it ends, waits for the session,
 * goes again at once, or after NFS4ERR_DELAY's time. A call that ends must have left its slot;
 * leaving it does nothing when its session is gone.
 */
void nfs4_call_finish(struct nfs4_call *call, int err);
void nfs4_call_again(struct nfs4_call *call);
void nfs4_call_delay(struct nfs4_call *call);
void nfs4_call_leave_slot(struct nfs4_call *call, void (*how)(struct nfs4_slots *, uint32_t));
/* rpc_call.done (nfs4_reply.c). */
void nfs4_reply_done(struct rpc_call *rpc);
/* Sends what waits, as far as slots and the session's state allow. */
void nfs4_call_kick(struct nfs4_session *s);
/*
 * The call's state is being opened again: the call waits for it, without a slot. wake: a state may
 * be good again, or lost; states that another lane opens are looked at now and then.
 */
void nfs4_call_wait_state(struct nfs4_call *call);
void nfs4_call_wake_state(struct nfs4_session *s);
/*
 * Owners are asked for: the call waits for the answer to call->idmap_ticket, without a slot,
 * IDMAP_WAIT_NS at most.
 */
void nfs4_call_wait_idmap(struct nfs4_call *call);
/* The results that were kept are decoded again (nfs4_reply.c). */
void nfs4_reply_mapped(struct nfs4_call *call);
/* Ends every call that is not with the transport; those that are answered end with their results.
 */
void nfs4_call_end_waiting(struct nfs4_session *s, int err);
/* Runs ->done of the calls on sess->ending now. */
void nfs4_call_flush(struct nfs4_session *s);
/* The request itself, whatever the session's state. Returns as nfs4_call_get(). */
int nfs4_call_init(struct nfs4_session *s, struct nfs4_call *call);
void nfs4_call_timer(struct reactor_timer *t);

/* ---- names of owners (nfs4_idmap.c) ---- */

/* A reply that is decoded again. */
struct nfs4_idmap_reply {
	struct nfs4_compound c; /* as it was before the operation's results */
	uint8_t data[];
};

/*
 * The decoder met names that are asked for: the call is to wait for them, with its results as they
 * are in `from`. False: it goes on without them.
 */
bool nfs4_idmap_hold(struct nfs4_call *call, const struct nfs4_compound *from, uint64_t ticket);
void nfs4_idmap_init(struct nfs4_session *s);
/* The end of the session. False: a message is on its way, the session must outlive it. */
bool nfs4_idmap_fini(struct nfs4_session *s);

/* ---- replies without a bound (nfs4_reply_chunk.c) ---- */

/* Largest part of the sink that attempt `tries` (0: the first) offers; pure. */
uint32_t nfs4_reply_chunk_at(unsigned int tries, uint32_t inline_max, uint32_t most);
/* The call is encoded: its Reply chunk and reply bound become those of this attempt. */
void nfs4_reply_chunk_offer(struct nfs4_call *call, struct nfs4_compound *c);
/* The reply was too long. True: the next attempt offers more, and is worth it. */
bool nfs4_reply_chunk_grow(struct nfs4_call *call);

/* ---- what a status on SEQUENCE means (nfs4_recover.c) ---- */

enum nfs4_seq_action {
	NFS4_SEQ_FAIL,      /* the call ends with the status' errno; the slot was not used */
	NFS4_SEQ_RESEND,    /* later again: same slot, same number */
	NFS4_SEQ_HIGHEST,   /* the same, with another sa_highest_slotid */
	NFS4_SEQ_NEXT,      /* the server has this number already: the next one, same slot */
	NFS4_SEQ_NEXT_IDEM, /* as NEXT if the call may be executed twice, else the call fails */
	NFS4_SEQ_CUT,       /* the server has fewer slots: another slot */
	NFS4_SEQ_ORPHAN,    /* the slot is out of step: another slot */
	NFS4_SEQ_SESSION,   /* a new session, then the call again */
	NFS4_SEQ_BIND,      /* bind the connection, then the call again */
	NFS4_SEQ_CLIENT,    /* a new client ID, then the call again */
};

enum nfs4_seq_action nfs4_recover_action(enum nfs4_status status);

/* What has to be made good again before calls flow; bits. */
#define NFS4_NEED_SESSION (1u << 0) /* CREATE_SESSION */
#define NFS4_NEED_DESTROY (1u << 1) /* DESTROY_SESSION of the old one before */
#define NFS4_NEED_BIND    (1u << 2) /* BIND_CONN_TO_SESSION */
#define NFS4_NEED_CLIENT  (1u << 3) /* EXCHANGE_ID */
#define NFS4_NEED_RECLAIM (1u << 4) /* opens reclaimed, RECLAIM_COMPLETE, in the same session */

/* The calls of `s` wait from now until `need` is done. gen: of the session that showed it. */
void nfs4_recover(struct nfs4_session *s, uint32_t gen, unsigned int need, const char *why);
/* Looks at sr_status_flags in the reply to `call`; acts once for each bit that appears. */
void nfs4_recover_flags(struct nfs4_session *s, const struct nfs4_call *call, uint32_t flags);

/* ---- lease (nfs4_lease.c) ---- */

/* When a renewal is due; pure. */
uint64_t nfs4_lease_due_ns(uint64_t renewed_ns, uint32_t lease_s);
/* The session is up: keeps the lease from now on. now: SEQUENCE at once (after a reconnect). */
void nfs4_lease_start(struct nfs4_session *s, bool now);
void nfs4_lease_stop(struct nfs4_session *s);
/* The back channel has no connection: binds ours again, at once or after the renewal under way. */
void nfs4_lease_bind(struct nfs4_session *s);
/* There may be something for sess->renew to do; what it did is done, the next thing. */
void nfs4_lease_kick(struct nfs4_session *s);
void nfs4_lease_next(struct nfs4_session *s);
void nfs4_lease_timer(struct reactor_timer *t);
/* The connection carries the back channel now: generation of the transport; 0: it may not. */
void nfs4_lease_back_is_on(struct nfs4_session *s, uint64_t generation);

/* ---- revoked state (nfs4_revoke.c) ---- */

/* What sess->renew asks about, or frees. The pointers to it are the states': states.lock. */
struct nfs4_deleg_return;
struct nfs4_testing {
	struct nfs4_state *states[NFS4_TEST_MAX];
	unsigned int state_cnt;
	struct nfs4_deleg *delegs[NFS4_TEST_MAX];
	unsigned int deleg_cnt;
	struct nfs4_stateid ids[NFS4_TEST_MAX]; /* of the states and their locks, of delegs */
	uint8_t of[NFS4_TEST_MAX];              /* the state or delegation it is of */
	unsigned int id_cnt;
	unsigned int deleg_from; /* ids from here on are delegations' */
	struct nfs4_revoked *revoked;
	struct nfs4_deleg_return *ret; /* what sess->renew returns (nfs4_return_send.c) */
	uint32_t id_gen;               /* client ID they belong to */
	bool unblocks; /* out, of its last call: opens may be reclaimed that waited for it */
};

/*
 * sr_status_flags of a call sent then say that something is revoked; appeared: and did not before.
 * True: this session is to ask what it is, nfs4_lease_kick().
 */
bool nfs4_revoke_flags(struct nfs4_session *s, bool appeared, uint64_t sent_ns);
/* Is there something for this session to do? */
bool nfs4_revoke_due(struct nfs4_session *s);
/*
 * Fills sess->renew, which is idle, with the next thing. Returns its descriptor, whose ->ended
 * books the answer; NULL: there is none.
 */
const struct nfs4_opdesc *nfs4_revoke_next(struct nfs4_session *s);

/* ---- and freed (nfs4_revoke_free.c) ---- */

/* A call that ended without an answer to what it asks. */
bool nfs4_revoke_free_no_answer(const struct nfs4_call *call);
/* The server has nothing to say any more than what is known. */
void nfs4_revoke_free_settle(struct nfs4_session *s);
/* As nfs4_revoke_next(), FREE_STATEID. */
const struct nfs4_opdesc *nfs4_revoke_free_next(struct nfs4_session *s);

/* ---- file systems of the server (nfs4_fs.c) ---- */

#define NFS4_FS_BUCKETS 64u
#define NFS4_FS_MAX     4096u /* WIRE: a server may have any number of fsids */

struct nfs4_fs_entry;
struct nfs4_fs_table {
	struct mutex lock; /* held for a few instructions; nothing else is taken with it */
	struct nfs4_fs_entry *buckets[NFS4_FS_BUCKETS];
	unsigned int cnt;
	const struct nfs4_fs *by_nr[NFS4_FS_MAX]; /* nr - 1 */
};

void nfs4_fs_table_init(struct nfs4_fs_table *t);
void nfs4_fs_table_fini(struct nfs4_fs_table *t);

/* ---- the client (nfs4_client.c) ---- */

#define NFS4_SESSIONS_LEFT 32u

struct nfs4_client {
	struct nfs4_conf conf; /* owner is our copy */
	struct nfs4_verf verf; /* co_verifier: this mount's incarnation */
	struct nfs4_fsinfo fsinfo;
	struct nfs4_fs_table file_systems; /* beside the root's */
	_Atomic uint64_t owner_next, verf_next;
	_Atomic uint32_t generation; /* id_gen, for nfs4_client_generation() */
	_Atomic uint64_t grace_ns;   /* of the last NFS4ERR_GRACE; 0: none yet */
	_Atomic bool owners_by_name; /* the server refused numbers as owners */

	/*
	 * Owner: the holder of the token, without `lock` (the token's hand-over orders it).
	 * clientid is what SEQUENCE-less calls use; calls in a session never read it.
	 */
	bool have_id;      /* EXCHANGE_ID done, id believed good */
	bool reclaim_done; /* RECLAIM_COMPLETE sent for this id */
	uint64_t clientid;
	uint32_t sequence;               /* csa_sequence of the next CREATE_SESSION */
	bool sequence_lost;              /* nobody knows whether the last one used it up */
	uint32_t id_gen;                 /* counts client IDs */
	uint64_t lost_ns;                /* when the same server dropped one last; 0: never */
	unsigned int id_tries;           /* EXCHANGE_IDs since a session was last made */
	unsigned int minor;              /* negotiated */
	struct nfs4_exchange_res server; /* who answered: compared after a restart */
	/* Of the process before this one (nfs4_keep.h), to be destroyed */
	struct nfs4_sessionid left[NFS4_SESSIONS_LEFT];
	unsigned int left_cnt;
	uint32_t left_gen; /* id_gen of that one */
	struct live *live; /* what the next process finds of it (nfs4_live.h); NULL: nothing */
	size_t ranges_max; /* locked ones of one owner in one file: ENOLCK for more; 0: any */
	int before;        /* nfs4_keep_before(), until it is noted there; -1: no such memory */
	live_ref live_ref;
	struct list redos; /* nfs4_redo.h */
	struct nfs4_states states;
	struct nfs4_offloads offloads;

	/* nfs4_client_on_lock_free(): constant when lanes run */
	void (*lock_free)(void *ctx, uint64_t number);
	void *lock_free_ctx;

	/* Owner: `lock`, held for a few instructions. */
	struct mutex lock;
	struct nfs4_session *holder; /* of the token */
	struct list waiters;         /* nfs4_session.token_link, in order */
	unsigned int sess_cnt;       /* sessions that have one on the server */
};

/*
 * The token: who holds it may send EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE and
 * DESTROY_CLIENTID, so that csa_sequence never runs ahead and a lost client ID is replaced once.
 * get: true if `s` holds it now; false: s->token_msg runs on the lane of `s` when it does. That
 * calls granted.
 */
bool nfs4_client_token_get(struct nfs4_session *s);
void nfs4_client_token_granted(struct nfs4_session *s);
void nfs4_client_token_put(struct nfs4_session *s);
/* False: the grant is on its way already. */
bool nfs4_client_token_cancel(struct nfs4_session *s);
/* The server has a session more for this client; or one less: returns how many are left. */
void nfs4_client_session_made(struct nfs4_client *cl);
unsigned int nfs4_client_session_gone(struct nfs4_client *cl);

/* ---- the session of a lane (nfs4_session.c) ---- */

/* X(STATE): see the table in nfs4_session.c */
#define NFS4_SESSION_STATES(X)                                                                     \
	X(IDLE)                                                                                    \
	X(CONNECTING)                                                                              \
	X(SETUP)                                                                                   \
	X(UP)                                                                                      \
	X(RECOVERING)                                                                              \
	X(STOPPING)                                                                                \
	X(FAILING)                                                                                 \
	X(DEAD)                                                                                    \
	X(STOPPED)

enum nfs4_session_state {
#define X(name) NFS4_SESSION_##name,
	NFS4_SESSION_STATES(X)
#undef X
};

enum nfs4_token_state {
	NFS4_TOKEN_NONE,
	NFS4_TOKEN_WAITING,
	NFS4_TOKEN_HELD,
};

/* The set-up call in flight (nfs4_setup.c). */
enum nfs4_step {
	NFS4_STEP_NONE,
	NFS4_STEP_REDO,             /* a call of a process before this one (nfs4_redo.h) */
	NFS4_STEP_DESTROY,          /* DESTROY_SESSION of a session that is replaced */
	NFS4_STEP_BIND,             /* BIND_CONN_TO_SESSION */
	NFS4_STEP_EXCHANGE,         /* EXCHANGE_ID */
	NFS4_STEP_CREATE,           /* CREATE_SESSION */
	NFS4_STEP_RECLAIM_OPEN,     /* OPEN CLAIM_PREVIOUS */
	NFS4_STEP_RECLAIM_LOCK,     /* LOCK reclaim */
	NFS4_STEP_RECLAIM_COMPLETE, /* RECLAIM_COMPLETE */
	NFS4_STEP_BYE_DELEG,        /* stopping: DELEGRETURN of what is left */
	NFS4_STEP_BYE_SESS,         /* stopping: DESTROY_SESSION */
	NFS4_STEP_BYE_CLIENT        /* stopping: DESTROY_CLIENTID */
};

/* Owner: its lane, but for the token's fields. */
struct nfs4_session {
	struct nfs4_client *cl;
	struct reactor *r;
	const struct nfs4_session_ops *ops;
	void *ctx;
	struct stats *stats;
	struct rpcrdma *x;
	enum nfs4_session_state state;
	bool started; /* nfs4_session_start() succeeded */
	bool was_up;  /* ->up was called */
	bool blocked; /* nfs4_call_get() refused: ->unblocked is owed when the session is up */
	char peer[64];

	/* the session on the server; valid if have_session */
	bool have_session;
	uint32_t id_gen;                   /* client ID it was made for: cl->id_gen */
	bool counted;                      /* in cl->sess_cnt */
	uint32_t gen;                      /* counts sessions; slots belong to the current one */
	struct nfs4_sessionid id, old_id;  /* old_id: of gen - 1, for replies that come late */
	live_ref live_ref;                 /* nfs4_live.h */
	struct nfs4_create_session params; /* granted */
	struct nfs4_slots slots;
	uint32_t sr_flags; /* as last seen */

	/* calls, by state */
	struct list waiting, delayed, idmap_waits, ending;
	struct idmap_waiter idmap_waiter; /* for those on `idmap_waits` */
	struct reactor_timer ending_timer;
	unsigned int sent_cnt; /* with the transport, `ctl` not counted */

	/* set-up, recovery and the end */
	unsigned int need; /* NFS4_NEED_* */
	bool drains;       /* RECOVERING: it waits for the calls in flight */
	enum nfs4_step step;
	struct nfs4_call ctl;   /* carries the steps; `calls_ready`: its request was got */
	struct nfs4_call renew; /* lone SEQUENCE, BIND_CONN_TO_SESSION, nfs4_revoke.c's */
	struct nfs4_testing testing;
	struct nfs4_call reopener; /* OPENs what `reopen` holds, and LOCKs; FREE_STATEID of locks */
	struct nfs4_reclaim reclaim, reopen; /* what ctl and reopener open again */
	struct reactor_timer reopen_timer;   /* all of the list `reopen` are to be tried later */
	bool calls_ready;
	struct rpc_cred cred; /* of the calls above */
	struct nfs4_create_session asked;
	struct nfs4_exchange_res exchange;
	struct reactor_timer step_timer; /* SETUP: all must be done; RECOVERING: back-off */
	unsigned int losses;             /* connections lost in SETUP */
	unsigned int backoff;            /* failed recoveries in a row */
	uint64_t recovered_ns;           /* when the last one ended */
	struct nfs4_failure failure;
	struct reactor_timer stop_timer; /* STOPPING: draining, then the end */
	bool drained;                    /* calls had their time to end */
	struct nfs4_deleg_return *bye;   /* what NFS4_STEP_BYE_DELEG returns */
	bool no_byes;                    /* the server does not take it */
	bool bye_client;                 /* the last session is gone: DESTROY_CLIENTID */
	bool cut;                        /* rpcrdma_stop() was called */
	bool xprt_gone;                  /* the transport has nothing more to say */

	struct reactor_timer lease_timer;
	uint64_t renewed_ns; /* a SEQUENCE sent then succeeded */

	struct nfs4_cb cb;
	uint64_t back_gen; /* connection that carries the back channel, or refused to; 0: none */
	bool bind_due;     /* to be bound when `renew` is free */
	uint64_t fault_ns; /* a session was replaced because of BACKCHANNEL_FAULT */

	/* Owner: view_lock, held for a copy */
	struct mutex view_lock;
	struct nfs4_session_view view;

	/* Owner: cl->lock */
	enum nfs4_token_state token; /* by token_set() of nfs4_client.c only */
	struct list token_link;
	struct reactor_msg token_msg; /* the mailbox's while a grant is on its way */
};

/* What sess->renew bears is of the session's client ID. */
static inline bool nfs4_session_renew_is_current(const struct nfs4_call *call)
{
	return call->sess->testing.id_gen == call->sess->id_gen;
}

/* The only place that changes sess->state. */
void nfs4_session_set_state(struct nfs4_session *s, enum nfs4_session_state to, const char *why);
/* Set-up or recovery is complete. */
void nfs4_session_up(struct nfs4_session *s);
/* Set-up cannot succeed: closes the connection, then ->failed. */
void nfs4_stop_fail(struct nfs4_session *s, int err, const char *step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* STOPPING and FAILING: does the next thing that is left to do (nfs4_stop.c). */
void nfs4_stop_next(struct nfs4_session *s);
void nfs4_stop_timer(struct reactor_timer *t);
/* Calls may be sent on slots. */
static inline bool nfs4_session_is_up(const struct nfs4_session *s)
{
	return s->state == NFS4_SESSION_UP;
}

/* ---- set-up (nfs4_setup.c) ---- */

/* Gets the token, then does what sess->need and the client lack; nfs4_session_up() at the end. */
void nfs4_setup_start(struct nfs4_session *s);
/* The same in recovery: the calls of a session that is to be destroyed end before. */
void nfs4_setup_recover(struct nfs4_session *s);
/* A call is back: was it the last one that is waited for? */
void nfs4_setup_drained(struct nfs4_session *s);
/* s->token_msg: a session that waited for the token holds it. */
void nfs4_setup_granted(struct reactor_msg *msg);
void nfs4_setup_timer(struct reactor_timer *t);
/* A step cannot succeed: at start the mount fails, later all of it is tried again in a while. */
void nfs4_setup_failed(struct nfs4_session *s, int err, const char *text);
/* Sends the call of a step; sess->step says which is in flight. */
void nfs4_setup_send(struct nfs4_session *s, enum nfs4_step step);

/* ---- its steps (nfs4_steps.c) ---- */

const struct nfs4_opdesc *nfs4_steps_desc(enum nfs4_step step);
/* Makes of the answer what it changes. False: nfs4_setup_failed() was called. */
bool nfs4_steps_result(struct nfs4_session *s, enum nfs4_step step, struct nfs4_call *call);
/* OPEN of what is reclaimed (nfs4_reclaim.c). */
extern const struct nfs4_opdesc nfs4_reclaim_open_desc;
/* BIND_CONN_TO_SESSION, in both directions if the session has a back channel. */
extern const struct nfs4_opdesc nfs4_bind_desc;
/* A step was answered DELAY for the `tries`th time: is it worth waiting for? */
bool nfs4_steps_may_wait(const struct nfs4_session *s, uint32_t tries);
static inline bool nfs4_session_is_ctl(const struct nfs4_call *call)
{
	return call == &call->sess->ctl;
}

/* ---- mount (nfs4_mount.c), pure part ---- */

/* The next component of *path, moved past it; false at the end. Empty ones and "." are skipped. */
bool nfs4_mount_path_next(const char **path, struct nfs4_str *ret_name);

/* ---- file systems (nfs4_fs.c) ---- */

/* Facts of what the call is about. */
static inline const struct nfs4_fs *nfs4_session_call_fs(const struct nfs4_call *call)
{
	return call->fs ? call->fs : &call->sess->cl->fsinfo.fs;
}
/* Largest I/O for: what is asked (0: none), our buffers, the server's limit, the session's room. */
uint32_t nfs4_fs_io_size(uint32_t asked, uint64_t data_size, uint64_t server, uint64_t session);

#endif
