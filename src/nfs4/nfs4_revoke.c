/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State that the server revoked while the client ID stayed good (RFC 8881
 * sections 8.4.3, 8.5 and 18.46.3).
 *
 *   sr_status_flags say that something is gone    a round of TEST_STATEID over all opens and their
 *                                                 locks, a few stateids a call, by one session
 *   a stateid is revoked, by that or by a call    FREE_STATEID: the server keeps it, and the flag
 *                                                 set, until it knows that we know
 *   then, NFS4ERR_EXPIRED, DELEG_REVOKED          opened anew (nfs4_state.c)
 *         NFS4ERR_ADMIN_REVOKED                   lost: somebody wanted us to let go of the file
 *   a stateid is not known any more               opened anew, there is nothing to free
 *
 * Nothing is opened anew before what was revoked is freed: a server may find
 * the dead state of the same owner under the OPEN.
 *
 * A flag that stays set although a round found nothing is none of ours (a
 * delegation that we never took): rounds follow at growing distances.
 *
 * Both calls go by sess->renew, one at a time: they renew the lease too.
 *
 * Context: the session's lane. What lanes share is under states.lock.
 */
#include "nfs4_sess_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FREE_TRIES 3u
#define WAIT_MIN_NS    (30 * NSEC_PER_SEC)
#define WAIT_MAX_NS    (3600 * NSEC_PER_SEC)

/* A revoked stateid that the server is to forget. */
struct grave {
	struct list link;
	struct nfs4_stateid stateid;
	struct rpc_cred cred; /* whoever opened or locked */
	uint32_t id_gen;
	unsigned int tries;
};

static bool is_revoked(enum nfs4_status status)
{
	return status == NFS4ERR_EXPIRED || status == NFS4ERR_ADMIN_REVOKED ||
	       status == NFS4ERR_DELEG_REVOKED;
}

static bool is_gone(enum nfs4_status status)
{
	return is_revoked(status) || status == NFS4ERR_BAD_STATEID ||
	       status == NFS4ERR_STALE_STATEID;
}

static bool same_other(const struct nfs4_stateid *a, const struct nfs4_stateid *b)
{
	return memcmp(a->other, b->other, sizeof(a->other)) == 0;
}

/* It ended without an answer to what it asks. */
static bool has_no_answer(const struct nfs4_call *call)
{
	return call->err &&
	       (call->status == NFS4_OK || nfs4_status_action(call->status) == NFS4_ACT_DELAY);
}

/* ---- graves; states.lock held ---- */

void nfs4_revoke_fini(struct nfs4_revoke *rv)
{
	struct list *node;

	while ((node = list_pop_front(&rv->graves)))
		free(container_of(node, struct grave, link));
}

/* With the client ID its state is gone too. */
static void purge(struct nfs4_states *all)
{
	list_for_each_safe (node, next, &all->revoke.graves) {
		struct grave *g = container_of(node, struct grave, link);

		if (g->id_gen == all->id_gen)
			continue;
		list_del(&g->link);
		free(g);
	}
}

static void bury(struct nfs4_states *all, const struct nfs4_stateid *sid,
	const struct rpc_cred *cred, uint32_t id_gen)
{
	struct grave *g;

	list_for_each (node, &all->revoke.graves) {
		if (same_other(&container_of(node, struct grave, link)->stateid, sid))
			return;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return; /* it stays there until the client ID ends */
	g->stateid = *sid;
	g->stateid.seqid = 0; /* section 8.2.2: whichever is the newest */
	g->cred = *cred;
	g->id_gen = id_gen;
	list_push_back(&all->revoke.graves, &g->link);
}

/* The server has nothing to say any more than what is known. */
static void settle(struct nfs4_sess *s)
{
	s->cl->states.revoke.settled_ns = reactor_now(s->r);
}

/* With the open its locks are revoked. */
static void bury_locks(struct nfs4_states *all, struct nfs4_state *st)
{
	pthread_mutex_lock(&st->lock);
	list_for_each (node, &st->lockowners) {
		struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (lo->has_stateid && st->status == NFS4_STATE_OPEN)
			bury(all, &lo->stateid, &st->cred, st->id_gen);
	}
	pthread_mutex_unlock(&st->lock);
}

void nfs4_revoke_note(struct nfs4_call *call)
{
	struct nfs4_states *all = &call->sess->cl->states;
	struct nfs4_state *st = nfs4_call_state(call);

	if (!st || !is_revoked(call->status))
		return;
	pthread_mutex_lock(&all->lock);
	if (call->id_gen == all->id_gen) {
		bury(all, &call->stateid, &st->cred, call->id_gen);
		if (st->gen == call->state_gen)
			bury_locks(all, st);
	}
	pthread_mutex_unlock(&all->lock);
	nfs4_lease_kick(call->sess);
}

bool nfs4_revoke_blocks(struct nfs4_sess *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool pending;

	pthread_mutex_lock(&all->lock);
	purge(all);
	pending = !list_empty(&all->revoke.graves) || all->revoke.burying > 0;
	pthread_mutex_unlock(&all->lock);
	/* Whoever waits helps: the session that noted it may be on its way out. */
	if (pending)
		nfs4_lease_kick(s);
	return pending;
}

/* ---- FREE_STATEID ---- */

static bool is_of_this_id(const struct nfs4_call *call)
{
	return call->sess->testing.id_gen == call->sess->id_gen;
}

/* The stateid of a client ID that is gone may mean something else to the server. */
static int free_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return is_of_this_id(call) ? nfs4_free_stateid_desc.encode(call, c) : -ESTALE;
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
};

static void free_done(struct nfs4_call *call)
{
	struct nfs4_sess *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	struct grave *g = s->testing.grave;
	/* Soft mounts give up: it is tried again. Any answer will do. */
	bool again = has_no_answer(call) && call->err != -ESTALE && nfs4_sess_is_up(s);
	bool last;

	s->testing.grave = NULL;
	if (call->err && !has_no_answer(call) && !is_gone(call->status))
		log_info("%s: revoked state cannot be freed: %s", s->peer,
			nfs4_status_name(call->status));
	pthread_mutex_lock(&all->lock);
	all->revoke.burying--;
	if (again && ++g->tries < MAX_FREE_TRIES)
		list_push_back(&all->revoke.graves, &g->link);
	else
		free(g);
	last = list_empty(&all->revoke.graves) && all->revoke.burying == 0;
	if (last)
		settle(s);
	pthread_mutex_unlock(&all->lock);
	if (last)
		nfs4_reopen_kick(s);
	nfs4_lease_next(s);
}

static bool send_free(struct nfs4_sess *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct list *node = NULL;

	pthread_mutex_lock(&all->lock);
	purge(all);
	/* A session that is about to be made anew leaves it to the others. */
	if (s->id_gen == all->id_gen)
		node = list_pop_front(&all->revoke.graves);
	if (node)
		all->revoke.burying++;
	pthread_mutex_unlock(&all->lock);
	if (!node)
		return false;
	s->testing.grave = container_of(node, struct grave, link);
	s->testing.id_gen = s->id_gen;
	s->renew.u.free_stateid.stateid = s->testing.grave->stateid;
	s->renew.cred = &s->testing.grave->cred;
	s->renew.done = free_done;
	nfs4_call_start(&s->renew, &free_desc);
	return true;
}

/* ---- TEST_STATEID ---- */

static int test_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return is_of_this_id(call) ? nfs4_test_stateid_desc.encode(call, c) : -ESTALE;
}

static int test_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_test_stateid_desc.decode(call, c);
}

static const struct nfs4_opdesc test_desc = {
	.name = "TEST_STATEID",
	.encode = test_encode,
	.decode = test_decode,
};

/* st->lock held. Its stateids are ids[from..]; false: no room for them behind others. */
static bool list_ids(struct nfs4_testing *t, struct nfs4_state *st)
{
	unsigned int cnt = t->id_cnt;

	t->ids[cnt++] = st->stateid;
	list_for_each (node, &st->lockowners) {
		const struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (!lo->has_stateid)
			continue;
		if (cnt == NFS4_TEST_MAX && t->id_cnt > 0)
			return false;
		if (cnt == NFS4_TEST_MAX) /* more locks than that show when they are used */
			break;
		t->ids[cnt++] = lo->stateid;
	}
	for (unsigned int i = t->id_cnt; i < cnt; i++) {
		t->ids[i].seqid = 0;
		t->of[i] = (uint8_t)t->state_cnt;
	}
	t->id_cnt = cnt;
	return true;
}

/* states.lock held. The next opens of this round. */
static void fill(struct nfs4_states *all, struct nfs4_testing *t)
{
	t->state_cnt = t->id_cnt = 0;
	list_for_each (node, &all->held) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);
		bool fits;

		if (t->id_cnt == NFS4_TEST_MAX)
			return;
		if (st->test_round == all->revoke.round)
			continue;
		pthread_mutex_lock(&st->lock);
		fits = list_ids(t, st);
		pthread_mutex_unlock(&st->lock);
		if (!fits)
			return;
		st->test_round = all->revoke.round;
		t->states[t->state_cnt] = st;
		st->tested = &t->states[t->state_cnt++];
	}
}

/* st->lock held. Is this (still) one of its stateids? */
static bool has_id(const struct nfs4_state *st, const struct nfs4_stateid *sid)
{
	if (same_other(&st->stateid, sid))
		return true;
	list_for_each (node, &st->lockowners) {
		const struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (lo->has_stateid && same_other(&lo->stateid, sid))
			return true;
	}
	return false;
}

/* states.lock held. The open that ids[i] is gone from; NULL: it is good, or not its any more. */
static struct nfs4_state *gone_from(struct nfs4_sess *s, unsigned int i, enum nfs4_status status)
{
	struct nfs4_testing *t = &s->testing;
	struct nfs4_state *st = t->states[t->of[i]]; /* NULL: closed meanwhile */
	bool current;

	if (!st || !is_gone(status) || t->id_gen != s->cl->states.id_gen)
		return NULL;
	pthread_mutex_lock(&st->lock);
	current = has_id(st, &t->ids[i]);
	pthread_mutex_unlock(&st->lock);
	return current ? st : NULL;
}

/* states.lock held. */
static void judge(struct nfs4_sess *s, const enum nfs4_status *res)
{
	struct nfs4_testing *t = &s->testing;
	struct nfs4_states *all = &s->cl->states;

	/* First all that is to be freed: an open that is lost forgets its locks. */
	for (unsigned int i = 0; i < t->id_cnt; i++) {
		struct nfs4_state *st = gone_from(s, i, res[i]);

		if (!st)
			continue;
		all->revoke.found++;
		if (is_revoked(res[i]))
			bury(all, &t->ids[i], &st->cred, t->id_gen);
	}
	for (unsigned int i = 0; i < t->id_cnt; i++) {
		struct nfs4_state *st = gone_from(s, i, res[i]);

		if (st)
			nfs4_state_bad(all, st, &t->ids[i], res[i]);
	}
}

/* states.lock held. The round is over, or given up. */
static void end_round(struct nfs4_sess *s, bool complete)
{
	struct nfs4_revoke *rv = &s->cl->states.revoke;
	uint64_t wait_ns = WAIT_MIN_NS;

	rv->tester = NULL;
	if (!complete)
		return;
	settle(s);
	if (rv->found > 0) {
		log_warn("%s: %u of our opens and locks were revoked", s->peer, rv->found);
		rv->fruitless = 0;
		return;
	}
	for (unsigned int i = 0; i < rv->fruitless && wait_ns < WAIT_MAX_NS; i++)
		wait_ns *= 2;
	rv->fruitless++;
	rv->next_ns = reactor_now(s->r) + (wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS);
}

static void test_done(struct nfs4_call *call)
{
	struct nfs4_sess *s = call->sess;
	struct nfs4_testing *t = &s->testing;
	struct nfs4_states *all = &s->cl->states;
	bool tell = false;

	pthread_mutex_lock(&all->lock);
	if (!call->err)
		judge(s, call->u.test_stateid.res);
	for (unsigned int i = 0; i < t->state_cnt; i++)
		if (t->states[i])
			t->states[i]->tested = NULL;
	/* The others wait for our freeing what is found, and then for their turn. */
	tell = all->revoke.found > 0;
	t->state_cnt = t->id_cnt = 0;
	if (call->err)
		end_round(s, !has_no_answer(call));
	pthread_mutex_unlock(&all->lock);
	if (call->err && !has_no_answer(call))
		log_info("%s: the server does not tell what is revoked: %s", s->peer,
			nfs4_status_name(call->status));
	if (tell)
		nfs4_reopen_kick(s);
	nfs4_lease_next(s);
}

static bool send_test(struct nfs4_sess *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_testing *t = &s->testing;
	bool mine;

	pthread_mutex_lock(&all->lock);
	mine = all->revoke.tester == s;
	if (mine && s->id_gen != all->id_gen) {
		/* Another session has made a new client ID: nothing of the old one is left. */
		end_round(s, false);
		mine = false;
	}
	if (mine) {
		fill(all, t);
		if (t->id_cnt == 0) {
			end_round(s, true);
			mine = false;
		}
	}
	pthread_mutex_unlock(&all->lock);
	if (!mine)
		return false;
	t->id_gen = s->id_gen;
	s->renew.u.test_stateid.ids = t->ids;
	s->renew.u.test_stateid.cnt = t->id_cnt;
	s->renew.cred = &s->cred;
	s->renew.done = test_done;
	nfs4_call_start(&s->renew, &test_desc);
	return true;
}

/* ---- for the others ---- */

bool nfs4_revoke_due(struct nfs4_sess *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool due;

	pthread_mutex_lock(&all->lock);
	purge(all);
	due = all->revoke.tester == s ||
	      (!list_empty(&all->revoke.graves) && s->id_gen == all->id_gen);
	pthread_mutex_unlock(&all->lock);
	return due;
}

/* What was found is freed before more is looked for: files are needed. */
bool nfs4_revoke_send(struct nfs4_sess *s)
{
	return send_free(s) || send_test(s);
}

void nfs4_revoke_flags(struct nfs4_sess *s, bool appeared, uint64_t sent_ns)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_revoke *rv = &all->revoke;
	uint64_t now = reactor_now(s->r);
	bool start;

	pthread_mutex_lock(&all->lock);
	if (appeared) {
		rv->fruitless = 0;
		rv->next_ns = 0;
	}
	start = !rv->tester && list_empty(&rv->graves) && rv->burying == 0 &&
		s->id_gen == all->id_gen && sent_ns >= rv->settled_ns && now >= rv->next_ns;
	if (start) {
		rv->tester = s;
		rv->round++;
		rv->found = 0;
	}
	pthread_mutex_unlock(&all->lock);
	if (start)
		nfs4_lease_kick(s);
}
