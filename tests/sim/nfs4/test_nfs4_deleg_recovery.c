/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations over the server's restart: reclaimed or lost, and what they
 * served is open in either case. The simulated server judges what is reclaimed
 * when. What is lost otherwise is test_nfs4_deleg_lost.c's.
 */
#include <criterion/criterion.h>

#include "deleg_rig.h"

#define GRACE (10 * SIM_SEC)
#define LEASE (100 * SIM_SEC) /* after it every lane has sent a SEQUENCE */
#define FILES 4

/* ---- the server is restarted ---- */

Test(nfs4_deleg_recovery, what_is_in_use_is_reclaimed_and_what_is_idle_lost, .init = sim_log_count)
{
	static const uint32_t types[] = {NFSD_SIM_DELEG_READ, NFSD_SIM_DELEG_WRITE};

	for (int t = 0; t < 2; t++)
		for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
			deleg_files_begin(lanes, FILES, types[t], 0x5);
			/* One has an open of its own beside its delegation, which serves nothing.
			 */
			cr_assert_eq(sim_hopen(&files[1], 0, READ, false), 0);
			nfsd_sim_restart(w.srv, GRACE, false);
			deleg_use(&files[0], "served", lanes);
			deleg_use(&files[1], "opened", lanes);
			sim_nfs_run(&w, 30 * SIM_SEC);
			deleg_use(&files[2], "served", lanes);
			for (unsigned int i = 0; i < FILES; i++) {
				cr_assert_eq(files[i].losses, i % 2, "file %u", i);
				cr_assert_eq(nfs4_deleg_holds(&files[i].deleg), i % 2 == 0);
				cr_assert_eq(files[i].recalls, 0);
			}
			cr_assert_eq(nfsd_sim_stats(w.srv).deleg_reclaims, 2);
			cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 3);
			cr_assert_eq(nfsd_sim_live_delegs(w.srv), 2);
			/* What was reclaimed is good for more. */
			cr_assert_eq(sim_hclose(&files[2], 0), 0);
			cr_assert(sim_hserve(&files[2], READ));
			deleg_use(&files[2], "served anew", lanes);
			deleg_files_end(FILES, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_recovery, refused_one_is_lost_and_the_open_kept, .init = sim_log_count)
{
	deleg_files_begin(2, FILES, NFSD_SIM_DELEG_READ, 0xf);
	nfsd_sim_conf(w.srv)->deleg_no_reclaim = true;
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, FILES);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	for (unsigned int i = 0; i < FILES; i++) {
		cr_assert_eq(files[i].losses, 1);
		cr_assert_not(nfs4_deleg_serves(&files[i].f.state));
		deleg_use(&files[i], "file", i);
	}
	deleg_files_end(FILES, 0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_recovery, one_that_comes_back_with_its_recall_is_told, .init = sim_log_count)
{
	deleg_files_begin(2, 2, NFSD_SIM_DELEG_READ, 0x3);
	nfsd_sim_conf(w.srv)->deleg_recalled = true;
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 30 * SIM_SEC);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(files[i].recalls, 1);
		cr_assert_eq(files[i].losses, 0);
		cr_assert_not(nfs4_deleg_holds(&files[i].deleg));
		deleg_use(&files[i], "file", i);
	}
	deleg_files_end(2, 0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_recovery, early_recall_of_what_is_reclaimed_is_heard, .init = sim_log_count)
{
	static const enum nfsd_sim_early early[] = {NFSD_SIM_EARLY_PLAIN, NFSD_SIM_EARLY_REFERS};

	for (int e = 0; e < 2; e++)
		for (unsigned int lanes = 1; lanes <= 2; lanes++) {
			deleg_files_begin(lanes, 2, NFSD_SIM_DELEG_READ, 0x3);
			nfsd_sim_conf(w.srv)->deleg_early = early[e];
			nfsd_sim_conf(w.srv)->deleg_early_ns = SIM_MSEC;
			nfsd_sim_restart(w.srv, GRACE, false);
			sim_nfs_run(&w, 30 * SIM_SEC);
			for (unsigned int i = 0; i < 2; i++) {
				cr_assert_eq(files[i].recalls, 1, "%d, %u: file %u: %u", e, lanes,
					i, files[i].recalls);
				cr_assert_eq(files[i].losses, 0);
				deleg_use(&files[i], "file", i);
			}
			deleg_files_end(2, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* Two users of a file: the delegation comes back with the first of their opens. */
Test(nfs4_deleg_recovery, delegation_of_two_opens_is_reclaimed_once, .init = sim_log_count)
{
	static struct sim_held second;

	deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0x1);
	second = (struct sim_held){.w = &w, .owner = nfs4_new_owner(w.cl), .f.fh = files[0].f.fh};
	cr_assert(
		nfs4_deleg_open(&files[0].deleg, &second.f.state, &w.cred, READ, second.owner, 0));
	nfsd_sim_restart(w.srv, GRACE, false);
	deleg_use(&files[0], "first", 0);
	deleg_use(&second, "second", 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_reclaims, 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 2);
	cr_assert_eq(files[0].losses, 0);
	cr_assert_eq(sim_hclaim(&second, 0), 0);
	cr_assert_eq(sim_hclose(&second, 0), 0);
	deleg_files_end(1, 0);
}

Test(nfs4_deleg_recovery, recalled_one_is_not_reclaimed, .init = sim_log_count)
{
	deleg_files_begin(2, 2, NFSD_SIM_DELEG_READ, 0x3);
	nfsd_sim_recall(w.srv, "/f1");
	sim_nfs_run(&w, SIM_MSEC);
	nfsd_sim_restart(w.srv, GRACE, false);
	deleg_use(&files[0], "not recalled", 0);
	deleg_use(&files[1], "recalled", 1);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_reclaims, 1);
	cr_assert_eq(files[1].recalls, 1);
	cr_assert_eq(files[1].losses, 1);
	deleg_files_end(2, 0);
}

Test(nfs4_deleg_recovery, without_a_grace_period_all_are_lost_and_files_opened_anew,
	.init = sim_log_count)
{
	for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
		deleg_files_begin(lanes, FILES, NFSD_SIM_DELEG_WRITE, 0x5);
		nfsd_sim_restart(w.srv, 0, false);
		deleg_use(&files[0], "lanes", lanes);
		sim_nfs_run(&w, 30 * SIM_SEC);
		for (unsigned int i = 0; i < FILES; i++)
			cr_assert_eq(files[i].losses, 1, "file %u", i);
		cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 2);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		deleg_use(&files[2], "lanes", lanes);
		deleg_files_end(FILES, 0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_recovery, second_restart_at_any_moment, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 1200; us += 5) {
		struct sim_held_op io[2] = {0};

		deleg_files_begin(2, 3, NFSD_SIM_DELEG_READ, 0x3);
		nfsd_sim_restart(w.srv, us % 3 ? GRACE : 0, false);
		cr_assert(sim_read_start(&io[0], &files[0], 0));
		cr_assert(sim_read_start(&io[1], &files[1], 1));
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		nfsd_sim_restart(w.srv, us % 2 ? GRACE : 0, false);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(sim_held_wait(&io[i]), 0, "%u us", us);
		sim_nfs_run(&w, 30 * SIM_SEC);
		for (unsigned int i = 0; i < 3; i++)
			cr_assert_eq(files[i].losses, !files[i].deleg.cl, "%u us", us);
		cr_assert_eq(files[2].losses, 1);
		if (us % 2 && us % 3)
			cr_assert_eq(files[0].losses, 0, "%u us", us);
		deleg_files_end(3, 0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_recovery, second_failure_in_the_middle_of_the_reclaim, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_NO_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_RECLAIM_BAD},
		{NFSD_SIM_STATUS, NFS4ERR_RECLAIM_CONFLICT},
		{NFSD_SIM_STATUS, NFS4ERR_SERVERFAULT},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS, NFS4ERR_STALE_CLIENTID},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t skip = 0; skip < 3; skip++) {
			deleg_files_begin(2, 3, NFSD_SIM_DELEG_READ, 0x7);
			sim_rule(&w, rows[i].act, OP_OPEN, skip, 1, rows[i].status);
			nfsd_sim_restart(w.srv, GRACE, false);
			for (unsigned int f = 0; f < 3; f++)
				deleg_use(&files[f], "row", i);
			sim_nfs_run(&w, 30 * SIM_SEC);
			for (unsigned int f = 0; f < 3; f++)
				cr_assert_eq(files[f].losses, !files[f].deleg.cl, "row %zu", i);
			deleg_files_end(3, 1);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- the session is lost, and cannot be made at once: the client ID is what it was ---- */

Test(nfs4_deleg_recovery, session_that_is_refused_once_costs_neither_opens_nor_delegations,
	.init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_STATUS, NFS4ERR_NOSPC},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_NOSPC},
		{NFSD_SIM_STATUS, NFS4ERR_SEQ_MISORDERED},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_SERVERFAULT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t generation;

		deleg_files_begin(2, 2, NFSD_SIM_DELEG_READ, 1);
		generation = nfs4_client_generation(w.cl);
		sim_rule(&w, rows[i].act, OP_CREATE_SESSION, 0, 1, rows[i].status);
		nfsd_sim_drop_sessions(w.srv);
		sim_nfs_run(&w, 2 * LEASE);
		cr_assert_eq(nfs4_client_generation(w.cl), generation, "row %zu", i);
		cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 0);
		cr_assert_eq(nfs4_deleg_count(w.cl), 2, "row %zu", i);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 2);
		cr_assert_eq(files[0].losses + files[1].losses, 0);
		deleg_use(&files[0], "row", i);
		cr_assert_geq(nfsd_sim_recall(w.srv, NULL), 2);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(files[1].recalls, 1, "row %zu", i);
		deleg_files_end(2, 1);
		cr_assert_eq(sim_said.lost, 0);
	}
}
