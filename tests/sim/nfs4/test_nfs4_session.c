/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: set-up, calls, slots, DELAY, the end; what the server may answer on the way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_ops.h"

static struct sim_nfs w;

Test(nfs4_session, comes_up_and_leaves_nothing_behind)
{
	struct nfsd_sim_stats st;

	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 1);
	cr_assert(sim_nfs_up(&w), "%s", w.lane[0].failure.text);
	st = nfsd_sim_stats(w.srv);
	cr_assert_eq(st.ops[OP_EXCHANGE_ID], 1);
	cr_assert_eq(st.ops[OP_CREATE_SESSION], 1);
	cr_assert_eq(st.ops[OP_RECLAIM_COMPLETE], 1);
	cr_assert_eq(w.lane[0].st.sessions, 1);
	cr_assert_eq(w.lane[0].st.slots, 16);
	sim_nfs_stop(&w);
	st = nfsd_sim_stats(w.srv);
	cr_assert_eq(st.ops[OP_DESTROY_SESSION], 1);
	cr_assert_eq(st.ops[OP_DESTROY_CLIENTID], 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, stops_without_having_been_started)
{
	struct nfs4_session_view view;

	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 1);
	nfs4_session_view(w.lane[0].sess, &view);
	cr_assert_str_eq(view.state, "IDLE");
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, stop_at_any_moment_of_set_up_ends_and_leaves_nothing)
{
	for (unsigned int us = 0; us < 3000; us += 7) {
		sim_nfs_open(&w, NULL);
		sim_nfs_client(&w, 1);
		sim_nfs_start(&w, 0);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		/* An ID that was never confirmed the server forgets by itself. */
		SIM_NFS_CLOSE(&w, w.lane[0].up ? 0 : 1);
	}
}

Test(nfs4_session, lanes_share_one_client_id)
{
	struct nfsd_sim_stats st;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 4);
	st = nfsd_sim_stats(w.srv);
	cr_assert_eq(st.ops[OP_EXCHANGE_ID], 1);
	cr_assert_eq(st.ops[OP_CREATE_SESSION], 4);
	cr_assert_eq(st.ops[OP_RECLAIM_COMPLETE], 1);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), 4);
	sim_nfs_stop(&w);
	st = nfsd_sim_stats(w.srv);
	cr_assert_eq(st.ops[OP_DESTROY_SESSION], 4);
	cr_assert_eq(st.ops[OP_DESTROY_CLIENTID], 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, lanes_started_together_make_their_sessions_one_by_one)
{
	unsigned int up = 0;

	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 4);
	for (unsigned int i = 0; i < 4; i++)
		sim_nfs_start(&w, i);
	sim_nfs_run(&w, SIM_SEC);
	for (unsigned int i = 0; i < 4; i++)
		up += w.lane[i].up;
	cr_assert_eq(up, 4);
	cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_EXCHANGE_ID], 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).misordered, 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, falls_back_to_minor_version_one)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.minor_max = 1;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->minor, 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, version_the_server_does_not_have_is_a_failure_with_a_hint)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.minor_max = 1;
	sim_nfs_open(&w, &sconf);
	w.conf.minor_min = 2;
	sim_nfs_client(&w, 1);
	cr_assert_not(sim_nfs_up(&w));
	cr_assert_eq(w.lane[0].failed, 1);
	cr_assert_str_eq(w.lane[0].failure.step, "session");
	cr_assert(strstr(w.lane[0].failure.text, "vers="), "%s", w.lane[0].failure.text);
	SIM_NFS_CLOSE(&w, 1);
}

Test(nfs4_session, refused_set_up_calls_fail_the_mount_and_nothing_stays)
{
	static const struct {
		uint32_t op, status;
		const char *text;
	} rows[] = {
		{OP_EXCHANGE_ID, NFS4ERR_CLID_INUSE, "CLID_INUSE"},
		{OP_EXCHANGE_ID, NFS4ERR_SERVERFAULT, "SERVERFAULT"},
		{OP_CREATE_SESSION, NFS4ERR_NOSPC, "NOSPC"},
		{OP_CREATE_SESSION, NFS4ERR_TOOSMALL, "no room"},
		{OP_CREATE_SESSION, NFS4ERR_STALE_CLIENTID, "STALE_CLIENTID"},
		{OP_RECLAIM_COMPLETE, NFS4ERR_WRONG_CRED, "WRONG_CRED"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sim_nfs_open(&w, NULL);
		sim_rule(&w, NFSD_SIM_STATUS, rows[i].op, 0, 0, rows[i].status);
		sim_nfs_client(&w, 1);
		cr_assert_not(sim_nfs_up(&w));
		cr_assert_eq(w.lane[0].failed, 1);
		cr_assert(
			strstr(w.lane[0].failure.text, rows[i].text), "%s", w.lane[0].failure.text);
		cr_assert_gt(w.lane[0].failure.err, 0);
		SIM_NFS_CLOSE(&w, rows[i].op == OP_RECLAIM_COMPLETE ? 0 : 1);
	}
}

Test(nfs4_session, rpc_errors_at_set_up_have_hints)
{
	static const struct {
		enum nfsd_sim_act act;
		uint64_t arg;
		const char *text;
	} rows[] = {
		{NFSD_SIM_RPC_ACCEPT, RPC_ACCEPT_PROG_UNAVAIL, "no NFSv4 there"},
		{NFSD_SIM_RPC_DENY, 1, "sec="},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sim_nfs_open(&w, NULL);
		sim_rule(&w, rows[i].act, OP_EXCHANGE_ID, 0, 0, rows[i].arg);
		sim_nfs_client(&w, 1);
		cr_assert_not(sim_nfs_up(&w));
		cr_assert(
			strstr(w.lane[0].failure.text, rows[i].text), "%s", w.lane[0].failure.text);
		SIM_NFS_CLOSE(&w, 0);
	}
}

Test(nfs4_session, session_too_small_to_be_of_use_is_refused)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.max_ops = 4;
	sim_nfs_open(&w, &sconf);
	sim_nfs_client(&w, 1);
	cr_assert_not(sim_nfs_up(&w));
	cr_assert(
		strstr(w.lane[0].failure.text, "too few operations"), "%s", w.lane[0].failure.text);
	SIM_NFS_CLOSE(&w, 1);
}

Test(nfs4_session, comes_up_with_the_smallest_thresholds)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->inline_size = 1024;
	w.conf.rdma.inline_size = 1024;
	sim_nfs_mounted(&w, 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, set_up_survives_losing_the_connection_before_and_after_each_call)
{
	static const uint32_t calls[] = {OP_EXCHANGE_ID, OP_CREATE_SESSION, OP_RECLAIM_COMPLETE};
	static const enum nfsd_sim_act acts[] = {
		NFSD_SIM_CUT_BEFORE, NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED};

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			sim_nfs_open(&w, NULL);
			sim_rule(&w, acts[j], calls[i], 0, 2, 0);
			sim_nfs_mounted(&w, 1);
			SIM_NFS_CLOSE(&w, 0);
		}
}

Test(nfs4_session, server_that_drops_us_again_and_again_fails_the_mount)
{
	sim_nfs_open(&w, NULL);
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_EXCHANGE_ID, 0, 0, 0);
	sim_nfs_client(&w, 1);
	cr_assert_not(sim_nfs_up(&w));
	cr_assert(strstr(w.lane[0].failure.text, "dropped"), "%s", w.lane[0].failure.text);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, server_that_never_answers_fails_the_mount)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.timeo_ns = 600 * SIM_SEC;
	w.conf.rdma.idle_probe_ns = 0;
	sim_rule(&w, NFSD_SIM_LOSE, OP_CREATE_SESSION, 0, 0, 0);
	sim_nfs_client(&w, 1);
	cr_assert_not(sim_nfs_up(&w));
	cr_assert(strstr(w.lane[0].failure.text, "makes no session"), "%s", w.lane[0].failure.text);
	SIM_NFS_CLOSE(&w, 1);
}

Test(nfs4_session, nobody_listening_is_a_failure_to_connect)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 1);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	cr_assert_not(sim_nfs_up(&w));
	cr_assert_eq(w.lane[0].failure.err, ECONNREFUSED);
	cr_assert_str_eq(w.lane[0].failure.step, "connect");
	cr_assert(strstr(w.lane[0].failure.text, "20049"), "%s", w.lane[0].failure.text);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, the_view_tells_what_was_agreed_on_and_whether_it_is_connected)
{
	static struct sim_op op;
	struct nfs4_session_view view;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	nfs4_session_view(w.lane[0].sess, &view);
	cr_assert_str_eq(view.state, "UP");
	cr_assert_eq(view.memreg, RPCRDMA_MEMREG_MW);
	cr_assert_eq(view.maxreqs, 16);
	cr_assert(view.connected && view.back);
	cr_assert_geq(view.result_max, 65536);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_GETATTR, 0, 1, 0);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.getattr.fh = &nfs4_client_fsinfo(w.cl)->root;
	sim_op_start(&op, nfs4_getattr);
	sim_nfs_run(&w, 10 * SIM_SEC);
	nfs4_session_view(w.lane[0].sess, &view);
	cr_assert_not(view.connected);
	cr_assert_eq(view.maxreqs, 16, "as of when it was up last");
	fab_sim_conf()->refuse_err = 0;
	sim_nfs_run(&w, 60 * SIM_SEC);
	cr_assert_eq(op.done_cnt, 1);
	nfs4_session_view(w.lane[0].sess, &view);
	cr_assert(view.connected);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, set_up_waits_out_delay)
{
	sim_nfs_open(&w, NULL);
	sim_rule(&w, NFSD_SIM_STATUS, OP_EXCHANGE_ID, 0, 2, NFS4ERR_DELAY);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CREATE_SESSION, 0, 2, NFS4ERR_DELAY);
	sim_rule(&w, NFSD_SIM_STATUS, OP_RECLAIM_COMPLETE, 0, 2, NFS4ERR_DELAY);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(w.lane[0].st.delays, 6);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, calls_before_the_session_is_up_are_refused)
{
	struct sim_nfs_call c = {0};

	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 1);
	cr_assert_eq(nfs4_call_get(w.lane[0].sess, &c.call), -EAGAIN);
	cr_assert(sim_nfs_up(&w));
	cr_assert_geq(w.lane[0].unblocked, 1);
	sim_nfs_stop(&w);
	cr_assert_eq(nfs4_call_get(w.lane[0].sess, &c.call), -ESHUTDOWN);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, more_calls_than_slots_wait_for_one)
{
	struct sim_nfs_call c[13] = {0};
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.max_slots = 3;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(w.lane[0].st.slots, 3);
	for (int i = 0; i < 13; i++)
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c[i]), 0);
	for (int i = 0; i < 13; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0);
	cr_assert_gt(w.lane[0].st.slot_waits, 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* As nfsd does from Linux 6.14 on. */
Test(nfs4_session, slots_that_the_server_adds_later_are_used)
{
	struct sim_nfs_call c[13] = {0};
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.first_slots = 2;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(w.lane[0].st.slots, 16);
	for (int i = 0; i < 13; i++)
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c[i]), 0);
	for (int i = 0; i < 13; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0);
	cr_assert_eq(w.lane[0].st.slot_waits, 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, requests_used_up_are_refused_until_one_is_free)
{
	struct sim_nfs_call c[20] = {0};
	int n = 0;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	while (n < 20 && sim_nfs_getattr(&w, 0, &c[n]) == 0)
		n++;
	cr_assert_eq(n, 13, "16 credits, three of them our own");
	for (int i = 0; i < n; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0);
	cr_assert_geq(w.lane[0].unblocked, 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, delay_and_grace_are_waited_out)
{
	struct sim_nfs_call c = {0};
	uint64_t t0;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CREATE, 0, 3, NFS4ERR_DELAY);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CREATE, 0, 2, NFS4ERR_GRACE);
	t0 = reactor_now(w.r);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	cr_assert_geq(reactor_now(w.r) - t0, (100 + 200 + 400) * SIM_MSEC);
	cr_assert_geq(w.lane[0].st.delays, 3);
	cr_assert(nfsd_sim_exists(w.srv, "/d"));
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, soft_mount_does_not_wait_for_ever)
{
	struct sim_nfs_call c = {0};

	sim_nfs_open(&w, NULL);
	sim_nfs_soft(&w, 2);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CREATE, 0, 0, NFS4ERR_DELAY);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), -ETIMEDOUT);
	SIM_NFS_CLOSE(&w, 0);
}

/* I8: in flight when the time is over that it may wait for a slot. */
Test(nfs4_session, soft_call_that_waited_for_its_slot_ends_once)
{
	struct nfsd_sim_conf sconf;
	struct sim_nfs_call c[3] = {0};

	nfsd_sim_conf_default(&sconf);
	sconf.max_slots = 1;
	sim_nfs_open(&w, &sconf);
	sim_nfs_soft(&w, 1); /* 4 s in all */
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_LATE, OP_GETATTR, 0, 0, 1700 * SIM_MSEC);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c[i]), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0, "%d: %d", i, c[i].err);
	sim_nfs_run(&w, 10 * SIM_SEC);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(c[i].done_cnt, 1);
	cr_assert_eq(w.lane[0].st.reconnects, 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, statuses_become_errnos)
{
	struct sim_nfs_call c = {0};

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_nfs_lookup(&w, 0, &c, "nothing"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), -ENOENT);
	cr_assert_eq(c.call.status, NFS4ERR_NOENT);
	sim_rule(&w, NFSD_SIM_STATUS, OP_GETATTR, 0, 1, 10999);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), -EIO);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_session, rpc_errors_end_the_call_alone)
{
	static const struct {
		enum nfsd_sim_act act;
		uint64_t arg;
		int err;
	} rows[] = {
		{NFSD_SIM_RPC_ACCEPT, RPC_ACCEPT_PROG_UNAVAIL, -EPROTONOSUPPORT},
		{NFSD_SIM_RPC_ACCEPT, RPC_ACCEPT_GARBAGE_ARGS, -EIO},
		{NFSD_SIM_RPC_ACCEPT, RPC_ACCEPT_SYSTEM_ERR, -EREMOTEIO},
		{NFSD_SIM_RPC_DENY, 1, -EACCES},
		{NFSD_SIM_ERR_CHUNK, 0, -EREMOTEIO},
	};
	struct sim_nfs_call c = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_mounted(&w, 1);
		/* Whether the number was used up only the next call on the slot tells. */
		nfsd_sim_conf(w.srv)->tolerant_seq = true;
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = rows[i].act,
					     .op = OP_GETATTR,
					     .count = 1,
					     .arg = rows[i].arg,
					     .hostile = true});
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), rows[i].err, "row %zu: %d", i, c.err);
		for (int j = 0; j < 3; j++) {
			cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
			cr_assert_eq(sim_nfs_wait(&w, &c), 0);
		}
		SIM_NFS_CLOSE(&w, 0);
	}
}

Test(nfs4_session, lease_is_renewed_when_idle_and_only_then)
{
	struct nfsd_sim_conf sconf;
	struct sim_nfs_call c = {0};
	uint64_t before;

	nfsd_sim_conf_default(&sconf);
	sconf.lease_s = 90;
	sim_nfs_open(&w, &sconf);
	w.conf.rdma.idle_probe_ns = 0;
	sim_nfs_mounted(&w, 1);
	before = w.lane[0].st.ops[OP_SEQUENCE];
	sim_nfs_run(&w, 600 * SIM_SEC);
	cr_assert_eq(w.lane[0].st.ops[OP_SEQUENCE] - before, 10, "600 s at 60 s each: %u",
		(unsigned int)(w.lane[0].st.ops[OP_SEQUENCE] - before));
	before = w.lane[0].st.ops[OP_SEQUENCE];
	for (int i = 0; i < 30; i++) {
		sim_nfs_run(&w, 20 * SIM_SEC);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	}
	cr_assert_eq(w.lane[0].st.ops[OP_SEQUENCE] - before, 30);
	SIM_NFS_CLOSE(&w, 0);
}
