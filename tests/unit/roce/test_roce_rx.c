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

/* ---- Writes of several packets ---- */

TestSuite(roce_place, .init = rig_set_up, .fini = rig_tear_down);

#define AT  1000u
#define ALL (3 * MTU + 101)

static struct roce_rx_slot slots[4];
static struct iovec iov[4][ROCE_RX_PIECES];

/* The first packet of a Write of ALL bytes is taken; others are received after it. */
static void begin_write(uint32_t psn)
{
	uint32_t rkey = rig_window(AT, ALL, FAB_REMOTE_WRITE);

	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(AT), rkey, ALL);
	rig_asks(0x06, psn, reth, 16, text, MTU);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.got < MTU; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->resp.got, MTU);
}

static void end_write(uint32_t psn)
{
	rig_asks(0x07, psn, NULL, 0, text, MTU);
	rig_asks(0x07, psn + 1, NULL, 0, text, MTU);
	rig_asks(0x08, psn + 2, NULL, 0, text, 101);
}

static void is_written(void)
{
	for (size_t i = 0; i < ALL; i++)
		cr_assert_eq(mem[AT + i], 'w', "byte %zu", i);
	cr_assert_neq(mem[AT - 1], 'w');
	cr_assert_neq(mem[AT + ALL], 'w');
}

static unsigned int placed(bool own)
{
	unsigned int cnt = 0;

	roce_rx_place(roce_of(ep), own, slots, iov, 4);
	for (unsigned int i = 0; i < 4; i++)
		cnt += slots[i].apart != NULL;
	return cnt;
}

Test(roce_place, the_rest_of_a_write_is_received_where_it_belongs)
{
	cr_assert_eq(placed(true), 0);
	begin_write(peer.psn);
	cr_assert_eq(placed(true), 3);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(iov[i][1].iov_base, mem + AT + (i + 1) * MTU);
		cr_assert_eq(iov[i][1].iov_len, i < 2 ? MTU : 101);
		cr_assert_eq(iov[i][2].iov_base, slots[i].bytes + 12 + iov[i][1].iov_len);
	}
	cr_assert_eq(iov[3][1].iov_len, 0);
	cr_assert_eq(placed(false), 0, "strangers write no memory");
	end_write(peer.psn + 1);
	rig_answers(0x1f, peer.psn + 3);
	is_written();
	cr_assert_eq(placed(true), 0);
	cr_assert_str_eq(seen, "");
}

Test(roce_place, no_other_message_has_a_rest)
{
	uint32_t rkey = rig_window(AT, ALL, FAB_REMOTE_WRITE);

	rig_receive(20000, 2 * MTU, 1);
	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(AT), rkey, 4);
	rig_asks(0x0a, peer.psn, reth, 16, text, 4); /* a Write of one packet, before it */
	rig_asks(0x00, peer.psn + 1, NULL, 0, text, MTU);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.kind == 0; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->resp.kind, ROCE_IS_SEND);
	cr_assert_eq(placed(true), 0);
	rig_asks(0x02, peer.psn + 2, NULL, 0, text, MTU);
	rig_sees("r");
	cr_assert_eq(len, 2 * MTU);
	cr_assert_neq(mem[AT + 4], 'w');
}

/* They are taken out of the memory again before any of them writes there. */
Test(roce_place, others_that_come_amid_a_write_are_whole)
{
	struct peer_out o = rig_odd();

	rig_receive(20000, 100, 1);
	rig_receive(20100, 100, 2);
	peer_send(&peer, &o);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	memset(seen, 0, sizeof(seen));
	begin_write(peer.psn + 1);
	rig_asks(0x07, peer.psn + 2, NULL, 0, text, MTU);
	peer_send(&peer, &o); /* once more */
	rig_asks(0x07, peer.psn + 3, NULL, 0, text, MTU);
	rig_asks(0x08, peer.psn + 4, NULL, 0, text, 101);
	rig_asks(0x04, peer.psn + 5, NULL, 0, "behind it", 9);
	rig_answers(0x1f, peer.psn + 5);
	rig_sees("r");
	is_written();
	cr_assert_arr_eq(mem + 20100, "behind it", 9);
	cr_assert_eq(len, 9);
}

Test(roce_place, one_that_changed_on_the_way_comes_again)
{
	struct peer_out o = rig_odd();

	begin_write(peer.psn);
	o.op = 0x07;
	o.psn = peer.psn + 1;
	o.payload = text;
	o.len = MTU;
	o.spoil = true;
	peer_send(&peer, &o);
	rig_asks(0x07, peer.psn + 2, NULL, 0, text, MTU);
	rig_asks(0x08, peer.psn + 3, NULL, 0, text, 101);
	rig_answers(0x60, peer.psn + 1);
	cr_assert_eq(stats.bad_icrc, 1);
	end_write(peer.psn + 1);
	rig_answers(0x1f, peer.psn + 3);
	is_written();
}

/* A packet in the place of another is not in its own. */
Test(roce_place, what_overtakes_is_not_where_it_belongs)
{
	memset(text, 'w', sizeof(text));
	begin_write(peer.psn);
	memset(text, 'x', sizeof(text));
	rig_asks(0x08, peer.psn + 3, NULL, 0, text, 101);
	rig_asks(0x07, peer.psn + 2, NULL, 0, text, MTU);
	rig_answers(0x60, peer.psn + 1);
	memset(text, 'w', sizeof(text));
	end_write(peer.psn + 1);
	rig_answers(0x1f, peer.psn + 3);
	is_written();
}

Test(roce_place, nothing_where_the_key_opens_no_more)
{
	begin_write(peer.psn);
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	rig_sees("i");
	cr_assert_eq(placed(true), 0);
	end_write(peer.psn + 1);
	rig_answers(0x62, peer.psn + 1);
	rig_sees("iD.");
	cr_assert_neq(mem[AT + MTU], 'w');
}
