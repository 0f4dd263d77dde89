/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of callbacks (RFC 8881 section 20, RFC 7862 section 16.1) as far
 * as anything follows from them, and the results that are more than a status.
 */
#include "nfs4_cb_xdr.h"
#include "nfs4_copy_xdr.h"
#include "nfs4_lock_xdr.h"

#include <string.h>

#define TAG_LIMIT       1024u
#define REFERRING_LISTS 1024u

bool nfs4_cb_xdr_get_args(struct xdr_dec *x, struct nfs4_cb_args *a)
{
	a->tag = xdr_get_opaque(x, TAG_LIMIT, &a->tag_len);
	a->minor = xdr_get_u32(x);
	xdr_get_u32(x); /* callback_ident: 4.0's */
	/* WIRE: more operations than could be there. */
	a->op_cnt = xdr_get_count(x, UINT32_MAX, 4);
	return !x->failed;
}

static void get_sessionid(struct xdr_dec *x, struct nfs4_sessionid *id)
{
	const uint8_t *p = xdr_get_fixed(x, NFS4_SESSIONID_SIZE);

	if (p)
		memcpy(id->data, p, NFS4_SESSIONID_SIZE);
}

/* WIRE: referring_call_lists<> as a whole; nfs4_cb_xdr_next_referring() walks it again. */
static void get_referring(struct xdr_dec *x, struct nfs4_cb_referring *r)
{
	r->calls = 0;
	r->lists = xdr_get_count(x, REFERRING_LISTS, NFS4_SESSIONID_SIZE + 4);
	r->x = *x;
	for (uint32_t i = 0; i < r->lists && !x->failed; i++) {
		uint32_t calls;

		xdr_get_fixed(x, NFS4_SESSIONID_SIZE);
		calls = xdr_get_count(x, UINT32_MAX, 8);
		xdr_get_fixed(x, 8 * (size_t)calls);
	}
}

bool nfs4_cb_xdr_next_referring(
	struct nfs4_cb_referring *r, uint32_t *ret_seqid, uint32_t *ret_slot)
{
	while (!r->calls && r->lists) {
		r->lists--;
		get_sessionid(&r->x, &r->id);
		r->calls = xdr_get_count(&r->x, UINT32_MAX, 8);
	}
	if (!r->calls)
		return false;
	r->calls--;
	*ret_seqid = xdr_get_u32(&r->x);
	*ret_slot = xdr_get_u32(&r->x);
	return true;
}

bool nfs4_cb_xdr_get_sequence(struct xdr_dec *x, struct nfs4_cb_sequence *seq)
{
	get_sessionid(x, &seq->id);
	seq->seqid = xdr_get_u32(x);
	seq->slot = xdr_get_u32(x);
	seq->highest = xdr_get_u32(x);
	seq->cachethis = xdr_get_bool(x);
	get_referring(x, &seq->referring);
	return !x->failed;
}

static void skip_fh(struct xdr_dec *x)
{
	xdr_skip_opaque(x, NFS4_FHSIZE);
}

bool nfs4_cb_xdr_get_recall(struct xdr_dec *x, struct nfs4_cb_recall *a)
{
	nfs4_xdr_get_stateid(x, &a->stateid);
	a->truncate = xdr_get_bool(x); /* the data would be gone at once: nothing to write back */
	nfs4_xdr_get_fh(x, &a->fh);
	return !x->failed;
}

bool nfs4_cb_xdr_get_getattr(struct xdr_dec *x, struct nfs4_cb_getattr *a)
{
	uint32_t words[NFS4_BITMAP_WORDS];

	nfs4_xdr_get_fh(x, &a->fh);
	nfs4_attr_get_bitmap(x, words);
	a->change = words[0] & 1u << FATTR4_CHANGE;
	a->size = words[0] & 1u << FATTR4_SIZE;
	return !x->failed;
}

bool nfs4_cb_xdr_get_recall_any(struct xdr_dec *x, struct nfs4_cb_recall_any *a)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	uint32_t beyond;

	a->keep = xdr_get_u32(x);
	beyond = nfs4_attr_get_bitmap(x, words);
	/* types that no RFC has count as one we do not know */
	a->types = words[0] | (words[1] || words[2] || beyond ? 1u << 31 : 0);
	return !x->failed;
}

bool nfs4_cb_xdr_get_recall_slot(struct xdr_dec *x, uint32_t *ret_target)
{
	*ret_target = xdr_get_u32(x);
	return !x->failed;
}

bool nfs4_cb_xdr_get_notify_lock(struct xdr_dec *x, bool *ret_ours, uint64_t *ret_number)
{
	skip_fh(x);
	*ret_ours = nfs4_lock_xdr_get_owner(x, ret_number);
	return !x->failed;
}

/* The file is known by the stateid, which is of one COPY. */
bool nfs4_cb_xdr_get_offload(struct xdr_dec *x, struct nfs4_cb_offload *a)
{
	skip_fh(x);
	nfs4_xdr_get_stateid(x, &a->id);
	nfs4_copy_xdr_get_offload(x, &a->res);
	return !x->failed;
}

void nfs4_cb_xdr_put_sequence(
	struct xdr_enc *x, const struct nfs4_cb_sequence *seq, uint32_t target)
{
	xdr_put_fixed(x, seq->id.data, sizeof(seq->id.data));
	xdr_put_u32(x, seq->seqid);
	xdr_put_u32(x, seq->slot);
	xdr_put_u32(x, target); /* highest_slotid: what we take */
	xdr_put_u32(x, target); /* and what we would like */
}

void nfs4_cb_xdr_put_getattr(
	struct xdr_enc *x, const struct nfs4_cb_getattr *a, uint64_t change, uint64_t size)
{
	const uint32_t word =
		(a->change ? 1u << FATTR4_CHANGE : 0) | (a->size ? 1u << FATTR4_SIZE : 0);

	xdr_put_u32(x, 1);
	xdr_put_u32(x, word);
	xdr_put_u32(x, (a->change ? 8 : 0) + (a->size ? 8 : 0));
	if (a->change)
		xdr_put_u64(x, change);
	if (a->size)
		xdr_put_u64(x, size);
}
