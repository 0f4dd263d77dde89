/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens as the session engine sees them: which stateid a call is sent with,
 * what becomes of a call whose stateid the server refuses, and how opens are
 * reclaimed after the client ID or one of them was lost. See nfs4_state.c.
 * Delegations are nfs4_deleg.h's.
 *
 * Context: the lane of the session or call, unless a function says otherwise.
 */
#ifndef RPCRDMAFS_NFS4_STATE_H
#define RPCRDMAFS_NFS4_STATE_H

#include <string.h>

#include "mutex.h"
#include "nfs4_int.h"

/* nfs4_state.status */
enum nfs4_state_status {
	NFS4_STATE_OPEN, /* good, if id_gen is the session's */
	NFS4_STATE_BAD,  /* the server refused the stateid: on the list `reopen` */
	NFS4_STATE_BUSY, /* a session is getting it again (nfs4_reclaim) */
	NFS4_STATE_LOST, /* for good: I/O fails */
};

/* nfs4_deleg.status, bits; none: it is good */
#define NFS4_DELEG_IS_RECALLED (1u << 0) /* by the server; serves no more opens */
#define NFS4_DELEG_IS_RETURNED (1u << 1) /* DELEGRETURN was started: likewise */

/* There may be one for each file that was opened lately. */
#define NFS4_DELEG_BUCKETS 1024u

/* Recalls that came before their delegations, as long as one may be on its way. */
#define NFS4_EARLY_RECALLS 16u
/* Calls that may bring one are counted by how many such recalls had come when they began. */
#define NFS4_AWAIT_EPOCHS 16u

struct nfs4_early_recall {
	struct nfs4_stateid stateid;
	uint32_t epoch; /* calls of later ones do not bring it */
};

/* Delegations (nfs4_deleg.c). Of the client; owner: states.lock. */
struct nfs4_delegs {
	/* nfs4_deleg_set_ops(): constant when lanes run */
	const struct nfs4_deleg_ops *ops; /* NULL: none are asked for */
	void *ctx;
	struct list held[NFS4_DELEG_BUCKETS]; /* of nfs4_deleg.link, by filehandle */
	uint32_t cnt;
	struct nfs4_deleg *reclaimed; /* the holder of the token asks for it: nfs4_reclaim.deleg */
	/* calls in flight that may bring one; in all, and of each epoch (modulo) */
	unsigned int awaited_cnt, awaited[NFS4_AWAIT_EPOCHS];
	uint32_t epoch; /* of now */
	struct nfs4_early_recall early[NFS4_EARLY_RECALLS];
	unsigned int early_cnt; /* ever; the last of them are there */
	struct list returns;    /* nobody's, to be returned (nfs4_return_list.c) */
	struct list returning;  /* of these, in the hand of a session */
	unsigned int return_cnt;
	/* of a process before: nfs4_keep_get_deleg() */
	bool left;      /* none is returned before what is open of its file is opened anew ... */
	bool replaying; /* ... nor before the user has done what it does: nfs4_keep_replaying() */
};

/* What the server revoked. Of the client; owner: states.lock. */
struct nfs4_revoke {
	struct list revoked;           /* revoked stateids that are to be freed */
	unsigned int freeing;          /* of these, in the hand of a session */
	struct nfs4_session *tester;   /* goes through all stateids; NULL: nobody does */
	uint32_t round;                /* test_round of those it has asked about */
	unsigned int found, fruitless; /* in this round; rounds in a row that found nothing */
	uint64_t settled_ns;           /* flags of calls sent before are about what is known */
	uint64_t next_ns;              /* no round before */
};

/*
 * Of the client: all opens.
 * Owner: `lock`, held for a few instructions; a state's own lock is taken inside it.
 *
 * I11 (open): each is on one list. In the hand of a session it is BUSY, calls on it wait, and
 *    nobody else moves it or asks the server for it; only its user may take it away, by closing it.
 *    Asserted: nfs4_state_move(), nfs4_state_take_in_hand()
 *    Test: nfs4_held::what_is_in_hand_stays_there_whoever_finds_it_gone
 */
struct nfs4_states {
	struct mutex lock;
	uint32_t id_gen;     /* cl->id_gen, the client ID they should belong to */
	bool may_reclaim;    /* from a new client ID to RECLAIM_COMPLETE or NFS4ERR_NO_GRACE */
	struct list held;    /* of nfs4_state.link */
	struct list reclaim; /* of an earlier client ID: CLAIM_PREVIOUS */
	struct list reopen;  /* too late for that, or one by one: CLAIM_FH */
	struct list in_hand; /* of a session: nfs4_reclaim */
	struct list lost;
	struct nfs4_revoke revoke;
	struct list frees; /* stateids of locks that nobody needs (nfs4_lock_free.c) */
	unsigned int free_cnt;
	struct nfs4_delegs delegs;
};

/*
 * A state in the hand of a session, and copies of what its OPEN and LOCKs need: it may be closed
 * meanwhile. From the OPEN to the last LOCK it stays there.
 */
struct nfs4_reclaim {
	struct nfs4_state *state; /* NULL: none, or closed. Owner: cl->states.lock */
	struct nfs4_fh fh;
	struct rpc_cred cred;
	uint32_t id_gen; /* client ID that it is open for: nfs4_lock_reclaim_take() */
	/* The lock that is asked for; lo NULL: none, or freed. Owner: cl->states.lock */
	struct nfs4_lockowner *lo;
	struct nfs4_lockrange *range;
	bool other_file; /* what the OPEN opened is not what it was */
	bool deleg;      /* it asks for states.delegs.reclaimed too */
};

void nfs4_state_init(struct nfs4_states *all);
/* The users' states may outlive the client; they are not open any more. */
void nfs4_state_fini(struct nfs4_states *all);

/* ---- by the holder of the token ---- */

/* cl->id_gen has changed: what was held is to be reclaimed. */
void nfs4_state_new_client(struct nfs4_client *cl);
/* RECLAIM_COMPLETE was sent, or the server takes no reclaims: what is left is opened anew. */
void nfs4_state_no_grace(struct nfs4_client *cl);
/* Takes the next state to be reclaimed and fills s->ctl for it. False: none is left. */
bool nfs4_reclaim_next(struct nfs4_session *s);
/* The same for the next lock of the state in hand. False: it has all, and is in nobody's hand. */
bool nfs4_reclaim_lock(struct nfs4_session *s);
/* The answer to either; false: the session is gone, the state waits for the next one. */
bool nfs4_reclaim_done(struct nfs4_session *s, struct nfs4_call *call);
/* The token is given away in the middle: whoever has it next starts over. */
void nfs4_reclaim_release(struct nfs4_session *s);

/* ---- any lane ---- */

/* sid, of st or of its locks, is gone: opened anew, or lost. states.lock is held. */
void nfs4_state_bad(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_stateid *sid,
	enum nfs4_status status);
/* Opens one state of the list `reopen` after the other, in the background, while s is up. */
void nfs4_reclaim_kick(struct nfs4_session *s);
void nfs4_reclaim_timer(struct reactor_timer *t);
/* An OPEN or LOCK of it was answered DELAY: it ends, another open has its turn. */
bool nfs4_reclaim_passes(const struct nfs4_call *call);
/* The session ends: what is in its hands goes back. */
void nfs4_reclaim_release_all(struct nfs4_session *s);

/* ---- for nfs4_reclaim.c, nfs4_share.c and nfs4_deleg.c; states.lock held ---- */

/* Of the user's memory a state that is on no list yet. */
void nfs4_state_begin(struct nfs4_state *st, struct nfs4_client *cl, const struct nfs4_fh *fh,
	const struct rpc_cred *cred, uint64_t owner);
/* It is not open any more. The caller destroys its lock, without states.lock. */
void nfs4_state_end_of(struct nfs4_states *all, struct nfs4_state *st);

/* Refusals of fresh stateids that one call bears, or OPENs without an answer one state. */
#define NFS4_STATE_TRIES 3u

/* The only place that changes nfs4_state.status. */
void nfs4_state_move(struct nfs4_state *st, struct list *to, enum nfs4_state_status status);
/* A stateid of client ID id_gen is there: is that still the client ID? */
void nfs4_state_place(struct nfs4_states *all, struct nfs4_state *st, uint32_t id_gen);
/* It is lost, or one of its locks: the server still has it open then. Logs. */
void nfs4_state_lose(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why);
void nfs4_state_lose_lock(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why);
/* The open was reclaimed and its locks were not: what is closed is to be closed there. */
void nfs4_state_note_there(struct nfs4_state *st);
/* Into the hand of the session whose rg it is. */
void nfs4_state_take_in_hand(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_reclaim *rg);
/* Out of the session's hand; NULL: it was closed meanwhile. */
struct nfs4_state *nfs4_state_let_go(struct nfs4_reclaim *rg);
/* The union of modes, of which bit 1 << share_access stands for one. Pure. */
uint32_t nfs4_state_access_of(uint32_t modes);
/* Does the server have it open for all that its users believe? */
bool nfs4_state_has_all(const struct nfs4_state *st);
/* To the list `reopen`; the server has it open, for less than is needed or we do not know what. */
void nfs4_state_reopen(struct nfs4_states *all, struct nfs4_state *st);

/* ---- stateids that the server revoked (nfs4_revoked.c); states.lock held ---- */

struct nfs4_revoked {
	struct list link;
	struct nfs4_stateid stateid;
	struct rpc_cred cred; /* whoever opened or locked */
	uint32_t id_gen;
	unsigned int tries;
};

void nfs4_revoked_fini(struct nfs4_revoke *rv);
/* sid is to be freed as `cred`. */
void nfs4_revoked_add(struct nfs4_states *all, const struct nfs4_stateid *sid,
	const struct rpc_cred *cred, uint32_t id_gen);
/* The same for the locks that hang on an open. */
void nfs4_revoked_add_locks(struct nfs4_states *all, struct nfs4_state *st);
/* Those of earlier client IDs are gone with them. */
void nfs4_revoked_purge(struct nfs4_states *all);
/* The lock is not held: are there any? Nothing is to be opened anew before they are freed. */
bool nfs4_revoked_pending(struct nfs4_states *all);
/*
 * The lock is not held. The server refused the stateid of `call`, which is that of st or (st NULL)
 * of d: if it was revoked, it is to be freed.
 */
void nfs4_revoked_note(struct nfs4_call *call, struct nfs4_state *st, const struct nfs4_deleg *d);

/* ---- calls ---- */

/* The state a call works on; NULL: none, or the anonymous one. */
struct nfs4_state *nfs4_state_of(const struct nfs4_call *call);
/* For desc->take: call->stateid is the newest of this open. */
enum nfs4_state_verdict nfs4_state_take_from(struct nfs4_call *call, struct nfs4_state *st);
/*
 * For desc->refused: its state is not what it was. of_locks: the call bears this one, of locks on
 * that state; NULL: it bears the state's. Without a state NFS4_STATE_FAIL.
 */
enum nfs4_state_verdict nfs4_state_refused(struct nfs4_call *call, struct nfs4_stateid *of_locks);
/* Of a call that is not to be sent: it ends with err. */
enum nfs4_state_verdict nfs4_state_end(struct nfs4_call *call, int err);

/* Newer by a server's count, which wraps (RFC 8881 section 8.2.2); 0: whichever is the newest. */
static inline bool nfs4_state_is_newer(uint32_t seqid, uint32_t than)
{
	return than == 0 || (int32_t)(seqid - than) > 0;
}

static inline bool nfs4_state_same_other(const struct nfs4_stateid *a, const struct nfs4_stateid *b)
{
	return memcmp(a->other, b->other, sizeof(a->other)) == 0;
}

#endif
