/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments and results of the server's calls (RFC 8881 section 20, RFC 7862
 * section 16), and what we ask of the channel that they come on.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_NFS4_CB_XDR_H
#define RPCRDMAFS_NFS4_CB_XDR_H

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
/* number and status; CB_GETATTR's bitmap and values, the longest results */
#define NFS4_CB_OP_MAX (8u + 8u + 4u + 16u)
/* status, tag, count; CB_SEQUENCE with its header; each other operation */
#define NFS4_CB_RES_MAX    (12u + NFS4_CB_TAG_MAX + 8u + 32u + NFS4_CB_OP_MAX * (NFS4_CB_OPS - 1))
#define NFS4_CB_ANSWER_MAX (24u + NFS4_CB_RES_MAX)

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
bool nfs4_cb_xdr_get_args(struct xdr_dec *x, struct nfs4_cb_args *a);
/* The same for the arguments of one operation behind its number. */
bool nfs4_cb_xdr_get_sequence(struct xdr_dec *x, struct nfs4_cb_sequence *seq);
/* The next of the calls that were referred to; its session is r->id. False: no more. */
bool nfs4_cb_xdr_next_referring(
	struct nfs4_cb_referring *r, uint32_t *ret_seqid, uint32_t *ret_slot);
bool nfs4_cb_xdr_get_recall(struct xdr_dec *x, struct nfs4_cb_recall *a);
bool nfs4_cb_xdr_get_getattr(struct xdr_dec *x, struct nfs4_cb_getattr *a);
bool nfs4_cb_xdr_get_recall_any(struct xdr_dec *x, struct nfs4_cb_recall_any *a);
bool nfs4_cb_xdr_get_recall_slot(struct xdr_dec *x, uint32_t *ret_target);
/* ret_number: of the lock owner, if *ret_ours. */
bool nfs4_cb_xdr_get_notify_lock(struct xdr_dec *x, bool *ret_ours, uint64_t *ret_number);
bool nfs4_cb_xdr_get_offload(struct xdr_dec *x, struct nfs4_cb_offload *a);
/* CB_SEQUENCE4resok. */
void nfs4_cb_xdr_put_sequence(
	struct xdr_enc *x, const struct nfs4_cb_sequence *seq, uint32_t target);
/* CB_GETATTR4resok: what `a` asks for. */
void nfs4_cb_xdr_put_getattr(
	struct xdr_enc *x, const struct nfs4_cb_getattr *a, uint64_t change, uint64_t size);

#endif
