/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of docs/protocol/rocev2.md that test_roce_ep.c is not about: the responder. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "roce_read.h"
#include "roce_rig.h"

/*
 * The kernel's, of a socket that has room for so many datagrams. Noted: what the owner had seen
 * when packets went out, and how often some did.
 */
static char before_out[sizeof(seen)];
static unsigned int outs, room = UINT32_MAX;

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	long n;

	if (room == 0) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(before_out, seen, sizeof(seen));
	outs++;
	n = syscall(SYS_sendmmsg, fd, msgs, cnt < room ? cnt : room, flags);
	if (n > 0 && room != UINT32_MAX)
		room -= (unsigned int)n;
	return (int)n;
}

TestSuite(roce_responder, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_responder, what_does_not_ask_is_not_acknowledged)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	rig_receive(100, 100, 2);
	o.ack_req = false;
	peer_send(&peer, &o);
	rig_sees("r");
	rig_none();
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_answers(0x1f, peer.psn + 1);
	cr_assert_eq(k.msn, 2);
}

/* Section 9.7.7.1: the MSN is of messages that are done. */
Test(roce_responder, a_message_that_has_begun_does_not_count)
{
	struct peer_out o = rig_odd();

	rig_receive(0, sizeof(mem), 1);
	o.op = 0x00;
	o.payload = text;
	o.len = MTU;
	peer_send(&peer, &o);
	rig_answers(0x1f, peer.psn);
	cr_assert_eq(k.msn, 0);
	o.psn++;
	o.op = 0x02;
	peer_send(&peer, &o);
	rig_answers(0x1f, peer.psn + 1);
	cr_assert_eq(k.msn, 1);
	rig_sees("r");
}

static void asks_many(uint32_t psn, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		rig_receive(1000 * i, 100, i);
		rig_asks(0x04, psn + i, NULL, 0, "hello", 5);
	}
}

Test(roce_responder, acknowledgements_are_put_together)
{
	asks_many(peer.psn, 3);
	rig_answers(0x1f, peer.psn + 2);
	cr_assert_eq(k.msn, 3);
	rig_none();
	rig_sees("rrr");
}

/* The endpoint goes on until all packets before this one have come, and does not sleep. */
static void comes(uint32_t psn)
{
	for (int i = 0; i < 20000 && roce_of(ep)->resp.psn != (psn & 0xffffff); i++)
		reactor_turn(r, 0);
	cr_assert_eq(roce_of(ep)->resp.psn, psn & 0xffffff);
}

Test(roce_responder, an_acknowledgement_goes_with_a_send)
{
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	comes(peer.psn + 1);
	cr_assert_not(peer_next(&peer, &k, rig_still), "%#x", k.op);
	rig_post(0, 100, 2);
	cr_assert(peer_next(&peer, &k, rig_still));
	cr_assert_eq(k.op, 0x11);
	cr_assert_eq(k.psn, peer.psn);
	cr_assert(peer_next(&peer, &k, rig_still));
	cr_assert_eq(k.op, 0x04);
	rig_none();
}

/* ... but by itself before the thread sleeps, and then 16 do not wait. */
Test(roce_responder, an_acknowledgement_that_waited_in_vain_makes_wary)
{
	for (uint32_t i = 0; i < 18; i++) {
		rig_receive(0, 100, i);
		rig_asks(0x04, peer.psn + i, NULL, 0, "hello", 5);
		comes(peer.psn + i + 1);
		cr_assert_eq(peer_next(&peer, &k, rig_still), i > 0 && i < 17, "%u", i);
		if (i == 0 || i == 17)
			rig_answers(0x1f, peer.psn + i);
	}
}

/* The thread never sleeps here: the peer would give up. */
Test(roce_responder, what_comes_again_is_acknowledged_whatever_else_there_is_to_do)
{
	struct roce_ep *re = roce_of(ep);

	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	comes(peer.psn + 1);
	cr_assert_not(peer_next(&peer, &k, rig_still), "%#x", k.op);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	for (int i = 0; i < 20000 && re->resp.ack_due; i++)
		reactor_turn(r, 0);
	cr_assert(peer_next(&peer, &k, rig_still), "it waits yet");
	cr_assert_eq(k.op, 0x11);
	cr_assert_eq(k.psn, peer.psn);
	rig_none();
}

/* One of the last message in the batch; there is one for all of them. */
Test(roce_responder, an_acknowledgement_that_does_not_wait_goes_before_the_work)
{
	uint32_t psn = peer.psn;

	asks_many(psn, 1);
	rig_answers(0x1f, psn);
	cr_assert_str_eq(before_out, "r", "it waited");
	asks_many(psn + 1, 1);
	rig_answers(0x1f, psn + 1);
	cr_assert_str_eq(before_out, "r");
	cr_assert_str_eq(seen, "rr");
	asks_many(psn + 2, 3);
	rig_answers(0x1f, psn + 4);
	cr_assert_str_eq(before_out, "rrrr");
	cr_assert_str_eq(seen, "rrrrr");
	rig_none();
}

/* It would be a packet more than with what goes out anyway. */
Test(roce_responder, one_that_has_company_goes_behind_the_work)
{
	uint32_t psn = peer.psn;

	roce_of(ep)->resp.wary = 2;
	asks_many(psn, 1);
	roce_of(ep)->resp.nak_due = 0x60; /* of an earlier one, without room until now */
	roce_of(ep)->resp.nak_psn = psn + 1;
	outs = 0;
	rig_sees("r");
	cr_assert_str_eq(before_out, "r");
	cr_assert_eq(outs, 1);
}

Test(roce_responder, an_acknowledgement_waits_for_few_packets)
{
	uint32_t rkey = rig_window(0, 16 * MTU, FAB_REMOTE_WRITE), psn = peer.psn;

	peer_reth(reth, rig_at(0), rkey, 15 * MTU);
	for (uint32_t i = 0; i < 15; i++)
		rig_asks(i == 0    ? 0x06
			 : i == 14 ? 0x08
				   : 0x07,
			psn + i, reth, i == 0 ? 16 : 0, text, MTU);
	comes(psn + 15);
	cr_assert_not(peer_next(&peer, &k, rig_still), "%#x", k.op);
	peer_reth(reth, rig_at(0), rkey, 10);
	rig_asks(0x0a, psn + 15, reth, 16, text, 10);
	comes(psn + 16);
	cr_assert(peer_next(&peer, &k, rig_still));
	cr_assert_eq(k.op, 0x11);
	cr_assert_eq(k.psn, psn + 15);
}

/* It would never sleep. */
Test(roce_responder, what_stands_behind_a_read_keeps_no_thread_awake)
{
	struct reactor_spin *turns = &roce_of(ep)->tx.turns;

	roce_of(ep)->resp.ack_due = true;
	cr_assert_not(turns->arm(turns));
	roce_of(ep)->resp.read_cnt = 1;
	cr_assert(turns->arm(turns));
	roce_of(ep)->resp.read_cnt = 0;
}

/* Of a count that goes on for days. */
Test(roce_responder, receives_are_in_order_when_their_count_begins_again)
{
	struct roce_responder *q = &roce_of(ep)->resp;

	q->first = q->end = UINT32_MAX - 2;
	for (uint32_t i = 0; i < RECVS; i++)
		rig_receive(1000 * i, 100, i);
	for (uint32_t i = 0; i < RECVS; i++) {
		rig_asks(0x04, peer.psn + i, NULL, 0, text + i, 5);
		rig_answers(0x1f, peer.psn + i);
		cr_assert_eq(cookie, i);
		cr_assert_arr_eq(mem + 1000 * i, text + i, 5);
	}
}

Test(roce_responder, a_loss_bounds_what_the_server_may_write)
{
	uint32_t rkey = rig_window(0, 16 * MTU, FAB_REMOTE_WRITE), psn = peer.psn;
	const uint64_t *most = &roce_impl.ep_caps(ep)->max_inbound;
	uint64_t before = 1 << 20;

	roce_of(ep)->inbound_most = roce_of(ep)->caps.max_inbound = before;
	peer_reth(reth, rig_at(0), rkey, 10);
	for (uint64_t left = before / 2; left > 0; left = left / 2 < 65536 ? 0 : left / 2) {
		rig_asks(0x0a, psn + 1, reth, 16, text, 10);
		rig_answers(0x60, psn);
		cr_assert_eq(*most, left, "%lu", (unsigned long)*most);
		rig_asks(0x0a, psn, reth, 16, text, 10);
		rig_answers(0x1f, psn++);
	}
	rig_asks(0x0a, psn + 1, reth, 16, text, 10);
	rig_answers(0x60, psn);
	cr_assert_eq(*most, 65536, "no less than that");
	/* All that it may write at a time came: there may be more. */
	for (uint32_t i = 0; i < 16; i++) {
		cr_assert_eq(*most, 65536, "%u", i);
		peer_reth(reth, rig_at(0), rkey, MTU);
		rig_asks(0x0a, psn + i, reth, 16, text, MTU);
		rig_answers(0x1f, psn + i);
	}
	cr_assert_eq(*most, 131072);
	roce_of(ep)->inbound_most = 140000;
	roce_of(ep)->resp.clean = 131071;
	peer_reth(reth, rig_at(0), rkey, 10);
	rig_asks(0x0a, psn + 16, reth, 16, text, 10);
	rig_answers(0x1f, psn + 16);
	cr_assert_eq(*most, 140000, "and no more than there is room for");
}

Test(roce_responder, acknowledgements_stand_behind_the_reads_before_them)
{
	uint32_t rkey = rig_window(1000, 10 * MTU, FAB_REMOTE_READ);

	rig_receive(0, 100, 1);
	rig_asks_read(peer.psn, rkey, 1000, MTU + 1);
	rig_asks(0x04, peer.psn + 2, NULL, 0, "hello", 5);
	rig_reads(0x0d, peer.psn, 1000, MTU);
	cr_assert_eq(k.msn, 1);
	rig_reads(0x0f, peer.psn + 1, 1000 + MTU, 1);
	rig_answers(0x1f, peer.psn + 2);
	cr_assert_eq(k.msn, 2);
	/* ... also if some of it is not to go out yet, as in the test of congestion. */
	rig_receive(0, 100, 2);
	peer_notify(&peer);
	rig_asks_read(peer.psn + 3, rkey, 1000, 10 * MTU);
	rig_asks(0x04, peer.psn + 13, NULL, 0, "hello", 5);
	for (uint32_t i = 0; i < 10; i++)
		rig_reads(i == 0   ? 0x0d
			  : i == 9 ? 0x0f
				   : 0x0e,
			peer.psn + 3 + i, 1000 + i * MTU, MTU);
	rig_answers(0x1f, peer.psn + 13);
}

/* A requester that hears of a later packet first takes the Read's answer for lost. */
Test(roce_responder, answers_are_in_order)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_READ);

	for (uint32_t i = 0; i < 2; i++)
		rig_receive(0, 100, i);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_asks_read(peer.psn + 1, rkey, 1000, 10);
	rig_reads(0x10, peer.psn + 1, 1000, 10);
	cr_assert_eq(k.msn, 2, "it acknowledges what is before it");
	rig_asks_read(peer.psn + 2, rkey, 1010, 10);
	rig_asks(0x04, peer.psn + 3, NULL, 0, "hello", 5);
	rig_asks_read(peer.psn + 4, rkey, 1020, 10);
	rig_reads(0x10, peer.psn + 2, 1010, 10);
	rig_reads(0x10, peer.psn + 4, 1020, 10);
	rig_none();
	/* A gap behind a Read; no receive behind one. */
	rig_asks_read(peer.psn + 5, rkey, 1030, 10);
	rig_asks(0x04, peer.psn + 7, NULL, 0, "hello", 5);
	rig_reads(0x10, peer.psn + 5, 1030, 10);
	rig_answers(0x60, peer.psn + 6);
	rig_asks_read(peer.psn + 6, rkey, 1040, 10);
	rig_asks(0x04, peer.psn + 7, NULL, 0, "hello", 5);
	rig_reads(0x10, peer.psn + 6, 1040, 10);
	rig_answers(0x20 | 12, peer.psn + 7);
	rig_none();
}

/* Its answer, which would acknowledge the Send, is not to go out yet: as in the test of congestion.
 */
Test(roce_responder, an_acknowledgement_does_not_wait_for_a_read_that_waits)
{
	uint32_t rkey = rig_window(0, 8 * MTU, FAB_REMOTE_READ);

	rig_receive(sizeof(mem) - 100, 100, 1);
	peer_notify(&peer);
	rig_asks_read(peer.psn, rkey, 0, 8 * MTU);
	rig_asks(0x04, peer.psn + 8, NULL, 0, "hello", 5);
	rig_asks_read(peer.psn + 9, rkey, 10, 10);
	for (uint32_t i = 0; i < 8; i++)
		rig_reads(i == 0 ? 0x0d : i == 7 ? 0x0f : 0x0e, peer.psn + i, i * MTU, MTU);
	rig_answers(0x1f, peer.psn + 8);
	cr_assert_eq(k.msn, 2, "the Read behind it is not in the count");
	rig_reads(0x10, peer.psn + 9, 10, 10);
	cr_assert_eq(k.msn, 3);
}

/* Packets that overtake each other: what was dropped is asked for, and nothing else. */
Test(roce_responder, what_came_after_all_is_not_asked_for)
{
	for (uint32_t i = 0; i < 4; i++)
		rig_receive(100 * i, 100, i);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3);
	rig_answers(0x1f, peer.psn);
	rig_answers(0x60, peer.psn + 1);
	rig_asks(0x04, peer.psn + 2, NULL, 0, "three", 5);
	rig_none();
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_answers(0x1f, peer.psn + 1);
	rig_asks(0x04, peer.psn + 3, NULL, 0, "four", 4);
	rig_asks(0x04, peer.psn + 2, NULL, 0, "three", 5);
	rig_asks(0x04, peer.psn + 3, NULL, 0, "four", 4);
	rig_answers(0x1f, peer.psn + 3);
	rig_none();
	rig_sees("rrrr");
}

static void asks_all(uint32_t first, uint32_t end)
{
	for (uint32_t psn = first; psn != end; psn++)
		rig_asks(0x04, psn, NULL, 0, "hello", 5);
}

/* One RNR NAK is for all that is under way; the peer sends again when its time is over. */
Test(roce_responder, what_is_lost_behind_an_rnr_nak_is_asked_for)
{
	const uint64_t long_ns = 3600 * NSEC_PER_SEC;
	struct roce_responder *q = &roce_of(ep)->resp;
	uint32_t psn = peer.psn;

	asks_all(psn, psn + 3);
	rig_answers(0x20 | 12, psn);
	cr_assert_leq(q->told_ns, reactor_now(r) + 640000);
	q->told_ns += long_ns;
	asks_all(psn + 3, psn + 5);
	rig_none();
	for (uint32_t i = 0; i < 5; i++)
		rig_receive(100 * i, 100, i);
	q->told_ns -= long_ns;
	while (reactor_now(r) < q->told_ns)
		rig_turn();
	asks_all(psn + 1, psn + 5);
	rig_answers(0x60, psn);
	asks_all(psn + 1, psn + 5);
	rig_none();
	asks_all(psn, psn + 5);
	rig_answers(0x1f, psn + 4);
	rig_none();
	rig_sees("rrrrr");
}

Test(roce_responder, a_gap_has_one_nak_however_long_it_is)
{
	asks_all(peer.psn + 1, peer.psn + 2);
	rig_answers(0x60, peer.psn);
	cr_assert_eq(roce_of(ep)->resp.told_ns, REACTOR_NEVER);
}

Test(roce_responder, numbers_of_packets_and_messages_begin_again_at_0)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_READ);

	roce_of(ep)->resp.psn = 0xfffffe;
	roce_of(ep)->resp.done_psn = 0xfffffd;
	roce_of(ep)->resp.msn = 0xfffffe;
	peer_counts_from(0xfffffe, 0xfffffe);
	rig_asks_read(0xfffffe, rkey, 1000, 3 * MTU);
	for (uint32_t i = 0; i < 3; i++)
		rig_reads((uint8_t)(0x0d + i), 0xfffffe + i, 1000 + i * MTU, MTU);
	cr_assert_eq(k.msn, 0xffffff);
	rig_receive(0, 100, 1);
	rig_asks(0x04, 1, NULL, 0, "hello", 5);
	rig_answers(0x1f, 1);
	cr_assert_eq(k.msn, 0);
	rig_asks(0x04, 3, NULL, 0, "hello", 5);
	rig_answers(0x60, 2);
	rig_asks_read(0xffffff, rkey, 1000 + MTU, 2 * MTU); /* from long ago */
	rig_reads(0x0d, 0xffffff, 1000 + MTU, MTU);
	rig_reads(0x0f, 0, 1000 + 2 * MTU, MTU);
}

/* Section 9.7.1: one half of all numbers is behind, the other one ahead. */
Test(roce_responder, half_of_all_numbers_is_behind)
{
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn + 0x7fffff, NULL, 0, "hello", 5);
	rig_answers(0x60, peer.psn);
	rig_asks(0x04, peer.psn - 0x7fffff, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn - 1);
	cr_assert_str_eq(seen, "");
}

Test(roce_responder, a_message_that_is_left_for_another_is_refused)
{
	static const struct {
		uint8_t begun, op;
	} bad[] = {{0x00, 0x04}, {0x00, 0x00}, {0x00, 0x07}, {0x00, 0x08}, {0x00, 0x0a},
		{0x06, 0x0a}, {0x06, 0x01}, {0x06, 0x02}, {0x06, 0x16}, {0x00, 0x0c}, {0x06, 0x0c}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t rkey = rig_window(0, 8 * MTU, FAB_REMOTE_WRITE | FAB_REMOTE_READ);
		size_t n = bad[i].op == 0x0c || bad[i].op == 0x16 ? 4 : MTU;
		size_t ext_len = bad[i].op == 0x16                        ? 4
				 : bad[i].op == 0x0a || bad[i].op == 0x0c ? 16
									  : 0;

		peer_reth(reth, rig_at(0), rkey, 2 * MTU);
		rig_receive(9 * MTU, 4 * MTU, 1);
		rig_asks(bad[i].begun, peer.psn, reth, bad[i].begun == 0x06 ? 16 : 0, text, MTU);
		rig_asks(bad[i].op, peer.psn + 1, reth, ext_len, text, bad[i].op == 0x0c ? 0 : n);
		rig_answers(0x61, peer.psn + 1);
		rig_sees("Df.");
		rig_connect_again();
	}
}

/* Section 9.7.4.1.3: atomic operations, Writes with immediate data, reserved. */
Test(roce_responder, what_is_not_done_here_is_refused)
{
	static const struct {
		uint8_t op;
		size_t ext;
	} others[] = {
		{0x13, 28}, {0x14, 28}, {0x15, 0}, {0x18, 0}, {0x1f, 16}, {0x09, 4}, {0x0b, 20}};
	static const uint8_t ext[28];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		rig_receive(0, 100, 1);
		rig_asks(others[i].op, peer.psn - 1, ext, others[i].ext, NULL, 0);
		if (others[i].op < 0x10) /* a Send or Write of before */
			rig_answers(0x1f, peer.psn - 1);
		rig_none();
		rig_asks(others[i].op, peer.psn + 1, ext, others[i].ext, NULL, 0);
		rig_answers(0x60, peer.psn);
		rig_asks(others[i].op, peer.psn, ext, others[i].ext, NULL, 0);
		rig_answers(0x61, peer.psn);
		rig_sees("Df.");
		rig_connect_again();
	}
}

/* RPC-over-RDMA has none, and takes the message all the same. */
Test(roce_responder, immediate_data_of_a_send_is_passed_over)
{
	static const uint8_t imm[4] = {1, 2, 3, 4};

	for (uint32_t i = 0; i < 2; i++)
		rig_receive(0, 3 * MTU, i);
	rig_asks(0x05, peer.psn, imm, 4, "hello", 5);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	cr_assert_eq(len, 5);
	cr_assert_eq(inv, 0);
	cr_assert_arr_eq(mem, "hello", 5);
	rig_asks(0x00, peer.psn + 1, NULL, 0, text, MTU);
	rig_asks(0x03, peer.psn + 2, imm, 4, "end", 3);
	rig_answers(0x1f, peer.psn + 2);
	rig_sees("rr");
	cr_assert_eq(len, MTU + 3);
	cr_assert_arr_eq(mem + MTU, "end", 3);
}

/* One that says how far the Write goes, and goes further; it ends before that. */
Test(roce_responder, a_write_of_several_packets_keeps_its_length)
{
	for (int i = 0; i < 2; i++) {
		uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_WRITE);

		memset(text, 'w', sizeof(text));
		peer_reth(reth, rig_at(1000), rkey, i == 0 ? MTU + 4 : MTU + 12);
		rig_asks(0x06, peer.psn, reth, 16, text, MTU);
		rig_asks(0x08, peer.psn + 1, NULL, 0, text, 8);
		rig_answers(0x61, peer.psn + 1);
		rig_sees("D.");
		/* Within it memory has no defined contents before the end (roce_rx_place()). */
		cr_assert_neq(mem[1000 + MTU + (i == 0 ? 4 : 12)], 'w');
		rig_connect_again();
	}
}

Test(roce_responder, memory_that_is_closed_within_a_write_is_not_written)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_WRITE);

	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1000), rkey, 2 * MTU);
	rig_asks(0x06, peer.psn, reth, 16, text, MTU);
	rig_none();
	cr_assert_eq(mem[1000 + MTU - 1], 'w');
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	rig_sees("i");
	rig_asks(0x08, peer.psn + 1, NULL, 0, text, MTU);
	rig_answers(0x62, peer.psn + 1);
	rig_sees("iD.");
	cr_assert_neq(mem[1000 + MTU], 'w');
}

Test(roce_responder, a_registration_opens_what_it_says)
{
	struct fab_mr *whole = roce_impl.mr_reg(ep, mem + 1000, 100, FAB_REMOTE_WRITE, false);
	uint32_t rkey = roce_impl.mr_rkey(whole);

	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1000), rkey, 100);
	rig_asks(0x0a, peer.psn, reth, 16, text, 100);
	rig_answers(0x1f, peer.psn);
	cr_assert_arr_eq(mem + 1000, text, 100);
	roce_impl.mr_dereg(whole);
	rig_asks(0x0a, peer.psn + 1, reth, 16, text, 100);
	rig_answers(0x62, peer.psn + 1);
	rig_sees("D.");
}

/* ---- Reads ---- */

TestSuite(roce_reading, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_reading, as_many_as_agreed_on_are_answered)
{
	uint32_t rkey = rig_window(0, 2000, FAB_REMOTE_READ);
	struct roce_responder *q = &roce_of(ep)->resp;

	cr_assert_eq(peer.req[35], ROCE_READS);
	for (uint32_t i = 0; i < ROCE_READS; i++)
		rig_asks_read(peer.psn + i, rkey, 10 * i, 10);
	for (uint32_t i = 0; i < ROCE_READS; i++) {
		rig_reads(0x10, peer.psn + i, 10 * i, 10);
		cr_assert_leq(k.msn, ROCE_READS);
	}
	/* All but one wait for their answers, and two more come. */
	for (q->read_cnt = 0; q->read_cnt < ROCE_READS - 1; q->read_cnt++)
		*roce_read_at(q, q->read_cnt) =
			(struct roce_read){.psn = peer.psn + ROCE_READS + q->read_cnt,
				.packets = 1,
				.rkey = rkey,
				.va = rig_at(0),
				.len = 10};
	q->psn = roce_wire_psn_add(q->psn, ROCE_READS - 1);
	peer_counts_from(q->psn, ROCE_READS);
	for (uint32_t i = 2 * ROCE_READS - 1; i <= 2 * ROCE_READS; i++)
		rig_asks_read(peer.psn + i, rkey, 0, 10);
	rig_answers(0x61, peer.psn + 2 * ROCE_READS);
	rig_sees("D.");
}

/* So many of one packet each, from the n-th on; their answers. */
static void asks_short(uint32_t rkey, uint32_t n, uint32_t cnt)
{
	for (uint32_t i = n; i < n + cnt; i++)
		rig_asks_read(peer.psn + i, rkey, i * MTU, MTU);
}

static void reads_short(uint32_t n, uint32_t cnt)
{
	for (uint32_t i = n; i < n + cnt; i++)
		rig_reads(0x10, peer.psn + i, i * MTU, MTU);
}

Test(roce_reading, those_that_come_together_are_answered_together)
{
	uint32_t rkey = rig_window(0, 5 * MTU, FAB_REMOTE_READ);

	outs = 0;
	asks_short(rkey, 0, 4);
	for (uint32_t i = 0; i < 4; i++) {
		reads_short(i, 1);
		cr_assert_eq(k.msn, i + 1);
		cr_assert_eq(k.id, i, "the kernel cut them");
	}
	cr_assert_eq(outs, 1);
	/* One of another length is no part of it. */
	asks_short(rkey, 4, 1);
	rig_asks_read(peer.psn + 5, rkey, 10, 10);
	reads_short(4, 1);
	cr_assert_eq(k.id, 0);
	rig_reads(0x10, peer.psn + 5, 10, 10);
	cr_assert_eq(k.id, 0);
	cr_assert_eq(outs, 2);
}

/* Its last packet has come. */
static void reads_long(uint32_t psn, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		rig_reads(i == 0 ? 0x0d : i == cnt - 1 ? 0x0f : 0x0e, psn + i, i * MTU, MTU);
}

Test(roce_reading, a_long_one_does_not_wait_for_those_behind_it)
{
	uint32_t rkey = rig_window(0, 16 * MTU, FAB_REMOTE_READ), psn = peer.psn;

	outs = 0;
	rig_asks_read(psn, rkey, 0, 16 * MTU);
	rig_asks_read(psn + 16, rkey, 0, 16 * MTU);
	rig_asks_read(psn + 32, rkey, 0, MTU);
	reads_long(psn, 16);
	reads_long(psn + 16, 16);
	rig_reads(0x10, psn + 32, 0, MTU);
	cr_assert_eq(outs, 3);
	/* One packet less is no long one. */
	outs = 0;
	rig_asks_read(psn + 33, rkey, 0, 15 * MTU);
	rig_asks_read(psn + 48, rkey, 0, MTU);
	reads_long(psn + 33, 15);
	rig_reads(0x10, psn + 48, 0, MTU);
	cr_assert_eq(outs, 1);
}

/* Each packet is a datagram. */
static void one_by_one(void)
{
	roce_of(ep)->tx.trains.state = ROCE_TRAINS_OFF;
}

Test(roce_reading, an_acknowledgement_behind_one_goes_with_it)
{
	uint32_t rkey = rig_window(0, 4 * MTU, FAB_REMOTE_READ);

	rig_receive(5 * MTU, 100, 1);
	asks_short(rkey, 0, 1);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "hello", 5);
	reads_short(0, 1);
	cr_assert_eq(k.id, 0);
	rig_answers(0x1f, peer.psn + 1);
	cr_assert_eq(k.id, 1, "the kernel cut them");
	/* Where no train arrives all of it goes out again, one by one. */
	asks_short(rkey, 0, 1);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "hello", 5);
	reads_short(0, 1);
	rig_answers(0x1f, peer.psn + 1);
	cr_assert_eq(k.id, 0);
	cr_assert_eq(roce_of(ep)->tx.trains.lost, 1);
	/* A NAK is none of them. */
	asks_short(rkey, 2, 1);
	rig_asks(0x04, peer.psn + 4, NULL, 0, "hello", 5);
	reads_short(2, 1);
	rig_answers(0x60, peer.psn + 3);
	cr_assert_eq(k.id, 0);
}

Test(roce_reading, those_behind_the_one_without_room_follow_it)
{
	uint32_t rkey = rig_window(0, 4 * MTU, FAB_REMOTE_READ);
	struct roce_responder *q = &roce_of(ep)->resp;

	one_by_one();
	room = 1;
	asks_short(rkey, 0, 4);
	reads_short(0, 1);
	cr_assert_eq(q->read_cnt, 3);
	cr_assert_eq(q->pace.sent + q->pace.before, 1, "they are no part of the rate");
	room = UINT32_MAX;
	reads_short(1, 3);
	cr_assert_eq(q->read_cnt, 0);
	rig_none();
}

/* A Read of before; the endpoint has looked at it. */
static void asks_again(uint32_t psn, uint32_t rkey, size_t off, uint32_t n)
{
	uint64_t twice = stats.packets_twice;

	rig_asks_read(psn, rkey, off, n);
	for (int i = 0; i < 20000 && stats.packets_twice == twice; i++)
		rig_turn();
	cr_assert_eq(stats.packets_twice, twice + 1);
}

Test(roce_reading, one_that_comes_twice_is_answered_twice)
{
	uint32_t rkey = rig_window(1000, 2 * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 3; i++) {
		rig_asks_read(peer.psn, rkey, 1000, 2 * MTU);
		rig_reads(0x0d, peer.psn, 1000, MTU);
		rig_reads(0x0f, peer.psn + 1, 1000 + MTU, MTU);
		cr_assert_eq(k.msn, 1, "it is one message");
	}
	/* Before all of it went out: it is one of what is left. */
	one_by_one();
	room = 1;
	rig_asks_read(peer.psn + 2, rkey, 1000, 2 * MTU);
	rig_reads(0x0d, peer.psn + 2, 1000, MTU);
	asks_again(peer.psn + 3, rkey, 1000 + MTU, MTU);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn + 3, 1000 + MTU, MTU);
	cr_assert_eq(k.msn, 2);
	rig_none();
}

/* The first two packets of a window of so many bytes have been read. Its key. */
static uint32_t has_read_two(uint64_t n)
{
	uint32_t rkey = rig_window(0, n, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 0, 2 * MTU);
	rig_reads(0x0d, peer.psn, 0, MTU);
	rig_reads(0x0f, peer.psn + 1, MTU, MTU);
	return rkey;
}

/* Packets on the wire are in the order of their PSNs: the peer drops those that are not. */
Test(roce_reading, one_that_comes_twice_is_answered_before_those_behind_it)
{
	uint32_t rkey = has_read_two(3 * MTU);

	room = 0;
	rig_asks_read(peer.psn + 2, rkey, 2 * MTU, MTU);
	asks_again(peer.psn + 1, rkey, MTU, MTU);
	asks_again(peer.psn + 2, rkey, 2 * MTU, MTU);
	cr_assert_eq(roce_of(ep)->resp.read_cnt, 2);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn + 1, MTU, MTU);
	rig_reads(0x10, peer.psn + 2, 2 * MTU, MTU);
	rig_none();
}

/* The peer drops the packets of it that came before those. */
Test(roce_reading, one_that_is_half_out_begins_anew_behind_one_that_comes_twice)
{
	uint32_t rkey = rig_window(0, 4 * MTU, FAB_REMOTE_READ);
	const struct roce_packet first = {
		.psn = peer.psn & 0xffffff, .rkey = rkey, .va = rig_at(0), .dma_len = MTU};

	one_by_one();
	rig_asks_read(peer.psn, rkey, 0, MTU);
	rig_reads(0x10, peer.psn, 0, MTU);
	room = 2;
	rig_asks_read(peer.psn + 1, rkey, MTU, 3 * MTU);
	rig_reads(0x0d, peer.psn + 1, MTU, MTU);
	rig_reads(0x0e, peer.psn + 2, 2 * MTU, MTU);
	/* It comes now: else the socket, which is full, would have the other one begin anew. */
	rig_asks_read(peer.psn, rkey, 0, MTU);
	cr_assert_eq(roce_read_take(roce_of(ep), &first, false), ROCE_READ_AGAIN);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn, 0, MTU);
	for (uint32_t i = 1; i < 4; i++)
		rig_reads((uint8_t)(0x0c + i), peer.psn + i, i * MTU, MTU);
}

/* A Read of 6 packets, of which 3 have gone out. */
static uint32_t half_out(void)
{
	uint32_t rkey = rig_window(0, 8 * MTU, FAB_REMOTE_READ);

	one_by_one();
	room = 3;
	rig_asks_read(peer.psn, rkey, 0, 6 * MTU);
	for (uint32_t i = 0; i < 3; i++)
		rig_reads(i == 0 ? 0x0d : 0x0e, peer.psn + i, i * MTU, MTU);
	return rkey;
}

/* Of the five packets from the second one on; then of the two from the third. */
Test(roce_reading, one_that_comes_twice_is_one_of_what_is_left)
{
	uint32_t rkey = half_out();

	asks_again(peer.psn + 1, rkey, MTU, 5 * MTU);
	room = 2;
	rig_reads(0x0d, peer.psn + 1, MTU, MTU);
	rig_reads(0x0e, peer.psn + 2, 2 * MTU, MTU);
	asks_again(peer.psn + 2, rkey, 2 * MTU, 2 * MTU);
	room = UINT32_MAX;
	rig_reads(0x0d, peer.psn + 2, 2 * MTU, MTU);
	rig_reads(0x0f, peer.psn + 3, 3 * MTU, MTU);
	rig_none();
}

Test(roce_reading, one_that_comes_twice_is_answered_from_where_it_says)
{
	uint32_t rkey = half_out();

	asks_again(peer.psn + 4, rkey, 6 * MTU, MTU + 4);
	room = UINT32_MAX;
	rig_reads(0x0d, peer.psn + 4, 6 * MTU, MTU);
	rig_reads(0x0f, peer.psn + 5, 7 * MTU, 4);
	rig_none();
}

Test(roce_reading, one_that_comes_twice_is_part_of_one_that_waits)
{
	uint32_t rkey = half_out();

	rig_asks_read(peer.psn + 6, rkey, 6 * MTU, MTU);
	asks_again(peer.psn + 5, rkey, 0, 2 * MTU);
	asks_again(peer.psn - 1, rkey, 0, 2 * MTU);
	room = UINT32_MAX;
	for (uint32_t i = 3; i < 6; i++)
		rig_reads(i == 5 ? 0x0f : 0x0e, peer.psn + i, i * MTU, MTU);
	rig_reads(0x10, peer.psn + 6, 6 * MTU, MTU);
	rig_none();
}

/* A Read that has its answer is asked for in pieces, then as a whole. */
Test(roce_reading, one_that_comes_twice_takes_the_place_of_its_pieces)
{
	uint32_t rkey = rig_window(0, 4 * MTU, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 0, 4 * MTU);
	for (uint32_t i = 0; i < 4; i++)
		rig_reads(i == 0 ? 0x0d : i == 3 ? 0x0f : 0x0e, peer.psn + i, i * MTU, MTU);
	room = 0;
	rig_asks_read(peer.psn + 4, rkey, 0, 10);
	for (uint32_t i = 0; i < 4; i++)
		asks_again(peer.psn + i, rkey, i * MTU, MTU);
	cr_assert_eq(roce_of(ep)->resp.read_cnt, 5);
	asks_again(peer.psn + 1, rkey, MTU, 3 * MTU);
	cr_assert_eq(roce_of(ep)->resp.read_cnt, 3);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn, 0, MTU);
	for (uint32_t i = 1; i < 4; i++)
		rig_reads((uint8_t)(0x0c + i), peer.psn + i, i * MTU, MTU);
	rig_reads(0x10, peer.psn + 4, 0, 10);
	rig_none();
}

/* From the last one to the first: there is no room for the first ones. */
Test(roce_reading, so_many_that_come_twice_have_room)
{
	uint32_t rkey = rig_window(0, 1000, FAB_REMOTE_READ);
	const uint32_t most = ROCE_READ_QUEUE / 2;

	for (uint32_t i = 0; i < most + 4; i++) {
		rig_asks_read(peer.psn + i, rkey, 10 * i, 10);
		rig_reads(0x10, peer.psn + i, 10 * i, 10);
	}
	room = 0;
	for (uint32_t i = most + 4; i > 0; i--)
		asks_again(peer.psn + i - 1, rkey, 10 * (i - 1), 10);
	cr_assert_eq(roce_of(ep)->resp.read_cnt, most);
	room = UINT32_MAX;
	for (uint32_t i = 4; i < most + 4; i++)
		rig_reads(0x10, peer.psn + i, 10 * i, 10);
	rig_none();
}

/* A Read of two packets, of which so many have gone out, comes twice more; its key is closed. */
static void closes(unsigned int out)
{
	uint32_t rkey = rig_window(1000, 2 * MTU, FAB_REMOTE_READ);

	one_by_one();
	room = out;
	rig_asks_read(peer.psn, rkey, 1000, 2 * MTU);
	if (out > 0)
		rig_reads(0x0d, peer.psn, 1000, MTU);
	for (int i = 0; i < 2; i++)
		asks_again(peer.psn, rkey, 1000, 2 * MTU);
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	room = UINT32_MAX;
}

/* The peer waits for it, however often it asked. */
Test(roce_reading, one_that_is_closed_before_its_answer_is_refused)
{
	closes(0);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.read_cnt > 0; i++)
		rig_turn();
	cr_assert_neq(roce_of(ep)->state, ROCE_UP);
	rig_answers(0x62, peer.psn);
	rig_sees("iD.");
}

Test(roce_reading, one_that_is_closed_within_its_second_answer_ends)
{
	closes(1);
	rig_none();
	rig_sees("i");
}

/* Of memory that is open yet. */
Test(roce_reading, those_behind_one_that_ends_are_answered)
{
	struct fab_mr *whole = roce_impl.mr_reg(ep, mem, sizeof(mem), FAB_REMOTE_READ, false);
	uint32_t rkey = rig_window(1000, MTU, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	room = 0;
	asks_again(peer.psn, rkey, 1000, 10);
	rig_asks_read(peer.psn + 1, roce_impl.mr_rkey(whole), 2000, 10);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.read_cnt < 2; i++)
		rig_turn();
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn + 1, 2000, 10);
	cr_assert_eq(roce_of(ep)->resp.read_cnt, 0);
	rig_none();
	rig_sees("i");
}

Test(roce_reading, what_comes_twice_may_be_closed_by_then)
{
	uint32_t rkey = rig_window(1000, MTU, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	rig_sees("i");
	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_none();
	rig_asks_read(peer.psn + 1, rkey, 1000, 10);
	rig_answers(0x62, peer.psn + 1);
	rig_sees("iD.");
}

Test(roce_reading, one_that_comes_twice_asks_for_no_more_than_before)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 1000, MTU + 1);
	rig_reads(0x0d, peer.psn, 1000, MTU);
	rig_reads(0x0f, peer.psn + 1, 1000 + MTU, 1);
	rig_asks_read(peer.psn, rkey, 1000, 3 * MTU);
	rig_asks_read(peer.psn + 1, rkey, 1000, MTU + 1);
	rig_none();
	rig_asks_read(peer.psn + 1, rkey, 1000 + MTU, 1);
	rig_reads(0x10, peer.psn + 1, 1000 + MTU, 1);
}

/* From a quarter of all PSNs to a half: it could seem to be ahead while it waits. */
Test(roce_reading, one_from_far_behind_does_not_come_again)
{
	uint32_t rkey = rig_window(1000, 10, FAB_REMOTE_READ);

	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	roce_of(ep)->resp.psn = roce_wire_psn_add(peer.psn, ROCE_READ_FAR - 1);
	asks_again(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	for (uint32_t n = 1; n <= 2; n++) {
		roce_of(ep)->resp.psn = roce_wire_psn_add(peer.psn, n * ROCE_READ_FAR);
		asks_again(peer.psn, rkey, 1000, 10);
		rig_none();
	}
}

/* Nothing is taken that leaves a Read that waits further behind. */
Test(roce_reading, one_that_waits_far_behind_is_answered_before_more_is_taken)
{
	uint32_t rkey = rig_window(1000, 10, FAB_REMOTE_READ);
	uint32_t far = roce_wire_psn_add(peer.psn, ROCE_READ_FAR - 1);

	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	roce_of(ep)->resp.psn = far;
	peer_counts_from(far, 1);
	room = 0;
	asks_again(peer.psn, rkey, 1000, 10);
	for (uint32_t i = 0; i < 2; i++) {
		rig_receive(100 * i, 100, i);
		rig_asks(0x04, far + i, NULL, 0, "hello", 5);
		rig_none();
	}
	rig_sees("r");
	cr_assert_eq(roce_of(ep)->resp.psn, (far + 1) & ROCE_PSN_MASK);
	room = UINT32_MAX;
	rig_reads(0x10, peer.psn, 1000, 10);
	rig_answers(0x1f, far);
	rig_asks(0x04, far + 1, NULL, 0, "hello", 5);
	rig_answers(0x1f, far + 1);
	rig_sees("rr");
}

/* Linux' rxe once forgot that a Write had begun. */
Test(roce_reading, one_that_comes_twice_does_not_disturb_a_write)
{
	uint32_t rkey = rig_window(1000, 4 * MTU, FAB_REMOTE_READ | FAB_REMOTE_WRITE);

	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1000 + MTU), rkey, MTU + 4);
	rig_asks(0x06, peer.psn + 1, reth, 16, text, MTU);
	rig_asks_read(peer.psn, rkey, 1000, 10);
	rig_reads(0x10, peer.psn, 1000, 10);
	rig_asks(0x08, peer.psn + 2, NULL, 0, text, 4);
	rig_answers(0x1f, peer.psn + 2);
	cr_assert_arr_eq(mem + 1000 + MTU, text, MTU + 4);
	cr_assert_str_eq(seen, "");
}

Test(roce_reading, one_with_data_is_refused)
{
	uint32_t rkey = rig_window(1000, MTU, FAB_REMOTE_READ);

	peer_reth(reth, rig_at(1000), rkey, 10);
	rig_asks(0x0c, peer.psn, reth, 16, text, 4);
	rig_answers(0x61, peer.psn);
	rig_sees("D.");
}

/* ---- Send with Invalidate ---- */

/*
 * The notice and the Read are there before the endpoint looks, and both are looked at by the time
 * of one turn of the reactor. The rest follows in later ones.
 */
Test(roce_reading, congestion_makes_answers_slower)
{
	uint32_t rkey = rig_window(0, 12 * MTU, FAB_REMOTE_READ);

	peer_notify(&peer);
	rig_asks_read(peer.psn, rkey, 0, 12 * MTU);
	for (int i = 0; i < 1000 && roce_of(ep)->resp.read_cnt == 0; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->resp.reads[roce_of(ep)->resp.read_first].done, 8);
	cr_assert(reactor_timer_armed(&roce_of(ep)->resp.pace_timer));
	for (uint32_t i = 0; i < 12; i++)
		rig_reads(i == 0 ? 0x0d : i == 11 ? 0x0f : 0x0e, peer.psn + i, i * MTU, MTU);
	rig_none();
}

Test(roce_reading, one_that_is_asked_for_again_makes_answers_slower)
{
	uint32_t rkey = has_read_two(12 * MTU);

	cr_assert_eq(roce_of(ep)->resp.pace.limit, 0);
	rig_asks_read(peer.psn + 1, rkey, MTU, MTU);
	rig_reads(0x10, peer.psn + 1, MTU, MTU);
	cr_assert_neq(roce_of(ep)->resp.pace.limit, 0);
}

/* ---- trains of short answers ---- */

/* So many at once are answered by one train, or packet by packet. */
static void go_short(uint32_t rkey, uint32_t n, uint32_t cnt, bool in_a_train)
{
	roce_of(ep)->resp.pace = (struct roce_pace){0};
	asks_short(rkey, n, cnt);
	reads_short(n, cnt);
	cr_assert_eq(k.id, in_a_train ? cnt - 1 : 0, "%#x", k.id);
}

Test(roce_reading, short_ones_are_not_cut_when_only_that_is_lost)
{
	uint32_t rkey = rig_window(0, 3 * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 8; i++) {
		go_short(rkey, 0, 3, true);
		go_short(rkey, 0, 3, false);
		peer.psn += 3;
	}
	go_short(rkey, 0, 3, false);
	cr_assert_eq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_OFF);
}

/* They are as long as each other. */
static void goes_by_two(uint32_t rkey, bool in_a_train)
{
	roce_of(ep)->resp.pace = (struct roce_pace){0};
	rig_asks_read(peer.psn, rkey, 0, 2 * MTU);
	rig_reads(0x0d, peer.psn, 0, MTU);
	rig_reads(0x0f, peer.psn + 1, MTU, MTU);
	cr_assert_eq(k.id, in_a_train, "%#x", k.id);
}

Test(roce_reading, nor_those_of_two_packets)
{
	uint32_t rkey = rig_window(0, 2 * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 8; i++) {
		goes_by_two(rkey, true);
		goes_by_two(rkey, false);
		peer.psn += 2;
	}
	goes_by_two(rkey, false);
}

/* A packet is lost; all behind it, which may have arrived, is asked for with it. */
Test(roce_reading, what_is_asked_for_behind_a_loss_was_not_lost)
{
	uint32_t rkey = rig_window(0, 6 * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 12; i++) {
		go_short(rkey, 0, 3, true);
		go_short(rkey, 3, 3, true);
		go_short(rkey, 1, 5, false);
		peer.psn += 6;
	}
	cr_assert_eq(roce_of(ep)->tx.trains.lost, 0);
	cr_assert_eq(roce_of(ep)->tx.trains.psn_cnt, 12, "nor does one know that it was not");
}

/* A long one behind it is noted before it. */
Test(roce_reading, a_train_before_a_long_read_counts)
{
	uint32_t rkey = rig_window(0, 14 * MTU, FAB_REMOTE_READ);
	const struct roce_trains *t = &roce_of(ep)->tx.trains;

	asks_short(rkey, 0, 2);
	rig_asks_read(peer.psn + 2, rkey, 2 * MTU, 12 * MTU);
	reads_short(0, 2);
	cr_assert_eq(k.id, 1);
	for (uint32_t i = 0; i < 12; i++)
		rig_reads(i == 0    ? 0x0d
			  : i == 11 ? 0x0f
				    : 0x0e,
			peer.psn + 2 + i, (2 + i) * MTU, MTU);
	cr_assert_eq(t->psn_cnt, 2);
	go_short(rkey, 0, 2, false);
	cr_assert_eq(t->lost, 1);
}

TestSuite(roce_invalidate, .init = rig_set_up, .fini = rig_tear_down);

static const uint8_t *ieth(uint32_t rkey)
{
	static uint8_t ext[4];

	for (int i = 0; i < 4; i++)
		ext[i] = (uint8_t)(rkey >> (24 - 8 * i));
	return ext;
}

Test(roce_invalidate, it_is_done_with_the_last_packet)
{
	uint32_t rkey = rig_window(0, 100, FAB_REMOTE_WRITE);

	rig_receive(1000, 3 * MTU, 3);
	rig_asks(0x00, peer.psn, NULL, 0, text, MTU);
	rig_none();
	cr_assert_not_null(
		roce_key_find(roce_of(ep), rkey, rig_at(0), 100, FAB_REMOTE_WRITE), "not yet");
	rig_asks(0x16, peer.psn + 1, ieth(rkey), 4, text, 5);
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("r");
	cr_assert_eq(len, MTU + 5);
	cr_assert_eq(inv, rkey);
	cr_assert_null(roce_key_find(roce_of(ep), rkey, rig_at(0), 100, FAB_REMOTE_WRITE));
	rig_asks(0x16, peer.psn + 1, ieth(rkey), 4, text, 5); /* twice: it is not looked at */
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("r");
}

Test(roce_invalidate, a_registration_stays)
{
	struct fab_mr *whole = roce_impl.mr_reg(ep, mem, 100, FAB_REMOTE_WRITE, false);

	rig_receive(1000, 100, 3);
	rig_asks(0x17, peer.psn, ieth(roce_impl.mr_rkey(whole)), 4, text, 5);
	rig_answers(0x62, peer.psn);
	rig_sees("Df.");
	roce_impl.mr_dereg(whole);
}
