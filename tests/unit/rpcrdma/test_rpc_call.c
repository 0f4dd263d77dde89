/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "rpc.h"

static struct rpc_call call;
static struct xdr_enc enc;
static unsigned int dones;
static uint32_t first_word;

static void done(struct rpc_call *ended)
{
	dones++;
	first_word = xdr_get_u32(&ended->results);
	rpcrdma_req_put(rig.x, &ended->req);
}

static void start(void)
{
	rig_init();
	cr_assert(rig_connect());
	memset(&call, 0, sizeof(call));
	call.done = done;
	dones = 0;
	cr_assert_eq(rpcrdma_req_get(rig.x, &call.req), 0);
}

TestSuite(rpc_call, .init = start, .fini = rig_fini);

static void begin(struct rpcrdma_buf *long_buf)
{
	static const struct rpc_cred cred = {.flavor = RPC_AUTH_SYS, .uid = 5, .gid = 6};

	rpc_set_machine_name("host");
	rpc_begin(rig.x, &call, 100003, 4, 1, &cred, long_buf, &enc);
}

Test(rpc_call, header_goes_out_and_results_come_in)
{
	struct rpc_callhdr h;
	struct xdr_dec dec;

	rig.body_len = 4;
	put_be32(rig.body, 0xabcdef);
	begin(NULL);
	xdr_put_u32(&enc, 77);
	call.req.reply_max = 4;
	cr_assert_eq(rpc_send(&call, &enc), 0);
	rig_run(1000);
	cr_assert_eq(dones, 1);
	cr_assert_eq(call.result, RPC_OK);
	cr_assert_eq(first_word, 0xabcdef);
	xdr_dec_init(&dec, rig.msg, rig.msg_len);
	cr_assert_eq(rpc_decode_call(&dec, &h), 0);
	cr_assert_eq(h.xid, rig.hdr.xid);
	cr_assert_eq(h.cred.uid, 5);
	cr_assert_eq(xdr_get_u32(&dec), 77);
}

Test(rpc_call, a_long_buffer_makes_a_long_call)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(rig.x);

	begin(buf);
	cr_assert_not_null(xdr_put_reserve(&enc, 20000));
	cr_assert_eq(rpc_send(&call, &enc), 0);
	rig_run(1000);
	cr_assert_eq(call.result, RPC_OK);
	cr_assert_eq(rig.hdr.proc, RDMA_NOMSG);
	cr_assert_gt(rig.msg_len, 20000);
	rpcrdma_buf_put(rig.x, buf);
}

Test(rpc_call, what_did_not_fit_is_not_sent)
{
	begin(NULL);
	cr_assert_null(xdr_put_reserve(&enc, 5000));
	cr_assert_eq(rpc_send(&call, &enc), -EMSGSIZE);
	begin(NULL);
	call.req.reply_max = 100000;
	cr_assert_eq(rpc_send(&call, &enc), -EMSGSIZE);
	cr_assert_eq(call.req.reply_max, 100000); /* as the caller left it */
	rpcrdma_req_put(rig.x, &call.req);
}

Test(rpc_call, transport_ends_become_results)
{
	rig.silent = true;
	begin(NULL);
	cr_assert_eq(rpc_send(&call, &enc), 0);
	rig_run(1000);
	rig_error(call.req.xid, RDMA_ERR_CHUNK);
	rig_run(1000);
	cr_assert_eq(call.result, RPC_TOOSMALL);
	cr_assert_eq(first_word, 0); /* nothing to decode */
	cr_assert_eq(rpcrdma_req_get(rig.x, &call.req), 0);
	begin(NULL);
	cr_assert_eq(rpc_send(&call, &enc), 0);
	rpcrdma_stop(rig.x);
	rig_run(1000);
	cr_assert_eq(call.result, RPC_SHUTDOWN);
	cr_assert_eq(dones, 2);
}
