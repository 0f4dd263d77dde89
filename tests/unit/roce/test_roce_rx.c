/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of docs/protocol/rocev2.md that test_roce_ep.c is not about: packets. */
#include <criterion/criterion.h>
#include <string.h>

#include "roce_rig.h"

TestSuite(roce_packet, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_packet, reserved_bits_are_not_looked_at)
{
	struct peer_out o = rig_odd();

	for (int i = 0; i < 4; i++, o.psn++) {
		rig_receive(0, 100, 1);
		o.bth1 = i == 0 ? 0x80 : i == 1 ? 0x40 : 0; /* solicited event; no MigReq */
		o.bth4 = i == 2 ? 0xff : 0;                 /* FECN, BECN, reserved */
		o.bth8 = i == 3 ? 0x7f : 0;
		peer_send(&peer, &o);
		rig_answers(0x1f, o.psn);
	}
	rig_sees("rrrr");
}

/* Of its partition each limited member may talk to a full one. */
Test(roce_packet, a_limited_member_of_the_partition_is_heard)
{
	static const uint16_t others[] = {0x8001, 0x0001, 0x7ffe, 0xfffe, 0xbfff, 0x8000};
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		o.pkey = others[i];
		peer_send(&peer, &o);
	}
	o.pkey = 0x7fff;
	rig_none_but(&o);
}

Test(roce_packet, another_version_of_the_header_is_dropped)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	for (o.bth1 = 1; o.bth1 < 16; o.bth1++)
		peer_send(&peer, &o);
	o.bth1 = 0;
	rig_none_but(&o);
}

Test(roce_packet, one_of_another_service_is_dropped)
{
	static const uint8_t opcodes[] = {0x24, 0x44, 0x64, 0x81 ^ 0x20, 0xc0, 0x12};
	static const uint8_t deth[8] = {0x80, 1, 0, 0, [7] = 1};
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	o.ext = deth;
	o.ext_len = 8;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		o.op = opcodes[i];
		peer_send(&peer, &o);
	}
	o = rig_odd();
	rig_none_but(&o);
}

Test(roce_packet, one_that_is_shorter_than_its_headers_is_dropped)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	o.len = 0;
	o.op = 0x0a; /* no RETH */
	peer_send(&peer, &o);
	o.op = 0x0c;
	peer_send(&peer, &o);
	o.op = 0x17; /* no IETH */
	peer_send(&peer, &o);
	o.op = 0x04;
	o.bth1 = 0x30; /* three bytes of pad, of none */
	peer_send(&peer, &o);
	o.bth1 = 0;
	rig_none_but(&o);
	cr_assert_eq(len, 0);
}

/* Lengths that section 9.7.4.1.6 has not: first and middle ones are full, none is longer. */
Test(roce_packet, one_of_a_wrong_length_is_refused)
{
	static const struct {
		uint8_t begun, op; /* begun: 0xff: nothing */
		size_t n;
	} bad[] = {
		{0xff, 0x04, MTU + 4},
		{0xff, 0x00, MTU - 4},
		{0xff, 0x00, MTU + 4},
		{0xff, 0x00, MTU - 1}, /* with pad */
		{0x00, 0x01, MTU - 4},
		{0x00, 0x02, 0},
		{0x00, 0x02, MTU + 4},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t psn = peer.psn;

		rig_receive(0, sizeof(mem), 1);
		if (bad[i].begun != 0xff)
			rig_asks(bad[i].begun, psn++, NULL, 0, text, MTU);
		rig_asks(bad[i].op, psn, NULL, 0, text, bad[i].n);
		rig_answers(0x61, psn);
		rig_sees("Df.");
		rig_connect_again();
	}
}

/* ---- congestion ---- */

TestSuite(roce_ecn, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_ecn, congestion_is_told_to_the_peer)
{
	static const uint8_t zero[16];
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	rig_receive(100, 100, 2);
	peer_mark(&peer, 2);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	peer_mark(&peer, 3);
	o.psn++;
	o.pkey = 0x7fff;
	peer_send(&peer, &o);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x81);
	cr_assert(k.becn);
	cr_assert_eq(k.psn, 0);
	cr_assert_eq(k.pkey, 0x7fff, "A17.9.3: as in the packet that was marked");
	cr_assert_eq(k.len, 0);
	cr_assert_arr_eq(k.ext, zero, 16, "A17.9.3: reserved");
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("rr");
}
