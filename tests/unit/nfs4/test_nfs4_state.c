/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The books of opens (nfs4_state.c, nfs4_share.c, nfs4_reclaim.c); scenarios are in tests/sim.
 */
#include "nfs4_hooks.h"
#include "sess_rig.h"

#include <errno.h>
#include <stddef.h>

static struct nfs4_state st, st2;
static struct nfs4_deleg d;

static const struct nfs4_opdesc close_desc = {
	.name = "CLOSE",
	.state_off = offsetof(struct nfs4_call, u.close.state),
	.take = nfs4_state_close_take,
	.ended = nfs4_state_close_ended,
};
static const struct nfs4_opdesc read_desc = {
	.name = "READ",
	.state_off = offsetof(struct nfs4_call, u.read.state),
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
};

static void set_up(void)
{
	sess_rig_up();
	st = st2 = (struct nfs4_state){0};
	d = (struct nfs4_deleg){0};
}

TestSuite(nfs4_held, .init = set_up, .fini = sess_rig_down);

/* In place: a call has lists that point into it. */
static void call_on(struct nfs4_call *call, const struct nfs4_opdesc *desc)
{
	sess_rig_call(call);
	call->desc = desc;
	if (desc == &close_desc)
		call->u.close.state = &st;
	else
		call->u.read.state = &st;
}

static void open_read(uint8_t other, uint32_t seqid)
{
	sess_rig_open(&st, OPEN4_SHARE_ACCESS_READ, sess_rig_stateid(other, seqid));
}

/* The rig's delegation, for reading and writing, and `st` that it serves. */
static void served(void)
{
	struct nfs4_call call;

	sess_rig_call(&call);
	call.u.open.fh = sr.fh;
	call.u.open.deleg_type = OPEN_DELEGATE_WRITE;
	call.u.open.deleg = sess_rig_stateid('d', 1);
	cr_assert_eq(nfs4_deleg_take(&d, &call), NFS4_DELEG_KEPT);
	cr_assert(nfs4_deleg_open(&d, &st, &sr.cred, OPEN4_SHARE_ACCESS_BOTH, 1, 0));
}

/* The OPEN that asks for it again is answered, with another stateid. */
static void opened_again(void)
{
	sr.s.reopener.u.open.stateid = sess_rig_stateid('b', 1);
	sess_rig_answer(&sr.s.reopener, NFS4_OK);
}

/* ---- stateids of calls ---- */

Test(nfs4_held, close_names_the_open_it_means_and_others_the_newest)
{
	struct nfs4_call close, read;

	call_on(&close, &close_desc);
	call_on(&read, &read_desc);
	open_read('a', 3);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_GO);
	cr_assert_eq(read.stateid.seqid, 0);
	cr_assert_eq(nfs4_state_close_take(&close), NFS4_STATE_GO);
	cr_assert_eq(close.stateid.seqid, 3);
}

Test(nfs4_held, the_server_never_hears_of_the_close_of_what_a_delegation_serves)
{
	struct nfs4_call close;

	call_on(&close, &close_desc);
	served();
	cr_assert_eq(nfs4_state_close_take(&close), NFS4_STATE_END);
	cr_assert_eq(close.err, 0);
	cr_assert_null(st.cl, "it is not open any more");
}

Test(nfs4_held, an_old_number_is_replaced_without_another_open)
{
	struct nfs4_call read;

	call_on(&read, &read_desc);
	open_read('a', 3);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_GO);
	read.status = NFS4ERR_OLD_STATEID;
	cr_assert_eq(nfs4_lock_io_refused(&read), NFS4_STATE_GO);
	cr_assert(sess_rig_is_on(&sr.cl.states.held, &st));
	cr_assert_eq(st.stateid.seqid, 0);
}

Test(nfs4_held, a_refusal_of_a_stateid_that_was_replaced_means_nothing)
{
	struct nfs4_call read;

	call_on(&read, &read_desc);
	open_read('a', 3);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_GO);
	open_read('a', 4);
	read.status = NFS4ERR_BAD_STATEID;
	cr_assert_eq(nfs4_lock_io_refused(&read), NFS4_STATE_GO);
	cr_assert(sess_rig_is_on(&sr.cl.states.held, &st));
}

Test(nfs4_held, what_was_not_closed_is_opened_anew_when_it_is_gone)
{
	struct nfs4_call close;

	call_on(&close, &close_desc);
	open_read('a', 3);
	cr_assert_eq(nfs4_state_close_take(&close), NFS4_STATE_GO);
	close.err = -EIO;
	nfs4_state_close_ended(&close);
	sess_rig_bad(&st);
	cr_assert(sess_rig_is_on(&sr.cl.states.reopen, &st));
}

/* ---- OPENs that become one ---- */

Test(nfs4_held, an_open_that_died_with_its_client_id_is_asked_for_again)
{
	sess_rig_new_client();
	open_read('a', 1);
	sr.s.id_gen = 1; /* the reply is of the session before */
	sess_rig_open(&st, OPEN4_SHARE_ACCESS_WRITE, sess_rig_stateid('b', 1));
	cr_assert_eq(st.share_access, OPEN4_SHARE_ACCESS_BOTH);
	cr_assert(sess_rig_is_on(&sr.cl.states.reopen, &st));
	cr_assert(nfs4_state_same_other(&st.stateid, &(struct nfs4_stateid){.other = "a"}));
}

Test(nfs4_held, a_downgrade_is_never_to_more)
{
	struct nfs4_call call;

	sess_rig_call(&call);
	open_read('a', 1);
	call.u.downgrade.state = &st;
	call.u.downgrade.share_access = OPEN4_SHARE_ACCESS_BOTH;
	cr_assert_eq(nfs4_share_downgrade_take(&call), NFS4_STATE_END);
	cr_assert_eq(call.err, -EINVAL);
	cr_assert_eq(st.share_access, OPEN4_SHARE_ACCESS_READ);
}

/* ---- claims ---- */

Test(nfs4_held, a_claim_of_what_is_lost_fails)
{
	struct nfs4_call call;

	sess_rig_call(&call);
	open_read('a', 1);
	mutex_lock(&sr.cl.states.lock);
	nfs4_state_lose(&sr.cl.states, &st, NFS4ERR_STALE);
	mutex_unlock(&sr.cl.states.lock);
	call.u.open.claim = &st;
	cr_assert_eq(nfs4_share_claim_take(&call), NFS4_STATE_FAIL);
}

Test(nfs4_held, a_claim_waits_while_its_delegation_is_to_be_reclaimed)
{
	struct nfs4_call call;

	served();
	sess_rig_new_client();
	sess_rig_call(&call);
	call.u.open.claim = &st;
	cr_assert_eq(nfs4_share_claim_take(&call), NFS4_STATE_WAIT);
}

/* ---- reclaimed ---- */

/* CLAIM_PREVIOUS, which is answered so; what it opened has this file ID. */
static void reclaim(enum nfs4_status status, uint64_t fileid)
{
	struct nfs4_call *call = &sr.s.ctl;

	call->desc = &nfs4_reclaim_open_desc;
	call->id_gen = sr.s.id_gen;
	call->status = status;
	call->err = -nfs4_status_errno(status);
	call->u.open.stateid = sess_rig_stateid('r', 1);
	call->u.open.attr.valid = NFS4_ATTR_FILEID;
	call->u.open.attr.fileid = fileid;
	cr_assert(nfs4_reclaim_done(&sr.s, call));
	cr_assert_not(nfs4_reclaim_lock(&sr.s));
}

Test(nfs4_held, another_file_under_the_same_handle_is_not_taken_for_ours)
{
	open_read('a', 1);
	sess_rig_new_client();
	cr_assert(nfs4_reclaim_next(&sr.s));
	reclaim(NFS4_OK, st.fileid + 1);
	cr_assert(nfs4_state_is_lost(&st));
}

Test(nfs4_held, what_another_open_needs_meanwhile_is_asked_for_too)
{
	open_read('a', 1);
	sess_rig_new_client();
	cr_assert(nfs4_reclaim_next(&sr.s));
	sr.s.id_gen = 1;
	sess_rig_open(&st, OPEN4_SHARE_ACCESS_WRITE, sess_rig_stateid('b', 1));
	sr.s.id_gen = 2;
	reclaim(NFS4_OK, st.fileid);
	cr_assert(sess_rig_is_on(&sr.cl.states.reopen, &st), "it is there for reading only");
}

Test(nfs4_held, that_there_is_no_grace_is_asked_once_for_all)
{
	open_read('a', 1);
	sess_rig_open(&st2, OPEN4_SHARE_ACCESS_READ, sess_rig_stateid('b', 1));
	sess_rig_new_client();
	cr_assert(nfs4_reclaim_next(&sr.s));
	reclaim(NFS4ERR_NO_GRACE, 0);
	cr_assert_not(nfs4_reclaim_next(&sr.s));
	cr_assert(sess_rig_is_on(&sr.cl.states.reopen, &st));
	cr_assert(sess_rig_is_on(&sr.cl.states.reopen, &st2));
}

Test(nfs4_held, a_call_goes_on_in_the_moment_that_its_open_is_there_again)
{
	struct nfs4_call read;

	call_on(&read, &read_desc);
	open_read('a', 1);
	sess_rig_bad(&st);
	sr.s.state = NFS4_SESSION_UP;
	nfs4_call_start(&read, &read_desc);
	cr_assert_eq(read.state, NFS4_CALL_DELAYED, "it waits for the open");
	cr_assert_eq(sr.s.reopener.state, NFS4_CALL_WAITING, "which is asked for");
	opened_again();
	cr_assert_eq(read.state, NFS4_CALL_WAITING, "for a slot, not for a while");
}

/* I11: late answers to others, about the stateid that it had before. */
Test(nfs4_held, what_is_in_hand_stays_there_whoever_finds_it_gone)
{
	const struct nfs4_states *all = &sr.cl.states;
	struct nfs4_call read;

	call_on(&read, &read_desc);
	open_read('a', 1);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_GO);
	sess_rig_bad(&st);
	sr.s.state = NFS4_SESSION_UP;
	nfs4_reclaim_kick(&sr.s);
	cr_assert(sess_rig_is_on(&all->in_hand, &st));
	sess_rig_bad(&st);
	read.status = NFS4ERR_BAD_STATEID;
	cr_assert_eq(nfs4_lock_io_refused(&read), NFS4_STATE_GO);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_WAIT, "for that very OPEN");
	cr_assert(sess_rig_is_on(&all->in_hand, &st));
	cr_assert(list_empty(&all->reopen), "nobody else is to ask for it");
	opened_again();
	cr_assert(sess_rig_is_on(&all->held, &st));
	cr_assert_null(st.reclaim);
	cr_assert_eq(nfs4_lock_io_take(&read), NFS4_STATE_GO);
	cr_assert_eq(read.stateid.other[0], 'b');
}

/* The OPEN that is on its way is not to be forgotten when its answer comes. */
Test(nfs4_held, a_close_that_waits_for_the_open_has_not_been_sent)
{
	struct nfs4_call close;

	call_on(&close, &close_desc);
	open_read('a', 1);
	sess_rig_bad(&st);
	sr.s.state = NFS4_SESSION_UP;
	nfs4_reclaim_kick(&sr.s);
	cr_assert_eq(nfs4_state_close_take(&close), NFS4_STATE_WAIT);
	cr_assert_not(st.is_closed);
	opened_again();
	cr_assert_eq(nfs4_state_close_take(&close), NFS4_STATE_GO);
	cr_assert(st.is_closed);
}

/* Soft: each wait for an open has its own time, however long ago the call began. */
Test(nfs4_held, a_call_that_found_its_open_good_waits_anew_when_it_is_gone)
{
	struct nfs4_call read;

	call_on(&read, &read_desc);
	sr.cl.conf.hard = false;
	sr.cl.conf.rdma.timeo_ns = NSEC_PER_SEC / 2; /* time began longer ago */
	sr.s.state = NFS4_SESSION_UP;
	open_read('a', 1);
	nfs4_call_start(&read, &read_desc);
	cr_assert_eq(read.state, NFS4_CALL_WAITING, "for a slot");
	sess_rig_bad(&st);
	nfs4_call_kick(&sr.s);
	cr_assert_eq(read.state, NFS4_CALL_DELAYED, "for the open");
	reactor_timer_cancel(sr.s.r, &read.timer);
}
