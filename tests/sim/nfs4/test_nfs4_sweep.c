/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each fabric call of a mount, a little work and the end, failed once in turn,
 * and the connection cut once after each: whatever comes of it, everything ends
 * once, nothing is executed twice and nothing is left behind.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_nfs.h"

static struct sim_nfs w;

/* True: it came up and did its work; false: it could not be mounted, which may happen. */
static bool live(void)
{
	struct sim_nfs_call c = {0}, many[6] = {0};

	if (!sim_nfs_up(&w))
		return false;
	cr_assert(sim_nfs_mount(&w, "/"), "%s", w.mount_failure.text);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%d: executed twice?", c.err);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(sim_nfs_lookup(&w, i % 2, &many[i], "d"), 0);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(sim_nfs_wait(&w, &many[i]), 0);
	cr_assert_eq(sim_nfs_remove(&w, 1, &c, "d"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%d: executed twice?", c.err);
	return true;
}

static uint64_t count_calls(void)
{
	uint64_t before;

	sim_nfs_open(&w, NULL);
	sim_nfs_client(&w, 2);
	before = fab_sim_calls();
	cr_assert(live());
	sim_nfs_stop(&w);
	before = fab_sim_calls() - before;
	SIM_NFS_CLOSE(&w, 0);
	cr_assert_gt(before, 20);
	return before;
}

/* What a lane that failed leaves to the others. */
static void end(bool lived)
{
	sim_nfs_stop(&w);
	SIM_NFS_CLOSE(&w, lived ? 0 : 1);
}

Test(nfs4_sweep, each_fabric_call_fails_once)
{
	uint64_t cnt = count_calls();

	for (uint64_t n = 1; n <= cnt; n++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_client(&w, 2);
		fab_sim_fail_call(n, ENOMEM);
		end(live());
	}
}

Test(nfs4_sweep, connection_is_cut_once_after_each_fabric_call)
{
	uint64_t cnt = count_calls();

	for (uint64_t n = 1; n <= cnt; n++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_client(&w, 2);
		fab_sim_cut_after(n);
		end(live());
	}
}
