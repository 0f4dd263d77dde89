/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.lockt = (struct nfs4_op_lockt){
		.fh = &op_test_fh,
		.owner = 0x1122334455667788,
		.write = true,
		.offset = 0x100,
		.length = 0x200,
	};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_not(call->u.lockt.conflict);
}

static const struct op_golden golden = {
	.op = nfs4_lockt,
	.setup = setup,
	.args = HEX_PUTFH "0000000d 00000002 0000000000000100 0000000000000200 "
			  "0000000000000000 00000010 6c6f636b2069643a 1122334455667788",
	.results = {RES_PUTFH, "0000000d 00000000"},
	.reply_max = 8 + 8 + 160,
	.cachethis = true,
	.check = check,
};

Test(nfs4_lockt, free_it_is)
{
	op_golden_check(&golden);
}

Test(nfs4_lockt, a_conflict_is_an_answer)
{
	static const char *const results[] = {RES_PUTFH,
		"0000000d 0000271a 0000000000000010 0000000000000020 00000002"
		"0000000000000001 00000002 61620000"};
	/* "lock id:" and a number */
	static const char *const ours[] = {RES_PUTFH,
		"0000000d 0000271a 0000000000000010 0000000000000020 00000002"
		"0000000000000001 00000010 6c6f636b2069643a 1122334455667788"};
	static const char *const cut[] = {RES_PUTFH, "0000000d 0000271a 0000000000000010"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_DENIED), 0);
	cr_assert_eq(t.status, NFS4_OK);
	cr_assert(t.call.u.lockt.conflict && t.call.u.lockt.denied.write);
	cr_assert_eq(t.call.u.lockt.denied.offset, 0x10);
	cr_assert_eq(t.call.u.lockt.denied.length, 0x20);
	cr_assert_eq(t.call.u.lockt.denied.owner, 0);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, ours, 2, NFS4ERR_DENIED), 0);
	cr_assert_eq(t.call.u.lockt.denied.owner, 0x1122334455667788);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, cut, 2, NFS4ERR_DENIED), -EBADMSG);
	cr_assert_not(t.call.u.lockt.conflict);
}

static void setup_empty(struct nfs4_call *call)
{
	setup(call);
	call->u.lockt.length = 0;
}

Test(nfs4_lockt, asks_for_no_range_that_is_none)
{
	struct op_golden g = golden;
	struct op_test t;

	g.setup = setup_empty;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EINVAL);
}
