/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations: opens served without the server, claimed, returned. The
 * simulated server judges: no use of what was returned, no writing with a READ
 * delegation. Recalls are test_nfs4_recall.c's.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "deleg_rig.h"

static struct sim_held h2;

/* ---- given ---- */

Test(nfs4_deleg, served_open_costs_no_call_and_its_read_bears_the_delegation, .init = sim_log_count)
{
	uint64_t calls;

	deleg_begin_idle(2, NFSD_SIM_DELEG_READ);
	cr_assert(nfs4_deleg_holds(&h.deleg));
	cr_assert_eq(nfs4_deleg_count(w.cl), 1);
	calls = nfsd_sim_stats(w.srv).calls;
	for (int i = 0; i < 3; i++) {
		cr_assert(sim_hserve(&h, READ));
		cr_assert(sim_hserve(&h, READ), "and once more");
		cr_assert(nfs4_deleg_serves(&h.f.state));
		cr_assert(nfs4_deleg_close(&h.f.state));
		cr_assert_not(nfs4_deleg_close(&h.f.state));
	}
	cr_assert(sim_hserve(&h, READ));
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 2);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls + 2);
	cr_assert_eq(sim_hreturn(&h, 1), 0);
	cr_assert_not(nfs4_deleg_holds(&h.deleg));
	cr_assert_eq(h.recalls + h.losses, 0);
	deleg_end(0);
}

Test(nfs4_deleg, read_delegation_does_not_serve_writers, .init = sim_log_count)
{
	deleg_begin_idle(1, NFSD_SIM_DELEG_READ);
	cr_assert_not(sim_hserve(&h, WRITE));
	cr_assert_not(sim_hserve(&h, BOTH));
	cr_assert(sim_hserve(&h, READ));
	cr_assert_not(sim_hserve(&h, BOTH));
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, write_delegation_serves_everybody, .init = sim_log_count)
{
	static struct sim_op op;

	deleg_begin_served(2, NFSD_SIM_DELEG_WRITE);
	cr_assert_eq(sim_hwrite(&h, 0), 0);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert(sim_op_get(&w, 1, &op));
	op.call.u.setattr.fh = &h.f.fh;
	op.call.u.setattr.state = &h.f.state;
	op.call.u.setattr.sattr.set = NFS4_ATTR_SIZE;
	op.call.u.setattr.sattr.size = 100;
	cr_assert_eq(sim_op_run(&op, nfs4_setattr), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 3);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, none_is_given_to_who_does_not_want_one, .init = sim_log_count)
{
	deleg_begin(1, NFSD_SIM_DELEG_READ | NFSD_SIM_DELEG_WRITE);
	cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
	cr_assert_eq(h.taken, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).delegs, 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, none_is_given_to_a_client_that_has_nobody_for_it, .init = sim_log_count)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.delegs = NFSD_SIM_DELEG_READ;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1); /* without nfs4_deleg_set_ops() */
	sim_held_file(&w, &h, "/f");
	cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
	cr_assert_eq(h.taken, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).delegs, 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, refused_one_is_returned_in_the_background, .init = sim_log_count)
{
	struct sim_held_op ho = {.refuses = true};

	deleg_begin(2, NFSD_SIM_DELEG_READ);
	cr_assert(sim_open_start(&ho, &h, 1, READ, true));
	cr_assert_eq(sim_held_wait(&ho), 0);
	cr_assert_eq(h.refused, 1);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, return_of_a_refused_one_may_fail_in_any_way, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_BAD_STATEID},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_held_op ho = {.refuses = true};

		deleg_begin(2, NFSD_SIM_DELEG_READ);
		sim_rule(&w, rows[i].act, OP_DELEGRETURN, 0, 1, rows[i].status);
		cr_assert(sim_open_start(&ho, &h, 1, READ, true));
		cr_assert_eq(sim_held_wait(&ho), 0);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0, "row %zu", i);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(1);
	}
}

Test(nfs4_deleg, filehandles_and_owners_of_the_largest_size_fit, .init = sim_log_count)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.longest = true;
	sim_nfs_open(&w, &sconf);
	sim_held_mounted(&w, 1, NFSD_SIM_DELEG_WRITE);
	sim_held_file(&w, &h, "/f");
	cr_assert_eq(sim_hopen(&h, 0, BOTH, true), 0);
	cr_assert_eq(h.taken, 1);
	cr_assert_eq(nfsd_sim_recall(w.srv, NULL), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(h.recalls, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	deleg_end(0);
}

/* ---- claimed ---- */

Test(nfs4_deleg, claimed_open_is_its_own_and_survives_the_return, .init = sim_log_count)
{
	static const uint32_t types[] = {NFSD_SIM_DELEG_READ, NFSD_SIM_DELEG_WRITE};

	for (int i = 0; i < 2; i++)
		for (unsigned int lane = 0; lane < 2; lane++) {
			uint64_t calls;

			deleg_begin_served(2, types[i]);
			cr_assert_eq(sim_hclaim(&h, lane), 0);
			cr_assert_eq(nfsd_sim_stats(w.srv).deleg_claims, 1);
			cr_assert_not(nfs4_deleg_serves(&h.f.state));
			cr_assert_eq(nfsd_sim_opens(w.srv, "/f", NULL, 0), 1);
			/* What is not served any more needs no call. */
			calls = nfsd_sim_stats(w.srv).calls;
			cr_assert_eq(sim_hclaim(&h, lane), 0);
			cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls);
			cr_assert_eq(sim_hreturn(&h, 1 - lane), 0);
			cr_assert_eq(sim_hread(&h, 0), 0);
			if (i)
				cr_assert_eq(sim_hwrite(&h, 1), 0);
			cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 0);
			cr_assert_eq(sim_hclose(&h, 0), 0);
			cr_assert_eq(sim_ops(&w, OP_CLOSE), 2);
			deleg_end(0);
		}
}

Test(nfs4_deleg, return_waits_for_the_last_claim, .init = sim_log_count)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	h2 = (struct sim_held){.w = &w, .owner = nfs4_new_owner(w.cl), .f.fh = h.f.fh};
	cr_assert(nfs4_deleg_open(&h.deleg, &h2.f.state, &w.cred, READ, h2.owner, 0));
	cr_assert_eq(sim_hclaim(&h2, 0), 0);
	cr_assert_eq(sim_hread(&h2, 0), 0);
	cr_assert_neq(sim_hreturn(&h, 0), 0, "it still serves one");
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hclaim(&h, 0), 0);
	cr_assert_eq(nfsd_sim_opens(w.srv, "/f", NULL, 0), 2);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hread(&h2, 0), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h2, 0), 0);
	deleg_end(0);
}

Test(nfs4_deleg, reads_go_on_while_it_is_claimed, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 100; us += 3) {
		struct sim_held_op claim = {0}, io[4] = {0};

		deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		cr_assert(sim_read_start(&io[0], &h, 0));
		cr_assert(sim_read_start(&io[1], &h, 1));
		cr_assert(sim_claim_start(&claim, &h, 0));
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		cr_assert(sim_read_start(&io[2], &h, 0));
		cr_assert(sim_read_start(&io[3], &h, 1));
		cr_assert_eq(sim_held_wait(&claim), 0);
		for (int i = 0; i < 4; i++)
			cr_assert_eq(sim_held_wait(&io[i]), 0, "%u us, %d", us, i);
		cr_assert_eq(sim_hreturn(&h, 1), 0);
		cr_assert_eq(sim_hread(&h, 0), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(0);
	}
}

Test(nfs4_deleg, claim_may_fail_in_any_way, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_DELAY},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		sim_rule(&w, rows[i].act, OP_OPEN, 0, 1, rows[i].status);
		cr_assert_eq(sim_hclaim(&h, 0), 0, "row %zu", i);
		cr_assert_not(nfs4_deleg_serves(&h.f.state));
		cr_assert_eq(sim_hreturn(&h, 1), 0);
		cr_assert_eq(sim_hread(&h, 1), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(1);
	}
}

Test(nfs4_deleg, server_without_claims_is_asked_for_an_open_like_any_other, .init = sim_log_count)
{
	static const uint32_t types[] = {NFSD_SIM_DELEG_READ, NFSD_SIM_DELEG_WRITE};
	struct nfs4_lockowner lo;

	for (int i = 0; i < 2; i++) {
		deleg_begin_served(2, types[i]);
		nfsd_sim_conf(w.srv)->no_deleg_claim = true;
		nfs4_lockowner_init(&lo, w.cl);
		cr_assert_eq(sim_hclaim(&h, 0), 0);
		cr_assert_not(nfs4_deleg_serves(&h.f.state));
		cr_assert_eq(nfsd_sim_opens(w.srv, "/f", NULL, 0), 1);
		cr_assert_eq(sim_hread(&h, 1), 0);
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 0);
		cr_assert_eq(sim_brlock(&w, 0, &h.f, &lo, 0, 10, false), 0);
		cr_assert_eq(sim_hreturn(&h, 0), 0);
		cr_assert_eq(sim_hread(&h, 0), 0);
		cr_assert_eq(sim_brunlock(&w, 0, &h.f, &lo, 0, 10), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(0);
	}
}

Test(nfs4_deleg, claim_and_open_that_are_refused_lose_the_file, .init = sim_log_count)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 0, 2, NFS4ERR_ACCESS);
	cr_assert_eq(sim_hclaim(&h, 0), -EACCES);
	cr_assert_eq(sim_hread(&h, 0), -EIO);
	cr_assert_eq(sim_said.lost, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	sim_said.lost = 0;
	deleg_end(0);
}

Test(nfs4_deleg, soft_mount_claim_without_an_answer_leaves_it_served, .init = sim_log_count)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_soft(&w, 2);
	sim_held_mounted(&w, 1, NFSD_SIM_DELEG_READ);
	sim_held_file(&w, &h, "/f");
	cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert(sim_hserve(&h, READ));
	sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 0, 0, NFS4ERR_DELAY);
	cr_assert_eq(sim_hclaim(&h, 0), -ETIMEDOUT);
	cr_assert(nfs4_deleg_serves(&h.f.state));
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 1);
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(sim_hclaim(&h, 0), 0);
	cr_assert_not(nfs4_deleg_serves(&h.f.state));
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}

/* ---- an OPEN beside it ---- */

Test(nfs4_deleg, open_of_a_served_state_makes_it_its_own, .init = sim_log_count)
{
	deleg_begin_served(2, NFSD_SIM_DELEG_READ);
	cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
	cr_assert_not(nfs4_deleg_serves(&h.f.state));
	cr_assert_eq(sim_hwrite(&h, 0), 0);
	cr_assert_eq(sim_hread(&h, 0), 0, "for what it was served for too");
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_opens(w.srv, "/f", NULL, 0), 1);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}

/* ---- returned ---- */

Test(nfs4_deleg, return_may_fail_in_any_way, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_OLD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_BAD_STATEID},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_EXPIRED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		deleg_begin_idle(2, NFSD_SIM_DELEG_READ);
		sim_rule(&w, rows[i].act, OP_DELEGRETURN, 0, 1, rows[i].status);
		cr_assert_eq(sim_hreturn(&h, 0), 0, "row %zu", i);
		cr_assert_eq(nfs4_deleg_count(w.cl), 0);
		/* The next one may come, when there is a backchannel again. */
		nfsd_sim_rules_clear(w.srv);
		sim_nfs_run(&w, 10 * SIM_SEC);
		cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
		cr_assert_eq(h.taken, 2, "row %zu", i);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		cr_assert_eq(sim_hreturn(&h, 1), 0);
		deleg_end(1);
	}
}

Test(nfs4_deleg, it_serves_nothing_once_its_return_was_started, .init = sim_log_count)
{
	/* at once; while the session is made anew */
	for (int wait = 0; wait < 2; wait++) {
		struct sim_held_op ho = {0};

		deleg_begin_idle(1, NFSD_SIM_DELEG_READ);
		if (wait) {
			static struct sim_nfs_call g;

			nfsd_sim_drop_sessions(w.srv);
			cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
			sim_nfs_run(&w, 60 * NSEC_PER_USEC);
		}
		cr_assert(sim_return_start(&ho, &h, 0));
		cr_assert_not(nfs4_deleg_holds(&h.deleg));
		cr_assert_not(sim_hserve(&h, READ));
		cr_assert_eq(sim_held_wait(&ho), 0);
		sim_nfs_run(&w, SIM_SEC);
		deleg_end(0);
	}
}

/* Its user need not wait for what is on its way: that is repeated, with the open's stateid. */
Test(nfs4_deleg, reads_that_come_after_the_return_are_repeated, .init = sim_log_count)
{
	struct sim_held_op io[4] = {0};

	deleg_begin_served(2, NFSD_SIM_DELEG_READ);
	/* They are resent, as they were, long after the other lane has returned it. */
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_READ, 0, 1, 0);
	for (int i = 0; i < 4; i++)
		cr_assert(sim_read_start(&io[i], &h, 1));
	sim_nfs_run(&w, 50 * NSEC_PER_USEC);
	cr_assert_eq(sim_hclaim(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(io[0].op.done_cnt, 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(sim_held_wait(&io[i]), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 0);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}
