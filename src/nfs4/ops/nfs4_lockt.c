/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH LOCKT (RFC 8881 section 18.11). That somebody holds the lock is an answer, no error. */
#include <errno.h>
#include <string.h>

#include "nfs4_hooks.h"
#include "nfs4_lock_xdr.h"

static int lockt_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_lockt *o = &call->u.lockt;

	if (!nfs4_lock_xdr_range_ok(o->offset, o->length))
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_LOCKT, NFS4_DENIED_MAX);
	xdr_put_u32(&c->enc, o->write ? WRITE_LT : READ_LT);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u64(&c->enc, o->length);
	nfs4_lock_xdr_put_owner(&c->enc, o->owner);
	return nfs4_xdr_encode_end(c);
}

static int lockt_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_lockt *o = &call->u.lockt;

	o->conflict = false;
	memset(&o->denied, 0, sizeof(o->denied));
	if (nfs4_compound_void(c, OP_PUTFH) && !nfs4_compound_void(c, OP_LOCKT)) {
		o->conflict = nfs4_lock_xdr_get_denied(c, OP_LOCKT, &o->denied);
		if (o->conflict)
			nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc lockt_desc = {
	.name = "LOCKT",
	.encode = lockt_encode,
	.decode = lockt_decode,
	.take = nfs4_lockowner_take_test,
	.cachethis = true, /* as the kernel's client has it */
};

void nfs4_lockt(struct nfs4_call *call)
{
	nfs4_call_start(call, &lockt_desc);
}
