/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "fab_sim.h"
#include "nfsd_sim.h"
#include "probe_conn.h"
#include "sim_log.h"

#define LIMIT_S 20u

static struct reactor *r;
static struct nfsd_sim *srv;
static struct rpcrdma_conf conf;
static struct probe_conn *p;
static const struct probe_found *found;
static const struct nfs4_failure *failure;
static struct reactor_timer timer;
static unsigned int done;

static void on_done(void *ctx)
{
	done++;
}

static void setup(void)
{
	struct nfsd_sim_conf sconf;

	sim_log_quiet();
	fab_sim_reset();
	r = reactor_new_virtual();
	nfsd_sim_conf_default(&sconf);
	srv = nfsd_sim_new(&sconf, NULL);
	rpcrdma_conf_default(&conf);
}

/* All that it took is given back, also at the server. */
static void teardown(void)
{
	probe_conn_free(p);
	reactor_turn(r, 0);
	cr_assert_eq(fab_sim_live_keys(), 0);
	cr_assert_eq(fab_sim_live_objects(), 0);
	cr_assert_eq(nfsd_sim_live_conns(srv), 0);
	nfsd_sim_free(srv);
	reactor_free(r);
	cr_assert_eq(fab_sim_failures(), 0, "%s", fab_sim_failure());
}

TestSuite(probe_conn, .init = setup, .fini = teardown);

static void on_time(struct reactor_timer *t)
{
	probe_conn_time_is_up(p, LIMIT_S);
}

static void on_interrupt(struct reactor_timer *t)
{
	probe_conn_interrupt(p);
}

static bool begin(void)
{
	struct sockaddr_in dst = {.sin_family = AF_INET, .sin_port = htons(20049)};
	bool begun;

	dst.sin_addr.s_addr = htonl(0x0a000001);
	p = probe_conn_new(r, &conf, LIMIT_S * NSEC_PER_SEC, on_done, NULL);
	cr_assert_not_null(p);
	found = probe_conn_found(p);
	failure = probe_conn_failure(p);
	begun = probe_conn_start(p, NULL, (const struct sockaddr *)&dst);
	cr_assert_str_eq(found->peer, "10.0.0.1:20049");
	return begun;
}

/* Until nothing happens any more, which is soon after time is up. Returns: how long it took. */
static uint64_t run(void)
{
	uint64_t start = reactor_now(r), end = start + (LIMIT_S + 10) * NSEC_PER_SEC;

	cr_assert(begin());
	if (timer.fire == NULL)
		reactor_timer_init(&timer, on_time);
	reactor_timer_in(r, &timer, LIMIT_S * NSEC_PER_SEC);
	while (done == 0 && reactor_now(r) < end)
		reactor_turn(r, end - reactor_now(r));
	reactor_timer_cancel(r, &timer);
	cr_assert_eq(done, 1);
	return reactor_now(r) - start;
}

static void lose(uint32_t skip, enum nfsd_sim_act act, uint64_t arg)
{
	const struct nfsd_sim_rule rule = {.act = act, .skip = skip, .arg = arg};

	nfsd_sim_rule(srv, &rule);
}

Test(probe_conn, a_server_that_answers)
{
	nfsd_sim_conf(srv)->credits = 7;
	nfsd_sim_conf(srv)->latency_ns = 40 * NSEC_PER_USEC;
	cr_assert_lt(run(), NSEC_PER_SEC);
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert(found->up);
	cr_assert_eq(found->facts.fabric, RPCRDMA_FABRIC_VERBS);
	cr_assert_str_eq(found->device, "sim0");
	cr_assert_eq(found->facts.mtu, 1024);
	cr_assert_eq(found->facts.version, 1);
	cr_assert_eq(found->facts.asked, 64);
	cr_assert_eq(found->facts.granted, 7);
	cr_assert(found->facts.has_priv);
	cr_assert_eq(found->memreg, RPCRDMA_MEMREG_MW);
	cr_assert_eq(found->send_max, 4096);
	cr_assert_eq(found->recv_max, 4096);
	cr_assert_eq(found->calls, PROBE_CONN_CALLS);
	/* The wire's 2 us each way and the server's time. */
	cr_assert_geq(found->rtt_ns, 44 * NSEC_PER_USEC);
	cr_assert_lt(found->rtt_ns, 60 * NSEC_PER_USEC);
	cr_assert_eq(found->inval, PROBE_INVAL_YES);
	cr_assert_eq(nfsd_sim_stats(srv).calls, PROBE_CONN_CALLS + 1);
	cr_assert_eq(nfsd_sim_live_clients(srv), 0, "it has no client ID");
}

/* One call is quick, the last but one. */
static void hurry(void *ctx, struct nfsd_sim_out *out)
{
	unsigned int *replies = ctx;

	if (++*replies == PROBE_CONN_CALLS - 2)
		nfsd_sim_conf(srv)->latency_ns = 0;
	else if (*replies == PROBE_CONN_CALLS - 1)
		nfsd_sim_conf(srv)->latency_ns = NSEC_PER_SEC;
}

Test(probe_conn, the_quickest_call_counts)
{
	unsigned int replies = 0;
	const struct nfsd_sim_rule rule = {
		.act = NFSD_SIM_MUTATE, .mutate = hurry, .ctx = &replies};

	nfsd_sim_conf(srv)->latency_ns = NSEC_PER_SEC;
	nfsd_sim_rule(srv, &rule);
	cr_assert_geq(run(), (PROBE_CONN_CALLS - 1) * NSEC_PER_SEC);
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->calls, PROBE_CONN_CALLS);
	cr_assert_lt(found->rtt_ns, NSEC_PER_MSEC);
}

Test(probe_conn, a_server_that_does_not_invalidate)
{
	nfsd_sim_conf(srv)->no_inval = true;
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->inval, PROBE_INVAL_NO);
}

Test(probe_conn, without_windows_nobody_invalidates)
{
	conf.memreg = RPCRDMA_MEMREG_STATIC;
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->memreg, RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(found->inval, PROBE_INVAL_STATIC);
	cr_assert_eq(nfsd_sim_stats(srv).calls, PROBE_CONN_CALLS);
}

Test(probe_conn, a_server_without_private_data)
{
	nfsd_sim_conf(srv)->no_priv = true;
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_not(found->facts.has_priv);
	cr_assert_eq(found->send_max, 1024);
	cr_assert_eq(found->recv_max, 1024);
}

Test(probe_conn, the_largest_inline_size)
{
	conf.inline_size = 65536;
	nfsd_sim_conf(srv)->inline_size = 65536;
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->recv_max, 65536);
	cr_assert_eq(found->inval, PROBE_INVAL_YES);
}

Test(probe_conn, one_that_refuses)
{
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	run();
	cr_assert_eq(failure->err, ECONNREFUSED);
	cr_assert_str_eq(failure->step, "connect");
	cr_assert(strstr(failure->text, "nothing listens there"), "%s", failure->text);
	cr_assert_not(found->up);
}

Test(probe_conn, no_device)
{
	fab_sim_conf()->resolve_err = -ENODEV;
	conf.fabric = RPCRDMA_FABRIC_VERBS;
	run();
	cr_assert_eq(failure->err, ENODEV);
	cr_assert_str_eq(failure->step, "resolve");
	cr_assert(strstr(failure->text, "no RDMA device reaches"), "%s", failure->text);
}

Test(probe_conn, what_fails_at_once_is_a_failure_without_done)
{
	conf.fabric = RPCRDMA_FABRIC_VERBS;
	fab_sim_fail_call(2, ENODEV); /* the first makes the endpoint, the next one resolves */
	cr_assert_not(begin());
	cr_assert_eq(failure->err, ENODEV);
	cr_assert(strstr(failure->text, "no RDMA device"), "%s", failure->text);
	cr_assert_eq(done, 0);
}

/* The transport is done before time is up: only it knows why. */
Test(probe_conn, one_that_never_answers_the_connection)
{
	fab_sim_conf()->connect_silent = true;
	conf.connect_timeout_ns = LIMIT_S * NSEC_PER_SEC;
	cr_assert_lt(run(), LIMIT_S * NSEC_PER_SEC);
	cr_assert_eq(failure->err, ETIMEDOUT);
	cr_assert_str_eq(failure->step, "connect");
	cr_assert(strstr(failure->text, "does not answer: check the address"), "%s", failure->text);
	cr_assert_not(found->up);
}

Test(probe_conn, one_that_is_not_found)
{
	fab_sim_conf()->resolve_ns = 100 * NSEC_PER_SEC;
	conf.resolve_timeout_ns = 2 * LIMIT_S * NSEC_PER_SEC;
	cr_assert_lt(run(), LIMIT_S * NSEC_PER_SEC);
	cr_assert_eq(failure->err, ETIMEDOUT);
	cr_assert_str_eq(failure->step, "resolve");
}

Test(probe_conn, its_own_limits_are_kept)
{
	fab_sim_conf()->connect_silent = true;
	conf.connect_timeout_ns = 3 * NSEC_PER_SEC;
	cr_assert_lt(run(), 4 * NSEC_PER_SEC);
	cr_assert_str_eq(failure->step, "connect");
}

Test(probe_conn, time_may_be_up_within_a_step)
{
	fab_sim_conf()->resolve_ns = (LIMIT_S / 2) * NSEC_PER_SEC;
	fab_sim_conf()->connect_silent = true;
	conf.resolve_timeout_ns = conf.connect_timeout_ns = 100 * NSEC_PER_SEC;
	cr_assert_geq(run(), LIMIT_S * NSEC_PER_SEC);
	cr_assert_eq(failure->err, ETIMEDOUT);
	cr_assert_str_eq(failure->step, "connect");
	cr_assert(strstr(failure->text, "does not answer: check the address"), "%s", failure->text);
	cr_assert_not(found->up);
}

Test(probe_conn, one_that_never_answers_a_call)
{
	uint64_t ns;

	lose(0, NFSD_SIM_LOSE, 0);
	ns = run();
	cr_assert_geq(ns, LIMIT_S * NSEC_PER_SEC, "no other limit came first");
	cr_assert_lt(ns, (LIMIT_S + 5) * NSEC_PER_SEC);
	cr_assert_eq(failure->err, ETIMEDOUT);
	cr_assert_str_eq(failure->step, "NULL call");
	cr_assert(strstr(failure->text, "no answer for 20 s"), "%s", failure->text);
	cr_assert(found->up);
	cr_assert_eq(found->calls, 0);
	cr_assert_eq(fab_sim_stats().connects, 1, "one connection alone");
}

/* It did answer, which is what was asked. */
Test(probe_conn, one_that_answers_some_calls_answers)
{
	lose(2, NFSD_SIM_LOSE, 0);
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->calls, 2);
	cr_assert_eq(found->inval, PROBE_INVAL_UNKNOWN);
}

Test(probe_conn, one_that_drops_the_connection)
{
	lose(1, NFSD_SIM_CUT_BEFORE, 0);
	cr_assert_lt(run(), NSEC_PER_SEC);
	cr_assert_neq(failure->err, 0);
	cr_assert_str_eq(failure->step, "NULL call");
	cr_assert(strstr(failure->text, "dropped the connection"), "%s", failure->text);
	cr_assert_eq(fab_sim_stats().connects, 1, "one connection alone");
}

Test(probe_conn, one_that_drops_it_at_the_call_with_a_chunk_has_answered)
{
	lose(PROBE_CONN_CALLS, NFSD_SIM_CUT_BEFORE, 0);
	run();
	cr_assert_eq(failure->err, 0, "%s", failure->text);
	cr_assert_eq(found->calls, PROBE_CONN_CALLS);
	cr_assert_eq(found->inval, PROBE_INVAL_UNKNOWN);
}

Test(probe_conn, a_server_without_nfs)
{
	lose(0, NFSD_SIM_RPC_ACCEPT, 1);
	run();
	cr_assert_eq(failure->err, EPROTO);
	cr_assert(strstr(failure->text, "it failed: program unavailable: no NFSv4 there"), "%s",
		failure->text);
}

Test(probe_conn, a_server_of_another_version)
{
	lose(0, NFSD_SIM_ERR_VERS, 0);
	run();
	cr_assert_eq(failure->err, EPROTONOSUPPORT);
	cr_assert(strstr(failure->text, "does not speak RPC-over-RDMA version 1"), "%s",
		failure->text);
}

Test(probe_conn, an_interrupted_one_ends_before_its_time)
{
	lose(0, NFSD_SIM_LOSE, 0);
	cr_assert(begin());
	reactor_timer_init(&timer, on_interrupt);
	reactor_timer_in(r, &timer, NSEC_PER_SEC);
	reactor_run(r);
	cr_assert_eq(done, 1);
	cr_assert_eq(failure->err, EINTR);
	cr_assert_lt(reactor_now(r), LIMIT_S * NSEC_PER_SEC);
}

/* Each call into the fabric fails once: it ends, it says why, and all comes back. */
Test(probe_conn, whatever_fails_is_told)
{
	uint64_t calls = fab_sim_calls();

	run();
	cr_assert_eq(failure->err, 0);
	calls = fab_sim_calls() - calls;
	cr_assert_gt(calls, 10);
	for (uint64_t n = 3; n <= calls; n++) { /* the first two have no `done` */
		probe_conn_free(p);
		reactor_turn(r, 0);
		done = 0;
		fab_sim_fail_call(n, ENOMEM);
		run();
		cr_assert(fab_sim_fault_hit());
		cr_assert(failure->err != 0 || found->calls > 0, "call %u", (unsigned int)n);
		cr_assert(failure->err == 0 || *failure->text != '\0', "call %u", (unsigned int)n);
	}
}
