/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call's way through the RPC layer: header in front, transport below,
 * reply header off.
 */
#include "rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static char machine_name[RPC_MAX_MACHINE + 1] = "localhost";

void rpc_set_machine_name(const char *name)
{
	snprintf(machine_name, sizeof(machine_name), "%s", name);
}

static enum rpc_result decode(struct rpc_call *call)
{
	struct rpcrdma_req *req = &call->req;

	switch (req->end) {
	case RPCRDMA_REPLY:
		xdr_dec_init(&call->results, req->reply, req->reply_len);
		return rpc_decode_reply(&call->results, req->xid, &call->mismatch_low,
			&call->mismatch_high, &call->auth_stat);
	case RPCRDMA_TIMEDOUT:
		return RPC_TIMEDOUT;
	case RPCRDMA_UNANSWERED:
		return RPC_UNANSWERED;
	case RPCRDMA_TOOSMALL:
		return RPC_TOOSMALL;
	case RPCRDMA_REFUSED:
	case RPCRDMA_GIVENUP:
	case RPCRDMA_BADREPLY:
		return RPC_BADREPLY;
	case RPCRDMA_SHUTDOWN:
		return RPC_SHUTDOWN;
	}
	return RPC_BADREPLY;
}

static void transport_done(struct rpcrdma_req *req)
{
	struct rpc_call *call = container_of(req, struct rpc_call, req);

	call->mismatch_low = call->mismatch_high = call->auth_stat = 0;
	xdr_dec_init(&call->results, NULL, 0);
	call->result = decode(call);
	call->done(call);
}

void rpc_begin(struct rpcrdma *x, struct rpc_call *call, uint32_t prog, uint32_t vers,
	uint32_t proc, const struct rpc_cred *cred, struct rpcrdma_buf *long_buf,
	struct xdr_enc *enc)
{
	struct rpcrdma_req *req = &call->req;
	struct rpc_callhdr h = {
		.xid = rpcrdma_next_xid(x), .prog = prog, .vers = vers, .proc = proc};

	if (cred)
		h.cred = *cred;
	call->xprt = x;
	req->done = transport_done;
	req->xid = h.xid;
	req->head_len = 0;
	req->long_call = (struct rpcrdma_span){0};
	if (long_buf) {
		req->long_call.buf = long_buf;
		req->long_call.p = long_buf->data;
		xdr_enc_init(enc, long_buf->data, rpcrdma_data_size(x));
	} else {
		xdr_enc_init(enc, req->head, req->head_room);
	}
	rpc_encode_call(enc, &h, machine_name);
}

int rpc_send(struct rpc_call *call, const struct xdr_enc *enc)
{
	struct rpcrdma_req *req = &call->req;
	size_t len = xdr_enc_len(enc);
	int err;

	assert(enc->base == req->head || enc->base == req->long_call.p);
	if (enc->failed || len > UINT32_MAX)
		return -EMSGSIZE;
	if (enc->base == req->head)
		req->head_len = len;
	else
		req->long_call.len = (uint32_t)len;
	req->reply_max += RPC_REPLY_HDR;
	err = rpcrdma_send(call->xprt, req);
	if (err)
		req->reply_max -= RPC_REPLY_HDR;
	return err;
}
