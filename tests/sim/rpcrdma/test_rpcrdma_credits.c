/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits: the server judges each Send; here is what it grants. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim_rpc.h"

static struct sim_rpc w;

/* Keeps `width` calls of all forms in flight until `total` were answered. */
static struct sim_call calls[64];
static unsigned int total, width, next_kind;

static void start_one(struct sim_call *c)
{
	static const struct sim_call forms[] = {
		{.kind = SIM_CALL_ECHO, .a = 100},
		{.kind = SIM_CALL_SINK, .a = 8000, .b = 8},
		{.kind = SIM_CALL_SOURCE, .a = 8001, .n = 1},
		{.kind = SIM_CALL_BIG, .a = 6000},
		{.kind = SIM_CALL_NULL},
	};
	void (*then)(struct sim_call *) = c->then;

	*c = forms[next_kind++ % 5];
	c->then = then;
	cr_assert_eq(sim_rpc_call(&w, c), 0);
}

static void again(struct sim_call *c)
{
	cr_assert(c->end == RPCRDMA_REPLY && c->good);
	if (w.started < total)
		start_one(c);
}

static void run_load(unsigned int cnt, unsigned int at_once)
{
	total = w.started + cnt;
	width = at_once;
	for (unsigned int i = 0; i < width; i++) {
		calls[i] = (struct sim_call){.then = again};
		start_one(&calls[i]);
	}
	cr_assert(sim_rpc_wait(&w, total, 60 * SIM_SEC), "%u of %u", w.done, total);
}

static void open_credits(unsigned int asked, unsigned int granted)
{
	struct nfsd_sim_conf sconf;
	struct rpcrdma_conf conf;

	nfsd_sim_conf_default(&sconf);
	sconf.credits = granted;
	sim_rpc_conf(&conf);
	conf.credits = asked;
	conf.data_cnt = 64;
	sim_rpc_open(&w, &conf, &sconf);
	cr_assert(sim_rpc_up(&w));
}

Test(rpcrdma_credits, one_call_until_the_first_grant)
{
	struct sim_call c[8] = {{.kind = SIM_CALL_NULL}};

	open_credits(16, 64);
	nfsd_sim_conf(w.srv)->latency_ns = SIM_SEC;
	for (int i = 0; i < 8; i++)
		cr_assert_eq(sim_rpc_call(&w, &c[i]), 0);
	sim_rpc_run(&w, SIM_SEC / 2);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, 1);
	cr_assert(sim_rpc_wait(&w, 1, 10 * SIM_SEC));
	sim_rpc_run(&w, SIM_SEC / 2);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, 8);
	cr_assert(sim_rpc_wait(&w, 8, 10 * SIM_SEC));
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_credits, the_lower_of_asked_and_granted_less_one_is_in_flight)
{
	static const struct {
		unsigned int asked, granted, most;
	} t[] = {{16, 64, 15}, {16, 4, 3}, {16, 2, 1}, {16, 1, 1}, {16, 0, 1}, {16, 1000000, 15},
		{16, 0xffffffff, 15}, {48, 64, 47}, {1, 64, 1}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		open_credits(t[i].asked, t[i].granted);
		run_load(300, t[i].asked);
		cr_assert_eq(nfsd_sim_stats(w.srv).max_outstanding, t[i].most, "%u/%u: %lu",
			t[i].asked, t[i].granted,
			(unsigned long)nfsd_sim_stats(w.srv).max_outstanding);
		SIM_RPC_CLOSE(&w);
	}
}

/* Another grant in each message. */
static void random_grant(void *ctx, struct nfsd_sim_out *out)
{
	static const uint32_t grants[] = {0, 1, 2, 3, 5, 8, 16, 64, 1000000, 0xffffffff, 7, 1, 12};
	uint32_t g = grants[(uint32_t)rand() % (sizeof(grants) / sizeof(grants[0]))];

	out->msg[8] = (uint8_t)(g >> 24);
	out->msg[9] = (uint8_t)(g >> 16);
	out->msg[10] = (uint8_t)(g >> 8);
	out->msg[11] = (uint8_t)g;
}

Test(rpcrdma_credits, grants_that_change_with_every_message)
{
	struct nfsd_sim_rule rule = {.act = NFSD_SIM_MUTATE, .mutate = random_grant};

	open_credits(16, 64);
	srand(7);
	nfsd_sim_rule(w.srv, &rule);
	run_load(3000, 16);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_credits, a_full_set_is_used_with_every_reply_reordered)
{
	struct nfsd_sim_rule hold = {.act = NFSD_SIM_HOLD, .skip = 1};

	open_credits(16, 64);
	nfsd_sim_rule(w.srv, &hold);
	total = 1 + 15;
	for (unsigned int i = 0; i < 16; i++) {
		calls[i] = (struct sim_call){.then = NULL};
		start_one(&calls[i]);
	}
	sim_rpc_run(&w, SIM_SEC);
	cr_assert_eq(w.done, 1);
	cr_assert_eq(nfsd_sim_held(w.srv), 15);
	nfsd_sim_release(w.srv, true);
	cr_assert(sim_rpc_wait(&w, 16, SIM_SEC));
	for (int i = 0; i < 16; i++)
		cr_assert(calls[i].good);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_credits, more_calls_than_requests_are_told_to_wait)
{
	struct sim_call c[5] = {{.kind = SIM_CALL_NULL}};

	open_credits(4, 64);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(sim_rpc_call(&w, &c[i]), 0);
	cr_assert_eq(sim_rpc_call(&w, &c[4]), -11);
	cr_assert_eq(w.unblocked, 0);
	cr_assert(sim_rpc_wait(&w, 4, SIM_SEC));
	sim_rpc_run(&w, SIM_SEC);
	cr_assert_eq(w.unblocked, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_credits, sends_that_complete_after_their_replies)
{
	open_credits(16, 64);
	fab_sim_conf()->sent_late_ns = SIM_MSEC;
	run_load(500, 16);
	SIM_RPC_CLOSE(&w);
}
