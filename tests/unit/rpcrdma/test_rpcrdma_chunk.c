/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "rpcrdma_chunk.h"

static struct rpcrdma_req req;
static struct rpcrdma_plan plan;
static struct rpcrdma_limits lim;
static struct rpcrdma_buf buf, buf2;
static uint8_t mem[262144];

static void fresh(void)
{
	lim = (struct rpcrdma_limits){.send_max = 4096, .recv_max = 4096, .max_sge = 4};
	req = (struct rpcrdma_req){.head_len = 200, .head_room = 4096, .reply_max = 200};
	buf.data = buf2.data = mem;
}

static struct rpcrdma_span span(struct rpcrdma_buf *b, uint32_t len)
{
	return (struct rpcrdma_span){b, mem, len};
}

static int make(void)
{
	return rpcrdma_chunk_plan(&req, &lim, &plan);
}

TestSuite(rpcrdma_chunk, .init = fresh);

Test(rpcrdma_chunk, a_small_call_is_inline_both_ways)
{
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_INLINE);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_INLINE);
	cr_assert_eq(plan.proc, RDMA_MSG);
	cr_assert_eq(plan.hdr_len, 28);
	cr_assert_eq(plan.send_len, 228);
}

Test(rpcrdma_chunk, the_last_byte_that_fits_is_inline)
{
	req.head_len = 4068;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.send_len, 4096);
	req.head_len = 4072;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_LONG);
	cr_assert(plan.copies);
	cr_assert_eq(plan.send_len, 28 + 24);
	req.args[0] = span(&buf, 4096);
	req.arg_cnt = 1;
	cr_assert_eq(make(), -EMSGSIZE);
	/* The next call of this request is a short one. */
	req.head_len = 200;
	req.arg_cnt = 0;
	plan.copies = true;
	cr_assert_eq(make(), 0);
	cr_assert_not(plan.copies);
}

Test(rpcrdma_chunk, a_head_may_fill_its_room)
{
	req.head_len = req.head_room = 400;
	cr_assert_eq(make(), 0);
	req.head_len += 4;
	cr_assert_eq(make(), -EINVAL);
}

Test(rpcrdma_chunk, small_args_are_gathered_with_their_round_up)
{
	req.args[0] = span(&buf, 1001);
	req.arg_cnt = 1;
	req.tail_len = 40;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_INLINE);
	cr_assert_eq(plan.send_len, 28 + 200 + 1004);
}

Test(rpcrdma_chunk, large_args_go_by_read_chunk_and_leave_nothing_inline)
{
	req.args[0] = span(&buf, 65535);
	req.arg_cnt = 1;
	req.tail_len = 40;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_READ);
	cr_assert_eq(plan.proc, RDMA_MSG);
	cr_assert_eq(plan.args_pos, 160);
	cr_assert_eq(plan.hdr_len, 52);
	cr_assert_eq(plan.send_len, 252);
}

Test(rpcrdma_chunk, args_that_cannot_be_gathered_go_by_read_chunk)
{
	lim.max_sge = 2;
	req.args[0] = span(&buf, 100);
	req.arg_cnt = 1;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_READ);
}

Test(rpcrdma_chunk, a_long_call_goes_by_position_zero)
{
	req.head_len = 0;
	req.long_call = span(&buf, 60000);
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_LONG);
	cr_assert_eq(plan.proc, RDMA_NOMSG);
	cr_assert_eq(plan.send_len, 52);
}

Test(rpcrdma_chunk, a_long_call_that_is_short_after_all_is_inline)
{
	req.head_len = 0;
	req.long_call = span(&buf, 400);
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_INLINE);
	cr_assert_eq(plan.proc, RDMA_MSG);
}

Test(rpcrdma_chunk, a_long_call_has_args_beside_it_only_without_round_up)
{
	req.head_len = 0;
	req.long_call = span(&buf, 60000);
	req.args[0] = span(&buf2, 4096);
	req.arg_cnt = 1;
	req.tail_len = 8;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_LONG_READ);
	cr_assert_eq(plan.args_pos, 59992);
	cr_assert_eq(plan.hdr_len, 28 + 48);
	req.args[0].len = 4095;
	cr_assert_eq(make(), -EMSGSIZE);
}

Test(rpcrdma_chunk, small_results_stay_inline)
{
	req.results[0].sink = span(&buf, 3000);
	req.result_cnt = 1;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_INLINE);
	cr_assert_eq(plan.write_cnt, 0);
}

Test(rpcrdma_chunk, large_results_get_write_chunks_in_order)
{
	req.results[0].sink = span(&buf, 65536);
	req.results[1].sink = span(&buf2, 65536);
	req.result_cnt = 2;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_WRITE);
	cr_assert_eq(plan.write_cnt, 2);
	cr_assert_eq(plan.hdr_len, 28 + 48);
}

Test(rpcrdma_chunk, an_empty_write_chunk_is_sent_only_before_another)
{
	req.results[0].sink = (struct rpcrdma_span){0};
	req.results[1].sink = span(&buf, 65536);
	req.results[2].sink = (struct rpcrdma_span){0};
	req.result_cnt = 3;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.write_cnt, 2);
	cr_assert_eq(plan.hdr_len, 28 + 8 + 24);
	req.result_cnt = 1;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.write_cnt, 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_INLINE);
}

Test(rpcrdma_chunk, a_long_reply_needs_a_reply_chunk_with_room)
{
	req.reply_max = 8192;
	cr_assert_eq(make(), -EMSGSIZE);
	req.reply_sink = span(&buf, 8191);
	cr_assert_eq(make(), -EMSGSIZE);
	req.reply_sink.len = 8192;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_CHUNK);
	cr_assert_eq(plan.hdr_len, 48);
}

Test(rpcrdma_chunk, a_reply_chunk_is_not_offered_when_the_reply_fits_inline)
{
	req.reply_sink = span(&buf, 65536);
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_INLINE);
}

Test(rpcrdma_chunk, write_list_and_reply_chunk_never_go_together)
{
	req.reply_max = 8192;
	req.results[0].sink = span(&buf, 65536);
	req.result_cnt = 1;
	req.reply_sink = span(&buf2, 65536);
	cr_assert_eq(make(), -EMSGSIZE);
	req.reply_sink.len = 8192 + 65536;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_CHUNK);
	cr_assert_eq(plan.write_cnt, 0);
}

Test(rpcrdma_chunk, the_returned_write_list_is_counted_against_the_reply)
{
	req.results[0].sink = span(&buf, 65536);
	req.result_cnt = 1;
	req.reply_max = 4096 - 28 - 24;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.reply, RPCRDMA_REPLY_WRITE);
	req.reply_max += 4;
	cr_assert_eq(make(), -EMSGSIZE);
}

Test(rpcrdma_chunk, contradictions_are_refused)
{
	req.tail_len = 204;
	cr_assert_eq(make(), -EINVAL);
	req.tail_len = 3;
	cr_assert_eq(make(), -EINVAL);
	req.tail_len = 0;
	req.head_len = 201;
	cr_assert_eq(make(), -EINVAL);
	req.head_len = 4;
	cr_assert_eq(make(), -EINVAL);
	req.head_len = 200;
	req.long_call = span(&buf, 200);
	cr_assert_eq(make(), -EINVAL);
	req.long_call.len = 0;
	req.result_cnt = RPCRDMA_MAX_RESULTS + 1;
	cr_assert_eq(make(), -EINVAL);
}

Test(rpcrdma_chunk, chunks_are_cut_into_at_most_sixteen_segments)
{
	struct rpcrdma_chunk c;

	cr_assert_eq(rpcrdma_chunk_seg_count(65536, 0), 1);
	cr_assert_eq(rpcrdma_chunk_seg_count(65536, 4096), 16);
	cr_assert_eq(rpcrdma_chunk_seg_count(65537, 4096), 16);
	cr_assert_eq(rpcrdma_chunk_seg_count(1048576, 4096), 16);
	cr_assert_eq(rpcrdma_chunk_seg_count(5, 4096), 1);
	cr_assert_eq(rpcrdma_chunk_seg_count(0, 4096), 0);
	cr_assert_eq(rpcrdma_chunk_seg_count(UINT32_MAX, 1), 16);
	rpcrdma_chunk_fill(&c, mem, 10000, 77, 4096);
	cr_assert_eq(c.cnt, 3);
	cr_assert_eq(c.segs[2].len, 10000 - 8192);
	cr_assert_eq(c.segs[2].off, (uintptr_t)mem + 8192);
	cr_assert_eq(c.segs[2].handle, 77);
	cr_assert_eq(rpcrdma_hdr_chunk_bytes(&c), 10000);
}

Test(rpcrdma_chunk, returned_chunks_may_only_shrink_from_the_end)
{
	struct rpcrdma_chunk c;

	rpcrdma_chunk_fill(&c, mem, 10000, 77, 4096);
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), 10000);
	c.segs[2].len = 0;
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), 8192);
	c.segs[1].len = 1;
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), 4097);
	c.segs[2].len = 1; /* a hole */
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), -EBADMSG);
	rpcrdma_chunk_fill(&c, mem, 10000, 77, 4096);
	c.segs[2].len++; /* more than offered */
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), -EBADMSG);
	c.segs[2].len = UINT32_MAX;
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), -EBADMSG);
	rpcrdma_chunk_fill(&c, mem, 10000, 77, 4096);
	c.segs[c.cnt++] = (struct rpcrdma_seg){.handle = 77}; /* one more than offered, empty */
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), -EBADMSG);
	c.cnt = 0; /* unused, without segments */
	cr_assert_eq(rpcrdma_chunk_got(&c, 10000, 4096), 0);
}

static void pieces(unsigned int cnt, uint32_t len)
{
	for (unsigned int i = 0; i < cnt; i++)
		req.args[i] = span(i & 1 ? &buf : &buf2, len);
	req.arg_cnt = cnt;
}

Test(rpcrdma_chunk, args_in_pieces_have_a_segment_each)
{
	pieces(3, 20001);
	req.tail_len = 40;
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_READ);
	cr_assert_eq(plan.args_pos, 160);
	cr_assert_eq(plan.hdr_len, 28 + 3 * 24);
	cr_assert_eq(plan.send_len, 28 + 3 * 24 + 200);
}

Test(rpcrdma_chunk, small_args_in_pieces_are_not_gathered)
{
	pieces(2, 10);
	cr_assert_eq(make(), 0);
	cr_assert_eq(plan.call, RPCRDMA_CALL_READ);
}

Test(rpcrdma_chunk, pieces_share_the_segments_of_a_chunk)
{
	for (unsigned int cnt = 1; cnt <= RPCRDMA_MAX_ARGS; cnt++) {
		pieces(cnt, 65536);
		lim.max_seg = 4096;
		cr_assert_eq(make(), 0);
		cr_assert_leq(plan.hdr_len, 28 + RPCRDMA_MAX_SEGS * 24);
	}
}

Test(rpcrdma_chunk, pieces_that_cannot_be_are_refused)
{
	pieces(RPCRDMA_MAX_ARGS, 4096);
	req.args[3].len = 0;
	cr_assert_eq(make(), -EINVAL);
	req.args[3] = (struct rpcrdma_span){NULL, mem, 4096};
	cr_assert_eq(make(), -EINVAL);
	pieces(RPCRDMA_MAX_ARGS, 1u << 29);
	cr_assert_eq(make(), -EINVAL, "more than an XDR length");
	pieces(RPCRDMA_MAX_ARGS, 4096);
	req.arg_cnt = RPCRDMA_MAX_ARGS + 1;
	cr_assert_eq(make(), -EINVAL);
}

Test(rpcrdma_chunk, worst_headers_cover_pieces)
{
	for (uint32_t max_seg = 0; max_seg <= 65536; max_seg += 4096) {
		lim.max_seg = max_seg;
		for (unsigned int cnt = 1; cnt <= RPCRDMA_MAX_ARGS; cnt++) {
			pieces(cnt, 65536 / cnt);
			cr_assert_eq(make(), 0);
			cr_assert_leq(plan.hdr_len, rpcrdma_chunk_worst_call_hdr(65536, max_seg));
		}
	}
}

Test(rpcrdma_chunk, worst_headers_cover_every_plan)
{
	req.args[0] = span(&buf, 65536);
	req.arg_cnt = 1;
	for (uint32_t max_seg = 0; max_seg <= 65536; max_seg += 4096) {
		lim.max_seg = max_seg;
		cr_assert_eq(make(), 0);
		cr_assert_leq(plan.hdr_len, rpcrdma_chunk_worst_call_hdr(65536, max_seg));
	}
}
