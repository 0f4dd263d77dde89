/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){7, {0xaa, 0xbb, 0xcc}};
	call->u.close = (struct nfs4_op_close){.fh = &op_test_fh};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.close.attr);
	cr_assert_eq(call->stateid.seqid, 7, "an argument stays as it is");
}

static const struct op_golden golden = {
	.op = nfs4_close,
	.setup = setup,
	.args = HEX_PUTFH HEX_GETATTR_STAT "00000004 00000000 00000007 aabbcc000000000000000000",
	.results = {RES_PUTFH, op_test_res_stat,
		"00000004 00000000 ffffffff 000000000000000000000000"},
	.reply_max = 8 + MAX_STAT + 24,
	.cachethis = true,
	.check = check,
};

Test(nfs4_close, gets_attributes_before)
{
	op_golden_check(&golden);
}

/* ---- behind a LOCKU, when the server wants that ---- */

static void start_unlock(struct nfs4_call *call)
{
	nfs4_close(call);
	call->u.close.unlocks = true;
	call->u.close.unlock = (struct nfs4_stateid){3, {0xdd}};
}

#define RES_LOCKU "0000000e 00000000 00000004 dd0000000000000000000000"

static const struct op_golden unlock = {
	.op = start_unlock,
	.setup = setup,
	.args = HEX_PUTFH "0000000e 00000002 00000000 00000003 dd0000000000000000000000 "
			  "0000000000000000 ffffffffffffffff " HEX_GETATTR_STAT
			  "00000004 00000000 00000007 aabbcc000000000000000000",
	.results = {RES_PUTFH, RES_LOCKU, op_test_res_stat,
		"00000004 00000000 ffffffff 000000000000000000000000"},
	.reply_max = 8 + 24 + MAX_STAT + 24,
	.cachethis = true,
	.check = check,
};

Test(nfs4_close, gives_locks_back_before)
{
	op_golden_check(&unlock);
}

Test(nfs4_close, goes_again_without_attributes_that_are_refused)
{
	static const struct {
		const char *getattr;
		enum nfs4_status status;
		bool again;
	} rows[] = {
		{"00000009 0000000d", NFS4ERR_ACCESS, true},
		{"00000009 00000001", NFS4ERR_PERM, true},
		{"00000009 00002718", NFS4ERR_DELAY, false},
	};
	static const char *const results[] = {
		RES_PUTFH, "00000004 00000000 ffffffff 000000000000000000000000"};

	for (int i = 0; i < 3; i++) {
		const char *refused[] = {RES_PUTFH, rows[i].getattr};
		struct op_test t;

		op_test_init(&t, &golden);
		cr_assert_eq(op_test_decode(&t, refused, 2, rows[i].status), 0);
		cr_assert_eq(t.status, rows[i].status);
		cr_assert_eq(t.desc->again(&t.call), rows[i].again);
		if (!rows[i].again)
			continue;
		cr_assert_eq(
			op_test_encode(&t, &golden, 1000,
				HEX_PUTFH "00000004 00000000 00000007 aabbcc000000000000000000"),
			0);
		cr_assert_eq(op_test_decode(&t, results, 2, NFS4_OK), 0);
		cr_assert_eq(t.call.u.close.attr.valid, 0);
		cr_assert_not(t.desc->again(&t.call));
	}
}

Test(nfs4_close, locks_that_cannot_be_given_back_are_not_its_end)
{
	static const struct {
		const char *locku;
		enum nfs4_status status, want;
	} rows[] = {
		{"0000000e 00002729", NFS4ERR_BAD_STATEID, NFS4ERR_LOCKS_HELD},
		{"0000000e 00000016", NFS4ERR_INVAL, NFS4ERR_LOCKS_HELD},
		{"0000000e 00002718", NFS4ERR_DELAY, NFS4ERR_DELAY},
	};

	for (int i = 0; i < 3; i++) {
		const char *results[] = {RES_PUTFH, rows[i].locku};
		struct op_test t;

		op_test_init(&t, &unlock);
		cr_assert_eq(op_test_decode(&t, results, 2, rows[i].status), 0);
		cr_assert_eq(t.status, rows[i].want);
	}
}
