/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "rig.h"

static struct call c[12];

TestSuite(rpcrdma_conn, .init = rig_init);

Test(rpcrdma_conn, comes_up_with_receives_posted_and_private_data_sent)
{
	cr_assert(rig_connect());
	cr_assert_eq(rig.up, 1);
	cr_assert_eq(fake.recvs, 8 + 1 + RPCRDMA_REVERSE_RECVS);
	cr_assert_eq(fake.priv_len, 8);
	cr_assert_arr_eq(fake.priv, "\xf6\xab\x0e\x18\x01\x01\x03\x03", 8);
	cr_assert_eq(rpcrdma_generation(rig.x), 1);
	cr_assert_str_eq(rpcrdma_peer_name(rig.x), "10.0.0.1:20049");
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_MW);
	cr_assert_eq(rig.x->limits.send_max, 4096);
	cr_assert_eq(rig.stats.connects, 1);
	rig_fini();
}

Test(rpcrdma_conn, the_send_queue_holds_all_or_what_the_device_has)
{
	cr_assert(rig_connect());
	cr_assert_eq(fake.qp.send_wr, 8 + 1 + RPCRDMA_REVERSE_SENDS + 2 * rpcrdma_win_most(rig.x));
	rig_fini();
	rig_init();
	fake.caps.max_wr = 8 + 1 + RPCRDMA_REVERSE_RECVS;
	cr_assert(rig_connect());
	cr_assert_eq(fake.qp.send_wr, fake.caps.max_wr);
	rig_fini();
}

Test(rpcrdma_conn, comes_from_the_address_that_was_asked_for)
{
	rig.src = 0x0a000002;
	cr_assert(rig_connect());
	cr_assert_eq(fake.src, 0x0a000002);
	rig_fini();
	rig_init();
	cr_assert(rig_connect());
	cr_assert_eq(fake.src, 0);
	rig_fini();
}

Test(rpcrdma_conn, the_first_failure_is_final_and_names_the_step)
{
	fake.refuse = true;
	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_eq(rig.err, -ECONNREFUSED);
	cr_assert_str_eq(rig.step, "connect");
	rig_run(100 * NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_RESOLVE], 1);
	rig_fini();
}

Test(rpcrdma_conn, memory_that_cannot_be_registered_fails_in_set_up)
{
	fake.fail[FAKE_MR_REG] = -ENOMEM;
	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_eq(rig.err, -ENOMEM);
	cr_assert_str_eq(rig.step, "set-up");
	rig_fini();
}

Test(rpcrdma_conn, auto_falls_back_to_static_when_windows_are_short)
{
	fake.fail[FAKE_MW_ALLOC] = -ENOMEM;
	cr_assert(rig_connect());
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(fake.priv[5], 0);
	rig_fini();
}

/* A shortage ends, of a cgroup's limit for one; what the device cannot do it never can. */
Test(rpcrdma_conn, a_shortage_of_windows_is_for_one_connection)
{
	rig_quiet();
	cr_assert(rig_connect());
	fake.fail[FAKE_MW_ALLOC] = -EAGAIN;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(fake.priv[5], 0);
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_MW);
	cr_assert_eq(fake.priv[5], RPCRDMA_PRIV_F_INV);
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	fake.fail[FAKE_MW_ALLOC] = -EOPNOTSUPP;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	rig_fini();
}

Test(rpcrdma_conn, auto_is_static_without_windows_and_mw_an_error)
{
	fake.caps.mw2b = false;
	cr_assert(rig_connect());
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	rig_fini();
	rig_init();
	fake.caps.mw2b = false;
	rig.conf.memreg = RPCRDMA_MEMREG_MW;
	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_eq(rig.err, -EOPNOTSUPP);
	rig_fini();
}

Test(rpcrdma_conn, without_private_data_the_threshold_is_1024)
{
	fake.peer_priv_len = 0;
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits.send_max, 1024);
	cr_assert_eq(rig.x->limits.recv_max, 1024);
	cr_assert_leq(rpcrdma_inline_call_max(rig.x), 1024 - 28);
	rig_fini();
}

Test(rpcrdma_conn, larger_thresholds_need_both_sides)
{
	rig.conf.inline_size = 65536;
	memcpy(fake.peer_priv, "\xf6\xab\x0e\x18\x01\x00\x3f\x1f", 8);
	cr_assert(rig_connect());
	cr_assert_eq(fake.priv[6], 63);
	cr_assert_eq(rig.x->limits.send_max, 32768);
	cr_assert_eq(rig.x->limits.recv_max, 65536);
	call_init(&c[0], 4000);
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(rig.inline_len, 16000);
	rig_fini();
	rig_init(); /* ours are the lower ones */
	memcpy(fake.peer_priv, "\xf6\xab\x0e\x18\x01\x00\x3f\x1f", 8);
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits.send_max, 4096);
	cr_assert_eq(rig.x->limits.recv_max, 4096);
	rig_fini();
}

Test(rpcrdma_conn, a_threshold_that_changes_makes_other_limits)
{
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits_seq, 1);
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(rig.x->limits_seq, 1, "what fitted still fits");
	fake.peer_priv[6] = 1; /* what it sends */
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.x->limits.recv_max, 2048);
	cr_assert_eq(rig.x->limits_seq, 2);
	fake.peer_priv[7] = 1; /* what it receives */
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.x->limits.send_max, 2048);
	cr_assert_eq(rig.x->limits_seq, 3);
	rig_fini();
}

Test(rpcrdma_conn, foreign_private_data_is_as_none)
{
	fake.peer_priv[0] = 0;
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits.send_max, 1024);
	rig_fini();
	rig_init();
	fake.peer_priv[4] = 2;
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits.send_max, 1024);
	rig_fini();
	rig_init();
	fake.peer_priv_len = 7;
	cr_assert(rig_connect());
	cr_assert_eq(rig.x->limits.send_max, 1024);
	rig_fini();
}

Test(rpcrdma_conn, it_says_what_it_is_while_it_is_up)
{
	struct rpcrdma_facts f = {.mtu = 7};

	rig.grant = 5;
	memcpy(fake.peer_priv, "\xf6\xab\x0e\x18\x01\x00\x3f\x1f", 8);
	cr_assert(rig_connect());
	cr_assert(rpcrdma_facts(rig.x, &f));
	cr_assert_eq(f.fabric, RPCRDMA_FABRIC_VERBS);
	cr_assert_eq(((struct sockaddr_in *)&f.local)->sin_addr.s_addr, htonl(0x0a000002));
	cr_assert_eq(((struct sockaddr_in *)&f.remote)->sin_addr.s_addr, htonl(0x0a000001));
	cr_assert_eq(f.mtu, 1024);
	cr_assert_eq(f.version, 1);
	cr_assert(f.has_priv);
	cr_assert_eq(f.peer_send, 65536);
	cr_assert_eq(f.peer_recv, 32768);
	cr_assert_eq(f.asked, 8);
	cr_assert_eq(f.granted, 1, "nothing was answered yet");
	call_start(&c[0], false);
	rig_run(NSEC_PER_MSEC);
	cr_assert_eq(c[0].done, 1);
	cr_assert(rpcrdma_facts(rig.x, &f));
	cr_assert_eq(f.granted, 5);
	fake_down(-EIO);
	rig_run(1000);
	cr_assert_eq(rig.down, 1);
	f.mtu = 7;
	cr_assert_not(rpcrdma_facts(rig.x, &f));
	cr_assert_eq(f.mtu, 7);
	rig_fini();
	rig_init();
	fake.peer_priv_len = 0;
	cr_assert(rig_connect());
	cr_assert(rpcrdma_facts(rig.x, &f));
	cr_assert_not(f.has_priv);
	rig_fini();
}

/* RFC 8797 section 3.2: with standing registrations R is clear. */
Test(rpcrdma_conn, an_invalidation_where_r_is_clear_replaces_the_connection)
{
	struct rpcrdma_hdr h;
	uint8_t body[24] = {0};
	struct rpcrdma_buf *buf;

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	cr_assert(rig_connect());
	cr_assert_eq(fake.priv[5], 0);
	buf = rpcrdma_buf_get(rig.x);
	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	h = rig.hdr;
	h.writes[0].segs[0].len = 0;
	put_be32(body, h.xid);
	put_be32(body + 4, RPC_MSG_REPLY);
	rig_send_hdr(&h, body, sizeof(body), rig_key());
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_BADREPLY);
	cr_assert_eq(rig.stats.reconnects, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_conn, calls_in_flight_are_sent_again_in_order_with_the_same_xid)
{
	struct rpcrdma_buf *buf;
	uint32_t xids[4];

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	for (int i = 1; i < 5; i++) {
		call_init(&c[i], 20);
		c[i].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
		c[i].req.result_cnt = i == 2;
		cr_assert_eq(call_send(&c[i]), 0);
	}
	rig_run(1000);
	cr_assert_eq(rig.calls, 5);
	memcpy(xids, rig.xids + 1, sizeof(xids));
	rig.silent = false;
	fake_down(-ECONNRESET);
	call_start(&c[5], false);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(rig.down, 1);
	cr_assert_eq(rig.err, -ECONNRESET);
	cr_assert_eq(rig.calls, 10);
	cr_assert_arr_eq(rig.xids + 5, xids, sizeof(xids));
	for (unsigned int i = 0; i < 6; i++) {
		cr_assert_eq(c[i].order, i + 1);
		cr_assert_eq(c[i].end, RPCRDMA_REPLY);
	}
	cr_assert_eq(rig.stats.retransmits, 4);
	cr_assert_eq(rig.stats.reconnects, 1);
	cr_assert_eq(rig.stats.mw_binds, 2);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_conn, a_reply_that_waits_for_its_fence_is_delivered_when_the_connection_is_gone)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	rig.no_inval = true;
	fake.hold_invals = true;
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 0);
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 24);
	cr_assert_eq(c[0].open_windows, 0, "not when the invalidation was flushed");
	cr_assert_eq(rig.calls, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

/* I7: the rest of a batch of completions, and what the user sends meanwhile. */
Test(rpcrdma_conn, what_was_given_up_sends_and_believes_nothing)
{
	unsigned int posts;

	cr_assert(rig_connect());
	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	call_start(&c[1], false);
	call_start(&c[2], false);
	rig_run(1000);
	fake.same_batch = true;
	rig_error(c[1].req.xid, 99); /* after it nothing can be trusted */
	rig_reply(c[2].req.xid);
	rig.silent = false;
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_BADREPLY);
	cr_assert_eq(c[2].done, 1);
	cr_assert_eq(c[2].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.retransmits, 1);
	cr_assert_eq(rig.calls, 4);
	rpcrdma_reconnect(rig.x, "a test");
	posts = fake.count[FAKE_POST_SEND];
	call_start(&c[3], false);
	cr_assert_eq(fake.count[FAKE_POST_SEND], posts);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.up, 3);
	cr_assert_eq(c[3].end, RPCRDMA_REPLY);
	rig_fini();
}

Test(rpcrdma_conn, back_off_grows_and_starts_at_once_after_a_good_connection)
{
	unsigned int tries;

	cr_assert(rig_connect());
	call_start(&c[0], false);
	rig_run(NSEC_PER_SEC);
	fake.refuse = true;
	fake_down(0);
	rig_run(1000);
	cr_assert_eq(fake.count[FAKE_RESOLVE], 2); /* at once */
	rig_run(1200 * NSEC_PER_SEC);
	tries = fake.count[FAKE_RESOLVE];
	cr_assert_geq(tries, 1200 / 30);
	cr_assert_leq(tries, 10 + 1200 / 15 + 1);
	cr_assert_eq(rig.failed, 0);
	fake.refuse = false;
	rig_run(31 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	/* This one is good too: what the delay grew to is forgotten. */
	call_start(&c[1], false);
	rig_run(NSEC_PER_SEC);
	fake.refuse = true;
	fake_down(0);
	rig_run(NSEC_PER_MSEC);
	cr_assert_eq(rig.x->backoff_ns, rig.conf.backoff_min_ns);
	fake.refuse = false;
	rig_run(31 * NSEC_PER_SEC);
	rig_fini();
}

Test(rpcrdma_conn, an_address_that_cannot_be_resolved_for_a_while_is_tried_again)
{
	cr_assert(rig_connect());
	fake.fail[FAKE_RESOLVE] = -ENETUNREACH;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_RESOLVE], 3);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(rig.failed, 0);
	rig_fini();
}

Test(rpcrdma_conn, without_a_device_the_first_connection_needs_none)
{
	fake.fail[FAKE_RESOLVE] = -ENODEV;
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_SOFT);
	cr_assert_eq(fake.count[FAKE_RESOLVE], 2);
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.kind, FAB_SOFT, "nor do the next ones");
	rig_fini();
}

static char told[300];

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	if (strstr(line, "RoCEv2"))
		snprintf(told, sizeof(told), "%s", line);
}

Test(rpcrdma_conn, without_the_libraries_of_devices_neither_and_the_log_names_them)
{
	fake.fail[FAKE_RESOLVE] = -ELIBACC;
	fake.why = "librdmacm.so.1 is not installed";
	log_set_level(LOG_LVL_INFO);
	log_set_sink(keep_line, NULL);
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_SOFT);
	cr_assert_not_null(strstr(told, "librdmacm.so.1 is not installed"), "%s", told);
	cr_assert_str_eq(rpcrdma_failure_detail(rig.x), "", "it has done without");
	rig_fini();
	/* A mount has several lanes. */
	told[0] = '\0';
	rig_init();
	fake.fail[FAKE_RESOLVE] = -ELIBACC;
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_SOFT);
	cr_assert_str_eq(told, "", "it is told once");
	rig_fini();
}

/* It cannot be had either, which is what keeps the mount from its server. */
Test(rpcrdma_conn, what_keeps_it_from_doing_without_is_the_cause)
{
	fake.dev_err = -ENODEV;
	fake.fail_at = 2;
	fake.fail_err = -EADDRINUSE;
	cr_assert_not(rig_connect());
	cr_assert_eq(fake.count[FAKE_RESOLVE], 2);
	cr_assert_eq(rig.x->down_err, -EADDRINUSE);
	rig_fini();
}

/* An adapter that is new takes RoCE's packets, for instance. */
Test(rpcrdma_conn, the_cause_of_a_later_failure_is_told)
{
	cr_assert(rig_connect());
	log_set_level(LOG_LVL_INFO);
	log_set_sink(keep_line, NULL);
	fake.dev_err = -EADDRINUSE;
	fake.why = "the adapter takes packets of RoCEv2";
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_not_null(strstr(told, "the adapter takes"), "%s", told);
	told[0] = '\0';
	fake.dev_err = -ETIMEDOUT;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_str_eq(told, "", "as it is told that the server does not respond");
	fake.dev_err = 0;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	rig_fini();
}

static unsigned int losses, returns;

static void count_lines(void *ctx, enum log_level level, const char *line)
{
	losses += strstr(line, "connection lost") != NULL;
	returns += strstr(line, "connected again") != NULL;
}

/* By a server that ends each connection as soon as it is there, for instance. */
Test(rpcrdma_conn, a_loss_is_logged_once_in_five_seconds_with_what_follows_it)
{
	rig.conf.backoff_max_ns = rig.conf.backoff_min_ns;
	cr_assert(rig_connect());
	log_set_level(LOG_LVL_INFO);
	log_set_sink(count_lines, NULL);
	for (unsigned int i = 1; i <= 4; i++) {
		fake_down(-EIO);
		rig_run(NSEC_PER_SEC);
		cr_assert_eq(rig.up, i + 1);
		cr_assert_eq(losses, 1);
		cr_assert_eq(returns, 1);
	}
	rig_run(NSEC_PER_SEC);
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(losses, 2);
	cr_assert_eq(returns, 2);
	rig_fini();
}

Test(rpcrdma_conn, a_user_who_asks_for_a_device_hears_which_library_is_missing)
{
	rig.conf.fabric = RPCRDMA_FABRIC_VERBS;
	fake.fail[FAKE_RESOLVE] = -ELIBACC;
	fake.why = "librdmacm.so.1 is not installed";
	cr_assert_not(rig_connect());
	cr_assert_eq(fake.kind, FAB_VERBS);
	cr_assert_str_eq(rpcrdma_failure_detail(rig.x), "librdmacm.so.1 is not installed");
	rpcrdma_free(rig.x);
	reactor_free(rig.r);
}

Test(rpcrdma_conn, a_device_that_is_gone_for_a_while_is_waited_for)
{
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_VERBS);
	fake.fail[FAKE_RESOLVE] = -ENODEV;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.kind, FAB_VERBS);
	rig_fini();
}

/* A driver that is loaded after the mount: its adapter takes the port. */
static void becomes_soft(void)
{
	fake.fail[FAKE_RESOLVE] = -ENODEV;
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_SOFT);
	fake.why = "the adapter takes packets of RoCEv2";
	fake.no_way[FAB_SOFT] = -EADDRINUSE;
	log_set_level(LOG_LVL_INFO);
	log_set_sink(keep_line, NULL);
}

Test(rpcrdma_conn, a_device_that_comes_later_is_used_when_it_takes_the_port)
{
	struct rpcrdma_facts f;

	becomes_soft();
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.kind, FAB_VERBS);
	cr_assert(rpcrdma_facts(rig.x, &f));
	cr_assert_eq(f.fabric, RPCRDMA_FABRIC_VERBS);
	cr_assert_not_null(strstr(told, "the adapter takes"), "%s", told);
	cr_assert_not_null(strstr(told, "an RDMA device is looked for"), "%s", told);
	/* It carried calls: it is waited for. */
	fake.fail[FAKE_RESOLVE] = -ENODEV;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 3);
	cr_assert_eq(fake.kind, FAB_VERBS);
	rig_fini();
}

Test(rpcrdma_conn, so_it_is_when_the_kernel_takes_the_port)
{
	becomes_soft();
	fake.no_way[FAB_SOFT] = 0;
	fake.fail[FAKE_RESOLVE] = -EADDRINUSE; /* its socket cannot be bound */
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.kind, FAB_VERBS);
	rig_fini();
}

/* In a container, for instance. */
Test(rpcrdma_conn, a_device_that_cannot_be_used_does_not_keep_it_from_doing_without)
{
	unsigned int before;

	becomes_soft();
	fake.no_way[FAB_VERBS] = -ENODEV;
	before = fake.count[FAKE_RESOLVE];
	fake_down(-EIO);
	rig_run(100 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 1);
	cr_assert_gt(fake.count[FAKE_RESOLVE] - before, 6);
	cr_assert_lt(fake.count[FAKE_RESOLVE] - before, 30, "two in each attempt");
	fake.no_way[FAB_SOFT] = 0; /* RoCE was turned off */
	rig_run(100 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.kind, FAB_SOFT);
	rig_fini();
}

Test(rpcrdma_conn, a_queue_pair_that_cannot_be_had_is_no_reason_for_a_device)
{
	becomes_soft();
	fake.no_way[FAB_SOFT] = 0;
	fake.dev_err = -EADDRINUSE;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.kind, FAB_SOFT);
	fake.dev_err = 0;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	rig_fini();
}

Test(rpcrdma_conn, who_asks_for_a_fabric_gets_no_other)
{
	rig.conf.fabric = RPCRDMA_FABRIC_VERBS;
	fake.fail[FAKE_RESOLVE] = -ENODEV;
	cr_assert_not(rig_connect());
	cr_assert_eq(fake.kind, FAB_VERBS);
	rpcrdma_free(rig.x);
	rig.conf.fabric = RPCRDMA_FABRIC_SOFT;
	reactor_free(rig.r);
	cr_assert(rig_connect());
	cr_assert_eq(fake.kind, FAB_SOFT);
	fake.no_way[FAB_SOFT] = -EADDRINUSE;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.kind, FAB_SOFT);
	fake.no_way[FAB_SOFT] = 0;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	rig_fini();
}

Test(rpcrdma_conn, a_connection_that_keeps_breaking_does_not_spin)
{
	cr_assert(rig_connect());
	for (int i = 0; i < 100; i++) {
		fake_down(-EIO);
		rig_run(10 * NSEC_PER_MSEC);
	}
	cr_assert_leq(rig.up, 12);
	rig_fini();
}

Test(rpcrdma_conn, reconnect_makes_a_new_one_at_once)
{
	cr_assert(rig_connect());
	rpcrdma_reconnect(rig.x, "test");
	cr_assert_not(rpcrdma_is_up(rig.x));
	rig_run(1000);
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_eq(rpcrdma_generation(rig.x), 2);
	fake.refuse = true;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	fake.refuse = false;
	rpcrdma_reconnect(rig.x, "test");
	rig_run(1000);
	cr_assert(rpcrdma_is_up(rig.x));
	rig_fini();
}

Test(rpcrdma_conn, another_device_gets_its_memory_registered_anew)
{
	cr_assert(rig_connect());
	cr_assert_eq(fake.count[FAKE_MR_REG], 12 + 3 + RPCRDMA_COPIES);
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_MR_REG], 12 + 3 + RPCRDMA_COPIES);
	fake.new_device = true;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_MR_REG], 2 * (12 + 3 + RPCRDMA_COPIES));
	cr_assert(rpcrdma_is_up(rig.x));
	rig_fini();
}

/* With an argument beside it, so that it cannot be a long call. */
Test(rpcrdma_conn, a_call_that_no_longer_fits_is_refused)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	rig.silent = true;
	call_init(&c[0], 500);
	c[0].req.args[0] = (struct rpcrdma_span){buf, buf->data, 4096};
	c[0].req.arg_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	fake.peer_priv_len = 0;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_REFUSED);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_conn, stop_ends_every_call_in_every_state)
{
	cr_assert(rig_connect());
	rig.silent = true;
	for (int i = 0; i < 6; i++)
		call_start(&c[i], false);
	rig_run(1000);
	rpcrdma_stop(rig.x);
	cr_assert_eq(c[0].done, 0); /* not from inside a call */
	cr_assert_eq(rig.stopped, 0);
	call_init(&c[6], 10);
	cr_assert_eq(call_send(&c[6]), -ESHUTDOWN);
	rpcrdma_req_put(rig.x, &c[6].req);
	rig_run(NSEC_PER_SEC);
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(c[i].done, 1);
		cr_assert_eq(c[i].end, RPCRDMA_SHUTDOWN);
	}
	cr_assert_eq(rig.stopped, 1);
	rig_fini();
}

Test(rpcrdma_conn, stop_while_the_server_is_away)
{
	cr_assert(rig_connect());
	fake.refuse = true;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	call_start(&c[0], false);
	rpcrdma_stop(rig.x);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_SHUTDOWN);
	rig_fini();
}

Test(rpcrdma_conn, stop_before_and_while_connecting)
{
	struct sockaddr_in dst = {.sin_family = AF_INET};

	rig_connect();
	rig_fini();
	for (int turns = 0; turns < 6; turns++) {
		rig_init();
		fake.server = NULL;
		rig.r = reactor_new_virtual();
		rig.x = rpcrdma_new(rig.r, &rig.conf, rpcrdma_test_ops(), NULL, &rig.stats);
		if (turns > 0)
			cr_assert_eq(rpcrdma_connect(rig.x, NULL, (struct sockaddr *)&dst), 0);
		for (int i = 1; i < turns; i++)
			reactor_turn(rig.r, 0);
		rig_fini();
	}
}

Test(rpcrdma_conn, nonsense_configurations_are_refused)
{
	struct rpcrdma_conf conf;

	rig.r = reactor_new_virtual();
	rpcrdma_conf_default(&conf);
	conf.credits = 0;
	cr_assert_null(rpcrdma_new(rig.r, &conf, rpcrdma_test_ops(), NULL, &rig.stats));
	cr_assert_eq(errno, EINVAL);
	rpcrdma_conf_default(&conf);
	conf.inline_size = 512;
	cr_assert_null(rpcrdma_new(rig.r, &conf, rpcrdma_test_ops(), NULL, &rig.stats));
	reactor_free(rig.r);
	rpcrdma_free(NULL);
}

/* ---- one call is the trouble ---- */

static void (*honest)(const uint8_t *msg, size_t len);
static uint32_t odd_xid;
static unsigned int odd_seen;
static uint64_t odd_until_ns;

static void closes_at_one_call(const uint8_t *msg, size_t len)
{
	if (get_be32(msg) != odd_xid) {
		honest(msg, len);
		return;
	}
	odd_seen++;
	fake_down(-ECONNRESET);
}

/* Twice beside others, then nine times alone; then it is answered. */
static void closes_eleven_times(const uint8_t *msg, size_t len)
{
	if (odd_seen < 11)
		closes_at_one_call(msg, len);
	else
		honest(msg, len);
}

static void late_with_one_call(const uint8_t *msg, size_t len)
{
	if (get_be32(msg) != odd_xid || reactor_now(rig.r) >= odd_until_ns)
		honest(msg, len);
	else
		odd_seen++;
}

static void odd_server(void (*server)(const uint8_t *msg, size_t len), uint32_t xid)
{
	honest = fake.server;
	fake.server = server;
	odd_xid = xid;
	odd_seen = 0;
}

Test(rpcrdma_conn, a_call_that_loses_each_connection_ends_and_the_others_go_on)
{
	rig_quiet();
	cr_assert(rig_connect());
	call_start(&c[6], false);
	rig_run(1000);
	odd_server(closes_at_one_call, rpcrdma_next_xid(rig.x) + 3);
	for (int i = 0; i < 6; i++)
		call_start(&c[i], false);
	rig_run(120 * NSEC_PER_SEC);
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(c[i].done, 1);
		cr_assert_eq(c[i].end, c[i].req.xid == odd_xid ? RPCRDMA_GIVENUP : RPCRDMA_REPLY);
		cr_assert(c[i].req.xid != odd_xid || c[i].order == 7, "the others went first");
	}
	cr_assert_eq(odd_seen, RPCRDMA_SUSPECT_LOSSES + RPCRDMA_ALONE_LOSSES);
	cr_assert_geq(rig.stats.probes, RPCRDMA_ALONE_LOSSES);
	cr_assert(rpcrdma_is_up(rig.x));
	rig_fini();
}

/* A link that breaks after every few calls meets the same one again and again. */
Test(rpcrdma_conn, a_call_that_is_unlucky_nine_times_is_answered)
{
	rig_quiet();
	cr_assert(rig_connect());
	call_start(&c[1], false);
	rig_run(1000);
	odd_server(closes_eleven_times, rpcrdma_next_xid(rig.x) + 1);
	call_start(&c[0], false);
	rig_run(300 * NSEC_PER_SEC);
	cr_assert_eq(odd_seen, 11);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rig_fini();
}

Test(rpcrdma_conn, a_server_that_keeps_crashing_ends_no_call)
{
	rig_quiet();
	cr_assert(rig_connect());
	call_start(&c[0], false);
	rig_run(1000);
	rig.silent = true;
	call_start(&c[1], false);
	rig_run(1000);
	for (int i = 0; i < 20; i++) { /* no connection answers anything */
		fake_down(-ECONNRESET);
		rig_run(40 * NSEC_PER_SEC);
	}
	cr_assert_eq(c[1].done, 0);
	rig.silent = false;
	rig_run(120 * NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	rig_fini();
}

/* c[0] is not answered; what is sent beside it is. */
static void begin_slow_call(void)
{
	call_start(&c[1], false);
	rig_run(1000);
	odd_server(late_with_one_call, 0);
	odd_until_ns = UINT64_MAX;
	call_init(&c[0], 10);
	odd_xid = get_be32(c[0].req.head);
	cr_assert_eq(call_send(&c[0]), 0);
}

/* A connection that answers is not replaced because one call takes long. */
Test(rpcrdma_conn, a_slow_call_does_not_cost_the_connection)
{
	cr_assert(rig_connect());
	begin_slow_call();
	for (int i = 0; i < 150; i++) {
		call_start(&c[1], false);
		rig_run(NSEC_PER_SEC);
		cr_assert_eq(c[1].done, 1);
	}
	cr_assert_eq(rig.stats.reconnects, 0);
	cr_assert_eq(odd_seen, 1);
	rig_reply(odd_xid);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rig_fini();
}

/* A server that forgot a call is asked again in the end, and holds up nobody then. */
Test(rpcrdma_conn, a_forgotten_call_is_sent_again_after_all_others)
{
	rig_quiet();
	cr_assert(rig_connect());
	begin_slow_call();
	for (int i = 0; i < 700; i++) {
		call_start(&c[1], false);
		rig_run(NSEC_PER_SEC);
		cr_assert_eq(c[1].done, 1, "%d", i);
	}
	cr_assert_eq(odd_seen, 3); /* at the start, after 5 and after 10 times timeo */
	cr_assert_eq(rig.stats.reconnects, 2);
	cr_assert_eq(rig.stats.probes, 2);
	odd_until_ns = 0;
	rig_run(301 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rig_fini();
}

/* ---- a server with several addresses ---- */

#define FIRST  0x0a000001u
#define SECOND 0x0a000002u

static struct addrs *two_addresses(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct addrs_list list = {0};

	in.sin_addr.s_addr = htonl(FIRST);
	cr_assert(addrs_list_add(&list, (struct sockaddr *)&in));
	in.sin_addr.s_addr = htonl(SECOND);
	cr_assert(addrs_list_add(&list, (struct sockaddr *)&in));
	return addrs_new(&list, 0, NULL, NULL, false);
}

Test(rpcrdma_conn, another_address_is_tried_when_one_is_dead)
{
	struct addrs *a = two_addresses();

	rig_quiet();
	rig.conf.addrs = a;
	cr_assert(rig_connect());
	cr_assert_eq(fake.dst, FIRST);
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	fake.refuse_dst = FIRST;
	fake_down(-ECONNRESET);
	call_start(&c[1], false);
	rig_run(20 * NSEC_PER_SEC);
	cr_assert_eq(fake.dst, SECOND);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	cr_assert(strstr(rpcrdma_peer_name(rig.x), "10.0.0.2"));
	/* It stays there. */
	fake.refuse_dst = 0;
	fake_down(-ECONNRESET);
	rig_run(20 * NSEC_PER_SEC);
	cr_assert_eq(fake.dst, SECOND);
	cr_assert_eq(rig.up, 3);
	rig_fini();
	addrs_free(a);
}

/* Of the others one has a connection: all lanes talk to one server. */
Test(rpcrdma_conn, no_other_address_is_tried_while_another_lane_is_connected)
{
	struct addrs *a = two_addresses();

	rig_quiet();
	rig.conf.addrs = a;
	cr_assert(rig_connect());
	cr_assert(addrs_up(a, 0));
	fake.refuse_dst = FIRST;
	fake_down(-ECONNRESET);
	rig_run(120 * NSEC_PER_SEC);
	cr_assert_eq(fake.dst, FIRST);
	addrs_down(a, false);
	rig_run(120 * NSEC_PER_SEC);
	cr_assert_eq(fake.dst, SECOND);
	cr_assert(rpcrdma_is_up(rig.x));
	rig_fini();
	addrs_free(a);
}

/* The other lanes try the next one. */
static void they_go_on(void)
{
	for (unsigned int i = 0; i < ADDRS_TRIES; i++)
		addrs_failed(rig.conf.addrs, 0);
	fake.connecting = NULL;
}

/* They went on while this one was still connecting. */
Test(rpcrdma_conn, a_connection_to_an_address_of_before_is_dropped)
{
	struct addrs *a = two_addresses();

	rig_quiet();
	rig.conf.addrs = a;
	cr_assert(rig_connect());
	fake.connecting = they_go_on;
	fake_down(-ECONNRESET);
	rig_run(5 * NSEC_PER_SEC);
	cr_assert_eq(fake.dst, SECOND);
	cr_assert_eq(rig.up, 2);
	rig_fini();
	addrs_free(a);
}
