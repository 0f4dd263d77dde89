/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls about a client ID: EXCHANGE_ID (RFC 8881 section 18.35),
 * DESTROY_CLIENTID (18.50) and RECLAIM_COMPLETE (18.51).
 *
 * Context: pure.
 */
#include "nfs4_codec.h"

#include <stdio.h>
#include <string.h>

/*
 * Server owner and scope may be 1024 bytes each, and the implementation's name
 * longer still; servers send a host name. The bound keeps the reply inline.
 */
#define EXCHANGE_ID_RES 2200u
#define IMPL_NAME_MAX   1024u

void nfs4_exchange_put(struct nfs4_compound *c, const struct nfs4_verf *verf, const char *owner)
{
	nfs4_compound_op(c, OP_EXCHANGE_ID, EXCHANGE_ID_RES);
	xdr_put_fixed(&c->enc, verf->data, sizeof(verf->data));
	xdr_put_opaque(&c->enc, owner, strlen(owner));
	/*
	 * No flags. SUPP_MOVED_REFER would invite referrals, which are not followed: without it a
	 * server may hand on what lies elsewhere (section 18.35.3). BIND_PRINC_STATEID would keep
	 * users from what a delegation serves that another one's OPEN brought (NFS4ERR_WRONG_CRED),
	 * and with AUTH_SYS protects nothing.
	 */
	xdr_put_u32(&c->enc, 0);
	xdr_put_u32(&c->enc, SP4_NONE);
	xdr_put_u32(&c->enc, 0); /* no eia_client_impl_id */
}

static void get_limited(struct xdr_dec *x, uint8_t *to, uint32_t *ret_len)
{
	const uint8_t *p;

	*ret_len = 0;
	p = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, ret_len);
	if (p)
		memcpy(to, p, *ret_len);
}

/* eir_server_impl_id: domain, name, date. */
static void get_impl(struct xdr_dec *x, struct nfs4_exchange_res *res)
{
	uint32_t domain_len = 0, name_len = 0;
	const uint8_t *domain = xdr_get_opaque(x, IMPL_NAME_MAX, &domain_len);
	const uint8_t *name = xdr_get_opaque(x, IMPL_NAME_MAX, &name_len);

	xdr_get_u64(x);
	xdr_get_u32(x);
	if (domain && name && name_len > 0)
		snprintf(res->impl, sizeof(res->impl), "%.*s (%.*s)", (int)name_len,
			(const char *)name, (int)domain_len, (const char *)domain);
}

bool nfs4_exchange_get(struct nfs4_compound *c, struct nfs4_exchange_res *res)
{
	struct xdr_dec *x = &c->dec;

	if (!nfs4_compound_result(c, OP_EXCHANGE_ID))
		return false;
	res->clientid = xdr_get_u64(x);
	res->sequence = xdr_get_u32(x);
	res->flags = xdr_get_u32(x);
	/* WIRE: what was not asked for (SP4_NONE) must not come. */
	if (xdr_get_u32(x) != SP4_NONE)
		xdr_fail(x);
	res->server_minor = xdr_get_u64(x);
	get_limited(x, res->major, &res->major_len);
	get_limited(x, res->scope, &res->scope_len);
	res->impl[0] = '\0';
	if (xdr_get_count(x, 1, 20) == 1)
		get_impl(x, res);
	return !x->failed;
}

void nfs4_exchange_put_destroy(struct nfs4_compound *c, uint64_t clientid)
{
	nfs4_compound_op(c, OP_DESTROY_CLIENTID, 0);
	xdr_put_u64(&c->enc, clientid);
}

void nfs4_exchange_put_complete(struct nfs4_compound *c)
{
	nfs4_compound_op(c, OP_RECLAIM_COMPLETE, 0);
	xdr_put_bool(&c->enc, false); /* rca_one_fs: all of them */
}
