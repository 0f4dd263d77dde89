/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "op_test.h"

static uint8_t room[4608];
static struct rpcrdma_buf buf = {.data = room};

static void setup(struct nfs4_call *call)
{
	call->u.readlink =
		(struct nfs4_op_readlink){.fh = &op_test_fh, .sink = {&buf, room, sizeof(room)}};
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.readlink.target.len, 7);
	cr_assert_not_null(call->u.readlink.target.p);
}

static const struct op_golden golden = {
	.op = nfs4_readlink,
	.setup = setup,
	.args = HEX_PUTFH "0000001b",
	.results = {RES_PUTFH, "0000001b 00000000 00000007 2e2e2f612f6263 00"},
	.reply_max = 8 + 8 + 4 + 4096,
	.check = check,
};

Test(nfs4_readlink, reads_the_target)
{
	op_golden_check(&golden);
}

Test(nfs4_readlink, never_offers_a_write_chunk)
{
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.rpc.req.result_cnt, 0);
	cr_assert_eq(t.call.rpc.req.reply_sink.p, room);
	cr_assert_eq(t.call.rpc.req.reply_sink.len, sizeof(room));
}

/* A reply with a target of len bytes, the first of them `first`. */
static int decode_target(struct op_test *t, uint32_t len, uint8_t first)
{
	size_t size = 20 + XDR_ROUND(len);
	uint8_t *p = calloc(1, size);
	struct xdr_enc x;
	int ret;

	xdr_enc_init(&x, p, size);
	xdr_put_u32(&x, OP_PUTFH);
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u32(&x, OP_READLINK);
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u32(&x, len);
	memset(p + 20, 'x', len);
	if (len)
		p[20] = first;
	op_test_init(t, &golden);
	ret = op_test_decode_bytes(t, p, size, 2, NFS4_OK);
	free(p);
	return ret;
}

Test(nfs4_readlink, refuses_targets_that_cannot_be)
{
	struct op_test t;

	cr_assert_eq(decode_target(&t, 4095, 'x'), 0);
	cr_assert_eq(t.call.u.readlink.target.len, 4095);
	cr_assert_eq(decode_target(&t, 4096, 'x'), -EBADMSG);
	cr_assert_eq(decode_target(&t, 0, 0), -EBADMSG);
	cr_assert_eq(decode_target(&t, 3, '\0'), -EBADMSG);
	cr_assert_null(t.call.u.readlink.target.p);
	cr_assert_eq(t.call.u.readlink.target.len, 0);
}
