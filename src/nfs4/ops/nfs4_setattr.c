/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH SETATTR GETATTR */
#include "nfs4_hooks.h"

#include <stddef.h>

static int setattr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_setattr *o = &call->u.setattr;
	struct nfs4_sattr sattr = o->sattr;
	struct nfs4_owner_names names;

	sattr.use_umask = false; /* RFC 8275 section 4: MODE_UMASK is for creation only */
	nfs4_owners_put(c, &sattr, &names);
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_SETATTR, 4 + 4 * NFS4_BITMAP_WORDS);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	nfs4_attr_put_set(&c->enc, &sattr, c->supported);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	return nfs4_xdr_encode_end(c);
}

static int setattr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_setattr *o = &call->u.setattr;
	uint32_t attrsset[NFS4_BITMAP_WORDS];

	o->attr.valid = 0;
	/* A SETATTR that failed has a bitmap too; it is the last result then and stays unread. */
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_SETATTR)) {
		nfs4_attr_get_bitmap(&c->dec, attrsset);
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

/* A new size changes all from there, or to there, on. */
static bool setattr_range(const struct nfs4_call *call, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct nfs4_sattr *s = &call->u.setattr.sattr;

	*ret_first = s->size;
	*ret_last = UINT64_MAX;
	return s->set & NFS4_ATTR_SIZE;
}

static const struct nfs4_opdesc setattr_desc = {
	.name = "SETATTR",
	.encode = setattr_encode,
	.decode = setattr_decode,
	.again = nfs4_idmap_again,
	.take = nfs4_idmap_take,
	.refused = nfs4_lock_io_refused,
	.range = setattr_range,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.setattr.state),
};

void nfs4_setattr(struct nfs4_call *call)
{
	nfs4_call_start(call, &setattr_desc);
}
