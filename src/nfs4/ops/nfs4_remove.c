/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH REMOVE GETATTR */
#include "nfs4_int.h"

#include <string.h>

static int remove_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_remove *o = &call->u.remove;

	nfs4_xdr_put_putfh(c, o->dir);
	nfs4_compound_op(c, OP_REMOVE, 20);
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	return nfs4_xdr_encode_end(c);
}

static int remove_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_remove *o = &call->u.remove;

	o->dir_attr.valid = 0;
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_REMOVE)) {
		nfs4_xdr_get_cinfo(&c->dec, &o->cinfo);
		nfs4_xdr_get_getattr(c, &o->dir_attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc remove_desc = {
	.name = "REMOVE",
	.encode = remove_encode,
	.decode = remove_decode,
	.cachethis = true,
	.once = true,
};

void nfs4_remove(struct nfs4_call *call)
{
	nfs4_call_start(call, &remove_desc);
}
