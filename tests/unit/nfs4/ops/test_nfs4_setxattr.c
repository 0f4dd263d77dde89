/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.setxattr = (struct nfs4_op_setxattr){
		.fh = &op_test_fh,
		.name = {"a", 1},
		.value = "\1\2\3\4\5",
		.len = 5,
		.option = SETXATTR4_REPLACE,
	};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_cinfo(&call->u.setxattr.cinfo);
	op_test_is_written(&call->u.setxattr.attr);
}

static const struct op_golden golden = {
	.op = nfs4_setxattr,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH
	"00000049 00000002 00000001 61000000 00000005 0102030405 000000" HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, "00000049 00000000 " RES_CINFO, op_test_res_written},
	.forgiven = 2,
	.reply_max = 8 + 28 + MAX_WRITTEN,
	.cachethis = true,
	.check = check,
};

Test(nfs4_setxattr, sets_a_value)
{
	op_golden_check(&golden);
}

Test(nfs4_setxattr, sets_an_empty_value)
{
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.setxattr.value = NULL;
	t.call.u.setxattr.len = 0;
	cr_assert_eq(op_test_encode(&t, &golden, 4096,
			     HEX_PUTFH
			     "00000049 00000002 00000001 61000000 00000000" HEX_GETATTR_WRITTEN),
		0);
}

Test(nfs4_setxattr, is_built_in_the_long_buffer_if_there_is_one)
{
	struct rpcrdma_buf buf = {0};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_null(t.desc->long_buf(&t.call));
	t.call.u.setxattr.long_buf = &buf;
	cr_assert_eq(t.desc->long_buf(&t.call), &buf);
}

Test(nfs4_setxattr, needs_minor_version_2)
{
	struct op_golden g = golden;
	struct op_test t;

	g.minor = 1;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
