/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH [GETATTR] LOOKUP GETFH GETATTR: the directory first, so that its change
 * attribute is there, and not newer than the answer, also when the name is not
 * found: what a negative entry is valid for. Who knows an older one that is still
 * good needs no other. Where the directory's attributes are refused (an ACL may let
 * somebody search it and no more) it goes again without them.
 */
#include "nfs4_int.h"

/* The reply has no chunk to go by: all of the directory is asked for only where it fits. */
static bool both_fit(const struct nfs4_compound *c)
{
	/* LOOKUP, GETFH, two GETATTR */
	size_t rest = 8 + (8 + 4 + NFS4_FHSIZE) + 2 * (8 + nfs4_attr_reply_max(NFS4_ATTR_STAT));

	return !c->inline_max || RPC_REPLY_HDR + c->reply_max + rest <= c->inline_max;
}

static bool asks_dir(const struct nfs4_op_lookup *o)
{
	return o->ask != NFS4_DIR_NONE && !o->no_dir_attr;
}

static int lookup_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_lookup *o = &call->u.lookup;

	nfs4_xdr_put_putfh(c, o->dir);
	if (asks_dir(o) && o->ask == NFS4_DIR_STAT && both_fit(c))
		nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	else if (asks_dir(o))
		nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	nfs4_compound_op(c, OP_LOOKUP, 0);
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_xdr_put_getfh(c);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int lookup_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_lookup *o = &call->u.lookup;
	bool reached;

	o->fh.len = 0;
	o->attr.valid = o->dir_attr.valid = 0;
	reached = nfs4_compound_void(c, OP_PUTFH) &&
		  (!asks_dir(o) || nfs4_xdr_get_getattr(c, &o->dir_attr));
	o->dir_refused = !reached && nfs4_xdr_attrs_refused(c);
	if (reached && nfs4_compound_void(c, OP_LOOKUP) && nfs4_xdr_get_getfh(c, &o->fh))
		nfs4_xdr_get_getattr(c, &o->attr);
	return nfs4_xdr_decode_end(c);
}

static bool lookup_again(struct nfs4_call *call)
{
	struct nfs4_op_lookup *o = &call->u.lookup;

	if (!o->dir_refused || o->no_dir_attr)
		return false;
	o->no_dir_attr = true;
	return true;
}

static const struct nfs4_opdesc lookup_desc = {
	.name = "LOOKUP",
	.encode = lookup_encode,
	.decode = lookup_decode,
	.again = lookup_again,
};

void nfs4_lookup(struct nfs4_call *call)
{
	call->u.lookup.no_dir_attr = false;
	nfs4_call_start(call, &lookup_desc);
}
