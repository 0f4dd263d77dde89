/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH LISTXATTRS (RFC 8276 section 8.4.3)
 *
 *   LISTXATTRS4resok = cookie, name<>, eof
 *
 * knfsd 6.1 writes the cookie in its own byte order: going on from one works
 * with a big-endian server only, so the sink should have room for all names.
 */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

#define LIST_HEAD 16u /* cookie, count, eof */

static int listxattrs_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_listxattrs *o = &call->u.listxattrs;
	uint32_t room = nfs4_xdr_sink_room(&o->sink, LIST_HEAD + 8);

	if (c->minor < 2)
		return -EOPNOTSUPP;
	if (!room)
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_LISTXATTRS, room);
	xdr_put_u64(&c->enc, o->cookie);
	/* maxcount: of the result to the RFC, of the names to knfsd. */
	xdr_put_u32(&c->enc, room - LIST_HEAD);
	call->rpc.req.reply_sink = o->sink;
	return nfs4_xdr_encode_end(c);
}

static void get_names(struct nfs4_call *call, struct xdr_dec *x)
{
	struct nfs4_op_listxattrs *o = &call->u.listxattrs;
	uint32_t cnt, i;

	o->cookie_out = xdr_get_u64(x);
	cnt = xdr_get_count(x, UINT32_MAX, 4);
	for (i = 0; i < cnt; i++) {
		struct nfs4_str name = {0};

		name.p = (const char *)xdr_get_opaque(x, UINT32_MAX, &name.len);
		if (!name.p)
			return;
		/* WIRE: what setxattr(2) cannot have made. */
		if (!name.len || name.len > NFS4_XATTR_NAME_MAX || memchr(name.p, '\0', name.len))
			o->skipped++;
		else if (!o->name(call, &name))
			return;
	}
	o->eof = xdr_get_bool(x);
	/* WIRE: more to come, but asking again would bring the same. */
	if (!o->eof && (!cnt || o->cookie_out == o->cookie))
		xdr_fail(x);
	if (x->failed)
		o->eof = false;
}

static int listxattrs_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_listxattrs *o = &call->u.listxattrs;

	o->cookie_out = 0;
	o->eof = false;
	o->skipped = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_LISTXATTRS))
		get_names(call, &c->dec);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc listxattrs_desc = {
	.name = "LISTXATTRS",
	.encode = listxattrs_encode,
	.decode = listxattrs_decode,
	.unbounded = true,
};

void nfs4_listxattrs(struct nfs4_call *call)
{
	nfs4_call_start(call, &listxattrs_desc);
}
