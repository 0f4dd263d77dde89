/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server asks for by callback: CB_RECALL, also before the reply that
 * brings the delegation, CB_RECALL_ANY, CB_GETATTR.
 */
#include <criterion/criterion.h>

#include "deleg_rig.h"

static struct sim_held h2;

/* As a user does it who was told. */
static void claim_and_return(unsigned int lane)
{
	cr_assert_eq(sim_hclaim(&h, lane), 0);
	cr_assert_eq(sim_hreturn(&h, lane), 0);
	cr_assert_eq(sim_hread(&h, lane), 0);
	cr_assert_eq(sim_hclose(&h, lane), 0);
}

/* ---- CB_RECALL ---- */

Test(nfs4_recall, recall_is_told_once_however_often_it_is_sent, .init = sim_log_count)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(nfsd_sim_recall(w.srv, "/f"), 1);
		/* The second one is sent before the first one is answered: a repetition. */
		if (i)
			sim_nfs_run(&w, SIM_MSEC);
		if (i)
			cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
	}
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_replies, 4);
	cr_assert_eq(h.recalls, 1);
	cr_assert_not(nfs4_deleg_holds(&h.deleg));
	cr_assert_not(sim_hserve(&h, READ), "it serves no more");
	cr_assert(nfs4_deleg_serves(&h.f.state), "but what it served");
	cr_assert_eq(sim_hread(&h, 0), 0);
	claim_and_return(0);
	cr_assert_eq(h.recalls, 1);
	deleg_end(0);
}

Test(nfs4_recall, recall_on_one_session_of_what_another_one_opened, .init = sim_log_count)
{
	for (unsigned int lane = 0; lane < 4; lane++) {
		deleg_begin(4, NFSD_SIM_DELEG_WRITE);
		cr_assert_eq(sim_hopen(&h, 1, BOTH, true), 0);
		cr_assert_eq(sim_hclose(&h, 2), 0);
		cr_assert(sim_hserve(&h, BOTH));
		cr_assert_eq(sim_hwrite(&h, 3), 0);
		cr_assert_eq(nfsd_sim_recall_on(w.srv, NULL, lane), 1);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
		cr_assert_eq(h.recalls, 1);
		claim_and_return((lane + 1) % 4);
		deleg_end(0);
	}
}

Test(nfs4_recall, recall_of_what_is_not_ours_is_refused, .init = sim_log_count)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_RECALL, false), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_BADHANDLE);
	cr_assert_eq(h.recalls, 0);
	claim_and_return(0);
	deleg_end(0);
}

Test(nfs4_recall, another_client_writes_when_it_was_returned_and_not_before, .init = sim_log_count)
{
	static const uint32_t types[] = {NFSD_SIM_DELEG_READ, NFSD_SIM_DELEG_WRITE};

	for (int i = 0; i < 2; i++) {
		deleg_begin_served(2, types[i]);
		cr_assert_eq(nfsd_sim_other_open(w.srv, "/f", READ), i == 0, "readers");
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(h.recalls, i);
		cr_assert_not(nfsd_sim_poke(w.srv, "/f", 0, "x", 1));
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(h.recalls, 1);
		cr_assert_eq(nfsd_sim_stats(w.srv).recalls, 1);
		claim_and_return(1);
		cr_assert(nfsd_sim_poke(w.srv, "/f", 0, "x", 1));
		/* Contended files are not given to anybody. */
		cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
		cr_assert_eq(h.taken, 1);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(0);
	}
}

/* A second mount of the same server. */
static struct sim_nfs other;

static void other_begin(void)
{
	other = (struct sim_nfs){.r = w.r, .srv = w.srv, .conf = w.conf, .cred = w.cred};
	other.conf.owner = "rpcrdmafs other";
	sim_nfs_mounted(&other, 1);
	h2 = (struct sim_held){.w = &other, .owner = nfs4_new_owner(other.cl), .f.fh = h.f.fh};
}

static void other_end(void)
{
	sim_nfs_stop(&other);
	nfs4_session_free(other.lane[0].sess);
	nfs4_client_free(other.cl);
}

Test(nfs4_recall, open_of_another_mount_waits_for_the_return, .init = sim_log_count)
{
	struct sim_held_op ho = {0};

	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	other_begin();
	cr_assert_eq(sim_hopen(&h2, 0, READ, false), 0, "readers need not wait");
	cr_assert_eq(sim_hread(&h2, 0), 0);
	cr_assert(sim_open_start(&ho, &h2, 0, WRITE, false));
	sim_nfs_run(&w, 10 * SIM_SEC);
	cr_assert_eq(ho.op.done_cnt, 0);
	cr_assert_eq(h.recalls, 1);
	claim_and_return(0);
	cr_assert_eq(sim_held_wait(&ho), 0);
	cr_assert_eq(sim_hwrite(&h2, 0), 0);
	cr_assert_eq(sim_hclose(&h2, 0), 0);
	other_end();
	deleg_end(0);
}

Test(nfs4_recall, delegation_kept_for_longer_than_the_lease_is_noticed)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	nfsd_sim_recall(w.srv, NULL);
	sim_nfs_run(&w, 80 * SIM_SEC);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(fab_sim_failures(), 0);
	sim_nfs_run(&w, 20 * SIM_SEC);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_geq(fab_sim_failures(), 1, "the judge has a part in these tests");
	cr_assert_not_null(sim_nfs_close(&w, 1));
}

Test(nfs4_recall, recall_without_an_answer_comes_again_and_is_told_once, .init = sim_log_count)
{
	/* The connection breaks right after it was sent, or some time later. */
	for (unsigned int us = 0; us < 60; us += 2) {
		deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		nfsd_sim_recall_on(w.srv, NULL, us % 2);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		nfsd_sim_disconnect(w.srv);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(h.recalls, 1, "%u us", us);
		claim_and_return(0);
		deleg_end(0);
	}
}

Test(nfs4_recall, recall_at_any_moment_of_an_open_claim_and_return, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 300; us += 2) {
		struct sim_held_op ho = {0};

		deleg_begin_served(2, NFSD_SIM_DELEG_READ);
		cr_assert(sim_claim_start(&ho, &h, 0));
		sim_nfs_run(&w, us % 100 * NSEC_PER_USEC);
		if (us >= 100) {
			cr_assert_eq(sim_held_wait(&ho), 0);
			cr_assert(sim_return_start(&ho, &h, 0));
			sim_nfs_run(&w, us % 100 * NSEC_PER_USEC);
		}
		nfsd_sim_recall_on(w.srv, NULL, 1);
		cr_assert_eq(sim_held_wait(&ho), 0);
		if (us < 100)
			cr_assert_eq(sim_hreturn(&h, 0), 0);
		cr_assert_leq(h.recalls, 1);
		cr_assert_eq(sim_hread(&h, 0), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		sim_nfs_run(&w, 5 * SIM_SEC);
		deleg_end(0);
	}
}

/* ---- it overtakes the OPEN's reply ---- */

Test(nfs4_recall, recall_that_overtakes_the_reply_is_heard, .init = sim_log_count)
{
	static const enum nfsd_sim_early early[] = {NFSD_SIM_EARLY_PLAIN, NFSD_SIM_EARLY_REFERS};
	static const uint64_t late_ns[] = {
		0, 100 * NSEC_PER_USEC, SIM_SEC, 2 * SIM_SEC - 1, 5 * SIM_SEC};

	for (int i = 0; i < 2; i++)
		for (int l = 0; l < 5; l++)
			for (unsigned int lane = 0; lane < 2; lane++) {
				struct nfsd_sim_conf *conf;

				deleg_begin(2, NFSD_SIM_DELEG_READ);
				conf = nfsd_sim_conf(w.srv);
				conf->deleg_early = early[i];
				conf->deleg_early_ns = late_ns[l];
				/* It goes to the first lane, the OPEN is this one's. */
				cr_assert_eq(sim_hopen(&h, lane, READ, true), 0);
				cr_assert_eq(h.taken, 1);
				sim_nfs_run(&w, 20 * SIM_SEC);
				cr_assert_neq(h.how, NFS4_DELEG_GONE);
				cr_assert_eq(h.recalls, h.how == NFS4_DELEG_KEPT,
					"%d, %d, lane %u: told once", i, l, lane);
				cr_assert_not(nfs4_deleg_holds(&h.deleg));
				cr_assert_not(sim_hserve(&h, READ));
				cr_assert_eq(nfsd_sim_stats(w.srv).recalls_refused, 0);
				cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
				claim_and_return(0);
				deleg_end(0);
			}
}

Test(nfs4_recall, early_recall_of_what_is_refused_needs_nothing, .init = sim_log_count)
{
	for (int late = 0; late < 2; late++) {
		struct sim_held_op ho = {.refuses = true};

		deleg_begin(2, NFSD_SIM_DELEG_READ);
		nfsd_sim_conf(w.srv)->deleg_early = NFSD_SIM_EARLY_PLAIN;
		nfsd_sim_conf(w.srv)->deleg_early_ns = late ? 3 * SIM_SEC : 0;
		cr_assert(sim_open_start(&ho, &h, 1, READ, true));
		cr_assert_eq(sim_held_wait(&ho), 0);
		sim_nfs_run(&w, 20 * SIM_SEC);
		cr_assert_eq(h.refused, 1);
		cr_assert_eq(h.recalls, 0);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		deleg_end(0);
	}
}

Test(nfs4_recall, early_recall_and_the_reply_is_lost, .init = sim_log_count)
{
	static const enum nfsd_sim_act acts[] = {NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED};

	for (int i = 0; i < 2; i++) {
		deleg_begin(2, NFSD_SIM_DELEG_READ);
		nfsd_sim_conf(w.srv)->deleg_early = NFSD_SIM_EARLY_PLAIN;
		nfsd_sim_conf(w.srv)->deleg_early_ns = SIM_MSEC;
		sim_rule(&w, acts[i], OP_OPEN, 0, 1, 0);
		cr_assert_eq(sim_hopen(&h, 1, READ, true), 0);
		cr_assert_eq(h.taken, 1);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(h.recalls, h.how == NFS4_DELEG_KEPT);
		cr_assert_not(nfs4_deleg_holds(&h.deleg));
		claim_and_return(0);
		deleg_end(0);
	}
}

Test(nfs4_recall, reply_that_says_it_is_recalled_is_all_that_is_said, .init = sim_log_count)
{
	deleg_begin(2, NFSD_SIM_DELEG_WRITE);
	nfsd_sim_conf(w.srv)->deleg_recalled = true;
	cr_assert_eq(sim_hopen(&h, 1, BOTH, true), 0);
	cr_assert_eq(h.how, NFS4_DELEG_RECALLED);
	cr_assert_not(nfs4_deleg_holds(&h.deleg));
	cr_assert_not(sim_hserve(&h, READ));
	nfsd_sim_recall(w.srv, NULL);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
	cr_assert_eq(h.recalls, 0);
	claim_and_return(0);
	deleg_end(0);
}

/* ---- CB_RECALL_ANY ---- */

Test(nfs4_recall, recall_any_says_how_many_of_which, .init = sim_log_count)
{
	static const struct {
		uint32_t keep, mask;
		bool read, write;
	} rows[] = {
		{5, 1, true, false}, {0, 2, false, true}, {1000, 3, true, true},
		{7, 0x1f, true, true}, /* with directories and layouts, of which there are none */
	};
	unsigned int cnt = 0;

	deleg_begin_served(2, NFSD_SIM_DELEG_READ);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(nfsd_sim_recall_any(w.srv, rows[i].keep, rows[i].mask), 1);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
		cr_assert_eq(sim_recall_any.cnt, ++cnt, "row %zu", i);
		cr_assert_eq(sim_recall_any.keep, rows[i].keep);
		cr_assert_eq(sim_recall_any.read, rows[i].read);
		cr_assert_eq(sim_recall_any.write, rows[i].write);
	}
	/* Nothing of ours, and nothing that there is. */
	cr_assert_eq(nfsd_sim_recall_any(w.srv, 0, 4), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
	cr_assert_eq(nfsd_sim_recall_any(w.srv, 0, 1u << 30), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_INVAL);
	cr_assert_eq(sim_recall_any.cnt, cnt);
	cr_assert_eq(h.recalls, 0);
	cr_assert(nfs4_deleg_holds(&h.deleg));
	claim_and_return(0);
	deleg_end(0);
}

/* ---- CB_GETATTR ---- */

Test(nfs4_recall, getattr_is_answered_with_what_the_user_knows, .init = sim_log_count)
{
	struct nfsd_sim_cb_answer ans;

	deleg_begin_served(2, NFSD_SIM_DELEG_WRITE);
	h.answers = true;
	h.change = 0x1122334455667788;
	h.size = 12345;
	cr_assert_eq(nfsd_sim_cb_getattr(w.srv, "/f"), 1);
	sim_nfs_run(&w, SIM_MSEC);
	ans = nfsd_sim_cb_last(w.srv);
	cr_assert_eq(ans.status, NFS4_OK);
	cr_assert(ans.has_change && ans.has_size);
	cr_assert_eq(ans.change, h.change);
	cr_assert_eq(ans.size, h.size);
	/* Not known: an error, and nobody is told that he has nothing. */
	h.answers = false;
	cr_assert_eq(nfsd_sim_cb_getattr(w.srv, "/f"), 1);
	sim_nfs_run(&w, SIM_MSEC);
	ans = nfsd_sim_cb_last(w.srv);
	cr_assert_neq(ans.status, NFS4_OK);
	cr_assert_not(ans.has_change);
	claim_and_return(0);
	deleg_end(0);
}

Test(nfs4_recall, getattr_of_what_is_not_delegated_to_write_is_refused, .init = sim_log_count)
{
	deleg_begin_served(1, NFSD_SIM_DELEG_READ);
	h.answers = true;
	cr_assert_eq(nfsd_sim_cb_getattr(w.srv, "/f"), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_BADHANDLE);
	cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_GETATTR, false), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_BADHANDLE);
	claim_and_return(0);
	deleg_end(0);
}
