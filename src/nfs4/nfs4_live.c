/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_keep_int.h"
#include "nfs4_session_int.h"

static void put(struct live *to, live_ref *ref, const struct live_key *key, struct tables_out *t)
{
	live_put(to, ref, key, t);
	tables_end_in(t);
}

void nfs4_live_client(struct nfs4_client *cl)
{
	const struct live_key key = {.rank = NFS4_KEEP_RANK};
	struct tables_out t;

	if (!cl->live)
		return;
	tables_begin_in(&t);
	nfs4_keep_put_client(&t, cl);
	put(cl->live, &cl->live_ref, &key, &t);
}

void nfs4_live_session(struct nfs4_session *s)
{
	const struct live_key key = {.rank = NFS4_KEEP_RANK, .minor = 1};
	struct tables_out t;

	if (!s->cl->live)
		return;
	if (!s->have_session) {
		live_drop(s->cl->live, &s->live_ref);
		return;
	}
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_SESSION);
	nfs4_keep_put_session(&t, s);
	put(s->cl->live, &s->live_ref, &key, &t);
}

void nfs4_live_state(struct nfs4_state *st, struct nfs4_client *cl)
{
	const struct live_key key = {
		.rank = NFS4_KEEP_RANK_OPENS, .group = st->owner, .minor = NFS4_KEEP_MINOR_STATE};
	struct tables_out t;

	if (!cl || !cl->live)
		return;
	mutex_assert_held(&cl->states.lock);
	if (!st->cl || st->deleg) {
		live_drop(cl->live, &st->live_ref);
		return;
	}
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_STATE);
	nfs4_keep_put_state(&t, st);
	put(cl->live, &st->live_ref, &key, &t);
}

void nfs4_live_deleg(struct nfs4_states *all, live_ref *ref, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen)
{
	const struct live_key key = {.rank = NFS4_KEEP_RANK_DELEGS};
	struct live *live = container_of(all, struct nfs4_client, states)->live;
	struct tables_out t;

	if (!live)
		return;
	mutex_assert_held(&all->lock);
	if (!sid) {
		live_drop(live, ref);
		return;
	}
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_DELEG);
	nfs4_keep_put_deleg(&t, fh, sid, cred, id_gen);
	put(live, ref, &key, &t);
}

void nfs4_live_locks(struct nfs4_lockowner *lo)
{
	struct live_key key = {.rank = NFS4_KEEP_RANK_OPENS, .minor = NFS4_KEEP_MINOR_LOCKS};
	struct tables_out t;

	if (!lo->cl->live)
		return;
	mutex_assert_held(&lo->cl->states.lock);
	if (!lo->state || (!lo->has_stateid && !lo->doubt && list_empty(&lo->ranges))) {
		live_drop(lo->cl->live, &lo->live_ref);
		return;
	}
	key.group = lo->state->owner;
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_LOCKS);
	nfs4_keep_put_lockowner(&t, lo);
	put(lo->cl->live, &lo->live_ref, &key, &t);
}
