/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_int.h"

#include <errno.h>
#include <string.h>

const struct nfs4_stateid nfs4_stateid_anon;

void nfs4_xdr_put_putfh(struct nfs4_compound *c, const struct nfs4_fh *fh)
{
	nfs4_compound_op(c, OP_PUTFH, 0);
	xdr_put_opaque(&c->enc, fh->data, fh->len);
}

void nfs4_xdr_put_getfh(struct nfs4_compound *c)
{
	nfs4_compound_op(c, OP_GETFH, NFS4_FH_MAX_XDR);
}

bool nfs4_xdr_get_getfh(struct nfs4_compound *c, struct nfs4_fh *fh)
{
	if (!nfs4_compound_result(c, OP_GETFH))
		return false;
	nfs4_xdr_get_fh(&c->dec, fh);
	return !c->dec.failed;
}

void nfs4_xdr_put_getattr(struct nfs4_compound *c, uint32_t mask)
{
	if (c->cached_max &&
		RPC_REPLY_HDR + c->reply_max + 8 + nfs4_attr_reply_max(mask) > c->cached_max)
		mask = 0;
	nfs4_compound_op(c, OP_GETATTR, nfs4_attr_reply_max(mask));
	nfs4_attr_put_request(&c->enc, mask, c->supported);
}

bool nfs4_xdr_get_getattr(struct nfs4_compound *c, struct nfs4_attr *attr)
{
	struct nfs4_owners names;

	attr->valid = 0;
	if (!nfs4_compound_result(c, OP_GETATTR))
		return false;
	nfs4_attr_get(&c->dec, attr, NULL, &names);
	if (c->dec.failed)
		return false;
	nfs4_owners_map(c, attr, &names);
	return true;
}

int nfs4_xdr_encode_end(const struct nfs4_compound *c)
{
	return c->enc.failed ? -EMSGSIZE : 0;
}

int nfs4_xdr_decode_end(struct nfs4_compound *c)
{
	/* WIRE: a COMPOUND that succeeded has one result for each operation, no more. */
	if (!c->dec.failed && c->status == NFS4_OK && c->op_cnt)
		xdr_fail(&c->dec);
	return c->dec.failed ? -EBADMSG : 0;
}

void nfs4_xdr_decode_done(struct nfs4_compound *c)
{
	if (c->dec.failed || c->status == NFS4_OK)
		return;
	c->status = NFS4_OK;
	c->failed_op = 0;
	c->op_cnt = 0;
}

bool nfs4_xdr_attrs_refused(const struct nfs4_compound *c)
{
	return !c->dec.failed && c->failed_op == OP_GETATTR &&
	       nfs4_status_action(c->status) == NFS4_ACT_FAIL;
}

uint32_t nfs4_xdr_sink_room(const struct rpcrdma_span *sink, uint32_t min)
{
	uint32_t head = NFS4_REPLY_HEAD + 8 + 8; /* and PUTFH, and its own opnum and status */

	return sink->len >= head + min ? (sink->len - head) & ~3u : 0;
}

void nfs4_xdr_put_stateid(struct xdr_enc *x, const struct nfs4_stateid *sid)
{
	xdr_put_u32(x, sid->seqid);
	xdr_put_fixed(x, sid->other, sizeof(sid->other));
}

void nfs4_xdr_get_stateid(struct xdr_dec *x, struct nfs4_stateid *sid)
{
	uint32_t seqid = xdr_get_u32(x);
	const uint8_t *other = xdr_get_fixed(x, sizeof(sid->other));

	if (!other)
		return;
	sid->seqid = seqid;
	memcpy(sid->other, other, sizeof(sid->other));
}

void nfs4_xdr_put_str(struct xdr_enc *x, const struct nfs4_str *s)
{
	xdr_put_opaque(x, s->p, s->len);
}

void nfs4_xdr_get_cinfo(struct xdr_dec *x, struct nfs4_cinfo *ci)
{
	ci->atomic = xdr_get_bool(x);
	ci->before = xdr_get_u64(x);
	ci->after = xdr_get_u64(x);
}

void nfs4_xdr_get_verf(struct xdr_dec *x, struct nfs4_verf *v)
{
	const uint8_t *p = xdr_get_fixed(x, sizeof(v->data));

	if (p)
		memcpy(v->data, p, sizeof(v->data));
}

void nfs4_xdr_get_fh(struct xdr_dec *x, struct nfs4_fh *fh)
{
	uint32_t len = 0;
	/* WIRE: NFS4_FHSIZE is what fits fh->data. */
	const uint8_t *p = xdr_get_opaque(x, NFS4_FHSIZE, &len);

	fh->len = 0;
	if (!p)
		return;
	if (!len) { /* "none" to us, and no server's */
		xdr_fail(x);
		return;
	}
	memcpy(fh->data, p, len);
	fh->len = (uint8_t)len;
}

static const char *const op_names[] = {
	[OP_ACCESS] = "ACCESS",
	[OP_CLOSE] = "CLOSE",
	[OP_COMMIT] = "COMMIT",
	[OP_CREATE] = "CREATE",
	[OP_DELEGPURGE] = "DELEGPURGE",
	[OP_DELEGRETURN] = "DELEGRETURN",
	[OP_GETATTR] = "GETATTR",
	[OP_GETFH] = "GETFH",
	[OP_LINK] = "LINK",
	[OP_LOCK] = "LOCK",
	[OP_LOCKT] = "LOCKT",
	[OP_LOCKU] = "LOCKU",
	[OP_LOOKUP] = "LOOKUP",
	[OP_LOOKUPP] = "LOOKUPP",
	[OP_NVERIFY] = "NVERIFY",
	[OP_OPEN] = "OPEN",
	[OP_OPENATTR] = "OPENATTR",
	[OP_OPEN_CONFIRM] = "OPEN_CONFIRM",
	[OP_OPEN_DOWNGRADE] = "OPEN_DOWNGRADE",
	[OP_PUTFH] = "PUTFH",
	[OP_PUTPUBFH] = "PUTPUBFH",
	[OP_PUTROOTFH] = "PUTROOTFH",
	[OP_READ] = "READ",
	[OP_READDIR] = "READDIR",
	[OP_READLINK] = "READLINK",
	[OP_REMOVE] = "REMOVE",
	[OP_RENAME] = "RENAME",
	[OP_RENEW] = "RENEW",
	[OP_RESTOREFH] = "RESTOREFH",
	[OP_SAVEFH] = "SAVEFH",
	[OP_SECINFO] = "SECINFO",
	[OP_SETATTR] = "SETATTR",
	[OP_SETCLIENTID] = "SETCLIENTID",
	[OP_SETCLIENTID_CONFIRM] = "SETCLIENTID_CONFIRM",
	[OP_VERIFY] = "VERIFY",
	[OP_WRITE] = "WRITE",
	[OP_RELEASE_LOCKOWNER] = "RELEASE_LOCKOWNER",
	[OP_BACKCHANNEL_CTL] = "BACKCHANNEL_CTL",
	[OP_BIND_CONN_TO_SESSION] = "BIND_CONN_TO_SESSION",
	[OP_EXCHANGE_ID] = "EXCHANGE_ID",
	[OP_CREATE_SESSION] = "CREATE_SESSION",
	[OP_DESTROY_SESSION] = "DESTROY_SESSION",
	[OP_FREE_STATEID] = "FREE_STATEID",
	[OP_GET_DIR_DELEGATION] = "GET_DIR_DELEGATION",
	[OP_GETDEVICEINFO] = "GETDEVICEINFO",
	[OP_GETDEVICELIST] = "GETDEVICELIST",
	[OP_LAYOUTCOMMIT] = "LAYOUTCOMMIT",
	[OP_LAYOUTGET] = "LAYOUTGET",
	[OP_LAYOUTRETURN] = "LAYOUTRETURN",
	[OP_SECINFO_NO_NAME] = "SECINFO_NO_NAME",
	[OP_SEQUENCE] = "SEQUENCE",
	[OP_SET_SSV] = "SET_SSV",
	[OP_TEST_STATEID] = "TEST_STATEID",
	[OP_WANT_DELEGATION] = "WANT_DELEGATION",
	[OP_DESTROY_CLIENTID] = "DESTROY_CLIENTID",
	[OP_RECLAIM_COMPLETE] = "RECLAIM_COMPLETE",
	[OP_ALLOCATE] = "ALLOCATE",
	[OP_COPY] = "COPY",
	[OP_COPY_NOTIFY] = "COPY_NOTIFY",
	[OP_DEALLOCATE] = "DEALLOCATE",
	[OP_IO_ADVISE] = "IO_ADVISE",
	[OP_LAYOUTERROR] = "LAYOUTERROR",
	[OP_LAYOUTSTATS] = "LAYOUTSTATS",
	[OP_OFFLOAD_CANCEL] = "OFFLOAD_CANCEL",
	[OP_OFFLOAD_STATUS] = "OFFLOAD_STATUS",
	[OP_READ_PLUS] = "READ_PLUS",
	[OP_SEEK] = "SEEK",
	[OP_WRITE_SAME] = "WRITE_SAME",
	[OP_CLONE] = "CLONE",
	[OP_GETXATTR] = "GETXATTR",
	[OP_SETXATTR] = "SETXATTR",
	[OP_LISTXATTRS] = "LISTXATTRS",
	[OP_REMOVEXATTR] = "REMOVEXATTR",
};

const char *nfs4_op_name(unsigned int op)
{
	if (op == OP_ILLEGAL)
		return "ILLEGAL";
	return op < sizeof(op_names) / sizeof(op_names[0]) ? op_names[op] : NULL;
}
