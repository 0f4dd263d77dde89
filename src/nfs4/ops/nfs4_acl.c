/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ACL attribute, whose value (nfsace4<>) is passed through as it is:
 *
 *   get: PUTFH GETATTR
 *   set: PUTFH SETATTR GETATTR
 */
#include "nfs4_int.h"

#include <errno.h>

#define ACL_WORD (1u << FATTR4_ACL)
/* bitmap of three words and the length of the values */
#define ACL_HEAD (4u + 4u * NFS4_BITMAP_WORDS + 4u)

static int getacl_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	static const uint32_t words[] = {ACL_WORD};
	const struct nfs4_op_getacl *o = &call->u.getacl;
	uint32_t room = nfs4_xdr_sink_room(&o->sink, ACL_HEAD + 4);

	if (!room)
		return -EINVAL;
	if (c->supported && !(c->supported[0] & ACL_WORD))
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_GETATTR, room);
	nfs4_attr_put_bitmap(&c->enc, words, 1);
	call->rpc.req.reply_sink = o->sink;
	return nfs4_xdr_encode_end(c);
}

static void get_acl(struct xdr_dec *x, struct nfs4_op_getacl *o)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	uint32_t beyond = nfs4_attr_get_bitmap(x, words);
	uint32_t len = 0;
	const uint8_t *p = xdr_get_opaque(x, UINT32_MAX, &len);
	bool have = words[0] == ACL_WORD;

	/* WIRE: the ACL alone, which is a count at least, or nothing at all. */
	if (!p || beyond || words[1] || words[2] || (words[0] & ~ACL_WORD) ||
		(have ? len < 4 || XDR_PAD(len) : len != 0)) {
		xdr_fail(x);
		return;
	}
	o->acl = have ? p : NULL;
	o->len = len;
}

static int getacl_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_getacl *o = &call->u.getacl;

	o->acl = NULL;
	o->len = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_GETATTR))
		get_acl(&c->dec, o);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc getacl_desc = {
	.name = "GETACL",
	.encode = getacl_encode,
	.decode = getacl_decode,
	.unbounded = true,
};

void nfs4_getacl(struct nfs4_call *call)
{
	nfs4_call_start(call, &getacl_desc);
}

static int setacl_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	static const uint32_t words[] = {ACL_WORD};
	const struct nfs4_op_setacl *o = &call->u.setacl;

	if (o->len < 4 || XDR_PAD(o->len))
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_SETATTR, 4 + 4 * NFS4_BITMAP_WORDS);
	nfs4_xdr_put_stateid(&c->enc, &nfs4_stateid_anon);
	nfs4_attr_put_bitmap(&c->enc, words, 1);
	xdr_put_opaque(&c->enc, o->acl, o->len);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int setacl_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_setacl *o = &call->u.setacl;
	uint32_t attrsset[NFS4_BITMAP_WORDS];

	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_SETATTR)) {
		nfs4_attr_get_bitmap(&c->dec, attrsset);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static struct rpcrdma_buf *setacl_long_buf(struct nfs4_call *call)
{
	return call->u.setacl.long_buf;
}

static const struct nfs4_opdesc setacl_desc = {
	.name = "SETACL",
	.encode = setacl_encode,
	.decode = setacl_decode,
	.cachethis = true,
	.long_buf = setacl_long_buf,
};

void nfs4_setacl(struct nfs4_call *call)
{
	nfs4_call_start(call, &setacl_desc);
}
