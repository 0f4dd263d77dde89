/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations of files (RFC 8881 section 10.4).
 *
 *   taken         good: serves opens, which the server does not hear of
 *     recalled    serves no more; the user claims what it serves, and returns it
 *     returned    DELEGRETURN was started: likewise, and it serves nothing
 *       ended     none
 *     forgotten   none; returned in the background, at the latest when the sessions are stopped
 *   refused, or nobody asked for it: returned in the background (nfs4_return_send.c)
 *   its stateid refused, or revoked (nfs4_revoke.c)
 *                 lost; what it served is opened anew, even what an administrator took:
 *                 the open itself never was
 *   new client ID
 *     serves something, and is not recalled: reclaimed with the first of the opens it serves
 *       given     good, or recalled at once; the opens are opens of their own from then on
 *       not       lost; the opens are reclaimed as any other (nfs4_reclaim.c)
 *     else        lost
 *
 * A state that is served has a copy of the delegation's stateid: for a call on
 * it nothing is different.
 *
 * Context: callbacks come on any lane; what is shared is under states.lock.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

/*
 * d->cl is how a user on any thread finds the lock; whoever takes it looks again, since it may be
 * none by then.
 */
static struct nfs4_client *client_of(const struct nfs4_deleg *d)
{
	return __atomic_load_n(&d->cl, __ATOMIC_ACQUIRE);
}

static void set_client(struct nfs4_deleg *d, struct nfs4_client *cl)
{
	__atomic_store_n(&d->cl, cl, __ATOMIC_RELEASE);
}

void nfs4_deleg_set_ops(struct nfs4_client *cl, const struct nfs4_deleg_ops *ops, void *ctx)
{
	cl->states.delegs.ops = ops;
	cl->states.delegs.ctx = ctx;
}

/* ---- lists; states.lock held ---- */

void nfs4_deleg_init(struct nfs4_delegs *ds)
{
	for (unsigned int i = 0; i < NFS4_DELEG_BUCKETS; i++)
		list_init(&ds->held[i]);
	list_init(&ds->returns);
	list_init(&ds->returning);
}

static struct nfs4_states *states_of(struct nfs4_delegs *ds)
{
	return container_of(ds, struct nfs4_states, delegs);
}

void nfs4_deleg_drop(struct nfs4_delegs *ds, struct nfs4_deleg *d)
{
	list_del(&d->link);
	ds->cnt--;
	if (ds->reclaimed == d)
		ds->reclaimed = NULL;
	if (d->tested)
		*d->tested = NULL;
	d->tested = NULL;
	nfs4_live_deleg(states_of(ds), &d->live_ref, NULL, NULL, NULL, 0);
	set_client(d, NULL);
}

void nfs4_deleg_fini(struct nfs4_delegs *ds)
{
	for (unsigned int i = 0; i < NFS4_DELEG_BUCKETS; i++)
		while (!list_empty(&ds->held[i]))
			nfs4_deleg_drop(ds, list_first(&ds->held[i], struct nfs4_deleg, link));
	nfs4_return_list_fini(ds);
}

bool nfs4_deleg_same_fh(const struct nfs4_fh *a, const struct nfs4_fh *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* FNV-1a */
static unsigned int bucket(const struct nfs4_fh *fh)
{
	uint32_t sum = 0x811c9dc5u;

	for (unsigned int i = 0; i < fh->len; i++)
		sum = (sum ^ fh->data[i]) * 0x01000193u;
	return (sum ^ sum >> 16) % NFS4_DELEG_BUCKETS;
}

struct nfs4_deleg *nfs4_deleg_find(
	const struct nfs4_states *all, const struct nfs4_fh *fh, const struct nfs4_stateid *sid)
{
	mutex_assert_held(&all->lock);
	list_for_each (node, &all->delegs.held[bucket(fh)]) {
		struct nfs4_deleg *d = container_of(node, struct nfs4_deleg, link);

		if (d->id_gen == all->id_gen && nfs4_state_same_other(&d->stateid, sid) &&
			nfs4_deleg_same_fh(&d->fh, fh))
			return d;
	}
	return NULL;
}

struct nfs4_deleg *nfs4_deleg_find_file(
	const struct nfs4_states *all, const struct nfs4_fh *fh, bool write)
{
	mutex_assert_held(&all->lock);
	list_for_each (node, &all->delegs.held[bucket(fh)]) {
		struct nfs4_deleg *d = container_of(node, struct nfs4_deleg, link);

		if (nfs4_deleg_same_fh(&d->fh, fh) && (!write || d->type == OPEN_DELEGATE_WRITE))
			return d;
	}
	return NULL;
}

void nfs4_deleg_each(struct nfs4_states *all,
	bool (*fn)(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx), void *ctx)
{
	mutex_assert_held(&all->lock);
	for (unsigned int i = 0; i < NFS4_DELEG_BUCKETS; i++)
		list_for_each_safe (node, next, &all->delegs.held[i])
			if (fn(all, container_of(node, struct nfs4_deleg, link), ctx))
				return;
}

/* It is nobody's any more, and the server is told some time. */
static void give_up(struct nfs4_states *all, struct nfs4_deleg *d)
{
	nfs4_return_list_push(all, &d->fh, &d->stateid, &d->cred, d->id_gen);
	nfs4_deleg_drop(&all->delegs, d);
}

static bool give_up_idle(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx)
{
	if (list_empty(&d->served))
		give_up(all, d);
	return false;
}

void nfs4_deleg_give_up(struct nfs4_states *all)
{
	mutex_assert_held(&all->lock);
	nfs4_deleg_each(all, give_up_idle, NULL);
}

static void lose(struct nfs4_states *all, struct nfs4_deleg *d)
{
	struct nfs4_delegs *ds = &all->delegs;

	/* Once the user knows, it may go away at any moment. */
	nfs4_deleg_drop(ds, d);
	if (ds->ops)
		ds->ops->lost(ds->ctx, d);
}

static void unserve(struct nfs4_state *st)
{
	mutex_lock(&st->lock);
	nfs4_deleg_unserve(st);
	mutex_unlock(&st->lock);
}

/* The states are on lists where their calls wait for them already. */
static void lose_with_served(struct nfs4_states *all, struct nfs4_deleg *d)
{
	while (!list_empty(&d->served))
		unserve(list_first(&d->served, struct nfs4_state, served));
	lose(all, d);
}

/* ---- the user's side ---- */

enum nfs4_deleg_taken nfs4_deleg_take(struct nfs4_deleg *d, const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct nfs4_client *cl = call->sess->cl;
	struct nfs4_states *all = &cl->states;
	enum nfs4_deleg_taken taken = NFS4_DELEG_GONE;

	mutex_lock(&all->lock);
	/* One that another OPEN brought already is its, or on its way back. */
	if (nfs4_deleg_is(o->deleg_type) && call->id_gen == all->id_gen &&
		!nfs4_deleg_find(all, &o->fh, &o->deleg) &&
		!nfs4_return_list_knows(all, &o->deleg)) {
		bool recalled = o->deleg_recalled || nfs4_recall_is_early(&all->delegs, &o->deleg);

		taken = recalled ? NFS4_DELEG_RECALLED : NFS4_DELEG_KEPT;
		d->fh = o->fh;
		d->type = o->deleg_type;
		d->cred = *call->cred;
		list_init(&d->link);
		list_init(&d->served);
		d->status = recalled ? NFS4_DELEG_IS_RECALLED : 0;
		d->stateid = o->deleg;
		d->id_gen = call->id_gen;
		d->tested = NULL;
		d->test_round = all->revoke.round;
		d->live_ref = LIVE_NONE;
		nfs4_live_deleg(all, &d->live_ref, &d->fh, &d->stateid, &d->cred, d->id_gen);
		list_push_back(&all->delegs.held[bucket(&d->fh)], &d->link);
		all->delegs.cnt++;
		set_client(d, cl);
	}
	mutex_unlock(&all->lock);
	return taken;
}

void nfs4_deleg_give_back(const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct nfs4_states *all = &call->sess->cl->states;

	mutex_lock(&all->lock);
	/* Given twice it is one: who has it keeps it. */
	if (!nfs4_deleg_find(all, &o->fh, &o->deleg))
		nfs4_return_list_push(all, &o->fh, &o->deleg, call->cred, call->id_gen);
	mutex_unlock(&all->lock);
}

bool nfs4_deleg_allows(const struct nfs4_deleg *d, uint32_t share_access)
{
	return d->type == OPEN_DELEGATE_WRITE || !(share_access & OPEN4_SHARE_ACCESS_WRITE);
}

/* states.lock held. */
static bool is_good(const struct nfs4_deleg *d, const struct nfs4_client *cl)
{
	return d->cl == cl && !d->status && d->id_gen == cl->states.id_gen;
}

/* states.lock held, and st->lock if it is open. */
static void serve(struct nfs4_deleg *d, struct nfs4_state *st)
{
	st->deleg = d;
	list_push_back(&d->served, &st->served);
}

bool nfs4_deleg_open(struct nfs4_deleg *d, struct nfs4_state *st, const struct rpc_cred *cred,
	uint32_t share_access, uint64_t owner, uint64_t fileid)
{
	struct nfs4_client *cl = client_of(d);
	bool can;

	if (!cl)
		return false;
	mutex_lock(&cl->states.lock);
	can = is_good(d, cl) && nfs4_deleg_allows(d, share_access) && (!st->cl || st->deleg == d);
	if (can && st->cl) {
		mutex_lock(&st->lock);
		st->share_access |= share_access;
		mutex_unlock(&st->lock);
	} else if (can) {
		nfs4_state_begin(st, cl, &d->fh, cred, owner);
		st->share_access = share_access;
		st->fileid = fileid;
		st->stateid = d->stateid;
		st->id_gen = d->id_gen;
		serve(d, st);
		nfs4_state_place(&cl->states, st, st->id_gen);
	}
	mutex_unlock(&cl->states.lock);
	return can;
}

bool nfs4_deleg_holds(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = client_of(d);
	bool holds;

	if (!cl)
		return false;
	mutex_lock(&cl->states.lock);
	holds = is_good(d, cl);
	mutex_unlock(&cl->states.lock);
	return holds;
}

bool nfs4_deleg_serves(struct nfs4_state *st)
{
	bool served;

	if (!st->cl)
		return false;
	mutex_lock(&st->lock);
	served = st->deleg != NULL;
	mutex_unlock(&st->lock);
	return served;
}

bool nfs4_deleg_close(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->cl;
	bool served;

	if (!cl)
		return false;
	mutex_lock(&cl->states.lock);
	served = st->deleg != NULL;
	if (served)
		nfs4_state_end_of(&cl->states, st);
	mutex_unlock(&cl->states.lock);
	if (served)
		mutex_destroy(&st->lock);
	return served;
}

void nfs4_deleg_forget(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = client_of(d);

	if (!cl)
		return;
	mutex_lock(&cl->states.lock);
	if (d->cl == cl)
		give_up(&cl->states, d);
	mutex_unlock(&cl->states.lock);
}

uint32_t nfs4_deleg_count(struct nfs4_client *cl)
{
	uint32_t cnt;

	mutex_lock(&cl->states.lock);
	cnt = cl->states.delegs.cnt;
	mutex_unlock(&cl->states.lock);
	return cnt;
}

/* ---- lost; states.lock held ---- */

void nfs4_deleg_unserve(struct nfs4_state *st)
{
	list_del(&st->served);
	st->deleg = NULL;
	st->modes = 0;
}

void nfs4_deleg_bad(struct nfs4_states *all, struct nfs4_deleg *d)
{
	mutex_assert_held(&all->lock);
	while (!list_empty(&d->served)) {
		struct nfs4_state *st = list_first(&d->served, struct nfs4_state, served);

		unserve(st);
		nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	}
	lose(all, d);
}

enum nfs4_state_verdict nfs4_deleg_refused(
	struct nfs4_states *all, struct nfs4_state *st, struct nfs4_call *call)
{
	struct nfs4_deleg *d = st->deleg;

	mutex_assert_held(&all->lock);
	/* With another client ID than the call's it is to be reclaimed already. */
	if (st->id_gen != all->id_gen)
		return NFS4_STATE_WAIT;
	/* Its seqid was 0: a server that says so is confused, maybe not for long. */
	if (call->status == NFS4ERR_OLD_STATEID && call->state_tries++ < NFS4_STATE_TRIES) {
		d->stateid.seqid = 0;
		return NFS4_STATE_GO;
	}
	nfs4_deleg_bad(all, d);
	return NFS4_STATE_WAIT;
}

/* ---- another client ID; states.lock held ---- */

static bool lose_unless_used(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx)
{
	if (d->status || list_empty(&d->served))
		lose_with_served(all, d);
	return false;
}

void nfs4_deleg_new_client(struct nfs4_states *all)
{
	mutex_assert_held(&all->lock);
	all->delegs.early_cnt = 0;
	nfs4_deleg_each(all, lose_unless_used, NULL);
}

static bool lose_unless_had(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx)
{
	if (d->id_gen != all->id_gen)
		lose_with_served(all, d);
	return false;
}

void nfs4_deleg_no_grace(struct nfs4_states *all)
{
	mutex_assert_held(&all->lock);
	nfs4_deleg_each(all, lose_unless_had, NULL);
}

void nfs4_deleg_reclaim(struct nfs4_states *all, struct nfs4_reclaim *rg, struct nfs4_state *st,
	struct nfs4_op_open *o)
{
	struct nfs4_deleg *d = st->deleg;

	mutex_assert_held(&all->lock);
	rg->deleg = false;
	if (!d)
		return;
	unserve(st);
	/* Had again already, with another open. */
	if (!o->reclaim || d->id_gen == all->id_gen || all->delegs.reclaimed)
		return;
	all->delegs.reclaimed = d;
	rg->deleg = true;
	o->reclaim_deleg = d->type;
}

/* Whether it was asked for or not, nobody knows: the next session asks again. */
static void put_back(struct nfs4_states *all, struct nfs4_deleg *d, struct nfs4_state *st)
{
	if (!st || !all->may_reclaim) {
		lose_with_served(all, d);
		return;
	}
	mutex_lock(&st->lock);
	serve(d, st);
	mutex_unlock(&st->lock);
}

void nfs4_deleg_release(struct nfs4_states *all, struct nfs4_reclaim *rg)
{
	struct nfs4_deleg *d = all->delegs.reclaimed;

	mutex_assert_held(&all->lock);
	if (!rg->deleg)
		return;
	rg->deleg = false;
	all->delegs.reclaimed = NULL;
	if (d)
		put_back(all, d, rg->state);
}

static void reclaim_given(
	struct nfs4_states *all, struct nfs4_deleg *d, const struct nfs4_call *call)
{
	struct nfs4_delegs *ds = &all->delegs;
	const struct nfs4_op_open *o = &call->u.open;

	d->stateid = o->deleg;
	d->id_gen = call->id_gen;
	d->test_round = all->revoke.round;
	nfs4_live_deleg(all, &d->live_ref, &d->fh, &d->stateid, &d->cred, d->id_gen);
	if (!o->deleg_recalled && !nfs4_recall_is_early(ds, &o->deleg))
		return;
	d->status |= NFS4_DELEG_IS_RECALLED;
	if (ds->ops)
		ds->ops->recall(ds->ctx, d);
}

void nfs4_deleg_reclaimed(struct nfs4_states *all, struct nfs4_reclaim *rg,
	const struct nfs4_call *call, bool session_gone)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct nfs4_deleg *d = all->delegs.reclaimed;
	bool given;

	mutex_assert_held(&all->lock);
	if (!rg->deleg)
		return;
	if (session_gone) {
		nfs4_deleg_release(all, rg);
		return;
	}
	rg->deleg = false;
	all->delegs.reclaimed = NULL;
	given = !call->err && nfs4_deleg_is(o->deleg_type);
	if (given && d && o->deleg_type == d->type && call->id_gen == all->id_gen) {
		reclaim_given(all, d, call);
		return;
	}
	if (given)
		nfs4_return_list_push(all, &o->fh, &o->deleg, call->cred, call->id_gen);
	if (d)
		lose_with_served(all, d);
}
