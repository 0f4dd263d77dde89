/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "nfs4_codec.h"
#include "stats.h"

static uint8_t mem[512];
static struct xdr_enc res; /* a reply being written */

static const struct nfs4_sequence seq_sent = {
	.id = {"0123456789abcdef"},
	.seqid = 7,
	.slot = 3,
	.highest = 5,
	.cachethis = true,
};

static void res_begin(enum nfs4_status status, uint32_t cnt)
{
	memset(mem, 0, sizeof(mem));
	xdr_enc_init(&res, mem, sizeof(mem));
	xdr_put_u32(&res, status);
	xdr_put_opaque(&res, "", 0);
	xdr_put_u32(&res, cnt);
}

static void res_op(uint32_t op, enum nfs4_status status)
{
	xdr_put_u32(&res, op);
	xdr_put_u32(&res, status);
}

static struct nfs4_compound open_len(size_t len)
{
	struct nfs4_compound c = {0};

	xdr_dec_init(&c.dec, mem, len);
	nfs4_compound_open(&c, NULL);
	return c;
}

static struct nfs4_compound opened(void)
{
	return open_len(xdr_enc_len(&res));
}

/* Results are decoded once more, from their begin, when names of owners have come. */
Test(nfs4_compound, results_that_are_decoded_again_have_not_failed_yet)
{
	struct nfs4_compound c = {.failed_op = OP_GETATTR};

	res_begin(NFS4_OK, 0);
	xdr_dec_init(&c.dec, mem, xdr_enc_len(&res));
	cr_assert(nfs4_compound_open(&c, NULL));
	cr_assert_eq(c.failed_op, 0);
	cr_assert(nfs4_compound_close(&c));
}

Test(nfs4_compound, golden_call_with_sequence)
{
	static const char want[] = "\0\0\0\0"                 /* no tag */
				   "\0\0\0\2"                 /* minor version */
				   "\0\0\0\2"                 /* operations */
				   "\0\0\0\x35"               /* SEQUENCE */
				   "0123456789abcdef"         /* sessionid */
				   "\0\0\0\7\0\0\0\3\0\0\0\5" /* seqid, slot, highest */
				   "\0\0\0\1"                 /* cachethis */
				   "\0\0\0\x18";              /* PUTROOTFH */
	struct nfs4_compound c = {0};

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_compound_begin(&c, NULL, 2, NULL);
	nfs4_compound_put_sequence(&c, &seq_sent);
	nfs4_compound_op(&c, OP_PUTROOTFH, 0);
	cr_assert_eq(nfs4_compound_end(&c), 0);
	cr_assert_eq(xdr_enc_len(&c.enc), sizeof(want) - 1);
	cr_assert_arr_eq(mem, want, sizeof(want) - 1);
	cr_assert_eq(c.reply_max, 12 + 8 + 36 + 8);
}

Test(nfs4_compound, call_that_does_not_fit_says_so)
{
	for (size_t room = 0; room < 52; room += 4) {
		struct nfs4_compound c = {0};

		xdr_enc_init(&c.enc, mem, room);
		nfs4_compound_begin(&c, NULL, 2, NULL);
		nfs4_compound_put_sequence(&c, &seq_sent);
		cr_assert_eq(nfs4_compound_end(&c), room < 48 ? -EMSGSIZE : 0);
	}
}

Test(nfs4_compound, operations_are_counted_where_there_are_counters)
{
	struct stats stats = {0}, none = {0};
	struct nfs4_compound c = {.stats = &stats};

	xdr_enc_init(&c.enc, mem, sizeof(mem));
	nfs4_compound_begin(&c, NULL, 2, NULL);
	nfs4_compound_put_sequence(&c, &seq_sent);
	nfs4_compound_op(&c, OP_PUTROOTFH, 0);
	nfs4_compound_op(&c, OP_GETATTR, 0);
	nfs4_compound_op(&c, OP_GETATTR, 0);
	cr_assert_eq(stats.ops[OP_SEQUENCE], 1);
	cr_assert_eq(stats.ops[OP_PUTROOTFH], 1);
	cr_assert_eq(stats.ops[OP_GETATTR], 2);
	/* One that has no counter. */
	memset(&stats, 0, sizeof(stats));
	nfs4_compound_op(&c, OP_ILLEGAL, 0);
	cr_assert_arr_eq(&stats, &none, sizeof(stats));
}

Test(nfs4_compound, results_are_walked_in_order)
{
	struct nfs4_compound c;

	res_begin(NFS4_OK, 2);
	res_op(OP_PUTFH, NFS4_OK);
	res_op(OP_COMMIT, NFS4_OK);
	c = opened();
	cr_assert(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert(nfs4_compound_result(&c, OP_COMMIT));
	cr_assert(nfs4_compound_close(&c));
	cr_assert_eq(c.failed_op, 0);
}

Test(nfs4_compound, walk_ends_at_the_operation_that_failed)
{
	struct nfs4_compound c;

	res_begin(NFS4ERR_NOENT, 2);
	res_op(OP_PUTFH, NFS4_OK);
	res_op(OP_LOOKUP, NFS4ERR_NOENT);
	c = opened();
	cr_assert(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert_not(nfs4_compound_void(&c, OP_LOOKUP));
	cr_assert_not(nfs4_compound_void(&c, OP_GETFH));
	cr_assert_eq(c.status, NFS4ERR_NOENT);
	cr_assert_eq(c.failed_op, OP_LOOKUP);
	cr_assert(nfs4_compound_close(&c));
}

Test(nfs4_compound, whole_may_fail_before_its_first_operation)
{
	struct nfs4_compound c;

	res_begin(NFS4ERR_MINOR_VERS_MISMATCH, 0);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_EXCHANGE_ID));
	cr_assert_not(c.dec.failed);
	cr_assert_eq(c.status, NFS4ERR_MINOR_VERS_MISMATCH);
	cr_assert(nfs4_compound_close(&c));
}

Test(nfs4_compound, success_with_too_few_results_is_malformed)
{
	struct nfs4_compound c;

	res_begin(NFS4_OK, 1);
	res_op(OP_PUTFH, NFS4_OK);
	c = opened();
	cr_assert(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert_not(nfs4_compound_void(&c, OP_GETFH));
	cr_assert(c.dec.failed);
}

Test(nfs4_compound, results_nobody_asked_for_are_malformed)
{
	struct nfs4_compound c;

	res_begin(NFS4_OK, 2);
	res_op(OP_PUTFH, NFS4_OK);
	res_op(OP_PUTFH, NFS4_OK);
	c = opened();
	cr_assert(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert_not(nfs4_compound_close(&c));
}

Test(nfs4_compound, another_operation_than_sent_is_malformed)
{
	struct nfs4_compound c;

	res_begin(NFS4_OK, 1);
	res_op(OP_GETFH, NFS4_OK);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert(c.dec.failed);
}

Test(nfs4_compound, illegal_stands_for_an_operation_the_server_does_not_know)
{
	struct nfs4_compound c;

	res_begin(NFS4ERR_OP_ILLEGAL, 1);
	res_op(OP_ILLEGAL, NFS4ERR_OP_ILLEGAL);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_GETXATTR));
	cr_assert_not(c.dec.failed);
	cr_assert_eq(c.failed_op, OP_GETXATTR);
	res_begin(NFS4_OK, 1);
	res_op(OP_ILLEGAL, NFS4_OK);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_GETXATTR));
	cr_assert(c.dec.failed);
}

Test(nfs4_compound, failure_in_the_middle_or_with_another_status_is_malformed)
{
	struct nfs4_compound c;

	res_begin(NFS4ERR_IO, 2);
	res_op(OP_PUTFH, NFS4ERR_IO);
	res_op(OP_GETFH, NFS4_OK);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert(c.dec.failed);
	res_begin(NFS4_OK, 1);
	res_op(OP_PUTFH, NFS4ERR_IO);
	c = opened();
	cr_assert_not(nfs4_compound_void(&c, OP_PUTFH));
	cr_assert(c.dec.failed);
}

Test(nfs4_compound, counts_and_tags_are_bounded)
{
	struct nfs4_compound c;

	res_begin(NFS4_OK, NFS4_MAX_OPS + 1);
	c = open_len(sizeof(mem));
	cr_assert(c.dec.failed);
	res_begin(NFS4_OK, UINT32_MAX);
	c = open_len(sizeof(mem));
	cr_assert(c.dec.failed);
	res_begin(NFS4_OK, 3); /* with nothing behind it */
	c = opened();
	cr_assert(c.dec.failed);
	xdr_enc_init(&res, mem, sizeof(mem));
	xdr_put_u32(&res, NFS4_OK);
	xdr_put_u32(&res, 0xfffffffc);
	c = open_len(sizeof(mem));
	cr_assert(c.dec.failed);
}

static void res_sequence(void)
{
	res_begin(NFS4_OK, 1);
	res_op(OP_SEQUENCE, NFS4_OK);
	xdr_put_fixed(&res, seq_sent.id.data, 16);
	xdr_put_u32(&res, 7);
	xdr_put_u32(&res, 3);
	xdr_put_u32(&res, 63);
	xdr_put_u32(&res, 31);
	xdr_put_u32(&res, SEQ4_STATUS_LEASE_MOVED);
}

Test(nfs4_compound, golden_sequence_result)
{
	struct nfs4_sequence got = {0};
	struct nfs4_compound c;

	res_sequence();
	c = opened();
	cr_assert(nfs4_compound_get_sequence(&c, &got));
	cr_assert_arr_eq(got.id.data, seq_sent.id.data, 16);
	cr_assert_eq(got.seqid, 7);
	cr_assert_eq(got.slot, 3);
	cr_assert_eq(got.highest, 63);
	cr_assert_eq(got.target, 31);
	cr_assert_eq(got.flags, SEQ4_STATUS_LEASE_MOVED);
	cr_assert(nfs4_compound_close(&c));
	cr_assert_eq(xdr_dec_left(&c.dec), 0);
}

Test(nfs4_compound, sequence_cut_at_every_byte_is_malformed)
{
	res_sequence();
	for (size_t len = 0; len < xdr_enc_len(&res); len++) {
		struct nfs4_sequence got = {0};
		struct nfs4_compound c = open_len(len);

		cr_assert_not(nfs4_compound_get_sequence(&c, &got));
		cr_assert(c.dec.failed);
	}
}
