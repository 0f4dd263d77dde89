/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts of the server's file systems: PUTFH GETATTR(supported_attrs,
 * fsid, lease_time, maxread ...), and a table of those that were asked about.
 *
 * Context: the table: any thread; an entry is constant, and there until the
 * client is freed.
 */
#include "nfs4_session_int.h"

#include <stdlib.h>
#include <string.h>

/* A READ's or WRITE's own part of request and reply, and everything it may be sent with. */
#define IO_OVERHEAD 1024u

uint32_t nfs4_fs_io_size(uint32_t asked, uint64_t data_size, uint64_t server, uint64_t session)
{
	uint64_t size = data_size;

	if (asked && asked < size)
		size = asked;
	if (server && server < size)
		size = server;
	if (session > IO_OVERHEAD && session - IO_OVERHEAD < size)
		size = session - IO_OVERHEAD;
	if (size > 4096)
		size &= ~4095ull;
	return (uint32_t)size;
}

/* ---- the table ---- */

struct nfs4_fs_entry {
	struct nfs4_fs_entry *next;
	struct nfs4_fs fs;
};

void nfs4_fs_table_init(struct nfs4_fs_table *t)
{
	mutex_init(&t->lock, MUTEX_NFS4_FS);
}

void nfs4_fs_table_fini(struct nfs4_fs_table *t)
{
	for (unsigned int i = 0; i < NFS4_FS_BUCKETS; i++) {
		struct nfs4_fs_entry *e = t->buckets[i];

		while (e) {
			struct nfs4_fs_entry *next = e->next;

			free(e);
			e = next;
		}
	}
	mutex_destroy(&t->lock);
}

static struct nfs4_fs_entry **bucket(struct nfs4_fs_table *t, uint64_t major, uint64_t minor)
{
	uint64_t h = (major ^ minor * 0x9e3779b97f4a7c15ull) * 0x9fb21c651e98df25ull;

	return &t->buckets[(h >> 32) % NFS4_FS_BUCKETS];
}

static bool is_it(const struct nfs4_fs *fs, uint64_t major, uint64_t minor)
{
	return fs->fsid_major == major && fs->fsid_minor == minor;
}

/* Lock held. */
static const struct nfs4_fs *find(struct nfs4_fs_table *t, uint64_t major, uint64_t minor)
{
	struct nfs4_fs_entry *e;

	for (e = *bucket(t, major, minor); e; e = e->next)
		if (is_it(&e->fs, major, minor))
			return &e->fs;
	return NULL;
}

const struct nfs4_fs *nfs4_fs_find(struct nfs4_client *cl, uint64_t major, uint64_t minor)
{
	struct nfs4_fs_table *t = &cl->file_systems;
	const struct nfs4_fs *fs;

	if (is_it(&cl->fsinfo.fs, major, minor))
		return &cl->fsinfo.fs;
	mutex_lock(&t->lock);
	fs = find(t, major, minor);
	mutex_unlock(&t->lock);
	return fs;
}

const struct nfs4_fs *nfs4_fs_at(const struct nfs4_client *cl, unsigned int nr)
{
	return nr ? cl->file_systems.by_nr[nr - 1] : &cl->fsinfo.fs;
}

/* Lock held. */
static const struct nfs4_fs *add(struct nfs4_fs_table *t, const struct nfs4_fs *fs)
{
	struct nfs4_fs_entry *e = t->cnt < NFS4_FS_MAX ? malloc(sizeof(*e)) : NULL;
	struct nfs4_fs_entry **at = bucket(t, fs->fsid_major, fs->fsid_minor);

	if (!e)
		return NULL;
	e->fs = *fs;
	e->next = *at;
	*at = e;
	t->by_nr[t->cnt++] = &e->fs;
	e->fs.nr = (uint16_t)t->cnt;
	return &e->fs;
}

const struct nfs4_fs *nfs4_fs_learn(struct nfs4_client *cl, const struct nfs4_fs *fs)
{
	struct nfs4_fs_table *t = &cl->file_systems;
	const struct nfs4_fs *known;

	if (is_it(&cl->fsinfo.fs, fs->fsid_major, fs->fsid_minor))
		return &cl->fsinfo.fs;
	mutex_lock(&t->lock);
	known = find(t, fs->fsid_major, fs->fsid_minor);
	if (!known)
		known = add(t, fs);
	mutex_unlock(&t->lock);
	return known;
}

/* ---- asking ---- */

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

	if (!fs->maxname || fs->maxname > NFS4_MAXNAMLEN)
		fs->maxname = NFS4_MAXNAMLEN;
	if (!fs->maxfilesize || fs->maxfilesize > INT64_MAX)
		fs->maxfilesize = INT64_MAX;
	fs->rsize = nfs4_fs_io_size(conf->rsize, data, io->read, s->params.fore.maxresp);
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
