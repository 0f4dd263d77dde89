/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DELEGRETURN of the user (nfs4_return_xdr.c). Where its attributes are refused
 * it goes again without them.
 */
#include "nfs4_codec.h"
#include "nfs4_hooks.h"

static bool return_again(struct nfs4_call *call)
{
	struct nfs4_op_delegreturn *o = &call->u.delegreturn;

	if (!o->attr_refused || o->no_attr)
		return false;
	o->no_attr = true;
	return true;
}

/* A second one finds nothing to return, which is as good. */
static const struct nfs4_opdesc delegreturn_desc = {
	.name = "DELEGRETURN",
	.encode = nfs4_return_xdr_encode,
	.decode = nfs4_return_xdr_decode,
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
	nfs4_call_start(call, &delegreturn_desc);
}
