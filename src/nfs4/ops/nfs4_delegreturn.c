/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH [GETATTR] DELEGRETURN (RFC 8881 section 18.6). The attributes are the
 * last that nobody else can have changed; where they are refused it goes again
 * without them.
 */
#include <stddef.h>

#include "nfs4_hooks.h"

static int return_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_delegreturn *o = &call->u.delegreturn;

	nfs4_xdr_put_putfh(c, o->fh);
	if (!o->no_attr)
		nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	nfs4_compound_op(c, OP_DELEGRETURN, 0);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	return nfs4_xdr_encode_end(c);
}

static int return_decode(struct nfs4_call *call, struct nfs4_compound *c)
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

static bool return_again(struct nfs4_call *call)
{
	struct nfs4_op_delegreturn *o = &call->u.delegreturn;

	if (!o->attr_refused || o->no_attr)
		return false;
	o->no_attr = true;
	return true;
}

/* A second one finds nothing to return, which is as good. */
const struct nfs4_opdesc nfs4_delegreturn_desc = {
	.name = "DELEGRETURN",
	.encode = return_encode,
	.decode = return_decode,
	.again = return_again,
	.take = nfs4_return_take,
	.refused = nfs4_return_refused,
	.ended = nfs4_return_ended,
	.cachethis = true,
	.repeatable = true,
};

void nfs4_delegreturn(struct nfs4_call *call)
{
	/* RFC 8881 section 18.6.4: as who has it, whoever that is now. */
	call->cred = &call->u.delegreturn.deleg->cred;
	call->u.delegreturn.no_attr = false;
	nfs4_return_begin(call);
	nfs4_call_start(call, &nfs4_delegreturn_desc);
}
