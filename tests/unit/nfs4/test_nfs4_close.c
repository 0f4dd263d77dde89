/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){7, {0xaa, 0xbb, 0xcc}};
	call->u.close = (struct nfs4_op_close){.fh = &op_test_fh};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.close.attr);
	cr_assert_eq(call->stateid.seqid, 7, "an argument stays as it is");
}

static const struct op_golden golden = {
	.op = nfs4_close,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_STAT "00000004 00000000 00000007 aabbcc000000000000000000",
	.results = {RES_PUTFH, op_test_res_stat,
		"00000004 00000000 ffffffff 000000000000000000000000"},
	.reply_max = 8 + MAX_STAT + 24,
	.cachethis = true,
	.check = check,
};

Test(nfs4_close, gets_attributes_before)
{
	op_golden_check(&golden);
}
