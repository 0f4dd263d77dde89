/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.getattr = (struct nfs4_op_getattr){.fh = &op_test_fh};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.getattr.attr);
}

static const struct op_golden golden = {
	.op = nfs4_getattr,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_STAT,
	.results = {RES_PUTFH, op_test_res_stat},
	.reply_max = 8 + MAX_STAT,
	.check = check,
};

Test(nfs4_getattr, reads_what_stat_needs)
{
	op_golden_check(&golden);
}

Test(nfs4_getattr, asks_only_for_what_the_server_has)
{
	static const uint32_t supported[3] = {0x0010011a, 0x0000a03a, 0};
	struct op_golden g = golden;
	struct op_test t;

	g.supported = supported;
	op_test_init(&t, &g);
	cr_assert_eq(
		op_test_encode(&t, &g, 4096, HEX_PUTFH "00000009 00000002 0010011a 0000a03a"), 0);
}
