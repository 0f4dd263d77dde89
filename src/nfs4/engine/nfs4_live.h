/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our state on the server, as it is now, in memory that outlives this process (live.h): records of
 * nfs4_keep.h. Each function puts anew what has just changed, before anybody is told of it, so that
 * whoever takes the mount over after a crash knows all that the kernel and the server were told.
 * Without such memory they do nothing.
 */
#ifndef RPCRDMAFS_NFS4_LIVE_H
#define RPCRDMAFS_NFS4_LIVE_H

#include "nfs4_held.h"

struct nfs4_session;
struct nfs4_states;

/* The holder of the token: the client ID, or whether all is reclaimed, is another. */
void nfs4_live_client(struct nfs4_client *cl);
/* The session's lane: the server has one, or another, or none any more. */
void nfs4_live_session(struct nfs4_session *s);
/* states.lock held: its stateid, what it is open for, or whether it is lost. cl NULL: it is over.
 */
void nfs4_live_state(struct nfs4_state *st, struct nfs4_client *cl);
/* states.lock held: its stateid, its ranges, or the open that it hangs on. */
void nfs4_live_locks(struct nfs4_lockowner *lo);
/*
 * states.lock held: a delegation that the server gave, held or about to be returned. sid NULL: it
 * has it back, or *ref's record is another's now.
 */
void nfs4_live_deleg(struct nfs4_states *all, live_ref *ref, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen);

#endif
