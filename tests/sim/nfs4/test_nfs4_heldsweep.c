/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep over what is held: opens that are shared, up and down, and a
 * delegation that is taken, used, recalled, claimed and returned, once for each
 * fabric call with that call failing, and once for each with a disconnect right
 * after it; and with each operation failing in each way. Nobody notices.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "sim_held.h"
#include "sim_log.h"

static struct sim_nfs w;
static struct sim_held h;

static char where[100];

#define OK(what)                                                                                   \
	do {                                                                                       \
		int err_ = (what);                                                                 \
		cr_assert_eq(err_, 0, "%s: %s: %d", where, #what, err_);                           \
	} while (0)

/* Two opens of one owner become one, and less, and none. */
static void script_shared(void)
{
	OK(sim_hopen(&h, 0, READ, false));
	OK(sim_hread(&h, 1));
	OK(sim_hopen(&h, 1, WRITE, false));
	OK(sim_hwrite(&h, 0));
	OK(sim_hdowngrade(&h, 1, READ));
	OK(sim_hread(&h, 0));
	OK(sim_hopen(&h, 0, BOTH, false));
	OK(sim_hwrite(&h, 1));
	OK(sim_hread(&h, 0));
	OK(sim_hclose(&h, 1));
	sim_nfs_run(&w, SIM_SEC / 10); /* a CLOSE that finds it revoked has it freed */
	/* What the CLOSE found revoked is freed a moment later. */
	cr_assert_eq(nfsd_sim_live_opens(w.srv), nfsd_sim_revoked(w.srv), "%s", where);
}

/* An OPEN with a delegation; while the backchannel is down there is none. */
static bool script_take(uint32_t access)
{
	for (int i = 0; i < 5; i++) {
		OK(sim_hopen(&h, i % 2, access, true));
		if (h.deleg.cl)
			return true;
		OK(sim_hclose(&h, 0));
		sim_nfs_run(&w, 20 * SIM_SEC);
	}
	return false;
}

static void script_deleg(uint32_t access)
{
	if (!script_take(access))
		cr_assert_fail("%s: no delegation", where);
	OK(sim_hread(&h, 0));
	OK(sim_hclose(&h, 0));
	if (sim_hserve(&h, access)) {
		OK(sim_hread(&h, 1));
		OK(sim_hread(&h, 0));
		if (access == BOTH)
			OK(sim_hwrite(&h, 1));
	} else { /* it was lost with a session's slots, or the lease */
		OK(sim_hopen(&h, 0, access, false));
	}
	nfsd_sim_recall_on(w.srv, NULL, access == BOTH);
	sim_nfs_run(&w, 3 * SIM_SEC);
	OK(sim_hread(&h, 0));
	OK(sim_hclaim(&h, 1));
	if (h.deleg.cl)
		OK(sim_hreturn(&h, 0));
	OK(sim_hread(&h, 1));
	OK(sim_hclose(&h, 1));
	cr_assert_eq(nfs4_deleg_count(w.cl), 0, "%s", where);
}

static void script(void)
{
	sim_held_file(&w, &h, "/f");
	script_shared();
	script_deleg(READ);
	sim_held_file(&w, &h, "/g");
	script_deleg(BOTH);
}

static void finish(unsigned int left)
{
	const char *wrong;

	sim_nfs_run(&w, 100 * SIM_SEC);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0, "%s", where);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0, "%s", where);
	wrong = sim_nfs_close(&w, left);
	cr_assert_null(wrong, "%s: %s", where, wrong);
}

static void begin(enum rpcrdma_memreg memreg)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.memreg = memreg;
	w.conf.rdma.credits = 6;
	w.conf.rdma.data_cnt = 3;
	sim_held_mounted(&w, 2, NFSD_SIM_DELEG_READ | NFSD_SIM_DELEG_WRITE);
}

/* The calls of the script alone: those of the mount are test_nfs4_opsweep.c's. */
static uint64_t run(enum rpcrdma_memreg memreg, uint64_t fail_at, int err, uint64_t cut_at)
{
	uint64_t before, used;

	snprintf(where, sizeof(where), "fail %lu, cut %lu", (unsigned long)fail_at,
		(unsigned long)cut_at);
	begin(memreg);
	before = fab_sim_calls();
	if (fail_at)
		fab_sim_fail_call(fail_at, err);
	if (cut_at)
		fab_sim_cut_after(cut_at);
	script();
	used = fab_sim_calls() - before;
	finish(0);
	return used;
}

static void sweep(enum rpcrdma_memreg memreg)
{
	static const int errs[] = {ENOMEM, EIO, ENOTCONN};
	uint64_t cnt = run(memreg, 0, 0, 0);

	cr_assert_geq(cnt, 60, "%lu fabric calls", (unsigned long)cnt);
	for (uint64_t n = 1; n <= cnt; n++) {
		run(memreg, n, errs[n % 3], 0);
		run(memreg, 0, 0, n);
	}
}

Test(nfs4_heldsweep, with_windows, .init = sim_log_quiet)
{
	sweep(RPCRDMA_MEMREG_MW);
}

Test(nfs4_heldsweep, with_standing_registrations, .init = sim_log_quiet)
{
	sweep(RPCRDMA_MEMREG_STATIC);
}

/* ---- each operation, in each way ---- */

Test(nfs4_heldsweep, each_call_fails_once_in_each_way, .init = sim_log_quiet)
{
	static const uint32_t ops[] = {
		OP_OPEN, OP_READ, OP_WRITE, OP_OPEN_DOWNGRADE, OP_CLOSE, OP_DELEGRETURN};
	static const struct sim_fault rows[] = {
		{NFSD_SIM_CUT_BEFORE, 0},
		{NFSD_SIM_CUT_AFTER, 0},
		{NFSD_SIM_CUT_REPLIED, 0},
		{NFSD_SIM_LATE, 0},
		{NFSD_SIM_STATUS, NFS4ERR_DELAY},
		{NFSD_SIM_STATUS, NFS4ERR_GRACE},
		{NFSD_SIM_STATUS, NFS4ERR_BADSESSION},
	};

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			for (uint32_t skip = 0; skip < 6; skip++) {
				/* GRACE is not an answer to every operation. */
				if (rows[i].status == NFS4ERR_GRACE && ops[o] != OP_OPEN)
					continue;
				snprintf(where, sizeof(where), "operation %u, row %zu, skip %u",
					ops[o], i, skip);
				begin(RPCRDMA_MEMREG_MW);
				nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = rows[i].act,
							     .op = ops[o],
							     .skip = skip,
							     .count = 1,
							     .arg = rows[i].act == NFSD_SIM_LATE
									    ? SIM_SEC
									    : rows[i].status});
				script();
				/* A session that the server says it lost while it has it. */
				finish(1);
			}
}

/* ---- something happens at any moment ---- */

static void restart(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 5 * SIM_SEC, false);
}

static void restart_no_grace(struct nfsd_sim *srv)
{
	nfsd_sim_restart(srv, 0, false);
}

static void revoke(struct nfsd_sim *srv)
{
	nfsd_sim_revoke(srv, NULL, NFS4ERR_EXPIRED);
	nfsd_sim_revoke_deleg(srv, NULL, NFS4ERR_DELEG_REVOKED);
}

static void recall(struct nfsd_sim *srv)
{
	nfsd_sim_recall(srv, NULL);
}

static void (*const events[])(struct nfsd_sim *) = {
	restart, restart_no_grace, revoke, recall, nfsd_sim_drop_clients, nfsd_sim_drop_sessions};

struct moment {
	struct reactor_timer timer; /* first */
	void (*what)(struct nfsd_sim *);
};

static void it_happens(struct reactor_timer *t)
{
	((struct moment *)t)->what(w.srv);
}

/* The script is done in a few ms, but for the time after the recalls. */
Test(nfs4_heldsweep, something_happens_at_each_moment, .init = sim_log_quiet)
{
	for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++)
		for (unsigned int half = 0; half < 2; half++)
			for (unsigned int us = 0; us < 900; us += 9) {
				struct moment m = {.what = events[e]};

				snprintf(where, sizeof(where), "event %zu, %u s %u us", e, half * 3,
					us);
				begin(RPCRDMA_MEMREG_MW);
				nfsd_sim_conf(w.srv)->tolerant_revoked = true;
				reactor_timer_init(&m.timer, it_happens);
				reactor_timer_in(
					w.r, &m.timer, half * 3 * SIM_SEC + us * NSEC_PER_USEC);
				script();
				reactor_timer_cancel(w.r, &m.timer);
				finish(0);
			}
}
