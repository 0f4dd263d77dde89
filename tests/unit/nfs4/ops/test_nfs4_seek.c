/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){1, {0xaa}};
	call->u.seek = (struct nfs4_op_seek){
		.fh = &op_test_fh,
		.offset = 0x10000,
		.what = NFS4_CONTENT_HOLE,
	};
}

static void check(const struct nfs4_call *call)
{
	cr_assert(call->u.seek.eof);
	cr_assert_eq(call->u.seek.found, 0x100002000);
}

static const struct op_golden golden = {
	.op = nfs4_seek,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "00000045 00000001 aa0000000000000000000000 0000000000010000 00000001",
	.results = {RES_PUTFH, "00000045 00000000 00000001 0000000100002000"},
	.reply_max = 8 + 20,
	.check = check,
};

Test(nfs4_seek, finds_a_hole)
{
	op_golden_check(&golden);
}

Test(nfs4_seek, needs_minor_version_2)
{
	struct op_golden g = golden;
	struct op_test t;

	g.minor = 1;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
