/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH [VERIFY] WRITE [GETATTR]. The data is the argument that may move by Read chunk:
 * it is not in the encoded stream, which goes on behind it with GETATTR.
 */
#include "nfs4_hooks.h"

#include <stddef.h>

/* As much of the data as is sent. */
static uint32_t put_data(struct nfs4_op_write *o, struct rpcrdma_req *req, uint32_t max)
{
	uint32_t sent = 0;

	req->arg_cnt = 0;
	for (unsigned int i = 0; i < o->data_cnt && (max == 0 || sent < max); i++) {
		struct rpcrdma_span *arg = &req->args[req->arg_cnt++];

		*arg = o->data[i];
		if (max && arg->len > max - sent)
			arg->len = max - sent;
		sent += arg->len;
	}
	return sent;
}

static int write_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_write *o = &call->u.write;
	struct rpcrdma_req *req = &call->rpc.req;
	size_t data_off;

	o->unsure |= o->unanswered;
	o->unanswered = true;
	o->sent = put_data(o, req, c->write_max);
	nfs4_xdr_put_putfh(c, o->fh);
	if (o->at_end) {
		nfs4_compound_op(c, OP_VERIFY, 0);
		nfs4_attr_put_size(&c->enc, o->offset);
	}
	nfs4_compound_op(c, OP_WRITE, 8 + NFS4_VERIFIER_SIZE);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u32(&c->enc, o->stable);
	xdr_put_u32(&c->enc, o->sent);
	data_off = xdr_enc_len(&c->enc);
	if (!o->no_attr)
		nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN);
	req->tail_len = o->sent ? xdr_enc_len(&c->enc) - data_off : 0;
	return nfs4_xdr_encode_end(c);
}

static void get_write(struct xdr_dec *x, struct nfs4_op_write *o)
{
	uint32_t count = xdr_get_u32(x);
	uint32_t committed = xdr_get_u32(x);

	nfs4_xdr_get_verf(x, &o->verf);
	/* WIRE: no more than was sent, no less stable than was asked (RFC 8881 section 18.32.3). */
	if (count > o->sent || committed > FILE_SYNC4 || committed < o->stable)
		xdr_fail(x);
	if (x->failed)
		return;
	o->count = count;
	o->committed = (enum nfs4_stable)committed;
}

static int write_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_write *o = &call->u.write;

	o->count = 0;
	o->attr.valid = 0;
	o->unanswered = false;
	if (nfs4_compound_void(c, OP_PUTFH) && (!o->at_end || nfs4_compound_void(c, OP_VERIFY)) &&
		nfs4_compound_result(c, OP_WRITE)) {
		get_write(&c->dec, o);
		if (!o->no_attr)
			nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static bool write_range(const struct nfs4_call *call, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct nfs4_op_write *o = &call->u.write;
	uint64_t count = 0;

	for (unsigned int i = 0; i < o->data_cnt; i++)
		count += o->data[i].len;
	return nfs4_bytes_range(o->offset, count, ret_first, ret_last);
}

/* The same bytes at the same place: a WRITE may be executed twice. */
static const struct nfs4_opdesc write_desc = {
	.name = "WRITE",
	.encode = write_encode,
	.decode = write_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.range = write_range,
	.state_off = offsetof(struct nfs4_call, u.write.state),
};

/*
 * The second time the file does not end there any more. A replay tells; where there is none the
 * user has to find out.
 */
static const struct nfs4_opdesc append_desc = {
	.name = "WRITE",
	.encode = write_encode,
	.decode = write_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.range = write_range,
	.cachethis = true,
	.repeatable = true,
	.state_off = offsetof(struct nfs4_call, u.write.state),
};

void nfs4_write(struct nfs4_call *call)
{
	struct nfs4_op_write *o = &call->u.write;

	o->unsure = o->unanswered = false;
	nfs4_call_start(call, o->at_end ? &append_desc : &write_desc);
}
