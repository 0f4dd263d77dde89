/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <string.h>

#include "op_test.h"

Test(nfs4_xdr, names_of_operations)
{
	cr_assert_str_eq(nfs4_op_name(OP_ACCESS), "ACCESS");
	cr_assert_str_eq(nfs4_op_name(25), "READ");
	cr_assert_str_eq(nfs4_op_name(53), "SEQUENCE");
	cr_assert_str_eq(nfs4_op_name(NFS4_OP_LAST), "REMOVEXATTR");
	cr_assert_str_eq(nfs4_op_name(OP_ILLEGAL), "ILLEGAL");
	cr_assert_null(nfs4_op_name(0));
	cr_assert_null(nfs4_op_name(2));
	cr_assert_null(nfs4_op_name(NFS4_OP_LAST + 1));
	cr_assert_null(nfs4_op_name(~0u));
	for (unsigned int op = OP_ACCESS; op <= NFS4_OP_LAST; op++)
		cr_assert_not_null(nfs4_op_name(op));
}

Test(nfs4_xdr, stateid_both_ways)
{
	const struct nfs4_stateid sid = {0x01020304, "abcdefghijk"};
	struct nfs4_stateid back = {0};
	uint8_t mem[16];
	struct xdr_enc enc;
	struct xdr_dec dec;

	xdr_enc_init(&enc, mem, sizeof(mem));
	nfs4_xdr_put_stateid(&enc, &sid);
	cr_assert(!enc.failed);
	cr_assert_arr_eq(mem, "\1\2\3\4abcdefghijk\0", 16);
	for (size_t len = 0; len < 16; len++) {
		xdr_dec_init(&dec, mem, len);
		nfs4_xdr_get_stateid(&dec, &back);
		cr_assert(dec.failed);
		cr_assert_eq(back.seqid, 0, "untouched");
	}
	xdr_dec_init(&dec, mem, 16);
	nfs4_xdr_get_stateid(&dec, &back);
	cr_assert(!dec.failed);
	cr_assert_eq(back.seqid, sid.seqid);
	cr_assert_arr_eq(back.other, sid.other, 12);
}

Test(nfs4_xdr, anonymous_stateid_is_zero)
{
	static const uint8_t zero[12];

	cr_assert_eq(nfs4_stateid_anon.seqid, 0);
	cr_assert_arr_eq(nfs4_stateid_anon.other, zero, 12);
}

static bool get_fh(uint32_t len, size_t avail, struct nfs4_fh *fh)
{
	uint8_t mem[4 + 256] = {0};
	struct xdr_enc enc;
	struct xdr_dec dec;

	memset(mem, 0x5a, sizeof(mem));
	xdr_enc_init(&enc, mem, sizeof(mem));
	xdr_put_u32(&enc, len);
	xdr_dec_init(&dec, mem, 4 + avail);
	nfs4_xdr_get_fh(&dec, fh);
	return !dec.failed;
}

Test(nfs4_xdr, filehandle_has_1_to_128_bytes)
{
	struct nfs4_fh fh;

	cr_assert(get_fh(1, 4, &fh));
	cr_assert_eq(fh.len, 1);
	cr_assert(get_fh(128, 128, &fh));
	cr_assert_eq(fh.len, 128);
	cr_assert_eq(fh.data[127], 0x5a);
	cr_assert(!get_fh(129, 132, &fh));
	cr_assert_eq(fh.len, 0);
	cr_assert(!get_fh(0, 0, &fh));
	cr_assert(!get_fh(128, 127, &fh));
	cr_assert(!get_fh(0xffffffff, 256, &fh));
	cr_assert_eq(fh.len, 0);
}

Test(nfs4_xdr, cinfo_and_verifier)
{
	static const uint8_t mem[28] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6,
		'v', 'e', 'r', 'i', 'f', 'i', 'e', 'r'};
	struct nfs4_cinfo ci;
	struct nfs4_verf v = {{0}};
	struct xdr_dec dec;

	xdr_dec_init(&dec, mem, sizeof(mem));
	nfs4_xdr_get_cinfo(&dec, &ci);
	nfs4_xdr_get_verf(&dec, &v);
	cr_assert(!dec.failed);
	cr_assert(ci.atomic);
	cr_assert_eq(ci.before, 5);
	cr_assert_eq(ci.after, 0x100000006);
	cr_assert_arr_eq(v.data, "verifier", 8);
	xdr_dec_init(&dec, mem, 19);
	nfs4_xdr_get_cinfo(&dec, &ci);
	cr_assert(dec.failed);
}

Test(nfs4_xdr, success_after_the_fact_does_not_hide_a_bad_reply)
{
	struct nfs4_compound c = {.status = NFS4ERR_DELAY, .failed_op = OP_GETATTR};

	nfs4_xdr_decode_done(&c);
	cr_assert_eq(c.status, NFS4_OK);
	cr_assert_eq(c.failed_op, 0);
	cr_assert_eq(nfs4_xdr_decode_end(&c), 0);
	c.status = NFS4ERR_DELAY;
	xdr_fail(&c.dec);
	nfs4_xdr_decode_done(&c);
	cr_assert_eq(c.status, NFS4ERR_DELAY);
	cr_assert_neq(nfs4_xdr_decode_end(&c), 0);
}
