/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "op_test.h"

static uint8_t room[1024];
static struct rpcrdma_buf buf = {.data = room};
static unsigned int seen_cnt, stop_after;
static char names[8][256];

static bool name(struct nfs4_call *call, const struct nfs4_str *n)
{
	cr_assert_lt(seen_cnt, 8);
	memcpy(names[seen_cnt], n->p, n->len);
	names[seen_cnt][n->len] = '\0';
	seen_cnt++;
	return seen_cnt != stop_after;
}

static void setup(struct nfs4_call *call)
{
	seen_cnt = stop_after = 0;
	call->u.listxattrs = (struct nfs4_op_listxattrs){
		.fh = &op_test_fh, .cookie = 5, .sink = {&buf, room, sizeof(room)}, .name = name};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(seen_cnt, 2);
	cr_assert_str_eq(names[0], "mime");
	cr_assert_str_eq(names[1], "a/b");
	cr_assert(call->u.listxattrs.eof);
	cr_assert_eq(call->u.listxattrs.cookie_out, 7);
	cr_assert_eq(call->u.listxattrs.skipped, 0);
}

/* 1024 - 80 - 16 - 16 = 912 bytes of names */
static const struct op_golden golden = {
	.op = nfs4_listxattrs,
	.setup = setup,
	.minor = 2,
	.args = HEX_PUTFH "0000004a 0000000000000005 00000390",
	.results = {RES_PUTFH, "0000004a 00000000 0000000000000007 00000002"
			       "00000004 6d696d65 00000003 612f6200 00000001"},
	.reply_max = 1024 - 80,
	.check = check,
};

static int decode(struct op_test *t, const char *result, unsigned int stop)
{
	const char *results[] = {RES_PUTFH, result};

	op_test_init(t, &golden);
	stop_after = stop;
	return op_test_decode(t, results, 2, NFS4_OK);
}

Test(nfs4_listxattrs, tells_the_names)
{
	op_golden_check(&golden);
}

Test(nfs4_listxattrs, user_says_when_it_is_enough)
{
	struct op_test t;

	cr_assert_eq(decode(&t, golden.results[1], 1), 0);
	cr_assert_eq(seen_cnt, 1);
	cr_assert(!t.call.u.listxattrs.eof);
}

Test(nfs4_listxattrs, names_that_cannot_be_are_skipped)
{
	struct op_test t;

	cr_assert_eq(decode(&t,
			     "0000004a 00000000 0000000000000007 00000003"
			     "00000000 00000002 61000000 00000001 62000000 00000001",
			     0),
		0);
	cr_assert_eq(seen_cnt, 1);
	cr_assert_str_eq(names[0], "b");
	cr_assert_eq(t.call.u.listxattrs.skipped, 2);
}

Test(nfs4_listxattrs, endless_and_impossible_lists_are_refused)
{
	struct op_test t;

	cr_assert_eq(decode(&t, "0000004a 00000000 0000000000000007 00000000 00000001", 0), 0);
	/* nothing, but not the end */
	cr_assert_eq(
		decode(&t, "0000004a 00000000 0000000000000007 00000000 00000000", 0), -EBADMSG);
	/* going on from where we were */
	cr_assert_eq(
		decode(&t, "0000004a 00000000 0000000000000005 00000001 00000001 62000000 00000000",
			0),
		-EBADMSG);
	/* four thousand million names */
	cr_assert_eq(
		decode(&t, "0000004a 00000000 0000000000000007 ffffffff 00000001", 0), -EBADMSG);
}

Test(nfs4_listxattrs, needs_a_sink_and_minor_version_2)
{
	struct op_golden g = golden;
	struct op_test t;

	op_test_init(&t, &g);
	t.call.u.listxattrs.sink.len = 80 + 16 + 16 + 8;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), 0);
	t.call.u.listxattrs.sink.len--;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EINVAL);
	g.minor = 1;
	cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
}
