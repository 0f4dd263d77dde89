/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUTFH READDIR
 *
 *   READDIR4resok = verifier, { 1, cookie, name, fattr4 }..., 0, eof
 *
 * maxcount bounds all of that (RFC 8881 section 18.23.3), so it is the reply's
 * bound as well.
 */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

#define READDIR_ATTRS      (NFS4_ATTR_TYPE | NFS4_ATTR_FILEID | NFS4_ATTR_MOUNTED_ON | NFS4_ATTR_RDERROR)
#define READDIR_PLUS_ATTRS (READDIR_ATTRS | NFS4_ATTR_STAT | NFS4_ATTR_FH)
#define MOUNTED_ON_BIT     (1u << (FATTR4_MOUNTED_ON_FILEID - 32))

/*
 * Without attributes an entry is shown as one of its directory's file system. Where another one is
 * mounted the number there is the mounted-on one; the fileid of that one's root is, say, 2.
 */
static uint32_t attrs_of(const struct nfs4_compound *c, const struct nfs4_op_readdir *o)
{
	if (o->plus)
		return READDIR_PLUS_ATTRS;
	if (c->supported && c->supported[1] & MOUNTED_ON_BIT)
		return READDIR_ATTRS & ~NFS4_ATTR_FILEID;
	return READDIR_ATTRS;
}

static int readdir_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_op_readdir *o = &call->u.readdir;
	struct xdr_enc *x = &c->enc;

	if (o->sink.len < NFS4_REPLY_HEAD + 8 + 8 + (uint64_t)o->maxcount)
		return -EINVAL;
	nfs4_xdr_put_putfh(c, o->fh);
	nfs4_compound_op(c, OP_READDIR, o->maxcount);
	xdr_put_u64(x, o->cookie);
	xdr_put_fixed(x, o->verf.data, sizeof(o->verf.data));
	xdr_put_u32(x, o->maxcount); /* dircount: never the smaller limit */
	xdr_put_u32(x, o->maxcount);
	nfs4_attr_put_request(x, attrs_of(c, o), c->supported);
	call->rpc.req.reply_sink = o->sink;
	return nfs4_xdr_encode_end(c);
}

/* WIRE: a name that could lead out of its directory is not one of its entries. */
static bool name_ok(const struct nfs4_str *n)
{
	if (n->len < 1 || n->len > NFS4_MAXNAMLEN)
		return false;
	if (n->p[0] == '.' && (n->len == 1 || (n->len == 2 && n->p[1] == '.')))
		return false;
	return !memchr(n->p, '/', n->len) && !memchr(n->p, '\0', n->len);
}

/* False: the stream is bad. */
static bool get_entry(struct nfs4_compound *c, struct nfs4_dirent *de)
{
	struct xdr_dec *x = &c->dec;
	struct nfs4_owners names;

	de->cookie = xdr_get_u64(x);
	de->name.len = 0;
	de->name.p = (const char *)xdr_get_opaque(x, UINT32_MAX, &de->name.len);
	nfs4_attr_get(x, &de->attr, &de->fh, &names);
	/* WIRE: cookie 0 would start the directory anew, for ever. */
	if (!de->cookie)
		xdr_fail(x);
	if (x->failed)
		return false;
	nfs4_owners_map(c, &de->attr, &names);
	return true;
}

/*
 * From the first entry whose owner is not known on, entries are only looked through for more names;
 * the second time goes on where the first one stopped.
 */
static void get_entries(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_readdir *o = &call->u.readdir;
	struct xdr_dec *x = &c->dec;
	struct nfs4_dirent de;
	uint64_t last = o->cookie;
	uint32_t cnt = 0;

	while (xdr_get_bool(x)) {
		if (!get_entry(c, &de))
			return;
		last = de.cookie;
		if (!name_ok(&de.name)) {
			o->skipped++;
			continue;
		}
		if (c->idmap_ticket || cnt++ < o->given)
			continue;
		o->given++;
		if (!o->entry(call, &de))
			return;
	}
	o->eof = xdr_get_bool(x);
	/* WIRE: more to come, but asking again would bring the same. */
	if (!o->eof && last == o->cookie)
		xdr_fail(x);
	if (x->failed)
		o->eof = false;
}

static int readdir_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_readdir *o = &call->u.readdir;

	o->eof = false;
	o->skipped = 0;
	if (!c->idmap_late)
		o->given = 0;
	if (nfs4_compound_void(c, OP_PUTFH) && nfs4_compound_result(c, OP_READDIR)) {
		nfs4_xdr_get_verf(&c->dec, &o->verf_out);
		get_entries(call, c);
	}
	return nfs4_xdr_decode_end(c);
}

static const struct nfs4_opdesc readdir_desc = {
	.name = "READDIR",
	.encode = readdir_encode,
	.decode = readdir_decode,
};

void nfs4_readdir(struct nfs4_call *call)
{
	nfs4_call_start(call, &readdir_desc);
}
