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
/* Opens that are looked at, about, to find one that may be returned. */
#define SEARCH_MAX 65536u

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

/* ---- those of a process before serve opens, until these are opened anew; states.lock held ---- */

static bool any_is_of(const struct list *states, const struct nfs4_fh *fh, unsigned int *looked)
{
	list_for_each (node, states) {
		++*looked;
		if (nfs4_deleg_same_fh(&container_of(node, struct nfs4_state, link)->fh, fh))
			return true;
	}
	return false;
}

static bool is_held_back(
	const struct nfs4_states *all, const struct nfs4_deleg_return *ret, unsigned int *looked)
{
	return all->delegs.left && (any_is_of(&all->reopen, &ret->fh, looked) ||
					   any_is_of(&all->reclaim, &ret->fh, looked) ||
					   any_is_of(&all->in_hand, &ret->fh, looked));
}

/*
 * The first that may be returned now; NULL: there is none. If there are very many opens it may be
 * found later: each one that is opened anew kicks the lease.
 */
static struct nfs4_deleg_return *first_free(struct nfs4_states *all)
{
	struct nfs4_deleg_return *ret = NULL;
	unsigned int looked = 0;
	struct list held;

	if (all->delegs.replaying)
		return NULL;
	if (list_empty(&all->reopen) && list_empty(&all->reclaim) && list_empty(&all->in_hand))
		all->delegs.left = false;
	list_init(&held);
	while (!list_empty(&all->delegs.returns) && looked < SEARCH_MAX) {
		ret = list_first(&all->delegs.returns, struct nfs4_deleg_return, link);
		if (!is_held_back(all, ret, &looked))
			break;
		list_del(&ret->link);
		list_push_back(&held, &ret->link);
		ret = NULL;
	}
	list_splice_back(&all->delegs.returns, &held);
	return ret;
}

bool nfs4_return_send_due(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool due;

	mutex_lock(&all->lock);
	nfs4_return_list_purge(all);
	due = s->id_gen == all->id_gen && first_free(all);
	mutex_unlock(&all->lock);
	return due;
}

const struct nfs4_opdesc *nfs4_return_send_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_call *call = &s->renew;
	struct nfs4_deleg_return *ret = NULL;

	mutex_lock(&all->lock);
	nfs4_return_list_purge(all);
	if (s->id_gen == all->id_gen)
		ret = first_free(all);
	if (ret) {
		list_del(&ret->link);
		list_push_back(&all->delegs.returning, &ret->link);
	}
	mutex_unlock(&all->lock);
	if (!ret)
		return NULL;
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
