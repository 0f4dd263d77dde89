/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the server (RFC 8881 section 20, RFC 7862 section 16): what one
 * session's callback service answers. Every answer is known at once; it is small
 * (nfsd 6.1 drops an answer to CB_RECALL of more than 104 bytes) and kept for a
 * repetition of the call.
 *
 * Context: pure but for what it asks its environment; no allocation, no log.
 * nfs4_session.c brings calls and answers.
 */
#ifndef RPCRDMAFS_NFS4_CB_H
#define RPCRDMAFS_NFS4_CB_H

#include "nfs4_cb_xdr.h"

/* What it asks about; each is called at most once for an operation, and not for a repetition. */
struct nfs4_cb_env {
	void *ctx;
	/* Is this call of our session still in flight? */
	bool (*is_in_flight)(void *ctx, uint32_t slot, uint32_t seqid);
	enum nfs4_status (*recall)(
		void *ctx, const struct nfs4_stateid *sid, const struct nfs4_fh *fh);
	void (*recall_any)(void *ctx, uint32_t keep, bool read, bool write);
	/* False: no delegation that lets us change it. */
	bool (*getattr)(
		void *ctx, const struct nfs4_fh *fh, uint64_t *ret_change, uint64_t *ret_size);
	enum nfs4_status (*offload)(
		void *ctx, const struct nfs4_stateid *id, const struct nfs4_offload_result *res);
};

struct nfs4_cb_slot {
	uint32_t seqid;    /* of the last call */
	uint32_t args_len; /* of its arguments ... */
	uint64_t args_sum; /* ... and what tells them from others */
	uint32_t len;      /* of its results; 0: there was none yet */
	uint8_t res[NFS4_CB_RES_MAX];
};

/* Owner: the session's lane. Zeroed: there is no session. */
struct nfs4_cb {
	bool open;
	bool coming; /* CREATE_SESSION is under way: the caller may know a session that we do not */
	struct nfs4_sessionid id;
	unsigned int minor;
	uint32_t max_ops;
	uint32_t slot_cnt;
	struct nfs4_cb_slot slots[NFS4_CB_SLOTS];
	/* set by nfs4_cb_answer(): highest slot we shall use from now on; UINT32_MAX: not said */
	uint32_t recall_slot;
	/* set by each nfs4_cb_answer(): lock owners that may try again, by their numbers */
	uint32_t lock_free_cnt;
	uint64_t lock_free[NFS4_CB_OPS];
};

/* A new session: all slots expect number 1. slots, ops: granted. */
void nfs4_cb_open(struct nfs4_cb *cb, const struct nfs4_sessionid *id, unsigned int minor,
	uint32_t slots, uint32_t ops);
/*
 * nfs4_cb_answer - the RPC reply to an RPC call
 *
 * out: NFS4_CB_ANSWER_MAX bytes of room. Returns its length; 0: not a call, drop it.
 */
size_t nfs4_cb_answer(struct nfs4_cb *cb, const struct nfs4_cb_env *env, const void *msg,
	size_t len, uint8_t *out);

#endif
