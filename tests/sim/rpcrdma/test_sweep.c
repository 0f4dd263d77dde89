/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep over the transport: a workload of more than 200 fabric calls is
 * run once for each call with that call failing, and once for each with a
 * disconnect right after it. Every call of the user is answered exactly once,
 * everything comes back, no key stays alive.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "sim_log.h"
#include "sim_rpc.h"

#define TOTAL 90u
#define WIDTH 4u

static struct sim_rpc w;
static struct sim_call calls[WIDTH];
static unsigned int next_call, good;

static void start_next(struct sim_call *c);

static void then(struct sim_call *c)
{
	good += c->end == RPCRDMA_REPLY && c->good;
	if (c->end != RPCRDMA_SHUTDOWN)
		start_next(c);
}

static void start_next(struct sim_call *c)
{
	static const struct sim_call forms[] = {
		{.kind = SIM_CALL_ECHO, .a = 64},
		{.kind = SIM_CALL_SINK, .a = 9000, .b = 8},
		{.kind = SIM_CALL_SOURCE, .a = 9001, .n = 1},
		{.kind = SIM_CALL_BIG, .a = 6000},
		{.kind = SIM_CALL_LONG, .a = 7000},
		{.kind = SIM_CALL_SOURCE, .a = 5000, .n = 2},
	};

	if (next_call == TOTAL)
		return;
	*c = forms[next_call++ % 6];
	c->then = then;
	if (sim_rpc_call(&w, c))
		fab_sim_fail("a call was not accepted");
}

struct variant {
	enum rpcrdma_memreg memreg;
	bool no_inval, late, flush_first;
};

/* Returns the fabric calls used; fault: 0 none. */
static uint64_t run(const struct variant *v, uint64_t fail_at, int err, uint64_t cut_at)
{
	struct rpcrdma_conf conf;
	const char *wrong;
	uint64_t used;

	sim_rpc_conf(&conf);
	conf.memreg = v->memreg;
	conf.credits = 6;
	conf.data_cnt = 9;
	conf.data_size = 16384;
	memset(&w, 0, sizeof(w));
	fab_sim_reset();
	next_call = good = 0;
	w.conf = conf;
	w.r = reactor_new_virtual();
	w.srv = nfsd_sim_new(NULL, NULL);
	nfsd_sim_conf(w.srv)->no_inval = v->no_inval;
	fab_sim_conf()->sent_late_ns = v->late ? 100 * NSEC_PER_USEC : 0;
	fab_sim_conf()->flush_first = v->flush_first;
	fab_sim_fail_call(fail_at, err);
	fab_sim_cut_after(cut_at);
	if (sim_rpc_new(&w)) { /* the first fabric call makes the endpoint */
		cr_assert_eq(fail_at, 1);
		reactor_free(w.r);
		nfsd_sim_free(w.srv);
		cr_assert_eq(fab_sim_live_objects(), 0);
		return 1;
	}
	if (sim_rpc_connect(&w)) {
		wrong = sim_rpc_close_failed(&w);
		cr_assert_null(wrong, "%s", wrong);
		return fab_sim_calls();
	}
	for (unsigned int i = 0; i < WIDTH; i++)
		start_next(&calls[i]);
	while (w.done < w.started && sim_rpc_wait(&w, w.started, 600 * SIM_SEC))
		;
	cr_assert_eq(w.done, w.started, "fail %lu, cut %lu: %u of %u calls done",
		(unsigned long)fail_at, (unsigned long)cut_at, w.done, w.started);
	used = fab_sim_calls();
	cr_assert(fab_sim_fault_hit() || (fail_at && cut_at));
	if (w.failed) {
		sim_rpc_run(&w, SIM_SEC);
		cr_assert_eq(w.ends[RPCRDMA_SHUTDOWN], w.done);
		wrong = sim_rpc_close_failed(&w);
	} else {
		cr_assert_eq(good, TOTAL, "fail %lu, cut %lu: %u good", (unsigned long)fail_at,
			(unsigned long)cut_at, good);
		wrong = sim_rpc_close(&w);
	}
	cr_assert_null(wrong, "fail %lu, cut %lu: %s", (unsigned long)fail_at,
		(unsigned long)cut_at, wrong);
	return used;
}

static void sweep(const struct variant *v)
{
	static const int errs[] = {ENOMEM, EIO, ENOTCONN, EINVAL};
	uint64_t cnt = run(v, 0, 0, 0);

	cr_assert_geq(cnt, 200, "%lu fabric calls", (unsigned long)cnt);
	log_set_level(LOG_LVL_ERR);
	for (uint64_t n = 1; n <= cnt; n++) {
		run(v, n, errs[n % 4], 0);
		run(v, n, errs[(n + 1) % 4], 0);
		run(v, 0, 0, n);
	}
}

Test(sweep, windows_and_remote_invalidation, .init = sim_log_quiet)
{
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_MW});
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_MW, .late = true, .flush_first = true});
}

Test(sweep, windows_and_local_invalidation, .init = sim_log_quiet)
{
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_MW, .no_inval = true});
	sweep(&(struct variant){
		.memreg = RPCRDMA_MEMREG_MW, .no_inval = true, .late = true, .flush_first = true});
}

Test(sweep, standing_registrations, .init = sim_log_quiet)
{
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_STATIC});
	sweep(&(struct variant){
		.memreg = RPCRDMA_MEMREG_STATIC, .late = true, .flush_first = true});
}

/* Two faults: the second one while the first is being dealt with. */
Test(sweep, a_disconnect_soon_after_a_failing_call, .init = sim_log_quiet)
{
	struct variant v = {.memreg = RPCRDMA_MEMREG_MW};
	uint64_t cnt = run(&v, 0, 0, 0);

	for (uint64_t n = 1; n <= cnt; n += 3) {
		run(&v, n, EIO, n + 1);
		run(&v, n, ENOMEM, n + 7);
		run(&v, n + 40, EIO, n);
	}
}
