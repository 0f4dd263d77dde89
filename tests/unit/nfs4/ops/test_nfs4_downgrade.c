/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){7, {0xaa, 0xbb, 0xcc}};
	call->u.downgrade = (struct nfs4_op_downgrade){
		.fh = &op_test_fh,
		.share_access = OPEN4_SHARE_ACCESS_READ,
		.stateid = {99, {0x99}}, /* of whatever the call did before */
	};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.downgrade.stateid.seqid, 8);
	cr_assert_eq(call->u.downgrade.stateid.other[0], 0xaa);
	cr_assert_eq(call->u.downgrade.stateid.other[11], 0xdd);
	cr_assert_eq(call->stateid.seqid, 7, "an argument stays as it is");
}

static const struct op_golden golden = {
	.op = nfs4_downgrade,
	.setup = setup,
	.args = HEX_PUTFH "00000015 00000007 aabbcc000000000000000000 00000000 00000001 00000000",
	.results = {RES_PUTFH, "00000015 00000000 00000008 aabbcc0000000000000000dd"},
	.reply_max = 8 + 24,
	.cachethis = true,
	.check = check,
};

Test(nfs4_downgrade, names_what_is_left_and_denies_nothing)
{
	op_golden_check(&golden);
}

Test(nfs4_downgrade, nothing_of_the_call_before_is_left)
{
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(t.call.u.downgrade.stateid.seqid, 0);
	cr_assert_eq(t.call.u.downgrade.stateid.other[0], 0);
}
