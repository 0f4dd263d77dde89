/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH [GETATTR] CLOSE
 * PUTFH LOCKU [GETATTR] CLOSE
 *
 * Where the attributes are refused it goes again without them.
 *
 * A CLOSE returns a stateid that means nothing any more (RFC 8881 section
 * 18.2.4). A server may want locks to be given back before it (NFS4ERR_LOCKS_HELD;
 * nfsd does it by itself): then it goes again behind a LOCKU, once for each
 * owner. What comes of the LOCKU does not matter: if the locks are still there,
 * CLOSE says so.
 */
#include "nfs4_hooks.h"
#include "nfs4_lock_xdr.h"

#include <stddef.h>

static int close_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_close *o = &call->u.close;

	nfs4_xdr_put_putfh(c, o->fh);
	if (o->unlocks)
		nfs4_lock_xdr_put_locku(c, &o->unlock, 0, NFS4_LOCK_TO_END);
	if (!o->no_attr)
		nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	nfs4_compound_op(c, OP_CLOSE, NFS4_STATEID_SIZE);
	xdr_put_u32(&c->enc, 0); /* seqid: 4.0's */
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	return nfs4_xdr_encode_end(c);
}

static int close_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_close *o = &call->u.close;
	struct nfs4_stateid gone;

	o->attr.valid = 0;
	/* It is booked at once, or a recovery that comes between would reclaim what is closed. */
	c->at_once = true;
	if (!nfs4_compound_void(c, OP_PUTFH))
		goto out;
	if (o->unlocks && nfs4_compound_result(c, OP_LOCKU))
		nfs4_xdr_get_stateid(&c->dec, &gone);
	/* DELAY and the like are the call's; anything else: the next owner, or without. */
	if (c->failed_op == OP_LOCKU && (nfs4_status_action(c->status) == NFS4_ACT_FAIL ||
						nfs4_status_action(c->status) == NFS4_ACT_STATE))
		c->status = NFS4ERR_LOCKS_HELD;
	if ((o->no_attr || nfs4_xdr_get_getattr(c, &o->attr)) && nfs4_compound_result(c, OP_CLOSE))
		nfs4_xdr_get_stateid(&c->dec, &gone);
out:
	o->attr_refused = nfs4_xdr_attrs_refused(c);
	return nfs4_xdr_decode_end(c);
}

static bool close_again(struct nfs4_call *call)
{
	struct nfs4_op_close *o = &call->u.close;

	if (!o->attr_refused || o->no_attr)
		return nfs4_lockowner_close(call);
	o->no_attr = true;
	return true;
}

static const struct nfs4_opdesc close_desc = {
	.name = "CLOSE",
	.encode = close_encode,
	.decode = close_decode,
	.again = close_again,
	.take = nfs4_state_close_take,
	.granted = nfs4_state_close_granted,
	.refused = nfs4_state_close_refused,
	.ended = nfs4_state_close_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.close.state),
};

void nfs4_close(struct nfs4_call *call)
{
	call->u.close.unlocks = call->u.close.no_attr = false;
	nfs4_call_start(call, &close_desc);
}
