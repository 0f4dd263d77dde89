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

#endif
