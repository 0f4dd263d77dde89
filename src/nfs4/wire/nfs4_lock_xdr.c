/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What LOCK, LOCKT, LOCKU and CB_NOTIFY_LOCK have in common (RFC 8881 sections
 * 18.10 to 18.12, 20.11).
 */
#include <string.h>

#include "nfs4_lock_xdr.h"

#define OWNER_PREFIX "lock id:"
#define PREFIX_LEN   ((uint32_t)sizeof(OWNER_PREFIX) - 1)
#define OWNER_LEN    (PREFIX_LEN + 8)

const struct nfs4_stateid nfs4_stateid_current = {.seqid = 1};

void nfs4_lock_xdr_put_owner(struct xdr_enc *x, uint64_t number)
{
	xdr_put_u64(x, 0);
	xdr_put_u32(x, OWNER_LEN);
	xdr_put_fixed(x, OWNER_PREFIX, PREFIX_LEN);
	xdr_put_u64(x, number);
}

bool nfs4_lock_xdr_get_owner(struct xdr_dec *x, uint64_t *ret_number)
{
	struct xdr_dec number;
	uint32_t len = 0;
	const uint8_t *p;

	xdr_get_u64(x);
	p = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
	if (!p || len != OWNER_LEN || memcmp(p, OWNER_PREFIX, PREFIX_LEN) != 0)
		return false;
	xdr_dec_init(&number, p + PREFIX_LEN, 8);
	*ret_number = xdr_get_u64(&number);
	return true;
}

bool nfs4_lock_xdr_range_ok(uint64_t offset, uint64_t length)
{
	return length == NFS4_LOCK_TO_END || (length > 0 && length <= UINT64_MAX - offset);
}

void nfs4_lock_xdr_put_lock(struct nfs4_compound *c, const struct nfs4_lock_work *k,
	const struct nfs4_stateid *sid, bool wait)
{
	struct xdr_enc *x = &c->enc;
	enum nfs4_lock_type type = k->write ? WRITE_LT : READ_LT;

	if (wait)
		type = k->write ? WRITEW_LT : READW_LT;
	nfs4_compound_op(c, OP_LOCK, NFS4_DENIED_MAX);
	xdr_put_u32(x, type);
	xdr_put_bool(x, k->reclaim);
	xdr_put_u64(x, k->offset);
	xdr_put_u64(x, k->length);
	xdr_put_bool(x, k->first);
	/* The seqids are 4.0's: not looked at. */
	if (k->first)
		xdr_put_u32(x, 0);
	nfs4_xdr_put_stateid(x, sid);
	xdr_put_u32(x, 0);
	if (k->first)
		nfs4_lock_xdr_put_owner(x, k->owner);
}

void nfs4_lock_xdr_put_locku(
	struct nfs4_compound *c, const struct nfs4_stateid *sid, uint64_t offset, uint64_t length)
{
	struct xdr_enc *x = &c->enc;

	nfs4_compound_op(c, OP_LOCKU, NFS4_STATEID_SIZE);
	xdr_put_u32(x, WRITE_LT); /* any will do */
	xdr_put_u32(x, 0);        /* seqid: 4.0's */
	nfs4_xdr_put_stateid(x, sid);
	xdr_put_u64(x, offset);
	xdr_put_u64(x, length);
}

bool nfs4_lock_xdr_get_denied(
	struct nfs4_compound *c, enum nfs4_opnum op, struct nfs4_denied *denied)
{
	struct xdr_dec *x = &c->dec;
	struct nfs4_denied d;
	uint32_t type;

	if (x->failed || c->failed_op != (uint32_t)op || c->status != NFS4ERR_DENIED)
		return false;
	d.offset = xdr_get_u64(x);
	d.length = xdr_get_u64(x);
	type = xdr_get_u32(x);
	/* Whose it is: other clients' names mean nothing here, and nfsd may leave it out. */
	if (!nfs4_lock_xdr_get_owner(x, &d.owner))
		d.owner = 0;
	if (x->failed)
		return false;
	/*
	 * WIRE: a range that is none, a lock of no kind. That does not make the answer another one.
	 * Ganesha says length 0 where a lock goes to the end of the file.
	 */
	if (!nfs4_lock_xdr_range_ok(d.offset, d.length))
		d.length = NFS4_LOCK_TO_END;
	d.write = type != READ_LT && type != READW_LT;
	*denied = d;
	return true;
}

/* ---- PUTFH LOCK ---- */

int nfs4_lock_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_lock *o = &call->u.lock;

	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_lock_xdr_put_lock(c, &o->work, &call->stateid, o->wait);
	return nfs4_xdr_encode_end(c);
}

int nfs4_lock_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_lock *o = &call->u.lock;

	memset(&o->denied, 0, sizeof(o->denied));
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_LOCK))
		nfs4_xdr_get_stateid(&c->dec, &o->work.stateid);
	else
		nfs4_lock_xdr_get_denied(c, OP_LOCK, &o->denied);
	return nfs4_xdr_decode_end(c);
}
