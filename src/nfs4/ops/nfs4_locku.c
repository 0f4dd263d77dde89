/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH LOCKU (RFC 8881 section 18.12)
 * PUTFH LOCK LOCKU
 *
 * The second form is for a first LOCK that ended without an answer: only its
 * result has the stateid that LOCKU needs, so it is asked for once more, and
 * what comes of it is given back. If it is denied, there was nothing to.
 */
#include <stddef.h>

#include "nfs4_hooks.h"
#include "nfs4_lock_xdr.h"

static int locku_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_locku *o = &call->u.locku;
	const struct nfs4_lock_work *k = &o->work;

	nfs4_xdr_put_putfh(c, o->fh);
	if (k->first)
		nfs4_lock_xdr_put_lock(c, k, &call->stateid, false);
	nfs4_lock_xdr_put_locku(
		c, k->first ? &nfs4_stateid_current : &call->stateid, k->offset, k->length);
	return nfs4_xdr_encode_end(c);
}

static int locku_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_lock_work *k = &call->u.locku.work;
	struct nfs4_denied denied;

	k->none = false;
	if (!nfs4_compound_void(c, OP_PUTFH))
		goto out;
	if (k->first && nfs4_compound_result(c, OP_LOCK))
		nfs4_xdr_get_stateid(&c->dec, &k->stateid);
	k->none = k->first && nfs4_lock_xdr_get_denied(c, OP_LOCK, &denied);
	if (k->none)
		nfs4_xdr_decode_done(c);
	else if (nfs4_compound_result(c, OP_LOCKU))
		nfs4_xdr_get_stateid(&c->dec, &k->stateid);
out:
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc locku_desc = {
	.name = "LOCKU",
	.encode = locku_encode,
	.decode = locku_decode,
	.take = nfs4_lockowner_take,
	.granted = nfs4_lockowner_granted,
	.refused = nfs4_lockowner_refused,
	.ended = nfs4_lockowner_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.locku.work.via),
	.lock_off = offsetof(struct nfs4_call, u.locku.work),
	.repeatable = true,
};

void nfs4_locku(struct nfs4_call *call)
{
	struct nfs4_op_locku *o = &call->u.locku;

	o->work = (struct nfs4_lock_work){
		.lo = o->lock,
		.owner = o->lock->number,
		.offset = o->offset,
		.length = o->length,
		.unlock = true,
	};
	nfs4_call_start(call, &locku_desc);
}
