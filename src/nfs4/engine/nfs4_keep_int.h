/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of the records of nfs4_keep.h, for who puts them and who gets them. */
#ifndef RPCRDMAFS_NFS4_KEEP_INT_H
#define RPCRDMAFS_NFS4_KEEP_INT_H

#include "nfs4_keep.h"

/* Fields; a number never gets another meaning. */
enum {
	CLIENT_VERIFIER = 1,
	CLIENT_ID = 2,
	CLIENT_SEQUENCE = 3, /* csa_sequence of the next CREATE_SESSION */
	CLIENT_MINOR = 4,
	CLIENT_OWNER_NEXT = 5,
	CLIENT_VERF_NEXT = 6,
	CLIENT_SERVER_MAJOR = 7, /* eir_server_owner */
	CLIENT_SERVER_SCOPE = 8,
	CLIENT_SESSION = 9, /* several */
	CLIENT_OWNER = 10,
	CLIENT_GEN = 11,         /* which of the client IDs it is, in states too */
	CLIENT_UNRECLAIMED = 12, /* RECLAIM_COMPLETE was not answered */
};

enum {
	STATE_STATEID = NFS4_KEEP_FIELDS,
	STATE_OWNER,
	STATE_CRED,
	STATE_ACCESS,
	STATE_MODES,
	STATE_FILEID,
	STATE_LOST,
	STATE_GEN, /* of the client ID that gave the stateid */
};

enum {
	LOCK_NUMBER = NFS4_KEEP_FIELDS + 50,
	LOCK_STATEID,
	LOCK_RANGE, /* several: first, last, write */
	LOCK_DOUBT, /* the same, one */
};

enum {
	DELEG_FH = 1,
	DELEG_STATEID,
	DELEG_CRED, /* it is returned under it */
	DELEG_GEN,  /* of the client ID that gave it */
};

void nfs4_keep_put_deleg(struct tables_out *t, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen);

/* Bytes of a stateid, and of a range of locks. */
#define STATEID_LEN 16u
#define RANGE_LEN   17u

#endif
