/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.rename = (struct nfs4_op_rename){
		.from_dir = &op_test_fh,
		.to_dir = &op_test_fh2,
		.from = {"old", 3},
		.to = {"newer", 5},
	};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_cinfo(&call->u.rename.from_cinfo);
	cr_assert(!call->u.rename.to_cinfo.atomic);
	cr_assert_eq(call->u.rename.to_cinfo.before, 7);
	cr_assert_eq(call->u.rename.to_cinfo.after, 9);
	op_test_is_dir(&call->u.rename.to_attr);
	cr_assert_eq(call->u.rename.from_attr.valid, NFS4_ATTR_CHANGE);
	cr_assert_eq(call->u.rename.from_attr.change, 0x77);
}

static const struct op_golden golden = {
	.op = nfs4_rename,
	.setup = setup,
	.args = HEX_PUTFH HEX_SAVEFH HEX_PUTFH2
	"0000001d 00000003 6f6c6400 00000005 6e6577657200 0000" HEX_GETATTR_DIR HEX_RESTORE
		HEX_GETATTR_DIR,
	.results = {RES_PUTFH, RES_SAVEFH, RES_PUTFH,
		"0000001d 00000000 " RES_CINFO "00000000 0000000000000007 0000000000000009",
		op_test_res_dir, RES_RESTORE,
		"00000009 00000000 00000001 00000008 00000008 0000000000000077"},
	.forgiven = 4,
	.reply_max = 24 + 48 + MAX_DIR + 8 + MAX_DIR,
	.cachethis = true,
	.check = check,
};

Test(nfs4_rename, one_that_fails_tells_no_attributes)
{
	static const char *const results[] = {
		RES_PUTFH, RES_SAVEFH, RES_PUTFH, "0000001d 00000011"};
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.rename.from_attr.valid = t.call.u.rename.to_attr.valid = NFS4_ATTR_CHANGE;
	cr_assert_eq(op_test_decode(&t, results, 4, NFS4ERR_EXIST), 0);
	cr_assert_eq(t.status, NFS4ERR_EXIST);
	cr_assert_eq(t.call.u.rename.from_attr.valid, 0);
	cr_assert_eq(t.call.u.rename.to_attr.valid, 0);
}

Test(nfs4_rename, source_is_saved_and_target_current)
{
	op_golden_check(&golden);
}
