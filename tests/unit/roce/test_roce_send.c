/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of docs/protocol/rocev2.md that test_roce_ep.c is not about: the requester. */
#include <criterion/criterion.h>
#include <string.h>

#include "roce_rig.h"

TestSuite(roce_requester, .init = rig_set_up, .fini = rig_tear_down);

/* We said that we do not count them (REQ); what has a count is an acknowledgement as well. */
Test(roce_requester, credits_are_not_counted)
{
	for (uint32_t i = 0; i < 32; i++) {
		rig_post(0, 10, i);
		rig_sends(0x04, OURS + i, 0, 10);
		memset(seen, 0, sizeof(seen));
		peer_ack(&peer, (uint8_t)i, OURS + i);
		rig_sees("s");
		cr_assert_eq(cookie, i);
	}
	/* None are left: the next ones go out all the same. */
	peer_ack(&peer, 0, OURS + 31);
	rig_turns();
	for (uint32_t i = 0; i < 4; i++)
		rig_post(0, 10, i);
	for (uint32_t i = 0; i < 4; i++)
		rig_sends(0x04, OURS + 32 + i, 0, 10);
}

Test(roce_requester, what_is_reserved_is_not_there)
{
	static const uint8_t reserved[] = {0x40, 0x5f, 0x64, 0x7f, 0x80, 0x9f, 0xa0, 0xe0, 0xff};

	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	for (size_t i = 0; i < sizeof(reserved); i++)
		peer_ack(&peer, reserved[i], OURS);
	rig_none();
	cr_assert_str_eq(seen, "");
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
}

Test(roce_requester, each_refusal_is_the_end)
{
	for (uint8_t code = 0x61; code <= 0x63; code++) {
		rig_post(0, 100, 1);
		rig_sends(0x04, OURS, 0, 100);
		peer_ack(&peer, code, OURS);
		rig_sees("Dx.");
		rig_connect_again();
	}
}

/* A NAK, and an RNR NAK, acknowledge what was before. */
Test(roce_requester, what_was_before_a_refusal_is_done)
{
	for (uint32_t i = 0; i < 3; i++) {
		rig_post(0, 100, i);
		rig_sends(0x04, OURS + i, 0, 100);
	}
	peer_ack(&peer, 0x20 | 1, OURS + 1);
	rig_sees("s");
	rig_sends(0x04, OURS + 1, 0, 100);
	rig_sends(0x04, OURS + 2, 0, 100);
	peer_ack(&peer, 0x62, OURS + 2);
	rig_sees("ssDx.");
}

Test(roce_requester, answers_of_reads_that_nobody_asked_for_are_dropped)
{
	static const uint8_t aeth[4] = {0x1f};

	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	for (uint8_t op = 0x0d; op <= 0x10; op++)
		peer_send(&peer, &(struct peer_out){.op = op,
					 .qpn = peer.qpn,
					 .psn = OURS,
					 .ext = aeth,
					 .ext_len = op == 0x0e ? 0 : 4,
					 .payload = text,
					 .len = 100});
	rig_turns();
	cr_assert_str_eq(seen, "");
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
}

Test(roce_requester, each_time_without_an_answer_is_twice_as_long)
{
	uint64_t before, deadline;

	roce_of(ep)->path.ack_ns = SOON;
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	before = roce_of(ep)->req.timer.deadline_ns;
	for (int i = 1; i <= 3; i++) {
		rig_sends(0x04, OURS, 0, 100);
		deadline = roce_of(ep)->req.timer.deadline_ns;
		cr_assert_geq(deadline - before, SOON << i, "%d", i);
		before = deadline;
	}
	/* A slow machine is none that is silent. */
	reactor_timer_in(r, &roce_of(ep)->req.timer, 60 * NSEC_PER_SEC);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	cr_assert_eq(roce_of(ep)->req.tries, 0, "the next one begins with the shortest");
}

Test(roce_requester, one_that_wants_the_same_again_and_again_is_lost)
{
	rig_post(0, 2 * MTU, 1);
	rig_sends(0x00, OURS, 0, MTU);
	rig_sends(0x02, OURS + 1, MTU, MTU);
	peer_ack(&peer, 0x60, OURS + 1); /* it has the first one */
	rig_sends(0x02, OURS + 1, MTU, MTU);
	for (int i = 0; i < 3; i++) { /* the retry count */
		peer_ack(&peer, 0x60, OURS + 1);
		rig_sends(0x02, OURS + 1, MTU, MTU);
	}
	peer_ack(&peer, 0x60, OURS + 1);
	rig_sees("Dx.");
}

Test(roce_requester, congestion_makes_it_slower)
{
	for (int i = 0; i < 6; i++)
		peer_notify(&peer);
	rig_turns();
	rig_post(0, 8 * MTU, 1);
	for (uint32_t i = 0; i < 4; i++)
		rig_sends(i == 0 ? 0x00 : 0x01, OURS + i, i * MTU, MTU);
	rig_none();
	/* ... and what it acknowledges makes it faster again. */
	peer_ack(&peer, 0x1f, OURS + 3);
	for (uint32_t i = 4; i < 8; i++)
		rig_sends(i == 7 ? 0x02 : 0x01, OURS + i, i * MTU, MTU);
	cr_assert_eq(roce_of(ep)->req.window, 5);
	peer_ack(&peer, 0x1f, OURS + 7);
	rig_sees("s");
}

/* A peer acknowledges only what asks for it: nothing else would move the window. */
Test(roce_requester, a_message_longer_than_the_window_asks_on_its_way)
{
	roce_of(ep)->req.window = 4;
	rig_post(0, 14 * MTU, 1);
	for (uint32_t i = 0, from = 0; i < 14; i++) {
		rig_sends(i == 0 ? 0x00 : i == 13 ? 0x02 : 0x01, OURS + i, i * MTU, MTU);
		cr_assert(k.ack_req || i - from < 3, "nothing asked");
		if (!k.ack_req)
			continue;
		peer_ack(&peer, 0x1f, OURS + i);
		from = i + 1;
	}
	cr_assert(k.ack_req);
	rig_sees("s");
}

Test(roce_requester, an_empty_message_is_one_packet)
{
	rig_post(0, 0, 1);
	rig_sends(0x04, OURS, 0, 0);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
}

/* The first one is not kept waiting. */
Test(roce_requester, more_in_a_turn_go_together)
{
	for (uint32_t i = 0; i < 4; i++)
		rig_post(100 * i, 100, i);
	cr_assert(peer_next(&peer, &k, rig_still), "it waits");
	cr_assert_eq(k.psn, OURS);
	cr_assert(k.ack_req);
	cr_assert_not(peer_next(&peer, &k, rig_still), "%#x does not wait", k.psn);
	rig_turn();
	for (uint32_t i = 1; i < 4; i++) {
		cr_assert(peer_next(&peer, &k, rig_still), "%u waits yet", i);
		cr_assert_eq(k.psn, OURS + i);
		cr_assert_eq(k.ack_req, i == 3, "one for all of them");
	}
	peer_ack(&peer, 0x1f, OURS + 3);
	rig_sees("ssss");
	/* A turn later it is the first one again. */
	rig_post(0, 100, 4);
	cr_assert(peer_next(&peer, &k, rig_still), "it waits");
	cr_assert_eq(k.psn, OURS + 4);
}

Test(roce_requester, what_waits_for_the_end_of_a_turn_keeps_no_thread_asleep)
{
	struct reactor_spin *turns = &roce_of(ep)->tx.turns;

	cr_assert(turns->arm(turns));
	rig_post(0, 100, 1);
	cr_assert(turns->arm(turns));
	rig_post(0, 100, 2);
	cr_assert_not(turns->arm(turns));
	cr_assert(turns->poll(turns));
	cr_assert(turns->arm(turns));
	cr_assert_not(turns->poll(turns));
}

/* Of a count that goes on for days. */
Test(roce_requester, sends_are_in_order_when_their_count_begins_again)
{
	struct roce_requester *q = &roce_of(ep)->req;

	q->una = q->end = q->next = UINT32_MAX - 2;
	for (uint32_t i = 0; i < SENDS; i++)
		rig_post(1000 * i, 100, i);
	for (uint32_t i = 0; i < SENDS; i++)
		rig_sends(0x04, OURS + i, 1000 * i, 100);
	for (uint32_t i = 0; i < SENDS; i++) {
		peer_ack(&peer, 0x1f, OURS + i);
		rig_sees(&"sssssss"[SENDS - 1 - i]);
		cr_assert_eq(cookie, i);
	}
}

/* The owner has told of an answer. No timeout comes by itself. */
static void tells_of_answers(void)
{
	roce_of(ep)->path.ack_ns = 600 * NSEC_PER_SEC;
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	cr_assert(k.ack_req, "nobody has told yet");
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	roce_impl.answered(ep, 1);
	cr_assert_str_eq(seen, "s", "it was done");
	memset(seen, 0, sizeof(seen));
}

/* The next packet is a whole Send, which asks for an acknowledgement or does not. */
static void goes(uint32_t psn, bool asks)
{
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x04);
	cr_assert_eq(k.psn, psn);
	cr_assert_eq(k.ack_req, asks, "%u", psn);
}

Test(roce_requester, an_answer_acknowledges_what_is_before_it_too)
{
	tells_of_answers();
	for (uint32_t i = 0; i < 3; i++) {
		rig_post(100 * i, 100, 2 + i);
		goes(OURS + 1 + i, false);
	}
	roce_impl.answered(ep, 3);
	cr_assert_str_eq(seen, "ss");
	cr_assert_eq(cookie, 3);
	roce_impl.answered(ep, 4);
	rig_sees("sss");
	cr_assert_eq(roce_of(ep)->req.acked, OURS + 4);
	cr_assert_not(reactor_timer_armed(&roce_of(ep)->req.timer), "nothing is waited for");
	/* As all before it is acknowledged, the next one need not ask, and so on. */
	for (uint32_t i = 0; i < 20; i++) {
		memset(seen, 0, sizeof(seen));
		rig_post(0, 100, 5 + i);
		goes(OURS + 4 + i, false);
		roce_impl.answered(ep, 5 + i);
		rig_sees("s");
	}
}

/*
 * Those that wait for their answers at once: a window that is full of them would stay full. The
 * count is not begun anew by an answer to some of them.
 */
Test(roce_requester, one_of_sixteen_asks_although_answers_are_told_of)
{
	tells_of_answers();
	for (uint32_t i = 0; i < 33; i++) {
		rig_post(0, 100, 2 + i);
		goes(OURS + 1 + i, i % 16 == 15);
		if (i > 0)
			roce_impl.answered(ep, 1 + i);
	}
}

Test(roce_requester, a_small_window_asks_before_it_is_full)
{
	tells_of_answers();
	roce_of(ep)->req.window = 6;
	for (uint32_t i = 0; i < 6; i++) {
		rig_post(0, 100, 2 + i);
		goes(OURS + 1 + i, i == 5);
	}
}

Test(roce_requester, what_is_not_answered_in_time_is_asked_for_once_more)
{
	struct roce_requester *q = &roce_of(ep)->req;

	tells_of_answers();
	rig_post(0, MTU + 100, 2);
	rig_sends(0x00, OURS + 1, 0, MTU);
	rig_sends(0x02, OURS + 2, MTU, 100);
	cr_assert_not(k.ack_req);
	q->timer.fire(&q->timer);
	rig_sends(0x02, OURS + 2, MTU, 100);
	cr_assert(k.ack_req);
	cr_assert(reactor_timer_armed(&q->timer));
	cr_assert_eq(q->tries, 0, "nothing is known to be lost");
	cr_assert_eq(q->window, ROCE_UNACKED);
	cr_assert_eq(stats.packets_resent, 0);
	/* The peer does not have it, nor hears that: from now on it is as with any other. */
	q->timer.fire(&q->timer);
	rig_sends(0x00, OURS + 1, 0, MTU);
	rig_sends(0x02, OURS + 2, MTU, 100);
	cr_assert(k.ack_req);
	cr_assert_eq(q->tries, 1);
	peer_ack(&peer, 0x1f, OURS + 2);
	rig_sees("s");
	/* The next one asks, as this one's answer took long. */
	rig_post(0, 100, 3);
	rig_sends(0x04, OURS + 3, 0, 100);
	cr_assert(k.ack_req);
}

/* While the window is too small for the packet that would ask. */
Test(roce_requester, what_cannot_ask_is_sent_again)
{
	struct roce_requester *q = &roce_of(ep)->req;

	tells_of_answers();
	for (uint32_t i = 0; i < 3; i++) {
		rig_post(0, 100, 2 + i);
		goes(OURS + 1 + i, false);
	}
	q->window = 2;
	q->timer.fire(&q->timer);
	cr_assert_not(peer_next(&peer, &k, rig_turns), "%#x", k.psn);
	q->timer.fire(&q->timer);
	for (uint32_t i = 0; i < 3; i++)
		goes(OURS + 1 + i, i == 2);
}

/* By a peer that lies, or for another one with the same cookie. */
Test(roce_requester, what_has_not_gone_out_is_not_answered)
{
	tells_of_answers();
	roce_of(ep)->req.window = 4;
	rig_post(0, 6 * MTU, 2);
	for (uint32_t i = 0; i < 4; i++)
		rig_sends(i == 0 ? 0x00 : 0x01, OURS + 1 + i, i * MTU, MTU);
	roce_impl.answered(ep, 2);
	roce_impl.answered(ep, 77);
	cr_assert_str_eq(seen, "");
	cr_assert_eq(roce_of(ep)->req.acked, OURS + 1);
	peer_ack(&peer, 0x1f, OURS + 4);
	rig_sends(0x01, OURS + 5, 4 * MTU, MTU);
	rig_sends(0x02, OURS + 6, 5 * MTU, MTU);
	roce_impl.answered(ep, 2);
	rig_sees("s");
}
