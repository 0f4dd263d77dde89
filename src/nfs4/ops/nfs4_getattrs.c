/* SPDX-License-Identifier: BSD-3-Clause */
/* (PUTFH GETATTR), once for each file */
#include "nfs4_codec.h"

/* One file that is delayed keeps the others waiting. */
#define MAX_DELAYS 1u

/* Bytes of the call and of the reply that a file takes: opnums, statuses, a bitmap of two words.
 */
#define ASK_MAX(fh) (4u + 4u + XDR_ROUND((fh)->len) + 4u + 12u)
#define RES_MAX     (8u + 8u + nfs4_attr_reply_max(NFS4_ATTR_WRITTEN))

static bool has_room(const struct nfs4_compound *c, const struct nfs4_fh *fh)
{
	uint32_t ops_max = c->ops_max && c->ops_max < NFS4_MAX_OPS ? c->ops_max : NFS4_MAX_OPS;

	return c->op_cnt + 2 <= ops_max && (size_t)(c->enc.end - c->enc.p) >= ASK_MAX(fh) &&
	       (!c->inline_max || RPC_REPLY_HDR + c->reply_max + RES_MAX <= c->inline_max);
}

static int getattrs_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_getattrs *o = &call->u.getattrs;

	o->asked = o->got = 0;
	do {
		nfs4_xdr_put_putfh(c, &o->fh[o->asked]);
		nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN);
		o->asked++;
	} while (o->asked < o->cnt && has_room(c, &o->fh[o->asked]));
	return nfs4_xdr_encode_end(c);
}

static int getattrs_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_getattrs *o = &call->u.getattrs;

	o->got = 0;
	while (o->got < o->asked && nfs4_compound_void(c, OP_PUTFH) &&
		nfs4_xdr_get_getattr(c, &o->attr[o->got]))
		o->got++;
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc getattrs_desc = {
	.name = "GETATTRs",
	.encode = getattrs_encode,
	.decode = getattrs_decode,
	.max_delays = MAX_DELAYS,
};

void nfs4_getattrs(struct nfs4_call *call)
{
	nfs4_call_start(call, &getattrs_desc);
}
