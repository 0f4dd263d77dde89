/* SPDX-License-Identifier: BSD-3-Clause */
/* The back channel of a session: the server's calls are answered, also after a reconnect. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rpc.h"
#include "sim_nfs.h"

static struct sim_nfs w;

/* One call of the server's: the NFS status of its answer; accept_stat must be 0. */
static uint64_t callback(enum nfsd_sim_cb what)
{
	struct nfsd_sim_stats st;
	uint64_t before = nfsd_sim_stats(w.srv).cb_replies;

	cr_assert_eq(nfsd_sim_callback(w.srv, what, false), w.lanes);
	sim_nfs_run(&w, SIM_MSEC);
	st = nfsd_sim_stats(w.srv);
	cr_assert_eq(st.cb_replies, before + w.lanes, "kind %d", what);
	cr_assert_eq(st.cb_accept_stat, 0, "kind %d", what);
	return st.cb_status;
}

static void must_getattr(unsigned int lane)
{
	struct sim_nfs_call c = {0};

	cr_assert_eq(sim_nfs_getattr(&w, lane, &c), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
}

static uint64_t binds(void)
{
	return nfsd_sim_stats(w.srv).ops[OP_BIND_CONN_TO_SESSION];
}

Test(nfs4_back, each_call_is_answered_with_its_status)
{
	static const struct {
		enum nfsd_sim_cb what;
		uint32_t status;
	} rows[] = {
		{NFSD_SIM_CB_SEQUENCE, NFS4_OK},
		{NFSD_SIM_CB_AGAIN, NFS4_OK},
		{NFSD_SIM_CB_RECALL_ANY, NFS4_OK},
		{NFSD_SIM_CB_RECALL, NFS4ERR_BADHANDLE},
		{NFSD_SIM_CB_BAD_OP, NFS4ERR_OP_ILLEGAL},
		{NFSD_SIM_CB_SEQUENCE, NFS4_OK},
		{NFSD_SIM_CB_AHEAD, NFS4ERR_SEQ_MISORDERED},
	};

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(callback(rows[i].what), rows[i].status, "row %zu", i);
	cr_assert_eq(binds(), 0, "CREATE_SESSION did it");
	cr_assert_eq(w.lane[0].st.sessions, 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, what_is_not_our_service_gets_the_rpc_error)
{
	static const struct {
		enum nfsd_sim_cb what;
		uint32_t stat;
	} rows[] = {
		{NFSD_SIM_CB_NULL, 0},
		{NFSD_SIM_CB_UNKNOWN_PROG, RPC_ACCEPT_PROG_UNAVAIL},
		{NFSD_SIM_CB_UNKNOWN_VERS, RPC_ACCEPT_PROG_MISMATCH},
		{NFSD_SIM_CB_UNKNOWN_PROC, RPC_ACCEPT_PROC_UNAVAIL},
		{NFSD_SIM_CB_GARBAGE, RPC_ACCEPT_GARBAGE_ARGS},
	};

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(nfsd_sim_callback(w.srv, rows[i].what, false), 1);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(nfsd_sim_stats(w.srv).cb_replies, i + 1);
		cr_assert_eq(nfsd_sim_stats(w.srv).cb_accept_stat, rows[i].stat);
	}
	must_getattr(0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_reconnect_brings_it_back)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 2);
	for (unsigned int i = 1; i < 5; i++) {
		nfsd_sim_disconnect(w.srv);
		sim_nfs_run(&w, 20 * SIM_SEC);
		cr_assert_eq(binds(), 2 * i);
		cr_assert_eq(callback(NFSD_SIM_CB_SEQUENCE), NFS4_OK);
	}
	cr_assert_eq(w.lane[0].st.sessions, 1);
	SIM_NFS_CLOSE(&w, 0);
}

/* With every slot and credit taken by calls that are resent. */
Test(nfs4_back, a_reconnect_under_load_brings_it_back)
{
	struct sim_nfs_call c[16] = {0};
	int n = 0;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_LATE, OP_GETATTR, 0, 16, SIM_MSEC);
	while (n < 16 && sim_nfs_getattr(&w, 0, &c[n]) == 0)
		n++;
	cr_assert_gt(n, 10);
	sim_nfs_run(&w, SIM_MSEC / 2);
	nfsd_sim_disconnect(w.srv);
	for (int i = 0; i < n; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0);
	sim_nfs_run(&w, 5 * SIM_SEC);
	/* A reply from before the bind may come after it and say once more that the path is down.
	 */
	cr_assert(binds() == 1 || binds() == 2);
	cr_assert_eq(callback(NFSD_SIM_CB_SEQUENCE), NFS4_OK);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_connection_lost_at_any_call_of_the_set_up_leaves_it_bound)
{
	static const uint32_t calls[] = {OP_EXCHANGE_ID, OP_CREATE_SESSION, OP_RECLAIM_COMPLETE};
	static const enum nfsd_sim_act acts[] = {
		NFSD_SIM_CUT_BEFORE, NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED};

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			sim_nfs_open(&w, NULL);
			sim_rule(&w, acts[j], calls[i], 0, 1, 0);
			sim_nfs_mounted(&w, 1);
			sim_nfs_run(&w, SIM_SEC);
			cr_assert_eq(callback(NFSD_SIM_CB_SEQUENCE), NFS4_OK);
			SIM_NFS_CLOSE(&w, 0);
		}
}

Test(nfs4_back, a_server_that_says_the_path_is_down_gets_it_bound_again)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	for (unsigned int i = 1; i <= 3; i++) {
		sim_rule(
			&w, NFSD_SIM_SEQ_FLAGS, OP_GETATTR, 0, 1, SEQ4_STATUS_CB_PATH_DOWN_SESSION);
		must_getattr(0);
		must_getattr(0);
		sim_nfs_run(&w, SIM_SEC);
		cr_assert_eq(binds(), i);
	}
	cr_assert_eq(w.lane[0].st.sessions, 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_path_that_stays_down_is_not_bound_for_ever)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_SEQ_FLAGS, 0, 0, 0, SEQ4_STATUS_CB_PATH_DOWN);
	for (int i = 0; i < 50; i++)
		must_getattr(0);
	sim_nfs_run(&w, 600 * SIM_SEC);
	cr_assert_eq(binds(), 1);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_fault_makes_a_new_session_once_in_a_while)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_SEQ_FLAGS, OP_GETATTR, 0, 0, SEQ4_STATUS_BACKCHANNEL_FAULT);
	for (int i = 0; i < 20; i++)
		must_getattr(0);
	cr_assert_eq(w.lane[0].st.sessions, 2);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), 1, "the old one was destroyed");
	cr_assert_eq(callback(NFSD_SIM_CB_SEQUENCE), NFS4_OK, "numbers start anew");
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_bind_that_fails_does_not_disturb)
{
	static const uint32_t statuses[] = {NFS4ERR_INVAL, NFS4ERR_NOTSUPP, NFS4ERR_BADSESSION};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_mounted(&w, 1);
		/* Not its own: the step of the recovery that BADSESSION starts would not help. */
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
					     .op = OP_BIND_CONN_TO_SESSION,
					     .count = 1,
					     .arg = statuses[i]});
		nfsd_sim_disconnect(w.srv);
		sim_nfs_run(&w, 20 * SIM_SEC);
		must_getattr(0);
		cr_assert_eq(w.lane[0].st.sessions, statuses[i] == NFS4ERR_BADSESSION ? 2 : 1);
		SIM_NFS_CLOSE(&w, statuses[i] == NFS4ERR_BADSESSION ? 1 : 0);
	}
}

/* As good as it gets, until the next connection. */
Test(nfs4_back, a_bind_that_always_fails_is_tried_once_a_connection)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_STATUS, OP_BIND_CONN_TO_SESSION, 0, 0, NFS4ERR_INVAL);
	for (unsigned int i = 1; i <= 2; i++) {
		nfsd_sim_disconnect(w.srv);
		sim_nfs_run(&w, 100 * SIM_SEC);
		must_getattr(0);
		cr_assert_eq(w.lane[0].st.reconnects, i);
		cr_assert_leq(binds(), i);
	}
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_bind_that_is_delayed_does_not_cost_the_lease)
{
	uint64_t seqs, longest = 0;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	sim_rule(&w, NFSD_SIM_STATUS, OP_BIND_CONN_TO_SESSION, 0, 0, NFS4ERR_DELAY);
	nfsd_sim_disconnect(w.srv);
	for (int s = 0, since = 0; s < 300; s++, since++) {
		seqs = sim_ops(&w, OP_SEQUENCE);
		sim_nfs_run(&w, SIM_SEC);
		if (sim_ops(&w, OP_SEQUENCE) != seqs)
			since = 0;
		longest = (uint64_t)since > longest ? (uint64_t)since : longest;
	}
	cr_assert_leq(longest, 60, "of a lease of 90 s: %lu s", (unsigned long)longest);
	cr_assert_leq(w.lane[0].st.delays, 300, "and nobody is flooded");
	/* When the server can, it is bound. */
	nfsd_sim_rules_clear(w.srv);
	sim_nfs_run(&w, 20 * SIM_SEC);
	cr_assert_eq(callback(NFSD_SIM_CB_SEQUENCE), NFS4_OK);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_server_without_one_is_not_asked_to_bind)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.no_backchannel = true;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1);
	nfsd_sim_disconnect(w.srv);
	sim_nfs_run(&w, 20 * SIM_SEC);
	must_getattr(0);
	cr_assert_eq(binds(), 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, a_server_that_wants_fewer_slots_gets_them)
{
	struct nfs4_session_view view;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	cr_assert_gt(w.lane[0].st.slots, 4);
	cr_assert_eq(callback(NFSD_SIM_CB_RECALL_SLOT), NFS4_OK);
	cr_assert_eq(w.lane[0].st.slots, 4);
	nfs4_session_view(w.lane[0].sess, &view);
	cr_assert_str_eq(view.state, "UP");
	must_getattr(0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_back, works_with_the_smallest_thresholds)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->inline_size = 1024;
	w.conf.rdma.inline_size = 1024;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(callback(NFSD_SIM_CB_RECALL), NFS4ERR_BADHANDLE);
	SIM_NFS_CLOSE(&w, 0);
}

/* More calls than it has credits or slots for. */
Test(nfs4_back, a_flood_is_answered)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	fab_sim_conf()->rnr_waits = true;
	for (int i = 0; i < 200; i++)
		nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, false);
	must_getattr(0);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(w.lane[0].st.reverse_calls, 200);
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_replies + w.lane[0].st.reverse_dropped, 200);
	cr_assert_eq(w.lane[0].st.reconnects, 0);
	SIM_NFS_CLOSE(&w, 0);
}
