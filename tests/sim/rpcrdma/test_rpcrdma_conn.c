/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection's life: attempts, losses, time limits, the end at any moment. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_rpc.h"

static struct sim_rpc w;
static struct sim_call calls[16];

static void open_up(enum rpcrdma_memreg memreg)
{
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.memreg = memreg;
	conf.data_cnt = 32;
	sim_rpc_open(&w, &conf, NULL);
	cr_assert(sim_rpc_up(&w));
}

static void start_mixed(unsigned int cnt, bool soft)
{
	static const struct sim_call forms[] = {
		{.kind = SIM_CALL_SINK, .a = 30000, .b = 8},
		{.kind = SIM_CALL_SOURCE, .a = 30001, .n = 1},
		{.kind = SIM_CALL_ECHO, .a = 100},
		{.kind = SIM_CALL_BIG, .a = 6000},
		{.kind = SIM_CALL_LONG, .a = 7000},
	};

	for (unsigned int i = 0; i < cnt; i++) {
		calls[i] = forms[i % 5];
		calls[i].soft = soft;
		cr_assert_eq(sim_rpc_call(&w, &calls[i]), 0);
	}
}

static void all_good(unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		cr_assert(calls[i].done_cnt == 1 && calls[i].good, "call %u", i);
}

static void must_fail(int err, const char *step, uint64_t within_ns)
{
	uint64_t start = reactor_now(w.r);
	const char *wrong;

	cr_assert_not(sim_rpc_up(&w));
	cr_assert_eq(w.failed, 1);
	cr_assert_eq(w.err, err, "%s", strerror(-w.err));
	cr_assert_str_eq(w.step, step);
	cr_assert_leq(reactor_now(w.r) - start, within_ns);
	wrong = sim_rpc_close_failed(&w);
	cr_assert_null(wrong, "%s", wrong);
}

Test(rpcrdma_conn, first_connection_names_the_step_that_failed)
{
	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->resolve_err = -ENODEV;
	fab_sim_conf()->resolve_step = FAB_STEP_ADDR;
	must_fail(-ENODEV, "resolve", 6 * SIM_SEC);

	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->resolve_err = -EHOSTUNREACH;
	fab_sim_conf()->resolve_step = FAB_STEP_ROUTE;
	must_fail(-EHOSTUNREACH, "route", 6 * SIM_SEC);

	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	must_fail(-ECONNREFUSED, "connect", 6 * SIM_SEC);

	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->connect_silent = true;
	must_fail(-ETIMEDOUT, "connect", 11 * SIM_SEC);
}

Test(rpcrdma_conn, calls_queued_before_a_failed_connection_are_ended)
{
	const char *wrong;

	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	start_mixed(4, false);
	cr_assert_not(sim_rpc_up(&w));
	cr_assert_eq(w.done, 4);
	cr_assert_eq(w.ends[RPCRDMA_SHUTDOWN], 4);
	wrong = sim_rpc_close_failed(&w);
	cr_assert_null(wrong, "%s", wrong);
}

Test(rpcrdma_conn, calls_in_flight_are_sent_again_after_a_loss)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		for (int order = 0; order < 2; order++) {
			open_up((enum rpcrdma_memreg)m);
			fab_sim_conf()->flush_first = order;
			nfsd_sim_conf(w.srv)->latency_ns = 10 * SIM_MSEC;
			start_mixed(10, false);
			sim_rpc_run(&w, 15 * SIM_MSEC);
			cr_assert_eq(w.done, 1);
			fab_sim_break_all(-ECONNRESET);
			cr_assert(sim_rpc_wait(&w, 10, 60 * SIM_SEC));
			all_good(10);
			cr_assert_eq(w.up, 2);
			cr_assert_gt(nfsd_sim_stats(w.srv).resends, 0);
			cr_assert_eq(w.st.retransmits, 9);
			SIM_RPC_CLOSE(&w);
		}
	}
}

static void cut(enum nfsd_sim_act act, bool late_sends)
{
	struct nfsd_sim_rule rule = {.act = act, .skip = 3, .count = 1};

	open_up(RPCRDMA_MEMREG_MW);
	if (late_sends)
		fab_sim_conf()->sent_late_ns = SIM_MSEC;
	nfsd_sim_rule(w.srv, &rule);
	start_mixed(10, false);
	cr_assert(sim_rpc_wait(&w, 10, 60 * SIM_SEC));
	all_good(10);
	cr_assert_eq(w.up, 2);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, the_server_cuts_before_after_and_behind_the_reply)
{
	for (int late = 0; late < 2; late++) {
		cut(NFSD_SIM_CUT_BEFORE, late);
		cut(NFSD_SIM_CUT_AFTER, late);
		cut(NFSD_SIM_CUT_REPLIED, late);
	}
}

Test(rpcrdma_conn, a_server_that_refuses_for_a_while_is_tried_again)
{
	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	fab_sim_conf()->refuse_cnt = 6;
	start_mixed(5, false);
	fab_sim_break_all(-ECONNRESET);
	cr_assert(sim_rpc_wait(&w, 5, 300 * SIM_SEC));
	all_good(5);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, back_off_grows_to_its_bound_and_no_further)
{
	uint64_t calls_before, per_minute;

	open_up(RPCRDMA_MEMREG_STATIC);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	fab_sim_break_all(-ECONNRESET);
	sim_rpc_run(&w, 600 * SIM_SEC);
	calls_before = fab_sim_calls();
	sim_rpc_run(&w, 600 * SIM_SEC);
	/* One attempt in 15 to 30 s; each costs resolve, setup, connect and the receives. */
	per_minute = (fab_sim_calls() - calls_before) / 10;
	cr_assert_leq(per_minute, 4 * (3 + 16 + 1 + 16));
	cr_assert_gt(per_minute, 0);
	fab_sim_conf()->refuse_err = 0;
	sim_rpc_run(&w, 31 * SIM_SEC);
	cr_assert(rpcrdma_is_up(w.x));
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, hard_calls_wait_for_a_silent_server)
{
	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->blackhole = true;
	start_mixed(10, false);
	sim_rpc_run(&w, 1000 * SIM_SEC);
	cr_assert_eq(w.done, 0);
	fab_sim_conf()->blackhole = false;
	cr_assert(sim_rpc_wait(&w, 10, 200 * SIM_SEC));
	all_good(10);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, soft_calls_end_in_timeo_times_retrans_and_one)
{
	uint64_t start;

	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->blackhole = true;
	start = reactor_now(w.r);
	start_mixed(10, true);
	cr_assert(sim_rpc_wait(&w, 10, 1000 * SIM_SEC));
	cr_assert_eq(w.ends[RPCRDMA_TIMEDOUT], 10);
	cr_assert_geq(reactor_now(w.r) - start, 180 * SIM_SEC);
	cr_assert_leq(reactor_now(w.r) - start, 181 * SIM_SEC);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, soft_calls_end_as_well_when_the_server_cannot_be_reached)
{
	uint64_t start;

	open_up(RPCRDMA_MEMREG_STATIC);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	fab_sim_break_all(-ECONNRESET);
	sim_rpc_run(&w, SIM_SEC);
	start = reactor_now(w.r);
	start_mixed(10, true);
	cr_assert(sim_rpc_wait(&w, 10, 1000 * SIM_SEC));
	cr_assert_eq(w.ends[RPCRDMA_TIMEDOUT], 10);
	cr_assert_leq(reactor_now(w.r) - start, 181 * SIM_SEC);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, a_lost_reply_is_asked_for_again_on_another_connection)
{
	struct nfsd_sim_rule rule = {.act = NFSD_SIM_LOSE, .skip = 1, .count = 2};

	open_up(RPCRDMA_MEMREG_MW);
	nfsd_sim_rule(w.srv, &rule);
	start_mixed(5, false);
	/* the server answers all else: five times timeo */
	cr_assert(sim_rpc_wait(&w, 5, 310 * SIM_SEC));
	all_good(5);
	cr_assert_eq(w.up, 2);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, replies_that_come_late_come_once)
{
	struct nfsd_sim_rule late = {
		.act = NFSD_SIM_LATE, .arg = 50 * SIM_SEC, .skip = 2, .count = 3};

	open_up(RPCRDMA_MEMREG_MW);
	nfsd_sim_rule(w.srv, &late);
	start_mixed(10, false);
	cr_assert(sim_rpc_wait(&w, 10, 59 * SIM_SEC));
	all_good(10);
	cr_assert_eq(w.up, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, an_idle_connection_is_probed)
{
	open_up(RPCRDMA_MEMREG_MW);
	sim_rpc_run(&w, 200 * SIM_SEC);
	cr_assert_geq(w.st.probes, 6);
	cr_assert_eq(w.up, 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, w.st.probes);
	SIM_RPC_CLOSE(&w);
}

/* Whenever it dies: never later than idle_probe_ns + probe_timeout_ns after its last message. */
Test(rpcrdma_conn, a_server_that_dies_after_a_probe_is_noticed_as_quickly)
{
	for (unsigned int s = 1; s < 60; s++) {
		open_up(RPCRDMA_MEMREG_MW);
		sim_rpc_run(&w, s * SIM_SEC);
		fab_sim_conf()->blackhole = true;
		fab_sim_conf()->refuse_err = -EHOSTUNREACH;
		sim_rpc_run(&w, 45 * SIM_SEC + SIM_MSEC);
		cr_assert_eq(w.down, 1, "died after %u s", s);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_conn, a_dead_server_is_noticed_in_bounded_time)
{
	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->blackhole = true;
	fab_sim_conf()->refuse_err = -EHOSTUNREACH;
	sim_rpc_run(&w, 46 * SIM_SEC);
	cr_assert_eq(w.down, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, a_dead_server_is_noticed_with_all_credits_in_use)
{
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.data_cnt = 32;
	conf.send_stall_ns = 0; /* by the probe, not by a Send that nobody takes */
	sim_rpc_open(&w, &conf, NULL);
	cr_assert(sim_rpc_up(&w));
	start_mixed(1, false);
	cr_assert(sim_rpc_wait(&w, 1, SIM_SEC));
	fab_sim_conf()->blackhole = true;
	fab_sim_conf()->refuse_err = -EHOSTUNREACH;
	start_mixed(16, false);
	sim_rpc_run(&w, 46 * SIM_SEC);
	cr_assert_eq(w.st.probes, 1);
	cr_assert_eq(w.down, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, another_device_after_a_loss_means_new_registrations)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_up((enum rpcrdma_memreg)m);
		nfsd_sim_conf(w.srv)->latency_ns = 10 * SIM_MSEC;
		start_mixed(10, false);
		sim_rpc_run(&w, 15 * SIM_MSEC);
		fab_sim_break_all(-ENODEV);
		cr_assert(sim_rpc_wait(&w, 10, 60 * SIM_SEC));
		all_good(10);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_conn, reconnect_by_hand_loses_nothing)
{
	open_up(RPCRDMA_MEMREG_MW);
	nfsd_sim_conf(w.srv)->latency_ns = 10 * SIM_MSEC;
	for (int i = 0; i < 5; i++) {
		start_mixed(10, false);
		sim_rpc_run(&w, 5 * SIM_MSEC);
		rpcrdma_reconnect(w.x, "test");
		cr_assert(sim_rpc_wait(&w, w.started, 5 * SIM_SEC));
		for (int j = 0; j < 10; j++)
			cr_assert(calls[j].good);
	}
	cr_assert_eq(w.up, 6);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, stop_at_any_moment)
{
	for (uint64_t us = 0; us<1500; us += us> 550 ? 3 : 29) {
		struct rpcrdma_conf conf;

		sim_rpc_conf(&conf);
		conf.memreg = us & 1 ? RPCRDMA_MEMREG_MW : RPCRDMA_MEMREG_STATIC;
		conf.data_cnt = 32;
		sim_rpc_open(&w, &conf, NULL);
		fab_sim_conf()->flush_first = us & 2;
		fab_sim_conf()->sent_late_ns = us & 4 ? 50 * NSEC_PER_USEC : 0;
		nfsd_sim_conf(w.srv)->latency_ns = 200 * NSEC_PER_USEC;
		cr_assert_eq(sim_rpc_connect(&w), 0);
		start_mixed(10, us & 8);
		sim_rpc_run(&w, us * NSEC_PER_USEC);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_conn, stop_before_connecting_and_in_back_off)
{
	sim_rpc_open(&w, NULL, NULL);
	SIM_RPC_CLOSE(&w);

	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	fab_sim_break_all(0);
	sim_rpc_run(&w, 100 * SIM_SEC);
	start_mixed(5, false);
	SIM_RPC_CLOSE(&w);
	cr_assert_eq(w.ends[RPCRDMA_SHUTDOWN], 5);
}

Test(rpcrdma_conn, calls_after_stop_are_refused)
{
	struct sim_call c = {.kind = SIM_CALL_NULL};

	open_up(RPCRDMA_MEMREG_MW);
	rpcrdma_stop(w.x);
	cr_assert_eq(sim_rpc_call(&w, &c), -ESHUTDOWN);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_conn, stop_is_complete_although_the_peer_is_dead)
{
	uint64_t start;

	open_up(RPCRDMA_MEMREG_MW);
	fab_sim_conf()->blackhole = true;
	start_mixed(10, false);
	sim_rpc_run(&w, SIM_SEC);
	start = reactor_now(w.r);
	rpcrdma_stop(w.x);
	while (!w.stopped && reactor_now(w.r) - start < 10 * SIM_SEC)
		reactor_turn(w.r, SIM_SEC);
	cr_assert_leq(reactor_now(w.r) - start, SIM_SEC);
	SIM_RPC_CLOSE(&w);
}
