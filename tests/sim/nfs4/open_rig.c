/* SPDX-License-Identifier: BSD-3-Clause */
#include "open_rig.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

struct sim_nfs w;
struct sim_file files[OPEN_FILES];

void open_files(unsigned int cnt)
{
	cr_assert_leq(cnt, OPEN_FILES);
	for (unsigned int i = 0; i < cnt; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, name, &files[i]), 0);
	}
}

void open_begin(unsigned int lanes, unsigned int cnt)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, lanes);
	open_files(cnt);
}

void open_use(unsigned int cnt, int lost)
{
	static struct sim_op op;

	for (unsigned int i = 0; i < cnt; i++) {
		int want = (int)i == lost ? -EIO : 0;

		cr_assert_eq(sim_write(&w, &files[i], 0, 100, FILE_SYNC4, NULL), want, "%u", i);
		cr_assert_eq(sim_read(&w, &op, &files[i], 0, 100), want, "%u: %d", i, op.err);
	}
}

void open_close(unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		cr_assert_eq(sim_close(&w, &files[i]), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
}

void open_end(unsigned int cnt)
{
	open_close(cnt);
	SIM_NFS_CLOSE(&w, 0);
}
