/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rpc.h"

static uint8_t out[1024];
static struct xdr_enc e;
static struct xdr_dec d;
static uint32_t low, high, auth;

static void fresh(void)
{
	xdr_enc_init(&e, out, sizeof(out));
}

TestSuite(rpc_msg, .init = fresh);

/* RFC 5531 sections 9 and 8.1: NFS v4 COMPOUND by uid 1000, gid 100, groups 7 and 8, host "abc". */
static const uint8_t call_sys[] = "\xde\xad\xbe\xef"
				  "\0\0\0\0"
				  "\0\0\0\2"
				  "\0\1\x86\xa3"
				  "\0\0\0\4"
				  "\0\0\0\1"
				  "\0\0\0\1"
				  "\0\0\0\x20"
				  "\0\0\0\0"
				  "\0\0\0\3abc\0"
				  "\0\0\3\xe8"
				  "\0\0\0\x64"
				  "\0\0\0\2"
				  "\0\0\0\7"
				  "\0\0\0\x8"
				  "\0\0\0\0"
				  "\0\0\0\0";

static const struct rpc_callhdr hdr_sys = {
	.xid = 0xdeadbeef,
	.prog = 100003,
	.vers = 4,
	.proc = 1,
	.cred = {RPC_AUTH_SYS, 1000, 100, 2, {7, 8}},
};

Test(rpc_msg, auth_sys_call_matches_the_golden_bytes)
{
	rpc_encode_call(&e, &hdr_sys, "abc");
	cr_assert_eq(xdr_enc_len(&e), sizeof(call_sys) - 1);
	cr_assert_arr_eq(out, call_sys, sizeof(call_sys) - 1);
}

Test(rpc_msg, auth_sys_call_decodes_to_what_was_encoded)
{
	struct rpc_callhdr h;

	xdr_dec_init(&d, call_sys, sizeof(call_sys) - 1);
	cr_assert_eq(rpc_decode_call(&d, &h), 0);
	cr_assert_eq(h.xid, 0xdeadbeef);
	cr_assert_eq(h.proc, 1);
	cr_assert_eq(h.cred.uid, 1000);
	cr_assert_eq(h.cred.gids_cnt, 2);
	cr_assert_eq(h.cred.gids[1], 8);
	cr_assert_eq(xdr_dec_left(&d), 0);
}

Test(rpc_msg, auth_none_call_is_40_bytes)
{
	struct rpc_callhdr h = {.xid = 1, .prog = 100003, .vers = 4}, back;

	rpc_encode_call(&e, &h, "ignored");
	cr_assert_eq(xdr_enc_len(&e), 40);
	xdr_dec_init(&d, out, 40);
	cr_assert_eq(rpc_decode_call(&d, &back), 0);
	cr_assert_eq(back.cred.flavor, RPC_AUTH_NONE);
}

Test(rpc_msg, groups_and_names_too_many_are_cut)
{
	struct rpc_callhdr h = hdr_sys, back;
	char name[600];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	h.cred.gids_cnt = 1000;
	rpc_encode_call(&e, &h, name);
	cr_assert_not(e.failed);
	xdr_dec_init(&d, out, xdr_enc_len(&e));
	cr_assert_eq(rpc_decode_call(&d, &back), 0);
	cr_assert_eq(back.cred.gids_cnt, RPC_MAX_GROUPS);
}

Test(rpc_msg, a_call_cut_short_anywhere_is_dropped)
{
	struct rpc_callhdr h;

	for (size_t cut = 0; cut < sizeof(call_sys) - 1; cut++) {
		xdr_dec_init(&d, call_sys, cut);
		cr_assert_eq(rpc_decode_call(&d, &h), -EBADMSG, "cut at %zu", cut);
	}
}

Test(rpc_msg, a_credential_longer_than_its_body_is_dropped)
{
	uint8_t bad[sizeof(call_sys)];
	struct rpc_callhdr h;

	memcpy(bad, call_sys, sizeof(bad));
	bad[39] = 200; /* machine name longer than the credential */
	xdr_dec_init(&d, bad, sizeof(bad) - 1);
	cr_assert_eq(rpc_decode_call(&d, &h), -EBADMSG);
	memcpy(bad, call_sys, sizeof(bad));
	bad[55] = 17; /* groups */
	xdr_dec_init(&d, bad, sizeof(bad) - 1);
	cr_assert_eq(rpc_decode_call(&d, &h), -EBADMSG);
}

Test(rpc_msg, another_rpc_version_is_told_apart)
{
	uint8_t bad[sizeof(call_sys)];
	struct rpc_callhdr h;

	memcpy(bad, call_sys, sizeof(bad));
	bad[11] = 3;
	xdr_dec_init(&d, bad, sizeof(bad) - 1);
	cr_assert_eq(rpc_decode_call(&d, &h), -EPROTONOSUPPORT);
	cr_assert_eq(h.xid, 0xdeadbeef);
}

Test(rpc_msg, unknown_flavors_are_skipped)
{
	struct rpc_callhdr h = {.xid = 1, .prog = 5}, back;

	rpc_encode_call(&e, &h, "");
	out[27] = 6; /* RPCSEC_GSS */
	xdr_dec_init(&d, out, xdr_enc_len(&e));
	cr_assert_eq(rpc_decode_call(&d, &back), 0);
	cr_assert_eq((int)back.cred.flavor, 6);
	cr_assert_eq(back.prog, 5);
}

static enum rpc_result decode(void)
{
	xdr_dec_init(&d, out, xdr_enc_len(&e));
	return rpc_decode_reply(&d, 77, &low, &high, &auth);
}

Test(rpc_msg, accepted_reply_is_24_bytes_and_leads_to_the_results)
{
	rpc_encode_accepted(&e, 77, RPC_ACCEPT_SUCCESS, 0, 0);
	cr_assert_eq(xdr_enc_len(&e), RPC_REPLY_HDR);
	xdr_put_u32(&e, 0x11223344);
	cr_assert_eq(decode(), RPC_OK);
	cr_assert_eq(xdr_get_u32(&d), 0x11223344);
}

Test(rpc_msg, every_accept_state_has_its_result)
{
	static const enum rpc_result want[] = {RPC_OK, RPC_PROG_UNAVAIL, RPC_PROG_MISMATCH,
		RPC_PROC_UNAVAIL, RPC_GARBAGE_ARGS, RPC_SYSTEM_ERR, RPC_BADREPLY};

	for (unsigned int i = 0; i < 7; i++) {
		fresh();
		rpc_encode_accepted(&e, 77, (enum rpc_accept)i, 3, 4);
		cr_assert_eq(decode(), want[i]);
		cr_assert_str_neq(rpc_result_name(want[i]), "?");
	}
	fresh();
	rpc_encode_accepted(&e, 77, RPC_ACCEPT_PROG_MISMATCH, 3, 4);
	cr_assert_eq(decode(), RPC_PROG_MISMATCH);
	cr_assert_eq(low, 3);
	cr_assert_eq(high, 4);
}

Test(rpc_msg, a_verifier_is_skipped_up_to_400_bytes)
{
	static const uint8_t verf[404];

	for (uint32_t len = 396; len <= 404; len += 4) {
		fresh();
		xdr_put_u32(&e, 77);
		xdr_put_u32(&e, 1);
		xdr_put_u32(&e, 0);
		xdr_put_u32(&e, 1);
		xdr_put_opaque(&e, verf, len);
		xdr_put_u32(&e, 0);
		cr_assert_eq(decode(), len <= 400 ? RPC_OK : RPC_BADREPLY);
	}
}

Test(rpc_msg, rejections_say_why)
{
	rpc_encode_rejected_mismatch(&e, 77);
	cr_assert_eq(decode(), RPC_BADREPLY);
	cr_assert_eq(high, 2);
	fresh();
	xdr_put_u32(&e, 77);
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 1); /* denied */
	xdr_put_u32(&e, 1); /* AUTH_ERROR */
	xdr_put_u32(&e, 5); /* AUTH_TOOWEAK */
	cr_assert_eq(decode(), RPC_AUTH_ERROR);
	cr_assert_eq(auth, 5);
}

Test(rpc_msg, what_is_no_reply_to_this_call_is_refused)
{
	rpc_encode_accepted(&e, 78, RPC_ACCEPT_SUCCESS, 0, 0);
	cr_assert_eq(decode(), RPC_BADREPLY);
	fresh();
	rpc_encode_accepted(&e, 77, RPC_ACCEPT_SUCCESS, 0, 0);
	for (size_t cut = 0; cut < 24; cut++) {
		xdr_dec_init(&d, out, cut);
		cr_assert_eq(rpc_decode_reply(&d, 77, &low, &high, &auth), RPC_BADREPLY);
	}
	out[7] = 0; /* a call */
	cr_assert_eq(decode(), RPC_BADREPLY);
	out[7] = 1;
	out[11] = 2; /* neither accepted nor denied */
	cr_assert_eq(decode(), RPC_BADREPLY);
}
