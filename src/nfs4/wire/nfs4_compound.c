/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COMPOUND and SEQUENCE, both ways (RFC 8881 sections 16.2, 18.46), and the
 * walk over results that every operation's decoder uses.
 *
 *   args: tag<> minorversion { argop opaque }<>
 *   res:  status tag<> { resop status body }<>
 *
 * The results end with the first operation that failed, and the status of the
 * whole is that operation's; nfs4_compound_result() holds the server to both.
 */
#include "nfs4_codec.h"
#include "stats.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define TAG_MAX 1024u /* ours is empty; a server that answers another one may */

void nfs4_compound_begin(struct nfs4_compound *c, struct nfs4_call *call, unsigned int minor,
	const uint32_t *supported)
{
	c->call = call;
	c->op_cnt = 0;
	c->reply_max = NFS4_COMPOUND_RES;
	c->minor = minor;
	c->supported = supported;
	c->status = NFS4_OK;
	c->failed_op = 0;
	xdr_put_u32(&c->enc, 0); /* no tag: the reply carries it back */
	xdr_put_u32(&c->enc, minor);
	c->op_cnt_off = xdr_enc_len(&c->enc);
	xdr_put_u32(&c->enc, 0);
}

int nfs4_compound_end(struct nfs4_compound *c)
{
	if (c->enc.failed)
		return -EMSGSIZE;
	assert(c->op_cnt >= 1 && c->op_cnt <= NFS4_MAX_OPS);
	xdr_patch_u32(&c->enc, c->op_cnt_off, c->op_cnt);
	return 0;
}

/* They lead to the operation that a call is about, or go with it. */
static bool is_companion(unsigned int op)
{
	switch (op) {
	case 0:
	case OP_SEQUENCE:
	case OP_PUTFH:
	case OP_PUTROOTFH:
	case OP_SAVEFH:
	case OP_RESTOREFH:
	case OP_GETFH:
	case OP_GETATTR:
		return true;
	default:
		return false;
	}
}

void nfs4_compound_op(struct nfs4_compound *c, enum nfs4_opnum op, uint32_t reply_max)
{
	xdr_put_u32(&c->enc, (uint32_t)op);
	c->reply_max += 8 + reply_max;
	c->op_cnt++;
	if (c->call && is_companion(c->call->op))
		c->call->op = (uint16_t)op;
	if (c->stats && (unsigned int)op < STATS_OPS)
		stats_count(&c->stats->ops[op], 1);
}

bool nfs4_compound_open(struct nfs4_compound *c, struct nfs4_call *call)
{
	c->call = call;
	c->failed_op = 0;
	c->status = (enum nfs4_status)xdr_get_u32(&c->dec);
	xdr_skip_opaque(&c->dec, TAG_MAX);
	/* WIRE: never more results than operations we can have sent. */
	c->op_cnt = xdr_get_count(&c->dec, NFS4_MAX_OPS, 8);
	return !c->dec.failed;
}

bool nfs4_compound_close(struct nfs4_compound *c)
{
	/* WIRE: results nobody asked for. */
	if (c->op_cnt != 0 && c->status == NFS4_OK)
		xdr_fail(&c->dec);
	return !c->dec.failed;
}

bool nfs4_compound_result(struct nfs4_compound *c, enum nfs4_opnum op)
{
	uint32_t got, status;

	if (c->dec.failed || c->failed_op != 0)
		return false;
	if (c->op_cnt == 0) {
		/* Fine only if the whole failed before its first operation. */
		if (c->status == NFS4_OK)
			xdr_fail(&c->dec);
		return false;
	}
	c->op_cnt--;
	got = xdr_get_u32(&c->dec);
	status = xdr_get_u32(&c->dec);
	if (c->dec.failed)
		return false;
	/* A server that does not know an operation answers OP_ILLEGAL in its place. */
	if (got != (uint32_t)op && !(got == OP_ILLEGAL && status == NFS4ERR_OP_ILLEGAL)) {
		xdr_fail(&c->dec);
		return false;
	}
	if (status == NFS4_OK)
		return true;
	c->failed_op = (uint32_t)op;
	if (c->op_cnt != 0 || status != (uint32_t)c->status)
		xdr_fail(&c->dec);
	return false;
}

bool nfs4_compound_void(struct nfs4_compound *c, enum nfs4_opnum op)
{
	return nfs4_compound_result(c, op);
}

/* sessionid, sequenceid, slotid, highest_slotid, target_highest_slotid, status_flags */
#define SEQUENCE_RES (NFS4_SESSIONID_SIZE + 20u)

void nfs4_compound_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence *seq)
{
	nfs4_compound_op(c, OP_SEQUENCE, SEQUENCE_RES);
	xdr_put_fixed(&c->enc, seq->id.data, sizeof(seq->id.data));
	xdr_put_u32(&c->enc, seq->seqid);
	xdr_put_u32(&c->enc, seq->slot);
	xdr_put_u32(&c->enc, seq->highest);
	xdr_put_bool(&c->enc, seq->cachethis);
}

bool nfs4_compound_get_sequence(struct nfs4_compound *c, struct nfs4_sequence *seq)
{
	const uint8_t *id;

	if (!nfs4_compound_result(c, OP_SEQUENCE))
		return false;
	id = xdr_get_fixed(&c->dec, NFS4_SESSIONID_SIZE);
	if (id)
		memcpy(seq->id.data, id, NFS4_SESSIONID_SIZE);
	seq->seqid = xdr_get_u32(&c->dec);
	seq->slot = xdr_get_u32(&c->dec);
	seq->highest = xdr_get_u32(&c->dec);
	seq->target = xdr_get_u32(&c->dec);
	seq->flags = xdr_get_u32(&c->dec);
	return !c->dec.failed;
}
