/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of callbacks (RFC 8881 section 20, RFC 7862 section 16.1) as far
 * as anything follows from them, and CB_SEQUENCE's results.
 */
#include "nfs4_cb.h"
#include "nfs4_lock.h"

#include <string.h>

#define TAG_LIMIT       1024u
#define REFERRING_LISTS 1024u

bool nfs4_cb_get_args(struct xdr_dec *x, struct nfs4_cb_args *a)
{
	a->tag = xdr_get_opaque(x, TAG_LIMIT, &a->tag_len);
	a->minor = xdr_get_u32(x);
	xdr_get_u32(x); /* callback_ident: 4.0's */
	/* WIRE: more operations than could be there. */
	a->op_cnt = xdr_get_count(x, UINT32_MAX, 4);
	return !x->failed;
}

/* referring_call_lists<>: which of our calls must come first; we answer without them. */
static void skip_referring(struct xdr_dec *x)
{
	uint32_t lists = xdr_get_count(x, REFERRING_LISTS, NFS4_SESSIONID_SIZE + 4);

	for (uint32_t i = 0; i < lists && !x->failed; i++) {
		uint32_t calls;

		xdr_get_fixed(x, NFS4_SESSIONID_SIZE);
		calls = xdr_get_count(x, UINT32_MAX, 8);
		xdr_get_fixed(x, 8 * (size_t)calls);
	}
}

bool nfs4_cb_get_sequence(struct xdr_dec *x, struct nfs4_cb_sequence *seq)
{
	const uint8_t *id = xdr_get_fixed(x, NFS4_SESSIONID_SIZE);

	if (id)
		memcpy(seq->id.data, id, NFS4_SESSIONID_SIZE);
	seq->seqid = xdr_get_u32(x);
	seq->slot = xdr_get_u32(x);
	seq->highest = xdr_get_u32(x);
	seq->cachethis = xdr_get_bool(x);
	skip_referring(x);
	return !x->failed;
}

static void skip_stateid(struct xdr_dec *x)
{
	xdr_get_fixed(x, NFS4_STATEID_SIZE);
}

static void skip_fh(struct xdr_dec *x)
{
	xdr_skip_opaque(x, NFS4_FHSIZE);
}

bool nfs4_cb_get_recall(struct xdr_dec *x)
{
	skip_stateid(x);
	xdr_get_bool(x); /* truncate */
	skip_fh(x);
	return !x->failed;
}

bool nfs4_cb_get_getattr(struct xdr_dec *x)
{
	uint32_t words[NFS4_BITMAP_WORDS];

	skip_fh(x);
	nfs4_get_bitmap(x, words);
	return !x->failed;
}

bool nfs4_cb_get_recall_any(struct xdr_dec *x, uint32_t *ret_types)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	uint32_t beyond;

	xdr_get_u32(x); /* objects to keep */
	beyond = nfs4_get_bitmap(x, words);
	/* types that no RFC has count as one we do not know */
	*ret_types = words[0] | (words[1] || words[2] || beyond ? 1u << 31 : 0);
	return !x->failed;
}

bool nfs4_cb_get_recall_slot(struct xdr_dec *x, uint32_t *ret_target)
{
	*ret_target = xdr_get_u32(x);
	return !x->failed;
}

bool nfs4_cb_get_notify_lock(struct xdr_dec *x, bool *ret_ours, uint64_t *ret_number)
{
	skip_fh(x);
	*ret_ours = nfs4_get_lock_owner(x, ret_number);
	return !x->failed;
}

/* Of coa_offload_info only that it begins: the answer does not depend on it. */
bool nfs4_cb_get_offload(struct xdr_dec *x)
{
	skip_fh(x);
	skip_stateid(x);
	xdr_get_u32(x); /* coa_status */
	return !x->failed;
}

void nfs4_cb_put_sequence(struct xdr_enc *x, const struct nfs4_cb_sequence *seq, uint32_t target)
{
	xdr_put_fixed(x, seq->id.data, sizeof(seq->id.data));
	xdr_put_u32(x, seq->seqid);
	xdr_put_u32(x, seq->slot);
	xdr_put_u32(x, target); /* highest_slotid: what we take */
	xdr_put_u32(x, target); /* and what we would like */
}
