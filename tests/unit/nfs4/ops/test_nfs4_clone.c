/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){0, {0xdd}};
	call->u.copy = (struct nfs4_op_copy){
		.src = &op_test_fh2,
		.fh = &op_test_fh,
		.src_stateid = {0, {0x55}},
		.src_offset = 0x10000,
		.offset = 0x20000,
		.count = 0x40000000,
	};
}

static void is_cloned(const struct nfs4_call *call)
{
	const struct nfs4_op_copy *o = &call->u.copy;

	cr_assert_not(o->async);
	cr_assert_eq(o->copied, 0x40000000);
	cr_assert_eq(o->committed, FILE_SYNC4);
	cr_assert_eq(o->attr.valid, NFS4_ATTR_SIZE | NFS4_ATTR_SPACE_USED);
	cr_assert_eq(o->attr.size, 0x40020000);
}

static const struct op_golden golden = {
	.op = nfs4_clone,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH2 HEX_SAVEFH HEX_PUTFH "00000047 00000000 550000000000000000000000"
						" 00000000 dd0000000000000000000000"
						" 0000000000010000 0000000000020000"
						" 0000000040000000"
						" 00000005 0000000000020000 40000000"
						"00000009 00000002 00000018 00302000",
	.results = {RES_PUTFH, RES_SAVEFH, RES_PUTFH, "00000047 00000000",
		"00000005 00000000 7665726966696572",
		"00000009 00000000 00000002 00000010 00002000 00000010"
		"0000000040020000 0000000040000000"},
	.forgiven = 5,
	.reply_max = 8 + 8 + 8 + 8 + 16 + MAX_WRITTEN + 8,
	.cachethis = true,
	.check = is_cloned,
};

Test(nfs4_clone, and_committed_by_one_server)
{
	op_golden_check(&golden);
}

static int encode_with(uint64_t count, unsigned int minor)
{
	struct op_golden g = golden;
	struct op_test t;

	g.minor = minor;
	op_test_init(&t, &g);
	t.call.u.copy.count = count;
	return op_test_encode(&t, &g, 1000, NULL);
}

Test(nfs4_clone, never_more_than_asked_for)
{
	cr_assert_eq(encode_with(0, 2), -EINVAL, "it would be all");
	cr_assert_eq(encode_with(1ull << 32, 2), -EINVAL, "COMMIT would get another count");
	cr_assert_eq(encode_with(UINT32_MAX, 2), 0);
}

Test(nfs4_clone, needs_minor_version_2)
{
	cr_assert_eq(encode_with(4096, 1), -EOPNOTSUPP);
}
