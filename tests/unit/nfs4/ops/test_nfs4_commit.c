/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.commit =
		(struct nfs4_op_commit){.fh = &op_test_fh, .offset = 0x100000000, .count = 4096};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_arr_eq(call->u.commit.verf.data, "VERIFIER", 8);
	op_test_is_written(&call->u.commit.attr);
}

static const struct op_golden golden = {
	.op = nfs4_commit,
	.setup = setup,
	.args = HEX_PUTFH "00000005 0000000100000000 00001000" HEX_GETATTR_WRITTEN,
	.results = {RES_PUTFH, "00000005 00000000 5645524946494552", op_test_res_written},
	.forgiven = 2,
	.reply_max = 8 + 16 + MAX_WRITTEN,
	.check = check,
};

Test(nfs4_commit, returns_the_verifier)
{
	op_golden_check(&golden);
}
