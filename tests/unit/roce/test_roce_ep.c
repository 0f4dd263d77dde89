/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of RoCEv2 in this process, against a strict peer on the loopback.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "roce_read.h"
#include "roce_rig.h"

/* The kernel's, but for a socket that a test says is full, or one that swallows all and counts it.
 */
static bool is_full;
static bool swallows;
static size_t swallowed;
/* Receives have this many calls' packets of nobody first. */
static unsigned int junk, junk_read;

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *ts)
{
	if (junk == 0)
		return (int)syscall(SYS_recvmmsg, fd, msgs, cnt, flags, ts);
	junk--;
	junk_read++;
	for (unsigned int i = 0; i < cnt; i++)
		msgs[i].msg_len = 0;
	return (int)cnt;
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	if (is_full) {
		errno = EAGAIN;
		return -1;
	}
	if (!swallows)
		return (int)syscall(SYS_sendmmsg, fd, msgs, cnt, flags);
	for (unsigned int i = 0; i < cnt; i++)
		for (size_t n = 0; n < msgs[i].msg_hdr.msg_iovlen; n++)
			swallowed += msgs[i].msg_hdr.msg_iov[n].iov_len;
	return (int)cnt;
}

/* ---- connecting ---- */

TestSuite(roce_conn, .init = rig_make, .fini = rig_tear_down);

Test(roce_conn, private_data_goes_both_ways)
{
	static const uint8_t none[ROCE_MAD_REQ_PRIV];

	rig_connect(OURS);
	cr_assert_arr_eq(peer.req + 140 + 36, "private", 7);
	cr_assert_arr_eq(peer.req + 140 + 36 + 7, none, ROCE_MAD_REQ_PRIV - 7, "padded");
	cr_assert_eq(last.priv_len, PEER_PRIV);
	cr_assert_arr_eq(priv, "answer", 6);
}

Test(roce_conn, what_it_is_is_known)
{
	struct fab_path path;

	cr_assert_not(roce_impl.ep_path(ep, &path));
	rig_connect(OURS);
	cr_assert(roce_impl.ep_path(ep, &path));
	cr_assert_eq(path.local_qpn, peer.qpn);
	cr_assert_eq(path.remote_qpn, PEER_QPN);
	cr_assert_eq(path.local_psn, OURS);
	cr_assert_eq(path.remote_psn, peer.psn);
	cr_assert_eq(path.mtu, MTU);
	cr_assert_eq(path.ack_tries, 3);
	cr_assert_str_eq(roce_impl.ep_name(ep), "soft 127.0.0.2:20049");
}

Test(roce_conn, numbers_are_not_those_of_before)
{
	struct peer before;

	rig_connect(OURS);
	before = peer;
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	peer_send_mad(&peer, 0x16, (uint8_t[232]){0});
	roce_of(ep)->conn.dreq_tries = 0;
	rig_connect(OURS);
	cr_assert_neq(peer.qpn, before.qpn);
	cr_assert_neq(peer.id, before.id);
	cr_assert_neq(peer.psn, before.psn);
	cr_assert_neq(peer.req_tid, before.req_tid);
	cr_assert_arr_neq(peer.req + 16, before.req + 16, 8, "CA GUID");
}

/* That is in the name of a socket, which all users see. */
Test(roce_conn, an_id_has_more_than_the_number_of_its_queue_pair)
{
	uint32_t more;

	rig_connect(OURS);
	more = peer.id;
	for (int i = 0; i < 4; i++) {
		roce_impl.ep_disconnect(ep);
		rig_sees(".");
		rig_connect_again();
		more |= peer.id;
	}
	cr_assert_neq(more >> 24, 0, "by chance one in 2^40");
}

Test(roce_conn, one_that_is_refused)
{
	uint8_t rej[232] = {0};

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	peer_take_req(&peer, rig_turn);
	memcpy(rej + 4, peer.req, 4);
	rej[11] = 8; /* nobody listens */
	peer_send_mad(&peer, 0x12, rej);
	rig_sees("RF");
	cr_assert_eq(last.err, -ECONNREFUSED);
	cr_assert_eq(last.step, FAB_STEP_CONNECT);
	cr_assert_str_eq(roce_impl.ep_why(ep), "", "NFS knows what should listen");
}

Test(roce_conn, reasons_of_a_refusal_are_told)
{
	static const struct {
		uint8_t reason;
		int err;
		const char *says;
	} reasons[] = {{1, -ECONNREFUSED, "no room"}, {3, -ECONNREFUSED, "reason 3"},
		{4, -ETIMEDOUT, "firewall"}, {10, -ECONNRESET, "of before"},
		{28, -ECONNREFUSED, "NFS refuses"}, {33, -ECONNREFUSED, "reason 33"}};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		uint8_t rej[232] = {0};

		rig_resolve();
		cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
		peer_take_req(&peer, rig_turn);
		memcpy(rej + 4, peer.req, 4);
		rej[11] = reasons[i].reason;
		peer_send_mad(&peer, 0x12, rej);
		rig_sees("RF");
		cr_assert_eq(last.err, reasons[i].err);
		cr_assert_not_null(
			strstr(roce_impl.ep_why(ep), reasons[i].says), "%s", roce_impl.ep_why(ep));
	}
}

/* Of what they know each other by, a part is in the name of a socket, which all users see. */
Test(roce_conn, an_answer_of_another_transaction_is_none)
{
	uint8_t rej[232] = {0};
	uint64_t deadline;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	reactor_timer_in(r, &roce_of(ep)->conn.timer, 60 * NSEC_PER_SEC);
	peer_take_req(&peer, rig_turn);
	memcpy(rej + 4, peer.req, 4);
	rej[11] = 8;
	deadline = roce_of(ep)->conn.timer.deadline_ns;
	peer.tid ^= 1;
	peer_send_mad(&peer, 0x12, rej);
	peer_send_mad(&peer, 0x11, rej);
	peer_send_rep(&peer, OURS, NULL, 0);
	rig_none();
	cr_assert_str_eq(seen, "R");
	cr_assert_eq(roce_of(ep)->conn.timer.deadline_ns, deadline);
	peer.tid ^= 1;
	peer_send_rep(&peer, OURS, NULL, 0);
	rig_sees("RE");
}

Test(roce_conn, a_path_mtu_that_is_refused_is_halved)
{
	struct fab_path path;
	uint8_t rej[232] = {0};
	uint64_t tid = 0;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	for (unsigned int i = 0; i < 5; i++) { /* 4096, 2048 ... */
		uint8_t req[232];

		do /* the one before may have been sent again, and its ID may be the same */
			peer_next_mad(&peer, 0x10, req, rig_turn);
		while (peer.tid == tid);
		tid = peer.tid;
		cr_assert_eq(req[50] >> 4, 5 - i, "%u", i);
		memcpy(rej + 4, req, 4);
		rej[11] = 26;
		peer_send_mad(&peer, 0x12, rej);
	}
	rig_sees("RF");
	cr_assert_eq(last.err, -EMSGSIZE);
	cr_assert_not(roce_impl.ep_path(ep, &path));
}

/* Its path may be why the one before was lost. */
Test(roce_conn, each_connection_has_a_source_port_of_its_own)
{
	uint16_t before;

	rig_connect(OURS);
	before = roce_sock_port(roce_of(ep));
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	roce_impl.ep_disconnect(ep);
	rig_sees("x.");
	rig_connect_again();
	cr_assert_neq(roce_sock_port(roce_of(ep)), before);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
}

Test(roce_conn, another_server_is_not_told_that_we_parted)
{
	struct sockaddr_storage src, dst;

	rig_connect(OURS);
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	roce_of(ep)->conn.dreq_tries = 100;
	peer_addrs(&src, &dst);
	cr_assert_eq(roce_impl.ep_resolve(ep, (struct sockaddr *)&src, (struct sockaddr *)&dst), 0);
	cr_assert_gt(roce_of(ep)->conn.dreq_tries, 0, "the same one is");
	roce_impl.ep_disconnect(ep);
	for (int i = 0; i < 1000 && roce_of(ep)->state != ROCE_IDLE; i++)
		rig_turn();
	((struct sockaddr_in *)&dst)->sin_addr.s_addr ^= htonl(0xf0);
	cr_assert_eq(roce_impl.ep_resolve(ep, (struct sockaddr *)&src, (struct sockaddr *)&dst), 0);
	cr_assert_eq(roce_of(ep)->conn.dreq_tries, 0);
}

Test(roce_conn, a_request_that_is_lost_is_sent_again)
{
	uint8_t first[256];

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	memcpy(first, peer.req, sizeof(first));
	peer_accept(&peer, OURS, NULL, 0, rig_turn);
	cr_assert_arr_eq(peer.req, first, 232, "the same one");
	rig_sees("RE");
	/* The RTU was lost. */
	peer_send_rep(&peer, OURS, NULL, 0);
	peer_next_mad(&peer, 0x14, first, rig_turn);
	rig_sees("RE");
}

Test(roce_conn, one_that_nobody_answers)
{
	roce_of(ep)->conf.connect_timeout_ns = NSEC_PER_MSEC;
	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	rig_sees("RF");
	cr_assert_eq(last.err, -ETIMEDOUT);
	cr_assert_not_null(strstr(roce_impl.ep_why(ep), "firewall"));
	cr_assert_not_null(strstr(roce_impl.ep_why(ep), "takes the packets"), "to its end");
	/* An answer that comes now is refused: the peer is to forget it. */
	peer_take_req(&peer, rig_turn);
	peer_send_rep(&peer, OURS, NULL, 0);
	peer_next_mad(&peer, 0x12, (uint8_t[232]){0}, rig_turn);
}

Test(roce_conn, one_that_is_parted_from_while_it_fails)
{
	uint8_t rej[232] = {0};

	rig_resolve();
	cr_assert_eq(roce_impl.post_recv(ep, mem, 100, mr, 1), 0);
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	peer_take_req(&peer, rig_turn);
	memcpy(rej + 4, peer.req, 4);
	rig_parts = true;
	peer_send_mad(&peer, 0x12, rej);
	rig_sees("Rf.");
}

Test(roce_conn, the_peer_parts)
{
	uint8_t dreq[232] = {0}, drep[232];

	rig_connect(OURS);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	cr_assert_eq(roce_impl.post_recv(ep, mem, 100, mr, 2), 0);
	memcpy(dreq, (uint8_t[]){0x60, 0x0d, 0xf0, 0x0d}, 4);
	memcpy(dreq + 4, peer.req, 4);
	memcpy(dreq + 8, peer.req + 32, 3);
	peer_send_mad(&peer, 0x15, dreq);
	peer_next_mad(&peer, 0x16, drep, rig_turn);
	cr_assert_arr_eq(drep, peer.req, 4);
	rig_sees("Dxf.");
	/* Once more: the answer was lost. */
	peer_send_mad(&peer, 0x15, dreq);
	peer_next_mad(&peer, 0x16, drep, rig_turn);
	rig_sees("Dxf.");
}

Test(roce_conn, we_part)
{
	uint8_t dreq[232];

	rig_connect(OURS);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	roce_impl.ep_disconnect(ep);
	cr_assert_eq(roce_impl.post_recv(ep, mem, 100, mr, 2), -ENOTCONN);
	for (int i = 0; i < 2; i++) { /* nobody answers */
		peer_next_mad(&peer, 0x15, dreq, rig_turn);
		cr_assert_arr_eq(dreq, peer.req, 4);
		cr_assert_arr_eq(dreq + 4, ((uint8_t[]){0x60, 0x0d, 0xf0, 0x0d}), 4);
		cr_assert_arr_eq(dreq + 8, ((uint8_t[]){0xab, 0xcd, 0xef}), 3);
	}
	rig_sees("x.");
}

/* To another socket than all else, whose turn may come first. */
static void peer_parts(void)
{
	const struct roce_conn *c = &roce_of(ep)->conn;
	const struct roce_mad m = {.attr = ROCE_MAD_DREQ,
		.tid = peer.tid,
		.local_id = c->remote_id,
		.remote_id = c->local_id,
		.qpn = roce_of(ep)->qpn};
	uint8_t mad[ROCE_MAD_LEN];

	roce_mad_put(&m, mad);
	roce_conn_received(roce_of(ep), &(struct roce_packet){.opcode = ROCE_OP_UD_SEND_ONLY,
						.qkey = ROCE_QKEY_GSI,
						.payload = mad,
						.payload_len = sizeof(mad)});
}

Test(roce_conn, what_the_peer_sent_before_it_parted_is_received)
{
	uint8_t drep[232];

	rig_connect(OURS);
	for (uint64_t i = 0; i < 2; i++)
		rig_receive(0, 100, i);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "hello", 5);
	peer_parts();
	peer_next_mad(&peer, 0x16, drep, rig_turn);
	rig_sees("rrD.");
}

/* They are more than are read at once. */
Test(roce_conn, many_packets_before_it_parted_are_received)
{
	struct peer_out o = {.op = 0x0a, .ext = reth, .ext_len = 16, .payload = text, .len = 4};

	rig_connect(OURS);
	if (roce_sock_room(roce_of(ep)) < 1 << 20)
		cr_skip_test("no room for so many");
	peer_reth(reth, rig_at(1000), rig_window(1000, 4, FAB_REMOTE_WRITE), 4);
	rig_receive(0, 100, 1);
	o.qpn = peer.qpn;
	for (o.psn = peer.psn; o.psn != peer.psn + 600; o.psn++)
		peer_send(&peer, &o);
	rig_asks(0x04, peer.psn + 600, NULL, 0, "hello", 5);
	peer_parts();
	rig_sees("rD.");
}

/* Somebody sends as if he were the peer, without an end. */
Test(roce_conn, a_flood_does_not_keep_one_who_parted)
{
	rig_connect(OURS);
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	memset(seen, 0, sizeof(seen));
	junk = UINT32_MAX;
	peer_parts();
	for (int i = 0; i < 100; i++) {
		rig_turn();
		if (i % 10 == 0 && seen[0] == '\0')
			peer_parts(); /* the answer was lost */
	}
	junk = 0;
	rig_sees("D.");
	cr_assert_leq(junk_read, 16 * 40, "%u", junk_read);
}

/* ---- Sends ---- */

TestSuite(roce_send, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_send, one_of_several_packets)
{
	const struct fab_sge sges[3] = {
		{mem + 3, 5000, mr}, {mem + 5003, 1, mr}, {mem + 5004, 4000, mr}};

	cr_assert_eq(roce_impl.post_send(ep, sges, 3, NULL, 0, 7), 0);
	rig_sends(0x00, OURS, 3, MTU);
	rig_sends(0x01, OURS + 1, 3 + MTU, MTU);
	rig_sends(0x02, OURS + 2, 3 + 2 * MTU, 9001 - 2 * MTU);
	cr_assert_str_eq(seen, "");
	peer_ack(&peer, 0x1f, OURS + 1);
	rig_turns();
	cr_assert_str_eq(seen, "", "its last packet is not acknowledged");
	peer_ack(&peer, 0x1f, OURS + 2);
	rig_sees("s");
	cr_assert_eq(cookie, 7);
}

Test(roce_send, an_acknowledgement_is_of_all_before_it)
{
	for (uint32_t i = 0; i < 3; i++) {
		rig_post(i, 101, i);
		rig_sends(0x04, OURS + i, i, 101);
	}
	peer_ack(&peer, 0x1f, OURS + 1);
	rig_sees("ss");
	cr_assert_eq(cookie, 1);
	peer_ack(&peer, 0x1f, OURS + 1); /* twice; of what was not sent; of long ago */
	peer_ack(&peer, 0x1f, OURS + 3);
	peer_ack(&peer, 0x1f, OURS - 1);
	rig_turns();
	rig_sees("ss");
	peer_ack(&peer, 0x1f, OURS + 2);
	rig_sees("sss");
}

Test(roce_send, what_is_lost_is_sent_again)
{
	rig_post(0, 3 * MTU, 1);
	rig_post(5, 100, 2);
	rig_sends(0x00, OURS, 0, MTU);
	rig_sends(0x01, OURS + 1, MTU, MTU);
	rig_sends(0x02, OURS + 2, 2 * MTU, MTU);
	rig_sends(0x04, OURS + 3, 5, 100);
	roce_of(ep)->path.ack_ns = SOON;
	peer_ack(&peer, 0x60, OURS + 1); /* it has the first one */
	rig_sends(0x01, OURS + 1, MTU, MTU);
	rig_sends(0x02, OURS + 2, 2 * MTU, MTU);
	rig_sends(0x04, OURS + 3, 5, 100);
	/* Nobody says anything. */
	rig_sends(0x01, OURS + 1, MTU, MTU);
	/* It is on its way: this is not to look as if it were lost. */
	reactor_timer_in(r, &roce_of(ep)->req.timer, 60 * NSEC_PER_SEC);
	peer_ack(&peer, 0x1f, OURS + 3);
	rig_sees("ss");
	cr_assert_eq(stats.naks, 1);
	cr_assert_eq(stats.packets_resent, 3 + 3);
}

Test(roce_send, a_peer_that_is_silent_is_lost)
{
	roce_of(ep)->path.ack_ns = SOON;
	rig_post(0, 100, 1);
	for (int i = 0; i < 4; i++)
		rig_sends(0x04, OURS, 0, 100);
	rig_sees("Dx.");
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
}

Test(roce_send, a_peer_without_receives_is_waited_for)
{
	rig_post(0, 100, 1);
	for (int i = 0; i < 10; i++) {
		rig_sends(0x04, OURS, 0, 100);
		peer_ack(&peer, 0x20 | 1, OURS);
	}
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	cr_assert_eq(stats.rnr_naks, 10);
	cr_assert_eq(stats.naks, 0);
}

Test(roce_send, one_that_the_peer_refuses_is_the_end)
{
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x62, OURS);
	rig_sees("Dx.");
	cr_assert_eq(last.type, FAB_EV_DRAINED);
}

Test(roce_send, there_are_as_many_as_there_may_be)
{
	const struct fab_sge sge = {.addr = mem, .len = 10, .mr = mr};

	for (uint32_t i = 0; i < SENDS; i++)
		rig_post(0, 10, i);
	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, NULL, 0, 9), -ENOMEM);
	for (uint32_t i = 0; i < SENDS; i++)
		rig_sends(0x04, OURS + i, 0, 10);
	peer_ack(&peer, 0x1f, OURS + SENDS - 1);
	rig_sees("sssssss");
	rig_post(0, 10, 9);
	rig_sends(0x04, OURS + SENDS, 0, 10);
}

Test(roce_send, a_path_that_takes_less_is_the_end_and_the_next_one_is_narrower)
{
	struct fab_path path;

	if (!peer_path_mtu(1500))
		cr_skip_test("no network of its own");
	rig_post(0, MTU, 1);
	rig_sees("Dx.");
	cr_assert_eq(down, -EMSGSIZE);
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	roce_of(ep)->conn.dreq_tries = 0;
	rig_connect(OURS);
	cr_assert(roce_impl.ep_path(ep, &path));
	cr_assert_eq(path.mtu, 1024);
	rig_post(0, 1024, 1);
	rig_sends(0x04, OURS, 0, 1024);
}

TestSuite(roce_wrap, .init = rig_make, .fini = rig_tear_down);

Test(roce_wrap, sequence_numbers_begin_again_at_0)
{
	rig_connect(0xfffffe);
	rig_post(0, 4 * MTU, 1);
	rig_sends(0x00, 0xfffffe, 0, MTU);
	rig_sends(0x01, 0xffffff, MTU, MTU);
	rig_sends(0x01, 0, 2 * MTU, MTU);
	rig_sends(0x02, 1, 3 * MTU, MTU);
	peer_ack(&peer, 0x60, 0xffffff);
	rig_sends(0x01, 0xffffff, MTU, MTU);
	rig_sends(0x01, 0, 2 * MTU, MTU);
	rig_sends(0x02, 1, 3 * MTU, MTU);
	peer_ack(&peer, 0x1f, 1);
	rig_sees("s");
}

/* ---- Sends of the peer ---- */

TestSuite(roce_recv, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_recv, messages_are_received_in_order)
{
	memset(text, 'a', sizeof(text));
	rig_receive(0, 100, 1);
	rig_receive(1000, 10000, 2);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	cr_assert_eq(cookie, 1);
	cr_assert_eq(len, 5);
	cr_assert_eq(inv, 0);
	cr_assert_arr_eq(mem, "hello", 5);
	rig_asks(0x00, peer.psn + 1, NULL, 0, text, MTU);
	rig_asks(0x01, peer.psn + 2, NULL, 0, text, MTU);
	rig_asks(0x02, peer.psn + 3, NULL, 0, text, 1);
	rig_answers(0x1f, peer.psn + 3);
	cr_assert_eq(k.msn, 2);
	rig_sees("rr");
	cr_assert_eq(len, 2 * MTU + 1);
	cr_assert_arr_eq(mem + 1000, text, 2 * MTU + 1);
}

Test(roce_recv, what_is_missing_is_asked_for_once)
{
	rig_receive(0, 100, 1);
	rig_receive(100, 100, 2);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_answers(0x60, peer.psn);
	rig_asks(0x04, peer.psn + 2, NULL, 0, "three", 5);
	rig_none();
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3);
	rig_answers(0x1f, peer.psn);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("rr");
	cr_assert_arr_eq(mem + 100, "two", 3);
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3); /* once more: the answer was lost */
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("rr");
	cr_assert_eq(stats.packets_early, 2);
	cr_assert_eq(stats.naks_sent, 1);
	cr_assert_eq(stats.packets_twice, 1);
}

Test(roce_recv, without_a_receive_the_peer_waits)
{
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3);
	rig_answers(0x20 | 12, peer.psn);
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "one", 3);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
}

Test(roce_recv, one_that_is_longer_than_the_receive_is_the_end)
{
	rig_receive(0, 4, 1);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x61, peer.psn);
	rig_sees("Df.");
	cr_assert_neq(memcmp(mem, "hello", 4), 0);
}

Test(roce_recv, what_is_out_of_turn_is_the_end)
{
	static const uint8_t opcodes[] = {
		0x01, 0x02, 0x07, 0x08}; /* middle and last, of what did not begin */

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		rig_receive(0, 10000, 1);
		rig_asks(opcodes[i], peer.psn, NULL, 0, text, MTU);
		rig_answers(0x61, peer.psn);
		rig_sees("Df.");
		rig_connect_again();
	}
}

Test(roce_recv, what_is_not_whole_or_not_the_peers_was_not_there)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	o.spoil = true;
	peer_send(&peer, &o);
	o.spoil = false;
	peer_send_from(&peer, "127.0.0.3", 4791, &o);
	o.qpn ^= 0x100;
	peer_send(&peer, &o);
	o.qpn ^= 0x100;
	o.pkey = 0x8001;
	peer_send(&peer, &o);
	o.pkey = 0;
	rig_none();
	cr_assert_str_eq(seen, "");
	cr_assert_eq(stats.bad_icrc, 1);
	peer_send(&peer, &o);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
}

/* ---- memory ---- */

TestSuite(roce_mem, .init = rig_set_up, .fini = rig_tear_down);

/* A key is all that a stranger has to guess: of 64 none has a bit in common. */
Test(roce_mem, each_bit_of_a_key_is_random)
{
	uint32_t ones = 0, zeros = 0;

	for (int i = 0; i < 64; i++) {
		uint32_t rkey = roce_impl.mw_next_rkey(roce_impl.mw_alloc(ep));

		ones |= rkey;
		zeros |= ~rkey;
	}
	cr_assert_eq(ones & zeros, UINT32_MAX, "%#x", ones & zeros);
}

Test(roce_mem, the_peer_writes_to_a_window)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_WRITE);

	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1001), rkey, 2 * MTU + 5);
	rig_asks(0x06, peer.psn, reth, 16, text, MTU);
	rig_asks(0x07, peer.psn + 1, NULL, 0, text, MTU);
	rig_asks(0x08, peer.psn + 2, NULL, 0, text, 5);
	rig_answers(0x1f, peer.psn + 2);
	cr_assert_arr_eq(mem + 1001, text, 2 * MTU + 5);
	cr_assert_neq(mem[1000], 'w');
	cr_assert_neq(mem[1001 + 2 * MTU + 5], 'w');
	peer_reth(reth, rig_at(1000), rkey, 1);
	rig_asks(0x0a, peer.psn + 3, reth, 16, text, 1);
	rig_answers(0x1f, peer.psn + 3);
	cr_assert_eq(mem[1000], 'w');
	peer_reth(reth, 0, 0, 0); /* nothing, nowhere */
	rig_asks(0x0a, peer.psn + 4, reth, 16, NULL, 0);
	rig_answers(0x1f, peer.psn + 4);
	cr_assert_str_eq(seen, "", "nobody is told");
}

Test(roce_mem, and_nowhere_else)
{
	static const struct {
		int off, len;
		unsigned int access;
		uint32_t key;
		size_t sent;
	} bad[] = {
		{-1, 10, FAB_REMOTE_WRITE, 0, 10},
		{91, 10, FAB_REMOTE_WRITE, 0, 10},
		{101, 0x7fffffff, FAB_REMOTE_WRITE, 0, MTU},
		{0, 10, FAB_REMOTE_READ, 0, 10},
		{0, 10, FAB_REMOTE_WRITE, 1, 10},
		{0, 10, FAB_REMOTE_WRITE, 0, 11}, /* more than it says, less */
		{0, 10, FAB_REMOTE_WRITE, 0, 9},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t rkey = rig_window(1000, 100, bad[i].access) ^ bad[i].key;

		memset(text, 'w', sizeof(text));
		peer_reth(reth, rig_at(1000) + (uint64_t)(int64_t)bad[i].off, rkey,
			(uint32_t)bad[i].len);
		rig_asks(bad[i].sent == MTU ? 0x06 : 0x0a, peer.psn, reth, 16, text, bad[i].sent);
		rig_answers(i < 5 ? 0x62 : 0x61, peer.psn);
		rig_sees("D.");
		for (size_t b = 990; b < 1110; b++)
			cr_assert_neq(mem[b], 'w', "%zu: %zu", i, b);
		rig_connect_again();
	}
}

Test(roce_mem, the_peer_reads_a_window)
{
	uint32_t rkey = rig_window(1000, 3 * MTU, FAB_REMOTE_READ);

	peer_reth(reth, rig_at(1003), rkey, 2 * MTU + 5);
	rig_asks(0x0c, peer.psn, reth, 16, NULL, 0);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert(peer_next(&peer, &k, rig_turn));
		cr_assert_eq(k.op, 0x0d + i);
		cr_assert_eq(k.psn, (peer.psn + i) & 0xffffff);
		cr_assert_eq(k.len, i < 2 ? MTU : 5);
		cr_assert_arr_eq(k.payload, mem + 1003 + i * MTU, k.len);
		if (i != 1) {
			cr_assert_eq(k.syndrome, 0x1f);
			cr_assert_eq(k.msn, 1);
		}
	}
	/* From its second packet on, as something was lost. */
	peer_reth(reth, rig_at(1003) + MTU, rkey, MTU + 5);
	rig_asks(0x0c, peer.psn + 1, reth, 16, NULL, 0);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert(peer_next(&peer, &k, rig_turn));
		cr_assert_eq(k.op, i == 0 ? 0x0d : 0x0f);
		cr_assert_eq(k.psn, (peer.psn + 1 + i) & 0xffffff);
		cr_assert_arr_eq(k.payload, mem + 1003 + (1 + i) * MTU, k.len);
	}
	/* The next request comes after all of its PSNs. */
	rig_receive(0, 100, 1);
	rig_asks(0x04, peer.psn + 3, NULL, 0, "next", 4);
	rig_answers(0x1f, peer.psn + 3);
	rig_sees("r");
	peer_reth(reth, rig_at(1003), rkey, 0);
	rig_asks(0x0c, peer.psn + 4, reth, 16, NULL, 0);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x10);
	cr_assert_eq(k.len, 0);
	/* A Read is acknowledged by its answer alone. */
	rig_asks(0x04, peer.psn + 3, NULL, 0, "next", 4);
	rig_answers(0x1f, peer.psn + 3);
}

#define LONG 12u /* packets of a Read */

/* A Read of all of the window, its packets; the last Identification of those in the middle. */
static uint16_t reads_long(uint32_t rkey, uint32_t from)
{
	uint16_t id = 0;

	roce_of(ep)->resp.pace = (struct roce_pace){0};
	peer_reth(reth, rig_at(1000) + from * MTU, rkey, (LONG - from) * MTU - 1);
	rig_asks(0x0c, peer.psn + from, reth, 16, NULL, 0);
	for (uint32_t i = from; i < LONG; i++) {
		cr_assert(peer_next(&peer, &k, rig_turn));
		cr_assert_eq(k.psn, (peer.psn + i) & 0xffffff);
		cr_assert_arr_eq(k.payload, mem + 1000 + i * MTU, k.len);
		if (i + 2 == LONG)
			id = k.id;
		else if (i == from || i + 1 == LONG)
			cr_assert_eq(k.id, 0);
	}
	return id;
}

Test(roce_mem, long_answers_are_cut_by_the_kernel)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	cr_assert_eq(reads_long(rkey, 0), LONG - 3);
	cr_assert_eq(reads_long(rkey, 1), 0, "what was lost goes out one by one");
}

Test(roce_mem, what_the_kernel_cuts_is_given_up_when_only_that_is_lost)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(reads_long(rkey, 0), LONG - 3, "%d", i);
		cr_assert_eq(reads_long(rkey, 1), 0);
		peer.psn += LONG;
	}
	cr_assert_eq(reads_long(rkey, 0), 0);
}

Test(roce_mem, and_not_when_others_are_lost_too)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 12; i++) {
		cr_assert_eq(reads_long(rkey, 0), LONG - 3, "%d", i);
		cr_assert_eq(reads_long(rkey, 1), 0);
		if (i % 4 == 1)
			cr_assert_eq(reads_long(rkey, 3), 0);
		peer.psn += LONG;
	}
}

/* One of a hundred, say: of long Reads that is nearly each. */
Test(roce_mem, nor_when_a_packet_in_their_midst_is_lost)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 12; i++) {
		cr_assert_eq(reads_long(rkey, 0), LONG - 3, "%d", i);
		/* The packet before them is none of theirs. */
		cr_assert_eq(reads_long(rkey, i % 2 == 1 ? 0 : 2 + (uint32_t)i % 9), 0);
		peer.psn += LONG;
	}
	cr_assert_eq(roce_of(ep)->tx.trains.lost, 0);
}

Test(roce_mem, a_packet_that_is_lost_alone_does_not_save_what_the_kernel_cuts)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(reads_long(rkey, 0), LONG - 3, "%d", i);
		cr_assert_eq(reads_long(rkey, 1), 0);
		if (i == 0)
			cr_assert_eq(reads_long(rkey, 3), 0);
		peer.psn += LONG;
	}
	cr_assert_eq(reads_long(rkey, 0), 0);
}

/* Reads whose answers are cut; they arrive, or are asked for once more. */
static void read_many(uint32_t rkey, unsigned int cnt, bool arrive)
{
	for (unsigned int i = 0; i < cnt; i++) {
		cr_assert_eq(reads_long(rkey, 0), LONG - 3, "%u", i);
		if (!arrive)
			cr_assert_eq(reads_long(rkey, 1), 0);
		peer.psn += LONG;
	}
}

Test(roce_mem, what_arrives_64_times_is_trusted)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	read_many(rkey, 64, true);
	/* The network is away for a moment. */
	read_many(rkey, 31, false);
	read_many(rkey, 33, true);
	read_many(rkey, 1, true);
}

Test(roce_mem, and_that_for_as_many_times)
{
	uint32_t rkey = rig_window(1000, LONG * MTU, FAB_REMOTE_READ);

	read_many(rkey, 64, true);
	read_many(rkey, 32, false); /* it has another way from now on */
	read_many(rkey, 32, true);
	cr_assert_eq(reads_long(rkey, 0), 0);
}

Test(roce_mem, and_reads_nothing_else)
{
	for (int i = 0; i < 3; i++) {
		uint32_t rkey = rig_window(1000, 100, i == 2 ? FAB_REMOTE_WRITE : FAB_REMOTE_READ);

		peer_reth(reth, rig_at(1000) + (i == 0 ? 1 : 0), rkey ^ (i == 1), 100);
		rig_asks(0x0c, peer.psn, reth, 16, NULL, 0);
		rig_answers(0x62, peer.psn);
		rig_sees("D.");
		rig_connect_again();
	}
}

Test(roce_mem, a_window_that_is_taken_back_is_closed)
{
	uint32_t rkey = rig_window(1000, 100, FAB_REMOTE_WRITE);

	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	cr_assert_str_eq(seen, "", "not from inside the call");
	rig_sees("i");
	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1000), rkey, 10);
	rig_asks(0x0a, peer.psn, reth, 16, text, 10);
	rig_answers(0x62, peer.psn);
	rig_sees("iD.");
}

Test(roce_mem, one_that_the_peer_gives_back_is_closed)
{
	uint32_t rkey = rig_window(1000, 100, FAB_REMOTE_WRITE);
	uint8_t ieth[4] = {
		(uint8_t)(rkey >> 24), (uint8_t)(rkey >> 16), (uint8_t)(rkey >> 8), (uint8_t)rkey};

	rig_receive(0, 100, 3);
	rig_asks(0x17, peer.psn, ieth, 4, "done", 4);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	cr_assert_eq(inv, rkey);
	rig_receive(0, 100, 4);
	rig_asks(0x17, peer.psn + 1, ieth, 4, "done", 4); /* there is none any more */
	rig_answers(0x62, peer.psn + 1);
	rig_sees("rDf.");
}

/* A Read of a window of 100 bytes, which waits as the socket is full. The window closes. */
static void read_waits(uint32_t rkey)
{
	is_full = true;
	peer_reth(reth, rig_at(1000), rkey, 100);
	rig_asks(0x0c, peer.psn, reth, 16, NULL, 0);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.read_cnt == 0; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->resp.read_cnt, 1);
	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
}

Test(roce_mem, a_read_that_waits_ends_nothing_from_inside_a_call)
{
	read_waits(rig_window(1000, 100, FAB_REMOTE_READ));
	is_full = false;
	rig_post(0, 10, 2);
	cr_assert_str_eq(seen, "", "not from inside the call");
	rig_sends(0x04, OURS + 1, 0, 10);
	rig_answers(0x62, peer.psn);
	rig_sees("iDx.");
}

Test(roce_mem, a_read_that_is_refused_is_the_last_packet)
{
	read_waits(rig_window(1000, 100, FAB_REMOTE_READ));
	rig_post(0, 10, 2);
	is_full = false;
	rig_answers(0x62, peer.psn);
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	roce_of(ep)->conn.dreq_tries = 0;
	rig_none();
	rig_sees("iDx.");
}

/* Others of the lane have their turn in between. */
Test(roce_mem, many_reads_are_answered_in_several_turns)
{
	uint32_t rkey = rig_window(0, 16 * MTU, FAB_REMOTE_READ);
	struct roce_responder *q = &roce_of(ep)->resp;

	swallows = true;
	for (q->read_cnt = 0; q->read_cnt < 17; q->read_cnt++)
		q->reads[q->read_cnt] = (struct roce_read){.psn = peer.psn + 16 * q->read_cnt,
			.packets = 16,
			.rkey = rkey,
			.va = rig_at(0),
			.len = 16 * MTU};
	roce_serve_go(roce_of(ep));
	(void)roce_tx_flush(roce_of(ep));
	cr_assert_eq(q->read_cnt, 1);
	cr_assert_lt(swallowed, (size_t)257 * (MTU + 16), "%zu", swallowed);
	for (int i = 0; i < 20000 && q->read_cnt > 0; i++)
		rig_turn();
	cr_assert_gt(swallowed, (size_t)17 * 16 * MTU, "all the same");
	cr_assert_eq(q->read_cnt, 0);
}

/* Of two repetitions one was in the other. */
Test(roce_mem, what_did_not_go_out_is_no_more_than_went_out)
{
	struct roce_responder *q = &roce_of(ep)->resp;

	q->reads[0] = (struct roce_read){.psn = 15, .packets = 15, .done = 5};
	q->reads[1] = (struct roce_read){.psn = 10, .packets = 20};
	q->read_cnt = 2;
	q->pace.sent = 5;
	roce_read_back(roce_of(ep), 18);
	q->read_cnt = 0;
	cr_assert_eq(q->reads[0].done, 3);
	cr_assert_eq(q->reads[1].done, 0);
	cr_assert_eq(q->pace.sent, 3);
}

Test(roce_recv, an_answer_that_found_no_room_follows)
{
	const struct roce_responder *q = &roce_of(ep)->resp;
	uint64_t early = stats.packets_early;

	rig_receive(0, 100, 1);
	is_full = true;
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_sees("r");
	for (int i = 0; i < 20; i++)
		rig_turn();
	is_full = false;
	rig_answers(0x1f, peer.psn);
	is_full = true;
	rig_asks(0x04, peer.psn + 2, NULL, 0, "hello", 5);
	for (int i = 0; i < 20000 && stats.packets_early == early; i++)
		rig_turn();
	rig_turns();
	cr_assert_eq(q->psn, (peer.psn + 1) & 0xffffff);
	is_full = false;
	rig_answers(0x60, peer.psn + 1);
}

/* ---- several endpoints ---- */

/* Another socket got it; whoever hands it over may write what he likes before it. */
Test(roce_recv, one_that_is_handed_over_is_received)
{
	struct peer_out o = rig_odd();

	rig_receive(0, 100, 1);
	o.spoil = true;
	peer_hand_over(&o, peer.qpn, 0);
	rig_none();
	o.spoil = false;
	peer_hand_over(&o, peer.qpn, 0);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	cr_assert_arr_eq(mem, "hello", 5);
	rig_receive(0, 100, 2);
	o.psn++;
	peer_hand_over(&o, peer.qpn, 2);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x81, "congestion is told");
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("rr");
}

TestSuite(roce_two, .init = rig_set_up, .fini = rig_tear_down);

Test(roce_two, endpoints_share_the_port)
{
	struct fab_ep *first = ep, *second;
	struct peer one = peer, two;

	second = ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_connect(OURS);
	two = peer;
	cr_assert_neq(one.qpn, two.qpn);
	rig_receive(100, 100, 2);
	ep = first;
	rig_receive(0, 100, 1);
	for (int i = 0; i < 2; i++) {
		memset(seen, 0, sizeof(seen));
		peer = i == 0 ? one : two;
		rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
		rig_answers(0x1f, peer.psn);
		rig_sees("r");
		cr_assert_eq(cookie, (uint64_t)i + 1);
	}
	/* The first one goes: the kernel moves the second one's socket to its place. */
	ep = first;
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(first);
	rig_sees(".");
	peer = one;
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	roce_impl.ep_free(first);
	ep = second;
	peer = two;
	memset(seen, 0, sizeof(seen));
	rig_receive(0, 100, 3);
	rig_asks(0x04, peer.psn + 1, NULL, 0, "still", 5);
	rig_answers(0x1f, peer.psn + 1);
	rig_sees("r");
}

Test(roce_two, congestion_of_what_is_handed_over_is_told)
{
	struct fab_ep *first = ep, *second;
	struct peer one = peer;

	second = ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_connect(OURS);
	/* The first packet comes to the socket that was bound last. */
	ep = first;
	peer = one;
	rig_receive(0, 100, 1);
	peer_mark(&peer, 3);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x81, "%#x", k.op);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(second);
	rig_sees(".");
	roce_impl.ep_free(second);
}
