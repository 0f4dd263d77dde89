/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

static struct call c[12];

static void start(void)
{
	rig_init();
	rig.conf.timeo_ns = 10 * NSEC_PER_SEC;
	rig.conf.retrans = 2;
	cr_assert(rig_connect());
}

TestSuite(rpcrdma_timeo, .init = start, .fini = rig_fini);

Test(rpcrdma_timeo, an_unanswered_call_replaces_the_connection_and_is_sent_again)
{
	rig.silent = true;
	call_start(&c[0], false);
	rig_run(9 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 1);
	rig.silent = false;
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.timeouts, 1);
	cr_assert_eq(rig.stats.retransmits, 1);
	cr_assert_eq(c[0].req.resends, 1);
	cr_assert_eq(rig.err, -ETIMEDOUT);
}

Test(rpcrdma_timeo, each_silence_of_the_server_is_told_once)
{
	const struct rig_log *log = rig_log();

	for (unsigned int i = 0; i < 2; i++) {
		rig.silent = true;
		call_start(&c[i], false);
		rig_run(65 * NSEC_PER_SEC);
		cr_assert_geq(rig.stats.timeouts, 2 * i + 2);
		cr_assert_eq(log->lines, i + 1);
		cr_assert(strstr(log->last, "not responding"), "%s", log->last);
		rig.silent = false;
		rig_run(45 * NSEC_PER_SEC); /* timeo and the longest back-off */
		cr_assert_eq(c[i].end, RPCRDMA_REPLY);
	}
}

Test(rpcrdma_timeo, a_soft_call_ends_after_timeo_times_retrans_and_one)
{
	rig.silent = true;
	call_start(&c[0], true);
	rig_run(29 * NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.calls, 3);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_TIMEDOUT);
	cr_assert_eq(rig.stats.timeouts, 3);
}

Test(rpcrdma_timeo, a_hard_call_waits_for_ever)
{
	rig.silent = true;
	call_start(&c[0], false);
	rig_run(3600 * NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	cr_assert_gt(rig.calls, 80);
	rig.silent = false;
	rig_run(45 * NSEC_PER_SEC); /* timeo and the longest back-off */
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
}

Test(rpcrdma_timeo, soft_calls_end_while_the_connection_is_down)
{
	fake.refuse = true;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	call_start(&c[0], true);
	call_start(&c[1], false);
	rig_run(29 * NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_TIMEDOUT);
	cr_assert_eq(c[1].done, 0);
	fake.refuse = false;
	rig_run(31 * NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
}

Test(rpcrdma_timeo, soft_calls_that_wait_for_a_credit_end_too)
{
	rig.silent = true;
	call_start(&c[0], false);
	call_start(&c[1], true);
	rig_run(31 * NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(c[1].end, RPCRDMA_TIMEDOUT);
}

Test(rpcrdma_timeo, memory_of_a_soft_call_is_closed_before_it_ends)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	rig.x->conf.retrans = 0; /* it ends on the wire */
	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.soft = true;
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(fake_open_windows(), 1);
	rig_run(31 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_TIMEDOUT);
	cr_assert_eq(fake_open_windows(), 0);
	cr_assert_eq(rig.stats.quarantined, 1);
	rpcrdma_buf_put(rig.x, buf);
}

/* Decided, and kept until the connection is gone: the end of everything does not undo it. */
Test(rpcrdma_timeo, an_end_that_was_decided_stays)
{
	rig.x->conf.retrans = 0; /* it ends on the wire */
	rig.silent = true;
	call_start(&c[0], true);
	rig_run(9 * NSEC_PER_SEC);
	while (rig.stats.timeouts < 1)
		reactor_turn(rig.r, NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	rpcrdma_stop(rig.x);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_TIMEDOUT);
}

Test(rpcrdma_timeo, answered_calls_never_time_out)
{
	for (int i = 0; i < 50; i++) {
		call_start(&c[0], true);
		rig_run(3 * NSEC_PER_SEC);
		cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	}
	cr_assert_eq(rig.stats.timeouts, 0);
	cr_assert_eq(rig.up, 1);
}

/* Once it was not answered in time; a connection that is lost for another reason is none of it. */
Test(rpcrdma_timeo, a_call_to_be_given_back_is_not_sent_again)
{
	rig.silent = true;
	call_init(&c[0], 10);
	c[0].req.give_back = true;
	cr_assert_eq(call_send(&c[0]), 0);
	call_start(&c[1], false);
	rig_run(NSEC_PER_SEC);
	fake_down(-ECONNRESET);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.stats.timeouts, 0);
	rig_run(2 * rig.x->conf.timeo_ns);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_UNANSWERED);
	cr_assert_eq(c[1].done, 0);
	rig.silent = false;
	rig_run(5 * 60 * NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
}
