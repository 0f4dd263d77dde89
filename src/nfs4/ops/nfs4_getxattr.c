/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH GETXATTR (RFC 8276 section 8.4.1). There is no maxcount: the server
 * sends the whole value, up to 64 KiB with Linux, and the sink must have room.
 */
#include "nfs4_int.h"

#include <errno.h>

static int getxattr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_getxattr *o = &call->u.getxattr;
	uint32_t room = nfs4_xdr_sink_room(&o->sink, 4);

	if (c->minor < 2)
		return -EOPNOTSUPP;
	if (!room)
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_GETXATTR, room);
	nfs4_xdr_put_str(&c->enc, &o->name);
	call->rpc.req.reply_sink = o->sink;
	return nfs4_xdr_encode_end(c);
}

static int getxattr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_getxattr *o = &call->u.getxattr;

	o->value = NULL;
	o->len = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_GETXATTR))
		o->value = xdr_get_opaque(&c->dec, UINT32_MAX, &o->len);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc getxattr_desc = {
	.name = "GETXATTR",
	.encode = getxattr_encode,
	.decode = getxattr_decode,
	.unbounded = true,
};

void nfs4_getxattr(struct nfs4_call *call)
{
	nfs4_call_start(call, &getxattr_desc);
}
