/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH REMOVEXATTR GETATTR (RFC 8276 section 8.4.4) */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

static int removexattr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_removexattr *o = &call->u.removexattr;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_REMOVEXATTR, 20);
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN);
	return nfs4_xdr_encode_end(c);
}

static int removexattr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_removexattr *o = &call->u.removexattr;

	o->attr.valid = 0;
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_REMOVEXATTR)) {
		nfs4_xdr_get_cinfo(&c->dec, &o->cinfo);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc removexattr_desc = {
	.name = "REMOVEXATTR",
	.encode = removexattr_encode,
	.decode = removexattr_decode,
	.cachethis = true,
	.once = true,
};

void nfs4_removexattr(struct nfs4_call *call)
{
	nfs4_call_start(call, &removexattr_desc);
}
