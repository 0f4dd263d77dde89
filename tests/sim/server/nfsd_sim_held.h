/* SPDX-License-Identifier: BSD-3-Clause */
/* Delegations and callbacks inside the simulated server. sim->lock is held unless it says so. */
#ifndef RPCRDMAFS_NFSD_SIM_HELD_H
#define RPCRDMAFS_NFSD_SIM_HELD_H

#include "nfsd_sim_int.h"

/* What a client must not do, unless it was lied to. */
#define BLAME_STATE(c, ...)                                                                        \
	do {                                                                                       \
		if (!(c)->sim->conf.tolerant_state)                                                \
			fab_sim_fail(__VA_ARGS__);                                                 \
	} while (0)

/* One for each client and file; the stateid's seqid is 1 always, as nfsd's. */
struct deleg {
	struct list link;
	struct client *client;
	struct node *node;
	uint8_t other[12];
	uint32_t type; /* NFSD_SIM_DELEG_READ or _WRITE */
	uint32_t uid;  /* who opened the file */
	/* What is said of it; 0: it is good; ST_BAD_STATEID: forgotten, and nobody was told */
	uint32_t revoked;
	/* its recall */
	bool recalled;
	uint64_t recalled_ns; /* first time; 0: with the OPEN reply, or never */
	uint64_t agreed_ns;   /* the client said yes; 0: not yet */
	unsigned int refusals;
	uint8_t cb_session[16]; /* it was last sent on, with this number */
	uint32_t cb_seq;
};

/* A copy that goes on. */
struct copying {
	struct list link;
	struct client *client;
	struct node *src, *dst;
	uint64_t src_off, off, count;
	uint8_t other[12];
	/* how it ended */
	uint32_t status;
	uint64_t bytes;
	bool stable;
};

/* A call to the client. */
struct cb_args {
	enum nfsd_sim_cb what;
	const struct lock_range *lock; /* CB_NOTIFY_LOCK; NULL: nobody's */
	struct deleg *deleg;           /* CB_RECALL, CB_GETATTR; NULL: one that never was */
	const struct cmp *refers;      /* the call whose reply must come first; NULL: not said */
	const struct copying *copy;    /* CB_OFFLOAD; NULL: one that never was */
	uint32_t keep, mask;           /* CB_RECALL_ANY */
};

/* nfsd_sim_deleg.c */
struct deleg *deleg_find(struct nfsd_sim *sim, const uint8_t *other);
/* Of this client and file, and good. */
struct deleg *deleg_of(struct nfsd_sim *sim, const struct client *cl, const struct node *n);
void deleg_drop(struct nfsd_sim *sim, struct deleg *d);
void delegs_drop(struct nfsd_sim *sim, const struct client *cl);
bool delegs_held(const struct nfsd_sim *sim, const struct client *cl);
/* As state_check(). */
uint32_t deleg_check(
	struct cmp *c, const struct deleg *d, const struct stateid *sid, uint32_t need);
/* CLAIM_DELEG_CUR_FH. */
uint32_t deleg_claim(struct cmp *c, const struct stateid *sid, uint32_t access);
uint32_t deleg_free_stateid(struct nfsd_sim *sim, struct deleg *d);
/* open_delegation4 of a successful OPEN; access: with its WANT bits. */
void wr_delegation(
	struct cmp *c, struct node *n, uint32_t claim, uint32_t access, uint32_t deleg_type);
/* Delegations of others in the way of `access`: they are recalled. cl NULL: of anybody. */
bool deleg_conflict(struct nfsd_sim *sim, struct node *n, const struct client *cl, uint32_t access);
/* The client is heard of: has it returned in time what was recalled? */
void delegs_judge(struct cmp *c);

/* What COPY and CLONE begin with (nfsd_sim_copy.c); from the saved filehandle to the current one.
 */
struct copy_args {
	struct stateid src, dst;
	uint64_t src_off, off, count;
};
void rd_copy_args(struct rd *r, struct copy_args *args);
/* A status; records what the client must not do. name: of the operation. */
uint32_t copy_check(struct cmp *c, const char *name, const struct copy_args *args);

/* The so-manieth of the client, from 0; NULL: there is none. */
struct session *nth_session(struct nfsd_sim *sim, const struct client *cl, unsigned int nth);

/* nfsd_sim_state.c: whose it was before the restart. */
uint32_t held_deleg_uid(struct nfsd_sim *sim, const struct client *cl, const struct node *n);

#define OP_CB_SEQUENCE 11u
#define OP_CB_GETATTR  3u

/* nfsd_sim_cb_msg.c; s NULL: with a session that never was. Takes the next number of the slot. */
void cb_build(struct nfsd_sim *sim, struct wr *w, struct session *s, uint32_t xid,
	const struct cb_args *a);
/* nfsd_sim_cb.c */
/* Returns the calls sent: 0 or 1. session: NULL: any with a backchannel. */
unsigned int callback_to(
	struct nfsd_sim *sim, const struct client *cl, struct session *s, const struct cb_args *a);
/* CB_NOTIFY_LOCK; returns the calls sent. */
unsigned int callback_lock(struct nfsd_sim *sim, const struct lock_range *w);
/* A backchannel is there (again): recalls that were not answered. */
void recalls_again(struct nfsd_sim *sim, struct session *s);
bool back_is_up(struct nfsd_sim *sim, const struct session *s);
/* A reply to one of our calls. */
void cb_reply(struct sconn *conn, const uint8_t *msg, size_t len);
void cbs_drop(struct sconn *conn);

#endif
