/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.removexattr = (struct nfs4_op_removexattr){.fh = &op_test_fh, .name = {"abc", 3}};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_cinfo(&call->u.removexattr.cinfo);
	op_test_is_written(&call->u.removexattr.attr);
}

static const struct op_golden golden = {
	.op = nfs4_removexattr,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "0000004b 00000003 61626300" HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, "0000004b 00000000 " RES_CINFO, op_test_res_written},
	.forgiven = 2,
	.reply_max = 8 + 28 + MAX_WRITTEN,
	.cachethis = true,
	.check = check,
};

Test(nfs4_removexattr, removes_one)
{
	op_golden_check(&golden);
}

Test(nfs4_removexattr, needs_minor_version_2)
{
	struct op_golden g = golden;
	struct op_test t;

	g.minor = 1;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
