/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH SEEK (RFC 7862 section 15.11) */
#include "nfs4_hooks.h"

#include <errno.h>
#include <stddef.h>

static int seek_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_seek *o = &call->u.seek;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_SEEK, 4 + 8);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u32(&c->enc, o->what);
	return nfs4_xdr_encode_end(c);
}

static int seek_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_seek *o = &call->u.seek;

	o->eof = false;
	o->found = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_SEEK)) {
		o->eof = xdr_get_bool(&c->dec);
		o->found = xdr_get_u64(&c->dec);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc seek_desc = {
	.name = "SEEK",
	.encode = seek_encode,
	.decode = seek_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.state_off = offsetof(struct nfs4_call, u.seek.state),
};

void nfs4_seek(struct nfs4_call *call)
{
	nfs4_call_start(call, &seek_desc);
}
