/* SPDX-License-Identifier: BSD-3-Clause */
/* Delegations at the end: what nobody uses is returned, and no server is waited for. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "deleg_rig.h"

Test(nfs4_deleg_stop, forgotten_one_is_returned_at_the_latest_at_the_end)
{
	deleg_begin_idle(1, NFSD_SIM_DELEG_READ);
	nfs4_deleg_forget(&h.deleg);
	cr_assert_eq(nfs4_deleg_count(w.cl), 0);
	cr_assert_not(sim_hserve(&h, READ));
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_deleg_stop, many_idle_ones_are_returned_at_the_end)
{
	static struct sim_held many[50];

	deleg_begin(3, NFSD_SIM_DELEG_READ);
	for (unsigned int i = 0; i < 50; i++) {
		char path[8];

		snprintf(path, sizeof(path), "/m%u", i);
		sim_held_file(&w, &many[i], path);
		cr_assert_eq(sim_hopen(&many[i], i % 3, READ, true), 0);
		cr_assert_eq(many[i].how, NFS4_DELEG_KEPT);
		cr_assert_eq(sim_hclose(&many[i], i % 3), 0);
	}
	cr_assert_eq(nfs4_deleg_count(w.cl), 50);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_deleg_stop, delegations_may_be_left_at_the_stop)
{
	for (int served = 0; served < 2; served++) {
		if (served)
			deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		else
			deleg_begin_idle(2, NFSD_SIM_DELEG_READ);
		sim_nfs_stop(&w);
		cr_assert_eq(nfsd_sim_live_sessions(w.srv), 0);
		/* In use it keeps the client ID busy: that is left to its lease. */
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), served);
		SIM_NFS_CLOSE(&w, served);
		cr_assert(!h.deleg.cl && !h.f.state.cl);
	}
}

Test(nfs4_deleg_stop, its_return_may_fail_in_any_way)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_LOSE, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_BAD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS, NFS4ERR_SERVERFAULT},
	};

	/* always; once */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t count = 0; count < 2; count++) {
			deleg_begin_idle(2, NFSD_SIM_DELEG_READ);
			sim_rule(&w, rows[i].act, OP_DELEGRETURN, 0, count, rows[i].status);
			/* In 5 s, whatever the server does. */
			SIM_NFS_CLOSE(&w, 1);
			cr_assert(!h.deleg.cl);
		}
}

Test(nfs4_deleg_stop, it_may_come_at_any_moment_of_a_recall_and_a_return)
{
	for (unsigned int us = 0; us < 150; us += 3) {
		struct sim_held_op ho = {0};

		deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		nfsd_sim_recall(w.srv, NULL);
		cr_assert(sim_claim_start(&ho, &h, 1));
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		if (ho.op.done_cnt) {
			cr_assert(sim_return_start(&ho, &h, 0));
			sim_nfs_run(&w, (us - 40) * NSEC_PER_USEC);
		}
		SIM_NFS_CLOSE(&w, 1);
		cr_assert_eq(ho.op.done_cnt, 1);
		cr_assert(!h.deleg.cl);
	}
}
