/* SPDX-License-Identifier: BSD-3-Clause */
/* The main ways of a connection over IPv6: addresses, the ICRC and ECN are others there. */
#include <criterion/criterion.h>
#include <string.h>

#include "roce_rig.h"

static void set_up(void)
{
	if (!peer_network6(false))
		cr_skip_test("there may be no network of its own, or none of IPv6");
	rig_set_up();
}

TestSuite(roce_v6, .init = set_up, .fini = rig_tear_down);

static void messages_go_both_ways(void)
{
	rig_post(3, 2 * MTU + 1, 7);
	rig_sends(0x00, OURS, 3, MTU);
	rig_sends(0x01, OURS + 1, 3 + MTU, MTU);
	rig_sends(0x02, OURS + 2, 3 + 2 * MTU, 1);
	peer_ack(&peer, 0x1f, OURS + 2);
	rig_sees("s");
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	rig_sees("sr");
	cr_assert_arr_eq(mem, "hello", 5);
}

Test(roce_v6, messages_go_both_ways)
{
	cr_assert_str_eq(roce_impl.ep_name(ep), "soft [fd00::2]:20049");
	messages_go_both_ways();
}

Test(roce_v6, memory_is_read_and_written)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_READ | FAB_REMOTE_WRITE);
	uint8_t ieth[4] = {
		(uint8_t)(rkey >> 24), (uint8_t)(rkey >> 16), (uint8_t)(rkey >> 8), (uint8_t)rkey};

	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1001), rkey, MTU + 5);
	rig_asks(0x06, peer.psn, reth, 16, text, MTU);
	rig_asks(0x08, peer.psn + 1, NULL, 0, text, 5);
	rig_answers(0x1f, peer.psn + 1);
	cr_assert_arr_eq(mem + 1001, text, MTU + 5);
	rig_asks_read(peer.psn + 2, rkey, 1000, 2 * MTU + 3);
	rig_reads(0x0d, peer.psn + 2, 1000, MTU);
	rig_reads(0x0e, peer.psn + 3, 1000 + MTU, MTU);
	rig_reads(0x0f, peer.psn + 4, 1000 + 2 * MTU, 3);
	rig_receive(0, 100, 3);
	rig_asks(0x17, peer.psn + 5, ieth, 4, "done", 4);
	rig_answers(0x1f, peer.psn + 5);
	rig_sees("r");
	cr_assert_eq(inv, rkey);
}

Test(roce_v6, what_is_lost_comes_again)
{
	rig_post(0, 2 * MTU, 1);
	rig_sends(0x00, OURS, 0, MTU);
	rig_sends(0x02, OURS + 1, MTU, MTU);
	peer_ack(&peer, 0x60, OURS + 1);
	rig_sends(0x02, OURS + 1, MTU, MTU);
	peer_ack(&peer, 0x1f, OURS + 1);
	rig_sees("s");
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_answers(0x60, peer.psn);
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3);
	rig_answers(0x1f, peer.psn);
	rig_sees("sr");
}

Test(roce_v6, what_is_not_whole_or_not_the_peers_was_not_there)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	o.spoil = true;
	peer_send(&peer, &o);
	o.spoil = false;
	peer_send_from(&peer, "fd00::3", 4791, &o);
	rig_none();
	cr_assert_str_eq(seen, "");
	cr_assert_eq(stats.bad_icrc, 1);
	peer_mark(&peer, 3);
	peer_send(&peer, &o);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x81, "congestion is told");
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
}

/* As with IPv4 (roce_mem::long_answers_are_cut_by_the_kernel). */
Test(roce_v6, the_kernel_cuts_long_answers)
{
	uint32_t rkey = rig_window(1000, 12 * MTU, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 1000, 12 * MTU);
	for (uint32_t i = 0; i < 12; i++)
		rig_reads(i == 0 ? 0x0d : i == 11 ? 0x0f : 0x0e, peer.psn + i, 1000 + i * MTU, MTU);
	cr_assert_eq(roce_of(ep)->tx.trains.psn_cnt, 1);
	cr_assert_eq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_TRIED, "it does");
}

Test(roce_v6, both_part)
{
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	rig_connect_again();
	cr_assert_str_eq(seen, "");
}

/* ---- addresses of one link ---- */

static void set_up_link(void)
{
	if (!peer_network6(true))
		cr_skip_test("there may be no network of its own, or none of IPv6");
	rig_set_up();
}

TestSuite(roce_v6_link, .init = set_up_link, .fini = rig_tear_down);

Test(roce_v6_link, messages_go_both_ways)
{
	cr_assert_str_eq(roce_impl.ep_name(ep), "soft [fe80::2%lo]:20049");
	messages_go_both_ways();
}

/* The link was made anew, with the same address: sockets are bound to the one that is gone. */
Test(roce_v6_link, a_link_that_is_another_one_by_now_has_other_sockets)
{
	struct sockaddr_in6 *local = (struct sockaddr_in6 *)&roce_of(ep)->local;
	uint32_t link = local->sin6_scope_id++;

	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	rig_connect_again();
	cr_assert_eq(local->sin6_scope_id, link);
}

/* On another link the same address is somebody else's. */
Test(roce_v6_link, what_is_of_another_link_was_not_there)
{
	struct sockaddr_in6 *remote = (struct sockaddr_in6 *)&roce_of(ep)->remote;
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	remote->sin6_scope_id++;
	peer_hand_over(&o, peer.qpn, 0);
	rig_none();
	cr_assert_str_eq(seen, "");
	remote->sin6_scope_id--;
	peer_hand_over(&o, peer.qpn, 0);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
}
