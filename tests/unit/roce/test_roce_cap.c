/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture has those of a connection's datagrams that were on the wire, and no others. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "roce_rig.h"

#define ETH 14u
#define UDP 8u
#define BTH 12u

static struct capture *capture;
static char path[64];
static uint8_t file[1 << 20];
static struct {
	const uint8_t *bytes; /* of the datagram, behind UDP's header */
	size_t len, whole;    /* of it: those that are there, those that it had */
	const uint8_t *frame;
	bool ours;
} frames[128];
static unsigned int cnt;

/* How many there were of each way when the REQ was sent that the REP answered. */
static unsigned int came, went;

/* [message_from, message_from + message_len) of mem is a message. */
static size_t message_from, message_len;

static bool is_message(void *ctx, uint64_t addr, uint64_t n)
{
	uint64_t off = addr - rig_at(message_from);

	return off <= message_len && n <= message_len - off;
}

/* Packets that the next call takes; then one is refused, and all after it are taken. */
static int takes = -1;

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	if (takes == 0) {
		takes = -1;
		errno = ENETUNREACH;
		return -1;
	}
	if (takes > 0)
		n = (unsigned int)takes--;
	return (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

static void quiet(void *ctx, enum log_level level, const char *line)
{
}

static void begin(bool data)
{
	const struct capture_limits lim = {.max_bytes = 1 << 20, .data = data};

	unlink(path);
	cr_assert_eq(capture_start(capture, capture_open(path), &lim), 0);
}

static void set_up_unconnected(void)
{
	static struct fab_ep_ops ops;

	snprintf(path, sizeof(path), "/tmp/test_roce_cap.%d", (int)getpid());
	log_set_sink(quiet, NULL);
	capture = capture_new();
	rig_make();
	ops = rig_ops;
	ops.is_message = is_message;
	roce_of(ep)->ops = &ops;
	roce_of(ep)->conf.capture = capture;
	message_len = 0;
}

static void set_up(void)
{
	set_up_unconnected();
	rig_connect(OURS);
	came = peer_came.cnt - 2;
	went = 0;
}

static void tear_down(void)
{
	if (ep)
		rig_tear_down();
	capture_free(capture);
	unlink(path);
}

TestSuite(roce_cap, .init = set_up, .fini = tear_down);

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static unsigned int be16(const uint8_t *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static void is_address(const uint8_t *p, const char *v4, const char *v6, bool is_v6)
{
	uint8_t want[16];

	inet_pton(is_v6 ? AF_INET6 : AF_INET, is_v6 ? v6 : v4, want);
	cr_assert_arr_eq(p, want, is_v6 ? 16u : 4u);
}

/* Headers in front of the datagram, but for what the two ends of the wire say themselves. */
static void take_frame(const uint8_t *f, size_t there, size_t whole)
{
	bool is_v6 = be16(f + 12) == 0x86dd, ours;
	size_t ip_len = is_v6 ? 40 : 20, head = ETH + ip_len + UDP;
	const uint8_t *ip = f + ETH, *udp = ip + ip_len, *src = ip + (is_v6 ? 8 : 12);

	cr_assert_geq(there, head + BTH);
	cr_assert_lt(cnt, sizeof(frames) / sizeof(frames[0]));
	ours = src[is_v6 ? 15 : 3] == 1;
	is_address(src, ours ? "127.0.0.1" : "127.0.0.2", ours ? "fd00::1" : "fd00::2", is_v6);
	is_address(src + (is_v6 ? 16 : 4), ours ? "127.0.0.2" : "127.0.0.1",
		ours ? "fd00::2" : "fd00::1", is_v6);
	cr_assert_eq(be16(udp + 2), 4791);
	cr_assert_eq(be16(udp + 4), whole - ETH - ip_len);
	cr_assert_eq(be16(ip + (is_v6 ? 4 : 2)), whole - ETH - (is_v6 ? ip_len : 0));
	if (!is_v6)
		cr_assert_eq(be16(ip + 6), 0x4000, "never in fragments");
	frames[cnt].frame = f;
	frames[cnt].bytes = f + head;
	frames[cnt].len = there - head;
	frames[cnt].whole = whole - head;
	frames[cnt++].ours = ours;
}

/* Ends the capture and takes its frames. */
static void end(void)
{
	FILE *in;
	size_t n;

	cr_assert_eq(capture_stop(capture), 0);
	in = fopen(path, "r");
	n = fread(file, 1, sizeof(file), in);
	fclose(in);
	cnt = 0;
	for (size_t at = 0; at < n; at += word(file + at + 4))
		if (word(file + at) == 6)
			take_frame(file + at + 28, word(file + at + 20), word(file + at + 24));
}

static uint8_t tos_of(const uint8_t *frame)
{
	return frame[12] == 0x86 ? (uint8_t)(be16(frame + ETH) >> 4) : frame[ETH + 1];
}

/* Datagrams of one way since the from-th are all that the capture has, in their order. */
static void are_the_same(const struct peer_seen *s, unsigned int from, bool ours)
{
	for (unsigned int i = 0; i < cnt; i++) {
		const uint8_t *ip = frames[i].frame + ETH;
		bool is_v6 = ip[0] >> 4 == 6;

		if (frames[i].ours != ours)
			continue;
		cr_assert_lt(from, s->cnt, "frame %u is on no wire", i);
		cr_assert_eq(frames[i].whole, s->v[from].len, "frame %u", i);
		cr_assert_arr_eq(frames[i].bytes, s->v[from].bytes, frames[i].len);
		cr_assert_eq(be16(ip + (is_v6 ? 40 : 20)), s->v[from].port);
		if (!is_v6)
			cr_assert_eq(be16(ip + 4), s->v[from].id, "frame %u", i);
		from++;
	}
	cr_assert_eq(from, s->cnt, "%u of the wire are missing", s->cnt - from);
}

/* From how the connection was made on. */
static void is_the_wire(void)
{
	are_the_same(&peer_came, came, true);
	are_the_same(&peer_went, went, false);
}

/* How often. */
static unsigned int frames_of(bool ours, uint8_t op)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < cnt; i++)
		n += frames[i].ours == ours && frames[i].bytes[0] == op;
	return n;
}

/* The n-th of that opcode. */
static unsigned int frame_of(bool ours, uint8_t op, unsigned int n)
{
	for (unsigned int i = 0; i < cnt; i++)
		if (frames[i].ours == ours && frames[i].bytes[0] == op && n-- == 0)
			return i;
	cr_assert_fail("no frame %#x", op);
	return 0;
}

static void is_whole(bool ours, uint8_t op, unsigned int n)
{
	unsigned int i = frame_of(ours, op, n);

	cr_assert_eq(frames[i].len, frames[i].whole, "%#x", op);
}

/* ... but for what is behind BTH and `ext` bytes of headers. */
static void is_cut(bool ours, uint8_t op, unsigned int n, size_t ext)
{
	unsigned int i = frame_of(ours, op, n);

	cr_assert_eq(frames[i].len, BTH + ext, "%#x", op);
	cr_assert_gt(frames[i].whole, BTH + ext + 4);
}

static void a_send_each_way(void)
{
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	rig_receive(1000, 100, 2);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	rig_sees("sr");
}

Test(roce_cap, all_that_is_on_the_wire_is_in_it)
{

	begin(false);
	a_send_each_way();
	rig_post(0, 2 * MTU + 1, 3);
	for (uint32_t i = 0; i < 3; i++)
		rig_sends((uint8_t)i, OURS + 1 + i, i * MTU, i < 2 ? MTU : 1);
	peer_ack(&peer, 0x1f, OURS + 3);
	rig_sees("srs");
	rig_none();
	end();
	cr_assert_eq(cnt, 3 + 4 + 4);
	is_the_wire(); /* with REQ, REP, RTU */
	cr_assert_eq(tos_of(frames[frame_of(true, 0x04, 0)].frame), 2);
	cr_assert_eq(tos_of(frames[frame_of(false, 0x04, 0)].frame), 0);
}

Test(roce_cap, while_there_is_none_nothing_is_kept_but_how_the_connection_was_made)
{
	a_send_each_way();
	cr_assert_null(roce_of(ep)->cap.batch);
	begin(false);
	end();
	cr_assert_eq(cnt, 0);
}

Test(roce_cap, each_capture_begins_with_how_the_connection_was_made)
{
	for (uint32_t i = 0; i < 2; i++) {
		unsigned int req = peer_came.cnt;

		begin(false);
		rig_post(0, 100, 1);
		rig_sends(0x04, OURS + i, 0, 100);
		end();
		cr_assert_eq(cnt, 4, "%u", cnt);
		cr_assert(frames[0].ours && !frames[1].ours && frames[2].ours && frames[3].ours);
		for (int f = 0; f < 3; f++)
			cr_assert_eq(frames[f].bytes[0], 0x64);
		cr_assert_arr_eq(frames[0].bytes + 20 + 24, peer.req, 232);
		cr_assert_eq(be16(frames[0].bytes + 20 + 16), 0x10);
		cr_assert_eq(be16(frames[2].bytes + 20 + 16), 0x14);
		cr_assert_eq(frames[1].whole, peer_went.v[0].len);
		cr_assert_arr_eq(frames[1].bytes, peer_went.v[0].bytes, peer_went.v[0].len);
		cr_assert_arr_eq(frames[2].bytes, peer_came.v[req - 1 - i].bytes, 280);
		cr_assert_arr_eq(frames[3].bytes, peer_came.v[req].bytes, frames[3].len);
	}
}

/* The REP comes while it is captured, the REQ went before. */
TestSuite(roce_cap_early, .init = set_up_unconnected, .fini = tear_down);

Test(roce_cap_early, one_that_begins_while_it_is_made_has_all_of_it_once)
{
	uint8_t rtu[232];

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	reactor_timer_cancel(r, &roce_of(ep)->conn.timer); /* no REQ again */
	begin(false);
	peer_send_rep(&peer, OURS, "answer", 6);
	peer_next_mad(&peer, 0x14, rtu, rig_turn);
	rig_sees("RE");
	end();
	cr_assert_eq(cnt, 3);
	came = peer_came.cnt - 2;
	went = 0;
	is_the_wire();
}

/* It is dropped, and so it did not make the connection. */
Test(roce_cap_early, an_answer_of_another_transaction_is_not_kept)
{
	const struct roce_cap_kept *rep = &roce_of(ep)->cap.rep;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	reactor_timer_cancel(r, &roce_of(ep)->conn.timer);
	peer.tid ^= 1;
	peer_send_rep(&peer, OURS, "answer", 6);
	for (int i = 0; i < 20; i++)
		rig_turn();
	cr_assert_eq(rep->len, 0);
	peer.tid ^= 1;
	peer_send_rep(&peer, OURS, "answer", 6);
	rig_sees("RE");
	cr_assert_gt(rep->len, 0);
}

Test(roce_cap, another_connection_has_its_own)
{
	begin(false);
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	rig_connect_again();
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	end();
	cr_assert_geq(frames_of(true, 0x64), 5, "REQ, RTU, DREQ, REQ, RTU");
	cr_assert_eq(frames_of(false, 0x64), 2);
	is_the_wire();
	begin(false);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS + 1, 0, 100);
	end();
	cr_assert_eq(cnt, 4);
	cr_assert_arr_eq(frames[0].bytes + 20 + 24, peer.req, 232);
	cr_assert_arr_eq(frames[1].bytes, peer_went.v[1].bytes, 280);
}

Test(roce_cap, what_is_sent_again_is_there_again)
{

	begin(false);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x60, OURS);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	end();
	cr_assert_eq(frames_of(true, 0x04), 2);
	cr_assert_eq(frames_of(false, 0x11), 2);
	is_the_wire();
}

Test(roce_cap, what_a_full_socket_did_not_take_is_not_in_it)
{
	begin(false);
	takes = 1; /* of three packets, then the second one is lost */
	rig_post(0, 2 * MTU + 1, 3);
	cr_assert_eq(takes, -1);
	rig_sends(0x00, OURS, 0, MTU);
	rig_sends(0x02, OURS + 2, 2 * MTU, 1);
	end();
	cr_assert_eq(frames_of(true, 0x01), 0);
	is_the_wire();
}

Test(roce_cap, what_is_not_the_connections_is_not_in_it)
{
	struct peer_out o = rig_odd();

	begin(true);
	o.spoil = true;
	peer_send(&peer, &o);
	o.spoil = false;
	peer_send_from(&peer, "127.0.0.3", 4791, &o);
	o.qpn ^= 0x100;
	peer_send(&peer, &o);
	peer_went.cnt--;
	rig_none();
	rig_receive(1000, 100, 2);
	rig_asks(0x04, peer.psn, NULL, 0, "hello", 5);
	rig_answers(0x1f, peer.psn);
	end();
	cr_assert_eq(cnt, 3 + 2);
	is_the_wire();
}

Test(roce_cap, what_ip_says_of_a_packet_is_told)
{
	struct peer_out o = rig_odd();

	begin(false);
	rig_receive(1000, 100, 2);
	peer_mark(&peer, 3);
	o.id = 0x1234;
	peer_send(&peer, &o);
	cr_assert(peer_next(&peer, &k, rig_turn));
	cr_assert_eq(k.op, 0x81);
	rig_answers(0x1f, peer.psn);
	end();
	cr_assert_eq(frames_of(true, 0x81), 1);
	cr_assert_eq(tos_of(frames[frame_of(false, 0x04, 0)].frame), 3);
	is_the_wire();
}

/* ---- contents of files ---- */

/* One packet; several, of which the kernel may have put the last ones where they belong. */
static void writes(uint32_t rkey)
{
	memset(text, 'w', sizeof(text));
	peer_reth(reth, rig_at(1000), rkey, 100);
	rig_asks(0x0a, peer.psn, reth, 16, text, 100);
	rig_answers(0x1f, peer.psn);
	peer_reth(reth, rig_at(1000), rkey, 2 * MTU + 5);
	rig_asks(0x06, peer.psn + 1, reth, 16, text, MTU);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.got < MTU; i++)
		rig_turn();
	rig_asks(0x07, peer.psn + 2, NULL, 0, text, MTU);
	rig_asks(0x08, peer.psn + 3, NULL, 0, text, 5);
	rig_answers(0x1f, peer.psn + 3);
}

Test(roce_cap, without_contents_what_a_write_brings_is_left_out)
{
	uint32_t rkey;

	begin(false);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_WRITE);
	message_from = 1050; /* a packet that is in part of a message is none of it */
	message_len = 50;
	writes(rkey);
	end();
	is_cut(false, 0x0a, 0, 16);
	is_cut(false, 0x06, 0, 16);
	is_cut(false, 0x07, 0, 0);
	is_cut(false, 0x08, 0, 0);
	is_the_wire();
	for (unsigned int i = 0; i < cnt; i++)
		cr_assert_null(memmem(frames[i].bytes, frames[i].len, "wwww", 4));
}

Test(roce_cap, a_message_that_a_write_brings_is_whole)
{
	uint32_t rkey;

	begin(false);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_WRITE);
	message_from = 1000;
	message_len = 2 * MTU + 5;
	writes(rkey);
	/* It is not known where this one would go. */
	rig_asks(0x08, peer.psn + 3, NULL, 0, text, 8);
	rig_answers(0x1f, peer.psn + 3);
	end();
	is_whole(false, 0x0a, 0);
	is_whole(false, 0x06, 0);
	is_whole(false, 0x07, 0);
	is_whole(false, 0x08, 0);
	is_cut(false, 0x08, 1, 0);
	is_the_wire();
}

static void reads(uint32_t rkey)
{
	rig_asks_read(peer.psn, rkey, 1000, 2 * MTU + 5);
	rig_reads(0x0d, peer.psn, 1000, MTU);
	rig_reads(0x0e, peer.psn + 1, 1000 + MTU, MTU);
	rig_reads(0x0f, peer.psn + 2, 1000 + 2 * MTU, 5);
	rig_asks_read(peer.psn + 3, rkey, 1000, 100);
	rig_reads(0x10, peer.psn + 3, 1000, 100);
}

Test(roce_cap, without_contents_what_a_read_takes_is_left_out)
{
	uint32_t rkey;

	begin(false);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_READ);
	message_from = 1050;
	message_len = sizeof(mem);
	reads(rkey);
	end();
	is_cut(true, 0x0d, 0, 4);
	is_whole(true, 0x0e, 0);
	is_whole(true, 0x0f, 0);
	is_cut(true, 0x10, 0, 4);
	is_whole(false, 0x0c, 0);
	is_the_wire();
}

/* Nobody says what is a message. */
Test(roce_cap, what_is_not_known_is_left_out)
{
	uint32_t rkey;

	roce_of(ep)->ops = &rig_ops;
	begin(false);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_READ);
	reads(rkey);
	end();
	is_cut(true, 0x0d, 0, 4);
	is_cut(true, 0x0e, 0, 0);
}

Test(roce_cap, with_contents_all_is_whole)
{
	uint32_t rkey;

	begin(true);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_READ | FAB_REMOTE_WRITE);
	writes(rkey);
	peer.psn += 4;
	reads(rkey);
	end();
	for (unsigned int i = 0; i < cnt; i++)
		cr_assert_eq(frames[i].len, frames[i].whole);
	is_the_wire();
}

/* Identifications count up where the kernel cuts a long datagram. */
Test(roce_cap, what_the_kernel_cuts_is_there_as_it_was_cut)
{
	uint32_t rkey;
	unsigned int n = 10, cut = 0;

	begin(true);
	rkey = rig_window(0, sizeof(mem), FAB_REMOTE_READ);
	rig_asks_read(peer.psn, rkey, 0, n * MTU);
	for (uint32_t i = 0; i < n; i++) {
		rig_reads(i == 0 ? 0x0d : i + 1 == n ? 0x0f : 0x0e, peer.psn + i, i * MTU, MTU);
		cut += k.id > 0;
	}
	end();
	cr_assert_gt(cut, 0);
	is_the_wire();
}

/* ---- IPv6 ---- */

static void set_up6(void)
{
	if (!peer_network6(false))
		cr_skip_test("there may be no network of its own, or none of IPv6");
	set_up();
}

TestSuite(roce_cap_v6, .init = set_up6, .fini = tear_down);

Test(roce_cap_v6, frames_are_there)
{

	begin(false);
	peer_mark(&peer, 1);
	a_send_each_way();
	end();
	cr_assert_eq(tos_of(frames[frame_of(true, 0x04, 0)].frame), 2);
	cr_assert_eq(tos_of(frames[frame_of(false, 0x04, 0)].frame), 1);
	is_the_wire();
}
