/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open files over the server's restart, the lease's end and the loss of a
 * single stateid. The simulated server judges: no stateid of before, no
 * reclaim of what was not open, none after RECLAIM_COMPLETE, no other OPEN
 * before it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "open_rig.h"

#define FILES   8
#define GRACE   (10 * SIM_SEC)
#define OP_SIZE 5000u

/* ---- a load: each worker writes and reads its own part of a file ---- */

struct worker {
	struct sim_op op; /* first */
	struct sim_file *f;
	unsigned int lane, left, done;
	uint64_t off;
	int err;
};

static struct worker workers[FILES];

static void work(struct worker *wk);

static void worked(struct sim_op *op)
{
	struct worker *wk = container_of(op, struct worker, op);
	bool was_read = wk->left % 2 == 1;

	if (op->err && !wk->err)
		wk->err = op->err;
	if (was_read && !op->err &&
		(op->len != OP_SIZE || !sim_is_pattern(op->data, wk->off, op->len)))
		wk->err = -EBADMSG;
	if (was_read)
		wk->off += OP_SIZE;
	if (--wk->left)
		work(wk);
	else
		wk->done++;
}

static void work(struct worker *wk)
{
	struct sim_op *op = &wk->op;

	if (!sim_op_get(&w, wk->lane, op))
		return;
	op->then = worked;
	if (wk->left % 2 == 0) {
		struct nfs4_op_write *o = &op->call.u.write;

		nfsd_sim_fill(op->buf->data, (uint32_t)wk->off, OP_SIZE);
		o->fh = &wk->f->fh;
		o->state = &wk->f->state;
		o->offset = wk->off;
		o->data[0] = (struct rpcrdma_span){op->buf, op->buf->data, OP_SIZE};
		o->data_cnt = 1;
		o->stable = FILE_SYNC4;
		sim_op_start(op, nfs4_write);
	} else {
		struct nfs4_op_read *o = &op->call.u.read;

		o->fh = &wk->f->fh;
		o->state = &wk->f->state;
		o->offset = wk->off;
		o->count = OP_SIZE;
		o->sink = (struct rpcrdma_span){op->buf, op->buf->data, OP_SIZE};
		op->len = 1;
		sim_op_start(op, nfs4_read);
	}
}

static void start_load(unsigned int cnt, unsigned int rounds)
{
	memset(workers, 0, sizeof(workers));
	for (unsigned int i = 0; i < cnt; i++) {
		workers[i].f = &files[i];
		workers[i].lane = i % w.lanes;
		workers[i].left = 2 * rounds;
		work(&workers[i]);
	}
}

static void end_load(unsigned int cnt, const char *what, uint64_t where)
{
	for (unsigned int i = 0; i < cnt; i++) {
		cr_assert(sim_nfs_until(&w, &workers[i].done, 1, 900 * SIM_SEC),
			"%s %lu: worker %u hangs", what, (unsigned long)where, i);
		cr_assert_eq(workers[i].err, 0, "%s %lu: worker %u: %d", what, (unsigned long)where,
			i, workers[i].err);
	}
}

/* ---- the server is restarted ---- */

Test(nfs4_state, files_under_load_survive_a_restart, .init = sim_log_count)
{
	static const uint64_t graces[] = {GRACE, 0};

	for (int i = 0; i < 2; i++)
		for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
			open_begin(lanes, FILES);
			start_load(FILES, 30);
			sim_nfs_run(&w, 50 * NSEC_PER_USEC);
			nfsd_sim_restart(w.srv, graces[i], true);
			end_load(FILES, "lanes", lanes);
			cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, graces[i] ? FILES : 0);
			cr_assert_eq(nfsd_sim_stats(w.srv).not_reclaimed, graces[i] ? 0 : FILES);
			open_end(FILES);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, files_that_nobody_uses_are_reclaimed_too, .init = sim_log_count)
{
	static const uint64_t graces[] = {GRACE, 0};

	for (int i = 0; i < 2; i++) {
		open_begin(2, FILES);
		nfsd_sim_restart(w.srv, graces[i], false);
		sim_nfs_run(&w, 60 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
		open_end(FILES);
	}
}

Test(nfs4_state, files_that_were_closed_are_not_reclaimed, .init = sim_log_count)
{
	open_begin(1, FILES);
	open_close(FILES);
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 60 * SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_state, reclaim_is_done_as_who_opened_it, .init = sim_log_count)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	w.cred.uid = w.cred.gid = 1001;
	open_files(1);
	cr_assert_eq(sim_write(&w, &files[0], 0, 100, FILE_SYNC4, NULL), 0);
	w.cred.uid = w.cred.gid = 1000;
	nfsd_sim_restart(w.srv, GRACE, false);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, 1);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
	open_end(1);
}

Test(nfs4_state, restart_after_restart, .init = sim_log_count)
{
	open_begin(2, FILES);
	start_load(FILES, 100);
	for (int i = 0; i < 5; i++) {
		sim_nfs_run(&w, 3 * SIM_MSEC);
		nfsd_sim_restart(w.srv, i % 2 ? 0 : GRACE, true);
		sim_nfs_run(&w, 20 * SIM_SEC);
	}
	end_load(FILES, "restarts", 5);
	open_end(FILES);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, second_restart_in_the_middle_of_the_reclaim, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 1500; us += 7) {
		open_begin(2, FILES);
		start_load(FILES, 3);
		nfsd_sim_restart(w.srv, GRACE, true);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		nfsd_sim_restart(w.srv, GRACE, true);
		end_load(FILES, "us", us);
		cr_assert_eq(nfsd_sim_stats(w.srv).not_reclaimed, 0, "%u us", us);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, second_failure_in_the_middle_of_the_reclaim, .init = sim_log_count)
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
			open_begin(2, 3);
			sim_rule(&w, rows[i].act, OP_OPEN, skip, 1, rows[i].status);
			nfsd_sim_restart(w.srv, GRACE, false);
			start_load(3, 3);
			end_load(3, "row", i);
			open_close(3);
			SIM_NFS_CLOSE(&w, 1);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, session_lost_at_each_step_of_the_reclaim, .init = sim_log_count)
{
	for (uint32_t skip = 0; skip < 8; skip++) {
		open_begin(2, 3);
		nfsd_sim_restart(w.srv, GRACE, false);
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, skip, 1, NFS4ERR_BADSESSION);
		start_load(3, 3);
		end_load(3, "skip", skip);
		open_close(3);
		SIM_NFS_CLOSE(&w, 1);
	}
}

/* Each fabric call from the restart on fails once, and the connection is cut once after each. */
static uint64_t recovery(uint64_t cut_at, uint64_t fail_at)
{
	uint64_t before, used;

	open_begin(2, 4);
	before = fab_sim_calls();
	if (cut_at)
		fab_sim_cut_after(before + cut_at);
	if (fail_at)
		fab_sim_fail_call(before + fail_at, ENOMEM);
	nfsd_sim_restart(w.srv, GRACE, true);
	start_load(4, 1);
	end_load(4, cut_at ? "cut" : "fail", cut_at ? cut_at : fail_at);
	sim_nfs_run(&w, SIM_SEC);
	used = fab_sim_calls() - before;
	open_close(4);
	SIM_NFS_CLOSE(&w, 1);
	return used;
}

Test(nfs4_state, disconnect_after_each_fabric_call_of_the_recovery, .init = sim_log_count)
{
	uint64_t cnt = recovery(0, 0);

	cr_assert_gt(cnt, 100);
	for (uint64_t n = 1; n <= cnt; n++)
		recovery(n, 0);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, each_fabric_call_of_the_recovery_fails_once, .init = sim_log_count)
{
	uint64_t cnt = recovery(0, 0);

	for (uint64_t n = 1; n <= cnt; n++)
		recovery(0, n);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, server_that_kept_the_session_but_lost_its_memory, .init = sim_log_count)
{
	open_begin(2, 3);
	/* What the flag asks for is done once; the judge has not been restarted and minds. */
	nfsd_sim_conf(w.srv)->tolerant_state = true;
	sim_rule(&w, NFSD_SIM_STATUS, OP_RECLAIM_COMPLETE, 0, 1, NFS4ERR_COMPLETE_ALREADY);
	sim_rule(&w, NFSD_SIM_SEQ_FLAGS, 0, 0, 3, SEQ4_STATUS_RESTART_RECLAIM_NEEDED);
	start_load(3, 10);
	end_load(3, "flag", 0);
	open_end(3);
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- OPEN and CLOSE meanwhile ---- */

Test(nfs4_state, open_whose_reply_is_lost_over_the_restart, .init = sim_log_count)
{
	static const enum nfsd_sim_act acts[] = {
		NFSD_SIM_CUT_BEFORE, NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED, NFSD_SIM_LOSE};

	for (int i = 0; i < 4; i++) {
		struct sim_nfs_call o = {0}, c = {0};

		open_begin(2, 2);
		sim_rule(&w, acts[i], OP_OPEN, 0, 1, 0);
		cr_assert_eq(sim_nfs_creat(&w, 0, &o, "new"), 0);
		sim_nfs_run(&w, 300 * NSEC_PER_USEC);
		nfsd_sim_restart(w.srv, GRACE, false);
		cr_assert_eq(sim_nfs_wait(&w, &o), 0);
		sim_nfs_run(&w, 60 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 3);
		cr_assert_eq(sim_nfs_close_file(&w, 1, &c, &o), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0);
		open_end(2);
	}
}

Test(nfs4_state, opened_and_closed_at_any_moment_of_the_recovery, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 1200; us += 11) {
		struct sim_nfs_call o = {0}, o2 = {0}, c = {0}, c2 = {0};

		open_begin(2, 3);
		cr_assert_eq(sim_nfs_creat(&w, 0, &o, "a"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &o), 0);
		cr_assert_eq(sim_nfs_creat(&w, 1, &o2, "b"), 0);
		sim_nfs_run(&w, us % 40 * NSEC_PER_USEC);
		nfsd_sim_restart(w.srv, us % 2 ? GRACE : 0, false);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		cr_assert_eq(sim_nfs_close_file(&w, 1, &c, &o), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%u us: %d", us, c.err);
		cr_assert_eq(sim_nfs_wait(&w, &o2), 0);
		cr_assert_eq(sim_nfs_close_file(&w, 0, &c2, &o2), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c2), 0);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 3, "%u us", us);
		open_end(3);
	}
}

Test(nfs4_state, stop_during_the_reclaim_at_any_moment, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 1500; us += 17) {
		open_begin(2, FILES);
		start_load(FILES, 2);
		nfsd_sim_restart(w.srv, us % 2 ? GRACE : 0, false);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		/* Calls end and files with them: no work after that. */
		for (int i = 0; i < FILES; i++)
			workers[i].left = workers[i].left ? 1 : 0;
		sim_nfs_stop(&w);
		for (int i = 0; i < FILES; i++)
			nfs4_state_forget(&files[i].state);
		SIM_NFS_CLOSE(&w, 1);
	}
}

/* ---- the lease is over, the server is the same ---- */

Test(nfs4_state, files_are_opened_anew_after_the_lease, .init = sim_log_count)
{
	for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
		uint64_t t0;

		open_begin(lanes, FILES);
		t0 = reactor_now(w.r);
		start_load(FILES, 20);
		sim_nfs_run(&w, 50 * NSEC_PER_USEC);
		nfsd_sim_drop_clients(w.srv);
		end_load(FILES, "lanes", lanes);
		cr_assert_leq(reactor_now(w.r) - t0, SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, what_cannot_be_opened_anew_is_lost_and_the_rest_goes_on, .init = sim_log_count)
{
	struct sim_op op = {0};

	open_begin(2, 3);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sim_write(&w, &files[i], 0, 100, FILE_SYNC4, NULL), 0);
	nfsd_sim_drop_clients(w.srv);
	cr_assert(nfsd_sim_unlink(w.srv, "/f1"));
	for (int i = 0; i < 3; i++) {
		int want = i == 1 ? -EIO : 0;

		cr_assert_eq(sim_read(&w, &op, &files[i], 0, 100), want, "%d: %d", i, op.err);
		cr_assert_eq(sim_write(&w, &files[i], 0, 100, FILE_SYNC4, NULL), want);
	}
	cr_assert_eq(sim_said.lost, 1);
	open_end(3);
	cr_assert_eq(sim_said.lost, 1);
}

/* ---- one stateid is refused ---- */

static const uint32_t refusals[] = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED,
	NFS4ERR_OLD_STATEID, NFS4ERR_ADMIN_REVOKED};
#define REFUSALS  (sizeof(refusals) / sizeof(refusals[0]))
#define HAD_AGAIN (REFUSALS - 1) /* not what the administrator took */

Test(nfs4_state, refused_stateid_is_reopened, .init = sim_log_count)
{
	for (size_t i = 0; i < HAD_AGAIN; i++) {
		open_begin(2, 4);
		sim_rule(&w, NFSD_SIM_STATUS, OP_WRITE, 5, 3, refusals[i]);
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 10, 1, refusals[i]);
		start_load(4, 20);
		end_load(4, "status", refusals[i]);
		cr_assert_eq(nfsd_sim_stats(w.srv).clients, 1);
		cr_assert_eq(nfsd_sim_stats(w.srv).sessions, 2);
		open_end(4);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, stateid_that_is_always_refused_is_lost_after_a_few_tries, .init = sim_log_count)
{
	for (size_t i = 0; i < REFUSALS; i++) {
		struct sim_op op = {0};
		uint64_t t0, calls;

		sim_said.lost = 0;
		open_begin(1, 2);
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 0, refusals[i]);
		t0 = reactor_now(w.r);
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), -EIO);
		cr_assert_leq(reactor_now(w.r) - t0, 2 * SIM_SEC);
		nfsd_sim_rules_clear(w.srv);
		calls = nfsd_sim_stats(w.srv).calls;
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), -EIO);
		cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls, "nothing is sent any more");
		cr_assert_eq(sim_read(&w, &op, &files[1], 0, 100), 0);
		cr_assert_eq(sim_said.lost, 1);
		cr_assert_eq(sim_close(&w, &files[0]), 0);
		cr_assert_eq(sim_close(&w, &files[1]), 0);
		/* The open that the server says it does not know, it has. */
		SIM_NFS_CLOSE(&w, 1);
	}
}

Test(nfs4_state, close_of_what_is_not_open_any_more_is_success, .init = sim_log_count)
{
	static const uint32_t gone[] = {
		NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED, NFS4ERR_ADMIN_REVOKED};

	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		open_begin(1, 1);
		sim_rule(&w, NFSD_SIM_STATUS_DONE, OP_CLOSE, 0, 1, gone[i]);
		cr_assert_eq(sim_close(&w, &files[0]), 0);
		SIM_NFS_CLOSE(&w, 0);
	}
}

/* ---- waiting ---- */

Test(nfs4_state, opening_anew_waits_for_the_end_of_grace_and_others_do_not, .init = sim_log_count)
{
	struct sim_nfs_call g = {0};
	uint64_t t0;

	open_begin(1, 2);
	/* The server has forgotten us altogether. */
	sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 0, 2, NFS4ERR_RECLAIM_BAD);
	nfsd_sim_restart(w.srv, GRACE, false);
	t0 = reactor_now(w.r);
	start_load(2, 2);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
	cr_assert_eq(sim_nfs_wait(&w, &g), 0);
	cr_assert_leq(reactor_now(w.r) - t0, 5 * SIM_SEC);
	end_load(2, "grace", 0);
	cr_assert_geq(reactor_now(w.r) - t0, GRACE);
	open_end(2);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, file_that_is_delayed_does_not_keep_the_others_from_being_opened_anew,
	.init = sim_log_count)
{
	for (unsigned int delayed = 1; delayed <= 3; delayed += 2) {
		static struct sim_op op;
		uint64_t t0, opens;

		open_begin(1, FILES);
		nfsd_sim_drop_clients(w.srv);
		for (unsigned int i = 0; i < delayed; i++) {
			char path[8];

			snprintf(path, sizeof(path), "/f%u", i);
			nfsd_sim_delay_opens(w.srv, path, true);
		}
		t0 = reactor_now(w.r);
		for (unsigned int i = delayed; i < FILES; i++)
			cr_assert_eq(sim_read(&w, &op, &files[i], 0, 100), 0);
		cr_assert_leq(reactor_now(w.r) - t0, SIM_SEC);
		/* The pauses grow, and nothing else is sent for it. */
		sim_nfs_run(&w, 60 * SIM_SEC);
		opens = sim_ops(&w, OP_OPEN);
		sim_nfs_run(&w, 60 * SIM_SEC);
		cr_assert_leq(sim_ops(&w, OP_OPEN) - opens, 5 * delayed);
		cr_assert_geq(sim_ops(&w, OP_OPEN) - opens, 3 * delayed);
		/* Had again by itself, without anybody who asks for it. */
		for (unsigned int i = 0; i < delayed; i++) {
			char path[8];

			snprintf(path, sizeof(path), "/f%u", i);
			nfsd_sim_delay_opens(w.srv, path, false);
		}
		sim_nfs_run(&w, 16 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
		open_use(FILES, -1);
		open_end(FILES);
		cr_assert_eq(sim_said.lost, 0);
	}
}

Test(nfs4_state, lock_that_is_delayed_does_not_keep_others_from_being_opened_anew,
	.init = sim_log_count)
{
	static struct sim_op op;
	struct nfs4_lockowner lo;
	uint64_t t0;

	open_begin(1, FILES);
	nfs4_lockowner_init(&lo, w.cl);
	cr_assert_eq(sim_brlock(&w, 0, &files[0], &lo, 0, 10, true), 0);
	nfsd_sim_drop_clients(w.srv);
	sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 0, 8, NFS4ERR_DELAY);
	t0 = reactor_now(w.r);
	for (unsigned int i = 1; i < FILES; i++)
		cr_assert_eq(sim_read(&w, &op, &files[i], 0, 100), 0);
	cr_assert_leq(reactor_now(w.r) - t0, SIM_SEC);
	open_use(FILES, -1);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &lo, 0, 10), 0);
	open_end(FILES);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_state, soft_mount_does_not_wait_for_ever_for_a_state, .init = sim_log_count)
{
	/* in the reclaim, and after it */
	for (uint32_t skip = 0; skip < 2; skip++) {
		struct sim_op op = {0};
		uint64_t t0;

		sim_nfs_open(&w, NULL);
		sim_nfs_soft(&w, 2);
		sim_nfs_mounted(&w, 1);
		open_files(1);
		nfsd_sim_restart(w.srv, skip ? 0 : GRACE, false);
		sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, skip, 40, NFS4ERR_DELAY);
		t0 = reactor_now(w.r);
		cr_assert_eq(
			sim_read(&w, &op, &files[0], 0, 100), -ETIMEDOUT, "%u: %d", skip, op.err);
		cr_assert_leq(reactor_now(w.r) - t0, 20 * SIM_SEC);
		sim_nfs_run(&w, 300 * SIM_SEC);
		nfsd_sim_rules_clear(w.srv);
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), 0, "%d", op.err);
		open_end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}
