/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>

#include "op_test.h"

static struct nfs4_lockowner lo = {.number = 0x1122334455667788};

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){7, {0xaa, 0xbb}};
	call->u.locku = (struct nfs4_op_locku){
		.fh = &op_test_fh, .lock = &lo, .offset = 0x100, .length = 0x200};
}

static void start_first(struct nfs4_call *call)
{
	nfs4_locku(call);
	call->u.locku.work.first = true;
	call->u.locku.work.write = true;
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.locku.work.stateid.seqid, 9);
	cr_assert_not(call->u.locku.work.none);
}

#define RANGE "0000000000000100 0000000000000200"

static const struct op_golden golden = {
	.op = nfs4_locku,
	.setup = setup,
	.args = HEX_PUTFH "0000000e 00000002 00000000 00000007 aabb00000000000000000000 " RANGE,
	.results = {RES_PUTFH, "0000000e 00000000 00000009 cc0000000000000000000000"},
	.reply_max = 8 + 8 + 16,
	.cachethis = true,
	.check = check,
};

Test(nfs4_locku, gives_back)
{
	op_golden_check(&golden);
}

static const struct op_golden first = {
	.op = start_first,
	.setup = setup,
	.args = HEX_PUTFH "0000000c 00000002 00000000 " RANGE " 00000001 00000000 00000007 "
			  "aabb00000000000000000000 00000000 "
			  "0000000000000000 00000010 6c6f636b2069643a 1122334455667788 "
			  "0000000e 00000002 00000000 00000001 000000000000000000000000 " RANGE,
	.results = {RES_PUTFH, "0000000c 00000000 00000008 cc0000000000000000000000",
		"0000000e 00000000 00000009 cc0000000000000000000000"},
	.reply_max = 8 + 8 + 160 + 8 + 16,
	.cachethis = true,
	.check = check,
};

Test(nfs4_locku, asks_for_the_stateid_that_never_came)
{
	op_golden_check(&first);
}

Test(nfs4_locku, what_is_somebody_elses_was_not_ours)
{
	static const char *const results[] = {RES_PUTFH,
		"0000000c 0000271a 0000000000000010 0000000000000020 00000002"
		"0000000000000001 00000002 61620000"};
	struct op_test t;

	op_test_init(&t, &first);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4ERR_DENIED), 0);
	cr_assert_eq(t.status, NFS4_OK);
	cr_assert(t.call.u.locku.work.none);
}
