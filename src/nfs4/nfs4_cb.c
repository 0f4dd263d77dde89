/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The callback service of a session.
 *
 *   RPC call -> program, version, procedure -> CB_COMPOUND's minor version
 *   -> CB_SEQUENCE: session, size, slot, number -> the operations
 *
 * Exactly once (RFC 8881 section 2.10.6): a slot keeps the results of its last
 * call, asked for or not, since they are small, and what tells a repetition
 * of it from another call under the same number. The caller knows what we hold
 * delegations of (nfs4_deleg.c) and what is copied for us (nfs4_offload.c). We
 * have no layouts: that is what the operations' statuses say. Of locks we are
 * told only that one may be free.
 */
#include "nfs4_cb.h"

#include <errno.h>
#include <string.h>

#include "rpc.h"

void nfs4_cb_open(struct nfs4_cb *cb, const struct nfs4_sessionid *id, unsigned int minor,
	uint32_t slots, uint32_t max_ops)
{
	memset(cb, 0, sizeof(*cb));
	cb->open = true;
	cb->id = *id;
	cb->minor = minor;
	cb->slot_cnt = slots < NFS4_CB_SLOTS ? slots : NFS4_CB_SLOTS;
	cb->max_ops = max_ops < NFS4_CB_OPS ? max_ops : NFS4_CB_OPS;
	cb->recall_slot = UINT32_MAX;
}

/* ---- operations ---- */

/* The caller executes it, if its arguments are there. */
static enum nfs4_status ask(struct nfs4_cb_run *r, enum nfs4_cb_kind kind, bool is_whole)
{
	r->op.kind = kind;
	r->asks = is_whole;
	return is_whole ? NFS4_OK : NFS4ERR_BADXDR;
}

static enum nfs4_status recall_any(struct nfs4_cb_run *r)
{
	struct nfs4_cb_recall_any a;
	bool read, write;

	if (!nfs4_cb_xdr_get_recall_any(&r->in, &a))
		return NFS4ERR_BADXDR;
	/* Section 20.6.3 wants unknown types refused; of most we have nothing to give back. */
	if (a.types >> (RCA4_TYPE_MASK_FF_LAYOUT_MAX + 1))
		return NFS4ERR_INVAL;
	read = a.types & 1u << RCA4_TYPE_MASK_RDATA_DLG;
	write = a.types & 1u << RCA4_TYPE_MASK_WDATA_DLG;
	if (!read && !write)
		return NFS4_OK;
	r->op.recall_any.keep = a.keep;
	r->op.recall_any.read = read;
	r->op.recall_any.write = write;
	return ask(r, NFS4_CB_RECALL_ANY, true);
}

static enum nfs4_status recall_slot(struct nfs4_cb_run *r)
{
	uint32_t target;

	if (!nfs4_cb_xdr_get_recall_slot(&r->in, &target))
		return NFS4ERR_BADXDR;
	r->cb->recall_slot = target;
	return NFS4_OK;
}

/* Only a hint: whoever waits asks again by himself, too. */
static enum nfs4_status notify_lock(struct nfs4_cb_run *r)
{
	struct nfs4_cb *cb = r->cb;
	uint64_t number;
	bool ours;

	if (!nfs4_cb_xdr_get_notify_lock(&r->in, &ours, &number))
		return NFS4ERR_BADXDR;
	if (ours && cb->lock_free_cnt < NFS4_CB_OPS)
		cb->lock_free[cb->lock_free_cnt++] = number;
	return NFS4_OK;
}

/* CB_OFFLOAD is of minor version 2. */
static bool is_operation(const struct nfs4_cb_run *r, uint32_t op)
{
	return op >= OP_CB_GETATTR &&
	       op <= (r->head.minor >= 2 ? OP_CB_OFFLOAD : OP_CB_NOTIFY_DEVICEID);
}

/*
 * NFS4_OK with r->asks: the caller executes it. Arguments are read of what may succeed alone: any
 * other status ends the COMPOUND.
 */
static enum nfs4_status run_op(struct nfs4_cb_run *r, uint32_t op)
{
	switch (op) {
	case OP_CB_GETATTR:
		return ask(r, NFS4_CB_GETATTR, nfs4_cb_xdr_get_getattr(&r->in, &r->op.getattr));
	case OP_CB_RECALL:
		return ask(r, NFS4_CB_RECALL, nfs4_cb_xdr_get_recall(&r->in, &r->op.recall));
	case OP_CB_RECALL_ANY:
		return recall_any(r);
	case OP_CB_RECALL_SLOT:
		return recall_slot(r);
	case OP_CB_NOTIFY_LOCK:
		return notify_lock(r);
	case OP_CB_OFFLOAD:
		return ask(r, NFS4_CB_OFFLOAD, nfs4_cb_xdr_get_offload(&r->in, &r->op.offload));
	case OP_CB_LAYOUTRECALL:
		return NFS4ERR_NOMATCHING_LAYOUT;
	case OP_CB_SEQUENCE: /* the first one was walked already */
		return NFS4ERR_SEQUENCE_POS;
	default:
		return NFS4ERR_NOTSUPP;
	}
}

static void end_compound(struct nfs4_cb_run *r, enum nfs4_status status)
{
	struct nfs4_cb_slot *slot = r->slot;

	xdr_patch_u32(&r->out, 0, status);
	xdr_patch_u32(&r->out, r->cnt_off, r->done_cnt);
	if (slot && !r->out.failed) {
		slot->len = (uint32_t)xdr_enc_len(&r->out);
		memcpy(slot->res, r->out.base, slot->len);
	}
	r->len = r->head_len + xdr_enc_len(&r->out);
}

/* Up to the next one for the caller, or the first that fails; `status`: of those before. */
static struct nfs4_cb_op *run_ops(struct nfs4_cb_run *r, enum nfs4_status status)
{
	while (r->done_cnt < r->head.op_cnt && status == NFS4_OK) {
		uint32_t op = xdr_get_u32(&r->in);

		if (r->in.failed || !is_operation(r, op)) {
			/* fewer than it said, or none of this minor version */
			status = r->in.failed ? NFS4ERR_BADXDR : NFS4ERR_OP_ILLEGAL;
			xdr_put_u32(&r->out, OP_CB_ILLEGAL);
		} else {
			r->asks = false;
			xdr_put_u32(&r->out, op);
			status = run_op(r, op);
			if (r->asks)
				return &r->op;
		}
		xdr_put_u32(&r->out, status);
		r->done_cnt++;
	}
	end_compound(r, status);
	return NULL;
}

struct nfs4_cb_op *nfs4_cb_next(struct nfs4_cb_run *r, enum nfs4_status status)
{
	const struct nfs4_cb_op *op = &r->op;

	xdr_put_u32(&r->out, status);
	if (op->kind == NFS4_CB_GETATTR && status == NFS4_OK)
		nfs4_cb_xdr_put_getattr(&r->out, &op->getattr, op->change, op->size);
	r->done_cnt++;
	return run_ops(r, status);
}

/* ---- CB_SEQUENCE ---- */

/* FNV-1a: tells calls apart that a correct server never confuses. */
static uint64_t args_sum(const uint8_t *p, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 0x100000001b3ull;
	return sum;
}

/*
 * Section 2.10.6.3: it is about what such a call returns, which is not here yet. Calls on other
 * sessions are another lane's: what overtakes them, nfs4_deleg.c notices.
 */
static bool comes_early(const struct nfs4_cb_run *r, const struct nfs4_cb_sequence *seq)
{
	struct nfs4_cb_referring ref = seq->referring;
	uint32_t seqid, slot;

	while (nfs4_cb_xdr_next_referring(&ref, &seqid, &slot))
		if (memcmp(&ref.id, &r->cb->id, sizeof(ref.id)) == 0 &&
			nfs4_slot_is_busy(r->fore, slot, seqid))
			return true;
	return false;
}

/*
 * Section 20.9.3. NFS4_OK with r->slot set: a new call, its results are to be kept; with r->slot
 * NULL: a repetition, which `out` is the answer to.
 */
static enum nfs4_status check_sequence(struct nfs4_cb_run *r, const struct nfs4_cb_sequence *seq)
{
	struct nfs4_cb *cb = r->cb;
	struct nfs4_cb_slot *slot;

	if (!cb->open || memcmp(&seq->id, &cb->id, sizeof(cb->id)) != 0)
		return cb->coming ? NFS4ERR_DELAY : NFS4ERR_BADSESSION;
	if (seq->slot >= cb->slot_cnt)
		return NFS4ERR_BADSLOT;
	if (seq->highest >= cb->slot_cnt)
		return NFS4ERR_BAD_HIGH_SLOT;
	slot = &cb->slots[seq->slot];
	if (slot->len > 0 && seq->seqid == slot->seqid) {
		if (slot->args_len != r->args_len ||
			slot->args_sum != args_sum(r->args, r->args_len))
			return NFS4ERR_SEQ_FALSE_RETRY;
		r->out.p = r->out.base;
		memcpy(xdr_put_reserve(&r->out, slot->len), slot->res, slot->len);
		return NFS4_OK;
	}
	if (seq->seqid != slot->seqid + 1)
		return NFS4ERR_SEQ_MISORDERED;
	if (r->head.op_cnt > cb->max_ops)
		return NFS4ERR_TOO_MANY_OPS;
	if (comes_early(r, seq))
		return NFS4ERR_DELAY;
	slot->seqid = seq->seqid;
	slot->len = 0;
	slot->args_len = r->args_len;
	slot->args_sum = args_sum(r->args, r->args_len);
	r->slot = slot;
	return NFS4_OK;
}

/* False: a repetition, `out` is its answer. *ret_status NFS4_OK: the other operations follow. */
static bool run_sequence(struct nfs4_cb_run *r, enum nfs4_status *ret_status)
{
	struct nfs4_cb_sequence seq = {0};
	uint32_t op = xdr_get_u32(&r->in);

	if (r->in.failed || op != OP_CB_SEQUENCE) {
		bool known = !r->in.failed && op >= OP_CB_GETATTR && op <= OP_CB_OFFLOAD;

		xdr_put_u32(&r->out, known ? op : OP_CB_ILLEGAL);
		*ret_status = r->in.failed ? NFS4ERR_BADXDR
			      : known      ? NFS4ERR_OP_NOT_IN_SESSION
					   : NFS4ERR_OP_ILLEGAL;
		xdr_put_u32(&r->out, *ret_status);
		r->done_cnt++;
		return true;
	}
	if (!nfs4_cb_xdr_get_sequence(&r->in, &seq))
		*ret_status = NFS4ERR_BADXDR;
	else
		*ret_status = check_sequence(r, &seq);
	if (*ret_status == NFS4_OK && !r->slot)
		return false;
	xdr_put_u32(&r->out, op);
	xdr_put_u32(&r->out, *ret_status);
	r->done_cnt++;
	if (*ret_status == NFS4_OK)
		nfs4_cb_xdr_put_sequence(&r->out, &seq, r->cb->slot_cnt - 1);
	return true;
}

/* ---- CB_COMPOUND ---- */

static bool minor_is_ours(const struct nfs4_cb *cb, uint32_t minor)
{
	/* A 4.2 client's session carries 4.1's callbacks too; before there is one, either. */
	return minor >= 1 && minor <= (cb->open ? cb->minor : 2u);
}

/* Results of r->head at r->out. */
static struct nfs4_cb_op *begin_compound(struct nfs4_cb_run *r)
{
	enum nfs4_status status = NFS4_OK;

	xdr_put_u32(&r->out, NFS4_OK);
	xdr_put_opaque(
		&r->out, r->head.tag, r->head.tag_len <= NFS4_CB_TAG_MAX ? r->head.tag_len : 0);
	r->cnt_off = xdr_enc_len(&r->out);
	xdr_put_u32(&r->out, 0);
	if (!minor_is_ours(r->cb, r->head.minor)) {
		status = NFS4ERR_MINOR_VERS_MISMATCH;
	} else if (r->head.op_cnt > 0 && !run_sequence(r, &status)) {
		r->len = r->head_len + xdr_enc_len(&r->out);
		return NULL;
	}
	return run_ops(r, status);
}

/* ---- RPC ---- */

static struct nfs4_cb_op *begin_call(
	struct nfs4_cb_run *r, const struct rpc_callhdr *h, struct xdr_enc *enc)
{
	r->args = r->in.p;
	if (h->prog != NFS4_CB_PROGRAM) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_PROG_UNAVAIL, 0, 0);
	} else if (h->vers != NFS4_CB_VERS_MIN && h->vers != NFS4_CB_VERS_MAX) {
		rpc_encode_accepted(
			enc, h->xid, RPC_ACCEPT_PROG_MISMATCH, NFS4_CB_VERS_MIN, NFS4_CB_VERS_MAX);
	} else if (h->proc == NFS4_CB_PROC_NULL) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_SUCCESS, 0, 0);
	} else if (h->proc != NFS4_CB_PROC_COMPOUND) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_PROC_UNAVAIL, 0, 0);
	} else if (!nfs4_cb_xdr_get_args(&r->in, &r->head)) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_GARBAGE_ARGS, 0, 0);
	} else {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_SUCCESS, 0, 0);
		r->head_len = xdr_enc_len(enc);
		r->args_len = (uint32_t)(r->in.end - r->args);
		xdr_enc_init(&r->out, xdr_put_reserve(enc, 0), NFS4_CB_RES_MAX);
		return begin_compound(r);
	}
	r->len = xdr_enc_len(enc);
	return NULL;
}

struct nfs4_cb_op *nfs4_cb_begin(struct nfs4_cb_run *r, struct nfs4_cb *cb,
	const struct nfs4_slots *fore, const void *msg, size_t len, uint8_t *out)
{
	struct rpc_callhdr h = {0};
	struct xdr_enc enc;

	*r = (struct nfs4_cb_run){.cb = cb, .fore = fore};
	cb->lock_free_cnt = 0;
	xdr_dec_init(&r->in, msg, len);
	xdr_enc_init(&enc, out, NFS4_CB_ANSWER_MAX);
	switch (rpc_decode_call(&r->in, &h)) {
	case 0:
		return begin_call(r, &h, &enc);
	case -EPROTONOSUPPORT:
		rpc_encode_rejected_mismatch(&enc, h.xid);
		r->len = xdr_enc_len(&enc);
		return NULL;
	default:
		return NULL;
	}
}
