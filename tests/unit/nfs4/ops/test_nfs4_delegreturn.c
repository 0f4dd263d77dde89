/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static struct nfs4_deleg deleg = {.cred = {.uid = 1000}};

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){1, {0xdd, 0xee}};
	call->u.delegreturn = (struct nfs4_op_delegreturn){.fh = &op_test_fh, .deleg = &deleg};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.delegreturn.attr);
	cr_assert_eq(call->cred, &deleg.cred, "as whoever has it");
}

static const struct op_golden golden = {
	.op = nfs4_delegreturn,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_STAT "00000008 00000001 ddee00000000000000000000",
	.results = {RES_PUTFH, op_test_res_stat, "00000008 00000000"},
	.reply_max = 8 + MAX_STAT + 8,
	.cachethis = true,
	.check = check,
};

Test(nfs4_delegreturn, gets_attributes_before)
{
	op_golden_check(&golden);
}

Test(nfs4_delegreturn, attributes_are_there_though_it_is_gone_already)
{
	const char *results[] = {RES_PUTFH, op_test_res_stat, "00000008 00002729"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_BAD_STATEID), 0);
	cr_assert_eq(t.status, NFS4ERR_BAD_STATEID);
	op_test_is_stat(&t.call.u.delegreturn.attr);
}

Test(nfs4_delegreturn, there_are_none_of_a_file_that_is_gone)
{
	const char *results[] = {"00000016 00000046"};
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.delegreturn.attr.valid = NFS4_ATTR_SIZE;
	cr_assert_eq(op_test_decode(&t, results, 1, NFS4ERR_STALE), 0);
	cr_assert_eq(t.status, NFS4ERR_STALE);
	cr_assert_eq(t.call.u.delegreturn.attr.valid, 0);
}

Test(nfs4_delegreturn, goes_again_without_attributes_that_are_refused)
{
	static const char *const refused[] = {RES_PUTFH, "00000009 0000000d"};
	static const char *const results[] = {RES_PUTFH, "00000008 00000000"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, refused, 2, NFS4ERR_ACCESS), 0);
	cr_assert(t.desc->again(&t.call));
	cr_assert_eq(op_test_encode(&t, &golden, 1000,
			     HEX_PUTFH "00000008 00000001 ddee00000000000000000000"),
		0);
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4_OK), 0);
	cr_assert_not(t.desc->again(&t.call));
}
