/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our state on the server, for the process that takes the mount over (tables.h). It goes on
 * with the same client ID: EXCHANGE_ID with the same owner and verifier (RFC 8881 section 18.35.4,
 * case 2) says that the server still has it, and what is open and locked is as it was; a server
 * that was restarted meanwhile has another, and all is reclaimed before the first session is up.
 * Sessions are not carried on: no call is on its way, and the successor destroys them.
 *
 * States and lock owners are fields of their users' records, whose numbers begin at
 * NFS4_KEEP_FIELDS.
 *
 * Context: to put, the main thread while no lane runs anything; to get, before lanes start.
 */
#ifndef RPCRDMAFS_NFS4_KEEP_H
#define RPCRDMAFS_NFS4_KEEP_H

#include "nfs4_held.h"
#include "slab.h"
#include "tables.h"

/* Types of records; but for the first they are for live.h alone. */
#define NFS4_KEEP_CLIENT  1u
#define NFS4_KEEP_SESSION 2u
#define NFS4_KEEP_STATE   3u
#define NFS4_KEEP_LOCKS   4u
#define NFS4_KEEP_ONCE    5u /* a call that must not be executed twice */
#define NFS4_KEEP_DELEG   6u

/*
 * Where they stand in live.h. The group of an open is its owner's number; the user's own records of
 * it have other minor numbers, and are there before the state is, and longer.
 */
#define NFS4_KEEP_RANK        10u
#define NFS4_KEEP_RANK_DELEGS 35u
#define NFS4_KEEP_RANK_OPENS  40u
#define NFS4_KEEP_RANK_ONCE   80u
#define NFS4_KEEP_MINOR_STATE 10u
#define NFS4_KEEP_MINOR_LOCKS 30u

/* Numbers of fields in records of others. */
#define NFS4_KEEP_FIELDS 1000u

/* Locked ranges of one owner in one file, after nfs4_keep_live(): all of them are one record. */
#define NFS4_KEEP_RANGES 16384u

/*
 * nfs4_keep_obstacle - what keeps it from being written down now
 *
 * Returns: NULL: nothing. Else a few words: what is recovered or returned, which soon is over.
 */
const char *nfs4_keep_obstacle(struct nfs4_client *cl);
/* The record of the client, without the sessions ... */
void nfs4_keep_put_client(struct tables_out *t, struct nfs4_client *cl);
/* ... which are put next, each. */
void nfs4_keep_put_session(struct tables_out *t, const struct nfs4_session *s);
/*
 * nfs4_keep_live - from now on all that we have on the server is in this memory too
 *
 * After nfs4_client_new(), before anything is got or a session is made; the memory outlives the
 * client. bufs: of the sessions' data buffers.
 */
void nfs4_keep_live(struct nfs4_client *cl, struct live *live, const struct slab_memory *bufs);
/*
 * nfs4_keep_before - the memory that what is got comes from, of a process that died
 *
 * fd: the caller's. Before its sessions are destroyed it is noted there which of its calls the
 * server has executed (nfs4_redo.h): a process that follows it after this one cannot ask any more.
 * Before a lane starts. Returns: 0; -errno: it will not be noted.
 */
int nfs4_keep_before(struct nfs4_client *cl, int fd);
/* One that the process before this one has, as NFS4_KEEP_SESSION says. */
void nfs4_keep_get_session(const struct tables_record *r, struct nfs4_client *cl);
/*
 * The request (struct nfs4_once) that NFS4_KEEP_ONCE is of. nfs4_redo_get(): it is asked for
 * when the first session is made, if its answer is not known. Returns: 0; -EBADMSG; -ENOMEM.
 */
uint64_t nfs4_redo_request_of(const struct tables_record *r);
int nfs4_redo_get(const struct tables_record *r, struct nfs4_client *cl);
/* Any lane, when a session is up: did the server do it, for the process before? */
bool nfs4_redo_was_done(struct nfs4_client *cl, uint64_t request);
/* The request is answered: nobody will ask for it again. Any lane. */
void nfs4_redo_over(struct nfs4_client *cl, struct nfs4_once *once);
/* The owner's number that NFS4_KEEP_LOCKS, or the fields of an owner of locks, are of. */
uint64_t nfs4_keep_number_of(const struct tables_record *r);
void nfs4_keep_put_number(struct tables_out *t, const struct nfs4_lockowner *lo);
/* The owner that NFS4_KEEP_STATE is of. */
uint64_t nfs4_keep_owner_of(const struct tables_record *r);
/*
 * nfs4_keep_get_client - after nfs4_client_new()
 *
 * sequence_known: no other process has used this record, so that csa_sequence is still the next
 * one. Returns: 0; -EBADMSG: it is no record of a client, or of one with another owner.
 */
int nfs4_keep_get_client(
	const struct tables_record *r, struct nfs4_client *cl, bool sequence_known);

/* Fields of an open that is not served by a delegation; st->fh is the user's to put. */
void nfs4_keep_put_state(struct tables_out *t, struct nfs4_state *st);
/* It is open as it was. Returns: 0; -EBADMSG: the fields are not those of an open. */
int nfs4_keep_get_state(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_state *st, const struct nfs4_fh *fh);
/*
 * The same of an open that a delegation served: the server does not know of it. It is opened anew,
 * by the same owner; calls on it wait for that. If the server was restarted it is reclaimed.
 */
void nfs4_keep_get_served(struct nfs4_client *cl, struct nfs4_state *st, const struct nfs4_fh *fh,
	const struct rpc_cred *cred, uint32_t share_access, uint64_t owner, uint64_t fileid);
/*
 * NFS4_KEEP_DELEG: the process before had it, and it is returned in the background, when what it
 * served is opened anew. Returns: 0; -EBADMSG.
 */
int nfs4_keep_get_deleg(const struct tables_record *r, struct nfs4_client *cl);
/* The user does again what the process before was asked for: no delegation is returned before. */
void nfs4_keep_replaying(struct nfs4_client *cl);
/* Not any more. The session's lane. */
void nfs4_keep_replayed(struct nfs4_session *s);
/* Fields of a lock owner that hangs on an open. */
void nfs4_keep_put_lockowner(struct tables_out *t, struct nfs4_lockowner *lo);
/* It holds what it held. st: the open. Returns: 0; -EBADMSG; -ENOMEM. */
int nfs4_keep_get_lockowner(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_lockowner *lo, struct nfs4_state *st);

#endif
