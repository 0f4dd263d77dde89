/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of COPY and CB_OFFLOAD (RFC 7862 sections 15.2, 16.1).
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_NFS4_COPY_XDR_H
#define RPCRDMAFS_NFS4_COPY_XDR_H

#include "nfs4_int.h"

/* write_response4 */
struct nfs4_copy_response {
	bool async;
	struct nfs4_stateid id; /* with async */
	uint64_t count;
	enum nfs4_stable committed;
	struct nfs4_verf verf;
};
/* False: malformed. */
bool nfs4_copy_xdr_get_response(struct xdr_dec *x, struct nfs4_copy_response *res);
/* offload_info4; *res is set only if x does not fail. */
void nfs4_copy_xdr_get_offload(struct xdr_dec *x, struct nfs4_offload_result *res);

#endif
