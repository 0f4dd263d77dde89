/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same work once for each fabric call, with that call failing; and once
 * with the connection lost right after it. Every call must end exactly once,
 * everything must come back (rig_fini checks).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

#define CALLS 16

static struct call c[CALLS];
static struct rpcrdma_buf *bufs[CALLS];

static void shape(struct call *call, int i, struct rpcrdma_buf *buf)
{
	call_init(call, 20);
	switch (i % 4) {
	case 0:
		break;
	case 1:
		call->req.args[0] = (struct rpcrdma_span){buf, buf->data, 30000};
		call->req.arg_cnt = 1;
		break;
	case 2:
		call->req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 30000};
		call->req.result_cnt = 1;
		break;
	default:
		memcpy(buf->data, call->req.head, 8);
		call->req.head_len = 0;
		call->req.long_call = (struct rpcrdma_span){buf, buf->data, 20000};
		call->req.reply_max = 10000;
		call->req.reply_sink = (struct rpcrdma_span){buf, buf->data + 30000, 10000};
		break;
	}
}

/* Two waves of eight calls of all forms. */
static void work(void)
{
	rig.body_len = 100;
	rig.data_len = 12345;
	for (int wave = 0; wave < 2; wave++) {
		for (int i = 0; i < 8; i++) {
			struct call *call = &c[8 * wave + i];

			bufs[i] = rpcrdma_buf_get(rig.x);
			cr_assert(bufs[i]);
			shape(call, i, bufs[i]);
			cr_assert_eq(call_send(call), 0);
		}
		rig_reverse_call((uint32_t)wave);
		rig_run(100 * NSEC_PER_SEC);
		for (int i = 0; i < 8; i++)
			rpcrdma_buf_put(rig.x, bufs[i]);
	}
}

static void one_run(enum rpcrdma_memreg memreg, unsigned int fail_at, int err, unsigned int cut_at)
{
	rig_init();
	rig_quiet();
	memset(c, 0, sizeof(c));
	rig.conf.memreg = memreg;
	rig.conf.data_cnt = 8;
	rig.answer_rcalls = true;
	rig.conf.idle_probe_ns = 20 * NSEC_PER_SEC;
	fake.fail_at = fail_at;
	fake.fail_err = err;
	fake.cut_at = cut_at;
	if (!rig_connect()) {
		if (rig.r && rig.failed == 1)
			cr_assert_eq(rig.err, err);
		else
			rig.stopped = 0;
		rig_fini();
		return;
	}
	work();
	for (int i = 0; i < CALLS; i++) {
		cr_assert_eq(c[i].done, 1, "call %d, fail %u, cut %u", i, fail_at, cut_at);
		cr_assert_eq(
			c[i].end, RPCRDMA_REPLY, "call %d, fail %u, cut %u", i, fail_at, cut_at);
	}
	rig_fini();
}

static void sweep(enum rpcrdma_memreg memreg)
{
	static const int errs[] = {-EIO, -ENOMEM, -ENOTCONN};
	unsigned int total;

	one_run(memreg, 0, 0, 0);
	total = fake.calls;
	cr_assert_geq(total, 80);
	for (unsigned int i = 1; i <= total + 20; i++) {
		for (unsigned int e = 0; e < 3; e++)
			one_run(memreg, i, errs[e], 0);
		one_run(memreg, 0, 0, i);
	}
}

Test(rpcrdma_sweep, nothing_is_lost_with_windows)
{
	sweep(RPCRDMA_MEMREG_MW);
}

Test(rpcrdma_sweep, nothing_is_lost_with_static_registrations)
{
	sweep(RPCRDMA_MEMREG_STATIC);
}

Test(rpcrdma_sweep, nothing_is_lost_when_the_strategy_is_chosen_on_the_way)
{
	sweep(RPCRDMA_MEMREG_AUTO);
}
