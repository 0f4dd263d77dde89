/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.access = (struct nfs4_op_access){
		.fh = &op_test_fh, .want = ACCESS4_READ | ACCESS4_MODIFY | ACCESS4_XALIST};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.access.supported, 0x1f);
	cr_assert_eq(call->u.access.access, ACCESS4_READ, "what is not supported is not allowed");
	op_test_is_stat(&call->u.access.attr);
}

static const struct op_golden golden = {
	.op = nfs4_access,
	.setup = setup,
	.args = HEX_PUTFH "00000003 00000105" HEX_GETATTR_STAT,
	.results = {RES_PUTFH, "00000003 00000000 0000001f 00000021", op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + 16 + MAX_STAT,
	.check = check,
};

Test(nfs4_access, tells_what_is_allowed)
{
	op_golden_check(&golden);
}
