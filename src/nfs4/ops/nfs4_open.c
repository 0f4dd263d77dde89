/* SPDX-License-Identifier: BSD-3-Clause */
/* OPEN of the user, and nfs4_claim(). nfs4_open_xdr.c encodes and decodes them. */
#include "nfs4_codec.h"
#include "nfs4_hooks.h"

#include <stddef.h>

/* EEXIST: by an earlier execution of this very call? */
static bool open_again(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (!o->exclusive || o->again || call->status != NFS4ERR_EXIST || !call->resent)
		return false;
	o->again = true;
	return true;
}

static const struct nfs4_opdesc open_desc = {
	.name = "OPEN",
	.encode = nfs4_open_xdr_encode,
	.decode = nfs4_open_xdr_decode,
	.again = open_again,
	.granted = nfs4_return_unasked,
	.ended = nfs4_recall_ended,
	.cachethis = true,
	.once = true,
};

/* Nothing of it is cached, see nfs4_open_xdr.c. */
static const struct nfs4_opdesc open_read_desc = {
	.name = "OPEN",
	.encode = nfs4_open_xdr_encode,
	.decode = nfs4_open_xdr_decode,
	.granted = nfs4_return_unasked,
	.ended = nfs4_recall_ended,
};

/*
 * Ganesha knows no CLAIM_DELEG_CUR_FH (NFS4ERR_NOTSUPP). As long as the delegation is ours nobody
 * else can have changed the file, so that an OPEN like any other is as good.
 */
static bool claim_again(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (o->plain_claim || nfs4_status_action(call->status) != NFS4_ACT_FAIL)
		return false;
	o->plain_claim = true;
	return true;
}

/* Its owner has it once, however often it is executed. */
static const struct nfs4_opdesc claim_desc = {
	.name = "OPEN",
	.encode = nfs4_open_xdr_encode,
	.decode = nfs4_open_xdr_decode,
	.again = claim_again,
	.take = nfs4_share_claim_take,
	.granted = nfs4_share_claim_granted,
	.refused = nfs4_share_claim_refused,
	.ended = nfs4_share_claim_ended,
	.cachethis = true,
	.repeatable = true,
	.state_off = offsetof(struct nfs4_call, u.open.claim),
};

void nfs4_open(struct nfs4_call *call)
{
	struct nfs4_op_open *o = &call->u.open;

	if (o->read)
		o->want_deleg = false;
	nfs4_recall_await(call);
	nfs4_call_start(call, o->read ? &open_read_desc : &open_desc);
}

void nfs4_claim(struct nfs4_call *call)
{
	struct nfs4_state *st = call->u.open.claim;

	/* share_access: when it is sent (nfs4_share.c). */
	call->u.open = (struct nfs4_op_open){
		.file = &st->fh,
		.owner = st->owner,
		.claim = st,
	};
	nfs4_recall_await(call);
	nfs4_call_start(call, &claim_desc);
}
