/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens as the session engine sees them: which stateid a call is sent with,
 * what becomes of a call whose stateid the server refuses, and how opens are
 * had again after the client ID or one of them was lost. See nfs4_state.c.
 *
 * Context: the lane of the session or call, unless a function says otherwise.
 */
#ifndef RPCRDMAFS_NFS4_STATE_H
#define RPCRDMAFS_NFS4_STATE_H

#include "nfs4_int.h"

/* nfs4_state.status */
enum nfs4_state_status {
	NFS4_STATE_OPEN, /* good, if id_gen is the session's */
	NFS4_STATE_BAD,  /* the server refused the stateid: on the list `reopen` */
	NFS4_STATE_BUSY, /* a session is getting it again (nfs4_regain) */
	NFS4_STATE_LOST, /* for good: I/O fails */
};

/* What the server revoked. Of the client; owner: states.lock. */
struct nfs4_revoke {
	struct list graves;            /* revoked stateids that are to be freed */
	unsigned int burying;          /* of these, in the hand of a session */
	struct nfs4_sess *tester;      /* goes through all stateids; NULL: nobody does */
	uint32_t round;                /* nfs4_state.test_round of those it has asked about */
	unsigned int found, fruitless; /* in this round; rounds in a row that found nothing */
	uint64_t settled_ns;           /* flags of calls sent before are about what is known */
	uint64_t next_ns;              /* no round before */
};

/*
 * Of the client: all opens, each on one list, or in the hand of a session.
 * Owner: `lock`, held for a few instructions; a state's own lock is taken inside it.
 */
struct nfs4_states {
	pthread_mutex_t lock;
	uint32_t id_gen;     /* cl->id_gen, the client ID they should belong to */
	bool may_reclaim;    /* from a new client ID to RECLAIM_COMPLETE or NFS4ERR_NO_GRACE */
	struct list held;    /* of nfs4_state.link */
	struct list reclaim; /* of an earlier client ID: CLAIM_PREVIOUS */
	struct list reopen;  /* too late for that, or one by one: CLAIM_FH */
	struct list in_hand; /* of a session: nfs4_regain */
	struct list lost;
	struct nfs4_revoke revoke;
	struct list frees; /* stateids of locks that nobody needs (nfs4_lock_regain.c) */
	unsigned int free_cnt;
};

/*
 * A state in the hand of a session, and copies of what its OPEN and LOCKs need: it may be closed
 * meanwhile. From the OPEN to the last LOCK it stays there.
 */
struct nfs4_regain {
	struct nfs4_state *state; /* NULL: none, or closed. Owner: cl->states.lock */
	struct nfs4_fh fh;
	struct rpc_cred cred;
	uint32_t id_gen; /* client ID that it is open for; calls with desc->regains bear its
			    stateids */
	/* The lock that is asked for; lo NULL: none, or freed. Owner: cl->states.lock */
	struct nfs4_lockowner *lo;
	struct nfs4_lockrange *range;
	bool other_file; /* what the OPEN opened is not what it was */
};

void nfs4_states_init(struct nfs4_states *all);
/* The users' states may outlive the client; they are not open any more. */
void nfs4_states_fini(struct nfs4_states *all);

/* ---- by the holder of the token ---- */

/* cl->id_gen has changed: what was held is to be reclaimed. */
void nfs4_states_new_client(struct nfs4_client *cl);
/* RECLAIM_COMPLETE was sent, or the server takes no reclaims: what is left is opened anew. */
void nfs4_states_no_grace(struct nfs4_client *cl);
/* Takes the next state to be reclaimed and fills s->ctl for it. False: none is left. */
bool nfs4_reclaim_next(struct nfs4_sess *s);
/* The same for the next lock of the state in hand. False: it has all, and is in nobody's hand. */
bool nfs4_reclaim_lock(struct nfs4_sess *s);
/* The answer to either; false: the session is gone, the state waits for the next one. */
bool nfs4_reclaim_done(struct nfs4_sess *s, struct nfs4_call *call);
/* The token is given away in the middle: whoever has it next starts over. */
void nfs4_reclaim_release(struct nfs4_sess *s);

/* ---- any lane ---- */

/* sid, of st or of its locks, is gone: opened anew, or lost. states.lock is held. */
void nfs4_state_bad(struct nfs4_states *all, struct nfs4_state *st, const struct nfs4_stateid *sid,
	enum nfs4_status status);
/* Opens one state of the list `reopen` after the other, in the background, while s is up. */
void nfs4_reopen_kick(struct nfs4_sess *s);
/* The session ends: what is in its hands goes back. */
void nfs4_states_release(struct nfs4_sess *s);

/* ---- for nfs4_regain.c; states.lock held ---- */

/* Refusals of fresh stateids that one call bears, or OPENs without an answer one state. */
#define NFS4_STATE_TRIES 3u

void nfs4_state_move(struct nfs4_state *st, struct list *to, enum nfs4_state_status status);
/* A stateid of client ID id_gen is there: is that still the client ID? */
void nfs4_state_place(struct nfs4_states *all, struct nfs4_state *st, uint32_t id_gen);
/* It is lost, or one of its locks: the server still has it open then. Logs. */
void nfs4_state_lose(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why);
void nfs4_state_lose_lock(struct nfs4_states *all, struct nfs4_state *st, enum nfs4_status why);
/* The open was had again and its locks were not: what is closed is to be closed there. */
void nfs4_state_note_there(struct nfs4_state *st);
/* Out of the session's hand; NULL: it was closed meanwhile. */
struct nfs4_state *nfs4_regain_let_go(struct nfs4_regain *rg);

/* ---- calls ---- */

enum nfs4_state_verdict {
	NFS4_STATE_GO,   /* send it, again: call->stateid is set by nfs4_state_take() */
	NFS4_STATE_WAIT, /* until the state is good again: nfs4_call_wait_state() */
	NFS4_STATE_GONE, /* CLOSE: there is nothing to close any more */
	NFS4_STATE_FAIL, /* the state is lost, or it has none: -EIO */
	NFS4_STATE_END,  /* nothing is to be sent: it ends with call->err */
};

/* The state a call works on; NULL: none, or the anonymous one. */
struct nfs4_state *nfs4_call_state(const struct nfs4_call *call);
/* A call of a kind that needs one is about to get a slot: sets call->stateid. */
enum nfs4_state_verdict nfs4_state_take(struct nfs4_call *call);
/* The part of it that looks at one open. */
enum nfs4_state_verdict nfs4_state_take_from(struct nfs4_call *call, struct nfs4_state *st);
/* The server answered with a status of NFS4_ACT_STATE. */
enum nfs4_state_verdict nfs4_state_refused(struct nfs4_call *call);

#endif
