/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of RoCEv2 in this process, against a strict peer on the loopback.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "log.h"
#include "peer.h"
#include "roce_int.h"

#define MTU   4096u
#define OURS  500u /* PSN that the endpoint begins with */
#define SENDS 8u
#define RECVS 8u
#define SOON  (20 * NSEC_PER_MSEC)

static struct reactor *r;
static struct fab_ep *ep;
static struct peer peer;
static struct fab_mr *mr;
static uint8_t mem[64 << 10];

/* The endpoint's owner saw this: a letter for each, in order. */
static char seen[256];
static struct fab_event last;
static uint8_t priv[256];
static uint64_t cookie;
static uint32_t len, inv;

static void note(char what)
{
	size_t n = strlen(seen);

	cr_assert_lt(n + 1, sizeof(seen));
	seen[n] = what;
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	static const char letters[] = {[FAB_EV_RESOLVED] = 'R',
		[FAB_EV_ESTABLISHED] = 'E',
		[FAB_EV_FAILED] = 'F',
		[FAB_EV_DOWN] = 'D',
		[FAB_EV_DRAINED] = '.'};

	note(letters[ev->type]);
	last = *ev;
	if (ev->type == FAB_EV_ESTABLISHED)
		memcpy(priv, ev->priv, ev->priv_len);
}

static void on_sent(void *ctx, uint64_t c, enum fab_status status)
{
	note(status == FAB_OK ? 's' : 'x');
	cookie = c;
}

static void on_received(void *ctx, uint64_t c, uint32_t n, uint32_t key, enum fab_status status)
{
	note(status == FAB_OK ? 'r' : 'f');
	cookie = c;
	len = n;
	inv = key;
}

static void on_invalidated(void *ctx, uint64_t c, enum fab_status status)
{
	note(status == FAB_OK ? 'i' : 'y');
}

static const struct fab_ep_ops ops = {
	.event = on_event, .sent = on_sent, .received = on_received, .invalidated = on_invalidated};

static void turn(void)
{
	reactor_turn(r, NSEC_PER_MSEC);
}

static void turns(void)
{
	for (int i = 0; i < 5; i++)
		reactor_turn(r, 0);
}

/* Until the owner has seen this, which nothing else follows. */
static void sees(const char *what)
{
	for (int i = 0; i < 20000 && strlen(seen) < strlen(what); i++)
		turn();
	cr_assert_str_eq(seen, what);
}

static void none(void)
{
	struct peer_packet k;

	turns();
	for (int i = 0; i < 3; i++)
		turns();
	cr_assert_not(peer_next(&peer, &k, turns) && true, "a packet %#x too many", k.op);
}

static const struct sockaddr *dst(void)
{
	static struct sockaddr_in in = {.sin_family = AF_INET};

	in.sin_port = htons(20049);
	inet_pton(AF_INET, "127.0.0.2", &in.sin_addr);
	return (const struct sockaddr *)&in;
}

static struct fab_conf conf = {.connect_timeout_ns = 60 * NSEC_PER_SEC,
	.retry_count = 3,
	.ack_timeout = 24}; /* a minute: a slow machine is none that is silent */

static void make(void)
{
	peer_network();
	r = reactor_new();
	peer_new(&peer);
	ep = roce_impl.ep_new(r, &conf, &ops, NULL);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251) | 0x80; /* no letter */
}

static void resolve(void)
{
	const struct fab_qp_conf qp = {.send_wr = SENDS, .recv_wr = RECVS, .max_send_sge = 4};

	seen[0] = 0;
	memset(seen, 0, sizeof(seen));
	cr_assert_eq(roce_impl.ep_resolve(ep, NULL, dst()), 0);
	sees("R");
	cr_assert_eq(roce_impl.ep_setup(ep, &qp), 0);
	if (!mr)
		mr = roce_impl.mr_reg(ep, mem, sizeof(mem), FAB_LOCAL, true);
}

static void connected(uint32_t psn)
{
	resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_accept(&peer, psn, "answer", 6, turn);
	sees("RE");
	memset(seen, 0, sizeof(seen));
}

static void set_up(void)
{
	make();
	connected(OURS);
}

static void tear_down(void)
{
	struct fab_ep *gone = ep;

	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(ep);
	for (int i = 0; i < 1000 && roce_of(ep)->state != ROCE_IDLE; i++)
		turn();
	cr_assert_eq(roce_of(ep)->state, ROCE_IDLE);
	ep = NULL;
	roce_impl.ep_free(gone);
	reactor_free(r);
	peer_free(&peer);
}

static void post(size_t off, uint32_t n, uint64_t c)
{
	const struct fab_sge sge = {.addr = mem + off, .len = n, .mr = mr};

	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, NULL, 0, c), 0);
}

static struct peer_packet k;

/* The next packet is this one of a Send. */
static void sends(uint8_t op, uint32_t psn, size_t off, size_t n)
{
	cr_assert(peer_next(&peer, &k, turn), "no packet");
	cr_assert_eq(k.op, op);
	cr_assert_eq(k.psn, psn);
	cr_assert_eq(k.len, n);
	cr_assert_arr_eq(k.payload, mem + off, n);
	cr_assert_eq(k.ack_req, op == 0x02 || op == 0x04);
	cr_assert_eq(k.ecn, 2, "RFC 3168: it knows ECN");
}

/* The next packet is an acknowledgement. */
static void answers(uint8_t syndrome, uint32_t psn)
{
	cr_assert(peer_next(&peer, &k, turn), "no answer");
	cr_assert_eq(k.op, 0x11);
	cr_assert_eq(k.syndrome, syndrome);
	cr_assert_eq(k.psn, psn & 0xffffff, "%#x", k.psn);
	cr_assert_not(k.ack_req);
}

/* A request packet of the peer's. */
static void asks(uint8_t op, uint32_t psn, const void *ext, size_t ext_len, const void *p, size_t n)
{
	bool ends = op == 0x02 || op == 0x04 || op == 0x08 || op == 0x0a || op == 0x0c ||
		    op == 0x16 || op == 0x17;

	peer_send(&peer, &(struct peer_out){.op = op,
				 .ack_req = ends,
				 .qpn = peer.qpn,
				 .psn = psn,
				 .ext = ext,
				 .ext_len = ext_len,
				 .payload = p,
				 .len = n});
}

/* ---- connecting ---- */

TestSuite(roce_conn, .init = make, .fini = tear_down);

Test(roce_conn, private_data_goes_both_ways)
{
	connected(OURS);
	cr_assert_arr_eq(peer.req + 140 + 36, "private", 7);
	cr_assert_eq(last.priv_len, PEER_PRIV);
	cr_assert_arr_eq(priv, "answer", 6);
}

Test(roce_conn, what_it_is_is_known)
{
	struct fab_path path;

	cr_assert_not(roce_impl.ep_path(ep, &path));
	connected(OURS);
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

	connected(OURS);
	before = peer;
	roce_impl.ep_disconnect(ep);
	sees(".");
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
	peer_send_mad(&peer, 0x16, (uint8_t[232]){0});
	roce_of(ep)->conn.dreq_tries = 0;
	connected(OURS);
	cr_assert_neq(peer.qpn, before.qpn);
	cr_assert_neq(peer.id, before.id);
	cr_assert_neq(peer.psn, before.psn);
}

Test(roce_conn, one_that_is_refused)
{
	uint8_t rej[232] = {0};

	resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	peer_take_req(&peer, turn);
	memcpy(rej + 4, peer.req, 4);
	rej[11] = 8; /* nobody listens */
	peer_send_mad(&peer, 0x12, rej);
	sees("RF");
	cr_assert_eq(last.err, -ECONNREFUSED);
	cr_assert_eq(last.step, FAB_STEP_CONNECT);
}

Test(roce_conn, a_request_that_is_lost_is_sent_again)
{
	uint8_t first[256];

	resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, turn);
	memcpy(first, peer.req, sizeof(first));
	peer_accept(&peer, OURS, NULL, 0, turn);
	cr_assert_arr_eq(peer.req, first, 232, "the same one");
	sees("RE");
	/* The RTU was lost. */
	peer_send_rep(&peer, OURS, NULL, 0);
	peer_next_mad(&peer, 0x14, first, turn);
	sees("RE");
}

Test(roce_conn, one_that_nobody_answers)
{
	roce_of(ep)->conf.connect_timeout_ns = NSEC_PER_MSEC;
	resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	sees("RF");
	cr_assert_eq(last.err, -ETIMEDOUT);
	/* An answer that comes now is refused: the peer is to forget it. */
	peer_take_req(&peer, turn);
	peer_send_rep(&peer, OURS, NULL, 0);
	peer_next_mad(&peer, 0x12, (uint8_t[232]){0}, turn);
}

Test(roce_conn, the_peer_parts)
{
	uint8_t dreq[232] = {0}, drep[232];

	connected(OURS);
	post(0, 100, 1);
	sends(0x04, OURS, 0, 100);
	cr_assert_eq(roce_impl.post_recv(ep, mem, 100, mr, 2), 0);
	memcpy(dreq, (uint8_t[]){0x60, 0x0d, 0xf0, 0x0d}, 4);
	memcpy(dreq + 4, peer.req, 4);
	memcpy(dreq + 8, peer.req + 32, 3);
	peer_send_mad(&peer, 0x15, dreq);
	peer_next_mad(&peer, 0x16, drep, turn);
	cr_assert_arr_eq(drep, peer.req, 4);
	sees("Dxf.");
	/* Once more: the answer was lost. */
	peer_send_mad(&peer, 0x15, dreq);
	peer_next_mad(&peer, 0x16, drep, turn);
	sees("Dxf.");
}

Test(roce_conn, we_part)
{
	uint8_t dreq[232];

	connected(OURS);
	post(0, 100, 1);
	sends(0x04, OURS, 0, 100);
	roce_impl.ep_disconnect(ep);
	cr_assert_eq(roce_impl.post_recv(ep, mem, 100, mr, 2), -ENOTCONN);
	for (int i = 0; i < 2; i++) { /* nobody answers */
		peer_next_mad(&peer, 0x15, dreq, turn);
		cr_assert_arr_eq(dreq, peer.req, 4);
		cr_assert_arr_eq(dreq + 4, ((uint8_t[]){0x60, 0x0d, 0xf0, 0x0d}), 4);
		cr_assert_arr_eq(dreq + 8, ((uint8_t[]){0xab, 0xcd, 0xef}), 3);
	}
	sees("x.");
}

/* ---- Sends ---- */

TestSuite(roce_send, .init = set_up, .fini = tear_down);

Test(roce_send, one_of_several_packets)
{
	const struct fab_sge sges[3] = {
		{mem + 3, 5000, mr}, {mem + 5003, 1, mr}, {mem + 5004, 4000, mr}};

	cr_assert_eq(roce_impl.post_send(ep, sges, 3, NULL, 0, 7), 0);
	sends(0x00, OURS, 3, MTU);
	sends(0x01, OURS + 1, 3 + MTU, MTU);
	sends(0x02, OURS + 2, 3 + 2 * MTU, 9001 - 2 * MTU);
	cr_assert_str_eq(seen, "");
	peer_ack(&peer, 0x1f, OURS + 1);
	turns();
	cr_assert_str_eq(seen, "", "its last packet is not acknowledged");
	peer_ack(&peer, 0x1f, OURS + 2);
	sees("s");
	cr_assert_eq(cookie, 7);
}

Test(roce_send, an_acknowledgement_is_of_all_before_it)
{
	for (uint32_t i = 0; i < 3; i++) {
		post(i, 101, i);
		sends(0x04, OURS + i, i, 101);
	}
	peer_ack(&peer, 0x1f, OURS + 1);
	sees("ss");
	cr_assert_eq(cookie, 1);
	peer_ack(&peer, 0x1f, OURS + 1); /* twice; of what was not sent; of long ago */
	peer_ack(&peer, 0x1f, OURS + 3);
	peer_ack(&peer, 0x1f, OURS - 1);
	turns();
	sees("ss");
	peer_ack(&peer, 0x1f, OURS + 2);
	sees("sss");
}

Test(roce_send, what_is_lost_is_sent_again)
{
	post(0, 3 * MTU, 1);
	post(5, 100, 2);
	sends(0x00, OURS, 0, MTU);
	sends(0x01, OURS + 1, MTU, MTU);
	sends(0x02, OURS + 2, 2 * MTU, MTU);
	sends(0x04, OURS + 3, 5, 100);
	roce_of(ep)->path.ack_ns = SOON;
	peer_ack(&peer, 0x60, OURS + 1); /* it has the first one */
	sends(0x01, OURS + 1, MTU, MTU);
	sends(0x02, OURS + 2, 2 * MTU, MTU);
	sends(0x04, OURS + 3, 5, 100);
	/* Nobody says anything. */
	sends(0x01, OURS + 1, MTU, MTU);
	peer_ack(&peer, 0x1f, OURS + 3);
	sees("ss");
}

Test(roce_send, a_peer_that_is_silent_is_lost)
{
	roce_of(ep)->path.ack_ns = SOON;
	post(0, 100, 1);
	for (int i = 0; i < 4; i++)
		sends(0x04, OURS, 0, 100);
	sees("Dx.");
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
}

Test(roce_send, a_peer_without_receives_is_waited_for)
{
	post(0, 100, 1);
	for (int i = 0; i < 10; i++) {
		sends(0x04, OURS, 0, 100);
		peer_ack(&peer, 0x20 | 1, OURS);
	}
	sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	sees("s");
}

Test(roce_send, one_that_the_peer_refuses_is_the_end)
{
	post(0, 100, 1);
	sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x62, OURS);
	sees("Dx.");
	cr_assert_eq(last.type, FAB_EV_DRAINED);
}

Test(roce_send, there_are_as_many_as_there_may_be)
{
	const struct fab_sge sge = {.addr = mem, .len = 10, .mr = mr};

	for (uint32_t i = 0; i < SENDS; i++)
		post(0, 10, i);
	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, NULL, 0, 9), -ENOMEM);
	for (uint32_t i = 0; i < SENDS; i++)
		sends(0x04, OURS + i, 0, 10);
	peer_ack(&peer, 0x1f, OURS + SENDS - 1);
	sees("ssssssss");
	post(0, 10, 9);
	sends(0x04, OURS + SENDS, 0, 10);
}

TestSuite(roce_wrap, .init = make, .fini = tear_down);

Test(roce_wrap, sequence_numbers_begin_again_at_0)
{
	connected(0xfffffe);
	post(0, 4 * MTU, 1);
	sends(0x00, 0xfffffe, 0, MTU);
	sends(0x01, 0xffffff, MTU, MTU);
	sends(0x01, 0, 2 * MTU, MTU);
	sends(0x02, 1, 3 * MTU, MTU);
	peer_ack(&peer, 0x60, 0xffffff);
	sends(0x01, 0xffffff, MTU, MTU);
	sends(0x01, 0, 2 * MTU, MTU);
	sends(0x02, 1, 3 * MTU, MTU);
	peer_ack(&peer, 0x1f, 1);
	sees("s");
}

/* ---- Sends of the peer ---- */

TestSuite(roce_recv, .init = set_up, .fini = tear_down);

static uint8_t text[3 * MTU];

static void receive_at(size_t off, uint32_t n, uint64_t c)
{
	cr_assert_eq(roce_impl.post_recv(ep, mem + off, n, mr, c), 0);
}

Test(roce_recv, messages_are_received_in_order)
{
	memset(text, 'a', sizeof(text));
	receive_at(0, 100, 1);
	receive_at(1000, 10000, 2);
	asks(0x04, peer.psn, NULL, 0, "hello", 5);
	answers(0x1f, peer.psn);
	sees("r");
	cr_assert_eq(cookie, 1);
	cr_assert_eq(len, 5);
	cr_assert_eq(inv, 0);
	cr_assert_arr_eq(mem, "hello", 5);
	asks(0x00, peer.psn + 1, NULL, 0, text, MTU);
	asks(0x01, peer.psn + 2, NULL, 0, text, MTU);
	asks(0x02, peer.psn + 3, NULL, 0, text, 1);
	answers(0x1f, peer.psn + 3);
	cr_assert_eq(k.msn, 2);
	sees("rr");
	cr_assert_eq(len, 2 * MTU + 1);
	cr_assert_arr_eq(mem + 1000, text, 2 * MTU + 1);
}

Test(roce_recv, what_is_missing_is_asked_for_once)
{
	receive_at(0, 100, 1);
	receive_at(100, 100, 2);
	asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	answers(0x60, peer.psn);
	asks(0x04, peer.psn + 2, NULL, 0, "three", 5);
	none();
	asks(0x04, peer.psn, NULL, 0, "one", 3);
	answers(0x1f, peer.psn);
	asks(0x04, peer.psn + 1, NULL, 0, "two", 3);
	answers(0x1f, peer.psn + 1);
	sees("rr");
	cr_assert_arr_eq(mem + 100, "two", 3);
	asks(0x04, peer.psn, NULL, 0, "one", 3); /* once more: the answer was lost */
	answers(0x1f, peer.psn + 1);
	sees("rr");
}

Test(roce_recv, without_a_receive_the_peer_waits)
{
	asks(0x04, peer.psn, NULL, 0, "one", 3);
	answers(0x20 | 12, peer.psn);
	receive_at(0, 100, 1);
	asks(0x04, peer.psn, NULL, 0, "one", 3);
	answers(0x1f, peer.psn);
	sees("r");
}

Test(roce_recv, one_that_is_longer_than_the_receive_is_the_end)
{
	receive_at(0, 4, 1);
	asks(0x04, peer.psn, NULL, 0, "hello", 5);
	answers(0x61, peer.psn);
	sees("Df.");
	cr_assert_neq(memcmp(mem, "hello", 4), 0);
}

Test(roce_recv, what_is_out_of_turn_is_the_end)
{
	static const uint8_t opcodes[] = {
		0x01, 0x02, 0x07, 0x08}; /* middle and last, of what did not begin */

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		receive_at(0, 10000, 1);
		asks(opcodes[i], peer.psn, NULL, 0, text, MTU);
		answers(0x61, peer.psn);
		sees("Df.");
		peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
		roce_of(ep)->conn.dreq_tries = 0;
		connected(OURS);
	}
}

Test(roce_recv, what_is_not_whole_or_not_the_peers_was_not_there)
{
	struct peer_out o = {.op = 0x04,
		.ack_req = true,
		.qpn = peer.qpn,
		.psn = peer.psn,
		.payload = "hello",
		.len = 5};

	receive_at(0, 100, 1);
	o.spoil = true;
	peer_send(&peer, &o);
	o.spoil = false;
	peer_send_from(&peer, "127.0.0.3", &o);
	o.qpn ^= 0x100;
	peer_send(&peer, &o);
	o.qpn ^= 0x100;
	o.other_key = true;
	peer_send(&peer, &o);
	o.other_key = false;
	none();
	cr_assert_str_eq(seen, "");
	cr_assert_eq(roce_of(ep)->stats.bad_icrc, 1);
	peer_send(&peer, &o);
	answers(0x1f, peer.psn);
	sees("r");
}

/* ---- memory ---- */

TestSuite(roce_mem, .init = set_up, .fini = tear_down);

static struct fab_mw *mw;
static uint8_t reth[16];

/* A window over [off, off + n), which is told to the peer by a Send. */
static uint32_t window(size_t off, uint64_t n, unsigned int access)
{
	struct fab_bind bind = {.mr = mr, .addr = mem + off, .len = n, .access = access};
	const struct fab_sge sge = {.addr = mem, .len = 8, .mr = mr};
	uint32_t rkey;

	mw = bind.mw = roce_impl.mw_alloc(ep);
	cr_assert_not_null(mw);
	rkey = roce_impl.mw_next_rkey(mw);
	cr_assert_neq(rkey, 0);
	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, &bind, 1, 1), 0);
	cr_assert_eq(roce_impl.mw_rkey(mw), rkey);
	sends(0x04, OURS, 0, 8);
	peer_ack(&peer, 0x1f, OURS);
	sees("s");
	memset(seen, 0, sizeof(seen));
	return rkey;
}

static uint64_t at(size_t off)
{
	return (uintptr_t)(mem + off);
}

Test(roce_mem, the_peer_writes_to_a_window)
{
	uint32_t rkey = window(1000, 3 * MTU, FAB_REMOTE_WRITE);

	memset(text, 'w', sizeof(text));
	peer_reth(reth, at(1001), rkey, 2 * MTU + 5);
	asks(0x06, peer.psn, reth, 16, text, MTU);
	asks(0x07, peer.psn + 1, NULL, 0, text, MTU);
	asks(0x08, peer.psn + 2, NULL, 0, text, 5);
	answers(0x1f, peer.psn + 2);
	cr_assert_arr_eq(mem + 1001, text, 2 * MTU + 5);
	cr_assert_neq(mem[1000], 'w');
	cr_assert_neq(mem[1001 + 2 * MTU + 5], 'w');
	peer_reth(reth, at(1000), rkey, 1);
	asks(0x0a, peer.psn + 3, reth, 16, text, 1);
	answers(0x1f, peer.psn + 3);
	cr_assert_eq(mem[1000], 'w');
	peer_reth(reth, 0, 0, 0); /* nothing, nowhere */
	asks(0x0a, peer.psn + 4, reth, 16, NULL, 0);
	answers(0x1f, peer.psn + 4);
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
		uint32_t rkey = window(1000, 100, bad[i].access) ^ bad[i].key;

		memset(text, 'w', sizeof(text));
		peer_reth(
			reth, at(1000) + (uint64_t)(int64_t)bad[i].off, rkey, (uint32_t)bad[i].len);
		asks(bad[i].sent == MTU ? 0x06 : 0x0a, peer.psn, reth, 16, text, bad[i].sent);
		answers(i < 5 ? 0x62 : 0x61, peer.psn);
		sees("D.");
		for (size_t b = 990; b < 1110; b++)
			cr_assert_neq(mem[b], 'w', "%zu: %zu", i, b);
		peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
		roce_of(ep)->conn.dreq_tries = 0;
		connected(OURS);
	}
}

Test(roce_mem, the_peer_reads_a_window)
{
	uint32_t rkey = window(1000, 3 * MTU, FAB_REMOTE_READ);

	peer_reth(reth, at(1003), rkey, 2 * MTU + 5);
	asks(0x0c, peer.psn, reth, 16, NULL, 0);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert(peer_next(&peer, &k, turn));
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
	peer_reth(reth, at(1003) + MTU, rkey, MTU + 5);
	asks(0x0c, peer.psn + 1, reth, 16, NULL, 0);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert(peer_next(&peer, &k, turn));
		cr_assert_eq(k.op, i == 0 ? 0x0d : 0x0f);
		cr_assert_eq(k.psn, (peer.psn + 1 + i) & 0xffffff);
		cr_assert_arr_eq(k.payload, mem + 1003 + (1 + i) * MTU, k.len);
	}
	/* The next request comes after all of its PSNs. */
	receive_at(0, 100, 1);
	asks(0x04, peer.psn + 3, NULL, 0, "next", 4);
	answers(0x1f, peer.psn + 3);
	sees("r");
	peer_reth(reth, at(1003), rkey, 0);
	asks(0x0c, peer.psn + 4, reth, 16, NULL, 0);
	cr_assert(peer_next(&peer, &k, turn));
	cr_assert_eq(k.op, 0x10);
	cr_assert_eq(k.len, 0);
	/* A Read is acknowledged by its answer alone. */
	asks(0x04, peer.psn + 3, NULL, 0, "next", 4);
	answers(0x1f, peer.psn + 3);
}

Test(roce_mem, and_reads_nothing_else)
{
	for (int i = 0; i < 3; i++) {
		uint32_t rkey = window(1000, 100, i == 2 ? FAB_REMOTE_WRITE : FAB_REMOTE_READ);

		peer_reth(reth, at(1000) + (i == 0 ? 1 : 0), rkey ^ (i == 1), 100);
		asks(0x0c, peer.psn, reth, 16, NULL, 0);
		answers(0x62, peer.psn);
		sees("D.");
		peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
		roce_of(ep)->conn.dreq_tries = 0;
		connected(OURS);
	}
}

Test(roce_mem, a_window_that_is_taken_back_is_closed)
{
	uint32_t rkey = window(1000, 100, FAB_REMOTE_WRITE);

	cr_assert_eq(roce_impl.mw_invalidate(ep, &mw, 1, 5), 0);
	cr_assert_str_eq(seen, "", "not from inside the call");
	sees("i");
	memset(text, 'w', sizeof(text));
	peer_reth(reth, at(1000), rkey, 10);
	asks(0x0a, peer.psn, reth, 16, text, 10);
	answers(0x62, peer.psn);
	sees("iD.");
}

Test(roce_mem, one_that_the_peer_gives_back_is_closed)
{
	uint32_t rkey = window(1000, 100, FAB_REMOTE_WRITE);
	uint8_t ieth[4] = {
		(uint8_t)(rkey >> 24), (uint8_t)(rkey >> 16), (uint8_t)(rkey >> 8), (uint8_t)rkey};

	receive_at(0, 100, 3);
	asks(0x17, peer.psn, ieth, 4, "done", 4);
	answers(0x1f, peer.psn);
	sees("r");
	cr_assert_eq(inv, rkey);
	receive_at(0, 100, 4);
	asks(0x17, peer.psn + 1, ieth, 4, "done", 4); /* there is none any more */
	answers(0x62, peer.psn + 1);
	sees("rDf.");
}

/* ---- several endpoints ---- */

/* Another socket got it; whoever hands it over may write what he likes before it. */
Test(roce_recv, one_that_is_handed_over_is_received)
{
	struct peer_out o = {.op = 0x04,
		.ack_req = true,
		.qpn = peer.qpn,
		.psn = peer.psn,
		.payload = "hello",
		.len = 5};

	receive_at(0, 100, 1);
	o.spoil = true;
	peer_hand_over(&o, peer.qpn, 0);
	none();
	o.spoil = false;
	peer_hand_over(&o, peer.qpn, 0);
	answers(0x1f, peer.psn);
	sees("r");
	cr_assert_arr_eq(mem, "hello", 5);
	receive_at(0, 100, 2);
	o.psn++;
	peer_hand_over(&o, peer.qpn, 2);
	cr_assert(peer_next(&peer, &k, turn));
	cr_assert_eq(k.op, 0x81, "congestion is told");
	answers(0x1f, peer.psn + 1);
	sees("rr");
}

TestSuite(roce_two, .init = set_up, .fini = tear_down);

Test(roce_two, endpoints_share_the_port)
{
	struct fab_ep *first = ep, *second;
	struct peer one = peer, two;

	second = ep = roce_impl.ep_new(r, &conf, &ops, NULL);
	mr = NULL;
	connected(OURS);
	two = peer;
	cr_assert_neq(one.qpn & 0xff, two.qpn & 0xff);
	receive_at(100, 100, 2);
	ep = first;
	receive_at(0, 100, 1);
	for (int i = 0; i < 2; i++) {
		memset(seen, 0, sizeof(seen));
		peer = i == 0 ? one : two;
		asks(0x04, peer.psn, NULL, 0, "hello", 5);
		answers(0x1f, peer.psn);
		sees("r");
		cr_assert_eq(cookie, (uint64_t)i + 1);
	}
	/* The first one goes: the kernel moves the second one's socket to its place. */
	ep = first;
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(first);
	sees(".");
	peer = one;
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, turn);
	roce_impl.ep_free(first);
	ep = second;
	peer = two;
	memset(seen, 0, sizeof(seen));
	receive_at(0, 100, 3);
	asks(0x04, peer.psn + 1, NULL, 0, "still", 5);
	answers(0x1f, peer.psn + 1);
	sees("r");
}
