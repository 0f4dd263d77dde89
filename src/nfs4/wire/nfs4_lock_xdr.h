/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of the arguments and results of LOCK, LOCKT and LOCKU (RFC 8881
 * sections 18.10 to 18.12).
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_NFS4_LOCK_XDR_H
#define RPCRDMAFS_NFS4_LOCK_XDR_H

#include "nfs4_int.h"

/* Of a lock_owner4 in the bound of a reply; nfsd leaves out what does not fit. */
#define NFS4_DENIED_OWNER_MAX 128u
/* LOCK4denied: offset, length, type, owner */
#define NFS4_DENIED_MAX (8u + 8u + 4u + 8u + 4u + NFS4_DENIED_OWNER_MAX)

/* lock_owner4: its clientid is not looked at in 4.1 (RFC 8881 section 18.10.3). */
void nfs4_lock_xdr_put_owner(struct xdr_enc *x, uint64_t number);
/* False: not one of ours, or malformed (x->failed). */
bool nfs4_lock_xdr_get_owner(struct xdr_dec *x, uint64_t *ret_number);
/* What LOCK, LOCKT and LOCKU may be asked for: else -EINVAL. */
bool nfs4_lock_xdr_range_ok(uint64_t offset, uint64_t length);
void nfs4_lock_xdr_put_lock(struct nfs4_compound *c, const struct nfs4_lock_work *k,
	const struct nfs4_stateid *sid, bool wait);
/* sid: of locks, or nfs4_stateid_current. */
void nfs4_lock_xdr_put_locku(
	struct nfs4_compound *c, const struct nfs4_stateid *sid, uint64_t offset, uint64_t length);
/* What the operation before in the COMPOUND returned (RFC 8881 section 16.2.3.1.2). */
extern const struct nfs4_stateid nfs4_stateid_current;
/* `op` failed with NFS4ERR_DENIED: why. False: it did not, or the answer is malformed. */
bool nfs4_lock_xdr_get_denied(
	struct nfs4_compound *c, enum nfs4_opnum op, struct nfs4_denied *denied);
/*
 * PUTFH LOCK, of u.lock: for the descriptors of the user's and of the reclaimed. The first one of
 * an owner names the open and the owner, those that follow bear the stateid that it returned.
 */
int nfs4_lock_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c);
int nfs4_lock_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c);

#endif
