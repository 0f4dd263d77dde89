/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static uint8_t room[64];
static struct rpcrdma_buf buf = {.data = room};

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){0, {0xaa}};
	call->u.read = (struct nfs4_op_read){
		.fh = &op_test_fh,
		.offset = 0x200000001,
		.count = 10,
		.asked = 10, /* for who decodes only */
		.sink = {&buf, room, sizeof(room)},
	};
}

static void check(const struct nfs4_call *call)
{
	cr_assert(call->u.read.eof);
	cr_assert_eq(call->u.read.len, 5);
	cr_assert_not_null(call->u.read.data);
	cr_assert_neq(call->u.read.data, room);
}

static const struct op_golden golden = {
	.op = nfs4_read,
	.setup = setup,
	.args = HEX_PUTFH "00000019 00000000 aa0000000000000000000000 0000000200000001 0000000a",
	.results = {RES_PUTFH, "00000019 00000000 00000001 00000005 68656c6c6f 000000"},
	.reply_max = 8 + 8 + 8, /* and the data, which is a result of its own */
	.ddp_len = 8,
	.check = check,
};

Test(nfs4_read, finds_inline_data_in_the_reply)
{
	op_golden_check(&golden);
}

Test(nfs4_read, offers_count_bytes_of_its_sink_and_the_round_up)
{
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.rpc.req.result_cnt, 1);
	cr_assert_eq(t.call.rpc.req.results[0].sink.p, room);
	cr_assert_eq(t.call.rpc.req.results[0].sink.len, 12);
	t.call.u.read.sink.len = 9;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
	t.call.u.read.count = 0;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), 0);
	cr_assert_eq(t.call.rpc.req.result_cnt, 0, "no empty chunk");
}

/* A reply with this body of READ, after an RDMA Write of `got` bytes. */
static int decode_chunk(struct op_test *t, const char *read_result, uint32_t got)
{
	const char *results[] = {RES_PUTFH, read_result};

	op_test_init(t, &golden);
	cr_assert_eq(op_test_encode(t, &golden, 4096, NULL), 0);
	t->call.rpc.req.results[0].used = true;
	t->call.rpc.req.results[0].got = got;
	return op_test_decode(t, results, 2, NFS4_OK);
}

Test(nfs4_read, data_by_write_chunk_leaves_only_its_length)
{
	struct op_test t;

	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 00000007", 7), 0);
	cr_assert_eq(t.call.u.read.data, room);
	cr_assert_eq(t.call.u.read.len, 7);
	cr_assert(!t.call.u.read.eof);
}

Test(nfs4_read, chunk_and_length_must_agree)
{
	struct op_test t;

	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 00000007", 6), -EBADMSG);
	cr_assert_null(t.call.u.read.data);
	cr_assert_eq(t.call.u.read.len, 0);
	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 0000000b", 11), -EBADMSG);
	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 00000005", 9), -EBADMSG);
	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 00000007", 0), -EBADMSG);
}

Test(nfs4_read, round_up_written_with_the_data_is_not_data)
{
	struct op_test t;

	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000001 00000005", 8), 0);
	cr_assert_eq(t.call.u.read.len, 5);
	cr_assert_eq(t.call.u.read.data, room);
}

Test(nfs4_read, unused_chunk_means_that_the_data_is_inline)
{
	struct op_test t;

	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000001 00000000", 0), 0);
	cr_assert_eq(t.call.u.read.len, 0);
	cr_assert(t.call.u.read.eof);
	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 00000002 61620000", 0), 0);
	cr_assert_eq(t.call.u.read.len, 2);
	cr_assert_neq(t.call.u.read.data, room);
}

Test(nfs4_read, more_than_was_asked_for_is_refused)
{
	struct op_test t;

	cr_assert_eq(decode_chunk(&t,
			     "00000019 00000000 00000000 0000000b 0102030405060708090a0b 00", 0),
		-EBADMSG);
	cr_assert_eq(decode_chunk(&t, "00000019 00000000 00000000 ffffffff", 0), -EBADMSG);
}
