/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static uint8_t payload[4096];
static struct rpcrdma_buf buf = {.data = payload};

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){0, {0xaa}};
	call->u.write = (struct nfs4_op_write){
		.fh = &op_test_fh,
		.offset = 0x4000,
		.data = {{&buf, payload, 4093}},
		.data_cnt = 1,
		.stable = DATA_SYNC4,
		.sent = 4093, /* for who decodes only */
	};
}

static void check(const struct nfs4_call *call)
{
	const struct nfs4_op_write *o = &call->u.write;

	cr_assert_eq(o->count, 4093);
	cr_assert_eq(o->committed, FILE_SYNC4);
	cr_assert_arr_eq(o->verf.data, "VERIFIER", 8);
	op_test_is_written(&o->attr);
}

#define HEX_WRITE "00000026 00000000 aa0000000000000000000000 0000000000004000 "

static const struct op_golden golden = {
	.op = nfs4_write,
	.setup = setup,
	.args = HEX_PUTFH HEX_WRITE "00000001 00000ffd" HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, "00000026 00000000 00000ffd 00000002 5645524946494552",
		op_test_res_written},
	.forgiven = 2,
	.reply_max = 8 + 24 + MAX_WRITTEN,
	.check = check,
};

Test(nfs4_write, goes_on_with_getattr_behind_the_data)
{
	struct op_test t;

	op_golden_check(&golden);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.rpc.req.arg_cnt, 1);
	cr_assert_eq(t.call.rpc.req.args[0].p, payload);
	cr_assert_eq(t.call.rpc.req.args[0].len, 4093);
	cr_assert_eq(t.call.rpc.req.tail_len, 16, "GETATTR and its bitmap");
}

static void setup_no_attr(struct nfs4_call *call)
{
	setup(call);
	call->u.write.no_attr = true;
}

static void check_no_attr(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.write.count, 4093);
	cr_assert_eq(call->u.write.attr.valid, 0);
}

static const struct op_golden golden_no_attr = {
	.op = nfs4_write,
	.setup = setup_no_attr,
	.args = HEX_PUTFH HEX_WRITE "00000001 00000ffd",
	.results = {RES_PUTFH, "00000026 00000000 00000ffd 00000002 5645524946494552"},
	.reply_max = 8 + 24,
	.check = check_no_attr,
};

Test(nfs4_write, ends_with_the_data)
{
	struct op_test t;

	op_golden_check(&golden_no_attr);
	op_test_init(&t, &golden_no_attr);
	cr_assert_eq(op_test_encode(&t, &golden_no_attr, 4096, golden_no_attr.args), 0);
	cr_assert_eq(t.call.rpc.req.args[0].len, 4093);
	cr_assert_eq(t.call.rpc.req.tail_len, 0);
}

static void setup_at_end(struct nfs4_call *call)
{
	setup(call);
	call->u.write.at_end = true;
}

#define HEX_VERIFY_SIZE "00000025 00000001 00000010 00000008 0000000000004000 "
#define RES_VERIFY      "00000025 00000000"

static const struct op_golden golden_at_end = {
	.op = nfs4_write,
	.setup = setup_at_end,
	.args = HEX_PUTFH HEX_VERIFY_SIZE HEX_WRITE "00000001 00000ffd" HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, RES_VERIFY, "00000026 00000000 00000ffd 00000002 5645524946494552",
		op_test_res_written},
	.forgiven = 3,
	.reply_max = 8 + 8 + 24 + MAX_WRITTEN,
	.cachethis = true,
	.check = check,
};

Test(nfs4_write, at_the_end_of_a_file_asks_first_whether_that_is_there)
{
	op_golden_check(&golden_at_end);
}

Test(nfs4_write, at_an_end_that_is_elsewhere_writes_nothing)
{
	const char *results[] = {RES_PUTFH, "00000025 0000272b"};
	struct op_test t;

	op_test_init(&t, &golden_at_end);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_NOT_SAME), 0);
	cr_assert_eq(t.status, NFS4ERR_NOT_SAME);
	cr_assert_eq(t.call.u.write.count, 0);
}

/* The first attempt may have written what makes the second one find another end. */
Test(nfs4_write, at_the_end_that_was_sent_before_says_so)
{
	const char *results[] = {RES_PUTFH, "00000025 0000272b"};
	struct op_test t;

	op_test_init(&t, &golden_at_end);
	cr_assert_eq(op_test_encode(&t, &golden_at_end, 4096, NULL), 0);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_DELAY), -EBADMSG);
	cr_assert_eq(op_test_encode(&t, &golden_at_end, 4096, NULL), 0);
	cr_assert_not(t.call.u.write.unsure, "the first one was answered");
	cr_assert_eq(op_test_encode(&t, &golden_at_end, 4096, NULL), 0);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_NOT_SAME), 0);
	cr_assert(t.call.u.write.unsure);
}

static void in_pieces(struct nfs4_op_write *o, uint32_t a, uint32_t b, uint32_t c)
{
	o->data[0] = (struct rpcrdma_span){&buf, payload, a};
	o->data[1] = (struct rpcrdma_span){&buf, payload + 1000, b};
	o->data[2] = (struct rpcrdma_span){&buf, payload + 2000, c};
	o->data_cnt = 3;
}

Test(nfs4_write, takes_its_data_in_pieces)
{
	const struct rpcrdma_req *req;
	struct op_test t;

	op_test_init(&t, &golden);
	in_pieces(&t.call.u.write, 1, 4000, 92);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	req = &t.call.rpc.req;
	cr_assert_eq(t.call.u.write.sent, 4093);
	cr_assert_eq(req->arg_cnt, 3);
	cr_assert_eq(req->args[0].len, 1);
	cr_assert_eq(req->args[1].p, payload + 1000);
	cr_assert_eq(req->args[1].len, 4000);
	cr_assert_eq(req->args[2].len, 92);
	cr_assert_eq(req->tail_len, 16);
}

Test(nfs4_write, of_nothing_has_no_tail)
{
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.write.data_cnt = 0;
	cr_assert_eq(op_test_encode(&t, &golden, 4096,
			     HEX_PUTFH HEX_WRITE "00000001 00000000" HEX_GETATTR_WRITTEN),
		0);
	cr_assert_eq(t.call.rpc.req.arg_cnt, 0);
	cr_assert_eq(t.call.rpc.req.tail_len, 0);
}

static int decode(struct op_test *t, const char *write_result)
{
	const char *results[] = {RES_PUTFH, write_result, op_test_res_written};

	op_test_init(t, &golden);
	return op_test_decode(t, results, 3, NFS4_OK);
}

Test(nfs4_write, short_ones_are_reported)
{
	struct op_test t;

	cr_assert_eq(decode(&t, "00000026 00000000 00000001 00000001 5645524946494552"), 0);
	cr_assert_eq(t.call.u.write.count, 1);
	cr_assert_eq(t.call.u.write.committed, DATA_SYNC4);
}

Test(nfs4_write, impossible_answers_are_refused)
{
	struct op_test t;

	/* more than was sent */
	cr_assert_eq(decode(&t, "00000026 00000000 00000ffe 00000002 5645524946494552"), -EBADMSG);
	cr_assert_eq(t.call.u.write.count, 0);
	/* less stable than was asked for */
	cr_assert_eq(decode(&t, "00000026 00000000 00000ffd 00000000 5645524946494552"), -EBADMSG);
	/* no stable_how4 */
	cr_assert_eq(decode(&t, "00000026 00000000 00000ffd 00000003 5645524946494552"), -EBADMSG);
}

Test(nfs4_write, succeeded_though_the_attributes_did_not_come)
{
	const char *results[] = {RES_PUTFH, golden.results[1], "00000009 00002718"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_DELAY), 0);
	cr_assert_eq(t.status, NFS4_OK);
	cr_assert_eq(t.call.u.write.count, 4093);
	cr_assert_eq(t.call.u.write.attr.valid, 0);
}
