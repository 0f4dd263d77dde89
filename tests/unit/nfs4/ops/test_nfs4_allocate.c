/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){1, {0xaa}};
	call->u.allocate = (struct nfs4_op_allocate){
		.fh = &op_test_fh,
		.offset = 0x10000,
		.len = 0x100000000,
	};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.allocate.attr.valid, NFS4_ATTR_SIZE | NFS4_ATTR_SPACE_USED);
	cr_assert_eq(call->u.allocate.attr.size, 0x100010000);
	cr_assert_eq(call->u.allocate.attr.space_used, 0x100000000);
}

#define REST                                                                                       \
	" 00000001 aa0000000000000000000000 0000000000010000 0000000100000000"                     \
	"00000009 00000002 00000018 00302000"
#define RES_GETATTR                                                                                \
	"00000009 00000000 00000002 00000010 00002000 00000010"                                    \
	"0000000100010000 0000000100000000"

static const struct op_golden golden_allocate = {
	.op = nfs4_allocate,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "0000003b" REST,
	.results = {RES_PUTFH, "0000003b 00000000", RES_GETATTR},
	.forgiven = 2,
	.reply_max = 8 + 8 + MAX_WRITTEN + 8,
	.cachethis = true,
	.check = check,
};

static const struct op_golden golden_deallocate = {
	.op = nfs4_deallocate,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "0000003e" REST,
	.results = {RES_PUTFH, "0000003e 00000000", RES_GETATTR},
	.forgiven = 2,
	.reply_max = 8 + 8 + MAX_WRITTEN + 8,
	.cachethis = true,
	.check = check,
};

Test(nfs4_allocate, makes_room)
{
	op_golden_check(&golden_allocate);
}

Test(nfs4_allocate, punches_a_hole)
{
	op_golden_check(&golden_deallocate);
}

Test(nfs4_allocate, needs_minor_version_2)
{
	struct op_golden g = golden_allocate;
	struct op_test t;

	g.minor = 1;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
	g.op = nfs4_deallocate;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
