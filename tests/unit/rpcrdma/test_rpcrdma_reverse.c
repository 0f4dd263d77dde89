/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "rpc.h"

static struct call c[12];

static void start(void)
{
	rig_init();
	cr_assert(rig_connect());
}

TestSuite(rpcrdma_reverse, .init = start, .fini = rig_fini);

static int answer(uint32_t xid)
{
	uint8_t msg[64];
	struct xdr_enc enc;

	xdr_enc_init(&enc, msg, sizeof(msg));
	rpc_encode_accepted(&enc, xid, RPC_ACCEPT_SUCCESS, 0, 0);
	return rpcrdma_reverse_reply(rig.x, msg, xdr_enc_len(&enc));
}

Test(rpcrdma_reverse, a_call_of_the_server_is_answered_inline)
{
	rig.answer_rcalls = true;
	rig_reverse_call(0x4242);
	rig_run(1000);
	cr_assert_eq(rig.rcalls, 1);
	cr_assert_eq(rig.rcall_xid, 0x4242);
	cr_assert_eq(rig.hdr.xid, 0x4242);
	cr_assert_eq(rig.hdr.proc, RDMA_MSG);
	cr_assert_eq(rig.hdr.credits, RPCRDMA_REVERSE_CREDITS);
	cr_assert_eq(rig.msg_len, 24);
	cr_assert_eq(rig.stats.reverse_calls, 1);
}

Test(rpcrdma_reverse, credits_and_xids_are_apart_from_the_forward_ones)
{
	uint32_t xid;

	rig.silent = rig.answer_rcalls = true;
	call_start(&c[0], false);
	call_start(&c[1], false);
	rig_run(1000);
	xid = c[0].req.xid;
	rig_reverse_call(xid); /* RFC 8167 section 4: may be equal */
	rig_run(1000);
	cr_assert_eq(rig.rcalls, 1);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.hdr.xid, xid);
	cr_assert_eq(get_be32(rig.msg + 4), RPC_MSG_REPLY);
	cr_assert_eq(rig.hdr.credits, RPCRDMA_REVERSE_CREDITS); /* of this direction, not 8 */
	cr_assert_eq(rig.x->credit.granted, 1); /* its credit field granted nothing */
	rig_reply(xid);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	rig_reply(c[1].req.xid);
	rig_run(1000);
}

Test(rpcrdma_reverse, more_calls_than_credits_do_not_break_the_connection)
{
	for (uint32_t i = 0; i < 200; i++)
		rig_reverse_call(1000 + i);
	rig_run(1000);
	cr_assert_eq(rig.rcalls, 200);
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_eq(answer(1000), -ENOTCONN); /* forgotten */
	cr_assert_eq(answer(1199), 0);
	cr_assert_eq(answer(1199), -ENOTCONN); /* once */
	rig_run(1000);
}

Test(rpcrdma_reverse, without_a_free_send_buffer_the_answer_is_dropped)
{
	fake.hold_sent = true;
	for (uint32_t i = 0; i < 10; i++)
		rig_reverse_call(1000 + i);
	rig_run(1000);
	for (uint32_t i = 0; i < RPCRDMA_REVERSE_SENDS; i++)
		cr_assert_eq(answer(1000 + i), 0);
	cr_assert_eq(answer(1008), -EAGAIN);
	fake.hold_sent = false;
	fake_flush_sent();
	rig_run(1000);
	cr_assert_eq(answer(1009), 0);
	rig_run(1000);
	cr_assert_eq(rig.stats.reverse_dropped, 1);
}

Test(rpcrdma_reverse, an_answer_to_an_older_connection_is_refused)
{
	rig_reverse_call(7);
	rig_run(1000);
	fake_down(0);
	cr_assert_eq(rig.rcalls, 1);
	rig_run(NSEC_PER_SEC);
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_eq(answer(7), -ENOTCONN);
}

Test(rpcrdma_reverse, answers_too_long_or_malformed_are_refused)
{
	static uint8_t msg[4096];

	rig_reverse_call(7);
	rig_run(1000);
	put_be32(msg, 7);
	cr_assert_eq(rpcrdma_reverse_reply(rig.x, msg, 4072), -EMSGSIZE);
	cr_assert_eq(rpcrdma_reverse_reply(rig.x, msg, 7), -EMSGSIZE);
	cr_assert_eq(rpcrdma_reverse_reply(rig.x, msg, 4068), 0);
	rig_run(1000);
}

Test(rpcrdma_reverse, calls_with_chunks_get_err_chunk)
{
	struct rpcrdma_hdr h = {.xid = 9, .vers = 1, .credits = 2, .proc = RDMA_NOMSG};
	uint8_t body[40] = {0};

	h.read_cnt = 1;
	h.reads[0] = (struct rpcrdma_read_seg){0, {1, 2, 3}};
	rig_send_hdr(&h, NULL, 0, 0);
	rig_run(1000);
	cr_assert_eq(rig.hdr.proc, RDMA_ERROR);
	cr_assert_eq(rig.hdr.err, RDMA_ERR_CHUNK);
	cr_assert_eq(rig.hdr.xid, 9);
	h.proc = RDMA_MSG;
	h.xid = 10;
	put_be32(body, 10);
	rig_send_hdr(&h, body, sizeof(body), 0);
	rig_run(1000);
	cr_assert_eq(rig.hdr.xid, 10);
	cr_assert_eq(rig.rcalls, 0);
	cr_assert_eq(rig.stats.reverse_dropped, 2);
}

Test(rpcrdma_reverse, a_failing_post_replaces_the_connection)
{
	rig_reverse_call(7);
	rig_run(1000);
	fake.fail[FAKE_POST_SEND] = -EIO;
	cr_assert_eq(answer(7), -ENOTCONN);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.up, 2);
}
