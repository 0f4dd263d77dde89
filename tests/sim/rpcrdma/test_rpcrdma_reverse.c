/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the reverse direction (RFC 8167), as far as the transport goes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_rpc.h"

static struct sim_rpc w;

static void open_up(bool answers)
{
	sim_rpc_open(&w, NULL, NULL);
	w.reverse_answers = answers;
	cr_assert(sim_rpc_up(&w));
}

Test(rpcrdma_reverse, a_call_is_handed_up_and_answered)
{
	open_up(true);
	for (int i = 0; i < 40; i++) {
		cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, true), 1);
		sim_rpc_run(&w, SIM_MSEC);
	}
	cr_assert_eq(w.reverse, 40);
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_replies, 40);
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_accept_stat, 1);
	cr_assert_eq(w.st.reverse_calls, 40);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_reverse, a_call_that_nobody_answers_does_no_harm)
{
	struct sim_call c = {.kind = SIM_CALL_SINK, .a = 8000};

	open_up(false);
	for (int i = 0; i < 100; i++) {
		nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, true);
		sim_rpc_run(&w, SIM_MSEC);
	}
	cr_assert(sim_rpc_do(&w, &c));
	cr_assert_eq(w.up, 1);
	SIM_RPC_CLOSE(&w);
}

/* More calls at once than there are credits or receives: the adapter makes the server wait. */
Test(rpcrdma_reverse, a_flood_does_not_break_the_connection)
{
	struct sim_call c[8] = {{.kind = SIM_CALL_NULL}};

	open_up(true);
	fab_sim_conf()->rnr_waits = true;
	for (int i = 0; i < 500; i++)
		nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, true);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(sim_rpc_call(&w, &c[i]), 0);
	cr_assert(sim_rpc_wait(&w, 8, SIM_SEC));
	sim_rpc_run(&w, SIM_SEC);
	cr_assert_eq(w.reverse, 500);
	cr_assert_eq(w.up, 1);
	cr_assert_eq(w.down, 0);
	cr_assert_gt(nfsd_sim_stats(w.srv).cb_replies, 0);
	SIM_RPC_CLOSE(&w);
}

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

Test(rpcrdma_reverse, a_call_with_chunks_is_refused)
{
	uint8_t msg[100] = {0};

	open_up(true);
	put32(msg, 0x77);
	put32(msg + 4, 1);
	put32(msg + 8, 2);
	put32(msg + 12, 1); /* RDMA_NOMSG */
	put32(msg + 16, 1); /* Read list: one segment at position 0 */
	put32(msg + 24, 0x1234);
	put32(msg + 28, 4096);
	nfsd_sim_inject(w.srv, msg, 52, false);
	sim_rpc_run(&w, SIM_MSEC);
	cr_assert_eq(w.reverse, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).client_errors, 1);
	cr_assert_eq(w.up, 1);
	cr_assert_eq(w.down, 0);
	SIM_RPC_CLOSE(&w);
}

/* Forward and reverse XIDs are spaces of their own. */
Test(rpcrdma_reverse, the_xid_of_a_call_in_flight_is_no_conflict)
{
	struct sim_call c = {.kind = SIM_CALL_NULL};
	uint8_t msg[68] = {0};

	open_up(true);
	nfsd_sim_conf(w.srv)->latency_ns = SIM_SEC;
	cr_assert_eq(sim_rpc_call(&w, &c), 0);
	sim_rpc_run(&w, SIM_MSEC);
	put32(msg, c.req.xid);
	put32(msg + 4, 1);
	put32(msg + 8, 2);
	put32(msg + 28, c.req.xid);
	put32(msg + 36, 2);
	put32(msg + 40, 0x40000000);
	put32(msg + 44, 1);
	nfsd_sim_inject(w.srv, msg, 68, false);
	sim_rpc_run(&w, SIM_MSEC);
	cr_assert_eq(w.reverse, 1);
	cr_assert_eq(w.done, 0);
	cr_assert(sim_rpc_wait(&w, 1, 2 * SIM_SEC));
	cr_assert(c.good);
	sim_rpc_run(&w, SIM_MSEC);
	/* The judge did not expect an answer to what was injected. */
	cr_assert_eq(fab_sim_failures(), 1);
	w.reverse_answers = false;
	(void)sim_rpc_close(&w);
}

Test(rpcrdma_reverse, answers_after_the_connection_is_gone_are_dropped)
{
	open_up(true);
	for (int i = 0; i < 20; i++) {
		nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, true);
		fab_sim_break_all(-ECONNRESET);
		sim_rpc_run(&w, SIM_SEC);
		nfsd_sim_callback(w.srv, NFSD_SIM_CB_NULL, true);
		reactor_turn(w.r, 0);
		reactor_turn(w.r, 3 * NSEC_PER_USEC);
		fab_sim_break_all(-ECONNRESET);
		sim_rpc_run(&w, 2 * SIM_SEC);
	}
	sim_rpc_run(&w, 40 * SIM_SEC);
	cr_assert(rpcrdma_is_up(w.x));
	SIM_RPC_CLOSE(&w);
}
