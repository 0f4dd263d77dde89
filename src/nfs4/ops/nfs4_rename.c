/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH from SAVEFH PUTFH to RENAME GETATTR RESTOREFH GETATTR: the saved
 * filehandle is the source directory, the current one the target directory.
 */
#include "nfs4_int.h"

#include <string.h>

static int rename_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_rename *o = &call->u.rename;

	nfs4_xdr_put_putfh(c, o->from_dir);
	nfs4_compound_op(c, OP_SAVEFH, 0);
	nfs4_xdr_put_putfh(c, o->to_dir);
	nfs4_compound_op(c, OP_RENAME, 2 * 20);
	nfs4_xdr_put_str(&c->enc, &o->from);
	nfs4_xdr_put_str(&c->enc, &o->to);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	nfs4_compound_op(c, OP_RESTOREFH, 0);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	return nfs4_xdr_encode_end(c);
}

static int rename_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_rename *o = &call->u.rename;

	o->from_attr.valid = o->to_attr.valid = 0;
	memset(&o->from_cinfo, 0, sizeof(o->from_cinfo));
	memset(&o->to_cinfo, 0, sizeof(o->to_cinfo));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, OP_SAVEFH) &&
		nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_RENAME)) {
		nfs4_xdr_get_cinfo(&c->dec, &o->from_cinfo);
		nfs4_xdr_get_cinfo(&c->dec, &o->to_cinfo);
		if (nfs4_xdr_get_getattr(c, &o->to_attr) && nfs4_compound_void(c, OP_RESTOREFH))
			nfs4_xdr_get_getattr(c, &o->from_attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc rename_desc = {
	.name = "RENAME",
	.encode = rename_encode,
	.decode = rename_decode,
	.cachethis = true,
	.once = true,
};

void nfs4_rename(struct nfs4_call *call)
{
	nfs4_call_start(call, &rename_desc);
}
