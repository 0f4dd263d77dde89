/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.lookup = (struct nfs4_op_lookup){.dir = &op_test_fh, .name = {"hello", 5}};
}

static void check(const struct nfs4_call *call)
{
	const struct nfs4_op_lookup *o = &call->u.lookup;

	op_test_is_dir(&o->dir_attr);
	op_test_is_fh2(&o->fh);
	op_test_is_stat(&o->attr);
}

static const struct op_golden golden = {
	.op = nfs4_lookup,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_DIR
	"0000000f 00000005 68656c6c 6f000000" HEX_GETFH HEX_GETATTR_STAT,
	.results = {RES_PUTFH, op_test_res_dir, "0000000f 00000000", RES_GETFH2, op_test_res_stat},
	.reply_max = 8 + MAX_DIR + 8 + MAX_GETFH + MAX_STAT,
	.check = check,
};

Test(nfs4_lookup, asks_for_the_directory_first)
{
	op_golden_check(&golden);
}

static void setup_stat(struct nfs4_call *call)
{
	setup(call);
	call->u.lookup.ask = NFS4_DIR_STAT;
}

static void check_stat(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.lookup.dir_attr);
	op_test_is_fh2(&call->u.lookup.fh);
	op_test_is_stat(&call->u.lookup.attr);
}

static const struct op_golden golden_stat = {
	.op = nfs4_lookup,
	.setup = setup_stat,
	.args = HEX_PUTFH HEX_GETATTR_STAT
	"0000000f 00000005 68656c6c 6f000000" HEX_GETFH HEX_GETATTR_STAT,
	.results = {RES_PUTFH, op_test_res_stat, "0000000f 00000000", RES_GETFH2, op_test_res_stat},
	.reply_max = 8 + MAX_STAT + 8 + MAX_GETFH + MAX_STAT,
	.check = check_stat,
};

Test(nfs4_lookup, asks_for_all_of_the_directory)
{
	op_golden_check(&golden_stat);
}

Test(nfs4_lookup, asks_for_less_where_all_does_not_fit)
{
	struct op_golden fits = golden_stat, does_not = golden;

	fits.inline_max = RPC_REPLY_HDR + fits.reply_max;
	op_golden_check(&fits);
	does_not.setup = setup_stat;
	does_not.inline_max = fits.inline_max - 1;
	op_golden_check(&does_not);
}

static void setup_none(struct nfs4_call *call)
{
	setup(call);
	call->u.lookup.ask = NFS4_DIR_NONE;
}

static void check_none(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.lookup.dir_attr.valid, 0);
	op_test_is_fh2(&call->u.lookup.fh);
	op_test_is_stat(&call->u.lookup.attr);
}

static const struct op_golden golden_none = {
	.op = nfs4_lookup,
	.setup = setup_none,
	.args = HEX_PUTFH "0000000f 00000005 68656c6c 6f000000" HEX_GETFH HEX_GETATTR_STAT,
	.results = {RES_PUTFH, "0000000f 00000000", RES_GETFH2, op_test_res_stat},
	.reply_max = 8 + 8 + MAX_GETFH + MAX_STAT,
	.check = check_none,
};

Test(nfs4_lookup, asks_nothing_about_a_directory_that_is_known)
{
	op_golden_check(&golden_none);
}

Test(nfs4_lookup, goes_again_without_a_directory_that_is_refused)
{
	const char *refused[] = {RES_PUTFH, "00000009 0000000d"};
	const char *denied[] = {
		RES_PUTFH, op_test_res_dir, "0000000f 00000000", RES_GETFH2, "00000009 0000000d"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, refused, 2, NFS4ERR_ACCESS), 0);
	cr_assert(t.desc->again(&t.call));
	cr_assert_eq(op_test_encode(&t, &golden, 1000, golden_none.args), 0);
	cr_assert_eq(op_test_decode(&t, golden_none.results, 4, NFS4_OK), 0);
	check_none(&t.call);
	/* Of the file they are what was asked for. */
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, denied, 5, NFS4ERR_ACCESS), 0);
	cr_assert_eq(t.status, NFS4ERR_ACCESS);
	cr_assert_not(t.desc->again(&t.call));
}

Test(nfs4_lookup, directory_is_there_when_the_name_is_not)
{
	const char *results[] = {RES_PUTFH, op_test_res_dir, "0000000f 00000002"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_NOENT), 0);
	cr_assert_eq(t.status, NFS4ERR_NOENT);
	op_test_is_dir(&t.call.u.lookup.dir_attr);
	cr_assert_eq(t.call.u.lookup.fh.len, 0);
	cr_assert_eq(t.call.u.lookup.attr.valid, 0);
}
