/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH LOCK (RFC 8881 section 18.10; nfs4_lock_xdr.c). Who holds what is
 * nfs4_lockowner.c's.
 */
#include <stddef.h>

#include "nfs4_hooks.h"
#include "nfs4_lock_xdr.h"

static const struct nfs4_opdesc lock_desc = {
	.name = "LOCK",
	.encode = nfs4_lock_xdr_encode,
	.decode = nfs4_lock_xdr_decode,
	.take = nfs4_lockowner_take,
	.granted = nfs4_lockowner_granted,
	.refused = nfs4_lockowner_refused,
	.ended = nfs4_lockowner_ended,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.lock.work.via),
	.lock_off = offsetof(struct nfs4_call, u.lock.work),
	.repeatable = true,
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
