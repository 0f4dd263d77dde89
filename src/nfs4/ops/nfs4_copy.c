/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH SAVEFH PUTFH COPY GETATTR, PUTFH OFFLOAD_STATUS, PUTFH OFFLOAD_CANCEL
 * (RFC 7862 sections 15.2, 15.9, 15.8).
 */
#include "nfs4_copy_xdr.h"
#include "nfs4_hooks.h"

#include <errno.h>
#include <stddef.h>

/* wr_callback_id<1>, wr_count, wr_committed, wr_writeverf; cr_requirements */
#define COPY_RES (4u + NFS4_STATEID_SIZE + 8u + 4u + NFS4_VERIFIER_SIZE + 8u)

/* ---- COPY ---- */

static int copy_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_copy *o = &call->u.copy;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->src);
	nfs4_compound_op(c, OP_SAVEFH, 0);
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_COPY, COPY_RES);
	nfs4_xdr_put_stateid(&c->enc, &o->src_stateid);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u64(&c->enc, o->src_offset);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u64(&c->enc, o->count);
	xdr_put_bool(&c->enc, true); /* ca_consecutive: what is done is done from the start */
	xdr_put_bool(&c->enc, o->synchronous);
	xdr_put_u32(&c->enc, 0); /* ca_source_server: the same */
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN | NFS4_ATTR_SPACE_USED);
	return nfs4_xdr_encode_end(c);
}

static void get_copy(struct xdr_dec *x, struct nfs4_op_copy *o)
{
	struct nfs4_copy_response res = {0};
	bool consecutive;

	if (!nfs4_copy_xdr_get_response(x, &res))
		return;
	consecutive = xdr_get_bool(x);
	xdr_get_bool(x); /* cr_synchronous: wr_callback_id says it */
	/* WIRE: more than was asked for. */
	if (!res.async && res.count > o->count)
		xdr_fail(x);
	if (x->failed)
		return;
	o->async = res.async;
	o->id = res.id;
	o->committed = res.committed;
	o->verf = res.verf;
	/* Which part it is that was copied must be known. */
	if (!res.async && (consecutive || res.count == o->count))
		o->copied = res.count;
}

static int copy_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_copy *o = &call->u.copy;

	o->async = false;
	o->copied = 0;
	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, OP_SAVEFH) &&
		nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_COPY)) {
		get_copy(&c->dec, o);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc copy_desc = {
	.name = "COPY",
	.encode = copy_encode,
	.decode = copy_decode,
	.take = nfs4_offload_take,
	.refused = nfs4_offload_refused,
	.ended = nfs4_offload_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.copy.state),
};

void nfs4_copy(struct nfs4_call *call)
{
	nfs4_offload_await(call);
	nfs4_call_start(call, &copy_desc);
}

/* ---- OFFLOAD_STATUS, OFFLOAD_CANCEL ---- */

static int offload_encode(
	struct nfs4_call *call, struct nfs4_compound *c, enum nfs4_opnum op, uint32_t reply_max)
{
	const struct nfs4_op_offload *o = &call->u.offload;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, op, reply_max);
	nfs4_xdr_put_stateid(&c->enc, &o->id);
	return nfs4_xdr_encode_end(c);
}

static int status_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return offload_encode(call, c, OP_OFFLOAD_STATUS, 8 + 4 + 4); /* osr_count, osr_complete */
}

static int status_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_offload *o = &call->u.offload;

	o->copied = 0;
	o->complete = false;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_OFFLOAD_STATUS)) {
		o->copied = xdr_get_u64(&c->dec);
		o->complete = xdr_get_count(&c->dec, 1, 4) == 1;
		if (o->complete)
			xdr_get_u32(&c->dec); /* how durable it is, it would not say */
	}
	return nfs4_xdr_decode_end(c);
}

static int cancel_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return offload_encode(call, c, OP_OFFLOAD_CANCEL, 0);
}

static int cancel_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	if (nfs4_compound_void(c, OP_PUTFH))
		nfs4_compound_void(c, OP_OFFLOAD_CANCEL);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc status_desc = {
	.name = "OFFLOAD_STATUS",
	.encode = status_encode,
	.decode = status_decode,
};

static const struct nfs4_opdesc cancel_desc = {
	.name = "OFFLOAD_CANCEL",
	.encode = cancel_encode,
	.decode = cancel_decode,
	.cachethis = true,
	.repeatable = true,
};

void nfs4_copy_status(struct nfs4_call *call)
{
	nfs4_call_start(call, &status_desc);
}

void nfs4_copy_cancel(struct nfs4_call *call)
{
	nfs4_call_start(call, &cancel_desc);
}
