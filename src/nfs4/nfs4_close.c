/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH GETATTR CLOSE. A CLOSE returns a stateid that means nothing any more
 * (RFC 8881 section 18.2.4).
 */
#include "nfs4_int.h"

#include <stddef.h>

static int close_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_close *o = &call->u.close;

	nfs4_put_putfh(c, o->fh);
	nfs4_put_getattr(c, NFS4_ATTR_STAT);
	nfs4_op_begin(c, OP_CLOSE, NFS4_STATEID_SIZE);
	xdr_put_u32(&c->enc, 0); /* seqid: 4.0's */
	nfs4_put_stateid(&c->enc, &call->stateid);
	return nfs4_encode_end(c);
}

static int close_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_close *o = &call->u.close;
	struct nfs4_stateid gone;

	o->attr.valid = 0;
	if (nfs4_op_void(c, OP_PUTFH) && nfs4_get_getattr(c, &o->attr) &&
		nfs4_op_result(c, OP_CLOSE))
		nfs4_get_stateid(&c->dec, &gone);
	return nfs4_decode_end(c);
}

static const struct nfs4_opdesc close_desc = {
	.name = "CLOSE",
	.encode = close_encode,
	.decode = close_decode,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.close.state),
	.closes = true,
};

void nfs4_close(struct nfs4_call *call)
{
	nfs4_call_start(call, &close_desc);
}
