/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that must not be executed twice, and that a process before this one sent and had no answer
 * to: it was killed. They are sent again as they were, slot, number and all, before its session is
 * destroyed: the server answers from its reply cache, or executes them now (RFC 8881 section
 * 2.10.6.1.3). Either way it is known then whether they were done.
 *
 * Context: the holder of the token; nfs4_redo_was_done(): any lane, when a session is up.
 */
#ifndef RPCRDMAFS_NFS4_REDO_H
#define RPCRDMAFS_NFS4_REDO_H

#include "nfs4_int.h"

struct nfs4_session;

extern const struct nfs4_opdesc nfs4_redo_desc;

/* A call is about to be sent, or again: c is its COMPOUND. */
void nfs4_redo_sent(struct nfs4_call *call, const struct nfs4_compound *c);
/* The COMPOUND has this status; before its slot is another call's. */
void nfs4_redo_answered(struct nfs4_call *call, enum nfs4_status status);

void nfs4_redo_init(struct nfs4_client *cl);
void nfs4_redo_fini(struct nfs4_client *cl);
/* The next one, for s->ctl by nfs4_redo_desc. Returns: its credential; NULL: there is none. */
const struct rpc_cred *nfs4_redo_next(struct nfs4_session *s);
/* All are asked for. Whoever follows that process after this one will know (nfs4_keep_before()). */
void nfs4_redo_note(struct nfs4_client *cl);
/* It was answered, or was not. */
void nfs4_redo_done(struct nfs4_session *s, const struct nfs4_call *call);

#endif
