/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of packets, and numbers in them. */
#include <criterion/criterion.h>
#include <string.h>

#include "roce_wire.h"

Test(roce_wire, numbers_of_packets_go_round)
{
	cr_assert_eq(roce_wire_psn_add(0xffffff, 1), 0);
	cr_assert_eq(roce_wire_psn_add(0, ROCE_PSN_MASK), 0xffffff);
	cr_assert_eq(roce_wire_psn_diff(0, 0xffffff), 1);
	cr_assert_eq(roce_wire_psn_diff(0xffffff, 0), -1);
	cr_assert_eq(roce_wire_psn_diff(0x7fffff, 0), 0x7fffff);
	cr_assert_lt(roce_wire_psn_diff(0x800001, 0), 0);
}

/* Table 45: in units of 10 us, but for the first. */
Test(roce_wire, times_of_an_rnr_nak)
{
	static const struct {
		uint8_t code;
		uint64_t us;
	} times[] = {{0, 655360}, {1, 10}, {4, 40}, {5, 60}, {12, 640}, {14, 1280}, {20, 10240},
		{25, 61440}, {30, 327680}, {31, 491520}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		cr_assert_eq(
			roce_wire_rnr_ns(times[i].code), times[i].us * 1000, "%u", times[i].code);
	for (uint8_t code = 2; code < 32; code++)
		cr_assert_gt(roce_wire_rnr_ns(code), roce_wire_rnr_ns(code - 1));
}

Test(roce_wire, a_message_has_one_packet_at_least)
{
	cr_assert_eq(roce_wire_packets(0, 1024), 1);
	cr_assert_eq(roce_wire_packets(1, 1024), 1);
	cr_assert_eq(roce_wire_packets(1024, 1024), 1);
	cr_assert_eq(roce_wire_packets(1025, 1024), 2);
	cr_assert_eq(roce_wire_packets(UINT32_MAX, 1024), 1u << 22);
	for (uint32_t n = 0; n < 9; n++)
		cr_assert_eq((n + roce_wire_pad(n)) % 4, 0);
	cr_assert_lt(roce_wire_pad(1), 4);
}

/* IBA tables 38 and 39: which headers follow. */
Test(roce_wire, each_opcode_has_its_headers)
{
	static const struct {
		uint8_t opcode;
		size_t ext;
	} opcodes[] = {{0x00, 0}, {0x01, 0}, {0x02, 0}, {0x03, 4}, {0x04, 0}, {0x05, 4}, {0x06, 16},
		{0x07, 0}, {0x08, 0}, {0x09, 4}, {0x0a, 16}, {0x0b, 20}, {0x0c, 16}, {0x0d, 4},
		{0x0e, 0}, {0x0f, 4}, {0x10, 4}, {0x11, 4}, {0x16, 4}, {0x17, 4}, {0x64, 8},
		{0x81, 16}};
	uint8_t p[64] = {0};
	struct roce_packet got;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		p[0] = opcodes[i].opcode;
		cr_assert(roce_wire_decode(p, 12 + opcodes[i].ext + 8 + 4, &got), "%#x", p[0]);
		cr_assert_eq(got.payload_len, 8, "%#x: %u", p[0], got.payload_len);
		if (opcodes[i].ext > 0)
			cr_assert_not(roce_wire_decode(p, 12 + opcodes[i].ext, &got), "%#x", p[0]);
	}
}

Test(roce_wire, what_is_no_packet)
{
	uint8_t p[ROCE_PACKET_MAX + 8] = {0x04};
	struct roce_packet got;

	cr_assert(roce_wire_decode(p, 16, &got));
	cr_assert_not(roce_wire_decode(p, 0, &got));
	cr_assert_not(roce_wire_decode(p, 12, &got));
	cr_assert_not(roce_wire_decode(p, 17, &got), "no whole words");
	cr_assert_not(roce_wire_decode(p, (ROCE_PACKET_MAX + 4) & ~3u, &got));
	p[1] = 0x30;
	cr_assert_not(roce_wire_decode(p, 16, &got), "more pad than there is");
	cr_assert(roce_wire_decode(p, 20, &got));
	cr_assert_eq(got.payload_len, 1);
	p[1] = 0x08;
	cr_assert_not(roce_wire_decode(p, 20, &got), "another version");
	p[1] = 0xc0;
	p[4] = 0xbf;
	p[8] = 0x7f;
	cr_assert(roce_wire_decode(p, 20, &got), "reserved bits");
	cr_assert_not(got.becn);
	cr_assert_not(got.ack_req);
}

/* The server's side has no more: 96 bytes are for headers there, over IPv4 as well. */
Test(roce_wire, the_path_mtu_is_linux_one)
{
	static const uint16_t mtus[][2] = {{9000, 4096}, {4192, 4096}, {4191, 2048}, {2144, 2048},
		{2143, 1024}, {1500, 1024}, {1120, 1024}, {1119, 512}, {607, 256}, {68, 256}};

	for (unsigned int i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++)
		cr_assert_eq(roce_wire_mtu(mtus[i][0]), mtus[i][1], "%u", mtus[i][0]);
}
