/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "roce_frame.h"

/*
 * Frames that rxe of Linux 6.1 put on a wire between 10.78.0.1 and 10.78.0.2,
 * as tcpdump saw them, ICRC included.
 */
static const char rxe_send[] =
	"c680d510a8157a2cd46d93cd08004500005cc830400040115dc20a4e00010a4e0002d1fe12b7004800000400"
	"ffff0000001180cfd384228d80a700000001000000400000000100000000000000000000000100000001000008"
	"a00000035400007ffff3b0300013e6fbe5";
static const char rxe_read[] =
	"c680d510a8157a2cd46d93cd08004500003cc84c400040115dc60a4e00010a4e0002d1fe12b7002800000c00"
	"ffff0000001180cfd38800007ffff3a010000000054e0000271027a1e640";
static const char rxe_send_inv[] =
	"c680d510a8157a2cd46d93cd080045000060ca01400040115bed0a4e00010a4e0002c37a12b7004c00001700"
	"ffff00000012802ef7a80800018bef0ae96c000000010000004000000001000000000000000000000001000000"
	"01"
	"0800018b000004d800007ffff3b030003f10e0a4";

static uint8_t payload[3 * ROCE_MTU_MAX];
static uint8_t out[ROCE_FRAME_MAX];

static size_t unhex(const char *hex, uint8_t *to)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned int v;

		cr_assert_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		to[i] = (uint8_t)v;
	}
	return n;
}

static struct roce_flow flow4(uint32_t qpn, uint32_t psn, uint16_t port)
{
	struct roce_flow f = {.udp_port = port, .psn = psn, .mtu = 1024};

	unhex("0a4e0001", f.src.udp.ip);
	unhex("0a4e0002", f.dst.udp.ip);
	unhex("7a2cd46d93cd", f.src.udp.mac);
	unhex("c680d510a815", f.dst.udp.mac);
	f.dst.qpn = qpn;
	return f;
}

/* All but identification and checksum of the IP header, which say nothing. */
static void same_frame(const char *golden, size_t len)
{
	uint8_t want[256];
	size_t n = unhex(golden, want);

	cr_assert_eq(len, n);
	memcpy(out + 18, want + 18, 2);
	memcpy(out + 24, want + 24, 2);
	/* the CRC does not cover the checksum, but the identification */
	roce_frame_icrc(out + 14, len - 14 - 4, out + len - 4);
	cr_assert_arr_eq(out, want, n);
}

static uint32_t psn_of(const uint8_t *frame)
{
	const uint8_t *bth = frame + 14 + 20 + 8;

	return (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
}

static uint8_t opcode_of(const uint8_t *frame)
{
	return frame[14 + 20 + 8];
}

static void icrc_is_right(const uint8_t *frame, size_t len)
{
	uint8_t icrc[4];

	roce_frame_icrc(frame + 14, len - 14 - 4, icrc);
	cr_assert_arr_eq(icrc, frame + len - 4, 4);
}

Test(roce_frame, the_crc_of_frames_from_a_wire_is_theirs)
{
	static const char *const frames[] = {rxe_send, rxe_read, rxe_send_inv};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		size_t n = unhex(frames[i], out);

		icrc_is_right(out, n);
		out[14 + 8] = 3; /* hops go down on the way */
		icrc_is_right(out, n);
		out[n - 5] ^= 1;
		uint8_t icrc[4];
		roce_frame_icrc(out + 14, n - 14 - 4, icrc);
		cr_assert_neq(memcmp(icrc, out + n - 4, 4), 0);
	}
}

Test(roce_frame, a_short_send_is_the_frame_that_rxe_sent)
{
	struct roce_flow f = flow4(0x11, 0xcfd384, 0xd1fe);
	uint8_t golden[256];
	size_t n = unhex(rxe_send, golden);
	struct roce_msg m = {.kind = ROCE_SEND, .piece_cnt = 2, .len = (uint32_t)(n - 54 - 4)};

	/* in pieces that do not end where words do */
	m.pieces[0] = (struct roce_piece){golden + 54, 5};
	m.pieces[1] = (struct roce_piece){golden + 59, m.len - 5};
	same_frame(rxe_send, roce_frame_next(&f, &m, out));
	cr_assert_eq(roce_frame_next(&f, &m, out), 0);
	cr_assert_eq(f.psn, 0xcfd385);
}

Test(roce_frame, a_send_with_invalidate_is_the_frame_that_rxe_sent)
{
	struct roce_flow f = flow4(0x12, 0x2ef7a8, 0xc37a);
	uint8_t golden[256];
	size_t n = unhex(rxe_send_inv, golden);
	struct roce_msg m = {.kind = ROCE_SEND_INV,
		.pieces = {{golden + 58, (uint32_t)(n - 58 - 4)}},
		.piece_cnt = 1,
		.rkey = 0x0800018b,
		.len = (uint32_t)(n - 58 - 4)};

	same_frame(rxe_send_inv, roce_frame_next(&f, &m, out));
}

Test(roce_frame, a_read_request_is_the_frame_that_rxe_sent)
{
	struct roce_flow f = flow4(0x11, 0xcfd388, 0xd1fe);
	struct roce_msg m = {
		.kind = ROCE_READ, .addr = 0x00007ffff3a01000, .rkey = 0x0000054e, .len = 10000};

	f.mtu = 4096;
	size_t len = roce_frame_next(&f, &m, out);
	same_frame(rxe_read, len);
	cr_assert_eq(f.psn, 0xcfd38b, "a Read takes a number for each packet of its answer");
}

static void check_split(uint32_t len, unsigned int packets, const uint8_t *opcodes)
{
	struct roce_flow f = flow4(0x11, 0xfffffe, 0xc000);
	struct roce_msg m = {
		.kind = ROCE_SEND, .pieces = {{payload, len}}, .piece_cnt = 1, .len = len};
	uint32_t at = 0;
	size_t n;

	for (unsigned int i = 0; i < packets; i++) {
		uint32_t part = len - at < 1024 ? len - at : 1024, pad = -part & 3;

		n = roce_frame_next(&f, &m, out);
		cr_assert_eq(n, 14 + 20 + 8 + 12 + part + pad + 4, "%u: packet %u: %zu", len, i, n);
		cr_assert_eq(opcode_of(out), opcodes[i], "%u: packet %u", len, i);
		cr_assert_eq(out[43] >> 4 & 3, pad);
		cr_assert_eq(psn_of(out), (0xfffffe + i) & 0xffffff, "the number wraps at 24 bits");
		cr_assert_eq(out[14 + 20 + 8 + 8] >> 7, i + 1 == packets);
		cr_assert_eq(out[16] << 8 | out[17], n - 14);
		cr_assert_eq(out[38] << 8 | out[39], n - 34);
		cr_assert_arr_eq(out + 54, payload + at, part);
		icrc_is_right(out, n);
		at += part;
	}
	cr_assert_eq(roce_frame_next(&f, &m, out), 0);
}

Test(roce_frame, messages_are_split_where_the_mtu_says)
{
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	check_split(0, 1, (uint8_t[]){4});
	check_split(1, 1, (uint8_t[]){4});
	check_split(1023, 1, (uint8_t[]){4});
	check_split(1024, 1, (uint8_t[]){4});
	check_split(1025, 2, (uint8_t[]){0, 2});
	check_split(2048, 2, (uint8_t[]){0, 2});
	check_split(2049, 3, (uint8_t[]){0, 1, 2});
	check_split(4094, 4, (uint8_t[]){0, 1, 1, 2});
}

Test(roce_frame, only_the_last_packet_invalidates)
{
	struct roce_flow f = flow4(0x11, 0, 0xc000);
	struct roce_msg m = {.kind = ROCE_SEND_INV,
		.pieces = {{payload, 2048}},
		.piece_cnt = 1,
		.rkey = 0x01020304,
		.len = 2048};

	cr_assert_eq(roce_frame_next(&f, &m, out), 54 + 1024 + 4);
	cr_assert_eq(opcode_of(out), 0);
	cr_assert_eq(roce_frame_next(&f, &m, out), 54 + 4 + 1024 + 4);
	cr_assert_eq(opcode_of(out), 0x16);
	cr_assert_arr_eq(out + 54, "\1\2\3\4", 4);
}

Test(roce_frame, only_the_first_packet_of_a_write_says_where_to)
{
	struct roce_flow f = flow4(0x11, 0, 0xc000);
	struct roce_msg m = {.kind = ROCE_WRITE,
		.pieces = {{payload, 1030}},
		.piece_cnt = 1,
		.addr = 0x1122334455667788,
		.rkey = 0x99aabbcc,
		.len = 1030};

	cr_assert_eq(roce_frame_next(&f, &m, out), 54 + 16 + 1024 + 4);
	cr_assert_eq(opcode_of(out), 6);
	cr_assert_arr_eq(out + 54, "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\0\0\4\6", 16);
	cr_assert_eq(roce_frame_next(&f, &m, out), 54 + 8 + 4);
	cr_assert_eq(opcode_of(out), 8);
}

Test(roce_frame, an_answer_has_the_numbers_of_its_request)
{
	struct roce_flow in = flow4(0x11, 0xffffff, 0xc000), answers = flow4(0x12, 77, 0xc000);
	struct roce_msg request = {.kind = ROCE_READ, .len = 2050};
	struct roce_msg answer = {.kind = ROCE_READ_RESP,
		.pieces = {{payload, 2050}},
		.piece_cnt = 1,
		.len = 2050,
		.resp_psn = in.psn};
	static const uint8_t ops[] = {0x0d, 0x0e, 0x0f};
	static const size_t ext[] = {4, 0, 4}, len[] = {1024, 1024, 4};

	cr_assert_gt(roce_frame_next(&in, &request, out), 0);
	cr_assert_eq(psn_of(out), 0xffffff);
	cr_assert_eq(in.psn, 2);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(roce_frame_next(&answers, &answer, out), 54 + ext[i] + len[i] + 4);
		cr_assert_eq(opcode_of(out), ops[i]);
		cr_assert_eq(psn_of(out), (0xffffff + i) & 0xffffff);
		if (ext[i])
			cr_assert_arr_eq(out + 54, "\x1f\0\0\1", 4);
	}
	cr_assert_eq(answers.psn, 77, "answers take no numbers of their own direction");
}

/* RFC 791 section 3.1: the one's complement sum of the header's words is all ones. */
Test(roce_frame, the_checksum_of_the_ip_header_is_right_for_each_address)
{
	for (unsigned int low = 0; low <= 0xffff; low++) {
		struct roce_flow f = flow4(0x11, 0, 0xc000);
		struct roce_msg m = {
			.kind = ROCE_SEND, .pieces = {{payload, 4}}, .piece_cnt = 1, .len = 4};
		uint32_t sum = 0;

		memset(f.src.udp.ip, 0xff, 4); /* carries that carry again */
		f.dst.udp.ip[2] = (uint8_t)(low >> 8);
		f.dst.udp.ip[3] = (uint8_t)low;
		cr_assert_gt(roce_frame_next(&f, &m, out), 0);
		for (unsigned int i = 14; i < 34; i += 2)
			sum += (uint32_t)(out[i] << 8 | out[i + 1]);
		cr_assert_eq(sum % 0xffff, 0, "%x", low);
	}
}

/* The CRC was computed by Python's binascii over a packet put together by hand. */
Test(roce_frame, ipv6_is_masked_where_it_changes_on_the_way)
{
	struct roce_flow f = {.is_v6 = true, .udp_port = 0xc001, .psn = 0x010203, .mtu = 4096};
	struct roce_msg m = {.kind = ROCE_SEND, .pieces = {{"abcde", 5}}, .piece_cnt = 1, .len = 5};
	uint8_t want[14 + 40 + 8 + 12 + 8 + 4];
	size_t n = unhex(
		"02000000000202000000000186dd"
		"600000000020114020010db800000000000000000000000120010db8000000000000000000000002"
		"c00112b700200000"
		"0430ffff000000228001020361626364"
		"650000001db13749",
		want);

	unhex("20010db8000000000000000000000001", f.src.udp.ip);
	unhex("20010db8000000000000000000000002", f.dst.udp.ip);
	unhex("020000000001", f.src.udp.mac);
	unhex("020000000002", f.dst.udp.mac);
	f.dst.qpn = 0x22;
	cr_assert_eq(n, sizeof(want));
	cr_assert_eq(roce_frame_next(&f, &m, out), n);
	cr_assert_arr_eq(out, want, n);
	out[14 + 1] = 0x55; /* flow label, hop limit: of the way */
	out[14 + 3] = 0x77;
	out[14 + 7] = 1;
	icrc_is_right(out, n);
}
