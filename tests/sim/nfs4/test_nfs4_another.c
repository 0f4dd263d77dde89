/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server comes back as another one, with other files under the same
 * handles, or says for longer than others that it was restarted.
 */
#include <criterion/criterion.h>

#include "open_rig.h"

#define FILES 8
#define LEASE (100 * SIM_SEC) /* after it every lane has sent a SEQUENCE */

Test(nfs4_another, another_server_is_not_asked_for_reclaims, .init = sim_log_count)
{
	static const char *const scopes[] = {"another", "simscopf", "simscope"};

	for (unsigned int lanes = 1; lanes <= 4; lanes += 3)
		for (int i = 0; i < 3; i++) {
			bool same = i == 2;

			open_begin(lanes, FILES);
			nfsd_sim_conf(w.srv)->scope = scopes[i];
			nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
			sim_nfs_run(&w, LEASE);
			cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, same ? FILES : 0);
			/* The files are there: it was one of a cluster. */
			open_use(FILES, -1);
			nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
			sim_nfs_run(&w, LEASE);
			cr_assert_eq(nfsd_sim_stats(w.srv).reclaims, same ? 2 * FILES : FILES,
				"it is the same again");
			open_use(FILES, -1);
			open_end(FILES);
		}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_another, another_file_under_the_same_handle_is_not_touched, .init = sim_log_count)
{
	/* 0: CLAIM_FH by another server; 1: CLAIM_PREVIOUS */
	for (int reclaim = 0; reclaim < 2; reclaim++) {
		uint8_t byte = 0;

		sim_said.lost = 0;
		open_begin(1, 4);
		open_use(4, -1);
		nfsd_sim_conf(w.srv)->scope = reclaim ? NULL : "another";
		nfsd_sim_conf(w.srv)->tolerant_state = true; /* the judge knows it by its number */
		nfsd_sim_restart(w.srv, 0, false);
		nfsd_sim_swap(w.srv, "/f1", "/f2");
		cr_assert(nfsd_sim_poke(w.srv, "/f2", 50, "x", 1));
		open_use(2, 1);
		cr_assert_eq(nfsd_sim_peek(w.srv, "/f2", 50, &byte, 1), 100);
		cr_assert_eq(byte, 'x', "what was meant for f1");
		sim_nfs_run(&w, LEASE);
		cr_assert_eq(sim_said.lost, 2);
		/* CLOSE is sent: the server has the other files open. */
		for (int i = 0; i < 4; i++)
			cr_assert_eq(sim_close(&w, &files[i]), 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
		nfsd_sim_swap(w.srv, "/f1", "/f2"); /* the server is freed by numbers */
		SIM_NFS_CLOSE(&w, 0);
		cr_assert_eq(sim_said.lost, 2);
	}
}

Test(nfs4_another, server_that_takes_less_at_once_than_before_is_complained_of,
	.init = sim_log_count)
{
	enum {
		LARGE = 60 * 1024
	};
	static struct sim_op op;

	open_begin(1, 1);
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(sim_said.smaller, 0);
	nfsd_sim_conf(w.srv)->max_request = 32 * 1024;
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(sim_said.smaller, 1);
	open_use(1, -1);
	/* What the kernel was promised at the mount goes in parts. */
	cr_assert_eq(sim_write(&w, &files[0], 0, 24 * 1024, FILE_SYNC4, NULL), 0);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.write = (struct nfs4_op_write){.fh = &files[0].fh,
		.state = &files[0].state,
		.data = {{op.buf, op.buf->data, LARGE}},
		.data_cnt = 1,
		.stable = FILE_SYNC4};
	cr_assert_eq(sim_op_run(&op, nfs4_write), 0);
	cr_assert_eq(op.call.u.write.count, 28 * 1024);
	nfsd_sim_conf(w.srv)->max_response = 16 * 1024;
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, LEASE);
	cr_assert_eq(sim_read(&w, &op, &files[0], 0, LARGE), 0);
	cr_assert_eq(op.len, 12 * 1024);
	cr_assert_not(op.call.u.read.eof);
	open_end(1);
}

Test(nfs4_another, what_the_token_holder_reclaims_is_not_reclaimed_again, .init = sim_log_count)
{
	/* The flag is there until RECLAIM_COMPLETE, in the answers to the reclaims too. */
	for (unsigned int lanes = 1; lanes <= 4; lanes += 3)
		for (int i = 0; i < 4; i++) {
			uint64_t completes, opens;
			bool grace = i % 2;
			unsigned int cnt = i < 2 ? FILES : 0;

			open_begin(lanes, cnt);
			nfsd_sim_conf(w.srv)->restart_flag = true;
			completes = sim_ops(&w, OP_RECLAIM_COMPLETE);
			opens = sim_ops(&w, OP_OPEN);
			nfsd_sim_restart(w.srv, grace ? 10 * SIM_SEC : 0, false);
			sim_nfs_run(&w, LEASE);
			open_use(cnt, -1);
			cr_assert_eq(sim_ops(&w, OP_RECLAIM_COMPLETE) - completes, 1);
			/* The first one is told that it is too late. */
			cr_assert_eq(sim_ops(&w, OP_OPEN) - opens, cnt && !grace ? cnt + 1 : cnt);
			open_end(cnt);
		}
	cr_assert_eq(sim_said.lost, 0);
}
