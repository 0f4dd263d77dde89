/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TEST_STATEID (RFC 8881 section 18.48), alone: what the server thinks of each
 * of a few stateids.
 */
#include "nfs4_int.h"

#include <errno.h>

static int test_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_test_stateid *o = &call->u.test_stateid;

	if (o->cnt > NFS4_TEST_MAX)
		return -EINVAL;
	nfs4_compound_op(c, OP_TEST_STATEID, 4 + 4 * o->cnt);
	xdr_put_u32(&c->enc, o->cnt);
	for (uint32_t i = 0; i < o->cnt; i++)
		nfs4_xdr_put_stateid(&c->enc, &o->ids[i]);
	return nfs4_xdr_encode_end(c);
}

static int test_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_test_stateid *o = &call->u.test_stateid;

	if (nfs4_compound_result(c, OP_TEST_STATEID)) {
		/* WIRE: one status for each, in the same order. */
		if (xdr_get_count(&c->dec, NFS4_TEST_MAX, 4) != o->cnt)
			xdr_fail(&c->dec);
		for (uint32_t i = 0; i < o->cnt; i++)
			o->res[i] = (enum nfs4_status)xdr_get_u32(&c->dec);
	}
	return nfs4_xdr_decode_end(c);
}

const struct nfs4_opdesc nfs4_test_stateid_desc = {
	.name = "TEST_STATEID",
	.encode = test_encode,
	.decode = test_decode,
};
