/* SPDX-License-Identifier: BSD-3-Clause */
/* How memory is exposed: what is chosen, what is told, how long keys live. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

#define COPIES 2u /* of calls that are too long for inline */

static struct call c[4];

TestSuite(rpcrdma_memreg, .init = rig_init);

/* RFC 8166 section 8.1: the user hears what the server can reach, once. */
Test(rpcrdma_memreg, auto_that_is_static_is_told_once_and_why)
{
	const struct rig_log *log = rig_log();

	fake.caps.mw2b = false;
	cr_assert(rig_connect());
	cr_assert_eq(log->lines, 1);
	cr_assert(strstr(log->last, "no type 2B memory windows on fake0"), "%s", log->last);
	for (int i = 0; i < 3; i++) {
		fake_down(0);
		rig_run(2 * NSEC_PER_SEC);
	}
	cr_assert_eq(rig.up, 4);
	cr_assert_eq(log->lines, 1);
	rig_fini();
	rig_init(); /* another lane */
	log = rig_log();
	fake.caps.mw2b = false;
	cr_assert(rig_connect());
	cr_assert_eq(log->lines, 0);
	fake.caps.mw2b = fake.new_device = true;
	fake_down(0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(log->lines, 0);
	fake.fail[FAKE_MW_ALLOC] = -EAGAIN;
	fake_down(0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(log->lines, 1);
	cr_assert(strstr(log->last, "no memory windows to be had on fake0"), "%s", log->last);
	rig_fini();
}

Test(rpcrdma_memreg, what_was_asked_for_is_not_told)
{
	const struct rig_log *log = rig_log();

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	fake.caps.mw2b = false;
	cr_assert(rig_connect());
	cr_assert_eq(log->lines, 0);
	rig_fini();
}

/* RFC 8166 section 8.1: who had the keys of a connection has none of the next. */
Test(rpcrdma_memreg, static_registrations_are_of_one_connection)
{
	struct rpcrdma_buf *buf;
	uint32_t key;

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	cr_assert(rig_connect());
	cr_assert_eq(fake_open_regs(), 2 * rig.conf.data_cnt + COPIES);
	buf = rpcrdma_buf_get(rig.x);
	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	key = rig_key();
	cr_assert(fake_mem(key, (uintptr_t)buf->data, 20000, FAB_REMOTE_WRITE));
	fake.refuse = true;
	fake_down(0);
	rig_run(1000);
	cr_assert_eq(fake_open_regs(), 0);
	rig_run(60 * NSEC_PER_SEC);
	/* attempts that failed told nobody a key: what they registered is good for the next */
	cr_assert_geq(fake.count[FAKE_CONNECT], 4);
	cr_assert_eq(fake.count[FAKE_MR_REG], 2 * (2 * 12 + COPIES) + 3);
	fake.refuse = rig.silent = false;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_neq(rig_key(), key);
	cr_assert_null(fake_mem(key, (uintptr_t)buf->data, 1, FAB_REMOTE_WRITE));
	cr_assert_eq(fake_open_regs(), 2 * rig.conf.data_cnt + COPIES);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
	rig_init(); /* Windows have keys of their own: what they are bound to stays. */
	cr_assert(rig_connect());
	fake_down(0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(fake.count[FAKE_MR_REG], 12 + COPIES + 3);
	rig_fini();
}

/* Windows are bound to other registrations than the attempt without them had made. */
Test(rpcrdma_memreg, a_shortage_of_windows_may_be_over_before_there_is_a_connection)
{
	struct rpcrdma_buf *buf;

	rig_quiet();
	cr_assert(rig_connect());
	fake.fail[FAKE_MW_ALLOC] = -EAGAIN;
	fake.refuse = true;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	fake.refuse = false;
	rig_run(60 * NSEC_PER_SEC);
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_MW);
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

static uint32_t first_word, second_word;

/* The peer changes the reply after it was looked at once. */
static void looks_twice(struct rpcrdma_req *req)
{
	cr_assert_eq(req->end, RPCRDMA_REPLY);
	cr_assert_eq(req->reply_len, 24 + 6000);
	first_word = get_be32(req->reply + 24);
	memset(req->reply_sink.p, 0xff, req->reply_sink.len);
	second_word = get_be32(req->reply + 24);
	rpcrdma_req_put(rig.x, req);
}

Test(rpcrdma_memreg, what_is_decoded_cannot_change)
{
	struct rpcrdma_buf *buf;

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	put_be32(rig.body, 0x12345678);
	rig.body_len = 6000;
	call_init(&c[0], 20);
	c[0].req.done = looks_twice;
	c[0].req.reply_max = 8000;
	c[0].req.reply_sink = (struct rpcrdma_span){buf, buf->data, 8000};
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(first_word, 0x12345678);
	cr_assert_eq(second_word, 0x12345678);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

/* ---- devices that promise windows ---- */

static void call_with_window(struct call *call, struct rpcrdma_buf *buf)
{
	call_init(call, 20);
	call->req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	call->req.result_cnt = 1;
	cr_assert_eq(call_send(call), 0);
}

/* It came up without windows, told so once, and goes on like that. */
static void is_static(const struct rig_log *log)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	cr_assert_eq(rig.up, 1);
	cr_assert_eq(rig.down, 0);
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(fake.priv[5], 0);
	cr_assert_eq(log->lines, 1);
	cr_assert(strstr(log->last, "memory windows that do not work on fake0"), "%s", log->last);
	call_with_window(&c[0], buf);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	fake_down(0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(log->lines, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_memreg, a_bind_that_is_refused_makes_it_static)
{
	const struct rig_log *log = rig_log();

	fake.bind_err = -EINVAL;
	cr_assert(rig_connect());
	cr_assert_eq(fake.count[FAKE_BIND], 1);
	is_static(log);
	cr_assert_eq(fake.count[FAKE_BIND], 1);
}

Test(rpcrdma_memreg, a_bind_that_fails_makes_it_static)
{
	const struct rig_log *log = rig_log();

	fake.bind_breaks = true;
	cr_assert(rig_connect());
	is_static(log);
	cr_assert_eq(fake.count[FAKE_BIND], 1);
}

Test(rpcrdma_memreg, an_invalidation_that_is_refused_or_fails_makes_it_static)
{
	const struct rig_log *log = rig_log();

	fake.fail[FAKE_INVALIDATE] = -EINVAL;
	cr_assert(rig_connect());
	is_static(log);
	rig_init();
	log = rig_log();
	fake.inval_breaks = true;
	cr_assert(rig_connect());
	cr_assert_eq(rpcrdma_memreg(rig.x), RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(log->lines, 0, "it is known to the user");
	rig_fini();
}

Test(rpcrdma_memreg, a_bind_that_never_completes_makes_it_static)
{
	const struct rig_log *log = rig_log();

	fake.hold_invals = true;
	cr_assert_not(rig_connect());
	rig_run(rig.conf.connect_timeout_ns + NSEC_PER_SEC);
	is_static(log);
}

/* The adapter dies of it, and all that is heard is that the connection is gone. */
Test(rpcrdma_memreg, a_bind_that_costs_three_connections_makes_it_static)
{
	const struct rig_log *log = rig_log();

	fake.bind_kills = true;
	cr_assert_not(rig_connect());
	rig_run(5 * NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_BIND], 3);
	is_static(log);
}

/* The server was reached once, by the attempt before: it is no reason to try for ever. */
Test(rpcrdma_memreg, a_first_connection_that_fails_after_the_trial_is_told)
{
	rig_quiet();
	fake.bind_kills = true;
	cr_assert_not(rig_connect());
	fake.refuse = true;
	rig_run(600 * NSEC_PER_SEC);
	cr_assert_eq(rig.failed, 1);
	cr_assert_eq(rig.err, -ECONNREFUSED);
	rig_fini();
}

Test(rpcrdma_memreg, windows_that_were_asked_for_and_do_not_work_are_an_error)
{
	const struct rig_log *log = rig_log();

	rig.conf.memreg = RPCRDMA_MEMREG_MW;
	fake.bind_err = -EINVAL;
	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_eq(rig.err, -EINVAL);
	cr_assert_eq(log->lines, 1);
	cr_assert(strstr(log->last, "use memreg=static"), "%s", log->last);
	rig_fini();
}

Test(rpcrdma_memreg, windows_are_tried_once_on_a_device_and_before_any_call)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	cr_assert_eq(fake.count[FAKE_BIND], 1);
	cr_assert_eq(fake.count[FAKE_INVALIDATE], 1);
	cr_assert_eq(fake_open_windows(), 0);
	cr_assert_eq(rig.x->win_free_cnt, rig.x->win_cnt);
	cr_assert_eq(rig.stats.mw_binds, 0);
	fake_down(0);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.count[FAKE_BIND], 1);
	fake.new_device = true;
	fake_down(0);
	call_with_window(&c[0], buf);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.up, 3);
	cr_assert_eq(fake.count[FAKE_BIND], 2);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

/* Another device is another matter, in both directions. */
Test(rpcrdma_memreg, a_device_whose_windows_do_not_work_says_nothing_of_the_next)
{
	struct rpcrdma_buf *buf;

	rig_quiet();
	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	for (int i = 0; i < 4; i++) {
		fake.bind_err = i & 1 ? 0 : -EOPNOTSUPP;
		fake.new_device = true;
		fake_down(0);
		rig_run(2 * NSEC_PER_SEC);
		cr_assert_eq(
			rpcrdma_memreg(rig.x), i & 1 ? RPCRDMA_MEMREG_MW : RPCRDMA_MEMREG_STATIC);
		call_with_window(&c[0], buf);
		rig_run(1000);
		cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	}
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_memreg, a_stop_during_the_trial_is_one)
{
	fake.hold_invals = true;
	cr_assert_not(rig_connect());
	rig_fini();
}

/* ---- no memory, no device ---- */

static void first_fails(const char *hint)
{
	const char *said;

	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_str_eq(rig.step, "set-up");
	said = rpcrdma_failure_detail(rig.x);
	cr_assert(strstr(said, hint), "%s", said);
	rig_fini();
	rig_init();
	rig_quiet();
}

/* "Resource temporarily unavailable" makes nobody think of it. */
Test(rpcrdma_memreg, the_rdma_cgroup_is_named)
{
	rig_quiet();
	fake.fail[FAKE_MR_REG] = -EAGAIN;
	first_fails("rdma cgroup");
	fake.dev_err = -EAGAIN;
	first_fails("rdma cgroup");
	cr_assert_null(strstr(rpcrdma_mem_strerror(ENOMEM), "cgroup"));
}

Test(rpcrdma_memreg, a_device_that_takes_less_than_a_buffer_is_named)
{
	rig_quiet();
	fake.caps.max_mr_size = 8192;
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("fake0 takes 8 KiB at once");
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("Invalid argument");
	fake.caps.max_mr_size = 0; /* not known */
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("Invalid argument");
}

/* ---- another device ---- */

/* A bond of two different ones. The fake fabric stops the test at a Send with too many pieces. */
Test(rpcrdma_memreg, a_device_that_gathers_less_gets_calls_that_fit_it)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, buf->data, 101};
	c[0].req.arg_cnt = 1;
	c[0].req.tail_len = 8;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(rig.hdr.read_cnt, 0);
	rig.silent = false;
	fake.caps.max_sge = 2;
	fake.new_device = true;
	fake_down(-EIO);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(fake.qp.max_send_sge, 2);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.hdr.read_cnt, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}
