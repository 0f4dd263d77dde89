/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "roce_cm.h"

static uint8_t mad[ROCE_CM_LEN];
static struct roce_flow out, in;
static struct roce_cm cm;
static const uint8_t priv[8] = {0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3};

static void unhex(const char *hex, uint8_t *to, size_t len)
{
	cr_assert_eq(strlen(hex), 2 * len);
	for (size_t i = 0; i < len; i++) {
		unsigned int v;

		cr_assert_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		to[i] = (uint8_t)v;
	}
}

/* The connection whose datagrams rxe of Linux 6.1 sent, as tcpdump saw them. */
static void start(void)
{
	out = (struct roce_flow){.udp_port = 0xd872, .psn = 0xcfd37b, .mtu = 4096};
	unhex("0a4e0002", out.src.udp.ip, 4);
	unhex("0a4e0001", out.dst.udp.ip, 4);
	unhex("c480d510a815", out.src.udp.mac, 6);
	unhex("782cd46d93cd", out.dst.udp.mac, 6);
	out.src.qpn = 0x11;
	out.dst.qpn = 0x11;
	in = out;
	in.src = out.dst;
	in.dst = out.src;
	in.psn = 0xb3eb7d;
	cm = (struct roce_cm){.out = &out,
		.in = &in,
		.id = 0x3ae17943,
		.src_port = 0xb9ec,
		.dst_port = 20049,
		.reads = 0x80,
		.priv = priv,
		.priv_len = 8,
		.peer_priv = priv,
		.peer_priv_len = 8};
}

TestSuite(roce_cm, .init = start);

/* `golden` from offset `at` on; what is behind it is zero. */
static void same(size_t at, const char *golden)
{
	uint8_t want[ROCE_CM_LEN] = {0};

	unhex(golden, want, strlen(golden) / 2);
	cr_assert_arr_eq(mad + at, want, ROCE_CM_LEN - at);
}

Test(roce_cm, a_request_is_what_the_kernel_sends)
{
	roce_cm_request(&cm, mad);
	cr_assert_arr_eq(mad, "\1\7\2\3", 4);
	cr_assert_arr_eq(mad + 16, "\0\x10", 2);
	/* from the service's number on: port 20049 of TCP's name space */
	memset(mad + 24 + 88, 0, 4); /* flow label and rate are the way's */
	same(24 + 8,
		"0000000001064e51c480d5fffe10a81500000000000000000000118000000000000000a0cfd37ba6"
		"ffff57f0ffffffff00000000000000000000ffff0a4e000200000000000000000000ffff0a4e0001"
		"00000000004000980000000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000000040b9ec0000000000000000000000000a4e00020000000000000000"
		"000000000a4e0001f6ab0e1801000303");
}

Test(roce_cm, a_reply_is_what_the_kernel_sends)
{
	roce_cm_reply(&cm, mad);
	cr_assert_arr_eq(mad + 16, "\0\x13", 2);
	same(24 + 8, "000000000000110000000000b3eb7d0000807800782cd4fffe6d93cdf6ab0e1801000303");
}

Test(roce_cm, all_three_name_the_same_connection)
{
	uint8_t request[ROCE_CM_LEN], reply[ROCE_CM_LEN];

	roce_cm_request(&cm, request);
	roce_cm_reply(&cm, reply);
	roce_cm_ready(&cm, mad);
	cr_assert_arr_eq(mad + 16, "\0\x14", 2);
	cr_assert_arr_eq(request + 8, reply + 8, 8);
	cr_assert_arr_eq(request + 8, mad + 8, 8);
	cr_assert_arr_eq(reply + 28, request + 24, 4, "the reply names the client's number");
	cr_assert_arr_eq(mad + 24, request + 24, 4);
	cr_assert_arr_eq(mad + 28, reply + 24, 4);
	cr_assert_neq(memcmp(reply + 24, request + 24, 4), 0);
}

Test(roce_cm, private_data_ends_where_its_field_does)
{
	uint8_t big[256];

	memset(big, 0xee, sizeof(big));
	cm.priv = cm.peer_priv = big;
	cm.priv_len = cm.peer_priv_len = sizeof(big);
	roce_cm_request(&cm, mad);
	cr_assert_eq(mad[ROCE_CM_LEN - ROCE_CM_REQ_PRIV - 1], 1); /* 10.78.0.1 */
	cr_assert_eq(mad[ROCE_CM_LEN - ROCE_CM_REQ_PRIV], 0xee);
	roce_cm_reply(&cm, mad);
	cr_assert_eq(mad[ROCE_CM_LEN - ROCE_CM_REP_PRIV - 1], 0xcd);
	cr_assert_eq(mad[ROCE_CM_LEN - 1], 0xee);
}

Test(roce_cm, ipv6_addresses_are_whole)
{
	out.is_v6 = true;
	unhex("20010db8000000000000000000000007", out.src.udp.ip, 16);
	roce_cm_request(&cm, mad);
	cr_assert_arr_eq(mad + 24 + 56, out.src.udp.ip, 16);
	cr_assert_eq(mad[24 + 141], 0x60);
	cr_assert_arr_eq(mad + 24 + 144, out.src.udp.ip, 16);
}
