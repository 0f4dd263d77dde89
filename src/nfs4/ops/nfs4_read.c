/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH READ, nothing after it: the data is the last thing in the reply (nfs4_read_xdr.c). */
#include "nfs4_codec.h"
#include "nfs4_hooks.h"

#include <stddef.h>

static int read_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	int err;

	nfs4_xdr_put_putfh(c, call->u.read.fh);
	err = nfs4_read_xdr_put(c, &call->u.read, &call->stateid);
	return err ? err : nfs4_xdr_encode_end(c);
}

static int read_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_void(c, OP_PUTFH); /* if it failed, so did READ */
	nfs4_read_xdr_get(c, &call->u.read);
	return nfs4_xdr_decode_end(c);
}

static bool read_range(const struct nfs4_call *call, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct nfs4_op_read *o = &call->u.read;

	return nfs4_bytes_range(o->offset, o->count, ret_first, ret_last);
}

static const struct nfs4_opdesc read_desc = {
	.name = "READ",
	.encode = read_encode,
	.decode = read_decode,
	.take = nfs4_lock_io_take,
	.refused = nfs4_lock_io_refused,
	.range = read_range,
	.state_off = offsetof(struct nfs4_call, u.read.state),
};

void nfs4_read(struct nfs4_call *call)
{
	nfs4_call_start(call, &read_desc);
}
