/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State that the server revoked while the client ID stayed good (RFC 8881
 * sections 8.4.3, 8.5 and 18.46.3).
 *
 *   sr_status_flags say that something is gone    a round of TEST_STATEID over all opens, their
 *                                                 locks and delegations, a few stateids a call,
 *                                                 by one session
 *   a stateid is revoked, by that or by a call    FREE_STATEID: the server keeps it, and the flag
 *                                                 set, until it knows that we know
 * (nfs4_revoke_free.c) then, NFS4ERR_EXPIRED, DELEG_REVOKED          opened anew (nfs4_state.c)
 *         NFS4ERR_ADMIN_REVOKED                   lost: somebody wanted us to let go of the file
 *         a delegation                            lost, what it served is opened (nfs4_deleg.c)
 *   a stateid is not known any more               opened anew, there is nothing to free
 *
 * Nothing is opened anew before what was revoked is freed: a server may find
 * the dead state of the same owner under the OPEN.
 *
 * A flag that stays set although a round found nothing is none of ours: rounds
 * follow at growing distances.
 *
 * Both calls go by sess->renew, one at a time: they renew the lease too.
 *
 * Context: the session's lane. What lanes share is under states.lock.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <string.h>

#define WAIT_MIN_NS (30 * NSEC_PER_SEC)
#define WAIT_MAX_NS (3600 * NSEC_PER_SEC)

/* ---- TEST_STATEID ---- */

static int test_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_session_renew_is_current(call) ? nfs4_test_stateid_desc.encode(call, c)
						   : -ESTALE;
}

static int test_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_test_stateid_desc.decode(call, c);
}

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

/* states.lock held. The next opens of this round; what a delegation serves is tested as that. */
static void fill_states(struct nfs4_states *all, struct nfs4_testing *t)
{
	list_for_each (node, &all->held) {
		struct nfs4_state *st = container_of(node, struct nfs4_state, link);
		bool fits;

		if (t->id_cnt == NFS4_TEST_MAX)
			return;
		if (st->test_round == all->revoke.round || st->deleg)
			continue;
		mutex_lock(&st->lock);
		fits = list_ids(t, st);
		mutex_unlock(&st->lock);
		if (!fits)
			return;
		st->test_round = all->revoke.round;
		t->states[t->state_cnt] = st;
		st->tested = &t->states[t->state_cnt++];
	}
}

/* The same for a delegation, behind them; true: no room for more. */
static bool fill_deleg(struct nfs4_states *all, struct nfs4_deleg *d, void *ctx)
{
	struct nfs4_testing *t = ctx;

	if (t->id_cnt == NFS4_TEST_MAX)
		return true;
	if (d->test_round == all->revoke.round || d->id_gen != all->id_gen)
		return false;
	t->ids[t->id_cnt] = d->stateid;
	t->ids[t->id_cnt].seqid = 0;
	t->of[t->id_cnt++] = (uint8_t)t->deleg_cnt;
	d->test_round = all->revoke.round;
	t->delegs[t->deleg_cnt] = d;
	d->tested = &t->delegs[t->deleg_cnt++];
	return false;
}

static void fill(struct nfs4_states *all, struct nfs4_testing *t)
{
	t->state_cnt = t->deleg_cnt = t->id_cnt = 0;
	fill_states(all, t);
	t->deleg_from = t->id_cnt;
	nfs4_deleg_each(all, fill_deleg, t);
}

/* st->lock held. Is this (still) one of its stateids? */
static bool has_id(const struct nfs4_state *st, const struct nfs4_stateid *sid)
{
	if (nfs4_state_same_other(&st->stateid, sid))
		return true;
	list_for_each (node, &st->lockowners) {
		const struct nfs4_lockowner *lo = container_of(node, struct nfs4_lockowner, link);

		if (lo->has_stateid && nfs4_state_same_other(&lo->stateid, sid))
			return true;
	}
	return false;
}

/* states.lock held. The open that ids[i] is gone from; NULL: it is good, or not its any more. */
static struct nfs4_state *gone_from(struct nfs4_session *s, unsigned int i, enum nfs4_status status)
{
	struct nfs4_testing *t = &s->testing;
	struct nfs4_state *st = i < t->deleg_from ? t->states[t->of[i]] : NULL;
	bool current;

	/* NULL: closed meanwhile. */
	if (!st || !nfs4_status_is_gone(status) || t->id_gen != s->cl->states.id_gen)
		return NULL;
	mutex_lock(&st->lock);
	current = has_id(st, &t->ids[i]);
	mutex_unlock(&st->lock);
	return current ? st : NULL;
}

/* The same for a delegation. */
static struct nfs4_deleg *gone_deleg(
	struct nfs4_session *s, unsigned int i, enum nfs4_status status)
{
	struct nfs4_testing *t = &s->testing;
	struct nfs4_deleg *d = i < t->deleg_from ? NULL : t->delegs[t->of[i]];

	if (!d || !nfs4_status_is_gone(status) || t->id_gen != s->cl->states.id_gen ||
		!nfs4_state_same_other(&d->stateid, &t->ids[i]))
		return NULL;
	return d;
}

/* states.lock held. */
static void judge(struct nfs4_session *s, const enum nfs4_status *res)
{
	struct nfs4_testing *t = &s->testing;
	struct nfs4_states *all = &s->cl->states;

	/* First all that is to be freed: an open that is lost forgets its locks. */
	for (unsigned int i = 0; i < t->id_cnt; i++) {
		struct nfs4_state *st = gone_from(s, i, res[i]);
		struct nfs4_deleg *d = gone_deleg(s, i, res[i]);

		if (!st && !d)
			continue;
		all->revoke.found++;
		if (nfs4_status_is_revoked(res[i]))
			nfs4_revoked_add(all, &t->ids[i], st ? &st->cred : &d->cred, t->id_gen);
	}
	for (unsigned int i = 0; i < t->id_cnt; i++) {
		struct nfs4_state *st = gone_from(s, i, res[i]);
		struct nfs4_deleg *d = gone_deleg(s, i, res[i]);

		if (st)
			nfs4_state_bad(all, st, &t->ids[i], res[i]);
		else if (d)
			nfs4_deleg_bad(all, d);
	}
}

/* states.lock held. The round is over, or given up. */
static void end_round(struct nfs4_session *s, bool complete)
{
	struct nfs4_revoke *rv = &s->cl->states.revoke;
	uint64_t wait_ns = WAIT_MIN_NS;

	rv->tester = NULL;
	if (!complete)
		return;
	nfs4_revoke_free_settle(s);
	if (rv->found > 0) {
		log_warn("%s: %u of our opens, locks and delegations were revoked", s->peer,
			rv->found);
		rv->fruitless = 0;
		return;
	}
	for (unsigned int i = 0; i < rv->fruitless && wait_ns < WAIT_MAX_NS; i++)
		wait_ns *= 2;
	rv->fruitless++;
	rv->next_ns = reactor_now(s->r) + (wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS);
}

static void test_ended(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_testing *t = &s->testing;
	struct nfs4_states *all = &s->cl->states;
	bool tell = false;

	mutex_lock(&all->lock);
	if (!call->err)
		judge(s, call->u.test_stateid.res);
	for (unsigned int i = 0; i < t->state_cnt; i++)
		if (t->states[i])
			t->states[i]->tested = NULL;
	for (unsigned int i = 0; i < t->deleg_cnt; i++)
		if (t->delegs[i])
			t->delegs[i]->tested = NULL;
	/* The others wait for our freeing what is found, and then for their turn. */
	tell = all->revoke.found > 0;
	t->state_cnt = t->deleg_cnt = t->id_cnt = 0;
	if (call->err)
		end_round(s, !nfs4_revoke_free_no_answer(call));
	mutex_unlock(&all->lock);
	if (call->err && !nfs4_revoke_free_no_answer(call))
		log_info("%s: the server does not tell what is revoked: %s", s->peer,
			nfs4_status_name(call->status));
	s->testing.unblocks = tell;
	call->done(call);
}

static const struct nfs4_opdesc test_desc = {
	.name = "TEST_STATEID",
	.encode = test_encode,
	.decode = test_decode,
	.ended = test_ended,
};

static const struct nfs4_opdesc *next_test(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_testing *t = &s->testing;
	bool mine;

	mutex_lock(&all->lock);
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
	mutex_unlock(&all->lock);
	if (!mine)
		return NULL;
	t->id_gen = s->id_gen;
	s->renew.u.test_stateid.ids = t->ids;
	s->renew.u.test_stateid.cnt = t->id_cnt;
	s->renew.cred = &s->cred;
	return &test_desc;
}

/* ---- for the others ---- */

bool nfs4_revoke_due(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	bool due;

	mutex_lock(&all->lock);
	nfs4_revoked_purge(all);
	due = all->revoke.tester == s ||
	      (!list_empty(&all->revoke.revoked) && s->id_gen == all->id_gen);
	mutex_unlock(&all->lock);
	return due;
}

/* What was found is freed before more is looked for: files are needed. */
const struct nfs4_opdesc *nfs4_revoke_next(struct nfs4_session *s)
{
	const struct nfs4_opdesc *desc = nfs4_revoke_free_next(s);

	return desc ? desc : next_test(s);
}

bool nfs4_revoke_flags(struct nfs4_session *s, bool appeared, uint64_t sent_ns)
{
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_revoke *rv = &all->revoke;
	uint64_t now = reactor_now(s->r);
	bool start;

	mutex_lock(&all->lock);
	if (appeared) {
		rv->fruitless = 0;
		rv->next_ns = 0;
	}
	start = !rv->tester && list_empty(&rv->revoked) && rv->freeing == 0 &&
		s->id_gen == all->id_gen && sent_ns >= rv->settled_ns && now >= rv->next_ns;
	if (start) {
		rv->tester = s;
		rv->round++;
		rv->found = 0;
	}
	mutex_unlock(&all->lock);
	return start;
}
