/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts of one file system of the server: PUTFH GETATTR(supported_attrs, fsid,
 * lease_time, maxread ...). Limits are those of the session, too.
 *
 * Context: the session's lane.
 */
#include "nfs4_session_int.h"

#include <string.h>

#define FACTS_MASK                                                                                 \
	(FATTR4_BIT(FATTR4_SUPPORTED_ATTRS) | FATTR4_BIT(FATTR4_FSID) |                            \
		FATTR4_BIT(FATTR4_LEASE_TIME) | FATTR4_BIT(FATTR4_CASE_INSENSITIVE) |              \
		FATTR4_BIT(FATTR4_MAXFILESIZE) | FATTR4_BIT(FATTR4_MAXNAME) |                      \
		FATTR4_BIT(FATTR4_MAXREAD) | FATTR4_BIT(FATTR4_MAXWRITE))
#define FACTS_EXCL  FATTR4_BIT(FATTR4_SUPPATTR_EXCLCREAT)
#define FACTS_CLONE FATTR4_BIT(FATTR4_CLONE_BLKSIZE) /* v4.2 */
#define FACTS_RES   160u

static int facts_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const uint32_t words[NFS4_BITMAP_WORDS] = {
		FACTS_MASK, 0, FACTS_EXCL | (c->minor < 2 ? 0 : FACTS_CLONE)};

	nfs4_xdr_put_putfh(c, call->u.facts.fh);
	nfs4_compound_op(c, OP_GETATTR, FACTS_RES);
	nfs4_attr_put_bitmap(&c->enc, words, NFS4_BITMAP_WORDS);
	return nfs4_xdr_encode_end(c);
}

static void get_supported(struct xdr_dec *x, uint32_t words[3])
{
	/* WIRE: words past those we know are skipped; 8 would be attribute 255. */
	uint32_t cnt = xdr_get_count(x, 8, 4);

	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t w = xdr_get_u32(x);

		if (i < NFS4_BITMAP_WORDS)
			words[i] = w;
	}
}

/* The most that can be read and written at once. */
struct io_max {
	uint64_t read, write;
};

/* The values come in the order of the attributes' numbers. */
static void get_facts(struct xdr_dec *x, struct nfs4_op_facts *o, struct io_max *io)
{
	uint32_t words[NFS4_BITMAP_WORDS] = {0};
	bool more = nfs4_attr_get_bitmap(x, words) != 0;
	uint32_t mask = words[0], len = xdr_get_u32(x);
	struct nfs4_fs *fs = &o->fs;

	/* WIRE: what we did not ask for has no known length here. */
	if (more || (mask & ~FACTS_MASK) || words[1] || (words[2] & ~(FACTS_EXCL | FACTS_CLONE)) ||
		len > xdr_dec_left(x))
		xdr_fail(x);
	if (mask & FATTR4_BIT(FATTR4_SUPPORTED_ATTRS))
		get_supported(x, fs->supported);
	if (mask & FATTR4_BIT(FATTR4_FSID)) {
		fs->fsid_major = xdr_get_u64(x);
		fs->fsid_minor = xdr_get_u64(x);
	}
	if (mask & FATTR4_BIT(FATTR4_LEASE_TIME))
		o->lease_s = xdr_get_u32(x);
	if (mask & FATTR4_BIT(FATTR4_CASE_INSENSITIVE))
		fs->case_insensitive = xdr_get_bool(x);
	if (mask & FATTR4_BIT(FATTR4_MAXFILESIZE))
		fs->maxfilesize = xdr_get_u64(x);
	if (mask & FATTR4_BIT(FATTR4_MAXNAME))
		fs->maxname = xdr_get_u32(x);
	if (mask & FATTR4_BIT(FATTR4_MAXREAD))
		io->read = xdr_get_u64(x);
	if (mask & FATTR4_BIT(FATTR4_MAXWRITE))
		io->write = xdr_get_u64(x);
	if (words[2] & FACTS_EXCL)
		get_supported(x, fs->exclcreat);
	if (words[2] & FACTS_CLONE)
		fs->clone_blksize = xdr_get_u32(x);
}

/* Fills in what the server does not say, and takes no more than there is room for. */
static void complete(const struct nfs4_session *s, struct nfs4_fs *fs, const struct io_max *io)
{
	const struct nfs4_conf *conf = &s->cl->conf;
	uint64_t data = rpcrdma_data_size(s->x);
	uint64_t result = conf->rsize ? data : rpcrdma_result_size(s->x);

	if (!fs->maxname || fs->maxname > NFS4_MAXNAMLEN)
		fs->maxname = NFS4_MAXNAMLEN;
	if (!fs->maxfilesize || fs->maxfilesize > INT64_MAX)
		fs->maxfilesize = INT64_MAX;
	fs->rsize = nfs4_fs_io_size(conf->rsize, result, io->read, s->params.fore.maxresp);
	fs->wsize = nfs4_fs_io_size(conf->wsize, data, io->write, s->params.fore.maxreq);
}

static int facts_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_facts *o = &call->u.facts;
	struct io_max io = {0};

	memset(&o->fs, 0, sizeof(o->fs));
	o->lease_s = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_GETATTR))
		get_facts(&c->dec, o, &io);
	complete(call->sess, &o->fs, &io);
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc facts_desc = {
	.name = "GETATTR (file system)",
	.encode = facts_encode,
	.decode = facts_decode,
};

void nfs4_fs_facts(struct nfs4_call *call)
{
	nfs4_call_start(call, &facts_desc);
}
