/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations as the session engine sees them (nfs4_deleg.c), what the server
 * says of them (nfs4_recall.c), and how they are returned (nfs4_return*.c).
 *
 * Context: states.lock is held, unless a function says otherwise; the lane of
 * the session or call.
 */
#ifndef RPCRDMAFS_NFS4_DELEG_H
#define RPCRDMAFS_NFS4_DELEG_H

#include "nfs4_state.h"

static inline bool nfs4_deleg_is(enum nfs4_deleg_type type)
{
	return type == OPEN_DELEGATE_READ || type == OPEN_DELEGATE_WRITE;
}

/* By its stateid, of the client ID of now; by its file and type. */
struct nfs4_deleg *nfs4_deleg_find(
	const struct nfs4_states *all, const struct nfs4_fh *fh, const struct nfs4_stateid *sid);
struct nfs4_deleg *nfs4_deleg_find_file(
	const struct nfs4_states *all, const struct nfs4_fh *fh, bool write);
/* Calls fn for each, which may drop it; true: enough. */
void nfs4_deleg_each(struct nfs4_states *all,
	bool (*fn)(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx), void *ctx);
/* It is none. */
void nfs4_deleg_drop(struct nfs4_delegs *ds, struct nfs4_deleg *d);
void nfs4_deleg_init(struct nfs4_delegs *ds);
/* The users' delegations may outlive the client; they are none any more. */
void nfs4_deleg_fini(struct nfs4_delegs *ds);

/* ---- what they serve ---- */

/* Does it allow for opens of this kind? */
bool nfs4_deleg_allows(const struct nfs4_deleg *d, uint32_t share_access);
/* It serves st no more: whoever says so puts st on the list where it belongs. */
void nfs4_deleg_unserve(struct nfs4_state *st);
/*
 * The server does not take its stateid any more: what it served is to be opened anew, and it is
 * none.
 */
void nfs4_deleg_bad(struct nfs4_states *all, struct nfs4_deleg *d);
/* An I/O call on a state that it serves was refused so. */
enum nfs4_state_verdict nfs4_deleg_refused(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call);

/* ---- another client ID ---- */

/* Those that serve something, and are not recalled, may be reclaimed; the others are lost. */
void nfs4_deleg_new_client(struct nfs4_states *all);
/* Those of earlier client IDs are lost. */
void nfs4_deleg_no_grace(struct nfs4_states *all);
/* st is to be reclaimed by `o`, and is not served any more: with its delegation? */
void nfs4_deleg_reclaim(struct nfs4_states *all, struct nfs4_reclaim *rg, struct nfs4_state *st,
	struct nfs4_op_open *o);
/* The answer to that. session_gone: it was none, the next session asks again. */
void nfs4_deleg_reclaimed(struct nfs4_states *all, struct nfs4_reclaim *rg,
	const struct nfs4_call *call, bool session_gone);
/* There is no answer. */
void nfs4_deleg_release(struct nfs4_states *all, struct nfs4_reclaim *rg);

/*
 * The lock is not held. OPEN brought one that is not wanted: it is to be returned, as soon as
 * nfs4_lease_kick() is called.
 */
void nfs4_deleg_give_back(const struct nfs4_call *call);

/* ---- calls of the server (nfs4_recall.c); the lock is not held ---- */

/* Was it recalled before it came? The lock is held. */
bool nfs4_recall_is_early(const struct nfs4_delegs *ds, const struct nfs4_stateid *sid);

enum nfs4_status nfs4_recall_one(
	struct nfs4_client *cl, const struct nfs4_stateid *sid, const struct nfs4_fh *fh);
void nfs4_recall_any(struct nfs4_client *cl, uint32_t keep, bool read, bool write);
bool nfs4_recall_getattr(
	struct nfs4_client *cl, const struct nfs4_fh *fh, uint64_t *ret_change, uint64_t *ret_size);

bool nfs4_deleg_same_fh(const struct nfs4_fh *a, const struct nfs4_fh *b);

/* ---- returned in the background: what is (nfs4_return_list.c) ---- */

struct nfs4_deleg_return {
	struct list link;
	struct nfs4_fh fh;
	struct nfs4_stateid stateid;
	struct rpc_cred cred;
	uint32_t id_gen;
	live_ref live_ref; /* nfs4_live.h */
	unsigned int tries;
};

/* It is nobody's. Without memory the server keeps it until it revokes it. */
void nfs4_return_list_push(struct nfs4_states *all, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen);
/* One of this file that is to be returned, and is not yet; NULL: there is none. */
const struct nfs4_stateid *nfs4_return_list_of(
	const struct nfs4_states *all, const struct nfs4_fh *fh);
/* Is it being returned? */
bool nfs4_return_list_knows(const struct nfs4_states *all, const struct nfs4_stateid *sid);
/* The server does not have it, or has revoked it: it is not to be returned any more. */
void nfs4_return_list_drop(struct nfs4_states *all, const struct nfs4_stateid *sid, bool revoked);
/* It is returned, or given up. */
void nfs4_return_list_pop(struct nfs4_delegs *ds, struct nfs4_deleg_return *ret);
/* With their client ID they are gone. */
void nfs4_return_list_purge(struct nfs4_states *all);
void nfs4_return_list_fini(struct nfs4_delegs *ds);

/* ---- and how (nfs4_return_send.c); the lock is not held ---- */

/* As nfs4_revoke_due() and _next(). */
bool nfs4_return_send_due(struct nfs4_session *s);
const struct nfs4_opdesc *nfs4_return_send_next(struct nfs4_session *s);
/*
 * The session ends: fills s->ctl with the next that is to be returned, also of those that are
 * somebody's and serve nothing. False: none is left.
 */
bool nfs4_return_send_last(struct nfs4_session *s);
void nfs4_return_send_last_done(struct nfs4_session *s, const struct nfs4_call *call);
extern const struct nfs4_opdesc nfs4_return_send_last_desc;
/* For that: all that serve nothing are to be returned, and none. The lock is held. */
void nfs4_deleg_give_up(struct nfs4_states *all);

#endif
