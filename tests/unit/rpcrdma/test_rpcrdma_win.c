/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>

#include "rig.h"

static struct rpcrdma_win win;

TestSuite(rpcrdma_win, .init = rig_init);

Test(rpcrdma_win, goes_round_by_remote_and_by_local_invalidation)
{
	win.state = RPCRDMA_W_FREE;
	rpcrdma_win_set_state(&win, RPCRDMA_W_BOUND);
	win.rkey = 5;
	rpcrdma_win_set_state(&win, RPCRDMA_W_FREE);
	cr_assert_eq(win.rkey, 0);
	rpcrdma_win_set_state(&win, RPCRDMA_W_BOUND);
	rpcrdma_win_set_state(&win, RPCRDMA_W_INVALIDATING);
	rpcrdma_win_set_state(&win, RPCRDMA_W_FREE);
}

Test(rpcrdma_win, is_never_bound_twice, .signal = SIGABRT)
{
	win.state = RPCRDMA_W_BOUND;
	rpcrdma_win_set_state(&win, RPCRDMA_W_BOUND);
}

Test(rpcrdma_win, is_never_invalidated_when_free, .signal = SIGABRT)
{
	win.state = RPCRDMA_W_FREE;
	rpcrdma_win_set_state(&win, RPCRDMA_W_INVALIDATING);
}

Test(rpcrdma_win, is_never_invalidated_twice, .signal = SIGABRT)
{
	win.state = RPCRDMA_W_INVALIDATING;
	rpcrdma_win_set_state(&win, RPCRDMA_W_INVALIDATING);
}

Test(rpcrdma_win, calls_wait_when_windows_run_out)
{
	static struct call c[8];
	struct rpcrdma_buf *a, *b;

	fake.caps.max_mw = RPCRDMA_MAX_WINS;
	cr_assert(rig_connect());
	a = rpcrdma_buf_get(rig.x);
	b = rpcrdma_buf_get(rig.x);
	cr_assert_eq(rig.x->win_cnt, RPCRDMA_MAX_WINS);
	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	for (int i = 1; i < 8; i++) {
		call_init(&c[i], 20);
		c[i].req.results[0].sink = (struct rpcrdma_span){a, a->data, 20000};
		c[i].req.results[1].sink = (struct rpcrdma_span){b, b->data, 20000};
		c[i].req.result_cnt = 2;
		cr_assert_eq(call_send(&c[i]), 0);
	}
	rig_run(1000);
	cr_assert_eq(rig.calls, 1 + RPCRDMA_MAX_WINS / 2);
	rig.silent = false;
	fake_down(0); /* all are sent again, and windows come back one by one */
	rig_run(NSEC_PER_SEC);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(c[i].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.x->win_free_cnt, RPCRDMA_MAX_WINS);
	rpcrdma_buf_put(rig.x, a);
	rpcrdma_buf_put(rig.x, b);
	rig_fini();
}

/* RFC 8166 section 8.1.2: a key that was valid is wrong for as long as possible. */
Test(rpcrdma_win, the_longest_unused_is_taken_next)
{
	static struct call c;
	uint32_t keys[RPCRDMA_MAX_WINS + 1];
	struct rpcrdma_buf *buf;

	fake.caps.max_mw = RPCRDMA_MAX_WINS;
	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	for (int i = 0; i <= RPCRDMA_MAX_WINS; i++) {
		call_init(&c, 20);
		c.req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
		c.req.result_cnt = 1;
		cr_assert_eq(call_send(&c), 0);
		rig_run(1000);
		cr_assert_eq(c.end, RPCRDMA_REPLY);
		keys[i] = rig_key();
		for (int j = 0; j < i; j++)
			cr_assert_eq(keys[j] >> 8 == keys[i] >> 8, j == 0 && i == RPCRDMA_MAX_WINS);
	}
	cr_assert_neq(keys[0], keys[RPCRDMA_MAX_WINS]);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_win, come_back_from_a_send_that_the_queue_has_no_room_for)
{
	static struct call c[2];
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_start(&c[0], false);
	rig_run(1000);
	call_start(&c[0], false);
	fake.fail[FAKE_POST_SEND] = -ENOMEM;
	call_init(&c[1], 20);
	c[1].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[1].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[1]), 0);
	cr_assert_eq(rig.x->win_free_cnt, rig.x->win_cnt);
	rig_run(1000);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.x->win_free_cnt, rig.x->win_cnt);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}
