/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH SAVEFH PUTFH CLONE COMMIT GETATTR (RFC 7862 section 15.13): the
 * destination shares the source's blocks. CLONE says nothing of stable storage
 * and has no verifier. With COMMIT in the same COMPOUND none is needed: the
 * server that commits is the one that cloned, and when its reply is lost both
 * are executed again, or replayed.
 */
#include "nfs4_hooks.h"

#include <errno.h>
#include <stddef.h>

static int clone_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_copy *o = &call->u.copy;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	/* 0 is "to the end of the file"; COMMIT's count has 32 bits. */
	if (o->count == 0 || o->count > UINT32_MAX)
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->src);
	nfs4_compound_op(c, OP_SAVEFH, 0);
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_CLONE, 0);
	nfs4_xdr_put_stateid(&c->enc, &o->src_stateid);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u64(&c->enc, o->src_offset);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u64(&c->enc, o->count);
	nfs4_compound_op(c, OP_COMMIT, NFS4_VERIFIER_SIZE);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u32(&c->enc, (uint32_t)o->count);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN | NFS4_ATTR_SPACE_USED);
	return nfs4_xdr_encode_end(c);
}

static int clone_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_copy *o = &call->u.copy;

	o->async = false;
	o->copied = 0;
	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, OP_SAVEFH) &&
		nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, OP_CLONE) &&
		nfs4_compound_result(c, OP_COMMIT)) {
		nfs4_xdr_get_verf(&c->dec, &o->verf);
		o->copied = o->count;
		o->committed = FILE_SYNC4;
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc clone_desc = {
	.name = "CLONE",
	.encode = clone_encode,
	.decode = clone_decode,
	.take = nfs4_offload_take,
	.refused = nfs4_offload_refused,
	.ended = nfs4_offload_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.copy.state),
};

void nfs4_clone(struct nfs4_call *call)
{
	nfs4_offload_await(call);
	nfs4_call_start(call, &clone_desc);
}
