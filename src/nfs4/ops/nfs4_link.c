/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH file SAVEFH PUTFH dir LINK GETATTR RESTOREFH GETATTR: the saved
 * filehandle is the file, the current one the directory of the new name.
 */
#include "nfs4_int.h"

#include <string.h>

static int link_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_link *o = &call->u.link;

	nfs4_xdr_put_putfh(c, o->file);
	nfs4_compound_op(c, OP_SAVEFH, 0);
	nfs4_xdr_put_putfh(c, o->dir);
	nfs4_compound_op(c, OP_LINK, 20);
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	nfs4_compound_op(c, OP_RESTOREFH, 0);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int link_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_link *o = &call->u.link;

	o->attr.valid = o->dir_attr.valid = 0;
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, OP_SAVEFH) &&
		nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_LINK)) {
		nfs4_xdr_get_cinfo(&c->dec, &o->cinfo);
		if (nfs4_xdr_get_getattr(c, &o->dir_attr) && nfs4_compound_void(c, OP_RESTOREFH))
			nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc link_desc = {
	.name = "LINK",
	.encode = link_encode,
	.decode = link_decode,
	.cachethis = true,
	.once = true,
};

void nfs4_link(struct nfs4_call *call)
{
	nfs4_call_start(call, &link_desc);
}
