/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations that are returned: nfs4_delegreturn(), and what is nobody's.
 *
 * Nobody's are those refused or forgotten by the user, or given though nobody
 * asked. Until they are returned other clients wait for them, and maybe OPENs of
 * ours: not behind those, therefore, but by sess->renew, as what is said about
 * revoked state (nfs4_revoke.c).
 *
 * Tried a few times; with the client ID they are gone. Sessions that are stopped
 * return what is left, also what is somebody's: a server does not let a client
 * go that has a delegation (NFS4ERR_CLIENTID_BUSY).
 *
 * Context: states.lock is held, or the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdlib.h>

/* More than that are left to be revoked. */
#define MAX_RETURNS 1024u
#define MAX_TRIES   3u
/* 100, 200 and 400 ms: then the others have their turn. */
#define MAX_DELAYS 3u

struct nfs4_deleg_return {
	struct list link;
	struct nfs4_fh fh;
	struct nfs4_stateid stateid;
	struct rpc_cred cred;
	uint32_t id_gen;
	unsigned int tries;
};

static void pop(struct nfs4_delegs *ds, struct nfs4_deleg_return *ret)
{
	list_del(&ret->link);
	ds->return_cnt--;
	free(ret);
}

static bool has(const struct list *returns, const struct nfs4_stateid *sid)
{
	list_for_each (node, returns) {
		const struct nfs4_deleg_return *ret =
			container_of(node, struct nfs4_deleg_return, link);

		if (nfs4_state_same_other(&ret->stateid, sid))
			return true;
	}
	return false;
}

bool nfs4_return_knows(const struct nfs4_states *all, const struct nfs4_stateid *sid)
{
	mutex_assert_held(&all->lock);
	return has(&all->delegs.returns, sid) || has(&all->delegs.returning, sid);
}

void nfs4_return_push(struct nfs4_states *all, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen)
{
	struct nfs4_delegs *ds = &all->delegs;
	struct nfs4_deleg_return *ret;

	mutex_assert_held(&all->lock);
	if (id_gen != all->id_gen || ds->return_cnt >= MAX_RETURNS || nfs4_return_knows(all, sid))
		return;
	ret = calloc(1, sizeof(*ret));
	if (!ret)
		return;
	ret->fh = *fh;
	ret->stateid = *sid;
	ret->cred = *cred;
	ret->id_gen = id_gen;
	list_push_back(&ds->returns, &ret->link);
	ds->return_cnt++;
}

void nfs4_return_fini(struct nfs4_delegs *ds)
{
	list_splice_back(&ds->returns, &ds->returning);
	while (!list_empty(&ds->returns))
		pop(ds, list_first(&ds->returns, struct nfs4_deleg_return, link));
}

/* With the client ID they are gone. */
static void purge(struct nfs4_states *all)
{
	list_for_each_safe (node, next, &all->delegs.returns) {
		struct nfs4_deleg_return *ret = container_of(node, struct nfs4_deleg_return, link);

		if (ret->id_gen != all->id_gen)
			pop(&all->delegs, ret);
	}
}

/* ---- DELEGRETURN ---- */

/* The stateid of a client ID that is gone may mean something else to the server. */
static int return_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_session_renew_is_current(call) ? nfs4_delegreturn_desc.encode(call, c)
						   : -ESTALE;
}

static int return_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	int err = nfs4_delegreturn_desc.decode(call, c);

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
		pop(&all->delegs, ret);
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

bool nfs4_return_due(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool due;

	mutex_lock(&all->lock);
	purge(all);
	due = !list_empty(&all->delegs.returns) && s->id_gen == all->id_gen;
	mutex_unlock(&all->lock);
	return due;
}

const struct nfs4_opdesc *nfs4_return_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_call *call = &s->renew;
	struct list *node = NULL;
	struct nfs4_deleg_return *ret;

	mutex_lock(&all->lock);
	purge(all);
	if (s->id_gen == all->id_gen)
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

/* ---- nfs4_delegreturn() ---- */

void nfs4_return_begin(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;

	mutex_lock(&all->lock);
	if (d->cl && list_empty(&d->served))
		d->status |= NFS4_DELEG_IS_RETURNED;
	mutex_unlock(&all->lock);
}

enum nfs4_state_verdict nfs4_return_take(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	enum nfs4_state_verdict verdict = NFS4_STATE_END;
	int err = 0;

	mutex_lock(&all->lock);
	if (d->cl && !list_empty(&d->served)) {
		err = -EBUSY;
	} else if (d->cl && all->delegs.reclaimed == d) {
		verdict = NFS4_STATE_WAIT;
	} else if (d->cl) {
		d->status |= NFS4_DELEG_IS_RETURNED;
		call->stateid = d->stateid;
		/* What an older client ID had is gone with it. */
		if ((int32_t)(s->id_gen - d->id_gen) <= 0)
			verdict = NFS4_STATE_GO;
	}
	mutex_unlock(&all->lock);
	return verdict == NFS4_STATE_END ? nfs4_state_end(call, err) : verdict;
}

enum nfs4_state_verdict nfs4_return_refused(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;
	bool old;

	nfs4_revoked_note(call, NULL, d);
	mutex_lock(&all->lock);
	old = call->status == NFS4ERR_OLD_STATEID && d->cl && d->stateid.seqid != 0;
	if (old)
		d->stateid.seqid = 0; /* section 8.2.2: whichever is the newest */
	mutex_unlock(&all->lock);
	call->err = 0;
	return old ? NFS4_STATE_GO : NFS4_STATE_END;
}

void nfs4_return_ended(struct nfs4_call *call)
{
	struct nfs4_deleg *d = call->u.delegreturn.deleg;
	struct nfs4_states *all = &call->sess->cl->states;

	if (!call->err) {
		mutex_lock(&all->lock);
		/* Unless it was lost meanwhile, and is another one by now. */
		if (d->cl && (d->status & NFS4_DELEG_IS_RETURNED))
			nfs4_deleg_drop(&all->delegs, d);
		mutex_unlock(&all->lock);
	}
	call->done(call);
}

/* ---- OPEN ---- */

bool nfs4_return_unasked(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (o->want_deleg || o->reclaim_deleg || !nfs4_deleg_is(o->deleg_type))
		return true;
	nfs4_deleg_refuse(call);
	o->deleg_type = OPEN_DELEGATE_NONE;
	return true;
}

/* ---- at the end ---- */

static int last_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_delegreturn_desc.encode(call, c);
}

static int last_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_delegreturn_desc.decode(call, c);
}

const struct nfs4_opdesc nfs4_return_last_desc = {
	.name = "DELEGRETURN",
	.encode = last_encode,
	.decode = last_decode,
	.cachethis = true,
	.repeatable = true,
};

bool nfs4_return_last(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct list *node = NULL;

	/* A session that was to be made anew takes no calls. */
	if (s->state != NFS4_SESSION_STOPPING || s->need || s->no_byes)
		return false;
	mutex_lock(&all->lock);
	if (s->id_gen == all->id_gen) {
		nfs4_deleg_give_up(all);
		purge(all);
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

void nfs4_return_last_done(struct nfs4_session *s, const struct nfs4_call *call)
{
	struct nfs4_states *all = &s->cl->states;

	/* Whatever the file's trouble is: the others are tried. */
	s->no_byes = call->err && (call->status == NFS4_OK ||
					  nfs4_status_action(call->status) == NFS4_ACT_SESSION ||
					  nfs4_status_action(call->status) == NFS4_ACT_CLIENT);
	mutex_lock(&all->lock);
	pop(&all->delegs, s->bye);
	mutex_unlock(&all->lock);
	s->bye = NULL;
}
