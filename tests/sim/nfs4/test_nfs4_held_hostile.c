/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies that lie about opens and delegations, and callbacks that are
 * nonsense: each call ends once, and the session still works, or another one
 * does. As test_nfs4_hostile.c, for a whole life of an open.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_held.h"
#include "sim_log.h"

static struct sim_nfs w;
static struct sim_held h;

static void begin(void)
{
	struct nfsd_sim_conf *conf;

	sim_log_quiet();
	sim_nfs_open(&w, NULL);
	conf = nfsd_sim_conf(w.srv);
	conf->tolerant_seq = conf->tolerant_state = conf->tolerant_revoked = true;
	conf->allow_toosmall = true;
	sim_held_mounted(&w, 2, NFSD_SIM_DELEG_READ | NFSD_SIM_DELEG_WRITE);
	sim_held_file(&w, &h, "/f");
}

static unsigned int failed; /* calls, of all lives */

/* Only that each of it ends matters. */
static void life(uint32_t access)
{
	failed += 0 != sim_hopen(&h, 0, READ, false);
	failed += 0 != sim_hopen(&h, 1, BOTH, false);
	failed += 0 != sim_hdowngrade(&h, 0, READ);
	failed += 0 != sim_hread(&h, 0);
	failed += 0 != sim_hclose(&h, 1);
	failed += 0 != sim_hopen(&h, 0, access, true);
	failed += 0 != sim_hclose(&h, 0);
	(void)sim_hserve(&h, READ);
	failed += 0 != sim_hread(&h, 1);
	failed += 0 != sim_hclaim(&h, 0);
	if (!nfs4_deleg_serves(&h.f.state))
		failed += 0 != sim_hreturn(&h, 0);
	failed += 0 != sim_hclose(&h, 0);
	nfs4_deleg_forget(&h.deleg);
}

static void must_work(const char *what, uint64_t a, uint64_t b)
{
	struct sim_nfs_call c = {0};

	nfsd_sim_rules_clear(w.srv);
	for (unsigned int lane = 0; lane < 2; lane++) {
		cr_assert_eq(sim_nfs_getattr(&w, lane, &c), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%s %lu %lx", what, (unsigned long)a,
			(unsigned long)b);
	}
	cr_assert_eq(fab_sim_failures(), 0, "%s %lu %lx: %s", what, (unsigned long)a,
		(unsigned long)b, fab_sim_failure());
}

static void finish(void)
{
	const char *wrong = sim_nfs_close(&w, 1);

	failed = 0;
	cr_assert_null(wrong, "%s", wrong);
}

/* ---- results ---- */

static const uint32_t ops[] = {OP_OPEN, OP_OPEN_DOWNGRADE, OP_DELEGRETURN};
#define OPS (sizeof(ops) / sizeof(ops[0]))

struct edit {
	uint32_t off, value;
	bool cut;
	unsigned int *seed;
};

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* off counts from the end of SEQUENCE's result. */
static void do_edit(void *ctx, struct nfsd_sim_out *out)
{
	const struct edit *e = ctx;
	uint32_t from = out->body_off + 24 + 12 + 44, at = from + e->off;

	if (e->seed) {
		for (int i = 0; i < 4 && out->len > from + 4; i++) {
			at = from + (uint32_t)rand_r(e->seed) % (out->len - from - 3);
			put32(out->msg + (at & ~3u),
				(uint32_t)rand_r(e->seed) >> (rand_r(e->seed) % 31));
		}
	} else if (e->cut) {
		if (at < out->len)
			out->len = at;
	} else if (at + 4 <= out->len) {
		put32(out->msg + at, e->value);
	}
}

static void suffer(uint32_t op, uint32_t skip, struct edit *e)
{
	nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_MUTATE_BODY,
				     .op = op,
				     .skip = skip,
				     .mutate = do_edit,
				     .ctx = e,
				     .count = 1,
				     .hostile = true});
	life(skip & 1 ? BOTH : READ);
	must_work("edit", op << 16 | skip << 12 | e->off, e->value);
}

Test(nfs4_held_hostile, every_word_of_the_results_replaced)
{
	static const uint32_t values[] = {0, 1, 2, 3, 22, 10025, 0x7fffffff, 0xffffffff};

	begin();
	for (size_t o = 0; o < OPS; o++)
		for (uint32_t skip = 0; skip < (ops[o] == OP_OPEN ? 4 : 1); skip++)
			for (uint32_t off = 0; off < 160; off += 4)
				for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
					suffer(ops[o], skip,
						&(struct edit){.off = off, .value = values[v]});
	cr_assert_gt(failed, 100, "%u calls believed no lie", failed);
	finish();
}

Test(nfs4_held_hostile, results_cut_at_every_length)
{
	begin();
	for (size_t o = 0; o < OPS; o++)
		for (uint32_t skip = 0; skip < (ops[o] == OP_OPEN ? 4 : 1); skip++)
			for (uint32_t off = 0; off < 300; off += 3)
				suffer(ops[o], skip, &(struct edit){.off = off, .cut = true});
	cr_assert_gt(failed, 100, "%u calls believed no lie", failed);
	finish();
}

Test(nfs4_held_hostile, scrambled_results)
{
	unsigned int seed = 4711;

	begin();
	for (unsigned int i = 0; i < 1500; i++)
		suffer(ops[i % OPS], i % 4, &(struct edit){.seed = &seed});
	cr_assert_gt(failed, 100, "%u calls believed no lie", failed);
	finish();
}

Test(nfs4_held_hostile, every_status_on_every_operation)
{
	begin();
	for (size_t o = 0; o < OPS; o++)
		for (uint32_t status = 1; status < 10100;
			status = status == 80 ? 10001 : status + 1) {
			nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
						     .op = ops[o],
						     .skip = status % 4,
						     .count = 1,
						     .arg = status});
			life(READ);
			must_work("status", ops[o], status);
		}
	cr_assert_gt(failed, 100, "%u calls believed no lie", failed);
	finish();
}

/* ---- callbacks ---- */

/* Calls that nobody makes, each at some moment of a life. */
Test(nfs4_held_hostile, callbacks_about_anything_at_any_moment)
{
	static const enum nfsd_sim_cb all[] = {NFSD_SIM_CB_RECALL, NFSD_SIM_CB_RECALL_ANY,
		NFSD_SIM_CB_GETATTR, NFSD_SIM_CB_GARBAGE, NFSD_SIM_CB_BAD_OP, NFSD_SIM_CB_AHEAD,
		NFSD_SIM_CB_AGAIN};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (unsigned int us = 0; us < 60; us += 4) {
			struct sim_held_op ho = {0};

			begin();
			cr_assert(sim_open_start(&ho, &h, 0, READ, true));
			sim_nfs_run(&w, us * NSEC_PER_USEC);
			nfsd_sim_callback(w.srv, all[i], false);
			cr_assert_eq(sim_held_wait(&ho), 0);
			sim_nfs_run(&w, SIM_SEC);
			cr_assert_eq(h.recalls, 0);
			cr_assert_eq(h.taken, 1);
			cr_assert_eq(h.how, NFS4_DELEG_KEPT);
			must_work("callback", i, us);
			cr_assert_eq(sim_hclose(&h, 0), 0);
			cr_assert_eq(sim_hreturn(&h, 0), 0);
			finish();
		}
}
