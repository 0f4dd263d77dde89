/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the server (RFC 8881 section 20, RFC 7862 section 16): what one
 * session's callback service answers. Every answer is known at once; it is small
 * (nfsd 6.1 drops an answer to CB_RECALL of more than 104 bytes) and kept for a
 * repetition of the call.
 *
 * Context: pure but for what it asks its environment; no allocation, no log.
 * nfs4_sess.c brings calls and answers.
 */
#ifndef RPCRDMAFS_NFS4_CB_H
#define RPCRDMAFS_NFS4_CB_H

#include "nfs4_int.h"
#include "nfs4_offload.h"

/* Program number of the service (RFC 8881 section 18.36: the client's choice). */
#define NFS4_CB_PROGRAM 0x40000000u
/*
 * The XDR of RFC 5662 says version 1, RFC 8881 section 18.36.3 wants servers to use 4; they use
 * the one or the other.
 */
#define NFS4_CB_VERS_MIN 1u
#define NFS4_CB_VERS_MAX 4u

#define NFS4_CB_SLOTS 16u /* asked for; nfsd uses one */
#define NFS4_CB_OPS   8u  /* asked for; nfsd uses two */
/* A longer tag is not sent back: the answers must be small. */
#define NFS4_CB_TAG_MAX 32u
/* number and status; CB_GETATTR's bitmap and values, the longest results */
#define NFS4_CB_OP_MAX (8u + 8u + 4u + 16u)
/* status, tag, count; CB_SEQUENCE with its header; each other operation */
#define NFS4_CB_RES_MAX    (12u + NFS4_CB_TAG_MAX + 8u + 32u + NFS4_CB_OP_MAX * (NFS4_CB_OPS - 1))
#define NFS4_CB_ANSWER_MAX (24u + NFS4_CB_RES_MAX)

/* ---- codecs (nfs4_cb_xdr.c) ---- */

/* CB_COMPOUND4args up to its operations. */
struct nfs4_cb_args {
	const uint8_t *tag;
	uint32_t tag_len;
	uint32_t minor;
	uint32_t op_cnt;
};

/* Lists of calls of ours that come first (RFC 8881 section 2.10.6.3), checked. */
struct nfs4_cb_referring {
	struct xdr_dec x;
	uint32_t lists, calls; /* left; of this list */
	struct nfs4_sessionid id;
};

struct nfs4_cb_sequence {
	struct nfs4_sessionid id;
	uint32_t seqid, slot, highest;
	bool cachethis;
	struct nfs4_cb_referring referring;
};

struct nfs4_cb_recall {
	struct nfs4_stateid stateid;
	struct nfs4_fh fh;
	bool truncate;
};

struct nfs4_cb_getattr {
	struct nfs4_fh fh;
	bool change, size; /* are asked for */
};

struct nfs4_cb_recall_any {
	uint32_t keep;
	uint32_t types; /* bits RCA4_TYPE_MASK_*; bit 31: those that no RFC has */
};

struct nfs4_cb_offload {
	struct nfs4_stateid id;
	struct nfs4_offload_result res;
};

/* False: not CB_COMPOUND arguments. */
bool nfs4_cb_get_args(struct xdr_dec *x, struct nfs4_cb_args *a);
/* The same for the arguments of one operation behind its number. */
bool nfs4_cb_get_sequence(struct xdr_dec *x, struct nfs4_cb_sequence *seq);
/* The next of the calls that were referred to; its session is r->id. False: no more. */
bool nfs4_cb_next_referring(struct nfs4_cb_referring *r, uint32_t *ret_seqid, uint32_t *ret_slot);
bool nfs4_cb_get_recall(struct xdr_dec *x, struct nfs4_cb_recall *a);
bool nfs4_cb_get_getattr(struct xdr_dec *x, struct nfs4_cb_getattr *a);
bool nfs4_cb_get_recall_any(struct xdr_dec *x, struct nfs4_cb_recall_any *a);
bool nfs4_cb_get_recall_slot(struct xdr_dec *x, uint32_t *ret_target);
/* ret_number: of the lock owner, if *ret_ours. */
bool nfs4_cb_get_notify_lock(struct xdr_dec *x, bool *ret_ours, uint64_t *ret_number);
bool nfs4_cb_get_offload(struct xdr_dec *x, struct nfs4_cb_offload *a);
/* CB_SEQUENCE4resok. */
void nfs4_cb_put_sequence(struct xdr_enc *x, const struct nfs4_cb_sequence *seq, uint32_t target);
/* CB_GETATTR4resok: what `a` asks for. */
void nfs4_cb_put_getattr(
	struct xdr_enc *x, const struct nfs4_cb_getattr *a, uint64_t change, uint64_t size);

/* ---- the service (nfs4_cb.c) ---- */

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
