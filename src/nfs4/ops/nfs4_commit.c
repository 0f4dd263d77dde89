/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH COMMIT GETATTR */
#include "nfs4_int.h"

static int commit_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_commit *o = &call->u.commit;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_COMMIT, NFS4_VERIFIER_SIZE);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u32(&c->enc, o->count);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN);
	return nfs4_xdr_encode_end(c);
}

static int commit_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_commit *o = &call->u.commit;

	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_COMMIT)) {
		nfs4_xdr_get_verf(&c->dec, &o->verf);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc commit_desc = {
	.name = "COMMIT",
	.encode = commit_encode,
	.decode = commit_decode,
};

void nfs4_commit(struct nfs4_call *call)
{
	nfs4_call_start(call, &commit_desc);
}
