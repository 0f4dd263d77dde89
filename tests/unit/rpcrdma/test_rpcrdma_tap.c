/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a transport's messages gets into a capture, and in which order. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "rig.h"
#include "rpc.h"

/* The fake fabric's connection: 10.0.0.2, queue pair 0x11, to 10.0.0.1, 0x12; MTU 1024. */
#define FRAMES 64

enum {
	SEND = 4,
	SEND_FIRST = 0,
	SEND_LAST = 2,
	SEND_INV = 0x17,
	WRITE_FIRST = 6,
	WRITE_MIDDLE = 7,
	WRITE_LAST = 8,
	READ = 0x0c,
	RESP_FIRST = 0x0d,
	RESP_MIDDLE = 0x0e,
	RESP_LAST = 0x0f,
	MAD = 0x64
};

static struct capture *capture;
static struct call c[8];
static uint8_t file[1 << 20];
static const uint8_t *frames[FRAMES];
static size_t lens[FRAMES];
static unsigned int cnt;
static char path[64];

static void quiet(void *ctx, enum log_level level, const char *line)
{
}

static void begin(bool data)
{
	struct capture_limits lim = {.max_bytes = 1 << 20, .data = data};

	unlink(path);
	cr_assert_eq(capture_start(capture, capture_open(path), &lim), 0);
}

static void start(void)
{
	snprintf(path, sizeof(path), "/tmp/test_rpcrdma_tap.%d", (int)getpid());
	log_set_sink(quiet, NULL);
	capture = capture_new();
	rig_init();
	rig.conf.capture = capture;
	cr_assert(rig_connect());
}

static void stop(void)
{
	rig_fini();
	capture_free(capture);
	unlink(path);
}

TestSuite(rpcrdma_tap, .init = start, .fini = stop);

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* Ends the capture and takes its frames. */
static void end(void)
{
	FILE *in;
	size_t len;

	cr_assert_eq(capture_stop(capture), 0);
	in = fopen(path, "r");
	len = fread(file, 1, sizeof(file), in);
	fclose(in);
	cnt = 0;
	for (size_t at = 0; at < len; at += word(file + at + 4)) {
		if (word(file + at) != 6)
			continue;
		cr_assert_lt(cnt, FRAMES);
		frames[cnt] = file + at + 28;
		lens[cnt++] = word(file + at + 20);
	}
}

static bool is_ours(const uint8_t *f)
{
	return f[14 + 15] == 2;
}

static uint8_t opcode(const uint8_t *f)
{
	return f[42];
}

static uint32_t qpn(const uint8_t *f)
{
	return get_be32(f + 46) & 0xffffff;
}

static uint32_t psn(const uint8_t *f)
{
	return get_be32(f + 50) & 0xffffff;
}

/* op < 0: from the server */
static void expect(const int *ops, unsigned int n)
{
	cr_assert_eq(cnt, n, "%u frames", cnt);
	for (unsigned int i = 0; i < n; i++) {
		int op = ops[i] < 0 ? -ops[i] : ops[i];

		cr_assert_eq(opcode(frames[i]), op, "frame %u: %02x", i, opcode(frames[i]));
		cr_assert_eq(is_ours(frames[i]), ops[i] >= 0, "frame %u", i);
		if (op != MAD)
			cr_assert_eq(qpn(frames[i]), is_ours(frames[i]) ? 0x12 : 0x11);
	}
}

#define EXPECT(...)                                                                                \
	expect((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static struct rpcrdma_span span(uint32_t len)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	cr_assert_not_null(buf);
	for (uint32_t i = 0; i < len; i++)
		buf->data[i] = (uint8_t)(i * 3);
	return (struct rpcrdma_span){buf, buf->data, len};
}

/* A call with 5001 bytes to be read by the server. */
static struct rpcrdma_buf *call_with_args(struct call *call)
{
	call_init(call, 12);
	call->req.args[0] = span(5001);
	call->req.arg_cnt = 1;
	cr_assert_eq(call_send(call), 0);
	rig_run(1000);
	cr_assert_eq(call->end, RPCRDMA_REPLY);
	return call->req.args[0].buf;
}

Test(rpcrdma_tap, nothing_is_told_before_it_starts_or_after_it_ended)
{
	call_start(&c[0], false);
	rig_run(1000);
	begin(false);
	end();
	call_start(&c[1], false);
	rig_run(1000);
	cr_assert_eq(cnt, 0);
	cr_assert_eq(c[1].done, 1);
}

Test(rpcrdma_tap, a_call_and_its_reply_come_after_the_connection)
{
	begin(false);
	call_start(&c[0], false);
	rig_run(1000);
	call_start(&c[1], false);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND, SEND, -SEND);
	cr_assert_eq(get_be32(frames[3] + 54), c[0].req.xid);
	cr_assert_eq(get_be32(frames[6] + 54), c[1].req.xid);
	cr_assert_eq(psn(frames[3]), 0xfffffe);
	cr_assert_eq(psn(frames[5]), 0xffffff);
	cr_assert_eq(psn(frames[4]), 0x2000);
	cr_assert_eq(psn(frames[6]), 0x2001);
	/* RFC 8797's part of the request, and of the server's answer */
	cr_assert_arr_eq(frames[0] + 62 + 24 + 140 + 36, fake.priv, 8);
	cr_assert_arr_eq(frames[1] + 62 + 24 + 36, fake.peer_priv, fake.peer_priv_len);
}

Test(rpcrdma_tap, without_data_messages_are_alone)
{
	struct rpcrdma_buf *buf;

	begin(false);
	buf = call_with_args(&c[0]);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND_INV);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpcrdma_tap, what_the_server_reads_comes_between_call_and_reply)
{
	struct rpcrdma_buf *buf;

	begin(true);
	buf = call_with_args(&c[0]);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -READ, RESP_FIRST, RESP_MIDDLE, RESP_MIDDLE, RESP_MIDDLE,
		RESP_LAST, -SEND_INV);
	cr_assert_eq(psn(frames[4]), 0x2000);
	cr_assert_eq(psn(frames[9]), 0x2004);
	cr_assert_eq(psn(frames[10]), 0x2005);
	cr_assert_eq(get_be32(frames[4] + 58), (uint32_t)(uintptr_t)buf->data);
	cr_assert_eq(get_be32(frames[4] + 66), 5001);
	cr_assert_arr_eq(frames[5] + 58, buf->data, 1024);
	cr_assert_arr_eq(frames[9] + 58, buf->data + 4096, 5001 - 4096);
	cr_assert_eq(frames[9][43] >> 4 & 3, 3, "bytes of round-up");
	/* the key that the reply invalidated is the one that was read by */
	cr_assert_arr_eq(frames[10] + 54, frames[4] + 62, 4);
	rpcrdma_buf_put(rig.x, buf);
}

static struct rpcrdma_buf *call_with_result(struct call *call)
{
	for (size_t i = 0; i < sizeof(rig.data); i++)
		rig.data[i] = (uint8_t)(i * 5 + 1);
	rig.data_len = 2100;
	call_init(call, 12);
	call->req.results[0].sink = span(4096);
	call->req.result_cnt = 1;
	call->req.reply_max = 64;
	cr_assert_eq(call_send(call), 0);
	rig_run(1000);
	cr_assert_eq(call->end, RPCRDMA_REPLY);
	return call->req.results[0].sink.buf;
}

Test(rpcrdma_tap, what_the_server_wrote_comes_before_the_reply_that_says_so)
{
	struct rpcrdma_buf *buf;

	begin(true);
	buf = call_with_result(&c[0]);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -WRITE_FIRST, -WRITE_MIDDLE, -WRITE_LAST, -SEND_INV);
	cr_assert_eq(get_be32(frames[4] + 66), 2100, "so much, not what was offered");
	cr_assert_arr_eq(frames[4] + 70, rig.data, 1024);
	cr_assert_arr_eq(frames[6] + 54, rig.data + 2048, 2100 - 2048);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpcrdma_tap, without_data_what_the_server_wrote_is_not_told)
{
	struct rpcrdma_buf *buf;

	begin(false);
	buf = call_with_result(&c[0]);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND_INV);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpcrdma_tap, a_reply_in_a_chunk_is_a_message_and_always_there)
{
	struct rpcrdma_span sink = span(0);

	begin(false);
	rig.body_len = 2000;
	call_init(&c[0], 12);
	sink.len = 8192;
	c[0].req.reply_max = 6000;
	c[0].req.reply_sink = sink;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -WRITE_FIRST, -WRITE_LAST, -SEND_INV);
	cr_assert_eq(get_be32(frames[4] + 70), c[0].req.xid, "the RPC reply");
	rpcrdma_buf_put(rig.x, sink.buf);
}

Test(rpcrdma_tap, calls_of_the_server_and_our_replies_are_told)
{
	begin(false);
	rig.answer_rcalls = true;
	rig_reverse_call(0x4242);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, -SEND, SEND);
	cr_assert_eq(get_be32(frames[3] + 54), 0x4242);
	cr_assert_eq(get_be32(frames[4] + 54), 0x4242);
}

Test(rpcrdma_tap, what_is_no_message_is_told_as_it_came)
{
	static const uint8_t junk[13] = "not a message";

	begin(true);
	fake_message(junk, sizeof(junk), 0);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, -SEND);
	cr_assert_arr_eq(frames[3] + 54, junk, sizeof(junk));
}

/* A reply that says the server wrote more than was offered: none of it is believed. */
Test(rpcrdma_tap, lengths_that_lie_are_not_followed)
{
	struct rpcrdma_hdr h = {.vers = 1, .credits = 8, .proc = RDMA_MSG, .write_cnt = 1};
	struct rpcrdma_buf *buf;
	uint8_t body[24] = {0};

	rig_quiet();
	begin(true);
	rig.silent = true;
	call_init(&c[0], 12);
	c[0].req.results[0].sink = span(4096);
	c[0].req.result_cnt = 1;
	c[0].req.reply_max = 64;
	buf = c[0].req.results[0].sink.buf;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	h.xid = c[0].req.xid;
	h.writes[0] = rig.hdr.writes[0];
	h.writes[0].segs[0].len = 0x7fffffff;
	rig_send_hdr(&h, body, sizeof(body), 0);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND);
	cr_assert_eq(c[0].end, RPCRDMA_BADREPLY);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpcrdma_tap, each_connection_and_each_capture_begins_with_its_own_datagrams)
{
	rig_quiet();
	begin(false);
	call_start(&c[0], false);
	rig_run(1000);
	rpcrdma_reconnect(rig.x, "test");
	rig_run(NSEC_PER_SEC);
	call_start(&c[1], false);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND, MAD, -MAD, MAD, SEND, -SEND);
	cr_assert_neq(memcmp(frames[0] + 62 + 8, frames[5] + 62 + 8, 8), 0);
	cr_assert_eq(psn(frames[8]), 0xfffffe);
	begin(false);
	call_start(&c[2], false);
	rig_run(1000);
	end();
	EXPECT(MAD, -MAD, MAD, SEND, -SEND);
}

/* ---- a fabric that captures ---- */

Test(rpcrdma_tap, a_fabric_that_captures_is_left_to_it)
{
	fake.caps.captures = true;
	begin(true);
	call_start(&c[0], false);
	rig.answer_rcalls = true;
	rig_reverse_call(0x4242);
	rig_run(1000);
	end();
	cr_assert_eq(cnt, 0);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(fake.capture, capture);
}

static bool is_message(const uint8_t *p, uint64_t n)
{
	return rpcrdma_fab_ops.is_message(rig.x, (uintptr_t)p, n);
}

static void bounds_are_kept(const uint8_t *p, uint64_t n)
{
	cr_assert(is_message(p, n));
	cr_assert(is_message(p + n - 1, 1));
	cr_assert_not(is_message(p - 1, n));
	cr_assert_not(is_message(p + 1, n));
	cr_assert_not(is_message(p, n + 1));
	cr_assert_not(is_message(p + 1, UINT64_MAX));
}

Test(rpcrdma_tap, it_hears_which_memory_is_a_message)
{
	struct rpcrdma_span call = span(20000), reply = span(8192), args = span(5001),
			    result = span(4096);

	call_start(&c[3], false); /* which brings credits */
	rig_run(1000);
	rig.silent = true;
	cr_assert_not(is_message(call.p, 1));
	call_init(&c[0], 2);
	memcpy(call.p, c[0].req.head, 8);
	c[0].req.head_len = 0;
	c[0].req.long_call = call;
	c[0].req.reply_max = 6000;
	c[0].req.reply_sink = reply;
	cr_assert_eq(call_send(&c[0]), 0);
	call_init(&c[1], 12);
	c[1].req.args[0] = args;
	c[1].req.arg_cnt = 1;
	cr_assert_eq(call_send(&c[1]), 0);
	call_init(&c[2], 12);
	c[2].req.results[0].sink = result;
	c[2].req.result_cnt = 1;
	c[2].req.reply_max = 64;
	cr_assert_eq(call_send(&c[2]), 0);
	rig_run(1000);
	cr_assert_eq(rig.x->flight_cnt, 3);
	bounds_are_kept(call.p, call.len);
	bounds_are_kept(reply.p, reply.len);
	cr_assert_not(is_message(args.p, 1));
	cr_assert_not(is_message(result.p, 1));
	rpcrdma_stop(rig.x);
	rig_run(1000);
	cr_assert_not(is_message(call.p, 1));
	rpcrdma_buf_put(rig.x, call.buf);
	rpcrdma_buf_put(rig.x, reply.buf);
	rpcrdma_buf_put(rig.x, args.buf);
	rpcrdma_buf_put(rig.x, result.buf);
}
