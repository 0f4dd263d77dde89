/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations that are nobody's are returned: those refused or forgotten by the
 * user, or given though nobody asked. Until they are returned other clients wait
 * for them, and maybe OPENs of ours: not behind those, therefore, but by
 * sess->renew, as what is said about revoked state (nfs4_revoke.c).
 *
 * Tried a few times; with the client ID they are gone. Sessions that are stopped
 * return what is left, also what is somebody's: a server does not let a client
 * go that has a delegation (NFS4ERR_CLIENTID_BUSY).
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

#include <errno.h>

#define MAX_TRIES 3u
/* 100, 200 and 400 ms: then the others have their turn. */
#define MAX_DELAYS 3u

/* The stateid of a client ID that is gone may mean something else to the server. */
static int return_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_session_renew_is_current(call) ? nfs4_return_xdr_encode(call, c) : -ESTALE;
}

static int return_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	int err = nfs4_return_xdr_decode(call, c);

	/* The lease is kept by the same call, and what is revoked told. */
	if (!err && nfs4_status_action(c->status) == NFS4_ACT_DELAY && call->tries >= MAX_DELAYS)
		c->status = NFS4ERR_RESOURCE;
	return err;
}

static void return_ended(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_deleg_return *ret = s->testing.ret;
	bool gone = !call->err || nfs4_status_action(call->status) == NFS4_ACT_STATE;

	s->testing.ret = NULL;
	if (call->err && call->status != NFS4_OK && !gone)
		log_info("%s: a delegation that is not wanted cannot be returned: %s", s->peer,
			nfs4_status_name(call->status));
	mutex_lock(&all->lock);
	if (nfs4_status_is_revoked(call->status))
		nfs4_revoked_add(all, &ret->stateid, &ret->cred, ret->id_gen);
	list_del(&ret->link);
	if (gone || ++ret->tries >= MAX_TRIES)
		nfs4_return_list_pop(&all->delegs, ret);
	else
		list_push_back(&all->delegs.returns, &ret->link);
	mutex_unlock(&all->lock);
	call->done(call);
}

static const struct nfs4_opdesc return_desc = {
	.name = "DELEGRETURN",
	.encode = return_encode,
	.decode = return_decode,
	.ended = return_ended,
	.cachethis = true,
	.repeatable = true,
};

/* Those of a process before serve opens, until these are opened anew. states.lock held. */
static bool is_held_back(struct nfs4_states *all)
{
	if (all->delegs.left)
		all->delegs.left = all->delegs.replaying || !list_empty(&all->reopen) ||
				   !list_empty(&all->reclaim) || !list_empty(&all->in_hand);
	return all->delegs.left;
}

bool nfs4_return_send_due(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool due;

	mutex_lock(&all->lock);
	nfs4_return_list_purge(all);
	due = !list_empty(&all->delegs.returns) && s->id_gen == all->id_gen && !is_held_back(all);
	mutex_unlock(&all->lock);
	return due;
}

const struct nfs4_opdesc *nfs4_return_send_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_call *call = &s->renew;
	struct list *node = NULL;
	struct nfs4_deleg_return *ret;

	mutex_lock(&all->lock);
	nfs4_return_list_purge(all);
	if (s->id_gen == all->id_gen && !is_held_back(all))
		node = list_pop_front(&all->delegs.returns);
	if (node)
		list_push_back(&all->delegs.returning, node);
	mutex_unlock(&all->lock);
	if (!node)
		return NULL;
	ret = container_of(node, struct nfs4_deleg_return, link);
	s->testing.ret = ret;
	s->testing.id_gen = s->id_gen;
	/* Nobody looks at the attributes. */
	call->u.delegreturn = (struct nfs4_op_delegreturn){.fh = &ret->fh, .no_attr = true};
	call->stateid = ret->stateid;
	call->cred = &ret->cred;
	return &return_desc;
}

/* ---- at the end ---- */

const struct nfs4_opdesc nfs4_return_send_last_desc = {
	.name = "DELEGRETURN",
	.encode = nfs4_return_xdr_encode,
	.decode = nfs4_return_xdr_decode,
	.cachethis = true,
	.repeatable = true,
};

bool nfs4_return_send_last(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct list *node = NULL;

	/* A session that was to be made anew takes no calls. */
	if (s->state != NFS4_SESSION_STOPPING || s->need || s->no_byes)
		return false;
	mutex_lock(&all->lock);
	if (s->id_gen == all->id_gen) {
		nfs4_deleg_give_up(all);
		nfs4_return_list_purge(all);
		node = list_pop_front(&all->delegs.returns);
	}
	if (node)
		list_push_back(&all->delegs.returning, node);
	mutex_unlock(&all->lock);
	if (!node)
		return false;
	s->bye = container_of(node, struct nfs4_deleg_return, link);
	s->ctl.u.delegreturn = (struct nfs4_op_delegreturn){.fh = &s->bye->fh, .no_attr = true};
	s->ctl.stateid = s->bye->stateid;
	s->ctl.cred = &s->bye->cred;
	return true;
}

void nfs4_return_send_last_done(struct nfs4_session *s, const struct nfs4_call *call)
{
	struct nfs4_states *all = &s->cl->states;

	/* Whatever the file's trouble is: the others are tried. */
	s->no_byes = call->err && (call->status == NFS4_OK ||
					  nfs4_status_action(call->status) == NFS4_ACT_SESSION ||
					  nfs4_status_action(call->status) == NFS4_ACT_CLIENT);
	mutex_lock(&all->lock);
	nfs4_return_list_pop(&all->delegs, s->bye);
	mutex_unlock(&all->lock);
	s->bye = NULL;
}
