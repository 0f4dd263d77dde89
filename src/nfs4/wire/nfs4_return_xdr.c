/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH [GETATTR] DELEGRETURN (RFC 8881 section 18.6). The attributes are the
 * last that nobody else can have changed.
 */
#include "nfs4_codec.h"

int nfs4_return_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_delegreturn *o = &call->u.delegreturn;

	nfs4_xdr_put_putfh(c, o->fh);
	if (!o->no_attr)
		nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	nfs4_compound_op(c, OP_DELEGRETURN, 0);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	return nfs4_xdr_encode_end(c);
}

int nfs4_return_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_delegreturn *o = &call->u.delegreturn;

	o->attr.valid = 0;
	/* It is booked at once, or a recovery that comes between would reclaim it. */
	c->at_once = true;
	if (nfs4_compound_void(c, OP_PUTFH) && (o->no_attr || nfs4_xdr_get_getattr(c, &o->attr)))
		nfs4_compound_void(c, OP_DELEGRETURN);
	o->attr_refused = nfs4_xdr_attrs_refused(c);
	return nfs4_xdr_decode_end(c);
}
