/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that the server goes on with by itself (RFC 7862 sections 4.8, 4.9):
 * who waits for which, and the CB_OFFLOAD that says how it ended.
 *
 * It comes on any lane, may come before the COPY's reply, and may never come:
 * who waits asks from time to time (nfs4_copy_status()).
 */
#ifndef RPCRDMAFS_NFS4_OFFLOAD_H
#define RPCRDMAFS_NFS4_OFFLOAD_H

#include "mutex.h"
#include "nfs4_ops.h"

/* One that is waited for; embedded in the user's object. Zeroed: nothing is. */
struct nfs4_offload {
	struct nfs4_client *cl; /* NULL: nothing is waited for */
	struct reactor *r;
	void (*done)(struct nfs4_offload *off);
	struct nfs4_stateid id;
	uint32_t id_gen;  /* client ID that it belongs to */
	struct list link; /* owner: offloads.lock, as `res` until ->done */
	struct reactor_msg msg;
	struct nfs4_offload_result res;
};

/*
 * nfs4_offload_begin - from ->done of an nfs4_copy() that says `async`
 *
 * done: off->res is known; it comes once, on this lane, never from here, also when CB_OFFLOAD was
 * there before.
 */
void nfs4_offload_begin(struct nfs4_offload *off, const struct nfs4_call *call,
	void (*done)(struct nfs4_offload *off));
/*
 * nfs4_offload_end - it is not waited for any more
 *
 * False: its result came meanwhile, ->done follows.
 */
bool nfs4_offload_end(struct nfs4_offload *off);
/* Its client ID is gone, and the copy with it. */
bool nfs4_offload_is_over(const struct nfs4_offload *off);
/* Will CB_OFFLOAD come? Without a back channel there is none. */
bool nfs4_offload_has_back(const struct nfs4_session *s);

/* ---- for src/nfs4 ---- */

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
