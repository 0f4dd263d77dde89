/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <string.h>

#include "nfs4_codec.h"

static uint8_t mem[1024];

Test(nfs4_session_xdr, asks_for_as_many_slots_as_credits_and_room_for_the_data)
{
	struct nfs4_create_session cs;

	nfs4_session_xdr_ask(&cs, 64, 1 << 20);
	cr_assert_eq(cs.flags, CREATE_SESSION4_FLAG_CONN_BACK_CHAN, "PERSIST never");
	cr_assert_eq(cs.fore.maxreqs, 64);
	cr_assert_eq(cs.fore.maxcached, 1032, "nfsd makes 64 slots of that");
	cr_assert_eq(cs.fore.maxreq, (1 << 20) + 4096);
	cr_assert_eq(cs.fore.maxresp, (1 << 20) + 4096);
	cr_assert_eq(cs.fore.maxops, 50);
	cr_assert_geq(cs.back.maxreq, 540);
	cr_assert_geq(cs.back.maxresp, 112);
	cr_assert_geq(cs.back.maxops, 2);
	cr_assert_geq(cs.back.maxreqs, 1);
	nfs4_session_xdr_ask(&cs, 5000, 4096);
	cr_assert_eq(cs.fore.maxreqs, NFS4_SLOT_MAX);
}

Test(nfs4_session_xdr, golden_create_session)
{
	static const char want[] =
		"\0\0\0\x2b" /* CREATE_SESSION */
		"\1\2\3\4\5\6\7\10"
		"\0\0\0\x0b" /* csa_sequence */
		"\0\0\0\2"   /* flags */
		"\0\0\0\0\0\1\x10\0\0\1\x10\0\0\0\4\x08\0\0\0\x32\0\0\0\x40\0\0\0\0"   /* fore */
		"\0\0\0\0\0\0\x0f\xe4\0\0\x0f\xe4\0\0\0\0\0\0\0\x08\0\0\0\x10\0\0\0\0" /* back */
		"\x40\0\0\0" /* cb_program */
		"\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\x09rpcrdmafs\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	struct nfs4_compound c = {0};
	struct nfs4_create_session cs;

	nfs4_session_xdr_ask(&cs, 64, 65536);
	cs.clientid = 0x0102030405060708ull;
	cs.sequence = 11;
	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_session_xdr_put_create(&c, &cs);
	cr_assert_eq(xdr_enc_len(&c.enc), sizeof(want) - 1);
	cr_assert_arr_eq(mem, want, sizeof(want) - 1);
}

static void put_chan(struct xdr_enc *x, uint32_t base, bool ird)
{
	for (uint32_t i = 0; i < 6; i++)
		xdr_put_u32(x, base + i);
	xdr_put_u32(x, ird);
	if (ird)
		xdr_put_u32(x, 255);
}

static size_t result(bool ird)
{
	struct xdr_enc x;

	memset(mem, 0, sizeof(mem));
	xdr_enc_init(&x, mem, sizeof(mem));
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, OP_CREATE_SESSION);
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_fixed(&x, "0123456789abcdef", 16);
	xdr_put_u32(&x, 11);
	xdr_put_u32(&x, 2);
	put_chan(&x, 100, ird);
	put_chan(&x, 200, ird);
	return xdr_enc_len(&x);
}

static bool decode(size_t len, struct nfs4_create_session *cs, struct nfs4_compound *c)
{
	memset(c, 0, sizeof(*c));
	memset(cs, 0, sizeof(*cs));
	xdr_dec_init(&c->dec, mem, len);
	return nfs4_compound_open(c, NULL) && nfs4_session_xdr_get_create(c, cs) &&
	       nfs4_compound_close(c);
}

Test(nfs4_session_xdr, golden_result_with_and_without_ird)
{
	struct nfs4_create_session cs;
	struct nfs4_compound c;

	for (int ird = 0; ird < 2; ird++) {
		cr_assert(decode(result(ird), &cs, &c));
		cr_assert_eq(xdr_dec_left(&c.dec), 0);
		cr_assert_arr_eq(cs.id.data, "0123456789abcdef", 16);
		cr_assert_eq(cs.sequence, 11);
		cr_assert_eq(cs.flags, 2);
		cr_assert_eq(cs.fore.headerpad, 100);
		cr_assert_eq(cs.fore.maxreq, 101);
		cr_assert_eq(cs.fore.maxresp, 102);
		cr_assert_eq(cs.fore.maxcached, 103);
		cr_assert_eq(cs.fore.maxops, 104);
		cr_assert_eq(cs.fore.maxreqs, 105);
		cr_assert_eq(cs.back.maxreqs, 205);
	}
}

Test(nfs4_session_xdr, result_cut_at_every_byte_is_malformed)
{
	size_t len = result(true);
	struct nfs4_create_session cs;
	struct nfs4_compound c;

	for (size_t cut = 0; cut < len; cut++) {
		cr_assert_not(decode(cut, &cs, &c));
		cr_assert(c.dec.failed);
	}
}

Test(nfs4_session_xdr, useless_grants_are_named)
{
	struct nfs4_create_session asked, got;

	nfs4_session_xdr_ask(&asked, 64, 65536);
	asked.sequence = 4;
	got = asked;
	cr_assert_null(nfs4_session_xdr_check(&asked, &got));
	got.fore.maxreqs = 1;
	cr_assert_null(nfs4_session_xdr_check(&asked, &got), "one slot is slow, not useless");
	got.fore.maxreqs = 0;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.fore.maxops = 8;
	cr_assert_null(nfs4_session_xdr_check(&asked, &got));
	got.fore.maxops = 7;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.fore.maxcached = 512;
	cr_assert_null(nfs4_session_xdr_check(&asked, &got), "attributes are asked for apart then");
	got.fore.maxcached = 400;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.fore.maxresp = 1000;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.fore.maxreq = 1000;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.sequence = 5;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	got.back.maxops = 2;
	cr_assert_null(nfs4_session_xdr_check(&asked, &got), "CB_SEQUENCE and one more");
	got.back.maxops = 1;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got));
	got = asked;
	asked.flags = 0;
	cr_assert_not_null(nfs4_session_xdr_check(&asked, &got), "a back channel nobody asked for");
}

/* RFC 8167 section 5.1: calls and answers fit inline, or there are none. */
Test(nfs4_session_xdr, the_back_channel_is_no_longer_than_inline)
{
	struct nfs4_create_session cs;

	nfs4_session_xdr_ask(&cs, 64, 65536);
	nfs4_session_xdr_ask_back(&cs, 1000, 900);
	cr_assert_eq(cs.back.maxreq, 1000);
	cr_assert_eq(cs.back.maxresp, 900);
	cr_assert(cs.flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
	nfs4_session_xdr_ask_back(&cs, 500, 900);
	cr_assert_not(cs.flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
}

Test(nfs4_session_xdr, golden_destroy_session)
{
	const struct nfs4_sessionid id = {"0123456789abcdef"};
	struct nfs4_compound c = {0};

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_session_xdr_put_destroy(&c, &id);
	cr_assert_eq(xdr_enc_len(&c.enc), 20);
	cr_assert_arr_eq(mem,
		"\0\0\0\x2c"
		"0123456789abcdef",
		20);
	cr_assert_eq(c.reply_max, 8, "its number and its status");
}

Test(nfs4_session_xdr, bind_conn_both_ways)
{
	const struct nfs4_sessionid id = {"0123456789abcdef"};
	struct nfs4_compound c = {0};
	struct xdr_enc x;
	uint32_t dir = 0;

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_session_xdr_put_bind(&c, &id, CDFC4_FORE_OR_BOTH);
	cr_assert_eq(xdr_enc_len(&c.enc), 28);
	cr_assert_arr_eq(mem,
		"\0\0\0\x29"
		"0123456789abcdef"
		"\0\0\0\3\0\0\0\0",
		28);
	for (int same = 0; same < 2; same++) {
		xdr_enc_init(&x, mem, sizeof(mem));
		xdr_put_u32(&x, OP_BIND_CONN_TO_SESSION);
		xdr_put_u32(&x, NFS4_OK);
		xdr_put_fixed(&x, same ? "0123456789abcdef" : "0123456789abcdeX", 16);
		xdr_put_u32(&x, CDFS4_BOTH);
		xdr_put_bool(&x, false);
		memset(&c, 0, sizeof(c));
		c.op_cnt = 1;
		xdr_dec_init(&c.dec, mem, xdr_enc_len(&x));
		cr_assert_eq(nfs4_session_xdr_get_bind(&c, &id, &dir), same == 1);
	}
	cr_assert_eq(dir, CDFS4_BOTH);
}
