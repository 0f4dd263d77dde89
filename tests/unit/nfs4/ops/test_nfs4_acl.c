/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static uint8_t room[1024];
static struct rpcrdma_buf buf = {.data = room};
static const uint8_t empty_acl[4];

static void setup_get(struct nfs4_call *call)
{
	call->u.getacl =
		(struct nfs4_op_getacl){.fh = &op_test_fh, .sink = {&buf, room, sizeof(room)}};
}

static void check_get(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.getacl.len, 32);
	cr_assert_not_null(call->u.getacl.acl);
}

#define HEX_ACL "00000001 00000000 00000000 00000001 0000000a 45564552594f4e454021 0000"

static const struct op_golden golden_get = {
	.op = nfs4_getacl,
	.setup = setup_get,
	.args = HEX_PUTFH "00000009 00000001 00001000",
	.results = {RES_PUTFH, "00000009 00000000 00000001 00001000 00000020 " HEX_ACL},
	.reply_max = 1024 - 80,
	.check = check_get,
};

static void setup_set(struct nfs4_call *call)
{
	call->u.setacl = (struct nfs4_op_setacl){.fh = &op_test_fh, .acl = empty_acl, .len = 4};
}

static void check_set(const struct nfs4_call *call)
{
	op_test_is_stat(&call->u.setacl.attr);
}

static const struct op_golden golden_set = {
	.op = nfs4_setacl,
	.setup = setup_set,
	.args = HEX_PUTFH "00000022 00000000 000000000000000000000000"
			  "00000001 00001000 00000004 00000000" HEX_GETATTR_STAT,
	.results = {RES_PUTFH, "00000022 00000000 00000001 00001000", op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + (8 + 16) + MAX_STAT,
	.cachethis = true,
	.check = check_set,
};

static int decode(struct op_test *t, const char *result)
{
	const char *results[] = {RES_PUTFH, result};

	op_test_init(t, &golden_get);
	return op_test_decode(t, results, 2, NFS4_OK);
}

Test(nfs4_acl, is_read_as_it_is)
{
	op_golden_check(&golden_get);
}

Test(nfs4_acl, is_written_as_it_is)
{
	op_golden_check(&golden_set);
}

Test(nfs4_acl, file_may_have_none)
{
	struct op_test t;

	cr_assert_eq(decode(&t, "00000009 00000000 00000000 00000000"), 0);
	cr_assert_null(t.call.u.getacl.acl);
	cr_assert_eq(decode(&t, "00000009 00000000 00000001 00000000 00000000"), 0);
	cr_assert_null(t.call.u.getacl.acl);
	cr_assert_eq(t.call.u.getacl.len, 0);
}

Test(nfs4_acl, anything_else_is_refused)
{
	struct op_test t;

	/* a size instead */
	cr_assert_eq(decode(&t, "00000009 00000000 00000001 00000010 00000008 0000000000000001"),
		-EBADMSG);
	/* an ACL without a count, one of odd length, values of no attribute */
	cr_assert_eq(decode(&t, "00000009 00000000 00000001 00001000 00000000"), -EBADMSG);
	cr_assert_eq(decode(&t, "00000009 00000000 00000001 00001000 00000005 0000000000 000000"),
		-EBADMSG);
	cr_assert_eq(decode(&t, "00000009 00000000 00000000 00000004 00000000"), -EBADMSG);
	cr_assert_null(t.call.u.getacl.acl);
}

Test(nfs4_acl, is_not_asked_for_where_there_are_none)
{
	static const uint32_t supported[3] = {~(1u << FATTR4_ACL), UINT32_MAX, UINT32_MAX};
	struct op_golden g = golden_get;
	struct op_test t;

	op_test_init(&t, &g);
	t.call.u.getacl.sink.len = 80 + 16 + 20 + 3;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EINVAL);
	t.call.u.getacl.sink.len++;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), 0);
	g.supported = supported;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}

Test(nfs4_acl, must_be_one_to_be_set)
{
	struct op_test t;

	op_test_init(&t, &golden_set);
	cr_assert_null(t.desc->long_buf(&t.call));
	t.call.u.setacl.long_buf = &buf;
	cr_assert_eq(t.desc->long_buf(&t.call), &buf);
	t.call.u.setacl.len = 3;
	cr_assert_eq(op_test_encode(&t, &golden_set, 4096, NULL), -EINVAL);
	t.call.u.setacl.len = 0;
	cr_assert_eq(op_test_encode(&t, &golden_set, 4096, NULL), -EINVAL);
}
