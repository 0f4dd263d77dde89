/* SPDX-License-Identifier: BSD-3-Clause */
/* How a COPY went: in its reply and in CB_OFFLOAD (RFC 7862 sections 15.2.2, 16.1.1). */
#include "nfs4_copy_xdr.h"

bool nfs4_copy_xdr_get_response(struct xdr_dec *x, struct nfs4_copy_response *res)
{
	uint32_t committed;

	res->async = xdr_get_count(x, 1, NFS4_STATEID_SIZE) == 1;
	if (res->async)
		nfs4_xdr_get_stateid(x, &res->id);
	res->count = xdr_get_u64(x);
	committed = xdr_get_u32(x);
	nfs4_xdr_get_verf(x, &res->verf);
	/* WIRE */
	if (committed > FILE_SYNC4)
		xdr_fail(x);
	if (x->failed)
		return false;
	res->committed = (enum nfs4_stable)committed;
	return true;
}

void nfs4_copy_xdr_get_offload(struct xdr_dec *x, struct nfs4_offload_result *res)
{
	uint32_t status = xdr_get_u32(x);
	struct nfs4_copy_response got = {0};

	if (status == NFS4_OK) {
		if (!nfs4_copy_xdr_get_response(x, &got))
			return;
	} else {
		got.count = xdr_get_u64(x); /* coa_bytes_copied */
		if (x->failed)
			return;
	}
	*res = (struct nfs4_offload_result){
		.status = (enum nfs4_status)status,
		.copied = got.count,
		.committed = got.committed,
		.verf = got.verf,
	};
}
