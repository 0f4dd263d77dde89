/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

static struct call c[12];

static void start(void)
{
	rig_init();
	cr_assert(rig_connect());
}

TestSuite(rpcrdma_req, .init = start, .fini = rig_fini);

Test(rpcrdma_req, there_are_as_many_requests_as_credits_asked)
{
	struct rpcrdma_req reqs[9] = {0};
	uint32_t seen = 0;

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(rpcrdma_req_get(rig.x, &reqs[i]), 0);
		cr_assert_lt(reqs[i].idx, 8);
		cr_assert_eq(reqs[i].head_room, 4096);
		seen |= 1u << reqs[i].idx;
	}
	cr_assert_eq(seen, 0xff);
	cr_assert_eq(rpcrdma_req_get(rig.x, &reqs[8]), -EAGAIN);
	for (int i = 0; i < 8; i++)
		rpcrdma_req_put(rig.x, &reqs[i]);
}

Test(rpcrdma_req, get_keeps_done_and_clears_the_rest)
{
	struct rpcrdma_req req;
	void (*done)(struct rpcrdma_req *) = (void (*)(struct rpcrdma_req *))(uintptr_t)0x1234;

	memset(&req, 0xff, sizeof(req));
	req.done = done;
	cr_assert_eq(rpcrdma_req_get(rig.x, &req), 0);
	cr_assert_eq(req.done, done);
	cr_assert_eq(req.result_cnt, 0);
	cr_assert_not(req.soft);
	rpcrdma_req_put(rig.x, &req);
}

Test(rpcrdma_req, a_new_xid_is_never_one_of_a_call_in_flight)
{
	uint32_t xid;

	rig.silent = true;
	call_start(&c[0], false);
	xid = c[0].req.xid;
	rig.x->next_xid = xid - 1; /* once round */
	cr_assert_eq(rpcrdma_next_xid(rig.x), xid + 1);
	cr_assert_eq(rpcrdma_req_find(rig.x, xid)->req, &c[0].req);
	cr_assert_null(rpcrdma_req_find(rig.x, xid + 1));
}

Test(rpcrdma_req, xids_that_share_a_bucket_are_told_apart)
{
	uint32_t step = rig.x->hash_mask + 1, xid = 5;

	rig.silent = true;
	for (uint32_t i = 0; i < 4; i++) {
		call_init(&c[i], 10);
		put_be32(c[i].req.head, xid + i * step);
		cr_assert_eq(call_send(&c[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(rpcrdma_req_find(rig.x, xid + i * step)->req, &c[i].req);
	rig.silent = false;
	rig_run(1000);
	rig_reply(xid);
	rig_run(1000);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(c[i].done, 1);
	cr_assert_null(rpcrdma_req_find(rig.x, xid));
}

Test(rpcrdma_req, payload_of_a_fuse_write_is_page_aligned)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	cr_assert_eq((uintptr_t)buf->data % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	cr_assert_eq(buf->data - buf->mem, RPCRDMA_DATA_LEAD);
	memset(buf->mem, 1, RPCRDMA_DATA_LEAD + rig.conf.data_size + 4096);
	cr_assert_eq(rpcrdma_buf_free_count(rig.x), 11);
	rpcrdma_buf_put(rig.x, buf);
	cr_assert_eq(rpcrdma_buf_get(rig.x), buf, "the last one used is warm");
	rpcrdma_buf_put(rig.x, buf);
}

static struct rpcrdma_buf *start_read(bool soft)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	call_init(&c[0], 20);
	c[0].req.soft = soft;
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	return buf;
}

/* I2: while it waits for its Send and its fence all else comes that could end it. */
Test(rpcrdma_req, a_span_lies_in_its_buffer_to_the_last_byte)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);
	uint8_t *end = buf->data + rig.conf.data_size + rig.x->page;
	const struct {
		struct rpcrdma_span span;
		bool valid;
	} cases[] = {
		{{buf, buf->data, (size_t)(end - buf->data)}, true},
		{{buf, buf->data, (size_t)(end - buf->data) + 1}, false},
		{{buf, buf->data - 1, 1}, false},
		{{buf, end - 1, 1}, true},
		{{buf, end - 1, 2}, false},
		{{buf, end, 0}, true},
		{{buf, end, 1}, false},
		{{buf, end + 1, 0}, false},
		{{buf, buf->data + 8, UINT32_MAX}, false},
		{{NULL, NULL, 0}, true},
		{{NULL, buf->data, 1}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(rpcrdma_mem_span_is_valid(rig.x, &cases[i].span), cases[i].valid,
			"case %zu", i);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpcrdma_req, comes_back_once_whatever_ends_it)
{
	struct rpcrdma_buf *buf;
	uint32_t xid;

	rig.no_inval = true;
	fake.hold_sent = fake.hold_invals = true;
	buf = start_read(true);
	xid = rig.xids[0];
	rig_reply(xid);
	rig_error(xid, RDMA_ERR_CHUNK);
	rig_error(xid, 99);
	rig_run(1000);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.stats.stray_replies, 3);
	fake.hold_sent = fake.hold_invals = false;
	fake_down(-EIO);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY, "the first of them");
	cr_assert_eq(c[0].open_windows, 0);
	cr_assert_null(rpcrdma_req_find(rig.x, xid));
	rig_error(xid, RDMA_ERR_CHUNK);
	rig_run(rig.conf.timeo_ns * (rig.conf.retrans + 2));
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.calls, 1);
	rpcrdma_buf_put(rig.x, buf);
}

/* I4: its reply is here, and the server can still write. */
Test(rpcrdma_req, a_buffer_of_a_call_cannot_be_put_before_its_end, .signal = SIGABRT)
{
	struct rpcrdma_buf *buf;

	rig.no_inval = true;
	fake.hold_invals = true;
	buf = start_read(false);
	cr_assert_eq(c[0].req.pending, RPCRDMA_PENDING_INV);
	rpcrdma_buf_put(rig.x, buf);
}

/* I4: in ->done it is the user's again. */
static void put_in_done(struct rpcrdma_req *req)
{
	rpcrdma_buf_put(rig.x, req->args[0].buf);
	rpcrdma_buf_put(rig.x, req->results[0].sink.buf);
	c[0].done++;
	rpcrdma_req_put(rig.x, req);
}

Test(rpcrdma_req, all_buffers_of_a_call_can_be_put_when_it_is_done)
{
	struct rpcrdma_buf *arg = rpcrdma_buf_get(rig.x), *sink = rpcrdma_buf_get(rig.x);

	for (int i = 0; i < 3; i++) { /* by its reply, on the next connection, by the stop */
		rig.silent = i == 1;
		call_init(&c[0], 20);
		c[0].req.done = put_in_done;
		c[0].req.args[0] = (struct rpcrdma_span){arg, arg->data, 20000};
		c[0].req.arg_cnt = 1;
		c[0].req.results[0].sink = (struct rpcrdma_span){sink, sink->data, 20000};
		c[0].req.result_cnt = 1;
		cr_assert_eq(call_send(&c[0]), 0);
		if (i == 2)
			rpcrdma_stop(rig.x);
		rig_run(1000);
		cr_assert_eq(c[0].done, i != 1);
		rig.silent = false;
		if (i == 1)
			fake_down(-EIO);
		rig_run(NSEC_PER_SEC);
		cr_assert_eq(c[0].done, 1);
		cr_assert_eq(rpcrdma_buf_free_count(rig.x), rig.conf.data_cnt);
		arg = i < 2 ? rpcrdma_buf_get(rig.x) : NULL;
		sink = i < 2 ? rpcrdma_buf_get(rig.x) : NULL;
	}
}
