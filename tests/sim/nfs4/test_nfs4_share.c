/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens that several OPENs of one owner share. The simulated server judges: no
 * OPEN_DOWNGRADE to what was not opened, no reclaim of more than there was, no
 * CLOSE beside an OPEN, no stateid after its CLOSE.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "nfs4_state.h"
#include "sim_held.h"
#include "sim_log.h"

#define GRACE (10 * SIM_SEC)

static struct sim_nfs w;
static struct sim_held h, h2;

static void begin(unsigned int lanes)
{
	sim_nfs_open(&w, NULL);
	sim_held_mounted(&w, lanes, 0);
	sim_held_file(&w, &h, "/f");
}

/* What the server has open: one open, or none (access 0). */
static void check_open(uint32_t access, const char *what, uint64_t where)
{
	struct nfsd_sim_open o = {0};
	unsigned int cnt = nfsd_sim_opens(w.srv, "/f", &o, 1);

	cr_assert_eq(cnt, access ? 1 : 0, "%s %lu: %u opens", what, (unsigned long)where, cnt);
	cr_assert_eq(o.access, access, "%s %lu: access %u", what, (unsigned long)where, o.access);
}

static void end(unsigned int left)
{
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).old_stateids, 0);
	SIM_NFS_CLOSE(&w, left);
}

/* ---- one open ---- */

Test(nfs4_share, second_open_shares_and_one_close_ends_both, .init = sim_log_count)
{
	begin(2);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(sim_hopen(&h, i % 2, READ, false), 0);
	check_open(READ, "five", 0);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
	check_open(BOTH, "and to write", 0);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert_eq(sim_hwrite(&h, 0), 0);
	cr_assert_eq(sim_ops(&w, OP_CLOSE), 0);
	end(0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_share, each_owner_has_an_open_of_its_own, .init = sim_log_count)
{
	begin(1);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	h2 = (struct sim_held){.w = &w, .owner = nfs4_new_owner(w.cl), .f.fh = h.f.fh};
	cr_assert_eq(sim_hopen(&h2, 0, WRITE, false), 0);
	cr_assert_eq(nfsd_sim_opens(w.srv, "/f", NULL, 0), 2);
	cr_assert_eq(sim_hwrite(&h2, 0), 0);
	cr_assert_eq(sim_hclose(&h2, 0), 0);
	check_open(READ, "the first", 0);
	cr_assert_eq(sim_hread(&h, 0), 0);
	end(0);
}

Test(nfs4_share, two_opens_side_by_side_are_one, .init = sim_log_count)
{
	/* The replies in any order: the first one made to write is late, or the second. */
	for (int late = 0; late < 3; late++) {
		struct sim_held_op a = {0}, b = {0};

		begin(2);
		if (late)
			sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, late - 1, 1, SIM_MSEC);
		cr_assert(sim_open_start(&a, &h, 0, READ, false));
		cr_assert(sim_open_start(&b, &h, 1, WRITE, false));
		cr_assert_eq(sim_held_wait(&a), 0);
		cr_assert_eq(sim_held_wait(&b), 0);
		check_open(BOTH, "late", late);
		cr_assert_eq(sim_hread(&h, 0), 0);
		cr_assert_eq(sim_hwrite(&h, 1), 0);
		end(0);
	}
}

Test(nfs4_share, io_during_a_parallel_open_never_has_an_old_stateid, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 120; us += 3) {
		struct sim_held_op open = {0}, io[8] = {0};

		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
		/* The server has the new seqid long before we hear of it. */
		sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, 0, 1, SIM_MSEC);
		cr_assert(sim_open_start(&open, &h, 0, READ, false));
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		for (unsigned int i = 0; i < 8; i++)
			cr_assert(i & 2 ? sim_write_start(&io[i], &h, i % 2)
					: sim_read_start(&io[i], &h, i % 2));
		for (unsigned int i = 0; i < 8; i++)
			cr_assert_eq(sim_held_wait(&io[i]), 0, "%u us", us);
		cr_assert_eq(sim_held_wait(&open), 0);
		cr_assert_eq(sim_hread(&h, 1), 0);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_share, close_after_opens_names_the_newest_stateid, .init = sim_log_count)
{
	begin(2);
	for (int i = 0; i < 3; i++) {
		struct sim_held_op a = {0}, b = {0};

		/* Replies in reverse: the older one is not taken for the newest. */
		sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, 0, 1, SIM_MSEC);
		cr_assert(sim_open_start(&a, &h, 0, READ, false));
		sim_nfs_run(&w, 50 * NSEC_PER_USEC);
		cr_assert(sim_open_start(&b, &h, 0, READ, false));
		cr_assert_eq(sim_held_wait(&b), 0);
		cr_assert_eq(a.op.done_cnt, 0);
		cr_assert_eq(sim_held_wait(&a), 0);
		nfsd_sim_rules_clear(w.srv);
	}
	end(0);
}

/* ---- OPEN_DOWNGRADE ---- */

Test(nfs4_share, downgrade_goes_to_a_mode_that_was_opened, .init = sim_log_count)
{
	static const uint32_t modes[] = {READ, WRITE};

	for (int i = 0; i < 2; i++) {
		begin(1);
		cr_assert_eq(sim_hopen(&h, 0, modes[i], false), 0);
		cr_assert_eq(sim_hopen(&h, 0, i ? READ : BOTH, false), 0);
		check_open(BOTH, "both", i);
		cr_assert_eq(sim_hdowngrade(&h, 0, modes[i]), 0);
		check_open(modes[i], "downgraded", i);
		cr_assert_eq(sim_ops(&w, OP_OPEN_DOWNGRADE), 1);
		cr_assert_eq(i ? sim_hwrite(&h, 0) : sim_hread(&h, 0), 0);
		/* Up and down once more. */
		cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
		check_open(BOTH, "again", i);
		cr_assert_eq(sim_hdowngrade(&h, 0, modes[i]), 0);
		check_open(modes[i], "downgraded again", i);
		end(0);
	}
}

Test(nfs4_share, no_downgrade_to_what_was_not_opened_as_such, .init = sim_log_count)
{
	begin(1);
	cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
	cr_assert_eq(sim_hdowngrade(&h, 0, READ), 0);
	cr_assert_eq(sim_ops(&w, OP_OPEN_DOWNGRADE), 0);
	check_open(BOTH, "kept", 0);
	cr_assert_eq(sim_hread(&h, 0), 0);
	/* Nor if there is nothing to tell. */
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	cr_assert_eq(sim_hopen(&h, 0, WRITE, false), 0);
	cr_assert_eq(sim_hdowngrade(&h, 0, BOTH), 0);
	cr_assert_eq(sim_ops(&w, OP_OPEN_DOWNGRADE), 0);
	end(0);
}

Test(nfs4_share, no_downgrade_after_a_reclaim, .init = sim_log_count)
{
	static const uint64_t graces[] = {GRACE, 0};

	for (int i = 0; i < 2; i++) {
		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
		nfsd_sim_restart(w.srv, graces[i], false);
		sim_nfs_run(&w, 30 * SIM_SEC);
		check_open(BOTH, "reclaimed", i);
		cr_assert_eq(sim_hdowngrade(&h, 1, READ), 0);
		cr_assert_eq(sim_ops(&w, OP_OPEN_DOWNGRADE), 0);
		cr_assert_eq(sim_hread(&h, 0), 0);
		/* What is not needed any more is not asked for at the next one. */
		nfsd_sim_restart(w.srv, graces[i], false);
		sim_nfs_run(&w, 30 * SIM_SEC);
		check_open(READ, "reclaimed", i);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_share, downgrade_may_fail_in_any_way, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_INVAL},
		{NFSD_SIM_STATUS, NFS4ERR_BAD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_OLD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_SERVERFAULT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(sim_hopen(&h, 0, WRITE, false), 0);
		sim_rule(&w, rows[i].act, OP_OPEN_DOWNGRADE, 0, 1, rows[i].status);
		sim_hdowngrade(&h, 0, READ);
		nfsd_sim_rules_clear(w.srv);
		/* Whatever it was: what is left works, and what is opened after it too. */
		cr_assert_eq(sim_hread(&h, 1), 0, "row %zu", i);
		cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
		cr_assert_eq(sim_hwrite(&h, 0), 0, "row %zu", i);
		cr_assert_eq(sim_hread(&h, 0), 0, "row %zu", i);
		check_open(BOTH, "row", i);
		end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- the union, reclaimed ---- */

static void restart_grace(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, GRACE, false);
}

static void restart_no_grace(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 0, false);
}

static void revoke(struct nfsd_sim *srv)
{
	/* An OPEN of the user's does not wait until it is freed. */
	nfsd_sim_conf(srv)->tolerant_revoked = true;
	nfsd_sim_revoke(srv, NULL, NFS4ERR_EXPIRED);
}

static void (*const losses[])(struct nfsd_sim *) = {
	restart_grace, restart_no_grace, revoke, nfsd_sim_drop_clients, nfsd_sim_drop_sessions};
#define LOSSES (sizeof(losses) / sizeof(losses[0]))

Test(nfs4_share, upgraded_open_is_reclaimed_with_the_union, .init = sim_log_count)
{
	for (size_t i = 0; i < LOSSES; i++) {
		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
		losses[i](w.srv);
		cr_assert_eq(sim_hwrite(&h, 0), 0, "%zu", i);
		cr_assert_eq(sim_hread(&h, 1), 0, "%zu", i);
		sim_nfs_run(&w, 30 * SIM_SEC);
		check_open(BOTH, "lost by", i);
		cr_assert_eq(nfsd_sim_stats(w.srv).not_reclaimed, i == 1);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The state is lost, and an OPEN for more comes at any moment of its return. */
Test(nfs4_share, open_at_any_moment_of_a_loss_keeps_the_union, .init = sim_log_count)
{
	for (size_t i = 0; i < LOSSES; i++)
		for (unsigned int us = 0; us < 400; us += 7) {
			struct sim_held_op up = {0}, io = {0};

			begin(2);
			cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
			losses[i](w.srv);
			cr_assert(sim_read_start(&io, &h, 0));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			cr_assert(sim_open_start(&up, &h, 1, WRITE, false));
			cr_assert_eq(sim_held_wait(&up), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_held_wait(&io), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_hwrite(&h, 0), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_hread(&h, 1), 0, "%zu, %u us", i, us);
			sim_nfs_run(&w, 30 * SIM_SEC);
			check_open(BOTH, "us", us);
			end(0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* The OPEN for more is on its way, and the state is lost at any moment. */
Test(nfs4_share, loss_at_any_moment_of_an_open_keeps_the_union, .init = sim_log_count)
{
	for (size_t i = 0; i < LOSSES; i++)
		for (unsigned int us = 0; us < 100; us += 2) {
			struct sim_held_op up = {0}, io = {0};

			begin(2);
			cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
			cr_assert(sim_open_start(&up, &h, 1, WRITE, false));
			cr_assert(sim_read_start(&io, &h, 0));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			losses[i](w.srv);
			cr_assert_eq(sim_held_wait(&up), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_held_wait(&io), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_hwrite(&h, 0), 0, "%zu, %u us", i, us);
			cr_assert_eq(sim_hread(&h, 1), 0, "%zu, %u us", i, us);
			sim_nfs_run(&w, 30 * SIM_SEC);
			check_open(BOTH, "us", us);
			end(0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* One stateid is refused, so it is BAD, then BUSY, while an OPEN of its owner comes back. */
Test(nfs4_share, open_beside_the_reopen_keeps_the_union, .init = sim_log_count)
{
	for (int late = 0; late < 3; late++)
		for (unsigned int us = 0; us < 300; us += 5) {
			struct sim_held_op up = {0}, io = {0};

			begin(2);
			cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
			sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
			if (late)
				sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, late - 1, 1,
					100 * NSEC_PER_USEC);
			cr_assert(sim_read_start(&io, &h, 0));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			cr_assert(sim_open_start(&up, &h, 1, WRITE, false));
			cr_assert_eq(sim_held_wait(&up), 0, "%d, %u us", late, us);
			cr_assert_eq(sim_held_wait(&io), 0, "%d, %u us", late, us);
			cr_assert_eq(sim_hwrite(&h, 0), 0, "%d, %u us", late, us);
			cr_assert_eq(sim_hread(&h, 1), 0, "%d, %u us", late, us);
			check_open(BOTH, "us", us);
			end(0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* Nobody has heard of it when the next OPEN makes another one. */
Test(nfs4_share, revoked_open_is_freed_although_another_took_its_place, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 60; us += 5) {
		struct sim_held_op io = {0};

		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		revoke(w.srv);
		if (us)
			cr_assert(sim_read_start(&io, &h, 0));
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
		if (us)
			cr_assert_eq(sim_held_wait(&io), 0, "%u us", us);
		cr_assert_eq(sim_hwrite(&h, 0), 0, "%u us", us);
		sim_nfs_run(&w, 100 * SIM_SEC);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0, "%u us", us);
		check_open(BOTH, "us", us);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The first OPEN's answer comes between those of two others, which made another open. */
Test(nfs4_share, revoked_open_is_freed_whose_open_is_answered_late, .init = sim_log_count)
{
	for (unsigned int us = 500; us < 800; us += 5) {
		struct sim_held_op first = {0}, third = {0};

		begin(2);
		sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, 0, 1, NSEC_PER_MSEC);
		cr_assert(sim_open_start(&first, &h, 0, READ, false));
		sim_nfs_run(&w, 300 * NSEC_PER_USEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 1, "it was done");
		revoke(w.srv);
		cr_assert_eq(sim_hopen(&h, 1, WRITE, false), 0);
		sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, 0, 1, us * NSEC_PER_USEC);
		cr_assert(sim_open_start(&third, &h, 1, BOTH, false));
		cr_assert_eq(sim_held_wait(&first), 0, "%u us", us);
		cr_assert_eq(sim_held_wait(&third), 0, "%u us", us);
		cr_assert_eq(sim_hread(&h, 0), 0, "%u us", us);
		sim_nfs_run(&w, 100 * SIM_SEC);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0, "%u us", us);
		check_open(BOTH, "us", us);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The answer to the OPEN is lost, in every way there is. */
Test(nfs4_share, second_open_may_fail_in_any_way, .init = sim_log_count)
{
	static const struct {
		enum nfsd_sim_act act;
		uint32_t status;
		int err;
	} rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0, 0},
		{NFSD_SIM_CUT_AFTER, 0, 0},
		{NFSD_SIM_CUT_REPLIED, 0, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY, 0},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION, 0},
		{NFSD_SIM_STATUS, NFS4ERR_ACCESS, -EACCES},
		{NFSD_SIM_STATUS_DONE, NFS4ERR_DELAY, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(2);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		sim_rule(&w, rows[i].act, OP_OPEN, 0, 1, rows[i].status);
		cr_assert_eq(sim_hopen(&h, 1, BOTH, false), rows[i].err, "row %zu", i);
		nfsd_sim_rules_clear(w.srv);
		cr_assert_eq(sim_hread(&h, 0), 0);
		check_open(rows[i].err ? READ : BOTH, "row", i);
		nfsd_sim_restart(w.srv, GRACE, false);
		cr_assert_eq(sim_hread(&h, 0), 0);
		check_open(rows[i].err ? READ : BOTH, "row, reclaimed", i);
		end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}
