/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_int.h"
#include "op_test.h"

static void start(struct nfs4_call *call)
{
	nfs4_call_start(call, &nfs4_free_stateid_desc);
}

static void setup(struct nfs4_call *call)
{
	call->u.free_stateid.stateid = (struct nfs4_stateid){0, {0xaa, 0xbb, 0xcc}};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.free_stateid.stateid.other[0], 0xaa, "an argument stays as it is");
}

static const struct op_golden golden = {
	.op = start,
	.setup = setup,
	.args = "0000002d 00000000 aabbcc000000000000000000",
	.results = {"0000002d 00000000"},
	.reply_max = 8,
	.cachethis = true,
	.check = check,
};

Test(nfs4_free_stateid, names_a_stateid)
{
	op_golden_check(&golden);
}
