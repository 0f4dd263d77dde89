/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH READLINK. RFC 8267 lets the target travel by Write chunk, knfsd 6.1
 * writes its length word into the chunk and loses the last bytes: only inline
 * or by Reply chunk.
 */
#include "nfs4_int.h"

#include <string.h>

static int readlink_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_readlink *o = &call->u.readlink;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_READLINK, 4 + XDR_ROUND(NFS4_MAXPATHLEN));
	call->rpc.req.reply_sink = o->sink;
	return nfs4_xdr_encode_end(c);
}

static void get_target(struct xdr_dec *x, struct nfs4_str *target)
{
	uint32_t len = 0;
	const uint8_t *p = xdr_get_opaque(x, NFS4_MAXPATHLEN, &len);

	/* WIRE: what no symlink(2) can have made. */
	if (!p || !len || memchr(p, '\0', len)) {
		xdr_fail(x);
		return;
	}
	target->p = (const char *)p;
	target->len = len;
}

static int readlink_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_readlink *o = &call->u.readlink;

	o->target = (struct nfs4_str){0};
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_READLINK))
		get_target(&c->dec, &o->target);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc readlink_desc = {
	.name = "READLINK",
	.encode = readlink_encode,
	.decode = readlink_decode,
};

void nfs4_readlink(struct nfs4_call *call)
{
	nfs4_call_start(call, &readlink_desc);
}
