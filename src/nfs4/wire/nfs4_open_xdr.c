/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By name:       PUTFH SAVEFH OPEN GETFH ACCESS GETATTR RESTOREFH GETATTR
 * By filehandle: PUTFH OPEN ACCESS GETATTR
 *  and read too: PUTFH OPEN ACCESS GETATTR READ
 * Exclusively:   PUTFH SAVEFH OPEN GETFH SETATTR ACCESS GETATTR RESTOREFH GETATTR
 *         again: PUTFH SAVEFH LOOKUP VERIFY OPEN GETFH ACCESS GETATTR RESTOREFH GETATTR
 *
 * The directory is not asked about (SAVEFH, RESTOREFH GETATTR) where that makes more
 * operations than the server takes.
 *
 * EXCLUSIVE4_1: the server keeps the verifier in the file's times, by which it knows
 * an OPEN that it has executed before. The SETATTR gives them proper values before
 * anybody sees them, and with that ends what the verifier is for: a server that
 * forgot our session executes the same COMPOUND again, and says NFS4ERR_EXIST. So
 * the access time is ours to choose, and as good a verifier: where the file has it,
 * it is the one that we made, and opened by its filehandle.
 *
 * By filehandle also what was open before a restart (CLAIM_PREVIOUS), and what
 * a delegation served (CLAIM_DELEG_CUR_FH; call->stateid is the delegation's; or
 * CLAIM_FH where the server refuses that).
 * Which delegation is to be preferred is never said: what the server thinks best
 * (WANT_NO_PREFERENCE), or none.
 *
 * The reply is cached by the server for a replay, for which it has as many
 * bytes as we asked for in ca_maxresponsesize_cached, 1032. By name, with the
 * largest filehandle:
 *
 *   RPC 24, COMPOUND 12, SEQUENCE 44                        80
 *   PUTFH 8, SAVEFH 8, RESTOREFH 8                          24
 *   OPEN 8 + stateid 16, cinfo 20, rflags 4, attrset 16     64
 *     no delegation: NONE_EXT with why                      12
 *   GETFH 8 + 4 + 128                                      140
 *   SETATTR 8 + attrsset 16                                 24
 *   ACCESS 8 + 8                                            16
 *   GETATTR of the file 8 + 20 + 368 (owners of 128 bytes) 396
 *   GETATTR of the directory 8 + 20 + 44                    72
 *                                                    total 828
 *
 * With numeric owners of 10 digits (12 bytes) it is 596. A write delegation adds
 * at most 168 to that, or to the 828.
 *
 * With READ it is not: the data would not fit, and what is copied from a cache
 * comes without its Write chunk. Such an OPEN creates and truncates nothing: if its
 * reply was lost the server says so (NFS4ERR_RETRY_UNCACHED_REP), and it is sent anew.
 * Executed twice it is one open still, of the same owner, with a stateid whose seqid
 * is one more. A delegation would be given once, and nobody would know of it: so none
 * is asked for.
 *
 * READ bears the current stateid (RFC 8881 section 16.2.3.1.2), the one that OPEN
 * has just set. Whatever goes wrong with it, the file is open.
 */
#include "nfs4_codec.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define OWNER_PREFIX "open id:"
#define ACE_WHO_MAX  128u /* for the reply's bound */
/* type, stateid, recall, space limit, ace with its who */
#define DELEG_MAX (4u + NFS4_STATEID_SIZE + 4u + 12u + 12u + 4u + ACE_WHO_MAX)
/* stateid, cinfo, rflags, attrset, delegation */
#define OPEN_MAX (NFS4_STATEID_SIZE + 20u + 4u + 4u + 4u * NFS4_BITMAP_WORDS + DELEG_MAX)

/* open_owner4: its clientid is not looked at in 4.1 (RFC 8881 section 18.16.3). */
static void put_owner(struct xdr_enc *x, uint64_t number)
{
	const uint32_t prefix_len = sizeof(OWNER_PREFIX) - 1;

	xdr_put_u64(x, 0);
	xdr_put_u32(x, prefix_len + 8);
	xdr_put_fixed(x, OWNER_PREFIX, prefix_len);
	xdr_put_u64(x, number);
}

static void put_openhow(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	struct xdr_enc *x = &c->enc;
	struct nfs4_sattr sattr = o->sattr;
	const uint32_t *supported = c->supported;

	if (!o->create || o->again) {
		xdr_put_u32(x, OPEN4_NOCREATE);
		return;
	}
	sattr.set &= ~NFS4_ATTR_SIZE;
	xdr_put_u32(x, OPEN4_CREATE);
	if (o->exclusive) {
		sattr.set &= ~o->set_later;
		supported = c->exclcreat ? c->exclcreat : supported;
		xdr_put_u32(x, EXCLUSIVE4_1);
		xdr_put_fixed(x, o->verf.data, sizeof(o->verf.data));
	} else {
		if (o->truncate) {
			sattr.set |= NFS4_ATTR_SIZE;
			sattr.size = 0;
		}
		xdr_put_u32(x, UNCHECKED4);
	}
	nfs4_attr_put_set(x, &sattr, supported);
}

static void put_claim(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	struct xdr_enc *x = &c->enc;

	if (o->dir && !o->again) {
		xdr_put_u32(x, CLAIM_NULL);
		nfs4_xdr_put_str(x, &o->name);
	} else if (o->reclaim) {
		xdr_put_u32(x, CLAIM_PREVIOUS);
		xdr_put_u32(x, o->reclaim_deleg);
	} else if ((o->claim || o->claims_left) && !o->plain_claim) {
		xdr_put_u32(x, CLAIM_DELEG_CUR_FH);
		nfs4_xdr_put_stateid(x, &c->call->stateid);
	} else {
		xdr_put_u32(x, CLAIM_FH);
	}
}

static uint32_t want(const struct nfs4_op_open *o)
{
	return o->want_deleg || o->reclaim_deleg ? OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE
						 : OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
}

static void put_open(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	struct xdr_enc *x = &c->enc;

	nfs4_compound_op(c, OP_OPEN, OPEN_MAX);
	xdr_put_u32(x, 0); /* seqid: 4.0's */
	xdr_put_u32(x, o->share_access | want(o));
	xdr_put_u32(x, OPEN4_SHARE_DENY_NONE);
	put_owner(x, o->owner);
	put_openhow(c, o);
	put_claim(c, o);
}

static void put_stamp(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	struct nfs4_sattr sattr = o->sattr;

	sattr.set = (sattr.set & o->set_later) | NFS4_ATTR_ATIME | NFS4_ATTR_MTIME;
	sattr.atime = o->atime;
	sattr.atime_now = false;
	sattr.mtime_now = true;
	/* MODE_UMASK is for files that are made (RFC 8275). */
	sattr.mode &= ~(sattr.use_umask ? sattr.umask : 0);
	sattr.use_umask = false;
	nfs4_compound_op(c, OP_SETATTR, 4 + 4 * NFS4_BITMAP_WORDS);
	nfs4_xdr_put_stateid(&c->enc, &(struct nfs4_stateid){0});
	nfs4_attr_put_set(&c->enc, &sattr, c->supported);
}

/* The file of this name, if it is the one that we made. */
static void put_ours(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	nfs4_compound_op(c, OP_LOOKUP, 0);
	nfs4_xdr_put_str(&c->enc, &o->name);
	nfs4_compound_op(c, OP_VERIFY, 0);
	nfs4_attr_put_atime(&c->enc, &o->atime);
}

/* Of the file that was just opened. */
static int put_read(struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	static const struct nfs4_stateid current = {.seqid = 1};

	return o->read ? nfs4_read_xdr_put(c, o->read, &current) : 0;
}

/*
 * RFC 8881 section 18.16.3: of what suppattr_exclcreat does not have nothing may be set by an
 * exclusive create (NFS4ERR_INVAL). A server that does not say keeps its verifier in the times.
 */
static uint32_t not_exclusively(const struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	uint32_t times = o->sattr.set & (NFS4_ATTR_ATIME | NFS4_ATTR_MTIME);

	return times | (c->exclcreat ? nfs4_attr_set_beyond(&o->sattr, c->exclcreat) : 0);
}

/* SEQUENCE and all the rest of an OPEN by name. */
static bool dir_fits(const struct nfs4_compound *c, const struct nfs4_op_open *o)
{
	uint32_t cnt = o->again ? 11 : o->exclusive ? 10 : 9;

	return !c->ops_max || cnt <= c->ops_max;
}

static bool asks_dir(const struct nfs4_op_open *o)
{
	return o->dir && !o->no_dir_attr;
}

int nfs4_open_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_open *o = &call->u.open;
	int err;

	/* Only OPEN4_CREATE has attributes, only CLAIM_NULL may create. */
	if ((o->truncate && !o->create) || (o->create && !o->dir) || (o->exclusive && !o->create) ||
		(o->read && o->dir))
		return -EINVAL;
	o->no_dir_attr = !dir_fits(c, o);
	o->set_later = not_exclusively(c, o);
	nfs4_xdr_put_putfh(c, o->dir ? o->dir : o->file);
	if (asks_dir(o))
		nfs4_compound_op(c, OP_SAVEFH, 0);
	if (o->again)
		put_ours(c, o);
	put_open(c, o);
	if (o->dir)
		nfs4_xdr_put_getfh(c);
	if (o->exclusive && !o->again)
		put_stamp(c, o);
	nfs4_compound_op(c, OP_ACCESS, 8);
	xdr_put_u32(&c->enc, ACCESS4_READ | ACCESS4_MODIFY | ACCESS4_EXTEND | ACCESS4_EXECUTE);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT);
	if (asks_dir(o)) {
		nfs4_compound_op(c, OP_RESTOREFH, 0);
		nfs4_xdr_put_getattr(c, NFS4_ATTR_DIR);
	}
	err = put_read(c, o);
	return err ? err : nfs4_xdr_encode_end(c);
}

/* nfsace4: who may use the delegation without asking; we always ask (ACCESS). */
static void skip_ace(struct xdr_dec *x)
{
	xdr_get_u32(x);
	xdr_get_u32(x);
	xdr_get_u32(x);
	xdr_skip_opaque(x, NFS4_OPAQUE_LIMIT);
}

static void skip_space_limit(struct xdr_dec *x)
{
	uint32_t limit_by = xdr_get_u32(x);

	/* filesize: 8 bytes; num_blocks and bytes_per_block: 4 each */
	if (limit_by != NFS_LIMIT_SIZE && limit_by != NFS_LIMIT_BLOCKS) /* WIRE */
		xdr_fail(x);
	xdr_get_u64(x);
}

static void skip_why_none(struct xdr_dec *x)
{
	uint32_t why = xdr_get_u32(x);

	/* will push, will signal: we asked for neither */
	if (why == WND4_CONTENTION || why == WND4_RESOURCE)
		xdr_get_bool(x);
}

/* open_delegation4; what it may be does not depend on what we wanted. */
static void get_delegation(struct xdr_dec *x, struct nfs4_op_open *o)
{
	uint32_t type = xdr_get_u32(x);

	switch (type) {
	case OPEN_DELEGATE_NONE:
		break;
	case OPEN_DELEGATE_READ:
	case OPEN_DELEGATE_WRITE:
		nfs4_xdr_get_stateid(x, &o->deleg);
		o->deleg_recalled = xdr_get_bool(x);
		if (type == OPEN_DELEGATE_WRITE)
			skip_space_limit(x);
		skip_ace(x);
		break;
	case OPEN_DELEGATE_NONE_EXT:
		skip_why_none(x);
		break;
	default: /* WIRE */
		xdr_fail(x);
		return;
	}
	o->deleg_type = (enum nfs4_deleg_type)type;
}

static void get_open(struct xdr_dec *x, struct nfs4_op_open *o)
{
	uint32_t attrset[NFS4_BITMAP_WORDS];

	nfs4_xdr_get_stateid(x, &o->stateid);
	nfs4_xdr_get_cinfo(x, &o->cinfo);
	o->rflags = xdr_get_u32(x);
	nfs4_attr_get_bitmap(x, attrset);
	get_delegation(x, o);
}

static bool get_access(struct nfs4_compound *c, uint32_t *access)
{
	if (!nfs4_compound_result(c, OP_ACCESS))
		return false;
	*access = xdr_get_u32(&c->dec); /* supported: bits not in it are 0 in the other */
	*access &= xdr_get_u32(&c->dec);
	return !c->dec.failed;
}

/* False: the times are the verifier, or the server did not say. */
static bool get_stamp(struct nfs4_compound *c)
{
	uint32_t attrsset[NFS4_BITMAP_WORDS];

	if (!nfs4_compound_result(c, OP_SETATTR))
		return false;
	nfs4_attr_get_bitmap(&c->dec, attrsset);
	return !c->dec.failed;
}

static bool get_ours(struct nfs4_compound *c)
{
	if (nfs4_compound_void(c, OP_LOOKUP) && nfs4_compound_void(c, OP_VERIFY))
		return true;
	if (!c->dec.failed && (c->status == NFS4ERR_NOENT || c->status == NFS4ERR_NOT_SAME))
		c->status = NFS4ERR_EXIST; /* as the OPEN said */
	return false;
}

/* Everything about the file but what OPEN itself says. */
static void get_rest(struct nfs4_compound *c, struct nfs4_op_open *o)
{
	if (o->exclusive)
		o->stamped = o->again || get_stamp(c);
	o->mode_unset = o->exclusive && !o->stamped && o->set_later & NFS4_ATTR_MODE;
	if (get_access(c, &o->access) && nfs4_xdr_get_getattr(c, &o->attr) && asks_dir(o) &&
		nfs4_compound_void(c, OP_RESTOREFH))
		nfs4_xdr_get_getattr(c, &o->dir_attr);
	if (o->read)
		nfs4_read_xdr_get(c, o->read);
}

int nfs4_open_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_op_open *o = &call->u.open;

	/*
	 * It is booked at once, or a recovery that comes between would miss what is open. An OPEN
	 * by name waits: nobody else knows of its owner, and a new file has no attributes but
	 * these.
	 */
	c->at_once = !o->dir;
	o->fh.len = 0;
	o->stamped = o->mode_unset = false;
	o->attr.valid = o->dir_attr.valid = 0;
	o->access = o->rflags = 0;
	o->deleg_type = OPEN_DELEGATE_NONE;
	o->deleg_recalled = false;
	if (o->read) {
		o->read->data = NULL;
		o->read->len = 0;
		o->read->eof = false;
	}
	memset(&o->deleg, 0, sizeof(o->deleg));
	memset(&o->stateid, 0, sizeof(o->stateid));
	memset(&o->cinfo, 0, sizeof(o->cinfo));
	if (!nfs4_compound_void(c, OP_PUTFH) ||
		(asks_dir(o) && !nfs4_compound_void(c, OP_SAVEFH)) || (o->again && !get_ours(c)) ||
		!nfs4_compound_result(c, OP_OPEN))
		goto out;
	get_open(&c->dec, o);
	if (!o->dir)
		o->fh = *o->file;
	else if (!nfs4_xdr_get_getfh(c, &o->fh))
		goto out;
	/* The file is open from here on, whatever else there is to know about it. */
	get_rest(c, o);
	nfs4_xdr_decode_done(c);
out:
	return nfs4_xdr_decode_end(c);
}
