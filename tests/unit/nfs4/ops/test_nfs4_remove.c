/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.remove = (struct nfs4_op_remove){.dir = &op_test_fh, .name = {"ab", 2}};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_cinfo(&call->u.remove.cinfo);
	op_test_is_dir(&call->u.remove.dir_attr);
}

static const struct op_golden golden = {
	.op = nfs4_remove,
	.setup = setup,
	.args = HEX_PUTFH "0000001c 00000002 61620000" HEX_GETATTR_DIR,
	.results = {RES_PUTFH, "0000001c 00000000 " RES_CINFO, op_test_res_dir},
	.forgiven = 2,
	.reply_max = 8 + 28 + MAX_DIR,
	.cachethis = true,
	.check = check,
};

Test(nfs4_remove, brings_the_directory_after_it)
{
	op_golden_check(&golden);
}

Test(nfs4_remove, succeeded_though_the_attributes_did_not_come)
{
	const char *results[] = {RES_PUTFH, golden.results[1], "00000009 00002718"};
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.remove.dir_attr.valid = NFS4_ATTR_TYPE; /* of an earlier answer */
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_DELAY), 0);
	cr_assert_eq(t.status, NFS4_OK, "repeating it would say NOENT");
	op_test_is_cinfo(&t.call.u.remove.cinfo);
	cr_assert_eq(t.call.u.remove.dir_attr.valid, 0);
}
