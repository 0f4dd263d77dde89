/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens that the server took away while the client ID stayed good: found by
 * TEST_STATEID, told by FREE_STATEID, opened anew or lost. The simulated
 * server keeps what it revoked, and the flag of SEQUENCE, until it is freed.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "open_rig.h"

#define FILES 8
#define LEASE (100 * SIM_SEC) /* after it every lane has sent a SEQUENCE */

/* ---- what is revoked ---- */

static const uint32_t expired[] = {NFS4ERR_EXPIRED, NFS4ERR_DELEG_REVOKED};

Test(nfs4_revoke, what_nobody_uses_is_found_freed_and_opened_anew, .init = sim_log_count)
{
	for (int i = 0; i < 2; i++)
		for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
			uint64_t tests, opens;

			open_begin(lanes, FILES);
			opens = sim_ops(&w, OP_OPEN);
			cr_assert_eq(nfsd_sim_revoke(w.srv, "/f1", expired[i]), 1);
			cr_assert_eq(nfsd_sim_revoke(w.srv, "/f5", expired[i]), 1);
			sim_nfs_run(&w, LEASE);
			cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
			cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
			cr_assert_eq(sim_ops(&w, OP_FREE_STATEID), 2);
			cr_assert_eq(sim_ops(&w, OP_OPEN) - opens, 2);
			tests = sim_ops(&w, OP_TEST_STATEID);
			cr_assert(tests == 1, "8 opens are asked about in one call: %u calls",
				(unsigned int)tests);
			sim_nfs_run(&w, 10 * LEASE);
			cr_assert_eq(sim_ops(&w, OP_TEST_STATEID), tests, "the flag is gone");
			open_use(FILES, -1);
			cr_assert_eq(nfsd_sim_stats(w.srv).sessions, lanes);
			open_end(FILES);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, everything_revoked_is_opened_anew, .init = sim_log_count)
{
	for (unsigned int lanes = 1; lanes <= 4; lanes += 3) {
		open_begin(lanes, FILES);
		cr_assert_eq(nfsd_sim_revoke(w.srv, NULL, NFS4ERR_EXPIRED), FILES);
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
		cr_assert_eq(nfsd_sim_stats(w.srv).clients, 1, "the client ID is still good");
		open_use(FILES, -1);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, what_is_used_is_freed_before_it_is_opened_anew, .init = sim_log_count)
{
	for (int i = 0; i < 2; i++) {
		open_begin(2, FILES);
		open_use(FILES, -1);
		nfsd_sim_revoke(w.srv, "/f3", expired[i]);
		/* The judge minds an OPEN while the old one is there. */
		open_use(FILES, -1);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(sim_ops(&w, OP_FREE_STATEID), 1);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, what_the_administrator_took_is_lost_and_told_once, .init = sim_log_count)
{
	/* found by the flag; by a call */
	for (int idle = 0; idle < 2; idle++) {
		uint64_t calls;
		struct sim_op op = {0};

		sim_said.lost = 0;
		open_begin(2, FILES);
		open_use(FILES, -1);
		nfsd_sim_revoke(w.srv, "/f3", NFS4ERR_ADMIN_REVOKED);
		if (idle)
			sim_nfs_run(&w, LEASE);
		open_use(FILES, 3);
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES - 1);
		calls = nfsd_sim_stats(w.srv).calls;
		cr_assert_eq(sim_read(&w, &op, &files[3], 0, 100), -EIO);
		cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls, "nothing is sent any more");
		cr_assert_eq(sim_said.lost, 1);
		open_end(FILES);
		cr_assert_eq(sim_said.lost, 1);
	}
}

Test(nfs4_revoke, file_of_what_was_revoked_can_be_opened_by_name_again, .init = sim_log_count)
{
	struct sim_file again = {0};
	struct sim_op op = {0};

	open_begin(1, 1);
	open_use(1, -1);
	nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_ADMIN_REVOKED);
	open_use(1, 0);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f0", &again), 0);
	cr_assert_eq(sim_read(&w, &op, &again, 0, 100), 0);
	cr_assert_eq(sim_close(&w, &again), 0);
	open_end(1);
}

Test(nfs4_revoke, what_is_closed_is_freed, .init = sim_log_count)
{
	static const uint32_t all[] = {
		NFS4ERR_EXPIRED, NFS4ERR_DELEG_REVOKED, NFS4ERR_ADMIN_REVOKED};

	for (int i = 0; i < 3; i++) {
		open_begin(1, 2);
		nfsd_sim_revoke(w.srv, "/f0", all[i]);
		cr_assert_eq(sim_close(&w, &files[0]), 0);
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(sim_close(&w, &files[1]), 0);
		SIM_NFS_CLOSE(&w, 0);
	}
}

Test(nfs4_revoke, removed_file_that_was_revoked_is_lost, .init = sim_log_count)
{
	open_begin(2, FILES);
	open_use(FILES, -1);
	nfsd_sim_revoke(w.srv, "/f6", NFS4ERR_EXPIRED);
	cr_assert(nfsd_sim_unlink(w.srv, "/f6"));
	open_use(FILES, 6);
	cr_assert_eq(sim_said.lost, 1);
	open_end(FILES);
}

Test(nfs4_revoke, many_opens_are_asked_about_a_few_at_a_time, .init = sim_log_count)
{
	open_begin(1, 100);
	nfsd_sim_revoke(w.srv, "/f99", NFS4ERR_EXPIRED);
	nfsd_sim_revoke(w.srv, "/f31", NFS4ERR_EXPIRED);
	nfsd_sim_revoke(w.srv, "/f32", NFS4ERR_EXPIRED);
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 100);
	cr_assert_eq(sim_ops(&w, OP_TEST_STATEID), 4, "of 32 each");
	open_end(100);
}

/* ---- with locks ---- */

static struct nfs4_lockowner owners[3];

static void lock_all(unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++) {
		nfs4_lockowner_init(&owners[i], w.cl);
		cr_assert_eq(sim_brlock(&w, 0, &files[0], &owners[i], 10ull * i, 10, true), 0);
	}
}

static void free_all(unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		nfs4_lockowner_free(&owners[i], w.lane[0].sess);
}

Test(nfs4_revoke, locks_come_back_with_their_open, .init = sim_log_count)
{
	for (int idle = 0; idle < 2; idle++) {
		open_begin(2, 2);
		lock_all(3);
		nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_EXPIRED);
		if (idle)
			sim_nfs_run(&w, LEASE);
		open_use(2, -1);
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(nfsd_sim_locks(w.srv, "/f0", NULL, 0), 3);
		cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 3);
		cr_assert_eq(sim_ops(&w, OP_FREE_STATEID), 4, "each stateid, not the open's alone");
		free_all(3);
		open_end(2);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, lock_that_another_client_took_in_between_is_an_error_once, .init = sim_log_count)
{
	for (int idle = 0; idle < 2; idle++) {
		sim_said.lost = 0;
		open_begin(2, 2);
		open_use(2, -1);
		lock_all(3);
		nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_EXPIRED);
		cr_assert(nfsd_sim_lock(w.srv, "/f0", 15, 1, true));
		if (idle)
			sim_nfs_run(&w, LEASE);
		open_use(2, 0);
		open_use(2, 0);
		cr_assert_eq(sim_said.lost, 1);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		free_all(3);
		nfsd_sim_unlock(w.srv, "/f0", 0, UINT64_MAX);
		open_end(2);
	}
}

Test(nfs4_revoke, locks_that_the_administrator_took_are_freed_too, .init = sim_log_count)
{
	for (int idle = 0; idle < 2; idle++) {
		sim_said.lost = 0;
		open_begin(2, 2);
		open_use(2, -1);
		lock_all(3);
		nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_ADMIN_REVOKED);
		if (idle)
			sim_nfs_run(&w, LEASE);
		open_use(2, 0);
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(sim_said.lost, 1);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 0);
		cr_assert_eq(nfsd_sim_locks(w.srv, "/f0", NULL, 0), 0);
		free_all(3);
		open_end(2);
	}
}

/* ---- flags that nothing of ours explains ---- */

Test(nfs4_revoke, flag_that_stays_makes_rounds_at_growing_distances, .init = sim_log_count)
{
	static const uint32_t flags[] = {SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED,
		SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED, SEQ4_STATUS_ADMIN_STATE_REVOKED,
		SEQ4_STATUS_RECALLABLE_STATE_REVOKED};

	for (int i = 0; i < 4; i++) {
		uint64_t opens;

		open_begin(2, FILES);
		opens = sim_ops(&w, OP_OPEN);
		sim_said.flags = 0;
		sim_rule(&w, NFSD_SIM_SEQ_FLAGS, 0, 0, 0, flags[i]);
		for (int j = 0; j < 200; j++) {
			sim_nfs_run(&w, 30 * SIM_SEC);
			open_use(2, -1);
		}
		cr_assert_geq(sim_ops(&w, OP_TEST_STATEID), 3);
		cr_assert_leq(sim_ops(&w, OP_TEST_STATEID), 12, "in 100 minutes: %u",
			(unsigned int)sim_ops(&w, OP_TEST_STATEID));
		cr_assert_eq(sim_ops(&w, OP_OPEN), opens);
		cr_assert_eq(sim_ops(&w, OP_FREE_STATEID), 0);
		cr_assert_eq(sim_said.flags, 2, "by each session, once: %u", sim_said.flags);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, flag_that_comes_back_is_looked_at_at_once, .init = sim_log_count)
{
	open_begin(1, FILES);
	for (int i = 0; i < 3; i++) {
		sim_rule(&w, NFSD_SIM_SEQ_FLAGS, 0, 0, 1, SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
		open_use(1, -1);
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(sim_ops(&w, OP_TEST_STATEID), i + 1);
		nfsd_sim_rules_clear(w.srv);
		open_use(1, -1);
	}
	open_end(FILES);
}

Test(nfs4_revoke, server_without_test_stateid_is_lived_with, .init = sim_log_count)
{
	open_begin(1, FILES);
	sim_rule(&w, NFSD_SIM_STATUS, OP_TEST_STATEID, 0, 0, NFS4ERR_NOTSUPP);
	nfsd_sim_revoke(w.srv, "/f3", NFS4ERR_EXPIRED);
	sim_nfs_run(&w, 3 * LEASE);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 1);
	open_use(FILES, -1);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	open_end(FILES);
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, state_that_cannot_be_freed_does_not_hold_up_the_rest, .init = sim_log_count)
{
	static const uint32_t refusals[] = {
		NFS4ERR_LOCKS_HELD, NFS4ERR_BAD_STATEID, NFS4ERR_SERVERFAULT, NFS4ERR_WRONG_CRED};

	for (int i = 0; i < 4; i++) {
		open_begin(1, FILES);
		sim_rule(&w, NFSD_SIM_STATUS_DONE, OP_FREE_STATEID, 0, 1, refusals[i]);
		nfsd_sim_revoke(w.srv, "/f3", NFS4ERR_EXPIRED);
		open_use(FILES, -1);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_revoke, free_that_is_always_delayed_does_not_hold_up_the_rest, .init = sim_log_count)
{
	uint64_t t0;

	open_begin(2, FILES);
	nfsd_sim_conf(w.srv)->tolerant_revoked = true;
	sim_rule(&w, NFSD_SIM_STATUS, OP_FREE_STATEID, 0, 0, NFS4ERR_DELAY);
	nfsd_sim_revoke(w.srv, "/f3", NFS4ERR_EXPIRED);
	t0 = reactor_now(w.r);
	open_use(FILES, -1);
	cr_assert_leq(reactor_now(w.r) - t0, 10 * SIM_SEC);
	cr_assert_eq(w.lane[0].st.delays + w.lane[1].st.delays, 18, "three times six");
	for (int i = 0; i < FILES; i++)
		cr_assert_eq(sim_close(&w, &files[i]), 0);
	/* One is not freed, and stays there until the client ID ends. */
	cr_assert_eq(nfsd_sim_revoked(w.srv), 1);
	SIM_NFS_CLOSE(&w, 1);
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- a second failure on the way ---- */

Test(nfs4_revoke, each_call_of_it_may_fail, .init = sim_log_count)
{
	static const uint32_t calls[] = {OP_TEST_STATEID, OP_FREE_STATEID, OP_OPEN};
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
		{NFSD_SIM_STATUS, NFS4ERR_DEADSESSION},
	};

	for (int c = 0; c < 3; c++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			open_begin(2, FILES);
			sim_rule(&w, rows[i].act, calls[c], 0, 2, rows[i].status);
			nfsd_sim_revoke(w.srv, "/f2", NFS4ERR_EXPIRED);
			nfsd_sim_revoke(w.srv, "/f7", NFS4ERR_EXPIRED);
			sim_nfs_run(&w, 2 * LEASE);
			cr_assert_eq(nfsd_sim_revoked(w.srv), 0, "%d %zu", c, i);
			open_use(FILES, -1);
			for (int f = 0; f < FILES; f++)
				cr_assert_eq(sim_close(&w, &files[f]), 0);
			cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
			/* Sessions that it said it lost while it has them. */
			SIM_NFS_CLOSE(&w, 1);
		}
	cr_assert_eq(sim_said.lost, 0);
}

static void restart(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 10 * SIM_SEC, false);
}

static void revoke_all(struct nfsd_sim *srv)
{
	nfsd_sim_revoke(srv, NULL, NFS4ERR_EXPIRED);
}

/* Something is revoked, and found by a call; `us` later something else happens. */
Test(nfs4_revoke, more_is_lost_at_any_moment, .init = sim_log_count)
{
	static void (*const what[])(struct nfsd_sim *) = {
		restart, revoke_all, nfsd_sim_drop_clients, nfsd_sim_drop_sessions};

	for (unsigned int us = 0; us < 4 * 400; us += 3) {
		struct sim_nfs_call c = {0};

		open_begin(us % 2 + 1, FILES);
		nfsd_sim_revoke(w.srv, "/f1", NFS4ERR_EXPIRED);
		nfsd_sim_revoke(w.srv, "/f4", NFS4ERR_DELEG_REVOKED);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0); /* shows the flag */
		sim_nfs_run(&w, us % 400 * NSEC_PER_USEC);
		what[us / 400](w.srv);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0);
		sim_nfs_run(&w, 2 * LEASE);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0, "%u us", us);
		open_use(FILES, -1);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The number of the session that SEQUENCE's result is of: no reply of this one. */
static void spoil_sequence(void *ctx, struct nfsd_sim_out *out)
{
	out->msg[out->body_off + 24 + 12 + 8] ^= 0x01;
}

/*
 * I10: it was executed and waits to be asked for once more, on its slot; meanwhile its open becomes
 * another one. The judge knows what was sent on that slot with this number.
 */
Test(nfs4_revoke, what_is_sent_again_has_the_stateid_it_had, .init = sim_log_count)
{
	static struct sim_op op;
	struct nfs4_op_read *o = &op.call.u.read;
	struct sim_nfs_call c = {0};
	uint64_t opens;

	open_begin(2, 1);
	open_use(1, -1);
	opens = sim_ops(&w, OP_OPEN);
	nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_MUTATE,
				     .op = OP_READ,
				     .count = 1,
				     .mutate = spoil_sequence,
				     .hostile = true});
	sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 1, 0, NFS4ERR_DELAY);
	cr_assert(sim_op_get(&w, 0, &op));
	o->fh = &files[0].fh;
	o->state = &files[0].state;
	o->count = 100;
	o->sink = (struct rpcrdma_span){op.buf, op.buf->data, 100};
	op.len = 1;
	sim_op_start(&op, nfs4_read);
	while (w.lane[0].st.delays == 0)
		reactor_turn(w.r, SIM_SEC);
	cr_assert_eq(w.lane[0].st.reconnects, 1);
	nfsd_sim_rules_clear(w.srv);
	nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_EXPIRED);
	cr_assert_eq(sim_nfs_getattr(&w, 1, &c), 0); /* shows the flag */
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	sim_nfs_run(&w, 50 * SIM_MSEC);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	cr_assert_eq(sim_ops(&w, OP_OPEN), opens + 1);
	cr_assert_eq(op.done_cnt, 0, "it waits");
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(op.done_cnt, 1);
	cr_assert_eq(op.err, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).false_retries, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).replays + nfsd_sim_stats(w.srv).uncached_replays, 1);
	open_end(1);
}

Test(nfs4_revoke, closed_at_any_moment, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 400; us += 3) {
		struct sim_nfs_call o = {0}, c = {0}, g = {0};

		open_begin(2, 3);
		cr_assert_eq(sim_nfs_creat(&w, 0, &o, "a"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &o), 0);
		nfsd_sim_revoke(w.srv, NULL, NFS4ERR_EXPIRED);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		cr_assert_eq(sim_nfs_close_file(&w, 1, &c, &o), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%u us: %d", us, c.err);
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 3, "%u us", us);
		open_end(3);
	}
}

/* The round hears that the server does not know what it has just closed. */
Test(nfs4_revoke, closed_one_whose_reply_is_lost_is_not_opened_anew, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 300; us += 10) {
		struct sim_nfs_call o = {0}, c = {0}, g = {0};

		open_begin(2, 3);
		cr_assert_eq(sim_nfs_creat(&w, 0, &o, "a"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &o), 0);
		sim_rule(&w, NFSD_SIM_CUT_AFTER, OP_CLOSE, 0, 1, 0);
		cr_assert_eq(sim_nfs_close_file(&w, 1, &c, &o), 0);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		nfsd_sim_revoke(w.srv, "/f1", NFS4ERR_EXPIRED);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%u us: %d", us, c.err);
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 3, "%u us", us);
		open_end(3);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The CLOSE is told to come again; meanwhile its stateid is found out to be revoked, and freed. */
Test(nfs4_revoke, what_was_freed_is_not_closed_again, .init = sim_log_count)
{
	struct sim_nfs_call o = {0}, c = {0}, g = {0};
	uint64_t closes;

	open_begin(1, 1);
	cr_assert_eq(sim_nfs_creat(&w, 0, &o, "a"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &o), 0);
	closes = sim_ops(&w, OP_CLOSE);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CLOSE, 0, 1, NFS4ERR_DELAY);
	cr_assert_eq(sim_nfs_close_file(&w, 0, &c, &o), 0);
	sim_nfs_run(&w, NSEC_PER_MSEC);
	cr_assert_eq(nfsd_sim_revoke(w.srv, "/a", NFS4ERR_EXPIRED), 1);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	cr_assert_eq(sim_ops(&w, OP_CLOSE), closes, "there was nothing to close any more");
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 1);
	open_end(1);
}

Test(nfs4_revoke, stopped_at_any_moment, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 400; us += 3) {
		struct sim_nfs_call g = {0};

		open_begin(2, FILES);
		nfsd_sim_revoke(w.srv, NULL, NFS4ERR_EXPIRED);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &g), 0);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		sim_nfs_stop(&w);
		for (int i = 0; i < FILES; i++)
			nfs4_state_forget(&files[i].state);
		SIM_NFS_CLOSE(&w, 1);
	}
}

Test(nfs4_revoke, soft_mount_gives_up_and_goes_on_later, .init = sim_log_count)
{
	static const uint32_t calls[] = {OP_TEST_STATEID, OP_FREE_STATEID};

	for (int i = 0; i < 2; i++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_soft(&w, 2);
		sim_nfs_mounted(&w, 1);
		open_files(FILES);
		sim_rule(&w, NFSD_SIM_STATUS, calls[i], 0, 12, NFS4ERR_DELAY);
		nfsd_sim_revoke(w.srv, "/f3", NFS4ERR_EXPIRED);
		sim_nfs_run(&w, 10 * LEASE);
		cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
		open_use(FILES, -1);
		open_end(FILES);
	}
	cr_assert_eq(sim_said.lost, 0);
}
