/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers that break the protocol. Whatever they send, each call ends exactly
 * once, nothing of ours is touched that was not offered, and the next call on
 * an honest connection succeeds.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim_rpc.h"

static struct sim_rpc w;

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static const struct sim_call forms[] = {
	{.kind = SIM_CALL_ECHO, .a = 40},
	{.kind = SIM_CALL_SOURCE, .a = 5000, .n = 2},
	{.kind = SIM_CALL_BIG, .a = 5000},
	{.kind = SIM_CALL_SINK, .a = 5000, .b = 4},
	{.kind = SIM_CALL_SINK_LONG, .a = 5000, .b = 5000},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static void open_hostile(enum rpcrdma_memreg memreg, uint32_t max_seg)
{
	struct rpcrdma_conf conf;

	sim_rpc_conf(&conf);
	conf.memreg = memreg;
	conf.max_seg = max_seg;
	sim_rpc_open(&w, &conf, NULL);
	nfsd_sim_conf(w.srv)->allow_toosmall = true;
	fab_sim_conf()->rnr_waits = true;
	w.refuse_wrong = true;
	cr_assert(sim_rpc_up(&w));
}

/* One call of that form under the rule, then an honest one. */
static enum rpcrdma_end suffer(unsigned int form, struct nfsd_sim_rule rule)
{
	struct sim_call c = forms[form], honest = forms[form];
	unsigned int wrong = w.wrong;

	rule.count = rule.count ? rule.count : 1;
	rule.hostile = true;
	nfsd_sim_rule(w.srv, &rule);
	cr_assert_eq(sim_rpc_call(&w, &c), 0);
	cr_assert(sim_rpc_wait(&w, w.started, 600 * SIM_SEC), "never ended");
	cr_assert_eq(c.done_cnt, 1);
	nfsd_sim_rules_clear(w.srv);
	cr_assert(sim_rpc_do(&w, &honest), "the honest call after it: end %d", honest.end);
	cr_assert_eq(w.wrong, wrong);
	cr_assert_eq(fab_sim_failures(), 0, "%s", fab_sim_failure());
	return c.end;
}

struct edit {
	uint32_t off, value, len;
	bool set_len, set_word;
};

static void do_edit(void *ctx, struct nfsd_sim_out *out)
{
	const struct edit *e = ctx;

	if (e->set_word && e->off + 4 <= out->len)
		put32(out->msg + e->off, e->value);
	if (e->set_len && e->len < out->len)
		out->len = e->len;
}

Test(rpcrdma_hostile, replies_cut_at_every_length)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_hostile((enum rpcrdma_memreg)m, 0);
		for (unsigned int form = 0; form < FORMS; form++) {
			for (uint32_t len = 0; len < 140; len++) {
				struct edit e = {.set_len = true, .len = len};

				suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_MUTATE,
						     .mutate = do_edit,
						     .ctx = &e});
			}
		}
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_hostile, every_word_of_the_reply_replaced)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 16, 17, 0x7fffffff, 0x80000000,
		0xfffffffc, 0xffffffff, 5001, 65537};

	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_hostile((enum rpcrdma_memreg)m, 4096);
		for (unsigned int form = 0; form < FORMS; form++) {
			for (uint32_t off = 0; off < 180; off += 4) {
				for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
					struct edit e = {
						.set_word = true, .off = off, .value = values[v]};

					suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_MUTATE,
							     .mutate = do_edit,
							     .ctx = &e});
				}
			}
		}
		SIM_RPC_CLOSE(&w);
	}
}

static void scramble(void *ctx, struct nfsd_sim_out *out)
{
	unsigned int *seed = ctx;
	unsigned int n = 1 + (unsigned int)rand_r(seed) % 8;

	while (n--) {
		uint32_t at = (uint32_t)rand_r(seed) % (out->len < 120 ? out->len : 120);

		switch (rand_r(seed) % 3) {
		case 0:
			out->msg[at] ^= (uint8_t)(1 << rand_r(seed) % 8);
			break;
		case 1:
			out->msg[at] = (uint8_t)rand_r(seed);
			break;
		default:
			put32(out->msg + (at & ~3u), (uint32_t)rand_r(seed) % 70000);
			break;
		}
	}
	if (rand_r(seed) % 8 == 0)
		out->len += (uint32_t)rand_r(seed) % 3000;
}

Test(rpcrdma_hostile, scrambled_replies)
{
	unsigned int seed = 42;

	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_hostile((enum rpcrdma_memreg)m, 4096);
		for (int i = 0; i < 3000; i++)
			suffer((unsigned int)i % FORMS,
				(struct nfsd_sim_rule){
					.act = NFSD_SIM_MUTATE, .mutate = scramble, .ctx = &seed});
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_hostile, garbage_of_every_length)
{
	static uint8_t junk[20000];
	unsigned int seed = 1;

	open_hostile(RPCRDMA_MEMREG_MW, 0);
	for (uint32_t len = 0; len < 9000; len += len < 300 ? 1 : 97) {
		struct sim_call c = forms[len % FORMS];

		for (uint32_t i = 0; i < len; i++)
			junk[i] = (uint8_t)rand_r(&seed);
		if (len >= 8 && len & 1)
			put32(junk + 4, 1);
		if (len >= 16 && len & 2)
			put32(junk + 12, len % 6);
		nfsd_sim_inject(w.srv, junk, len, true);
		cr_assert(sim_rpc_do(&w, &c));
	}
	cr_assert_gt(w.st.bad_messages, 0);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_hostile, a_message_longer_than_any_receive)
{
	static uint8_t junk[70000];
	struct sim_call c = forms[0];

	open_hostile(RPCRDMA_MEMREG_MW, 0);
	nfsd_sim_inject(w.srv, junk, sizeof(junk), true);
	cr_assert(sim_rpc_do(&w, &c));
	cr_assert_eq(w.up, 2);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_hostile, rdma_errors_end_calls_in_documented_ways)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		for (unsigned int form = 0; form < FORMS; form++) {
			open_hostile((enum rpcrdma_memreg)m, 0);
			cr_assert_eq(suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_ERR_VERS}),
				RPCRDMA_REFUSED);
			cr_assert_eq(
				suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_ERR_CHUNK}),
				RPCRDMA_TOOSMALL);
			cr_assert_eq(
				suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_ERR_AFTER}),
				RPCRDMA_TOOSMALL);
			cr_assert_eq(w.up, 1, "errors do not cost the connection");
			cr_assert_eq(suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_ERR_OTHER,
							  .arg = 7}),
				RPCRDMA_BADREPLY);
			cr_assert_eq(w.st.rdma_errors, 4);
			SIM_RPC_CLOSE(&w);
		}
	}
}

Test(rpcrdma_hostile, rpc_rejections_are_replies)
{
	open_hostile(RPCRDMA_MEMREG_MW, 0);
	for (unsigned int form = 0; form < FORMS; form++) {
		for (uint64_t arg = 0; arg < 6; arg++) {
			cr_assert_eq(suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_RPC_ACCEPT,
							  .arg = arg}),
				RPCRDMA_REPLY);
			cr_assert_eq(suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_RPC_DENY,
							  .arg = arg}),
				RPCRDMA_REPLY);
		}
	}
	cr_assert_eq(w.up, 1);
	SIM_RPC_CLOSE(&w);
}

Test(rpcrdma_hostile, duplicated_replies_end_a_call_once)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_hostile((enum rpcrdma_memreg)m, 0);
		for (unsigned int form = 0; form < FORMS; form++) {
			cr_assert_eq(
				suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_DUP, .arg = 3}),
				RPCRDMA_REPLY);
			sim_rpc_run(&w, SIM_MSEC);
		}
		cr_assert_eq(w.st.stray_replies, 3 * FORMS);
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_hostile, no_invalidation_where_one_was_allowed)
{
	open_hostile(RPCRDMA_MEMREG_MW, 0);
	for (unsigned int form = 0; form < FORMS; form++)
		cr_assert_eq(suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_NO_INV}),
			RPCRDMA_REPLY);
	cr_assert_gt(w.st.local_invals, 0);
	SIM_RPC_CLOSE(&w);
}

/* The window of another call in flight is invalidated: nothing is certain any more. */
Test(rpcrdma_hostile, invalidation_of_another_calls_key)
{
	for (unsigned int form = 1; form < FORMS; form++) {
		struct sim_call c[4];
		struct nfsd_sim_rule rule = {
			.act = NFSD_SIM_WRONG_INV, .skip = 1, .count = 1, .hostile = true};

		open_hostile(RPCRDMA_MEMREG_MW, 0);
		cr_assert(sim_rpc_do(&w, &(struct sim_call){.kind = SIM_CALL_NULL}));
		nfsd_sim_conf(w.srv)->latency_ns = SIM_MSEC;
		nfsd_sim_rule(w.srv, &rule);
		for (int i = 0; i < 3; i++) {
			c[i] = forms[form];
			if (form == 1)
				c[i].n = 1;
			cr_assert_eq(sim_rpc_call(&w, &c[i]), 0);
		}
		cr_assert(sim_rpc_wait(&w, w.started, 200 * SIM_SEC));
		nfsd_sim_rules_clear(w.srv);
		cr_assert_eq(w.up, 2);
		cr_assert(sim_rpc_do(&w, &(struct sim_call){.kind = SIM_CALL_SINK, .a = 6000}));
		SIM_RPC_CLOSE(&w);
	}
}

Test(rpcrdma_hostile, invalidation_of_a_key_that_never_was)
{
	open_hostile(RPCRDMA_MEMREG_MW, 0);
	for (unsigned int form = 0; form < FORMS; form++)
		suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_WRONG_INV, .arg = 0x12345678});
	SIM_RPC_CLOSE(&w);
}

/* With standing registrations no invalidation was offered. */
Test(rpcrdma_hostile, invalidation_of_a_standing_registration)
{
	open_hostile(RPCRDMA_MEMREG_STATIC, 0);
	for (unsigned int form = 0; form < FORMS; form++)
		suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_WRONG_INV});
	SIM_RPC_CLOSE(&w);
}

static void shrink_write(void *ctx, struct nfsd_sim_out *out)
{
	const struct edit *e = ctx;
	uint32_t at = out->write_off ? out->write_off : out->reply_off;

	if (at && at + 12 <= out->len)
		put32(out->msg + at + 4 + 4, e->value);
}

/* Lengths that were never written, or more than was offered. */
Test(rpcrdma_hostile, chunk_lengths_that_lie)
{
	static const uint32_t lens[] = {0, 1, 3, 4, 7, 8, 20, 23, 24, 100, 4999, 5000, 5001, 5003,
		5004, 5024, 5028, 5029, 65536, 65537, 0x7fffffff, 0xffffffff};

	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		for (uint32_t seg = 0; seg <= 4096; seg += 4096) {
			open_hostile((enum rpcrdma_memreg)m, seg);
			for (unsigned int form = 1; form <= 2; form++) {
				for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
					struct edit e = {.value = lens[i]};

					suffer(form, (struct nfsd_sim_rule){.act = NFSD_SIM_MUTATE,
							     .mutate = shrink_write,
							     .ctx = &e});
				}
			}
			SIM_RPC_CLOSE(&w);
		}
	}
}

Test(rpcrdma_hostile, rdma_done_and_msgp_and_unknown_procedures_are_dropped)
{
	uint8_t msg[64] = {0};
	struct sim_call c = {.kind = SIM_CALL_NULL};

	open_hostile(RPCRDMA_MEMREG_MW, 0);
	for (uint32_t proc = 0; proc < 12; proc++) {
		for (uint32_t vers = 0; vers < 4; vers++) {
			put32(msg, 0x1234567);
			put32(msg + 4, vers);
			put32(msg + 8, 32);
			put32(msg + 12, proc);
			nfsd_sim_inject(w.srv, msg, sizeof(msg), true);
			nfsd_sim_inject(w.srv, msg, 16, true);
		}
	}
	cr_assert(sim_rpc_do(&w, &c));
	cr_assert_eq(w.up, 1);
	SIM_RPC_CLOSE(&w);
}

/* A call that was cut off by one thing after another, many times. */
Test(rpcrdma_hostile, everything_at_once)
{
	unsigned int seed = 3;

	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		struct sim_call c[8] = {{.kind = SIM_CALL_NULL}};

		open_hostile((enum rpcrdma_memreg)m, 4096);
		nfsd_sim_conf(w.srv)->latency_ns = 50 * NSEC_PER_USEC;
		for (int round = 0; round < 300; round++) {
			static const enum nfsd_sim_act acts[] = {NFSD_SIM_LATE, NFSD_SIM_LOSE,
				NFSD_SIM_DUP, NFSD_SIM_ERR_CHUNK, NFSD_SIM_CUT_BEFORE,
				NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED, NFSD_SIM_NO_INV,
				NFSD_SIM_WRONG_INV, NFSD_SIM_MUTATE, NFSD_SIM_MUTATE};

			for (int i = 0; i < 3; i++) {
				struct nfsd_sim_rule rule = {
					.act = acts[(size_t)rand_r(&seed) %
						    (sizeof(acts) / sizeof(acts[0]))],
					.arg = (uint64_t)rand_r(&seed) % SIM_SEC,
					.skip = (uint32_t)rand_r(&seed) % 5,
					.count = 1,
					.mutate = scramble,
					.ctx = &seed,
					.hostile = true};

				if (rule.act == NFSD_SIM_DUP)
					rule.arg %= 5;
				nfsd_sim_rule(w.srv, &rule);
			}
			fab_sim_conf()->sent_late_ns = rand_r(&seed) % 2 ? 100 * NSEC_PER_USEC : 0;
			fab_sim_conf()->flush_first = rand_r(&seed) % 2;
			for (int i = 0; i < 4; i++) {
				c[i] = forms[(size_t)rand_r(&seed) % FORMS];
				if (c[i].kind == SIM_CALL_SINK_LONG)
					c[i].kind = SIM_CALL_LONG;
				c[i].soft = rand_r(&seed) % 4 == 0;
				if (c[i].n)
					c[i].n = 1;
				cr_assert_eq(sim_rpc_call(&w, &c[i]), 0);
			}
			cr_assert(sim_rpc_wait(&w, w.started, 2000 * SIM_SEC), "round %d", round);
			nfsd_sim_rules_clear(w.srv);
			cr_assert_eq(fab_sim_failures(), 0, "%s", fab_sim_failure());
		}
		SIM_RPC_CLOSE(&w);
	}
}
