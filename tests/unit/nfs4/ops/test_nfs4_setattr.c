/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){1, {0xaa, 0xbb}};
	call->u.setattr = (struct nfs4_op_setattr){
		.fh = &op_test_fh,
		.sattr = {.set = NFS4_ATTR_SIZE | NFS4_ATTR_MODE,
			.size = 4096,
			.mode = 0600,
			.umask = 077,
			.use_umask = true},
	};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.setattr.attr);
}

static const uint32_t everything[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

static const struct op_golden golden = {
	.op = nfs4_setattr,
	.setup = setup,
	.supported = everything,
	.args = HEX_PUTFH
	"00000022 00000001 aabb00000000000000000000"
	"00000002 00000010 00000002 0000000c 0000000000001000 00000180" HEX_GETATTR_STAT,
	.results = {RES_PUTFH, "00000022 00000000 00000002 00000010 00000002", op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + (8 + 16) + MAX_STAT,
	.cachethis = true,
	.check = check,
};

Test(nfs4_setattr, sets_size_and_mode_without_umask)
{
	op_golden_check(&golden);
}

Test(nfs4_setattr, bitmap_of_a_failed_one_is_not_read)
{
	const char *results[] = {RES_PUTFH, "00000022 00000001 00000000"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_PERM), 0);
	cr_assert_eq(t.status, NFS4ERR_PERM);
}
