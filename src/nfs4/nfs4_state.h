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
	struct list lost;
};

/* A state in the hand of a session, and copies of what its OPEN needs: it may be closed meanwhile.
 */
struct nfs4_regain {
	struct nfs4_state *state; /* NULL: none, or closed. Owner: cl->states.lock */
	struct nfs4_fh fh;
	struct rpc_cred cred;
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
/* Its answer; false: the session is gone, the state waits for the next one. */
bool nfs4_reclaim_done(struct nfs4_sess *s, struct nfs4_call *call);

/* ---- any lane ---- */

/* All opens may be gone although the client ID is not (SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED). */
void nfs4_states_all_expired(struct nfs4_client *cl);
/* Opens one state of the list `reopen` after the other, in the background, while s is up. */
void nfs4_reopen_kick(struct nfs4_sess *s);
/* The session ends: what is in its hands goes back. */
void nfs4_states_release(struct nfs4_sess *s);

/* ---- calls ---- */

enum nfs4_state_verdict {
	NFS4_STATE_GO,   /* send it, again: call->stateid is set by nfs4_state_take() */
	NFS4_STATE_WAIT, /* until the state is good again: nfs4_call_wait_state() */
	NFS4_STATE_GONE, /* CLOSE: there is nothing to close any more */
	NFS4_STATE_FAIL, /* the state is lost, or it has none: -EIO */
};

/* The state a call works on; NULL: none, or the anonymous one. */
struct nfs4_state *nfs4_call_state(const struct nfs4_call *call);
/* A call of a kind that needs one is about to get a slot: sets call->stateid. */
enum nfs4_state_verdict nfs4_state_take(struct nfs4_call *call);
/* The server answered with a status of NFS4_ACT_STATE. */
enum nfs4_state_verdict nfs4_state_refused(struct nfs4_call *call);

#endif
