/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of docs/protocol/rocev2.md that test_roce_ep.c is not about: the CM. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "roce_rig.h"

#define REQ  0x10
#define MRA  0x11
#define REJ  0x12
#define REP  0x13
#define RTU  0x14
#define DREQ 0x15
#define DREP 0x16

TestSuite(roce_mads, .init = rig_make, .fini = rig_tear_down);

static uint8_t body[232], answer[232];

/* The IDs of the connection, the peer's first, as in what the peer sends. */
static void about(uint32_t id)
{
	memset(body, 0, sizeof(body));
	for (int i = 0; i < 4; i++)
		body[i] = (uint8_t)(PEER_ID >> (24 - 8 * i));
	for (int i = 0; i < 4; i++)
		body[4 + i] = (uint8_t)(id >> (24 - 8 * i));
}

static void asked(void)
{
	rig_resolve();
	peer_forget(&peer);
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
}

/* Nothing came of it: the connection is made after all. */
static void goes_on(void)
{
	rig_turns();
	cr_assert_str_eq(seen, "R");
	peer_send_rep(&peer, OURS, NULL, 0);
	peer_next_mad(&peer, RTU, answer, rig_turn);
	rig_sees("RE");
}

Test(roce_mads, a_peer_that_needs_time_gets_it)
{
	uint64_t now;

	asked();
	about(peer.id);
	body[9] = 20 << 3; /* 4.3 s */
	now = reactor_now(r);
	peer_send_mad(&peer, MRA, body);
	rig_turns();
	cr_assert_geq(roce_of(ep)->conn.timer.deadline_ns - now, fab_ack_ns(20));
	goes_on();
	/* It means nothing then. */
	peer_send_mad(&peer, MRA, body);
	rig_turns();
	cr_assert_not(reactor_timer_armed(&roce_of(ep)->conn.timer));
	rig_sees("RE");
}

Test(roce_mads, repetitions_are_twice_as_long_apart)
{
	uint64_t before = 0;

	asked();
	for (int i = 0; i < 2; i++) {
		uint64_t deadline = roce_of(ep)->conn.timer.deadline_ns;

		if (i > 0)
			cr_assert_geq(deadline - before, 2 * 300 * NSEC_PER_MSEC);
		before = deadline;
		peer_take_req(&peer, rig_turn);
	}
	goes_on();
}

Test(roce_mads, each_reason_to_refuse_has_its_error)
{
	static const struct {
		uint8_t reason;
		int err;
	} reasons[] = {{1, -ECONNREFUSED}, {3, -ECONNREFUSED}, {4, -ETIMEDOUT}, {8, -ECONNREFUSED},
		{10, -ECONNRESET}, {28, -ECONNREFUSED}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		asked();
		about(peer.id);
		memset(body, 0, 4); /* it has no ID of its own yet */
		body[11] = reasons[i].reason;
		peer_send_mad(&peer, REJ, body);
		rig_sees("RF");
		cr_assert_eq(last.err, reasons[i].err, "%u", reasons[i].reason);
	}
}

Test(roce_mads, what_is_of_another_attempt_is_not_read)
{
	asked();
	about(peer.id ^ 0x1000000);
	body[11] = 28;
	peer_send_mad(&peer, REJ, body);
	goes_on();
}

Test(roce_mads, what_is_no_datagram_of_the_cm_is_not_read)
{
	asked();
	about(peer.id);
	body[11] = 28;
	peer_send_odd_mad(&peer, REJ, body, 0, 1);        /* Q_Key */
	peer_send_odd_mad(&peer, REJ, body, 1u << 24, 0); /* base version */
	peer_send_odd_mad(&peer, REJ, body, 1u << 16, 0); /* class */
	peer_send_odd_mad(&peer, REJ, body, 1u << 8, 0);  /* its version */
	peer_send_odd_mad(&peer, REJ, body, 0x80, 0);     /* method: a response */
	peer_send_mad(&peer, 0x17, body);                 /* SIDR_REQ */
	peer_send_mad(&peer, 0x19, body);                 /* LAP */
	goes_on();
}

Test(roce_mads, a_reply_that_names_no_queue_pair_is_refused)
{
	asked();
	about(peer.id);
	body[14] = 1; /* QPN 1 */
	peer_send_mad(&peer, REP, body);
	peer_next_mad(&peer, REJ, answer, rig_turn);
	cr_assert_arr_eq(answer, body + 4, 4);
	cr_assert_arr_eq(answer + 4, body, 4);
	cr_assert_eq(answer[8], 1 << 6, "a REP is rejected");
	cr_assert_eq(answer[11], 28, "by the consumer");
	goes_on();
}

/* The peer waited too long for the RTU: it has no connection. */
Test(roce_mads, a_connection_that_is_rejected_is_lost)
{
	rig_connect(OURS);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	about(peer.id);
	body[11] = 4;
	body[3] ^= 1; /* of another one */
	peer_send_mad(&peer, REJ, body);
	rig_none();
	cr_assert_str_eq(seen, "");
	body[3] ^= 1;
	peer_send_mad(&peer, REJ, body);
	rig_sees("Dx.");
}

Test(roce_mads, nobody_is_listening)
{
	static uint8_t req[232];

	rig_connect(OURS);
	memcpy(req, peer.req, sizeof(req));
	peer_send_mad(&peer, REQ, req);
	about(peer.id);
	peer_send_mad(&peer, RTU, body);
	rig_none();
	cr_assert_str_eq(seen, "");
}

Test(roce_mads, one_who_parts_from_another_queue_pair_is_not_heard)
{
	rig_connect(OURS);
	about(peer.id);
	memcpy(body + 8, peer.req + 32, 3);
	body[10] ^= 1;
	peer_send_mad(&peer, DREQ, body);
	body[10] ^= 1;
	body[3] ^= 1; /* of somebody else */
	peer_send_mad(&peer, DREQ, body);
	rig_none();
	cr_assert_str_eq(seen, "");
	body[3] ^= 1;
	peer.tid = 0x1234567812345678;
	peer_send_mad(&peer, DREQ, body);
	peer_next_mad(&peer, DREP, answer, rig_turn);
	cr_assert_eq(peer.tid, 0x1234567812345678, "it is of the same transaction");
	cr_assert_arr_eq(answer, body + 4, 4);
	cr_assert_arr_eq(answer + 4, body, 4);
	rig_sees("D.");
	cr_assert_eq(last.type, FAB_EV_DRAINED);
}

/* Before the peer's answer there is nothing but our ID to know it by, which is no secret here. */
Test(roce_mads, nobody_parts_before_there_is_a_connection)
{
	asked();
	about(peer.id);
	memcpy(body + 8, peer.req + 32, 3);
	peer_send_mad(&peer, DREQ, body);
	goes_on();
	rig_none();
	/* Then it is the peer's. */
	peer_send_mad(&peer, DREQ, body);
	peer_next_mad(&peer, DREP, answer, rig_turn);
	rig_sees("RED.");
}

Test(roce_mads, nobody_parts_from_an_attempt_that_was_given_up)
{
	asked();
	roce_impl.ep_disconnect(ep);
	rig_sees("R.");
	about(peer.id); /* and no queue pair: there is none */
	peer_send_mad(&peer, DREQ, body);
	rig_none();
	cr_assert_str_eq(roce_impl.ep_why(ep), "");
}

Test(roce_mads, an_answer_to_our_parting_is_the_end_of_it)
{
	rig_connect(OURS);
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	peer_next_mad(&peer, DREQ, answer, rig_turn);
	roce_of(ep)->conn.dreq_tries = 100;
	about(peer.id);
	body[3] ^= 1;
	peer_send_mad(&peer, DREP, body);
	rig_turns();
	cr_assert_gt(roce_of(ep)->conn.dreq_tries, 0, "it was another's");
	body[3] ^= 1;
	peer_send_mad(&peer, DREP, body);
	rig_turns();
	cr_assert_eq(roce_of(ep)->conn.dreq_tries, 0);
}

/* Both part at once. */
Test(roce_mads, a_parting_answers_ours_as_well)
{
	rig_connect(OURS);
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	peer_next_mad(&peer, DREQ, answer, rig_turn);
	about(peer.id);
	memcpy(body + 8, peer.req + 32, 3);
	peer_send_mad(&peer, DREQ, body);
	peer_next_mad(&peer, DREP, answer, rig_turn);
	cr_assert_eq(roce_of(ep)->conn.dreq_tries, 0);
}

Test(roce_mads, the_type_of_service_is_of_both_sides)
{
	roce_of(ep)->conf.tos = 104;
	rig_connect(OURS);
	cr_assert_eq(peer.req[92], 104, "IBA 12.7.13: traffic class, of what we send");
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	cr_assert_eq(k.tos, 104);
	cr_assert_eq(k.ecn, 2);
}

/* Linux repeats its REP after this time, and says nothing to a repeated REQ. */
Test(roce_mads, a_reply_that_is_lost_comes_again_soon)
{
	rig_connect(OURS);
	cr_assert_eq(peer.req[47] >> 3, 17, "table 106: 4.096 us << 17 is 0.5 s");
	cr_assert_eq(peer.req[43] >> 3, 20, "the peer may take 4.3 s");
}
