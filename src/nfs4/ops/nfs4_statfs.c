/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTFH GETATTR of the filesystem's attributes, which struct nfs4_attr does not have. */
#include "nfs4_int.h"

#include <string.h>

static const uint32_t statfs_words[NFS4_BITMAP_WORDS] = {
	FATTR4_BIT(FATTR4_FILES_AVAIL) | FATTR4_BIT(FATTR4_FILES_FREE) |
		FATTR4_BIT(FATTR4_FILES_TOTAL) | FATTR4_BIT(FATTR4_MAXNAME),
	FATTR4_BIT(FATTR4_SPACE_AVAIL) | FATTR4_BIT(FATTR4_SPACE_FREE) |
		FATTR4_BIT(FATTR4_SPACE_TOTAL),
};
/* bitmap, length, six counts of 8 bytes and MAXNAME */
#define STATFS_MAX (4u + 4u * NFS4_BITMAP_WORDS + 4u + 6u * 8u + 4u)

static int statfs_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	unsigned int i;

	for (i = 0; i < NFS4_BITMAP_WORDS; i++)
		words[i] = statfs_words[i] & (c->supported ? c->supported[i] : UINT32_MAX);
	nfs4_xdr_put_putfh(c, call->u.statfs.fh);
	nfs4_compound_op(c, OP_GETATTR, STATFS_MAX);
	nfs4_attr_put_bitmap(&c->enc, words, NFS4_BITMAP_WORDS);
	return nfs4_xdr_encode_end(c);
}

static uint64_t get_if(struct xdr_dec *x, const uint32_t words[], enum nfs4_fattr attr)
{
	return words[FATTR4_WORD(attr)] & FATTR4_BIT(attr) ? xdr_get_u64(x) : 0;
}

/* What the server does not tell is 0. */
static void get_statfs(struct xdr_dec *x, struct nfs4_op_statfs *o)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	uint32_t alien = nfs4_attr_get_bitmap(x, words);
	uint32_t len = 0;
	const uint8_t *p = xdr_get_opaque(x, UINT32_MAX, &len);
	struct xdr_dec vals;
	unsigned int i;

	if (!p)
		return;
	for (i = 0; i < NFS4_BITMAP_WORDS; i++)
		alien |= words[i] & ~statfs_words[i];
	xdr_dec_init(&vals, p, len);
	o->files_avail = get_if(&vals, words, FATTR4_FILES_AVAIL);
	o->files_free = get_if(&vals, words, FATTR4_FILES_FREE);
	o->files_total = get_if(&vals, words, FATTR4_FILES_TOTAL);
	if (words[0] & FATTR4_BIT(FATTR4_MAXNAME))
		o->maxname = xdr_get_u32(&vals);
	o->bytes_avail = get_if(&vals, words, FATTR4_SPACE_AVAIL);
	o->bytes_free = get_if(&vals, words, FATTR4_SPACE_FREE);
	o->bytes_total = get_if(&vals, words, FATTR4_SPACE_TOTAL);
	if (vals.failed || xdr_dec_left(&vals) || alien) /* WIRE: as in nfs4_attr_get() */
		xdr_fail(x);
}

static int statfs_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_statfs *o = &call->u.statfs;

	o->bytes_total = o->bytes_free = o->bytes_avail = 0;
	o->files_total = o->files_free = o->files_avail = 0;
	o->maxname = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_GETATTR))
		get_statfs(&c->dec, o);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc statfs_desc = {
	.name = "STATFS",
	.encode = statfs_encode,
	.decode = statfs_decode,
};

void nfs4_statfs(struct nfs4_call *call)
{
	nfs4_call_start(call, &statfs_desc);
}
