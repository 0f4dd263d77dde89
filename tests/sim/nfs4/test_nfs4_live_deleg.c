/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed that has delegations, and the next one returns them: but what they served,
 * which the server does not know of, is opened before.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "deleg_rig.h"
#include "live_rig.h"

#define LANES 2u
#define GRACE (10 * SIM_SEC)
#define LEASE (100 * SIM_SEC) /* after it every lane has sent a SEQUENCE */

static bool replays;               /* the next one does again what this one was asked for */
static unsigned int delegs, opens; /* records that were taken up */

/* ---- life and death ---- */

static void gone(struct sim_held *f)
{
	memset(&f->f.state, 0, sizeof(f->f.state));
	memset(&f->deleg, 0, sizeof(f->deleg));
	f->returns = 0;
}

static void die_with(bool restart)
{
	live_rig_die(&w, restart);
	gone(&h);
	for (unsigned int i = 0; i < DELEG_FILES; i++)
		gone(&files[i]);
}

static void die(void)
{
	die_with(false);
}

static struct sim_held *file_of(uint64_t owner)
{
	for (unsigned int i = 0; i < DELEG_FILES; i++)
		if (files[i].w && files[i].owner == owner)
			return &files[i];
	cr_assert(h.w && h.owner == owner, "an open of nobody's");
	return &h;
}

static int take_record(const struct tables_record *r)
{
	struct sim_held *f;

	if (r->type == NFS4_KEEP_DELEG) {
		delegs++;
		return nfs4_keep_get_deleg(r, w.cl);
	}
	cr_assert_eq(r->type, NFS4_KEEP_STATE);
	opens++;
	f = file_of(nfs4_keep_owner_of(r));
	return nfs4_keep_get_state(r, w.cl, &f->f.state, &f->f.fh);
}

/* The user has a record of this open; so the next process knows of it, and the server does not. */
static void was_served(struct sim_held *f, uint32_t access)
{
	nfs4_keep_get_served(w.cl, &f->f.state, &f->f.fh, &w.cred, access, f->owner, 0);
}

/* The next process, before it says anything to the server. */
static void take_up(void)
{
	delegs = opens = 0;
	live_rig_take_up(&w, LANES, take_record);
	sim_held_hear(&w);
	if (replays)
		nfs4_keep_replaying(w.cl);
}

static void up(void)
{
	live_rig_up(&w);
	cr_assert_eq(nfs4_deleg_count(w.cl), 0, "none is had any more");
}

static void end(void)
{
	deleg_end(0);
	live_rig_end();
}

/* ---- returned by the next one ---- */

static uint32_t access_of(uint32_t type)
{
	return type == NFSD_SIM_DELEG_WRITE ? BOTH : READ;
}

Test(nfs4_live_deleg, what_it_served_is_opened_and_then_it_is_returned, .init = sim_log_count)
{
	static const uint32_t types[] = {NFSD_SIM_DELEG_READ, NFSD_SIM_DELEG_WRITE};
	struct nfsd_sim_open o;

	for (int i = 0; i < 2; i++) {
		live_rig_begin();
		deleg_begin_served(LANES, types[i]);
		die();
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 0, "the server does not know");
		take_up();
		cr_assert_eq(delegs, 1);
		cr_assert_eq(opens, 0);
		was_served(&h, access_of(types[i]));
		/* It is not returned as long as it is not known whether the OPEN worked. */
		sim_rule(&w, NFSD_SIM_HOLD, OP_OPEN, 0, 1, 0);
		up();
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_opens(w.srv, "/f", &o, 1), 1);
		cr_assert_eq(o.owner, h.owner, "by the same one");
		cr_assert_eq(o.access, access_of(types[i]));
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 0);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
		nfsd_sim_release(w.srv, false);
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		deleg_use(&h, "type", types[i]);
		if (types[i] == NFSD_SIM_DELEG_WRITE)
			cr_assert_eq(sim_hwrite(&h, 1), 0);
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		end();
	}
}

Test(nfs4_live_deleg, each_is_returned_when_what_it_served_is_opened, .init = sim_log_count)
{
	live_rig_begin();
	deleg_files_begin(LANES, 3, NFSD_SIM_DELEG_READ, 0x3);
	die();
	nfsd_sim_delay_opens(w.srv, "/f1", true);
	take_up();
	cr_assert_eq(delegs, 3);
	was_served(&files[0], READ);
	was_served(&files[1], READ);
	up();
	sim_nfs_run(&w, 20 * SIM_SEC);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 2);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1, "that of f1, whose OPEN has to wait");
	nfsd_sim_delay_opens(w.srv, "/f1", false);
	cr_assert_eq(sim_hread(&files[1], 0), 0);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 2);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	deleg_files_end(3, 0);
	live_rig_end();
}

Test(nfs4_live_deleg, what_cannot_be_opened_does_not_keep_it, .init = sim_log_count)
{
	live_rig_begin();
	deleg_begin_served(LANES, NFSD_SIM_DELEG_READ);
	die();
	take_up();
	was_served(&h, READ);
	sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 0, 0, NFS4ERR_ACCESS);
	up();
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	cr_assert_eq(sim_hread(&h, 0), -EIO);
	cr_assert_eq(sim_said.lost, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	sim_said.lost = 0;
	end();
}

Test(nfs4_live_deleg, one_that_serves_nothing_is_returned, .init = sim_log_count)
{
	live_rig_begin();
	deleg_begin_idle(LANES, NFSD_SIM_DELEG_WRITE);
	die();
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	take_up();
	cr_assert_eq(delegs, 1);
	up();
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	end();
}

Test(nfs4_live_deleg, one_that_was_returned_is_not_there, .init = sim_log_count)
{
	/* by the user; in the background; by the next process */
	for (int i = 0; i < 3; i++) {
		uint64_t returns;

		live_rig_begin();
		deleg_begin_idle(LANES, NFSD_SIM_DELEG_READ);
		if (i == 0)
			cr_assert_eq(sim_hreturn(&h, 0), 0);
		if (i == 1)
			nfs4_deleg_forget(&h.deleg);
		if (i == 2) {
			die();
			take_up();
			up();
		}
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
		die();
		returns = sim_ops(&w, OP_DELEGRETURN);
		take_up();
		cr_assert_eq(delegs, 0, "%d", i);
		up();
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(sim_ops(&w, OP_DELEGRETURN), returns);
		end();
	}
}

/* Requests that are done again may need what they served, and what the user knows by them. */
Test(nfs4_live_deleg, none_is_returned_while_the_user_does_again_what_it_did, .init = sim_log_count)
{
	live_rig_begin();
	deleg_begin_served(LANES, NFSD_SIM_DELEG_READ);
	die();
	replays = true;
	take_up();
	was_served(&h, READ);
	up();
	deleg_use(&h, "replaying", 0);
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	/* Nor because the server asks, which is told that it will be. */
	cr_assert_eq(nfsd_sim_recall(w.srv, "/f"), 1);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	nfs4_keep_replayed(w.lane[1].sess);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0, "at once");
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	deleg_use(&h, "replayed", 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* ---- on their way back when it died ---- */

/* How far a DELEGRETURN came; the next one asks again, and is right both times. */
static const enum nfsd_sim_act how_far[] = {NFSD_SIM_CUT_BEFORE, NFSD_SIM_LOSE};

Test(nfs4_live_deleg, one_that_was_refused_is_returned, .init = sim_log_count)
{
	for (int i = 0; i < 2; i++) {
		struct sim_held_op ho = {.refuses = true};

		live_rig_begin();
		deleg_begin(LANES, NFSD_SIM_DELEG_READ);
		sim_rule(&w, how_far[i], OP_DELEGRETURN, 0, 0, 0);
		cr_assert(sim_open_start(&ho, &h, 1, READ, true));
		cr_assert_eq(sim_held_wait(&ho), 0);
		cr_assert_eq(h.refused, 1);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), i == 0);
		die();
		take_up();
		cr_assert_eq(delegs, 1);
		cr_assert_eq(opens, 1, "that brought it");
		up();
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		deleg_use(&h, "how far", (uint64_t)i);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		end();
	}
}

Test(nfs4_live_deleg, one_that_was_being_returned_is_returned, .init = sim_log_count)
{
	for (int i = 0; i < 2; i++) {
		struct sim_held_op ho = {0};

		live_rig_begin();
		deleg_begin_idle(LANES, NFSD_SIM_DELEG_READ);
		sim_rule(&w, how_far[i], OP_DELEGRETURN, 0, 0, 0);
		cr_assert(sim_return_start(&ho, &h, 1));
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(ho.op.done_cnt, 0);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), i == 0);
		die();
		take_up();
		cr_assert_eq(delegs, 1);
		up();
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		end();
	}
}

/* ---- nobody heard of it ---- */

Test(nfs4_live_deleg, one_that_nobody_heard_of_is_returned_when_it_is_recalled,
	.init = sim_log_count)
{
	struct sim_held_op ho = {0};

	live_rig_begin();
	deleg_begin(LANES, NFSD_SIM_DELEG_READ);
	sim_rule(&w, NFSD_SIM_LOSE, OP_OPEN, 0, 1, 0);
	cr_assert(sim_open_start(&ho, &h, 1, READ, true));
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(ho.op.done_cnt, 0);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	die();
	take_up();
	cr_assert_eq(delegs + opens, 0);
	up();
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 1);
	/* The user who was given it is not known: the judge does not like that. */
	nfsd_sim_conf(w.srv)->tolerant_state = true;
	cr_assert_eq(nfsd_sim_recall(w.srv, "/f"), 1);
	sim_nfs_run(&w, SIM_SEC);
	nfsd_sim_conf(w.srv)->tolerant_state = false;
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
	cr_assert_eq(nfsd_sim_stats(w.srv).recalls_refused, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	/* The user asks again, since nobody answered. */
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	deleg_use(&h, "again", 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* ---- the server has nothing any more ---- */

static void restart(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, GRACE, false);
}

static void restart_no_grace(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 0, false);
}

static void (*const events[])(struct nfsd_sim *) = {
	restart, restart_no_grace, nfsd_sim_drop_clients};

Test(nfs4_live_deleg, with_the_client_id_they_are_gone_and_what_they_served_is_not,
	.init = sim_log_count)
{
	/* while nobody was there; while the next one holds them back */
	for (int late = 0; late < 2; late++)
		for (int e = 0; e < 3; e++) {
			uint64_t returns;

			live_rig_begin();
			deleg_files_begin(LANES, 2, NFSD_SIM_DELEG_READ, 0x1);
			die();
			returns = sim_ops(&w, OP_DELEGRETURN);
			if (!late)
				events[e](w.srv);
			replays = late;
			take_up();
			cr_assert_eq(delegs, 2);
			was_served(&files[0], READ);
			up();
			if (late) {
				sim_nfs_run(&w, SIM_SEC);
				events[e](w.srv);
			}
			deleg_use(&files[0], "event", (uint64_t)e);
			nfs4_keep_replayed(w.lane[0].sess);
			sim_nfs_run(&w, LEASE);
			cr_assert_eq(sim_ops(&w, OP_DELEGRETURN), returns, "%d, %d", late, e);
			cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
			deleg_files_end(2, 0);
			live_rig_end();
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* It was served, so the server knew: no other client may get in between. */
Test(nfs4_live_deleg, what_it_served_is_reclaimed_after_a_restart, .init = sim_log_count)
{
	live_rig_begin();
	deleg_begin_served(LANES, NFSD_SIM_DELEG_READ);
	die_with(true);
	take_up();
	was_served(&h, READ);
	up();
	cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 1);
	cr_assert_eq(sim_hread(&h, 0), 0, "before the grace period is over");
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* ---- the next one dies as well ---- */

Test(nfs4_live_deleg, the_third_one_returns_it, .init = sim_log_count)
{
	/* served, and the OPEN did not come so far; it did; idle */
	for (int i = 0; i < 3; i++) {
		live_rig_begin();
		if (i < 2)
			deleg_begin_served(LANES, NFSD_SIM_DELEG_READ);
		else
			deleg_begin_idle(LANES, NFSD_SIM_DELEG_READ);
		for (int process = 0; process < 3; process++) {
			die();
			replays = process < 2;
			take_up();
			cr_assert_eq(delegs, 1, "%d, %d", i, process);
			cr_assert_eq(opens, i == 1 && process > 0);
			if (i < 2 && opens == 0)
				was_served(&h, READ);
			if (i == 0 && replays)
				sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_OPEN, 0, 0, 0);
			up();
			sim_nfs_run(&w, SIM_SEC);
			cr_assert_eq(nfsd_sim_live_delegs(w.srv), replays, "%d, %d", i, process);
		}
		cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
		if (i < 2) {
			deleg_use(&h, "served", (uint64_t)i);
			cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
			cr_assert_eq(sim_hclose(&h, 0), 0);
		}
		end();
	}
}

/* It dies before what it took up is its own: the third one has the records of the first. */
Test(nfs4_live_deleg, the_third_one_may_know_less_than_the_second, .init = sim_log_count)
{
	/* The second one has returned it by then, or not. */
	for (int i = 0; i < 2; i++) {
		live_rig_begin();
		deleg_begin_served(LANES, NFSD_SIM_DELEG_READ);
		die();
		live_rig_again = true;
		replays = i;
		take_up();
		was_served(&h, READ);
		up();
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), (unsigned int)i);
		die();
		live_rig_again = replays = false;
		take_up();
		cr_assert_eq(delegs, 1);
		cr_assert_eq(opens, 0);
		was_served(&h, READ);
		up();
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
		deleg_use(&h, "again", (uint64_t)i);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		end();
	}
}

/* ---- an end that is none of these ---- */

/* It is asked to end, and does, whatever the server says. */
Test(nfs4_live_deleg, an_end_without_an_answer_leaves_some_behind, .init = sim_log_count)
{
	for (unsigned int served = 0; served < 4; served++) {
		live_rig_begin();
		deleg_files_begin(LANES, 3, NFSD_SIM_DELEG_READ, served);
		sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_DELEGRETURN, 0, 0, 0);
		SIM_NFS_CLOSE(&w, 1);
		live_rig_end();
	}
}
