/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep over sessions: the script of all operations is run once for each
 * fabric call with that call failing, and once for each with a disconnect
 * right after it. The file system sees each operation once, every call is
 * answered once, everything comes back.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "sim_log.h"
#include "sim_ops.h"

static struct sim_nfs w;

struct variant {
	enum rpcrdma_memreg memreg;
	bool late, flush_first, no_inval;
};

static uint64_t run(const struct variant *v, uint64_t fail_at, int err, uint64_t cut_at)
{
	uint64_t used;
	const char *wrong;

	sim_nfs_open(&w, NULL);
	w.conf.rdma.memreg = v->memreg;
	w.conf.rdma.credits = 6;
	w.conf.rdma.data_cnt = 3;
	nfsd_sim_conf(w.srv)->no_inval = v->no_inval;
	fab_sim_conf()->sent_late_ns = v->late ? 100 * NSEC_PER_USEC : 0;
	fab_sim_conf()->flush_first = v->flush_first;
	fab_sim_fail_call(fail_at, err);
	fab_sim_cut_after(cut_at);
	sim_nfs_client(&w, 1);
	if (sim_nfs_up(&w)) {
		cr_assert(sim_nfs_mount(&w, "/"), "fail %lu, cut %lu: %s", (unsigned long)fail_at,
			(unsigned long)cut_at, w.mount_failure.text);
		cr_assert(sim_script(&w, true) && sim_script(&w, true), "fail %lu, cut %lu: %s",
			(unsigned long)fail_at, (unsigned long)cut_at, fab_sim_failure());
	} else {
		cr_assert(w.lane[0].failed == 1 || fail_at == 2, "fail %lu, cut %lu",
			(unsigned long)fail_at, (unsigned long)cut_at);
		cr_assert(w.lane[0].failure.text[0] || fail_at == 2);
	}
	used = fab_sim_calls();
	cr_assert(fab_sim_fault_hit());
	wrong = sim_nfs_close(&w, 1);
	cr_assert_null(wrong, "fail %lu, cut %lu: %s", (unsigned long)fail_at,
		(unsigned long)cut_at, wrong);
	return used;
}

static void sweep(const struct variant *v)
{
	static const int errs[] = {ENOMEM, EIO, ENOTCONN};
	uint64_t cnt = run(v, 0, 0, 0);

	cr_assert_geq(cnt, 200, "%lu fabric calls", (unsigned long)cnt);
	/* The first call makes the endpoint: test_sweep.c. */
	for (uint64_t n = 2; n <= cnt; n++) {
		run(v, n, errs[n % 3], 0);
		run(v, 0, 0, n);
	}
}

Test(nfs4_opsweep, with_windows, .init = sim_log_quiet)
{
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_MW});
}

Test(nfs4_opsweep, with_windows_taken_back_and_late_sends, .init = sim_log_quiet)
{
	sweep(&(struct variant){
		.memreg = RPCRDMA_MEMREG_MW, .no_inval = true, .late = true, .flush_first = true});
}

Test(nfs4_opsweep, with_standing_registrations, .init = sim_log_quiet)
{
	sweep(&(struct variant){.memreg = RPCRDMA_MEMREG_STATIC});
}
