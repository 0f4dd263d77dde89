/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH ALLOCATE GETATTR, PUTFH DEALLOCATE GETATTR (RFC 7862 sections 15.1
 * and 15.4): alike but for the operation's number.
 */
#include "nfs4_hooks.h"

#include <errno.h>
#include <stddef.h>

static int encode(struct nfs4_call *call, struct nfs4_compound *c, enum nfs4_opnum op)
{
	const struct nfs4_op_allocate *o = &call->u.allocate;

	if (c->minor < 2)
		return -EOPNOTSUPP;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, op, 0);
	nfs4_xdr_put_stateid(&c->enc, &call->stateid);
	xdr_put_u64(&c->enc, o->offset);
	xdr_put_u64(&c->enc, o->len);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_WRITTEN | NFS4_ATTR_SPACE_USED);
	return nfs4_xdr_encode_end(c);
}

static int decode(struct nfs4_call *call, struct nfs4_compound *c, enum nfs4_opnum op)
{
	struct nfs4_op_allocate *o = &call->u.allocate;

	o->attr.valid = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_void(c, op)) {
		nfs4_xdr_get_getattr(c, &o->attr);
		nfs4_xdr_decode_done(c);
	}
	return nfs4_xdr_decode_end(c);
}

static int allocate_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return encode(call, c, OP_ALLOCATE);
}

static int allocate_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return decode(call, c, OP_ALLOCATE);
}

static int deallocate_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return encode(call, c, OP_DEALLOCATE);
}

static int deallocate_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return decode(call, c, OP_DEALLOCATE);
}

static bool range(const struct nfs4_call *call, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct nfs4_op_allocate *o = &call->u.allocate;

	return nfs4_bytes_range(o->offset, o->len, ret_first, ret_last);
}

static const struct nfs4_opdesc allocate_desc = {
	.name = "ALLOCATE",
	.encode = allocate_encode,
	.decode = allocate_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.range = range,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.allocate.state),
};

static const struct nfs4_opdesc deallocate_desc = {
	.name = "DEALLOCATE",
	.encode = deallocate_encode,
	.decode = deallocate_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.range = range,
	.cachethis = true,
	.state_off = offsetof(struct nfs4_call, u.allocate.state),
};

void nfs4_allocate(struct nfs4_call *call)
{
	nfs4_call_start(call, &allocate_desc);
}

void nfs4_deallocate(struct nfs4_call *call)
{
	nfs4_call_start(call, &deallocate_desc);
}
