/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ, also behind an OPEN.
 *
 *   READ4resok = eof, length word, bytes
 *
 * The bytes are the only part that RFC 8267 section 3.1 lets the server place
 * into a Write chunk. Then the length word is in the reply, and neither the
 * bytes nor their round-up are.
 */
#include "nfs4_codec.h"

#include <errno.h>

int nfs4_read_xdr_put(
	struct nfs4_compound *c, struct nfs4_op_read *o, const struct nfs4_stateid *sid)
{
	struct rpcrdma_req *req = &c->call->rpc.req;

	if (o->sink.len < o->count)
		return -EINVAL;
	o->asked = c->read_max && c->read_max < o->count ? c->read_max : o->count;
	nfs4_compound_op(c, OP_READ, 8); /* the transport adds what it lets come inline */
	nfs4_xdr_put_stateid(&c->enc, sid);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u32(&c->enc, o->asked);
	req->result_cnt = 0;
	if (o->asked) {
		req->results[0] = (struct rpcrdma_result){.sink = o->sink};
		/* Some servers write the round-up, too, or want room for it in any case. */
		req->results[0].sink.len = XDR_ROUND(o->asked);
		req->result_cnt = 1;
	}
	return 0;
}

static void get_read(struct xdr_dec *x, struct nfs4_op_read *o, const struct rpcrdma_req *req)
{
	const struct rpcrdma_result *res = req->result_cnt ? &req->results[0] : NULL;
	uint32_t len = 0;

	o->eof = xdr_get_bool(x);
	if (res && res->got) {
		len = xdr_get_u32(x);
		/* WIRE: two accounts of the same bytes; the chunk's may include the round-up. */
		if (len > o->asked || res->got < len || res->got > XDR_ROUND(len))
			xdr_fail(x);
		o->data = o->sink.p;
	} else {
		o->data = xdr_get_opaque(x, o->asked, &len);
	}
	o->len = len;
}

void nfs4_read_xdr_get(struct nfs4_compound *c, struct nfs4_op_read *o)
{
	o->eof = false;
	if (nfs4_compound_result(c, OP_READ))
		get_read(&c->dec, o, &c->call->rpc.req);
	if (c->dec.failed || c->status != NFS4_OK) {
		o->data = NULL;
		o->len = 0;
	}
}
