/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH LOCK (RFC 8881 section 18.10). The first one of an owner names the open
 * and the owner, those that follow bear the stateid that it returned. Who holds
 * what is nfs4_lockowner.c's.
 */
#include <stddef.h>
#include <string.h>

#include "nfs4_hooks.h"
#include "nfs4_lock_xdr.h"

static int lock_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_lock *o = &call->u.lock;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_lock_xdr_put_lock(c, &o->work, &call->stateid, o->wait);
	return nfs4_xdr_encode_end(c);
}

static int lock_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_lock *o = &call->u.lock;

	memset(&o->denied, 0, sizeof(o->denied));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_LOCK))
		nfs4_xdr_get_stateid(&c->dec, &o->work.stateid);
	else
		nfs4_lock_xdr_get_denied(c, OP_LOCK, &o->denied);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc lock_desc = {
	.name = "LOCK",
	.encode = lock_encode,
	.decode = lock_decode,
	.take = nfs4_lockowner_take,
	.granted = nfs4_lockowner_granted,
	.refused = nfs4_lockowner_refused,
	.ended = nfs4_lockowner_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.lock.work.via),
	.lock_off = offsetof(struct nfs4_call, u.lock.work),
	.repeatable = true,
};

const struct nfs4_opdesc nfs4_lock_reclaim_desc = {
	.name = "LOCK",
	.encode = lock_encode,
	.decode = lock_decode,
	.take = nfs4_lock_reclaim_take,
	.cachethis = true,
};

void nfs4_lock(struct nfs4_call *call)
{
	struct nfs4_op_lock *o = &call->u.lock;

	o->work = (struct nfs4_lock_work){
		.lo = o->lock,
		.wanted = o->state,
		.owner = o->lock->number,
		.offset = o->offset,
		.length = o->length,
		.write = o->write,
	};
	nfs4_call_start(call, &lock_desc);
}
