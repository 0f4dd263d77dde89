/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <string.h>

#include "nfs4_codec.h"

static uint8_t mem[8192];

Test(nfs4_exchange, golden_arguments)
{
	static const char want[] = "\0\0\0\x2a" /* EXCHANGE_ID */
				   "verifier"
				   "\0\0\0\5owner\0\0\0"
				   "\0\0\0\0"  /* neither SUPP_MOVED_REFER nor BIND_PRINC_STATEID */
				   "\0\0\0\0"  /* SP4_NONE */
				   "\0\0\0\0"; /* no implementation */
	const struct nfs4_verf verf = {"verifier"};
	struct nfs4_compound c = {0};

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_exchange_put(&c, &verf, "owner");
	cr_assert_eq(xdr_enc_len(&c.enc), sizeof(want) - 1);
	cr_assert_arr_eq(mem, want, sizeof(want) - 1);
	cr_assert_eq(c.op_cnt, 1);
}

/* how: spr_how; impl: with eir_server_impl_id */
static size_t result(uint32_t how, uint32_t major_len, bool impl)
{
	struct xdr_enc x;

	memset(mem, 0, sizeof(mem));
	xdr_enc_init(&x, mem, sizeof(mem));
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, OP_EXCHANGE_ID);
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u64(&x, 0x1122334455667788ull);
	xdr_put_u32(&x, 9);
	xdr_put_u32(&x, EXCHGID4_FLAG_USE_NON_PNFS | EXCHGID4_FLAG_SUPP_MOVED_REFER);
	xdr_put_u32(&x, how);
	xdr_put_u64(&x, 4);
	xdr_put_u32(&x, major_len);
	xdr_put_reserve(&x, XDR_ROUND(major_len));
	xdr_put_opaque(&x, "scope", 5);
	xdr_put_u32(&x, impl);
	if (impl) {
		xdr_put_opaque(&x, "kernel.org", 10);
		xdr_put_opaque(&x, "Linux", 5);
		xdr_put_u64(&x, 0);
		xdr_put_u32(&x, 0);
	}
	return xdr_enc_len(&x);
}

static bool decode(size_t len, struct nfs4_exchange_res *res, struct nfs4_compound *c)
{
	memset(c, 0, sizeof(*c));
	memset(res, 0, sizeof(*res));
	xdr_dec_init(&c->dec, mem, len);
	return nfs4_compound_open(c, NULL) && nfs4_exchange_get(c, res) && nfs4_compound_close(c);
}

Test(nfs4_exchange, golden_result)
{
	struct nfs4_exchange_res res;
	struct nfs4_compound c;

	for (int impl = 0; impl < 2; impl++) {
		size_t len = result(SP4_NONE, 12, impl);

		cr_assert(decode(len, &res, &c));
		cr_assert_eq(res.clientid, 0x1122334455667788ull);
		cr_assert_eq(res.sequence, 9);
		cr_assert_eq(res.flags, 0x00010001);
		cr_assert_eq(res.server_minor, 4);
		cr_assert_eq(res.major_len, 12);
		cr_assert_eq(res.scope_len, 5);
		cr_assert_arr_eq(res.scope, "scope", 5);
		cr_assert_str_eq(res.impl, impl ? "Linux (kernel.org)" : "");
		cr_assert_eq(xdr_dec_left(&c.dec), 0);
	}
}

Test(nfs4_exchange, result_cut_at_every_byte_is_malformed)
{
	size_t len = result(SP4_NONE, 12, true);
	struct nfs4_exchange_res res;
	struct nfs4_compound c;

	for (size_t cut = 0; cut < len; cut++) {
		cr_assert_not(decode(cut, &res, &c));
		cr_assert(c.dec.failed);
	}
}

Test(nfs4_exchange, state_protection_we_did_not_ask_for_is_refused)
{
	struct nfs4_exchange_res res;
	struct nfs4_compound c;

	cr_assert_not(decode(result(SP4_MACH_CRED, 12, false), &res, &c));
	cr_assert(c.dec.failed);
}

Test(nfs4_exchange, owners_are_bounded)
{
	struct nfs4_exchange_res res;
	struct nfs4_compound c;

	cr_assert(decode(result(SP4_NONE, 1024, false), &res, &c));
	cr_assert_eq(res.major_len, 1024);
	cr_assert_not(decode(result(SP4_NONE, 1025, false), &res, &c));
}

Test(nfs4_exchange, small_ones)
{
	struct nfs4_compound c = {0};

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_exchange_put_destroy(&c, 0x0102030405060708ull);
	nfs4_exchange_put_complete(&c);
	cr_assert_eq(xdr_enc_len(&c.enc), 20);
	cr_assert_arr_eq(mem, "\0\0\0\x39\1\2\3\4\5\6\7\10\0\0\0\x3a\0\0\0\0", 20);
}
