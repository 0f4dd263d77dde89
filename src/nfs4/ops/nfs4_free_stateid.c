/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FREE_STATEID (RFC 8881 section 18.38), alone: of a lock owner that holds
 * nothing any more, or of state that the server revoked and remembers until it
 * is told that we know.
 */
#include "nfs4_int.h"

static int free_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_op(c, OP_FREE_STATEID, 0);
	nfs4_xdr_put_stateid(&c->enc, &call->u.free_stateid.stateid);
	return nfs4_xdr_encode_end(c);
}

static int free_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_void(c, OP_FREE_STATEID);
	return nfs4_xdr_decode_end(c);
}

const struct nfs4_opdesc nfs4_free_stateid_desc = {
	.name = "FREE_STATEID",
	.encode = free_encode,
	.decode = free_decode,
	.cachethis = true, /* a second one is an error */
};
