/* SPDX-License-Identifier: BSD-3-Clause */
/* Message forms: every way a call and a reply can travel, at every size that matters. */
#include <criterion/criterion.h>
#include <errno.h>

#include "sim_rpc.h"

static struct sim_rpc w;

static void open_with(enum rpcrdma_memreg memreg, uint32_t max_seg)
{
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.memreg = memreg;
	conf.max_seg = max_seg;
	sim_rpc_open(&w, &conf, NULL);
	cr_assert(sim_rpc_up(&w));
	cr_assert_eq(rpcrdma_memreg(w.x), memreg);
}

static void must(enum sim_call_kind kind, uint32_t a, uint32_t b, uint32_t n)
{
	struct sim_call c = {.kind = kind, .a = a, .b = b, .n = n};

	cr_assert(sim_rpc_do(&w, &c), "kind %d, a %u, b %u, n %u", kind, a, b, n);
}

Test(rpcrdma_forms, a_null_call_travels_inline)
{
	open_with(RPCRDMA_MEMREG_MW, 0);
	must(SIM_CALL_NULL, 0, 0, 0);
	cr_assert_eq(w.st.inline_calls, 1);
	cr_assert_eq(w.st.inline_replies, 1);
	cr_assert_eq(w.st.mw_binds, 0);
	SIM_RPC_CLOSE(&w);
}

static const enum rpcrdma_memreg regs[] = {RPCRDMA_MEMREG_MW, RPCRDMA_MEMREG_STATIC};

Test(rpcrdma_forms, echo_of_every_inline_size)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t len = 0; len <= 3900; len += len < 64 || len > 3860 ? 1 : 61)
			must(SIM_CALL_ECHO, len, 0, 0);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, long_calls_and_reply_chunks_around_the_inline_limit)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t len = 3900; len <= 4200; len++)
			must(SIM_CALL_LONG, len, 0, 0);
		must(SIM_CALL_LONG, 60000, 0, 0);
		cr_assert_gt(nfsd_sim_stats(w.srv).nomsg, 0);
		cr_assert_gt(w.st.long_calls, 0);
		cr_assert_gt(w.st.reply_chunks, 0);
		cr_assert_eq(w.st.long_calls, nfsd_sim_stats(w.srv).nomsg);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, read_chunk_of_every_pad_with_and_without_tail)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t len = 0; len < 40; len++)
			for (uint32_t tail = 0; tail <= 8; tail += 4)
				must(SIM_CALL_SINK, len, tail, 0);
		for (uint32_t len = 3900; len < 4110; len++)
			must(SIM_CALL_SINK, len, len & 12, 0);
		must(SIM_CALL_SINK, 65536, 16, 0);
		must(SIM_CALL_SINK, 65535, 16, 0);
		cr_assert_gt(w.st.read_chunks, 0);
		cr_assert_eq(w.st.read_chunks, nfsd_sim_stats(w.srv).read_chunks);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, long_call_beside_a_read_chunk)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		must(SIM_CALL_SINK_LONG, 65536, 8000, 0);
		must(SIM_CALL_SINK_LONG, 8, 8000, 0);
		must(SIM_CALL_SINK_LONG, 4096, 64, 0);
		cr_assert_gt(nfsd_sim_stats(w.srv).pz_with_chunk, 0);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, write_chunk_of_every_pad)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t len = 0; len < 16; len++)
			must(SIM_CALL_SOURCE, len, 0, 1);
		for (uint32_t len = 3980; len < 4110; len++)
			must(SIM_CALL_SOURCE, len, 0, 1);
		must(SIM_CALL_SOURCE, 65536, 0, 1);
		must(SIM_CALL_SOURCE, 65533, 0, 1);
		cr_assert_gt(w.st.write_chunks, 0);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, several_results_match_their_chunks_in_order)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t n = 2; n <= 4; n++) {
			must(SIM_CALL_SOURCE, 65536, 0, n);
			must(SIM_CALL_SOURCE, 65531, 0, n);
			must(SIM_CALL_SOURCE, 3001, 0, n);
		}
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, a_result_shorter_than_its_chunk)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 4096);
		for (uint32_t len = 0; len < 20000; len += 997) {
			struct sim_call c = {
				.kind = SIM_CALL_SOURCE, .a = len, .n = 1, .room = 65536};

			cr_assert(sim_rpc_do(&w, &c), "%u", len);
		}
		cr_assert_gt(w.st.write_chunks_unused, 0);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, chunks_of_many_segments)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 4096);
		must(SIM_CALL_SINK, 65536, 8, 0);
		must(SIM_CALL_SINK, 65535, 8, 0);
		must(SIM_CALL_SINK, 4097, 0, 0);
		must(SIM_CALL_SOURCE, 65536, 0, 2);
		must(SIM_CALL_SOURCE, 65535, 0, 1);
		must(SIM_CALL_BIG, 60000, 0, 0);
		must(SIM_CALL_LONG, 60000, 0, 0);
		must(SIM_CALL_SINK_LONG, 65536, 30000, 0);
		cr_assert_gt(nfsd_sim_stats(w.srv).read_segs, 16);
		cr_assert_gt(nfsd_sim_stats(w.srv).write_segs, 16);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, reply_chunk_of_every_size)
{
	for (int m = 0; m < 2; m++) {
		open_with(regs[m], 0);
		for (uint32_t len = 4000; len < 4100; len++)
			must(SIM_CALL_BIG, len, 0, 0);
		must(SIM_CALL_BIG, 65000, 0, 0);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_forms, a_reply_chunk_the_server_does_not_use)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.reply_chunk_lazy = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	for (uint32_t len = 0; len < 8000; len += 501) {
		struct sim_call c = {.kind = SIM_CALL_BIG, .a = len, .room = 60000};

		cr_assert(sim_rpc_do(&w, &c));
	}
	cr_assert_gt(w.st.reply_chunks, 0);
	cr_assert_lt(w.st.reply_chunks, 16);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, a_reply_that_does_not_fit_its_chunk_is_toosmall)
{
	struct nfsd_sim_conf sconf;
	struct sim_call c = {.kind = SIM_CALL_BIG, .a = 9000, .room = 5000};

	nfsd_sim_conf_default(&sconf);
	sconf.allow_toosmall = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	cr_assert_not(sim_rpc_do(&w, &c));
	cr_assert_eq(c.end, RPCRDMA_TOOSMALL);
	cr_assert_eq(w.up, 1);
	cr_assert_eq(w.down, 0, "the connection is not the call's concern");
	must(SIM_CALL_BIG, 9000, 0, 0);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, a_call_that_fits_no_form_is_refused_at_once)
{
	struct sim_call c = {.kind = SIM_CALL_NULL};

	open_with(RPCRDMA_MEMREG_MW, 0);
	c.w = &w;
	cr_assert_eq(rpcrdma_req_get(w.x, &c.req), 0);
	c.req.head_len = 40;
	c.req.reply_max = 100000; /* and no Reply chunk */
	cr_assert_eq(rpcrdma_send(w.x, &c.req), -EMSGSIZE);
	rpcrdma_req_put(w.x, &c.req);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, servers_that_write_the_round_up_or_send_msgp)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.send_msgp = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	for (uint32_t len = 0; len < 12; len++) {
		must(SIM_CALL_ECHO, 3000 + len, 0, 0);
		must(SIM_CALL_SOURCE, 5000 + len, 0, 1);
	}
	SIM_RPC_CLOSE(&w);

	nfsd_sim_conf_default(&sconf);
	sconf.write_pad = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	for (uint32_t len = 0; len < 12; len++) {
		struct sim_call c = {
			.kind = SIM_CALL_SOURCE, .a = 5000 + len, .n = 1, .room = 6000};

		cr_assert(sim_rpc_do(&w, &c));
	}
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, peers_without_private_data_get_1024_bytes)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.no_priv = true;
	sconf.client_small = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	for (uint32_t len = 900; len < 1100; len++)
		must(SIM_CALL_LONG, len, 0, 0);
	must(SIM_CALL_SINK, 900, 8, 0);
	must(SIM_CALL_SINK, 5000, 8, 0);
	must(SIM_CALL_SOURCE, 1000, 0, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, a_larger_threshold_is_used_when_both_offer_it)
{
	struct nfsd_sim_conf sconf;
	struct rpcrdma_conf conf;

	nfsd_sim_conf_default(&sconf);
	sconf.inline_size = 65536;
	sim_rpc_conf(&conf);
	conf.inline_size = 32768;
	sim_rpc_open(&w, &conf, &sconf);
	cr_assert(sim_rpc_up(&w));
	must(SIM_CALL_ECHO, 30000, 0, 0);
	must(SIM_CALL_SINK, 30000, 8, 0);
	must(SIM_CALL_SOURCE, 30000, 0, 1);
	cr_assert_eq(w.st.read_chunks + w.st.write_chunks + w.st.reply_chunks, 0);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, one_window_a_call_is_always_invalidated_by_the_server)
{
	open_with(RPCRDMA_MEMREG_MW, 0);
	for (int i = 0; i < 50; i++) {
		must(SIM_CALL_SINK, 65536, 8, 0);
		must(SIM_CALL_SOURCE, 65536, 0, 1);
		must(SIM_CALL_BIG, 60000, 0, 0);
	}
	cr_assert_eq(w.st.remote_invals, 150);
	cr_assert_eq(w.st.local_invals, 0);
	cr_assert_eq(w.st.mw_binds, 150);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, windows_are_taken_back_when_the_server_does_not)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.no_inval = true;
	sim_rpc_open(&w, NULL, &sconf);
	cr_assert(sim_rpc_up(&w));
	for (int i = 0; i < 50; i++) {
		must(SIM_CALL_SINK, 65536, 8, 0);
		must(SIM_CALL_SOURCE, 20000, 0, 3);
		cr_assert_eq(fab_sim_live_windows(), 0);
	}
	cr_assert_eq(w.st.local_invals, w.st.mw_binds);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_forms, auto_falls_back_to_static_without_windows)
{
	sim_rpc_open(&w, NULL, NULL);
	fab_sim_conf()->caps.mw2b = false;
	cr_assert(sim_rpc_up(&w));
	cr_assert_eq(rpcrdma_memreg(w.x), RPCRDMA_MEMREG_STATIC);
	must(SIM_CALL_SINK, 65536, 8, 0);
	SIM_RPC_CLOSE(&w);
}

/*
 * Many calls with windows that only we invalidate, on a short send queue that is slow to be
 * emptied: a call can wait for room there, an invalidation cannot.
 */
Test(rpcrdma_forms, a_short_send_queue_has_room_for_every_invalidation)
{
	static struct sim_call calls[200];
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.memreg = RPCRDMA_MEMREG_AUTO;
	conf.data_cnt = 40;
	sim_rpc_open(&w, &conf, NULL);
	fab_sim_conf()->caps.max_wr = 60;
	fab_sim_conf()->sent_late_ns = 100 * NSEC_PER_USEC;
	nfsd_sim_conf(w.srv)->no_inval = true;
	cr_assert(sim_rpc_up(&w));
	cr_assert_eq(rpcrdma_memreg(w.x), RPCRDMA_MEMREG_MW);
	for (unsigned int i = 0; i < 200; i++) {
		calls[i] = (struct sim_call){.kind = SIM_CALL_SOURCE, .a = 5000, .n = 2};
		while (sim_rpc_call(&w, &calls[i]) == -EAGAIN)
			cr_assert(sim_rpc_wait(&w, w.done + 1, SIM_SEC));
	}
	cr_assert(sim_rpc_wait(&w, 200, SIM_SEC));
	cr_assert_eq(w.down, 0, "the connection was lost %u times", w.down);
	cr_assert_geq(w.st.local_invals, 400);
	for (unsigned int i = 0; i < 200; i++)
		cr_assert(calls[i].good);
	SIM_RPC_CLOSE(&w);
}

/* Too short for the windows of one call: then none are used, rather than now and then. */
Test(rpcrdma_forms, a_send_queue_without_room_for_windows)
{
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.memreg = RPCRDMA_MEMREG_AUTO;
	sim_rpc_open(&w, &conf, NULL);
	fab_sim_conf()->caps.max_wr = 40;
	cr_assert(sim_rpc_up(&w));
	cr_assert_eq(rpcrdma_memreg(w.x), RPCRDMA_MEMREG_STATIC);
	must(SIM_CALL_SOURCE, 5000, 0, 2);
	SIM_RPC_CLOSE(&w);
}
