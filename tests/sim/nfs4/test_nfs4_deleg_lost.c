/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations that are taken away, by revocation, the refusal of their stateid
 * or the lease's end, or lost while they are claimed or returned: what they
 * served is open all the same. The simulated server judges that no stateid is
 * used after it was lost.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "deleg_rig.h"

#define GRACE (10 * SIM_SEC)
#define LEASE (100 * SIM_SEC) /* after it every lane has sent a SEQUENCE */
#define FILES 4

/* ---- while it is claimed or returned ---- */

static void restart(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, GRACE, false);
}

static void restart_no_grace(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 0, false);
}

static void revoke(struct nfsd_sim *srv)
{
	nfsd_sim_revoke_deleg(srv, NULL, NFS4ERR_DELEG_REVOKED);
}

static void forget(struct nfsd_sim *srv)
{
	nfsd_sim_revoke_deleg(srv, NULL, NFS4ERR_BAD_STATEID);
}

static void recall(struct nfsd_sim *srv)
{
	nfsd_sim_recall(srv, NULL);
}

static void (*const events[])(struct nfsd_sim *) = {restart, restart_no_grace, revoke, forget,
	recall, nfsd_sim_drop_clients, nfsd_sim_drop_sessions};
#define EVENTS (sizeof(events) / sizeof(events[0]))

/* What is found by flags is found; what was recalled is not kept for too long. */
static void settle(size_t event)
{
	sim_nfs_run(&w, events[event] == recall ? 10 * SIM_SEC : LEASE);
}

Test(nfs4_deleg_lost, anything_at_any_moment_of_a_claim, .init = sim_log_count)
{
	for (size_t e = 0; e < EVENTS; e++)
		for (unsigned int us = 0; us < 80; us += 2) {
			struct sim_held_op claim = {0}, io = {0};

			deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0x1);
			cr_assert(sim_claim_start(&claim, &files[0], 0));
			cr_assert(sim_read_start(&io, &files[0], 1));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			events[e](w.srv);
			cr_assert_eq(sim_held_wait(&claim), 0, "%zu, %u us", e, us);
			cr_assert_eq(sim_held_wait(&io), 0, "%zu, %u us", e, us);
			deleg_use(&files[0], "us", us);
			settle(e);
			cr_assert_leq(files[0].losses, 1);
			cr_assert_eq(files[0].losses, !files[0].deleg.cl);
			deleg_files_end(1, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, anything_at_any_moment_of_a_return, .init = sim_log_count)
{
	for (size_t e = 0; e < EVENTS; e++)
		for (unsigned int us = 0; us < 80; us += 2) {
			struct sim_held_op ho = {0};

			deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0);
			cr_assert(sim_return_start(&ho, &files[0], 1));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			events[e](w.srv);
			cr_assert_eq(sim_held_wait(&ho), 0, "%zu, %u us", e, us);
			cr_assert_eq(nfs4_deleg_count(w.cl), 0);
			settle(e);
			cr_assert_leq(files[0].losses, 1);
			deleg_files_end(1, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, anything_at_any_moment_of_the_open_that_brings_it, .init = sim_log_count)
{
	for (size_t e = 0; e < EVENTS; e++)
		for (unsigned int us = 0; us < 80; us += 2) {
			struct sim_held_op ho = {0};
			struct sim_held *f = &files[0];

			sim_nfs_open(&w, NULL);
			sim_held_mounted(&w, 2, NFSD_SIM_DELEG_READ);
			sim_held_file(&w, f, "/f0");
			cr_assert(sim_open_start(&ho, f, 1, READ, true));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			events[e](w.srv);
			cr_assert_eq(sim_held_wait(&ho), 0, "%zu, %u us", e, us);
			deleg_use(f, "us", us);
			settle(e);
			cr_assert_leq(f->losses, 1);
			deleg_files_end(1, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, stop_at_any_moment, .init = sim_log_count)
{
	for (size_t e = 0; e < EVENTS; e++)
		for (unsigned int us = 0; us < 600; us += 23) {
			deleg_files_begin(2, 3, NFSD_SIM_DELEG_READ, 0x3);
			events[e](w.srv);
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			sim_nfs_stop(&w);
			SIM_NFS_CLOSE(&w, 1);
		}
}

/* ---- one is taken away ---- */

Test(nfs4_deleg_lost, revoked_one_is_found_freed_and_lost_once, .init = sim_log_count)
{
	static const uint32_t all[] = {
		NFS4ERR_DELEG_REVOKED, NFS4ERR_EXPIRED, NFS4ERR_ADMIN_REVOKED};

	/* found by the flag; by a call */
	for (int idle = 0; idle < 2; idle++)
		for (int i = 0; i < 3; i++) {
			deleg_files_begin(2, FILES, NFSD_SIM_DELEG_READ, 0x7);
			cr_assert_eq(nfsd_sim_revoke_deleg(w.srv, "/f1", all[i]), 1);
			cr_assert_eq(nfsd_sim_revoke_deleg(w.srv, "/f3", all[i]), 1);
			if (idle) {
				sim_nfs_run(&w, LEASE);
				cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
				cr_assert_geq(sim_ops(&w, OP_TEST_STATEID), 1);
			}
			for (unsigned int f = 0; f < 3; f++)
				deleg_use(&files[f], "file", f);
			sim_nfs_run(&w, LEASE);
			cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
			cr_assert_eq(sim_ops(&w, OP_FREE_STATEID), 2);
			for (unsigned int f = 0; f < FILES; f++)
				cr_assert_eq(files[f].losses, f % 2, "%d, %d: file %u", idle, i, f);
			cr_assert_eq(nfsd_sim_live_opens(w.srv), 1, "what it served");
			cr_assert_eq(nfsd_sim_live_delegs(w.srv), 2);
			deleg_files_end(FILES, 0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, recalled_one_that_is_not_returned_in_time_is_lost, .init = sim_log_count)
{
	deleg_files_begin(2, 2, NFSD_SIM_DELEG_WRITE, 0x3);
	nfsd_sim_conf(w.srv)->deleg_expires = true;
	nfsd_sim_recall(w.srv, "/f1");
	sim_nfs_run(&w, 3 * LEASE);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	cr_assert_eq(files[1].recalls, 1);
	cr_assert_eq(files[1].losses, 1);
	cr_assert_eq(files[0].losses, 0);
	deleg_use(&files[0], "file", 0);
	deleg_use(&files[1], "file", 1);
	deleg_files_end(2, 0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, refused_stateid_of_a_served_open_opens_it_anew, .init = sim_log_count)
{
	static const uint32_t refusals[] = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID,
		NFS4ERR_EXPIRED, NFS4ERR_DELEG_REVOKED, NFS4ERR_ADMIN_REVOKED};

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct sim_held_op io[4] = {0};

		deleg_files_begin(2, 2, NFSD_SIM_DELEG_WRITE, 0x3);
		/* The server forgot it altogether, and says so in its own way. */
		nfsd_sim_revoke_deleg(w.srv, "/f0", NFS4ERR_BAD_STATEID);
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, refusals[i]);
		for (unsigned int j = 0; j < 4; j++)
			cr_assert(sim_read_start(&io[j], &files[0], j % 2));
		for (unsigned int j = 0; j < 4; j++)
			cr_assert_eq(sim_held_wait(&io[j]), 0, "row %zu", i);
		nfsd_sim_rules_clear(w.srv);
		deleg_use(&files[0], "row", i);
		deleg_use(&files[1], "row", i);
		cr_assert_eq(files[0].losses, 1);
		cr_assert_eq(files[1].losses, 0);
		cr_assert_not(nfs4_deleg_serves(&files[0].f.state));
		deleg_files_end(2, 0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, claim_of_what_is_lost_meanwhile_has_its_open_all_the_same,
	.init = sim_log_count)
{
	static void (*const how[])(struct nfsd_sim *) = {revoke, forget};

	for (int i = 0; i < 2; i++) {
		deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0x1);
		how[i](w.srv);
		cr_assert_eq(sim_hclaim(&files[0], 1), 0);
		deleg_use(&files[0], "row", i);
		cr_assert_eq(files[0].losses, 1);
		cr_assert_eq(nfsd_sim_opens(w.srv, "/f0", NULL, 0), 1);
		sim_nfs_run(&w, LEASE);
		deleg_files_end(1, 0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_deleg_lost, return_of_what_is_lost_meanwhile_is_success, .init = sim_log_count)
{
	static void (*const how[])(struct nfsd_sim *) = {revoke, forget, nfsd_sim_drop_clients};

	for (int i = 0; i < 3; i++) {
		deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0);
		how[i](w.srv);
		cr_assert_eq(sim_hreturn(&files[0], 1), 0);
		cr_assert_eq(nfs4_deleg_count(w.cl), 0);
		sim_nfs_run(&w, LEASE);
		cr_assert_leq(files[0].losses, 1);
		deleg_files_end(1, 0);
	}
}

/* ---- the lease is over ---- */

Test(nfs4_deleg_lost, after_the_lease_all_are_lost_and_files_opened_anew, .init = sim_log_count)
{
	for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
		deleg_files_begin(lanes, FILES, NFSD_SIM_DELEG_WRITE, 0x6);
		nfsd_sim_drop_clients(w.srv);
		deleg_use(&files[1], "lanes", lanes);
		sim_nfs_run(&w, LEASE);
		deleg_use(&files[2], "lanes", lanes);
		for (unsigned int i = 0; i < FILES; i++)
			cr_assert_eq(files[i].losses, 1);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 2);
		deleg_files_end(FILES, 0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- with locks ---- */

Test(nfs4_deleg_lost, lock_after_the_claim_survives_the_return_and_a_restart, .init = sim_log_count)
{
	struct nfs4_lockowner lo;

	deleg_files_begin(2, 1, NFSD_SIM_DELEG_READ, 0x1);
	nfs4_lockowner_init(&lo, w.cl);
	cr_assert_eq(sim_hclaim(&files[0], 0), 0);
	cr_assert_eq(sim_brlock(&w, 1, &files[0].f, &lo, 0, 10, false), 0);
	cr_assert_eq(sim_hreturn(&files[0], 0), 0);
	cr_assert_eq(nfsd_sim_locks(w.srv, "/f0", NULL, 0), 1);
	nfsd_sim_restart(w.srv, GRACE, false);
	deleg_use(&files[0], "locked", 0);
	cr_assert_eq(nfsd_sim_locks(w.srv, "/f0", NULL, 0), 1);
	nfs4_lockowner_free(&lo, w.lane[0].sess);
	deleg_files_end(1, 0);
}
