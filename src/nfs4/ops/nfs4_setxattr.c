/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH SETXATTR GETATTR (RFC 8276 section 8.4.2) */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

static int setxattr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_setxattr *o = &call->u.setxattr;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_SETXATTR, 20);
	xdr_put_u32(&c->enc, o->option);
	nfs4_xdr_put_str(&c->enc, &o->name);
	xdr_put_opaque(&c->enc, o->value, o->len);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN);
	return nfs4_xdr_encode_end(c);
}

static int setxattr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_setxattr *o = &call->u.setxattr;

	o->attr.valid = 0;
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_SETXATTR)) {
		nfs4_xdr_get_cinfo(&c->dec, &o->cinfo);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static struct rpcrdma_buf *setxattr_long_buf(struct nfs4_call *call)
{
	return call->u.setxattr.long_buf;
}

static const struct nfs4_opdesc setxattr_desc = {
	.name = "SETXATTR",
	.encode = setxattr_encode,
	.decode = setxattr_decode,
	.cachethis = true,
	.once = true,
	.long_buf = setxattr_long_buf,
};

void nfs4_setxattr(struct nfs4_call *call)
{
	nfs4_call_start(call, &setxattr_desc);
}
