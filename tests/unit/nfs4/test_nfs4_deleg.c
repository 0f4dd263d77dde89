/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The books of delegations (nfs4_deleg.c, nfs4_return*.c) and locks
 * (nfs4_lockowner.c, nfs4_lock_reclaim.c); scenarios are in tests/sim.
 */
#include "nfs4_hooks.h"
#include "sess_rig.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "nfs4_lock.h"

static struct nfs4_state st, st2;
static struct nfs4_deleg d, d2;
static struct nfs4_lockowner lo;
static struct nfs4_call call;

static void set_up(void)
{
	sess_rig_up();
	st = st2 = (struct nfs4_state){0};
	d = d2 = (struct nfs4_deleg){0};
	sess_rig_call(&call);
	call.u.open.fh = sr.fh;
	call.u.open.want_deleg = true;
	call.u.open.deleg_type = OPEN_DELEGATE_WRITE;
	call.u.open.deleg = sess_rig_stateid('d', 1);
}

TestSuite(nfs4_booked_deleg, .init = set_up, .fini = sess_rig_down);
TestSuite(nfs4_booked_lock, .init = set_up, .fini = sess_rig_down);

static void take(void)
{
	cr_assert_eq(nfs4_deleg_take(&d, &call), NFS4_DELEG_KEPT);
}

static bool serve(struct nfs4_state *state)
{
	return nfs4_deleg_open(&d, state, &sr.cred, OPEN4_SHARE_ACCESS_READ, 1, 0);
}

/* ---- taken ---- */

Test(nfs4_booked_deleg, given_twice_it_is_one)
{
	take();
	cr_assert_eq(nfs4_deleg_take(&d2, &call), NFS4_DELEG_GONE);
	cr_assert_eq(nfs4_deleg_count(&sr.cl), 1);
}

Test(nfs4_booked_deleg, is_recalled_when_its_recall_came_before_it)
{
	nfs4_recall_await(&call);
	cr_assert_eq(nfs4_recall_one(&sr.cl, &call.u.open.deleg, &sr.fh), NFS4ERR_DELAY);
	cr_assert_eq(nfs4_deleg_take(&d, &call), NFS4_DELEG_RECALLED);
	cr_assert_not(nfs4_deleg_holds(&d));
}

Test(nfs4_booked_deleg, is_not_recalled_by_what_came_for_one_that_never_did)
{
	nfs4_recall_await(&call);
	cr_assert_eq(nfs4_recall_one(&sr.cl, &call.u.open.deleg, &sr.fh), NFS4ERR_DELAY);
	nfs4_recall_ended(&call);
	take();
	cr_assert(nfs4_deleg_holds(&d));
}

/* On a busy mount some OPEN is always in flight. */
Test(nfs4_booked_deleg, is_waited_for_by_its_recall_while_calls_of_before_are_in_flight)
{
	const struct nfs4_stateid *sid = &call.u.open.deleg;
	struct nfs4_call before = call, after = call;

	nfs4_recall_await(&before);
	cr_assert_eq(nfs4_recall_one(&sr.cl, sid, &sr.fh), NFS4ERR_DELAY);
	nfs4_recall_await(&after);
	cr_assert_eq(nfs4_recall_one(&sr.cl, sid, &sr.fh), NFS4ERR_DELAY);
	nfs4_recall_ended(&before);
	cr_assert_eq(nfs4_recall_one(&sr.cl, sid, &sr.fh), NFS4ERR_BADHANDLE);
	nfs4_recall_ended(&after);
	cr_assert_eq(nfs4_recall_one(&sr.cl, sid, &sr.fh), NFS4ERR_BADHANDLE);
}

Test(nfs4_booked_deleg, is_waited_for_however_many_recalls_come_while_one_call_takes_long)
{
	struct nfs4_call old = call, c = call;
	struct nfs4_stateid sid = {.seqid = 1};

	nfs4_recall_await(&old);
	for (uint8_t i = 0; i < 50; i++) {
		sid.other[0] = i;
		nfs4_recall_await(&c);
		cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_DELAY);
		nfs4_recall_ended(&c);
		cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_DELAY, "%u", i);
	}
	nfs4_recall_await(&c);
	nfs4_recall_ended(&old);
	sid.other[0] = 40;
	cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_DELAY, "c may be as old");
	nfs4_recall_ended(&c);
	cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_BADHANDLE);
	/* There is room again. */
	nfs4_recall_await(&c);
	cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_DELAY);
	nfs4_recall_await(&old);
	nfs4_recall_ended(&c);
	cr_assert_eq(nfs4_recall_one(&sr.cl, &sid, &sr.fh), NFS4ERR_BADHANDLE);
	nfs4_recall_ended(&old);
}

Test(nfs4_booked_deleg, of_another_file_with_the_same_stateid_is_another)
{
	struct nfs4_fh fh = {.len = 8};
	uint32_t nr;

	take();
	mutex_lock(&sr.cl.states.lock);
	cr_assert_eq(nfs4_deleg_find(&sr.cl.states, &sr.fh, &d.stateid), &d);
	/* Some of so many are in the same bucket. */
	for (nr = 0; nr < 20 * NFS4_DELEG_BUCKETS; nr++) {
		memcpy(fh.data, &nr, sizeof(nr));
		cr_assert_null(nfs4_deleg_find(&sr.cl.states, &fh, &d.stateid));
	}
	mutex_unlock(&sr.cl.states.lock);
}

Test(nfs4_booked_deleg, that_serves_an_open_is_asked_for_more_and_for_less)
{
	take();
	cr_assert(serve(&st));
	cr_assert(nfs4_deleg_serves(&st));
	cr_assert(nfs4_deleg_open(&d, &st, &sr.cred, OPEN4_SHARE_ACCESS_WRITE, 1, 0));
	cr_assert_eq(st.share_access, OPEN4_SHARE_ACCESS_BOTH);
	cr_assert(nfs4_deleg_close(&st));
	cr_assert_null(st.cl);
	cr_assert_not(nfs4_deleg_close(&st));
	cr_assert(nfs4_deleg_holds(&d));
}

Test(nfs4_booked_deleg, that_nobody_asked_for_is_returned)
{
	call.u.open.want_deleg = false;
	cr_assert(nfs4_return_unasked(&call));
	cr_assert_eq(call.u.open.deleg_type, OPEN_DELEGATE_NONE);
	cr_assert(nfs4_return_send_due(&sr.s));
}

Test(nfs4_booked_deleg, that_somebody_asked_for_is_not_returned)
{
	cr_assert(nfs4_return_unasked(&call));
	cr_assert_eq(call.u.open.deleg_type, OPEN_DELEGATE_WRITE);
	cr_assert_not(nfs4_return_send_due(&sr.s));
}

/* ---- another client ID ---- */

Test(nfs4_booked_deleg, serves_nothing_before_it_is_reclaimed)
{
	take();
	cr_assert(serve(&st));
	sess_rig_new_client();
	cr_assert_eq(sr.lost, 0, "it is to be reclaimed");
	cr_assert_not(nfs4_deleg_holds(&d));
	cr_assert_not(serve(&st2));
}

/* The OPEN that was to reclaim it was not sent: the next session does. */
Test(nfs4_booked_deleg, serves_on_when_its_reclaim_is_given_up)
{
	struct nfs4_states *all = &sr.cl.states;
	struct nfs4_reclaim rg = {.state = &st};
	struct nfs4_op_open o = {.reclaim = true};

	take();
	cr_assert(serve(&st));
	sess_rig_new_client();
	all->may_reclaim = true;
	mutex_lock(&all->lock);
	nfs4_deleg_reclaim(all, &rg, &st, &o);
	cr_assert(rg.deleg);
	cr_assert_null(st.deleg);
	nfs4_deleg_release(all, &rg);
	mutex_unlock(&all->lock);
	cr_assert_not(rg.deleg);
	cr_assert_eq(st.deleg, &d);
	cr_assert_eq(sr.lost, 0);
}

Test(nfs4_booked_deleg, that_serves_nothing_is_lost_with_its_client_id)
{
	take();
	sess_rig_new_client();
	cr_assert_eq(sr.lost, 1);
	cr_assert_eq(nfs4_deleg_count(&sr.cl), 0);
	cr_assert_null(d.cl);
}

/* Enough of them that each bucket has some. */
Test(nfs4_booked_deleg, of_whatever_file_is_lost_with_its_client_id)
{
	const uint32_t cnt = 16 * NFS4_DELEG_BUCKETS;
	struct nfs4_deleg *many = calloc(cnt, sizeof(*many));

	cr_assert_not_null(many);
	for (uint32_t nr = 0; nr < cnt; nr++) {
		memcpy(call.u.open.fh.data, &nr, sizeof(nr));
		call.u.open.fh.len = sizeof(nr);
		cr_assert_eq(nfs4_deleg_take(&many[nr], &call), NFS4_DELEG_KEPT);
	}
	cr_assert_eq(nfs4_deleg_count(&sr.cl), cnt);
	sess_rig_new_client();
	cr_assert_eq(nfs4_deleg_count(&sr.cl), 0);
	cr_assert_eq(sr.lost, cnt);
	free(many);
}

/* ---- returned ---- */

Test(nfs4_booked_deleg, of_an_older_client_id_is_returned_without_a_call)
{
	static const struct nfs4_opdesc desc = {.name = "DELEGRETURN"};

	take();
	sr.s.id_gen = 2; /* the list is not gone through yet */
	call.desc = &desc;
	call.u.delegreturn.deleg = &d;
	cr_assert_eq(nfs4_return_take(&call), NFS4_STATE_END);
	cr_assert_eq(call.err, 0);
}

static bool is_returning(const struct nfs4_stateid *sid)
{
	bool is;

	mutex_lock(&sr.cl.states.lock);
	is = nfs4_return_list_knows(&sr.cl.states, sid);
	mutex_unlock(&sr.cl.states.lock);
	return is;
}

/* By the call that keeps the lease; false: there is none. */
static bool is_sent(void)
{
	const struct nfs4_opdesc *desc = nfs4_return_send_next(&sr.s);

	if (desc)
		nfs4_call_start(&sr.s.renew, desc);
	return desc;
}

Test(nfs4_booked_deleg, that_nobody_wants_is_returned_three_times_at_most)
{
	nfs4_return_refuse(&call);
	for (int i = 0; i < 3; i++) {
		cr_assert(nfs4_return_send_due(&sr.s), "%d times is not enough", i);
		cr_assert(is_sent());
		cr_assert_not(nfs4_return_send_due(&sr.s), "it is on its way");
		cr_assert(is_returning(&call.u.open.deleg));
		sess_rig_answer(&sr.s.renew, NFS4ERR_SERVERFAULT);
	}
	cr_assert_not(nfs4_return_send_due(&sr.s));
	cr_assert_not(is_returning(&call.u.open.deleg));
	cr_assert_eq(sr.s.cl->states.delegs.return_cnt, 0, "there is room for others");
}

Test(nfs4_booked_deleg, that_nobody_wants_is_gone_with_its_client_id)
{
	nfs4_return_refuse(&call);
	sess_rig_new_client();
	cr_assert_not(nfs4_return_send_due(&sr.s));
	cr_assert_not(is_sent());
}

Test(nfs4_booked_deleg, that_the_server_does_not_know_counts_as_returned)
{
	nfs4_return_refuse(&call);
	cr_assert(is_sent());
	sess_rig_answer(&sr.s.renew, NFS4ERR_BAD_STATEID);
	cr_assert_not(nfs4_return_send_due(&sr.s));
}

/* Whatever the trouble of one file is, the others are tried, unless none would be taken. */
Test(nfs4_booked_deleg, of_a_mount_that_ends_are_returned_while_there_is_a_session)
{
	static const struct {
		int err;
		enum nfs4_status status;
		bool goes_on;
	} rows[] = {
		{0, NFS4_OK, true},
		{-EIO, NFS4ERR_BAD_STATEID, true},
		{-EACCES, NFS4ERR_ACCESS, true},
		{-ETIMEDOUT, NFS4_OK, false}, /* no answer */
		{-EIO, NFS4ERR_BADSESSION, false},
		{-EIO, NFS4ERR_STALE_CLIENTID, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nfs4_call done = {.err = rows[i].err, .status = rows[i].status};

		nfs4_return_refuse(&call);
		sr.s.state = NFS4_SESSION_STOPPING;
		sr.s.no_byes = false;
		cr_assert(nfs4_return_send_last(&sr.s), "row %zu", i);
		nfs4_return_send_last_done(&sr.s, &done);
		cr_assert_eq(sr.s.no_byes, !rows[i].goes_on, "row %zu", i);
		cr_assert_not(nfs4_return_send_last(&sr.s), "there is no other");
	}
}

Test(nfs4_booked_deleg, that_was_revoked_is_freed_by_who_had_it)
{
	struct nfs4_states *all = &sr.cl.states;
	const struct rpc_cred other = {.uid = 1005};

	mutex_lock(&all->lock);
	nfs4_revoked_add(all, &call.u.open.deleg, &other, sr.s.id_gen);
	mutex_unlock(&all->lock);
	cr_assert_not_null(nfs4_revoke_free_next(&sr.s));
	cr_assert_eq(sr.s.renew.cred->uid, 1005);
	free(sr.s.testing.revoked);
	sr.s.testing.revoked = NULL;
	all->revoke.freeing = 0;
}

/* ---- locks ---- */

static const struct nfs4_opdesc lock_desc = {
	.name = "LOCK", .lock_off = offsetof(struct nfs4_call, u.lock.work)};

static struct nfs4_lock_work *work(uint64_t first, uint64_t last, bool unlock)
{
	struct nfs4_lock_work *k = &call.u.lock.work;

	sess_rig_call(&call);
	call.desc = &lock_desc;
	*k = (struct nfs4_lock_work){
		.lo = &lo,
		.wanted = &st,
		.offset = first,
		.length = last - first + 1,
		.unlock = unlock,
	};
	return k;
}

static void lock_set_up(void)
{
	sess_rig_open(&st, OPEN4_SHARE_ACCESS_READ, sess_rig_stateid('a', 1));
	nfs4_lockowner_init(&lo, &sr.cl);
}

static void no_answer(uint64_t first, uint64_t last)
{
	work(first, last, false);
	cr_assert_eq(nfs4_lockowner_take(&call), NFS4_STATE_GO);
	call.err = -ETIMEDOUT;
	nfs4_lockowner_ended(&call);
}

static void granted(uint64_t first, uint64_t last, bool unlock)
{
	struct nfs4_lock_work *k = work(first, last, unlock);

	cr_assert_eq(nfs4_lockowner_take(&call), NFS4_STATE_GO);
	k->stateid = sess_rig_stateid('l', 1);
	cr_assert(nfs4_lockowner_granted(&call));
	nfs4_lockowner_ended(&call);
}

Test(nfs4_booked_lock, two_without_an_answer_are_both_in_doubt)
{
	lock_set_up();
	no_answer(30, 39);
	no_answer(10, 19);
	no_answer(50, 59);
	work(50, 59, true);
	cr_assert_eq(nfs4_lockowner_take(&call), NFS4_STATE_GO);
	cr_assert_eq(call.u.lock.work.offset, 10, "all of it, since nobody wants any");
	cr_assert_eq(call.u.lock.work.length, 50);
	nfs4_lockowner_ended(&call);
}

Test(nfs4_booked_lock, only_the_stateid_of_who_holds_nothing_is_freed)
{
	lock_set_up();
	granted(10, 19, false);
	nfs4_lockowner_free(&lo, &sr.s);
	cr_assert_eq(sr.cl.states.free_cnt, 0);
	nfs4_lockowner_init(&lo, &sr.cl);
	granted(10, 19, false);
	granted(10, 19, true);
	nfs4_lockowner_free(&lo, &sr.s);
	cr_assert_eq(sr.cl.states.free_cnt, 1);
}

Test(nfs4_booked_lock, a_stateid_is_not_freed_under_another_client_id)
{
	lock_set_up();
	granted(10, 19, false);
	granted(10, 19, true);
	nfs4_lockowner_free(&lo, &sr.s);
	cr_assert_eq(sr.cl.states.free_cnt, 1);
	sess_rig_new_client();
	cr_assert_not(nfs4_lock_free_next(&sr.s));
	cr_assert_eq(sr.cl.states.free_cnt, 0);
}

/* More are left to CLOSE. */
Test(nfs4_booked_lock, so_many_stateids_wait_to_be_freed_and_no_more)
{
	const unsigned int most = 1024;

	sess_rig_open(&st, OPEN4_SHARE_ACCESS_READ, sess_rig_stateid('a', 1));
	for (unsigned int i = 0; i < most + 2; i++) {
		nfs4_lockowner_init(&lo, &sr.cl);
		granted(10, 19, false);
		granted(10, 19, true);
		nfs4_lockowner_free(&lo, &sr.s);
		cr_assert_eq(sr.cl.states.free_cnt, i < most ? i + 1 : most);
	}
}

Test(nfs4_booked_lock, of_this_file_only_are_waited_for)
{
	lock_set_up();
	granted(10, 19, false);
	sess_rig_bad(&st);
	sess_rig_call(&call);
	call.u.lockt.fh = &sr.fh;
	cr_assert_eq(nfs4_lockowner_take_test(&call), NFS4_STATE_WAIT, "it is not there yet");
	call.u.lockt.fh = &(struct nfs4_fh){.len = 2, .data = "gh"};
	cr_assert_eq(nfs4_lockowner_take_test(&call), NFS4_STATE_GO);
}
