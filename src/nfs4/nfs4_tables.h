/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of NFS in tables (tables.h), for several rooms.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_NFS4_TABLES_H
#define RPCRDMAFS_NFS4_TABLES_H

#include "nfs4.h"
#include "tables.h"

/* A user's credential, and a filehandle, as a field of any number. False: it is none. */
void nfs4_tables_put_cred(struct tables_out *t, uint16_t field, const struct rpc_cred *cred);
bool nfs4_tables_get_cred(const struct tables_record *r, uint16_t field, struct rpc_cred *ret);
void nfs4_tables_put_fh(struct tables_out *t, uint16_t field, const struct nfs4_fh *fh);
bool nfs4_tables_get_fh(const struct tables_record *r, uint16_t field, struct nfs4_fh *ret);

#endif
