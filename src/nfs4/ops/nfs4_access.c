/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH ACCESS GETATTR */
#include "nfs4_int.h"

static int access_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_access *o = &call->u.access;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_ACCESS, 8);
	xdr_put_u32(&c->enc, o->want);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int access_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_access *o = &call->u.access;

	o->supported = o->access = 0;
	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_ACCESS)) {
		o->supported = xdr_get_u32(&c->dec);
		o->access = xdr_get_u32(&c->dec) & o->supported;
		nfs4_xdr_get_getattr(c, &o->attr);
		/* An ACL may deny the attributes; that was not the question. */
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc access_desc = {
	.name = "ACCESS",
	.encode = access_encode,
	.decode = access_decode,
};

void nfs4_access(struct nfs4_call *call)
{
	nfs4_call_start(call, &access_desc);
}
