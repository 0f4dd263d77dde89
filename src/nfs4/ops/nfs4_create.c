/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH SAVEFH CREATE GETFH GETATTR RESTOREFH GETATTR: everything but regular
 * files, which OPEN makes. Longest reply, for the server's replay cache
 * (1032 bytes, see nfs4_open_xdr.c): 80 + 24 + CREATE 44 + 140 + 396 + 72 = 756.
 */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

/* createtype4; false: not a type that CREATE makes. */
static bool put_type(struct xdr_enc *x, const struct nfs4_op_create *o)
{
	xdr_put_u32(x, o->type);
	switch (o->type) {
	case NF4LNK:
		nfs4_xdr_put_str(x, &o->linkdata);
		return true;
	case NF4BLK:
	case NF4CHR:
		xdr_put_u32(x, o->rdev_major);
		xdr_put_u32(x, o->rdev_minor);
		return true;
	case NF4DIR:
	case NF4SOCK:
	case NF4FIFO:
		return true;
	case NF4REG:
	case NF4ATTRDIR:
	case NF4NAMEDATTR:
		break;
	}
	return false;
}

static int create_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_create *o = &call->u.create;

	nfs4_xdr_put_putfh(c, o->dir);
	nfs4_compound_op(c, OP_SAVEFH, 0);
	nfs4_compound_op(c, OP_CREATE, 20 + 4 + 4 * NFS4_BITMAP_WORDS);
	if (!put_type(&c->enc, o))
		return -EINVAL;
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_attr_put_set(&c->enc, &o->sattr, c->supported);
	nfs4_xdr_put_getfh(c);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	nfs4_compound_op(c, OP_RESTOREFH, 0);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	return nfs4_xdr_encode_end(c);
}

static int create_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_create *o = &call->u.create;
	uint32_t attrset[NFS4_BITMAP_WORDS];

	o->fh.len = 0;
	o->attr.valid = o->dir_attr.valid = 0;
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (!nfs4_compound_void(c, OP_PUTFH) || !nfs4_compound_void(c, OP_SAVEFH) ||
		!nfs4_compound_result(c, OP_CREATE))
		goto out;
	nfs4_xdr_get_cinfo(&c->dec, &o->cinfo);
	nfs4_attr_get_bitmap(&c->dec, attrset);
	if (!nfs4_xdr_get_getfh(c, &o->fh))
		goto out;
	if (nfs4_xdr_get_getattr(c, &o->attr) && nfs4_compound_void(c, OP_RESTOREFH))
		nfs4_xdr_get_getattr(c, &o->dir_attr);
	nfs4_xdr_decode_done(c);
out:
	return nfs4_xdr_decode_end(c);
}

static struct rpcrdma_buf *create_long_buf(struct nfs4_call *call)
{
	return call->u.create.long_buf;
}

static const struct nfs4_opdesc create_desc = {
	.name = "CREATE",
	.encode = create_encode,
	.decode = create_decode,
	.cachethis = true,
	.once = true,
	.long_buf = create_long_buf,
};

void nfs4_create(struct nfs4_call *call)
{
	nfs4_call_start(call, &create_desc);
}
