/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "nfs4_int.h"
#include "op_test.h"

static const struct nfs4_stateid ids[] = {{1, {0xaa, 0xbb}}, {0, {0xcc}}, {3, {0xdd}}};

static void start(struct nfs4_call *call)
{
	nfs4_call_start(call, &nfs4_test_stateid_desc);
}

static void setup(struct nfs4_call *call)
{
	call->u.test_stateid = (struct nfs4_op_test_stateid){.ids = ids, .cnt = 3};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.test_stateid.res[0], NFS4_OK);
	cr_assert_eq(call->u.test_stateid.res[1], NFS4ERR_EXPIRED);
	cr_assert_eq(call->u.test_stateid.res[2], NFS4ERR_ADMIN_REVOKED);
}

static const struct op_golden golden = {
	.op = start,
	.setup = setup,
	.args = "00000037 00000003 00000001 aabb00000000000000000000"
		" 00000000 cc0000000000000000000000 00000003 dd0000000000000000000000",
	.results = {"00000037 00000000 00000003 00000000 0000271b 0000273f"},
	.reply_max = 8 + 16,
	.check = check,
};

Test(nfs4_test_stateid, asks_about_each_and_gets_a_status_for_each)
{
	op_golden_check(&golden);
}

Test(nfs4_test_stateid, more_or_fewer_statuses_than_asked_for_are_malformed)
{
	static const char *const wrong[] = {
		"00000037 00000000 00000002 00000000 0000271b",
		"00000037 00000000 00000004 00000000 0000271b 0000273f 00000000",
		"00000037 00000000 00000000",
		"00000037 00000000 ffffffff 00000000 0000271b 0000273f",
	};

	for (int i = 0; i < 4; i++) {
		struct op_test t;

		op_test_init(&t, &golden);
		cr_assert_eq(op_test_decode(&t, &wrong[i], 1, NFS4_OK), -EBADMSG, "%d", i);
	}
}

Test(nfs4_test_stateid, is_bounded)
{
	static const struct nfs4_stateid many[NFS4_TEST_MAX + 1];
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.test_stateid.ids = many;
	t.call.u.test_stateid.cnt = NFS4_TEST_MAX;
	cr_assert_eq(op_test_encode(&t, &golden, 8 + 16 * NFS4_TEST_MAX, NULL), 0);
	t.call.u.test_stateid.cnt = NFS4_TEST_MAX + 1;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
}
