/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the server (RFC 8881 section 20, RFC 7862 section 16): what one
 * session's callback service answers. It holds nothing that can be recalled,
 * so every answer is known at once; it is small (nfsd 6.1 drops an answer to
 * CB_RECALL of more than 104 bytes) and kept for a repetition of the call.
 *
 * Context: pure; no allocation, no log. nfs4_sess.c brings calls and answers.
 */
#ifndef RPCRDMAFS_NFS4_CB_H
#define RPCRDMAFS_NFS4_CB_H

#include "nfs4_int.h"

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
/* status, tag, count; CB_SEQUENCE with its header; a status for each other operation */
#define NFS4_CB_RES_MAX    (12u + NFS4_CB_TAG_MAX + 8u + 32u + 8u * (NFS4_CB_OPS - 1))
#define NFS4_CB_ANSWER_MAX (24u + NFS4_CB_RES_MAX)

/* ---- codecs (nfs4_cb_xdr.c) ---- */

/* CB_COMPOUND4args up to its operations. */
struct nfs4_cb_args {
	const uint8_t *tag;
	uint32_t tag_len;
	uint32_t minor;
	uint32_t op_cnt;
};

struct nfs4_cb_sequence {
	struct nfs4_sessionid id;
	uint32_t seqid, slot, highest;
	bool cachethis;
};

/* False: not CB_COMPOUND arguments. */
bool nfs4_cb_get_args(struct xdr_dec *x, struct nfs4_cb_args *a);
/* The same for the arguments of one operation behind its number. */
bool nfs4_cb_get_sequence(struct xdr_dec *x, struct nfs4_cb_sequence *seq);
bool nfs4_cb_get_recall(struct xdr_dec *x);
bool nfs4_cb_get_getattr(struct xdr_dec *x);
bool nfs4_cb_get_recall_any(struct xdr_dec *x, uint32_t *ret_types);
bool nfs4_cb_get_recall_slot(struct xdr_dec *x, uint32_t *ret_target);
/* ret_number: of the lock owner, if *ret_ours. */
bool nfs4_cb_get_notify_lock(struct xdr_dec *x, bool *ret_ours, uint64_t *ret_number);
bool nfs4_cb_get_offload(struct xdr_dec *x);
/* CB_SEQUENCE4resok. */
void nfs4_cb_put_sequence(struct xdr_enc *x, const struct nfs4_cb_sequence *seq, uint32_t target);

/* ---- the service (nfs4_cb.c) ---- */

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
size_t nfs4_cb_answer(struct nfs4_cb *cb, const void *msg, size_t len, uint8_t *out);

#endif
