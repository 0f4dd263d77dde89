/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH GETATTR */
#include "nfs4_int.h"

static int getattr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_xdr_put_putfh(c, call->u.getattr.fh);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int getattr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_getattr *o = &call->u.getattr;

	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH))
		nfs4_xdr_get_getattr(c, &o->attr);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc getattr_desc = {
	.name = "GETATTR",
	.encode = getattr_encode,
	.decode = getattr_decode,
};

void nfs4_getattr(struct nfs4_call *call)
{
	nfs4_call_start(call, &getattr_desc);
}
