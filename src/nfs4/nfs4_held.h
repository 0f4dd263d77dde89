/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server holds for us and we must reclaim after its restart:
 * opens, byte-range locks, delegations (RFC 8881 sections 8 to 10). Each is an
 * object of the user's, which the client (nfs4_state.c, nfs4_reclaim.c,
 * nfs4_lockowner.c, nfs4_deleg.c) puts on its lists.
 *
 * Context: the lane of the call, unless a function says otherwise. Locks: as
 * mutex_order.h says; nothing here is called with a lock held that an
 * nfs4_deleg_ops callback takes.
 */
#ifndef RPCRDMAFS_NFS4_HELD_H
#define RPCRDMAFS_NFS4_HELD_H

#include "live.h"
#include "mutex.h"
#include "nfs4_ops.h"

/* ---- opens ---- */

/*
 * The opens of one open owner on one file, which are one to the server: embedded in the user's
 * object, zeroed when not open. What is done on the file takes it instead of a stateid, since the
 * stateid changes (nfs4_state.c). It stays where it is, and what it is used in ends, before
 * nfs4_state_forget().
 *
 * OPENs by filehandle may be in flight side by side. CLOSE and OPEN_DOWNGRADE are started when no
 * OPEN, nfs4_claim() or LOCK on it is, and nothing of these is started before they have ended: the
 * user sees to it. (An OPEN by name has an owner of its own always: which file it opens, and so
 * which CLOSE it would have to wait for, only its reply says.)
 *
 * Instead of an open of its own it may be served by a delegation (RFC 8881 section 10.4): the
 * server knows nothing of it then, until nfs4_claim().
 */
struct nfs4_reclaim;
struct nfs4_state {
	struct nfs4_client *cl; /* NULL: not open */
	/* constant while it is open: what it takes to open it again */
	struct nfs4_fh fh;
	uint64_t owner;  /* for this file and this user: see above */
	uint64_t fileid; /* for messages; 0: not known */
	struct rpc_cred cred;
	/* Owner: the client's states.lock */
	struct list link;
	struct nfs4_reclaim *reclaim; /* a session is opening it again */
	struct nfs4_state **tested;   /* a session asks whether it is still good (nfs4_revoke.c) */
	uint32_t test_round;
	unsigned int tries;
	unsigned int delays;    /* OPENs that were to reclaim it were answered DELAY */
	uint64_t retry_ns;      /* not before */
	struct list lockowners; /* of nfs4_lockowner.link: locks that hang on this open */
	_Atomic bool is_locked; /* there are any; read without the lock */
	struct list served;     /* deleg->served */
	uint32_t modes;         /* bit 1 << share_access of each OPEN since it was last had anew */
	live_ref live_ref;      /* nfs4_live.h */
	/* Owner: `lock`; to change share_access, status or deleg states.lock is held too */
	struct mutex lock;
	uint32_t share_access;    /* of all OPENs, or what it is served for */
	struct nfs4_deleg *deleg; /* serves it; NULL: it has an open of its own */
	unsigned int status;      /* nfs4_state.h */
	bool was_served; /* by a delegation of the process before; not opened anew as yet */
	bool is_there;   /* BAD or LOST for its locks: the server has it open, CLOSE ends it */
	bool is_closed;  /* a CLOSE was sent: that the stateid is not known means nothing ... */
	bool is_gone;    /* ... but that it need not be sent again */
	struct nfs4_stateid stateid;
	uint32_t gen;    /* counts stateids */
	uint32_t id_gen; /* client ID that the stateid belongs to */
};

/*
 * A successful nfs4_open() (call->u.open, call->cred) is st's, from its ->done: opens it, or, if it
 * is open already by the same owner, stands for this open too from now on. It is kept over the
 * server's restarts until a CLOSE of it ends without an error, or nfs4_state_forget() (which does
 * nothing if it is not open).
 */
void nfs4_share_open(struct nfs4_state *st, const struct nfs4_call *call);
/* Any thread, also after the last session was freed. */
void nfs4_state_forget(struct nfs4_state *st);
/*
 * Any thread. The server does not give it back: all use fails, also of what is opened with the same
 * owner from now on. Who opens the file anew does it with another owner in another nfs4_state.
 */
bool nfs4_state_is_lost(struct nfs4_state *st);

/* ---- locks ---- */

/*
 * The locks of one owner on one file (RFC 8881 section 9), embedded in the user's object; zeroed
 * by nfs4_lockowner_init(). The first LOCK hangs it on the open it names, and there it stays until
 * nfs4_lockowner_free() or the open is forgotten. What it holds is remembered, and reclaimed with
 * the open (nfs4_reclaim.c), before any other use of that open.
 *
 * At most one LOCK, LOCKU or nfs4_lockowner_free() of an owner is in work at a time: the user
 * sees to it. Lanes may change from one to the next. The open is not served by a delegation: the
 * user claims it first.
 */
struct nfs4_lockowner {
	uint64_t number; /* lock_owner4: its own, of nfs4_new_owner() */
	struct nfs4_client *cl;
	/* Owner: the client's states.lock */
	struct nfs4_state *state; /* the open it hangs on; NULL: none, the server knows nothing */
	struct list link;
	struct nfs4_stateid stateid;
	bool has_stateid;
	live_ref live_ref;  /* nfs4_live.h */
	struct list ranges; /* of nfs4_lockrange (nfs4_lock.h): held, ascending, disjoint */
	/* A LOCK ended without an answer: the server may hold this, or a part of it, beside them.
	 */
	bool doubt, doubt_write;
	uint64_t doubt_first, doubt_last;
};

void nfs4_lockowner_init(struct nfs4_lockowner *lo, struct nfs4_client *cl);
/* Any thread. Does it hold (a part of) this range? (0, NFS4_LOCK_TO_END): anything. */
bool nfs4_lockowner_holds(struct nfs4_lockowner *lo, uint64_t offset, uint64_t length);
/*
 * nfs4_lockowner_free - the owner holds nothing any more (or what it holds goes with its open)
 *
 * The server is told in the background (FREE_STATEID); lo is off its open, and the user's to free
 * or to use anew, at once. Any lane: s is that lane's.
 */
void nfs4_lockowner_free(struct nfs4_lockowner *lo, struct nfs4_session *s);

/*
 * CB_NOTIFY_LOCK: a lock that a LOCK with `wait` was denied may be free now. Set before lanes
 * start; called on any lane's thread: only set a flag and wake somebody. number: of the lock owner.
 */
void nfs4_client_on_lock_free(
	struct nfs4_client *cl, void (*fn)(void *ctx, uint64_t number), void *ctx);

/* ---- delegations ---- */

/*
 * A delegation of one file (RFC 8881 section 10.4), embedded in the user's object; zeroed when
 * there is none. It stays where it is from nfs4_deleg_take() until it is none again: DELEGRETURN
 * ended without an error, ops->lost returned, nfs4_deleg_forget(), or after nfs4_stop_session().
 */
struct nfs4_deleg {
	struct nfs4_client *cl; /* NULL: none */
	/* constant */
	struct nfs4_fh fh;
	enum nfs4_deleg_type type; /* OPEN_DELEGATE_READ or _WRITE */
	struct rpc_cred cred;      /* of the OPEN that brought it: it is returned under it */
	/* Owner: the client's states.lock */
	struct list link;
	struct list served;  /* of nfs4_state.served: opens that the server does not know of */
	unsigned int status; /* nfs4_deleg.c */
	struct nfs4_stateid stateid;
	uint32_t id_gen;            /* client ID that it belongs to */
	live_ref live_ref;          /* nfs4_live.h */
	struct nfs4_deleg **tested; /* as nfs4_state's */
	uint32_t test_round;
};

/*
 * What becomes of delegations. Called on any lane's thread with states.lock held, so that d stays
 * where it is meanwhile: take a reference, set a flag, wake somebody; call nothing of src/nfs4.
 */
struct nfs4_deleg_ops {
	/* The server wants it back (CB_RECALL): claim what it serves, then DELEGRETURN. Once. */
	void (*recall)(void *ctx, struct nfs4_deleg *d);
	/*
	 * It is gone (restart, lease over, revoked): nothing that was believed for its sake may be
	 * any more. What it served is opened anew by itself. d is none when it returns.
	 */
	void (*lost)(void *ctx, struct nfs4_deleg *d);
	/* CB_RECALL_ANY: return what is least needed until at most `keep` of these kinds are left.
	 */
	void (*recall_any)(void *ctx, uint32_t keep, bool read, bool write);
	/* CB_GETATTR of a file with a WRITE delegation. False: not known. */
	bool (*getattr)(void *ctx, struct nfs4_deleg *d, uint64_t *ret_change, uint64_t *ret_size);
};

/* Before lanes start. Without it there are no delegations: want_deleg means nothing. */
void nfs4_deleg_set_ops(struct nfs4_client *cl, const struct nfs4_deleg_ops *ops, void *ctx);

enum nfs4_deleg_taken {
	NFS4_DELEG_KEPT,
	NFS4_DELEG_RECALLED, /* kept, and recalled already: ops->recall was not called for it */
	NFS4_DELEG_GONE,     /* none: its client ID is over */
};

/* The delegation that a successful nfs4_open() brought is d's, which is none: from its ->done. */
enum nfs4_deleg_taken nfs4_deleg_take(struct nfs4_deleg *d, const struct nfs4_call *call);
/* The same, but it is not wanted: it is returned in the background. */
void nfs4_return_refuse(const struct nfs4_call *call);
/*
 * nfs4_deleg_open - open a file without asking the server
 *
 * st: not open, or served by d already; then it is served for this too. That this user may, the
 * caller knows (ACCESS).
 * Returns: false: d is recalled, lost, or not of a kind that allows share_access: OPEN it.
 */
bool nfs4_deleg_open(struct nfs4_deleg *d, struct nfs4_state *st, const struct rpc_cred *cred,
	uint32_t share_access, uint64_t owner, uint64_t fileid);
/* Is it good, and not recalled? Any thread. */
bool nfs4_deleg_holds(struct nfs4_deleg *d);
/* Any thread: does a delegation serve st? */
bool nfs4_deleg_serves(struct nfs4_state *st);
/*
 * nfs4_deleg_close - a state that is served is closed: nothing need be told to anybody
 *
 * Returns: false: it is not served (any more): CLOSE it.
 */
bool nfs4_deleg_close(struct nfs4_state *st);
/*
 * nfs4_claim - the server opens for st what a delegation served (OPEN CLAIM_DELEG_CUR_FH)
 *
 * call->u.open.claim is st; call->cred st's. Done without a call if it is not served (any more).
 * err: 0: st has an open of its own, or is having it again. Else: as nfs4_open(); after an answer
 * of the server's (call->status) st is lost, after none it is served as before.
 */
void nfs4_claim(struct nfs4_call *call);
/*
 * Any thread; nothing is served by it. The server is told when there is an occasion, at the latest
 * by nfs4_stop_session(), which so ends all that serve nothing (without ops->lost).
 */
void nfs4_deleg_forget(struct nfs4_deleg *d);
/* How many there are. Any thread. */
uint32_t nfs4_deleg_count(struct nfs4_client *cl);

#endif
