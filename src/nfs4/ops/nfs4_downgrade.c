/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH OPEN_DOWNGRADE (RFC 8881 section 18.18). Whether the server would take
 * it, and what it leaves, is nfs4_share.c's.
 */
#include <stddef.h>
#include <string.h>

#include "nfs4_hooks.h"

static int downgrade_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_downgrade *o = &call->u.downgrade;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_OPEN_DOWNGRADE, NFS4_STATEID_SIZE);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u32(&c->enc, 0); /* seqid: 4.0's */
	xdr_put_u32(&c->enc, o->share_access);
	xdr_put_u32(&c->enc, OPEN4_SHARE_DENY_NONE);
	return nfs4_xdr_encode_end(c);
}

static int downgrade_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_OPEN_DOWNGRADE))
		nfs4_xdr_get_stateid(&c->dec, &call->u.downgrade.stateid);
	return nfs4_xdr_decode_end(c);
}

/* A second one finds what the first one left. */
static const struct nfs4_opdesc downgrade_desc = {
	.name = "OPEN_DOWNGRADE",
	.encode = downgrade_encode,
	.decode = downgrade_decode,
	.take = nfs4_share_downgrade_take,
	.refused = nfs4_share_downgrade_refused,
	.ended = nfs4_share_downgrade_ended,
	.cachethis = true,
	.repeatable = true,
	.state_off = offsetof(struct nfs4_call, u.downgrade.state),
};

void nfs4_downgrade(struct nfs4_call *call)
{
	memset(&call->u.downgrade.stateid, 0, sizeof(call->u.downgrade.stateid));
	nfs4_call_start(call, &downgrade_desc);
}
