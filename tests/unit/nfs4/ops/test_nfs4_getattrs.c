/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_codec.h"
#include "op_test.h"

static struct nfs4_fh fhs[NFS4_GETATTRS_MAX];
static struct nfs4_attr attrs[NFS4_GETATTRS_MAX];

static void setup(struct nfs4_call *call)
{
	fhs[0] = op_test_fh;
	fhs[1] = op_test_fh2;
	call->u.getattrs = (struct nfs4_op_getattrs){
		.fh = fhs, .cnt = 2, .attr = attrs, .asked = 2, /* for who decodes only */
	};
}

static void setup_one(struct nfs4_call *call)
{
	setup(call);
	call->u.getattrs.cnt = call->u.getattrs.asked = 1;
}

static void check_one(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.getattrs.got, 1);
	op_test_is_written(&attrs[0]);
}

static const struct op_golden golden_one = {
	.op = nfs4_getattrs,
	.setup = setup_one,
	.args = HEX_PUTFH HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, op_test_res_written},
	.reply_max = 8 + MAX_WRITTEN,
	.check = check_one,
};

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.getattrs.got, 2);
	op_test_is_written(&attrs[0]);
	op_test_is_written(&attrs[1]);
}

static const struct op_golden golden = {
	.op = nfs4_getattrs,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_WRITTEN HEX_PUTFH2 HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, op_test_res_written, RES_PUTFH, op_test_res_written},
	.reply_max = 2 * (8 + MAX_WRITTEN),
};

Test(nfs4_getattrs, asks_for_one_file_after_the_other)
{
	struct op_test t;

	op_golden_check(&golden_one);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.u.getattrs.asked, 2);
	cr_assert_eq(op_test_decode(&t, golden.results, 4, NFS4_OK), 0);
	check(&t.call);
}

Test(nfs4_getattrs, one_that_fails_is_behind_those_that_did_not)
{
	const char *results[] = {RES_PUTFH, op_test_res_written, "00000016 00000046"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_STALE), 0);
	cr_assert_eq(t.status, NFS4ERR_STALE);
	cr_assert_eq(t.call.u.getattrs.got, 1);
}

static void setup_most(struct nfs4_call *call)
{
	setup(call);
	for (unsigned int i = 0; i < NFS4_GETATTRS_MAX; i++) {
		fhs[i].len = 28; /* as Linux' nfsd has them */
		fhs[i].data[0] = (uint8_t)i;
	}
	call->u.getattrs.cnt = NFS4_GETATTRS_MAX;
}

/* How many are asked for with so many operations, and bytes each way. */
static uint32_t asked(uint32_t ops_max, size_t room, size_t inline_max)
{
	struct op_golden g = golden;
	struct op_test t;
	uint8_t mem[4096];

	g.setup = setup_most;
	op_test_init(&t, &g);
	xdr_enc_init(&t.c.enc, mem, room);
	t.c.op_cnt = 1; /* SEQUENCE */
	t.c.ops_max = ops_max;
	t.c.inline_max = inline_max;
	t.c.reply_max = 0;
	cr_assert_eq(t.desc->encode(&t.call, &t.c), 0);
	cr_assert_eq(t.c.op_cnt, 1 + 2 * t.call.u.getattrs.asked);
	return t.call.u.getattrs.asked;
}

Test(nfs4_getattrs, asks_for_as_many_as_the_session_takes)
{
	cr_assert_eq(asked(0, 4096, 0), 16);
	cr_assert_eq(asked(50, 4096, 4096), 16);
	cr_assert_eq(asked(16, 4096, 4096), 7, "nfsd of before Linux 6.0");
	cr_assert_eq(asked(8, 4096, 4096), 3);
	cr_assert_lt(asked(50, 600, 4096), 16);
	cr_assert_gt(asked(50, 600, 4096), 4);
	cr_assert_lt(asked(50, 4096, 1024), 16);
	cr_assert_gt(asked(50, 4096, 1024), 4);
}
