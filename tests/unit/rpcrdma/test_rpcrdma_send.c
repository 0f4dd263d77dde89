/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

static struct call c[12];

TestSuite(rpcrdma_send, .init = rig_init);

static uint8_t *pattern(struct rpcrdma_buf *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf->data[i] = (uint8_t)(i * 7 + 1);
	return buf->data;
}

Test(rpcrdma_send, an_inline_call_and_its_reply_make_a_round)
{
	cr_assert(rig_connect());
	rig.body_len = 12;
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 36);
	cr_assert_eq(rig.hdr.credits, 8);
	cr_assert_eq(rig.msg_len, 40);
	cr_assert_eq(rig.stats.inline_calls, 1);
	cr_assert_eq(rig.stats.inline_replies, 1);
	cr_assert_eq(rig.stats.mw_binds, 0);
	rig_fini();
}

Test(rpcrdma_send, one_call_goes_before_the_first_reply_then_as_many_as_granted)
{
	cr_assert(rig_connect());
	rig.silent = true;
	for (int i = 0; i < 8; i++)
		call_start(&c[i], false);
	rig_run(1000);
	cr_assert_eq(rig.calls, 1);
	cr_assert_eq(rig.stats.credit_waits, 7);
	rig.grant = 4;
	rig_reply(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 4); /* three more: one of four credits is the probe's */
	rig.grant = 0;
	rig_reply(rig.xids[1]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 4);
	rig_reply(rig.xids[2]);
	rig_reply(rig.xids[3]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 5); /* one at a time */
	rig.silent = false;
	rig.grant = 1000000;
	rig_reply(rig.xids[4]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 8);
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(c[i].order, i + 1);
	rig_fini();
}

Test(rpcrdma_send, small_args_are_gathered_in_place)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, pattern(buf, 1001), 1001};
	c[0].req.arg_cnt = 1;
	c[0].req.tail_len = 12;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.hdr.read_cnt, 0);
	cr_assert_eq(rig.msg_len, 80 + 1004);
	cr_assert_arr_eq(rig.msg + 68, buf->data, 1001);
	cr_assert_arr_eq(rig.msg + 68 + 1001, "\0\0\0", 3);
	cr_assert_eq(get_be32(rig.msg + 68 + 1004), 0xc0000000u + 17);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_send, large_args_are_read_by_the_server_and_remotely_invalidated)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, pattern(buf, 50001), 50001};
	c[0].req.arg_cnt = 1;
	c[0].req.tail_len = 12;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.hdr.read_cnt, 1);
	cr_assert_eq(rig.hdr.reads[0].pos, 68);
	cr_assert_eq(rig.inline_len, 80); /* no trace of the args, no round-up */
	cr_assert_arr_eq(rig.msg + 68, buf->data, 50001);
	cr_assert_eq(rig.stats.mw_binds, 1);
	cr_assert_eq(rig.stats.remote_invals, 1);
	cr_assert_eq(rig.stats.local_invals, 0);
	cr_assert_eq(fake_open_windows(), 0);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_send, segments_share_one_window)
{
	struct rpcrdma_buf *buf;

	rig.conf.max_seg = 4096;
	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, pattern(buf, 50001), 50001};
	c[0].req.arg_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.hdr.read_cnt, 13);
	cr_assert_arr_eq(rig.msg + 80, buf->data, 50001);
	cr_assert_eq(rig.stats.mw_binds, 1);
	cr_assert_eq(rig.stats.remote_invals, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

/* Three buffers, none of a length that XDR likes. */
static void in_pieces(struct call *call, struct rpcrdma_buf *bufs[3])
{
	static const uint32_t lens[3] = {16385, 20002, 5000};

	call_init(call, 20);
	for (unsigned int i = 0; i < 3; i++) {
		bufs[i] = rpcrdma_buf_get(rig.x);
		pattern(bufs[i], lens[i]);
		bufs[i]->data[0] = (uint8_t)(0xa0 + i);
		call->req.args[i] = (struct rpcrdma_span){bufs[i], bufs[i]->data, lens[i]};
	}
	call->req.arg_cnt = 3;
	call->req.tail_len = 12;
	cr_assert_eq(call_send(call), 0);
	rig_run(1000);
}

static void pieces_came(struct call *call, struct rpcrdma_buf *bufs[3])
{
	size_t at = 68;

	cr_assert_eq(call->done, 1);
	cr_assert_eq(call->end, RPCRDMA_REPLY);
	cr_assert_eq(rig.inline_len, 80);
	cr_assert_eq(rig.msg_len, 80 + 16385 + 20002 + 5000);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_arr_eq(rig.msg + at, bufs[i]->data, call->req.args[i].len);
		at += call->req.args[i].len;
		rpcrdma_buf_put(rig.x, bufs[i]);
	}
	cr_assert_eq(get_be32(rig.msg + at), 0xc0000000u + 17, "the tail, and no round-up");
	cr_assert_eq(rig.stats.copied_bytes, 0);
}

Test(rpcrdma_send, args_in_pieces_are_one_read_chunk)
{
	struct rpcrdma_buf *bufs[3];
	unsigned int posts;

	cr_assert(rig_connect());
	posts = fake.count[FAKE_INVALIDATE];
	in_pieces(&c[0], bufs);
	cr_assert_eq(rig.hdr.read_cnt, 3);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(rig.hdr.reads[i].pos, 68);
		cr_assert_eq(rig.hdr.reads[i].seg.len, c[0].req.args[i].len);
		cr_assert_eq(rig.hdr.reads[i].seg.off, (uintptr_t)bufs[i]->data);
	}
	pieces_came(&c[0], bufs);
	cr_assert_eq(rig.stats.mw_binds, 3);
	cr_assert_eq(rig.stats.remote_invals, 0);
	cr_assert_eq(rig.stats.local_invals, 3);
	cr_assert_eq(fake.count[FAKE_INVALIDATE], posts + 1, "with one post");
	cr_assert_eq(fake_open_windows(), 0);
	rig_fini();
}

Test(rpcrdma_send, args_in_pieces_have_standing_keys_too)
{
	struct rpcrdma_buf *bufs[3];

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	cr_assert(rig_connect());
	in_pieces(&c[0], bufs);
	pieces_came(&c[0], bufs);
	cr_assert_eq(rig.stats.local_invals, 0);
	rig_fini();
}

Test(rpcrdma_send, args_in_pieces_are_sent_again_with_new_keys)
{
	struct rpcrdma_buf *bufs[3];

	cr_assert(rig_connect());
	rig.silent = true;
	in_pieces(&c[0], bufs);
	cr_assert_eq(c[0].done, 0);
	rig.silent = false;
	fake_down(0);
	rig_run(NSEC_PER_SEC);
	pieces_came(&c[0], bufs);
	cr_assert_eq(rig.stats.retransmits, 1);
	rig_fini();
}

Test(rpcrdma_send, more_pieces_than_there_can_be_are_refused)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	for (unsigned int i = 0; i < RPCRDMA_MAX_ARGS; i++)
		c[0].req.args[i] = (struct rpcrdma_span){buf, buf->data, 100};
	c[0].req.arg_cnt = RPCRDMA_MAX_ARGS + 1;
	cr_assert_eq(call_send(&c[0]), -EINVAL);
	c[0].req.arg_cnt = RPCRDMA_MAX_ARGS;
	c[0].req.args[7].p = buf->mem - 1;
	cr_assert_eq(call_send(&c[0]), -EINVAL);
	c[0].req.args[7].p = buf->data;
	cr_assert_eq(call_send(&c[0]), 0, "as many as there can be");
	rig_run(1000);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

static void long_call(struct call *call, struct rpcrdma_buf *buf, uint32_t len)
{
	call_init(call, 2);
	pattern(buf, len);
	memcpy(buf->data, call->req.head, 8);
	call->req.head_len = 0;
	call->req.long_call = (struct rpcrdma_span){buf, buf->data, len};
}

Test(rpcrdma_send, a_long_call_is_read_from_position_zero)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	long_call(&c[0], buf, 60000);
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.hdr.proc, RDMA_NOMSG);
	cr_assert_eq(rig.inline_len, 0);
	cr_assert_eq(rig.msg_len, 60000);
	cr_assert_arr_eq(rig.msg, buf->data, 60000);
	cr_assert_eq(rig.stats.long_calls, 1);
	long_call(&c[1], buf, 400);
	cr_assert_eq(call_send(&c[1]), 0);
	rig_run(1000);
	cr_assert_eq(c[1].done, 1);
	cr_assert_eq(rig.hdr.proc, RDMA_MSG);
	cr_assert_arr_eq(rig.msg, buf->data, 400);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

static void too_long(struct call *call)
{
	call_init(call, 300);
	cr_assert_eq(call_send(call), 0);
}

/* Built in head: two of them at once, further ones after these. */
Test(rpcrdma_send, a_call_too_long_for_a_small_threshold_is_read_from_a_copy)
{
	uint8_t msg[1200];

	fake.peer_priv_len = 0;
	rig.no_inval = true;
	cr_assert(rig_connect());
	call_start(&c[11], false); /* brings credits */
	rig_run(1000);
	cr_assert_eq(rig.x->limits.send_max, 1024);
	rig.silent = true;
	too_long(&c[0]);
	memcpy(msg, c[0].req.head, sizeof(msg));
	rig_run(1000);
	cr_assert_eq(rig.hdr.proc, RDMA_NOMSG);
	cr_assert_eq(rig.msg_len, sizeof(msg));
	cr_assert_arr_eq(rig.msg, msg, sizeof(msg));
	for (int i = 1; i < 4; i++)
		too_long(&c[i]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 1 + RPCRDMA_COPIES);
	rig.silent = false;
	rig_reply(rig.xids[1]);
	rig_run(1000);
	cr_assert_eq(c[0].done + c[2].done + c[3].done, 3);
	rig_reply(rig.xids[2]);
	rig_run(1000);
	cr_assert_eq(c[1].done, 1);
	cr_assert_eq(rig.stats.long_calls, 4);
	cr_assert_eq(fake_open_windows(), 0);
	rig_fini();
}

/* Over a lost connection, and to a server that takes less than the one before. */
Test(rpcrdma_send, what_fitted_inline_before_is_read_from_a_copy)
{
	cr_assert(rig_connect());
	rig.silent = true;
	too_long(&c[0]);
	rig_run(1000);
	cr_assert_eq(rig.hdr.proc, RDMA_MSG);
	fake.peer_priv_len = 0;
	fake_down(-ECONNRESET);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.hdr.proc, RDMA_NOMSG);
	rig.silent = false;
	fake_down(-ECONNRESET); /* while the copy is out */
	rig_run(5 * NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	rig_fini();
}

Test(rpcrdma_send, a_long_call_with_args_uses_two_windows_and_takes_them_back_itself)
{
	struct rpcrdma_buf *a, *b;

	cr_assert(rig_connect());
	a = rpcrdma_buf_get(rig.x);
	b = rpcrdma_buf_get(rig.x);
	long_call(&c[0], a, 20000);
	c[0].req.args[0] = (struct rpcrdma_span){b, pattern(b, 8192), 8192};
	c[0].req.arg_cnt = 1;
	c[0].req.tail_len = 8;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.hdr.read_cnt, 2);
	cr_assert_eq(rig.msg_len, 28192);
	cr_assert_arr_eq(rig.msg + 19992, b->data, 8192);
	cr_assert_eq(rig.stats.mw_binds, 2);
	cr_assert_eq(rig.stats.local_invals, 2);
	cr_assert_eq(rig.stats.remote_invals, 0);
	rpcrdma_buf_put(rig.x, a);
	rpcrdma_buf_put(rig.x, b);
	rig_fini();
}

Test(rpcrdma_send, a_request_is_not_finished_before_its_send_completed)
{
	cr_assert(rig_connect());
	fake.hold_sent = true;
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(rig.calls, 1);
	cr_assert_eq(c[0].done, 0);
	fake_flush_sent();
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	fake.hold_sent = false;
	rig_fini();
}

Test(rpcrdma_send, bad_calls_are_refused_and_stay_the_users)
{
	struct rpcrdma_buf *buf;

	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.reply_max = 65536; /* without a Reply chunk */
	cr_assert_eq(call_send(&c[0]), -EMSGSIZE);
	c[0].req.reply_sink = (struct rpcrdma_span){buf, buf->data, 1u << 30};
	cr_assert_eq(call_send(&c[0]), -EINVAL);
	c[0].req.reply_sink = (struct rpcrdma_span){0};
	c[0].req.reply_max = 100;
	c[0].req.args[0] = (struct rpcrdma_span){buf, buf->mem - 1, 10};
	c[0].req.arg_cnt = 1;
	cr_assert_eq(call_send(&c[0]), -EINVAL);
	c[0].req.arg_cnt = 0;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_send, static_registration_binds_nothing)
{
	struct rpcrdma_buf *buf;

	rig.conf.memreg = RPCRDMA_MEMREG_STATIC;
	cr_assert(rig_connect());
	cr_assert_eq(fake.priv[5], 0);
	buf = rpcrdma_buf_get(rig.x);
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, pattern(buf, 50000), 50000};
	c[0].req.arg_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_arr_eq(rig.msg + 80, buf->data, 50000);
	cr_assert_eq(rig.stats.mw_binds, 0);
	cr_assert_eq(rig.stats.local_invals, 0);
	rpcrdma_buf_put(rig.x, buf);
	rig_fini();
}

Test(rpcrdma_send, a_full_queue_is_waited_for)
{
	cr_assert(rig_connect());
	call_start(&c[0], false);
	rig_run(1000);
	call_start(&c[1], false);
	fake.fail[FAKE_POST_SEND] = -ENOMEM;
	call_start(&c[2], false);
	rig_run(1000);
	cr_assert_eq(c[1].done, 1);
	cr_assert_eq(c[2].done, 1);
	cr_assert_eq(rig.stats.reconnects, 0);
	rig_fini();
}

Test(rpcrdma_send, unblocked_tells_when_requests_and_buffers_come_back)
{
	struct rpcrdma_buf *bufs[12];
	struct rpcrdma_req extra = {0};

	cr_assert(rig_connect());
	rig.silent = true;
	for (int i = 0; i < 8; i++)
		call_start(&c[i], false);
	cr_assert_eq(rpcrdma_req_get(rig.x, &extra), -EAGAIN);
	rig_run(1000);
	cr_assert_eq(rig.unblocked, 0);
	rig.silent = false;
	rig_reply(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(rig.unblocked, 1);
	for (int i = 0; i < 12; i++)
		bufs[i] = rpcrdma_buf_get(rig.x);
	cr_assert_null(rpcrdma_buf_get(rig.x));
	for (int i = 0; i < 12; i++)
		rpcrdma_buf_put(rig.x, bufs[i]);
	cr_assert_eq(rig.unblocked, 1); /* not from inside a call */
	rig_run(1000);
	cr_assert_eq(rig.unblocked, 2);
	cr_assert_eq(rig.stats.buf_waits, 2);
	rig_fini();
}

/* A call whose result of `len` bytes is written by RDMA. */
static void read_start(struct call *call, struct rpcrdma_buf *buf, uint32_t len)
{
	call_init(call, 20);
	call->req.results[0].sink = (struct rpcrdma_span){buf, buf->data, len};
	call->req.result_cnt = 1;
	cr_assert_eq(call_send(call), 0);
}

/* After losses the fabric wants less at a time; the size of one is as it was. */
Test(rpcrdma_send, how_much_the_server_may_write_is_looked_at_before_each_call)
{
	struct rpcrdma_buf *bufs[2];

	fake.caps.max_inbound = 200000;
	cr_assert(rig_connect());
	call_start(&c[0], false); /* for its credits */
	rig_run(1000);
	rig.silent = true;
	for (int i = 0; i < 2; i++)
		bufs[i] = rpcrdma_buf_get(rig.x);
	read_start(&c[1], bufs[0], 60000);
	rig_run(1000);
	fake.caps.max_inbound = 65536;
	read_start(&c[2], bufs[1], 60000);
	rig_run(1000);
	cr_assert_eq(rig.calls, 2);
	cr_assert_eq(rig.x->credit.inbound_room, 200000);
	rig_reply(c[1].req.xid);
	rig_run(1000);
	cr_assert_eq(rig.calls, 3);
	rig_reply(c[2].req.xid);
	rig_run(1000);
	cr_assert_eq(c[2].end, RPCRDMA_REPLY);
	for (int i = 0; i < 2; i++)
		rpcrdma_buf_put(rig.x, bufs[i]);
	rig_fini();
}

Test(rpcrdma_send, what_the_server_may_write_waits_for_room_and_nothing_else_does)
{
	struct rpcrdma_buf *bufs[4];
	struct rpcrdma_hdr hdr;

	fake.caps.max_inbound = 100000;
	cr_assert(rig_connect());
	call_start(&c[0], false); /* for its credits */
	rig_run(1000);
	rig.silent = true;
	for (int i = 0; i < 4; i++)
		bufs[i] = rpcrdma_buf_get(rig.x);
	read_start(&c[1], bufs[0], 60000);
	rig_run(1000);
	hdr = rig.hdr;
	read_start(&c[2], bufs[1], 60000);
	read_start(&c[3], bufs[2], 20000); /* it would fit: not before the one that waits */
	call_start(&c[4], false);
	rig_run(1000);
	cr_assert_eq(rig.calls, 3);
	cr_assert_eq(rig.xids[2], c[4].req.xid);
	rig.hdr = hdr;
	rig_reply(c[1].req.xid);
	rig_run(1000);
	cr_assert_eq(c[1].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.calls, 5);
	cr_assert_eq(rig.xids[3], c[2].req.xid);
	cr_assert_eq(rig.xids[4], c[3].req.xid);
	read_start(&c[5], bufs[3], 40000);
	rig_run(1000);
	cr_assert_eq(rig.calls, 5);
	rig_reply(c[3].req.xid);
	rig_run(1000);
	cr_assert_eq(rig.calls, 6);
	/* Another connection has room for those of before. */
	rig.silent = false;
	fake_down(-ECONNRESET);
	rig_run(10 * NSEC_PER_SEC);
	for (int i = 0; i < 6; i++)
		cr_assert_eq(c[i].done, 1);
	for (int i = 0; i < 4; i++)
		rpcrdma_buf_put(rig.x, bufs[i]);
	rig_fini();
}

Test(rpcrdma_send, results_are_as_long_as_there_is_room_for_two)
{
	static const struct {
		uint64_t room;
		size_t size;
	} rooms[] = {{0, 65536}, {131072, 65536}, {131071, 32768}, {170393, 65536}, {70000, 32768},
		{8192, 4096}, {100, 4096}};

	cr_assert(rig_connect());
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		rig.x->credit.inbound_room = rooms[i].room;
		rig.x->conf.data_size = 65536;
		cr_assert_eq(rpcrdma_result_size(rig.x), rooms[i].size, "%zu", i);
	}
	rig.x->conf.data_size = rig.conf.data_size;
	rig_fini();
}
