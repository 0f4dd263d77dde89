/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that the server goes on with by itself: the books of the client
 * (nfs4_offload.c).
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_NFS4_OFFLOAD_INT_H
#define RPCRDMAFS_NFS4_OFFLOAD_INT_H

#include "mutex.h"
#include "nfs4_offload.h"

/* Results that came before their COPY's replies, as long as one may be on its way. */
#define NFS4_EARLY_OFFLOADS 16u

struct nfs4_early_offload {
	struct nfs4_stateid id;
	uint32_t id_gen;
	struct nfs4_offload_result res;
};

/* Of the client. Owner: `lock`, held for a few instructions. */
struct nfs4_offloads {
	struct mutex lock;
	struct list waiting;  /* of nfs4_offload.link */
	unsigned int awaited; /* COPYs in flight */
	struct nfs4_early_offload early[NFS4_EARLY_OFFLOADS];
	unsigned int early_cnt;
};

void nfs4_offload_init(struct nfs4_offloads *os);
void nfs4_offload_fini(struct nfs4_offloads *os);
/* CB_OFFLOAD; any lane. */
enum nfs4_status nfs4_offload_told(struct nfs4_client *cl, uint32_t id_gen,
	const struct nfs4_stateid *id, const struct nfs4_offload_result *res);

#endif
