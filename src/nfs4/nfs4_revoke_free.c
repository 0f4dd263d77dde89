/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stateids that the server revoked, until it was told that we know
 * (FREE_STATEID; RFC 8881 section 8.4.3). Which they are is nfs4_revoke.c's, or
 * a call found out. One at a time, by sess->renew.
 *
 * Context: the session's lane. What lanes share is under states.lock.
 */
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FREE_TRIES 3u
/* Of each try, 3 s: opens that are to be reclaimed wait for it. */
#define MAX_FREE_DELAYS 5u

/* A revoked stateid that the server is to forget. */
struct nfs4_revoked {
	struct list link;
	struct nfs4_stateid stateid;
	struct rpc_cred cred; /* whoever opened or locked */
	uint32_t id_gen;
	unsigned int tries;
};

bool nfs4_revoke_free_no_answer(const struct nfs4_call *call)
{
	return call->err &&
	       (call->status == NFS4_OK || nfs4_status_action(call->status) == NFS4_ACT_DELAY);
}

/* ---- revoked; states.lock held ---- */

void nfs4_revoke_free_fini(struct nfs4_revoke *rv)
{
	struct list *node;

	while ((node = list_pop_front(&rv->revoked)))
		free(container_of(node, struct nfs4_revoked, link));
}

/* With the client ID its state is gone too. */
void nfs4_revoke_free_purge(struct nfs4_states *all)
{
	mutex_assert_held(&all->lock);
	list_for_each_safe (node, next, &all->revoke.revoked) {
		struct nfs4_revoked *g = container_of(node, struct nfs4_revoked, link);

		if (g->id_gen == all->id_gen)
			continue;
		list_del(&g->link);
		free(g);
	}
}

void nfs4_revoke_free_add(struct nfs4_states *all, const struct nfs4_stateid *sid,
	const struct rpc_cred *cred, uint32_t id_gen)
{
	struct nfs4_revoked *g;

	mutex_assert_held(&all->lock);
	list_for_each (node, &all->revoke.revoked) {
		if (nfs4_state_same_other(
			    &container_of(node, struct nfs4_revoked, link)->stateid, sid))
			return;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return; /* it stays there until the client ID ends */
	g->stateid = *sid;
	g->stateid.seqid = 0; /* section 8.2.2: whichever is the newest */
	g->cred = *cred;
	g->id_gen = id_gen;
	list_push_back(&all->revoke.revoked, &g->link);
}

/* The server has nothing to say any more than what is known. */
void nfs4_revoke_free_settle(struct nfs4_session *s)
{
	s->cl->states.revoke.settled_ns = reactor_now(s->r);
}

/* With the open its locks are revoked. */
void nfs4_revoke_free_add_locks(struct nfs4_states *all, struct nfs4_state *st)
{
	mutex_assert_held(&all->lock);
	mutex_lock(&st->lock);
	list_for_each (node, &st->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (lo->has_stateid && st->status == NFS4_STATE_OPEN)
			nfs4_revoke_free_add(all, &lo->stateid, &st->cred, st->id_gen);
	}
	mutex_unlock(&st->lock);
}

void nfs4_revoke_free_note(struct nfs4_call *call, const struct nfs4_deleg *d)
{
	struct nfs4_states *all = &call->sess->cl->states;
	struct nfs4_state *st = nfs4_state_of(call);

	if ((!st && !d) || !nfs4_status_is_revoked(call->status))
		return;
	mutex_lock(&all->lock);
	if (st && st->deleg)
		d = st->deleg;
	if (call->id_gen == all->id_gen) {
		nfs4_revoke_free_add(all, &call->stateid, d ? &d->cred : &st->cred, call->id_gen);
		if (st && st->gen == call->state_gen)
			nfs4_revoke_free_add_locks(all, st);
	}
	mutex_unlock(&all->lock);
	nfs4_lease_kick(call->sess);
}

bool nfs4_revoke_free_blocks(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool pending;

	mutex_lock(&all->lock);
	nfs4_revoke_free_purge(all);
	pending = !list_empty(&all->revoke.revoked) || all->revoke.freeing > 0;
	mutex_unlock(&all->lock);
	/* Whoever waits helps: the session that noted it may be on its way out. */
	if (pending)
		nfs4_lease_kick(s);
	return pending;
}

/* ---- FREE_STATEID ---- */

/* The stateid of a client ID that is gone may mean something else to the server. */
static int free_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_session_renew_is_current(call) ? nfs4_free_stateid_desc.encode(call, c)
						   : -ESTALE;
}

static int free_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_free_stateid_desc.decode(call, c);
}

static const struct nfs4_opdesc free_desc = {
	.name = "FREE_STATEID",
	.encode = free_encode,
	.decode = free_decode,
	.cachethis = true,
	.max_delays = MAX_FREE_DELAYS,
};

static void free_done(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_revoked *g = s->testing.revoked;
	/* DELAY, soft mounts: it is tried again, after the others. Any answer will do. */
	bool again =
		nfs4_revoke_free_no_answer(call) && call->err != -ESTALE && nfs4_session_is_up(s);
	bool last;

	s->testing.revoked = NULL;
	if (call->err && !nfs4_revoke_free_no_answer(call) && !nfs4_status_is_gone(call->status))
		log_info("%s: revoked state cannot be freed: %s", s->peer,
			nfs4_status_name(call->status));
	mutex_lock(&all->lock);
	all->revoke.freeing--;
	if (again && ++g->tries < MAX_FREE_TRIES)
		list_push_back(&all->revoke.revoked, &g->link);
	else
		free(g);
	last = list_empty(&all->revoke.revoked) && all->revoke.freeing == 0;
	if (last)
		nfs4_revoke_free_settle(s);
	mutex_unlock(&all->lock);
	if (last)
		nfs4_reclaim_kick(s);
	nfs4_lease_next(s);
}

bool nfs4_revoke_free_send(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct list *node = NULL;

	mutex_lock(&all->lock);
	nfs4_revoke_free_purge(all);
	/* A session that is about to be made anew leaves it to the others. */
	if (s->id_gen == all->id_gen)
		node = list_pop_front(&all->revoke.revoked);
	if (node)
		all->revoke.freeing++;
	mutex_unlock(&all->lock);
	if (!node)
		return false;
	s->testing.revoked = container_of(node, struct nfs4_revoked, link);
	s->testing.id_gen = s->id_gen;
	s->renew.u.free_stateid.stateid = s->testing.revoked->stateid;
	s->renew.cred = &s->testing.revoked->cred;
	s->renew.done = free_done;
	nfs4_call_start(&s->renew, &free_desc);
	return true;
}
