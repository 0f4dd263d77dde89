/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The callback service of a session.
 *
 *   RPC call -> program, version, procedure -> CB_COMPOUND's minor version
 *   -> CB_SEQUENCE: session, size, slot, number -> the operations
 *
 * Exactly once (RFC 8881 section 2.10.6): a slot keeps the results of its last
 * call, asked for or not, since they are small, and what tells a repetition
 * of it from another call under the same number. What we hold delegations of,
 * the environment knows (nfs4_deleg.c), and what it copies for us
 * (nfs4_offload.c). We have no layouts: that is what the operations' statuses
 * say. Of locks we are told only that one may be free.
 */
#include "nfs4_cb.h"

#include <errno.h>
#include <string.h>

#include "rpc.h"

/* A CB_COMPOUND being answered. */
struct run {
	struct nfs4_cb *cb;
	const struct nfs4_cb_env *env;
	struct xdr_dec in;
	struct xdr_enc out;
	const uint8_t *args; /* from the tag on */
	uint32_t args_len;
	struct nfs4_cb_args head;
	size_t cnt_off;
	uint32_t done_cnt;
	struct nfs4_cb_slot *slot; /* where the results are kept */
};

static enum nfs4_status recall(struct run *r)
{
	struct nfs4_cb_recall a;

	if (!nfs4_cb_xdr_get_recall(&r->in, &a))
		return NFS4ERR_BADXDR;
	return r->env->recall(r->env->ctx, &a.stateid, &a.fh);
}

/* Its results follow the status: run_op() writes them. */
static enum nfs4_status getattr(struct run *r)
{
	struct nfs4_cb_getattr a;
	uint64_t change, size;

	if (!nfs4_cb_xdr_get_getattr(&r->in, &a))
		return NFS4ERR_BADXDR;
	if (!r->env->getattr(r->env->ctx, &a.fh, &change, &size))
		return NFS4ERR_BADHANDLE;
	xdr_put_u32(&r->out, NFS4_OK);
	nfs4_cb_xdr_put_getattr(&r->out, &a, change, size);
	return NFS4_OK;
}

static enum nfs4_status recall_any(struct run *r)
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
	if (read || write)
		r->env->recall_any(r->env->ctx, a.keep, read, write);
	return NFS4_OK;
}

static enum nfs4_status recall_slot(struct run *r)
{
	uint32_t target;

	if (!nfs4_cb_xdr_get_recall_slot(&r->in, &target))
		return NFS4ERR_BADXDR;
	r->cb->recall_slot = target;
	return NFS4_OK;
}

/* Only a hint: whoever waits asks again by himself, too. */
static enum nfs4_status notify_lock(struct run *r)
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

static enum nfs4_status offload(struct run *r)
{
	struct nfs4_cb_offload a;

	if (!nfs4_cb_xdr_get_offload(&r->in, &a))
		return NFS4ERR_BADXDR;
	return r->env->offload(r->env->ctx, &a.id, &a.res);
}

/* run NULL: always `status`; a status other than NFS4_OK ends the COMPOUND, so no arguments are
 * read. */
static const struct {
	uint32_t op;
	unsigned int minor; /* from which on there is such an operation */
	enum nfs4_status (*run)(struct run *r);
	enum nfs4_status status;
	bool has_results; /* run writes NFS4_OK and them */
} ops[] = {
	{OP_CB_GETATTR, 1, getattr, NFS4_OK, true},
	{OP_CB_RECALL, 1, recall, NFS4_OK},
	{OP_CB_LAYOUTRECALL, 1, NULL, NFS4ERR_NOMATCHING_LAYOUT},
	{OP_CB_NOTIFY, 1, NULL, NFS4ERR_NOTSUPP},
	{OP_CB_PUSH_DELEG, 1, NULL, NFS4ERR_NOTSUPP},
	{OP_CB_RECALL_ANY, 1, recall_any, NFS4_OK},
	{OP_CB_RECALLABLE_OBJ_AVAIL, 1, NULL, NFS4ERR_NOTSUPP},
	{OP_CB_RECALL_SLOT, 1, recall_slot, NFS4_OK},
	{OP_CB_SEQUENCE, 1, NULL, NFS4ERR_SEQUENCE_POS}, /* the first one was walked already */
	{OP_CB_WANTS_CANCELLED, 1, NULL, NFS4ERR_NOTSUPP},
	{OP_CB_NOTIFY_LOCK, 1, notify_lock, NFS4_OK},
	{OP_CB_NOTIFY_DEVICEID, 1, NULL, NFS4ERR_NOTSUPP},
	{OP_CB_OFFLOAD, 2, offload, NFS4_OK},
};

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

static enum nfs4_status run_op(struct run *r, uint32_t op)
{
	enum nfs4_status status = NFS4ERR_OP_ILLEGAL;

	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (ops[i].op != op || ops[i].minor > r->head.minor)
			continue;
		xdr_put_u32(&r->out, op);
		status = ops[i].run ? ops[i].run(r) : ops[i].status;
		if (status != NFS4_OK || !ops[i].has_results)
			xdr_put_u32(&r->out, status);
		return status;
	}
	xdr_put_u32(&r->out, OP_CB_ILLEGAL);
	xdr_put_u32(&r->out, status);
	return status;
}

/* Those behind CB_SEQUENCE, up to the first that fails. */
static enum nfs4_status run_ops(struct run *r)
{
	enum nfs4_status status = NFS4_OK;

	while (r->done_cnt < r->head.op_cnt && status == NFS4_OK) {
		uint32_t op = xdr_get_u32(&r->in);

		if (r->in.failed) { /* fewer than it said */
			status = NFS4ERR_BADXDR;
			xdr_put_u32(&r->out, OP_CB_ILLEGAL);
			xdr_put_u32(&r->out, status);
		} else {
			status = run_op(r, op);
		}
		r->done_cnt++;
	}
	return status;
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
static bool comes_early(const struct run *r, const struct nfs4_cb_sequence *seq)
{
	struct nfs4_cb_referring ref = seq->referring;
	uint32_t seqid, slot;

	while (nfs4_cb_xdr_next_referring(&ref, &seqid, &slot))
		if (memcmp(&ref.id, &r->cb->id, sizeof(ref.id)) == 0 &&
			r->env->is_in_flight(r->env->ctx, slot, seqid))
			return true;
	return false;
}

/*
 * Section 20.9.3. NFS4_OK with r->slot set: a new call, its results are to be kept; with r->slot
 * NULL: a repetition, which `out` is the answer to.
 */
static enum nfs4_status check_sequence(struct run *r, const struct nfs4_cb_sequence *seq)
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

/* False: the results are complete, nothing follows. */
static bool run_sequence(struct run *r, enum nfs4_status *ret_status)
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
	if (*ret_status == NFS4_OK) {
		nfs4_cb_xdr_put_sequence(&r->out, &seq, r->cb->slot_cnt - 1);
		*ret_status = run_ops(r);
	}
	return true;
}

/* ---- CB_COMPOUND ---- */

static bool minor_is_ours(const struct nfs4_cb *cb, uint32_t minor)
{
	/* A 4.2 client's session carries 4.1's callbacks too; before there is one, either. */
	return minor >= 1 && minor <= (cb->open ? cb->minor : 2u);
}

/* Results of r->head at r->out. */
static void run_compound(struct run *r)
{
	enum nfs4_status status = NFS4_OK;
	struct nfs4_cb_slot *slot;

	xdr_put_u32(&r->out, NFS4_OK);
	xdr_put_opaque(
		&r->out, r->head.tag, r->head.tag_len <= NFS4_CB_TAG_MAX ? r->head.tag_len : 0);
	r->cnt_off = xdr_enc_len(&r->out);
	xdr_put_u32(&r->out, 0);
	if (!minor_is_ours(r->cb, r->head.minor))
		status = NFS4ERR_MINOR_VERS_MISMATCH;
	else if (r->head.op_cnt > 0 && !run_sequence(r, &status))
		return;
	xdr_patch_u32(&r->out, 0, status);
	xdr_patch_u32(&r->out, r->cnt_off, r->done_cnt);
	slot = r->slot;
	if (slot && !r->out.failed) {
		slot->len = (uint32_t)xdr_enc_len(&r->out);
		memcpy(slot->res, r->out.base, slot->len);
	}
}

/* ---- RPC ---- */

static size_t answer_call(struct nfs4_cb *cb, const struct nfs4_cb_env *env,
	const struct rpc_callhdr *h, struct xdr_dec *x, struct xdr_enc *enc)
{
	struct run r = {.cb = cb, .env = env, .in = *x, .args = x->p};

	if (h->prog != NFS4_CB_PROGRAM) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_PROG_UNAVAIL, 0, 0);
	} else if (h->vers != NFS4_CB_VERS_MIN && h->vers != NFS4_CB_VERS_MAX) {
		rpc_encode_accepted(
			enc, h->xid, RPC_ACCEPT_PROG_MISMATCH, NFS4_CB_VERS_MIN, NFS4_CB_VERS_MAX);
	} else if (h->proc == NFS4_CB_PROC_NULL) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_SUCCESS, 0, 0);
	} else if (h->proc != NFS4_CB_PROC_COMPOUND) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_PROC_UNAVAIL, 0, 0);
	} else if (!nfs4_cb_xdr_get_args(&r.in, &r.head)) {
		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_GARBAGE_ARGS, 0, 0);
	} else {
		uint8_t *res;

		rpc_encode_accepted(enc, h->xid, RPC_ACCEPT_SUCCESS, 0, 0);
		res = xdr_put_reserve(enc, 0);
		r.args_len = (uint32_t)(r.in.end - r.args);
		xdr_enc_init(&r.out, res, NFS4_CB_RES_MAX);
		run_compound(&r);
		return xdr_enc_len(enc) + xdr_enc_len(&r.out);
	}
	return xdr_enc_len(enc);
}

size_t nfs4_cb_answer(struct nfs4_cb *cb, const struct nfs4_cb_env *env, const void *msg,
	size_t len, uint8_t *out)
{
	struct rpc_callhdr h = {0};
	struct xdr_dec x;
	struct xdr_enc enc;

	cb->lock_free_cnt = 0;
	xdr_dec_init(&x, msg, len);
	xdr_enc_init(&enc, out, NFS4_CB_ANSWER_MAX);
	switch (rpc_decode_call(&x, &h)) {
	case 0:
		return answer_call(cb, env, &h, &x, &enc);
	case -EPROTONOSUPPORT:
		rpc_encode_rejected_mismatch(&enc, h.xid);
		return xdr_enc_len(&enc);
	default:
		return 0;
	}
}
