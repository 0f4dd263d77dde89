/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks over the server's restart, the lease's end and the loss of a stateid:
 * they are reclaimed before the open is used, or it is not used any more. The
 * simulated server judges both, and what is reclaimed when. What happens beside
 * that is test_nfs4_lock_reclaim2.c's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "nfs4_lock.h"
#include "sim_log.h"
#include "sim_ops.h"

#define FILES  3
#define OWNERS 4 /* of each file */
#define RANGES 6 /* of each owner */
#define GRACE  (10 * SIM_SEC)
#define END    NFS4_LOCK_TO_END

static struct sim_nfs w;
static struct sim_file files[FILES];
static struct nfs4_lockowner owners[FILES][OWNERS];
static unsigned int file_cnt, owner_cnt, range_cnt;

static uint64_t offset_of(unsigned int owner, unsigned int range)
{
	return owner * 1000 + range * 20;
}

static void lock_all(void)
{
	for (unsigned int i = 0; i < file_cnt; i++)
		for (unsigned int k = 0; k < owner_cnt; k++) {
			nfs4_lockowner_init(&owners[i][k], w.cl);
			for (unsigned int r = 0; r < range_cnt; r++)
				cr_assert_eq(sim_brlock(&w, k % w.lanes, &files[i], &owners[i][k],
						     offset_of(k, r), 10, r % 2),
					0);
		}
}

static void begin(unsigned int lanes, unsigned int nfiles, unsigned int nowners, unsigned int n)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, lanes);
	file_cnt = nfiles;
	owner_cnt = nowners;
	range_cnt = n;
	for (unsigned int i = 0; i < nfiles; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, name, &files[i]), 0);
	}
	lock_all();
}

static void check_locks(const char *what, uint64_t where)
{
	unsigned int want = file_cnt * owner_cnt * range_cnt;

	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), want, "%s %lu: %u locks, not %u", what,
		(unsigned long)where, nfsd_sim_locks(w.srv, NULL, NULL, 0), want);
	/* Each where it was: another client gets what is between, not what is held. */
	for (unsigned int k = 0; k < owner_cnt; k++)
		for (unsigned int r = 0; r < range_cnt; r++) {
			cr_assert(nfsd_sim_lock(w.srv, "/f0", offset_of(k, r) + 10, 10, true));
			cr_assert_not(nfsd_sim_lock(w.srv, "/f0", offset_of(k, r) + 9, 1, true));
		}
}

static void end(unsigned int left)
{
	for (unsigned int i = 0; i < file_cnt; i++)
		cr_assert_eq(sim_close(&w, &files[i]), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 0);
	SIM_NFS_CLOSE(&w, left);
}

/* ---- I/O meanwhile: it waits for the locks ---- */

static struct sim_op ops[FILES];

static void start_io(unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++) {
		struct nfs4_op_read *o = &ops[i].call.u.read;

		cr_assert(sim_op_get(&w, i % w.lanes, &ops[i]));
		o->fh = &files[i].fh;
		o->state = &files[i].state;
		o->count = 100;
		o->sink = (struct rpcrdma_span){ops[i].buf, ops[i].buf->data, 100};
		sim_op_start(&ops[i], nfs4_read);
	}
}

static void end_io(unsigned int cnt, const char *what, uint64_t where)
{
	for (unsigned int i = 0; i < cnt; i++) {
		cr_assert(sim_nfs_until(&w, &ops[i].done_cnt, 1, 900 * SIM_SEC), "%s %lu: %u hangs",
			what, (unsigned long)where, i);
		cr_assert_eq(
			ops[i].err, 0, "%s %lu: %u: %d", what, (unsigned long)where, i, ops[i].err);
	}
}

static void restart(uint64_t grace_ns)
{
	nfsd_sim_restart(w.srv, grace_ns, false);
	start_io(file_cnt);
}

static void are_reclaimed(const char *what, uint64_t where)
{
	end_io(file_cnt, what, where);
	check_locks(what, where);
}

Test(nfs4_lock_reclaim, many_owners_and_ranges_survive_a_restart, .init = sim_log_count)
{
	static const uint64_t graces[] = {GRACE, 0};

	for (int i = 0; i < 2; i++)
		for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
			unsigned int cnt = FILES * OWNERS * RANGES;

			begin(lanes, FILES, OWNERS, RANGES);
			restart(graces[i]);
			are_reclaimed("lanes", lanes);
			cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, graces[i] ? cnt : 0);
			cr_assert_eq(
				nfsd_sim_stats(w.srv).locks_not_reclaimed, graces[i] ? 0 : cnt);
			end(0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim, files_that_nobody_uses_reclaim_them_too, .init = sim_log_count)
{
	begin(2, FILES, OWNERS, 1);
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, 60 * SIM_SEC);
	check_locks("idle", 0);
	end(0);
}

Test(nfs4_lock_reclaim, what_was_unlocked_or_freed_is_not_asked_for, .init = sim_log_count)
{
	begin(1, 1, 3, 2);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &owners[0][0], 0, END), 0);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &owners[0][1], 0, END), 0);
	nfs4_lockowner_free(&owners[0][1], w.lane[0].sess);
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, 2);
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 2);
	/* The one without a lock starts as if new. */
	cr_assert_eq(sim_brlock(&w, 0, &files[0], &owners[0][0], 0, 10, true), 0);
	end(0);
}

Test(nfs4_lock_reclaim, after_the_lease_and_with_another_stateid, .init = sim_log_count)
{
	begin(2, FILES, 2, 3);
	nfsd_sim_drop_clients(w.srv);
	start_io(FILES);
	are_reclaimed("lease", 0);
	nfsd_sim_unlock(w.srv, "/f0", 0, END);
	/* One open alone: its stateid is refused once. */
	sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
	start_io(FILES);
	are_reclaimed("refused", 0);
	end(0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim, revoked_open_has_its_locks_again, .init = sim_log_count)
{
	static const uint32_t first[] = {OP_READ, OP_LOCK, OP_LOCKU};

	for (int i = 0; i < 3; i++) {
		struct sim_op op = {0};

		begin(2, FILES, 2, 3);
		cr_assert_eq(nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_EXPIRED), 1);
		if (first[i] == OP_LOCK)
			cr_assert_eq(sim_brlock(&w, 0, &files[0], &owners[0][0], 0, 10, false), 0);
		else if (first[i] == OP_LOCKU)
			cr_assert_eq(sim_brunlock(&w, 0, &files[0], &owners[0][0], 0, 10), 0);
		if (first[i] == OP_LOCKU)
			cr_assert_eq(sim_brlock(&w, 1, &files[0], &owners[0][0], 0, 10, false), 0);
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), 0);
		sim_nfs_run(&w, 30 * SIM_SEC);
		check_locks("revoked by", first[i]);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- refused ---- */

static void one_is_lost(const char *what, uint64_t where)
{
	for (int turn = 0; turn < 2; turn++) {
		struct sim_op op = {0};

		for (int i = 0; i < FILES; i++) {
			int want = i == 1 ? -EIO : 0;

			cr_assert_eq(sim_read(&w, &op, &files[i], 0, 100), want, "%s %lu: %d: %d",
				what, (unsigned long)where, i, op.err);
		}
		cr_assert_eq(sim_brlock(&w, 0, &files[1], &owners[1][0], 0, 10, false), -EIO);
		cr_assert_eq(sim_brunlock(&w, 0, &files[1], &owners[1][0], 0, END), 0);
		cr_assert_not(nfs4_lockowner_holds(&owners[1][1], 0, END));
	}
	cr_assert_eq(
		sim_said.lost, 1, "%s %lu: %u lines", what, (unsigned long)where, sim_said.lost);
}

Test(nfs4_lock_reclaim, lock_that_somebody_took_meanwhile_makes_the_open_lost,
	.init = sim_log_count)
{
	for (unsigned int k = 0; k < 2; k++) {
		sim_said.lost = 0;
		begin(2, FILES, 2, 3);
		nfsd_sim_restart(w.srv, 0, false);
		cr_assert(nfsd_sim_lock(w.srv, "/f1", offset_of(k, 1), 1, true));
		one_is_lost("owner", k);
		nfsd_sim_unlock(w.srv, "/f1", 0, END);
		/* Nothing of it is left there after its CLOSE. */
		end(0);
	}
}

Test(nfs4_lock_reclaim, conflict_in_the_reclaim_makes_the_open_lost, .init = sim_log_count)
{
	static const uint32_t refusals[] = {NFS4ERR_RECLAIM_CONFLICT, NFS4ERR_DENIED};

	for (uint32_t i = 0; i < 2; i++) {
		sim_said.lost = 0;
		begin(1, FILES, 2, 2);
		/* After the four of the first file. */
		sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 5, 1, refusals[i]);
		nfsd_sim_restart(w.srv, GRACE, false);
		one_is_lost("status", refusals[i]);
		end(0);
	}
}

Test(nfs4_lock_reclaim, lost_open_stays_lost_over_another_restart, .init = sim_log_count)
{
	struct sim_op op = {0};

	begin(2, FILES, 2, 1);
	nfsd_sim_restart(w.srv, 0, false);
	cr_assert(nfsd_sim_lock(w.srv, "/f1", 0, 1, true));
	sim_nfs_run(&w, SIM_SEC);
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(sim_read(&w, &op, &files[1], 0, 100), -EIO);
	cr_assert_eq(sim_read(&w, &op, &files[2], 0, 100), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 2);
	end(0);
	cr_assert_eq(sim_said.lost, 1);
}

/* ---- a second failure on the way ---- */

Test(nfs4_lock_reclaim, second_failure_at_each_lock, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_NO_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_RECLAIM_BAD},
		{NFSD_SIM_STATUS, NFS4ERR_SERVERFAULT},
		{NFSD_SIM_STATUS, NFS4ERR_BAD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS, NFS4ERR_STALE_CLIENTID},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t skip = 0; skip < 5; skip++) {
			begin(2, 2, 2, 2);
			sim_rule(&w, rows[i].act, OP_LOCK, skip, 1, rows[i].status);
			restart(GRACE);
			are_reclaimed("row", i);
			end(1);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim, second_failure_at_each_lock_after_grace, .init = sim_log_count)
{
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_BAD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_OLD_STATEID},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS, NFS4ERR_STALE_CLIENTID},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t skip = 0; skip < 5; skip++) {
			begin(2, 2, 2, 2);
			sim_rule(&w, rows[i].act, OP_LOCK, skip, 1, rows[i].status);
			restart(0);
			are_reclaimed("row", i);
			end(1);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim, session_lost_at_each_step, .init = sim_log_count)
{
	for (uint32_t skip = 0; skip < 14; skip++) {
		begin(2, 2, 2, 2);
		nfsd_sim_restart(w.srv, skip % 2 ? GRACE : 0, false);
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, skip, 1, NFS4ERR_BADSESSION);
		start_io(file_cnt);
		are_reclaimed("skip", skip);
		end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* Each fabric call from the restart on fails once, and the connection is cut once after each. */
static uint64_t recovery(uint64_t cut_at, uint64_t fail_at, uint64_t grace_ns)
{
	uint64_t before, used;

	begin(2, 2, 2, 2);
	before = fab_sim_calls();
	if (cut_at)
		fab_sim_cut_after(before + cut_at);
	if (fail_at)
		fab_sim_fail_call(before + fail_at, ENOMEM);
	restart(grace_ns);
	end_io(file_cnt, cut_at ? "cut" : "fail", cut_at ? cut_at : fail_at);
	sim_nfs_run(&w, SIM_SEC);
	used = fab_sim_calls() - before;
	check_locks("cut", cut_at);
	end(1);
	return used;
}

Test(nfs4_lock_reclaim, disconnect_after_each_fabric_call_of_the_recovery, .init = sim_log_count)
{
	for (uint64_t grace = 0; grace <= GRACE; grace += GRACE) {
		uint64_t cnt = recovery(0, 0, grace);

		cr_assert_gt(cnt, 100);
		for (uint64_t n = 1; n <= cnt; n++)
			recovery(n, 0, grace);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim, each_fabric_call_of_the_recovery_fails_once, .init = sim_log_count)
{
	for (uint64_t grace = 0; grace <= GRACE; grace += GRACE) {
		uint64_t cnt = recovery(0, 0, grace);

		for (uint64_t n = 1; n <= cnt; n++)
			recovery(0, n, grace);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- the user meanwhile ---- */

/* Without a grace period nothing but we ourselves keeps our other programs out. */
static void ask_meanwhile(unsigned int us, bool other_lane)
{
	struct nfs4_lockowner *mine = &owners[0][0], *other = &owners[0][1];
	struct sim_op l = {0}, t = {0};
	static struct sim_file holder;

	begin(2, 1, 0, 0); /* reclaimed first is the open of who asks */
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f0", &holder), 0);
	nfs4_lockowner_init(mine, w.cl);
	nfs4_lockowner_init(other, w.cl);
	cr_assert_eq(sim_brlock(&w, 0, &holder, mine, 0, 100, true), 0);
	cr_assert(sim_op_get(&w, other_lane, &l) && sim_op_get(&w, other_lane, &t));
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, us * NSEC_PER_USEC);
	t.call.u.lockt = (struct nfs4_op_lockt){
		.fh = &holder.fh, .owner = other->number, .offset = 50, .length = 10};
	sim_op_start(&t, nfs4_lockt);
	sim_lock_start(&l, &files[0], other, 50, 10, true, false);
	cr_assert(sim_nfs_until(&w, &l.done_cnt, 1, 900 * SIM_SEC), "%u us", us);
	cr_assert(sim_nfs_until(&w, &t.done_cnt, 1, 900 * SIM_SEC), "%u us", us);
	cr_assert_eq(l.err, -EAGAIN, "%u us: %d", us, l.err);
	cr_assert(!t.err && t.call.u.lockt.conflict, "%u us: %d", us, t.err);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 1, "%u us", us);
	cr_assert_eq(sim_brlock(&w, 0, &files[0], other, 100, 10, true), 0, "%u us", us);
	cr_assert_eq(sim_close(&w, &holder), 0);
	end(0);
}

Test(nfs4_lock_reclaim, our_other_programs_wait_until_it_is_reclaimed, .init = sim_log_count)
{
	for (unsigned int i = 0; i < 100; i++)
		ask_meanwhile(i < 50 ? i : (i - 50) * 2000, i % 2);
	cr_assert_eq(sim_said.lost, 0);
}
