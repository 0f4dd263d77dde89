/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rpcrdma_hdr.h"

/* RFC 8166 section 4.2: XID, version, credits, RDMA_MSG, three absent lists. */
static const uint8_t msg_plain[] = "\x12\x34\x56\x78"
				   "\0\0\0\1"
				   "\0\0\0\x40"
				   "\0\0\0\0"
				   "\0\0\0\0"
				   "\0\0\0\0"
				   "\0\0\0\0";

/* A WRITE: one Read chunk of two segments at Position 0x94. */
static const uint8_t msg_read[] = "\0\0\0\1"
				  "\0\0\0\1"
				  "\0\0\0\x20"
				  "\0\0\0\0"
				  "\0\0\0\1"
				  "\0\0\0\x94"
				  "\xaa\xbb\xcc\xdd"
				  "\0\0\x10\0"
				  "\0\0\x7f\xff\0\0\x10\0"
				  "\0\0\0\1"
				  "\0\0\0\x94"
				  "\xaa\xbb\xcc\xdd"
				  "\0\0\x00\x07"
				  "\0\0\x7f\xff\0\0\x20\0"
				  "\0\0\0\0"
				  "\0\0\0\0"
				  "\0\0\0\0";

/* A READ with one Write chunk, and a Reply chunk in another RDMA_NOMSG below. */
static const uint8_t msg_write[] = "\0\0\0\2"
				   "\0\0\0\1"
				   "\0\0\0\1"
				   "\0\0\0\0"
				   "\0\0\0\0"
				   "\0\0\0\1"
				   "\0\0\0\1"
				   "\x11\x22\x33\x44"
				   "\0\x10\0\0"
				   "\0\0\0\1\0\0\0\0"
				   "\0\0\0\0"
				   "\0\0\0\0";

static const uint8_t msg_reply[] = "\0\0\0\3"
				   "\0\0\0\1"
				   "\0\0\0\1"
				   "\0\0\0\1"
				   "\0\0\0\0"
				   "\0\0\0\0"
				   "\0\0\0\1"
				   "\0\0\0\1"
				   "\x11\x22\x33\x44"
				   "\0\0\x20\0"
				   "\0\0\0\1\0\0\0\0";

static const uint8_t err_vers[] = "\0\0\0\4"
				  "\0\0\0\1"
				  "\0\0\0\x20"
				  "\0\0\0\4"
				  "\0\0\0\1"
				  "\0\0\0\1"
				  "\0\0\0\2";

static const uint8_t err_chunk[] = "\0\0\0\4"
				   "\0\0\0\7"
				   "\0\0\0\x20"
				   "\0\0\0\4"
				   "\0\0\0\2";

static int decode(const void *p, size_t len, struct rpcrdma_hdr *h, size_t *left)
{
	struct xdr_dec d;
	int err;

	xdr_dec_init(&d, p, len);
	err = rpcrdma_hdr_decode(&d, h);
	if (left)
		*left = xdr_dec_left(&d);
	return err;
}

static void same_after_encoding(const void *p, size_t len)
{
	struct rpcrdma_hdr h;
	struct xdr_enc e;
	uint8_t out[4096];
	size_t left;

	cr_assert_eq(decode(p, len, &h, &left), 0);
	cr_assert_eq(left, 0);
	xdr_enc_init(&e, out, sizeof(out));
	rpcrdma_hdr_encode(&e, &h);
	cr_assert_not(e.failed);
	cr_assert_eq(xdr_enc_len(&e), len);
	cr_assert_arr_eq(out, p, len);
}

Test(rpcrdma_hdr, golden_vectors_survive_decoding_and_encoding)
{
	same_after_encoding(msg_plain, sizeof(msg_plain) - 1);
	same_after_encoding(msg_read, sizeof(msg_read) - 1);
	same_after_encoding(msg_write, sizeof(msg_write) - 1);
	same_after_encoding(msg_reply, sizeof(msg_reply) - 1);
	same_after_encoding(err_vers, sizeof(err_vers) - 1);
	same_after_encoding(err_chunk, sizeof(err_chunk) - 1);
}

Test(rpcrdma_hdr, plain_message_is_28_bytes_and_the_body_follows)
{
	uint8_t buf[40] = {0};
	struct rpcrdma_hdr h;
	size_t left;

	memcpy(buf, msg_plain, 28);
	cr_assert_eq(decode(buf, sizeof(buf), &h, &left), 0);
	cr_assert_eq(h.xid, 0x12345678);
	cr_assert_eq(h.credits, 64);
	cr_assert_eq(left, 12);
}

Test(rpcrdma_hdr, read_list_gives_position_and_segments)
{
	struct rpcrdma_hdr h;

	cr_assert_eq(decode(msg_read, sizeof(msg_read) - 1, &h, NULL), 0);
	cr_assert_eq(h.read_cnt, 2);
	cr_assert_eq(h.reads[0].pos, 0x94);
	cr_assert_eq(h.reads[1].seg.len, 7);
	cr_assert_eq(h.reads[1].seg.off, 0x7fff00002000);
	cr_assert_eq(h.reads[1].seg.handle, 0xaabbccdd);
}

Test(rpcrdma_hdr, errors_are_understood_whatever_version_they_name)
{
	struct rpcrdma_hdr h;

	cr_assert_eq(decode(err_chunk, sizeof(err_chunk) - 1, &h, NULL), 0);
	cr_assert_eq(h.vers, 7);
	cr_assert_eq(h.err, RDMA_ERR_CHUNK);
	cr_assert_eq(decode(err_vers, sizeof(err_vers) - 1, &h, NULL), 0);
	cr_assert_eq(h.vers_low, 1);
	cr_assert_eq(h.vers_high, 2);
}

Test(rpcrdma_hdr, msgp_is_taken_as_msg)
{
	uint8_t buf[36] = {0};
	struct rpcrdma_hdr h;
	size_t left;

	memcpy(buf, msg_plain, 16);
	buf[15] = RDMA_MSGP;
	memset(buf + 16, 0xff, 8); /* rdma_align, rdma_thresh */
	cr_assert_eq(decode(buf, sizeof(buf), &h, &left), 0);
	cr_assert_eq(h.proc, RDMA_MSGP);
	cr_assert_eq(left, 0);
}

Test(rpcrdma_hdr, done_has_no_body)
{
	uint8_t buf[16];
	struct rpcrdma_hdr h;
	size_t left;

	memcpy(buf, msg_plain, 16);
	buf[15] = RDMA_DONE;
	cr_assert_eq(decode(buf, sizeof(buf), &h, &left), 0);
	cr_assert_eq(h.proc, RDMA_DONE);
	cr_assert_eq(left, 0);
}

Test(rpcrdma_hdr, other_versions_and_procedures_are_told_apart)
{
	uint8_t buf[28];
	struct rpcrdma_hdr h;

	memcpy(buf, msg_plain, 28);
	buf[7] = 2;
	cr_assert_eq(decode(buf, 28, &h, NULL), -EPROTONOSUPPORT);
	cr_assert_eq(h.xid, 0x12345678);
	buf[7] = 1;
	buf[15] = 5;
	cr_assert_eq(decode(buf, 28, &h, NULL), -EOPNOTSUPP);
}

static void every_cut_is_refused(const uint8_t *p, size_t len)
{
	struct rpcrdma_hdr h;

	for (size_t cut = 0; cut < len; cut++)
		cr_assert_eq(decode(p, cut, &h, NULL), -EBADMSG, "cut at %zu", cut);
}

Test(rpcrdma_hdr, a_header_cut_short_anywhere_is_refused)
{
	every_cut_is_refused(msg_plain, sizeof(msg_plain) - 1);
	every_cut_is_refused(msg_read, sizeof(msg_read) - 1);
	every_cut_is_refused(msg_write, sizeof(msg_write) - 1);
	every_cut_is_refused(msg_reply, sizeof(msg_reply) - 1);
	every_cut_is_refused(err_vers, sizeof(err_vers) - 1);
}

Test(rpcrdma_hdr, counts_out_of_bounds_are_refused)
{
	uint8_t buf[sizeof(msg_write)];
	struct rpcrdma_hdr h;

	memcpy(buf, msg_write, sizeof(msg_write));
	memset(buf + 24, 0xff, 4); /* segment count */
	cr_assert_eq(decode(buf, sizeof(buf) - 1, &h, NULL), -EBADMSG);
	memcpy(buf, msg_plain, 28);
	memset(buf + 16, 0xff, 4); /* a boolean that is neither 0 nor 1 */
	cr_assert_eq(decode(buf, 28, &h, NULL), -EBADMSG);
}

Test(rpcrdma_hdr, endless_lists_are_refused)
{
	uint8_t buf[4096] = {0};
	struct rpcrdma_hdr h;

	memcpy(buf, msg_plain, 16);
	for (size_t at = 16; at + 24 <= sizeof(buf); at += 24)
		buf[at + 3] = 1; /* Read segments without end */
	cr_assert_eq(decode(buf, sizeof(buf), &h, NULL), -EBADMSG);
	memset(buf + 16, 0, sizeof(buf) - 16);
	for (size_t i = 0; i <= RPCRDMA_MAX_READ_SEGS; i++)
		buf[16 + 24 * i + 3] = 1; /* one more than there can be, and an end */
	cr_assert_eq(decode(buf, sizeof(buf), &h, NULL), -EBADMSG);
	memset(buf + 16, 0, sizeof(buf) - 16);
	for (size_t i = 0; i <= RPCRDMA_MAX_RESULTS; i++)
		buf[20 + 8 * i + 3] = 1;
	cr_assert_eq(decode(buf, sizeof(buf), &h, NULL), -EBADMSG);
	for (size_t at = 20; at + 8 <= sizeof(buf); at += 8)
		buf[at + 3] = 1; /* empty Write chunks without end */
	cr_assert_eq(decode(buf, sizeof(buf), &h, NULL), -EBADMSG);
}

Test(rpcrdma_hdr, encoding_fails_when_there_is_no_room)
{
	struct rpcrdma_hdr h;
	struct xdr_enc e;
	uint8_t out[27];

	cr_assert_eq(decode(msg_plain, 28, &h, NULL), 0);
	xdr_enc_init(&e, out, sizeof(out));
	rpcrdma_hdr_encode(&e, &h);
	cr_assert(e.failed);
}

Test(rpcrdma_hdr, chunk_bytes_do_not_overflow)
{
	struct rpcrdma_chunk c = {.cnt = 2};

	c.segs[0].len = c.segs[1].len = UINT32_MAX;
	cr_assert_eq(rpcrdma_hdr_chunk_bytes(&c), 2ull * UINT32_MAX);
}
