/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static uint8_t room[1024];
static struct rpcrdma_buf buf = {.data = room};

static void setup(struct nfs4_call *call)
{
	call->u.getxattr = (struct nfs4_op_getxattr){
		.fh = &op_test_fh, .name = {"mime", 4}, .sink = {&buf, room, sizeof(room)}};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.getxattr.len, 5);
	cr_assert_not_null(call->u.getxattr.value);
}

static const struct op_golden golden = {
	.op = nfs4_getxattr,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "00000048 00000004 6d696d65",
	.results = {RES_PUTFH, "00000048 00000000 00000005 612f622f63 000000"},
	.reply_max = 1024 - 80,
	.check = check,
};

Test(nfs4_getxattr, takes_as_much_as_its_sink)
{
	struct op_test t;

	op_golden_check(&golden);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.rpc.req.reply_sink.p, room);
	cr_assert_eq(NFS4_REPLY_HEAD + t.c.reply_max, sizeof(room));
}

Test(nfs4_getxattr, sink_has_room_for_an_empty_value_at_least)
{
	struct op_test t;

	op_test_init(&t, &golden);
	t.call.u.getxattr.sink.len = 80 + 16 + 4;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), 0);
	t.call.u.getxattr.sink.len--;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
	t.call.u.getxattr.sink.len = 0;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
}

Test(nfs4_getxattr, needs_minor_version_2)
{
	struct op_golden g = golden;
	struct op_test t;

	g.minor = 1;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
