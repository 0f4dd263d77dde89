/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "sess_rig.h"

/* RFC 8881 section 18.46.3 and table 8's row of SEQUENCE. */
Test(nfs4_recover, each_status_of_sequence_has_its_own_answer)
{
	cr_assert_eq(nfs4_recover_action(NFS4ERR_DELAY), NFS4_SEQ_RESEND);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_BADSLOT), NFS4_SEQ_CUT);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_BAD_HIGH_SLOT), NFS4_SEQ_HIGHEST);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_BADSESSION), NFS4_SEQ_SESSION);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_DEADSESSION), NFS4_SEQ_SESSION);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_CONN_NOT_BOUND_TO_SESSION), NFS4_SEQ_BIND);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_SEQ_MISORDERED), NFS4_SEQ_ORPHAN);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_SEQ_FALSE_RETRY), NFS4_SEQ_NEXT);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_RETRY_UNCACHED_REP), NFS4_SEQ_NEXT_IDEM);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_TOO_MANY_OPS), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_REQ_TOO_BIG), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_REP_TOO_BIG), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_REP_TOO_BIG_TO_CACHE), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_BADXDR), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_recover_action(NFS4ERR_SEQUENCE_POS), NFS4_SEQ_FAIL);
}

TestSuite(nfs4_recovers, .init = sess_rig_up, .fini = sess_rig_down);

/* It is up since a moment ago, after a recovery: the next one is to wait a while. */
static void recovered(void)
{
	sr.s.state = NFS4_SESSION_UP;
	sr.s.recovered_ns = reactor_now(sr.s.r);
}

Test(nfs4_recovers, what_else_is_needed_while_it_recovers_is_done_too)
{
	sr.s.need = NFS4_NEED_SESSION;
	nfs4_recover(&sr.s, sr.s.gen, NFS4_NEED_CLIENT, "test");
	cr_assert_eq(sr.s.need, NFS4_NEED_SESSION | NFS4_NEED_CLIENT);
	nfs4_recover(&sr.s, sr.s.gen - 1, NFS4_NEED_BIND, "of a session before");
	cr_assert_eq(sr.s.need, NFS4_NEED_SESSION | NFS4_NEED_CLIENT);
}

Test(nfs4_recovers, not_twice_at_once)
{
	recovered();
	nfs4_recover(&sr.s, sr.s.gen, NFS4_NEED_SESSION, "test");
	cr_assert_eq(sr.s.state, NFS4_SESSION_RECOVERING);
	cr_assert(reactor_timer_armed(&sr.s.step_timer));
	cr_assert_eq(sr.s.token, NFS4_TOKEN_NONE, "it has not begun");
}

Test(nfs4_recovers, what_a_server_lost_that_kept_the_session)
{
	struct nfs4_call call;

	recovered();
	sess_rig_call(&call);
	call.sent_ns = reactor_now(sr.s.r);
	nfs4_recover_flags(&sr.s, &call, SEQ4_STATUS_RESTART_RECLAIM_NEEDED);
	cr_assert_eq(sr.s.state, NFS4_SESSION_RECOVERING);
	cr_assert_eq(sr.s.need, NFS4_NEED_RECLAIM);
}

/* The mount, or its end, waits meanwhile. */
Test(nfs4_recovers, a_step_that_the_server_delays_is_not_waited_for_for_ever)
{
	static const struct {
		enum nfs4_step step;
		uint32_t most;
	} rows[] = {{NFS4_STEP_RECLAIM_OPEN, 12}, {NFS4_STEP_RECLAIM_LOCK, 12},
		{NFS4_STEP_BYE_DELEG, 2}, {NFS4_STEP_DESTROY, 5}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sr.s.step = rows[i].step;
		cr_assert(nfs4_steps_may_wait(&sr.s, rows[i].most));
		cr_assert_not(nfs4_steps_may_wait(&sr.s, rows[i].most + 1));
	}
	sr.s.step = NFS4_STEP_CREATE;
	cr_assert(nfs4_steps_may_wait(&sr.s, 1000), "nothing goes without it");
}
