/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "rig.h"

static struct call c[12];

static void start(void)
{
	rig_init();
	rig.conf.idle_probe_ns = 5 * NSEC_PER_SEC;
	rig.conf.probe_timeout_ns = 2 * NSEC_PER_SEC;
	rig.conf.timeo_ns = 600 * NSEC_PER_SEC;
	cr_assert(rig_connect());
}

TestSuite(rpcrdma_probe, .init = start, .fini = rig_fini);

Test(rpcrdma_probe, an_idle_connection_is_probed_with_nfs_null)
{
	rig_run(5500 * NSEC_PER_MSEC);
	cr_assert_eq(rig.stats.probes, 1);
	cr_assert_eq(rig.msg_len, 40);
	cr_assert_eq(get_be32(rig.msg + 12), 100003);
	cr_assert_eq(get_be32(rig.msg + 16), 4);
	cr_assert_eq(get_be32(rig.msg + 20), 0);
	cr_assert_eq(get_be32(rig.msg + 24), 0);
	rig_run(50 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 1);
	cr_assert_geq(rig.stats.probes, 9);
	cr_assert_eq(rig.stats.rpcs, 0);
	cr_assert_eq(rig.stats.replies, 0);
}

Test(rpcrdma_probe, traffic_makes_probes_needless)
{
	for (int i = 0; i < 20; i++) {
		call_start(&c[0], false);
		rig_run(3 * NSEC_PER_SEC);
	}
	cr_assert_eq(rig.stats.probes, 0);
}

Test(rpcrdma_probe, a_dead_server_is_noticed_in_bounded_time)
{
	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	call_start(&c[1], false);
	rig_run(6900 * NSEC_PER_MSEC);
	cr_assert_eq(rig.down, 0);
	rig.silent = false;
	rig_run(300 * NSEC_PER_MSEC);
	cr_assert_eq(rig.down, 1);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.probes, 1);
}

Test(rpcrdma_probe, any_message_is_a_sign_of_life)
{
	uint32_t xid;

	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	call_start(&c[1], false);
	rig_run(1000);
	xid = c[1].req.xid;
	rig_run(6 * NSEC_PER_SEC);
	cr_assert_eq(rig.stats.probes, 1);
	rig_reply(xid);
	rig_run(4 * NSEC_PER_SEC);
	cr_assert_eq(rig.down, 0);
	/* the old probe, still unanswered, counts for the next silence */
	rig_run(4 * NSEC_PER_SEC);
	cr_assert_eq(rig.down, 1);
	rig.silent = false;
	rig_run(NSEC_PER_SEC);
}

Test(rpcrdma_probe, a_send_that_nobody_takes_ends_the_connection)
{
	rig.x->conf.send_stall_ns = 3 * NSEC_PER_SEC;
	call_start(&c[0], false);
	rig_run(NSEC_PER_SEC);
	rig.silent = fake.hold_sent = true;
	call_start(&c[1], false);
	rig_run(2900 * NSEC_PER_MSEC);
	cr_assert_eq(rig.down, 0);
	rig.silent = fake.hold_sent = false;
	rig_run(200 * NSEC_PER_MSEC);
	cr_assert_eq(rig.down, 1);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.probes, 0);
}

/* An adapter whose packets are sent again after 8.6 s, as an administrator may want it. */
Test(rpcrdma_probe, a_lost_packet_is_sent_again_before_the_connection_is_given_up)
{
	static const struct {
		uint8_t timeout, tries;
		unsigned int stall_s;
	} paths[] = {{21, 7, 17}, {21, 0, 9}, {18, 7, 9}, {0, 7, 9}};

	rig.x->conf.idle_probe_ns = 0;
	rig.x->conf.send_stall_ns = 9 * NSEC_PER_SEC;
	for (int i = 0; i < 4; i++) {
		unsigned int before;

		fake.ack_timeout = paths[i].timeout;
		fake.ack_tries = paths[i].tries;
		rpcrdma_reconnect(rig.x, "test");
		rig_run(NSEC_PER_SEC);
		before = rig.down;
		rig.silent = fake.hold_sent = true;
		call_start(&c[0], false);
		rig_run(paths[i].stall_s * NSEC_PER_SEC - NSEC_PER_MSEC);
		cr_expect_eq(rig.down, before, "%d", i);
		rig.silent = fake.hold_sent = false;
		rig_run(NSEC_PER_SEC);
		cr_expect_eq(rig.down, before + 1, "%d", i);
		rig_run(NSEC_PER_SEC);
		cr_expect_eq(c[0].end, RPCRDMA_REPLY);
	}
}

Test(rpcrdma_probe, sends_that_complete_need_no_answer)
{
	rig.x->conf.send_stall_ns = 2 * NSEC_PER_SEC;
	rig.x->conf.idle_probe_ns = 60 * NSEC_PER_SEC;
	rig.silent = true;
	call_start(&c[0], false);
	rig_run(20 * NSEC_PER_SEC);
	cr_assert_eq(rig.down, 0);
	rig.silent = false;
	rig_reply(c[0].req.xid);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
}

Test(rpcrdma_probe, what_arrives_or_completes_puts_the_end_off)
{
	rig.x->conf.send_stall_ns = 3 * NSEC_PER_SEC;
	fake.hold_sent = true;
	call_start(&c[0], false);
	rig_run(2 * NSEC_PER_SEC);
	fake_flush_sent();
	call_start(&c[1], false);
	rig_run(2 * NSEC_PER_SEC);
	rig_reverse_call(77);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.down, 0);
	rig_run(1500 * NSEC_PER_MSEC);
	cr_assert_eq(rig.down, 1);
	fake.hold_sent = false;
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
}

Test(rpcrdma_probe, without_a_credit_there_is_no_probe)
{
	rig.silent = true;
	call_start(&c[0], false);
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(rig.stats.probes, 0);
	cr_assert_eq(rig.down, 0);
}

Test(rpcrdma_probe, a_probe_is_not_sent_again_on_the_next_connection)
{
	rig.silent = true;
	rig_run(6 * NSEC_PER_SEC);
	cr_assert_eq(rig.stats.probes, 1);
	fake_down(0);
	rig.silent = false;
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(rig.calls, 1);
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
}
