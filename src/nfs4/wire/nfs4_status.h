/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of the error table, for docs/errors.md and tests. Users want
 * nfs4_status_errno(), _action() and _name() of nfs4_int.h and nfs4.h.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_NFS4_STATUS_H
#define RPCRDMAFS_NFS4_STATUS_H

#include "nfs4_int.h"

struct nfs4_status_row {
	enum nfs4_status status;
	const char *name; /* "NFS4ERR_NOENT" */
	int err;          /* positive errno */
	const char *errname;
	enum nfs4_action action;
	const char *note;
};

/* NULL: not in the table. */
const struct nfs4_status_row *nfs4_status_find(uint32_t status);
/* The i-th row; NULL past the last. */
const struct nfs4_status_row *nfs4_status_at(unsigned int i);

#endif
