/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the server (RFC 8881 section 20, RFC 7862 section 16): what one
 * session's callback service answers. Every answer is known at once; it is small
 * (nfsd 6.1 drops an answer to CB_RECALL of more than 104 bytes) and kept for a
 * repetition of the call.
 *
 * nfs4_cb.c decodes, keeps the order of calls and encodes. The caller executes
 * the operations that are about files of ours, one after the other:
 *
 *   op = nfs4_cb_begin(&run, cb, fore, msg, len, out);
 *   while (op)
 *           op = nfs4_cb_next(&run, status of what op asks for);
 *   the answer is run.len bytes of out
 *
 * Context: the session's lane; pure: no allocation, no log. nfs4_session.c brings
 * calls and answers.
 */
#ifndef RPCRDMAFS_NFS4_CB_H
#define RPCRDMAFS_NFS4_CB_H

#include "nfs4_cb_xdr.h"
#include "nfs4_slot.h"

enum nfs4_cb_kind {
	NFS4_CB_GETATTR,    /* NFS4_OK: change and size are set */
	NFS4_CB_RECALL,     /* of one delegation */
	NFS4_CB_RECALL_ANY, /* of those that are needed least */
	NFS4_CB_OFFLOAD,    /* a copy that the server went on with is over */
};

/* The caller is asked for this, arguments checked; once, and not for a repetition. */
struct nfs4_cb_op {
	enum nfs4_cb_kind kind;
	union {
		struct nfs4_cb_getattr getattr;
		struct nfs4_cb_recall recall;
		struct {
			uint32_t keep;    /* so many may stay ... */
			bool read, write; /* ... of these kinds: of one at least */
		} recall_any;
		struct nfs4_cb_offload offload;
	};
	/* the caller's, for CB_GETATTR */
	uint64_t change, size;
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
	/* set by CB_RECALL_SLOT: highest slot we shall use from now on; UINT32_MAX: not said */
	uint32_t recall_slot;
	/* set by each call: lock owners that may try again, by their numbers */
	uint32_t lock_free_cnt;
	uint64_t lock_free[NFS4_CB_OPS];
};

/* A call that is being answered; the caller's, from nfs4_cb_begin() to the answer. */
struct nfs4_cb_run {
	size_t len; /* of the answer, when nothing is left to do; 0: not a call, drop it */

	/* nfs4_cb.c's */
	struct nfs4_cb *cb;
	const struct nfs4_slots *fore;
	struct xdr_dec in;
	struct xdr_enc out;  /* of the COMPOUND */
	size_t head_len;     /* of the RPC header before it */
	const uint8_t *args; /* from the tag on */
	uint32_t args_len;
	struct nfs4_cb_args head;
	size_t cnt_off;
	uint32_t done_cnt;
	struct nfs4_cb_slot *slot; /* where the results are kept */
	struct nfs4_cb_op op;      /* `asks`: the caller executes it */
	bool asks;
};

/*
 * nfs4_cb_open - there is a new session: all slots expect number 1
 *
 * Context: no call is being answered.
 * slots, ops: as granted by CREATE_SESSION (RFC 8881 section 18.36); of more than we asked for the
 * rest is not used.
 */
void nfs4_cb_open(struct nfs4_cb *cb, const struct nfs4_sessionid *id, unsigned int minor,
	uint32_t slots, uint32_t ops);
/*
 * nfs4_cb_begin - an RPC call of the server is here
 *
 * Whether it is taken is decided in this order: RPC, minor version, CB_SEQUENCE (RFC 8881 section
 * 20.9: session, slot, number, size, calls of ours that it refers to), operations up to the first
 * that fails.
 *
 * Context:   one call at a time. Once it was taken its number is used up: what is begun is brought
 *            to its end, by nfs4_cb_next(), before another one.
 * Ownership: msg (`len` bytes), out (NFS4_CB_ANSWER_MAX bytes of room), cb and fore stay the
 *            caller's, and where they are until the answer is there. fore: slots of our own calls
 *            in the same session (section 2.10.6.3).
 * Returns:   what to execute; then nfs4_cb_next(). NULL: send the answer, or drop the call.
 */
struct nfs4_cb_op *nfs4_cb_begin(struct nfs4_cb_run *r, struct nfs4_cb *cb,
	const struct nfs4_slots *fore, const void *msg, size_t len, uint8_t *out);
/*
 * nfs4_cb_next - what was asked for is executed
 *
 * status: its result, one that section 15.3 of RFC 8881 allows for the operation; not NFS4_OK: the
 * operations behind it are not executed (section 19.2.3).
 *
 * Context:   after nfs4_cb_begin() or itself returned an operation, once for each.
 * Ownership: that operation is r's, and another one, or none, when this returns.
 * Returns:   as nfs4_cb_begin().
 */
struct nfs4_cb_op *nfs4_cb_next(struct nfs4_cb_run *r, enum nfs4_status status);

#endif
