/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A storm of packets on one endpoint: each is a valid one of a random kind that was changed 0 to 5
 * times, and mostly has the right ICRC then. The next packets of a Write come together, as one
 * system call receives them: some lost, twice or changed, and others amid. Its owner posts, binds
 * and takes back meanwhile, the socket is full now and then, and a connection that is lost is made
 * again. After each 10000 packets, and when a connection ends, all is as it should be
 * (roce_rig_check()).
 *
 *   PACKETS=n  how many; default 300000
 *   SEED=n     of all that is random; default 1. The same seed makes the same storm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#define CHECK_EACH  10000u
#define TELL_EACH   10000000u
#define HISTORY     16u
#define CHANGES_MAX 5u

static uint64_t state; /* of the generator */
static uint8_t before[HISTORY][RIG_PACKET];
static size_t before_len[HISTORY];
static unsigned int before_next;

static uint32_t rnd(void)
{
	return roce_rig_random(&state);
}

static uint32_t below(uint32_t n)
{
	return rnd() % n;
}

static bool one_in(uint32_t n)
{
	return below(n) == 0;
}

static struct roce_ep *ep(void)
{
	return roce_of(rig.ep);
}

/* ---- valid packets ---- */

#define TEXTS 64u /* that differ */

static uint8_t text[ROCE_MTU_MOST + TEXTS];

static const struct rig_win *open_win(unsigned int access)
{
	uint32_t pick = rnd();

	for (unsigned int i = 0; i < RIG_WINS; i++) {
		const struct rig_win *w = &rig.wins[(pick + i) % RIG_WINS];

		if (w->access & access)
			return w;
	}
	return NULL;
}

/* Memory that is open: a window's, or that of a registration. */
static void aim(struct rig_packet *p, unsigned int access)
{
	const struct rig_win *w = one_in(8) ? NULL : open_win(access);
	bool is_read = access == FAB_REMOTE_READ;
	const struct rig_area *a =
		w ? w->area : &rig.areas[is_read ? RIG_AREA_READ : RIG_AREA_WRITE];
	uint32_t off = one_in(2) ? 0 : below(a->len);

	p->va = (uintptr_t)a->addr + off;
	p->dma_len = one_in(4) ? a->len - off : below(a->len - off + 1);
	p->rkey = w ? w->rkey : roce_impl.mr_rkey(is_read ? rig.mr_read : rig.mr_write);
}

/* As the message has begun, or a new one. */
static void make_send(struct rig_packet *p)
{
	const struct roce_responder *q = &ep()->resp;
	uint32_t mtu = ep()->mtu, room = mtu;
	bool goes_on = q->kind & ROCE_IS_SEND;
	const struct rig_win *w = one_in(16) ? open_win(FAB_REMOTE_READ | FAB_REMOTE_WRITE) : NULL;

	if (q->first != q->end) {
		const struct roce_recv *r = &q->ring[q->first % q->size];

		room = r->len - (goes_on ? q->got : 0);
	}
	p->payload = text;
	if (room > mtu && !one_in(3)) {
		p->op = goes_on ? ROCE_OP_SEND_MIDDLE : ROCE_OP_SEND_FIRST;
		p->len = mtu;
		return;
	}
	p->ack_req = true;
	p->op = goes_on ? ROCE_OP_SEND_LAST : ROCE_OP_SEND_ONLY;
	if (w) {
		p->op = goes_on ? ROCE_OP_SEND_LAST_INV : ROCE_OP_SEND_ONLY_INV;
		p->rkey = w->rkey;
	}
	room = room < mtu ? room : mtu;
	p->len = one_in(2) ? room : below(room + 1);
	if (goes_on && p->len == 0)
		p->len = 1;
}

static void make_write(struct rig_packet *p)
{
	const struct roce_responder *q = &ep()->resp;
	bool goes_on = q->kind & ROCE_IS_WRITE;
	uint32_t mtu = ep()->mtu, left;

	if (!goes_on)
		aim(p, FAB_REMOTE_WRITE);
	left = goes_on ? q->total - q->got : p->dma_len;
	p->payload = text;
	if (left > mtu) {
		p->op = goes_on ? ROCE_OP_WRITE_MIDDLE : ROCE_OP_WRITE_FIRST;
		p->len = mtu;
		p->ack_req = one_in(8);
		return;
	}
	p->op = goes_on ? ROCE_OP_WRITE_LAST : ROCE_OP_WRITE_ONLY;
	p->ack_req = true;
	p->len = left;
}

static void make_read(struct rig_packet *p)
{
	p->op = ROCE_OP_READ_REQUEST;
	p->ack_req = true;
	aim(p, FAB_REMOTE_READ);
}

static void make_ack(struct rig_packet *p)
{
	const struct roce_requester *q = &ep()->req;
	int32_t under_way = roce_wire_psn_diff(q->sent, q->acked);

	p->op = ROCE_OP_ACK;
	p->syndrome = ROCE_AETH_ACK;
	p->psn = q->sent - 1;
	if (under_way > 0 && one_in(2))
		p->psn = q->acked + below((uint32_t)under_way);
	if (one_in(16))
		p->syndrome = ROCE_AETH_NAK_SEQUENCE;
	else if (one_in(16))
		p->syndrome = (uint8_t)(ROCE_AETH_RNR | below(32));
}

/* Of a message that was taken, or looks so. */
static void make_again(struct rig_packet *p)
{
	if (one_in(2))
		make_read(p);
	else
		make_send(p);
	p->psn = ep()->resp.psn - 1 - below(one_in(4) ? 1000 : 4);
}

static void make_other(struct rig_packet *p)
{
	static const uint8_t ops[] = {ROCE_OP_CNP, ROCE_OP_READ_RESP_FIRST,
		ROCE_OP_READ_RESP_MIDDLE, ROCE_OP_READ_RESP_LAST, ROCE_OP_READ_RESP_ONLY,
		ROCE_OP_CNP};

	p->op = ops[below(sizeof(ops))];
	p->payload = text;
	p->len = p->op == ROCE_OP_CNP ? 0 : below(64);
}

/* Those that end the connection are rare. */
static size_t make_mad(uint8_t *b)
{
	static const uint8_t attrs[] = {ROCE_MAD_REP, ROCE_MAD_RTU, ROCE_MAD_MRA, ROCE_MAD_DREP,
		ROCE_MAD_REJ, ROCE_MAD_REQ, ROCE_MAD_REP, ROCE_MAD_REP};
	uint16_t attr = one_in(64) ? ROCE_MAD_DREQ : attrs[below(sizeof(attrs))];
	const struct roce_conn *c = &ep()->conn;
	uint8_t body[ROCE_MAD_LEN - 24] = {0};
	bool is_past = one_in(4);

	for (unsigned int i = 8; i < 36; i++)
		body[i] = (uint8_t)rnd();
	roce_wire_put32(body, is_past ? c->dreq.remote_id : RIG_PEER_ID);
	roce_wire_put32(body + 4, is_past ? c->dreq.local_id : rig.id);
	if (attr == ROCE_MAD_DREQ)
		roce_wire_put32(body + 8, rig.qpn << 8);
	return roce_rig_build_mad(b, attr, body, sizeof(body));
}

static size_t make(uint8_t *b)
{
	struct rig_packet p = {.qpn = rig.qpn, .psn = ep()->resp.psn};
	unsigned int in_message = ep()->resp.kind, kind = below(32);

	if (in_message && !one_in(8))
		kind = in_message & ROCE_IS_SEND ? 0 : 10;
	if (kind < 9)
		make_send(&p);
	else if (kind < 16)
		make_write(&p);
	else if (kind < 20)
		make_read(&p);
	else if (kind < 26)
		make_ack(&p);
	else if (kind < 29)
		make_again(&p);
	else if (kind < 30)
		make_other(&p);
	else
		return make_mad(b);
	return roce_rig_build(b, &p);
}

/* ---- changes ---- */

static uint32_t some_key(void)
{
	const struct rig_win *w = &rig.wins[below(RIG_WINS)];

	switch (below(6)) {
	case 0:
		return 0;
	case 1:
		return rnd();
	case 2:
		return roce_impl.mr_rkey(rig.mr_read);
	case 3:
		return roce_impl.mr_rkey(rig.mr);
	default:
		return w->rkey; /* open or closed */
	}
}

static uint32_t some_number(uint32_t v)
{
	static const uint32_t edges[] = {
		0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffff000, 0x00ffffff, 4096};

	switch (below(3)) {
	case 0:
		return v + below(9) - 4;
	case 1:
		return edges[below(8)];
	default:
		return rnd();
	}
}

/* A field of what stands behind the BTH. */
static void change_ext(uint8_t *b)
{
	unsigned int kind = roce_wire_kind(b[0]);
	uint8_t *ext = b + ROCE_BTH_LEN;

	if (kind & ROCE_HAS_RETH) {
		switch (below(4)) {
		case 0:
			roce_wire_put64(ext, roce_wire_get64(ext) + below(65) - 32);
			break;
		case 1:
			roce_wire_put64(ext, (uint64_t)some_number(0) << 32 | rnd());
			break;
		case 2:
			roce_wire_put32(ext + 8, some_key());
			break;
		default:
			roce_wire_put32(ext + 12, some_number(roce_wire_get32(ext + 12)));
			break;
		}
	} else if (kind & ROCE_HAS_IETH) {
		roce_wire_put32(ext, some_key());
	} else if (kind & ROCE_HAS_AETH) {
		ext[0] = (uint8_t)rnd();
	} else {
		roce_wire_put32(ext, some_number(roce_wire_get32(ext)));
	}
}

static void change_psn(uint8_t *b)
{
	uint32_t psn = roce_wire_get24(b + 9);

	psn = one_in(4) ? rnd() : psn + below(9) - 4;
	b[9] = (uint8_t)(psn >> 16);
	roce_wire_put16(b + 10, psn & 0xffff);
}

static size_t change_len(uint8_t *b, size_t len)
{
	size_t to = len;

	switch (below(4)) {
	case 0:
		to = below((uint32_t)len + 1);
		break;
	case 1:
		to = len - (len >= 8 ? 4 : 0);
		break;
	case 2:
		to = len + 4 * below(16);
		break;
	default:
		to = below(RIG_PACKET + 1);
		break;
	}
	to = to < RIG_PACKET ? to : RIG_PACKET;
	for (size_t i = len; i < to; i++)
		b[i] = (uint8_t)i;
	return to;
}

/* One change; returns the length. There are at least 16 bytes. */
static size_t change(uint8_t *b, size_t len)
{
	static const uint8_t ops[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf,
		0x10, 0x11, 0x16, 0x17, 0x64, 0x81};
	size_t at;

	switch (below(12)) {
	case 0:
		at = below((uint32_t)len);
		b[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		b[below(len < 44 ? (uint32_t)len : 44)] = (uint8_t)rnd();
		break;
	case 2:
		b[0] = one_in(4) ? (uint8_t)rnd() : ops[below(sizeof(ops))];
		break;
	case 3:
	case 4:
		change_psn(b);
		break;
	case 5:
		b[5 + below(3)] ^= (uint8_t)(1u << below(8));
		break;
	case 6:
		return change_len(b, len);
	case 7:
		b[1] = (uint8_t)rnd();
		break;
	case 8:
		b[8] = (uint8_t)rnd();
		break;
	case 9:
	case 10:
		change_ext(b);
		break;
	default:
		at = below(HISTORY);
		if (before_len[at] >= 16) {
			len = before_len[at];
			memcpy(b, before[at], len);
		}
		break;
	}
	return len;
}

/* ---- the storm ---- */

/* 0 to 5 changes, one more in one_of; mostly it has the right ICRC then. Returns the length. */
static size_t spoil(uint8_t *b, size_t len, uint32_t one_of, uint16_t port)
{
	unsigned int changes = 0;

	while (changes < CHANGES_MAX && len >= 16 && one_in(one_of)) {
		len = change(b, len);
		changes++;
	}
	if (changes == 0 || !one_in(8))
		roce_rig_seal(b, len, port);
	return len;
}

static void give_one(void)
{
	static uint8_t b[RIG_PACKET];
	const struct rig_way way = {.ce = one_in(32),
		.handed_over = one_in(32),
		.trusted = one_in(2),
		.stranger = one_in(64),
		.port = one_in(64) ? (uint16_t)rnd() : RIG_PORT};
	size_t len = spoil(b, make(b), 2, way.port);

	if (one_in(4)) {
		memcpy(before[before_next], b, len);
		before_len[before_next] = len;
		before_next = (before_next + 1) % HISTORY;
	}
	roce_rig_give(b, len, &way);
}

static bool is_amid_write(void)
{
	const struct roce_responder *q = &ep()->resp;

	return ep()->state == ROCE_UP && q->kind == ROCE_IS_WRITE && q->got < q->total;
}

static void give_rest(void)
{
	static uint8_t b[RIG_TOGETHER][RIG_PACKET];
	uint32_t psn = ep()->resp.psn, left = ep()->resp.total - ep()->resp.got, mtu = ep()->mtu;
	struct rig_given g[RIG_TOGETHER];
	unsigned int cnt = 0;

	while (cnt < RIG_TOGETHER && left > 0 && !one_in(16)) {
		uint32_t len = left < mtu ? left : mtu, how = below(24);
		size_t size;

		if (how == 0)
			size = make(b[cnt]);
		else
			size = roce_rig_build(
				b[cnt], &(struct rig_packet){.op = left > mtu ? ROCE_OP_WRITE_MIDDLE
									      : ROCE_OP_WRITE_LAST,
						.ack_req = left <= mtu || one_in(8),
						.qpn = rig.qpn,
						.psn = psn,
						.payload = text + below(TEXTS),
						.len = len});
		if (how > 1) { /* else it comes once more */
			psn++;
			left -= len;
		}
		size = spoil(b[cnt], size, 12, RIG_PORT);
		if (how == 2 || size > ROCE_PACKET_MAX)
			continue;
		g[cnt] = (struct rig_given){
			.b = b[cnt], .len = size, .way = {.ce = one_in(32), .port = RIG_PORT}};
		cnt++;
	}
	roce_rig_give_together(g, cnt);
}

/* From within callbacks, and between packets. */
static void do_something(void)
{
	switch (below(8)) {
	case 0:
		roce_rig_open(rnd(), one_in(2) ? FAB_REMOTE_READ : FAB_REMOTE_WRITE);
		break;
	case 1:
		if (one_in(4))
			roce_rig_close(rnd());
		break;
	case 2:
	case 3:
	case 4:
		roce_rig_recv(rnd());
		break;
	case 5:
		if (one_in(300))
			roce_rig_disconnect();
		break;
	default:
		roce_rig_send(rnd());
		break;
	}
}

static void meddle(void)
{
	/* While an attempt fails. */
	if (rig.state == RIG_CONNECTING && one_in(16))
		roce_rig_disconnect();
	else if (one_in(2))
		do_something();
}

static void batch(void)
{
	uint32_t cnt = one_in(2) ? 1 : 1 + below(one_in(16) ? 40 : 4);

	roce_rig_batch_begin();
	for (uint32_t i = 0; i < cnt; i++) {
		if (is_amid_write() && !one_in(4))
			give_rest();
		else
			give_one();
	}
	roce_rig_batch_end();
	roce_rig_check_queues();
}

static void step(void)
{
	if (rig.room != UINT32_MAX && one_in(4))
		roce_rig_room();
	if (rig.state != RIG_UP) {
		if (rig.mr && one_in(4))
			batch();
		if (rig.state == RIG_IDLE) {
			rig.is_v6 = one_in(4);
			rig.ip_mtu = (unsigned int[]){576, 1500, 1500, 9000}[below(4)];
			roce_rig_check();
		}
		roce_rig_step();
		return;
	}
	batch();
	for (uint32_t n = below(4); n > 0; n--)
		do_something();
	if (one_in(128))
		rig.room = below(8);
	if (one_in(8))
		roce_rig_pass(one_in(64) ? REACTOR_NEVER : below(20000));
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

static void tell(const struct rig_counts *c)
{
	printf("# %" PRIu64 " packets, %" PRIu64 " new requests taken, %" PRIu64
	       " received in place, %" PRIu64 " of them behind others; %" PRIu64
	       " connections, %" PRIu64 " lost\n",
		c->given, c->taken, c->apart, c->apart_later, c->connections, c->lost);
	printf("# %" PRIu64 " Sends, %" PRIu64 " receives done, %" PRIu64
	       " requests flushed, %" PRIu64 " windows given back\n",
		c->sent, c->received, c->flushed, c->invalidated);
	printf("# out: %" PRIu64 " of Sends, %" PRIu64 " of Reads, %" PRIu64 " ACK, %" PRIu64
	       " NAK, %" PRIu64 " RNR, %" PRIu64 " CNP, %" PRIu64 " of the CM; full %" PRIu64
	       " times; %" PRIu64 " handed over\n",
		c->sends, c->reads, c->acks, c->naks, c->rnrs, c->cnps, c->mads, c->full,
		c->handed_over);
	fflush(stdout);
}

/* One that reaches nothing shows nothing. */
static bool was_a_storm(const struct rig_counts *c)
{
	return c->taken && c->apart_later && c->connections > 1 && c->lost && c->sent &&
	       c->received && c->flushed && c->invalidated && c->sends && c->reads && c->acks &&
	       c->naks && c->rnrs && c->cnps && c->full && c->handed_over;
}

int main(void)
{
	uint64_t packets = setting("PACKETS", 300000), seed = setting("SEED", 1), next = 0,
		 told = 0;

	printf("# PACKETS=%" PRIu64 " SEED=%" PRIu64 "\n", packets, seed);
	fflush(stdout);
	for (unsigned int i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7 + i / 251);
	state = seed * 2 + 1;
	roce_rig_new(seed);
	rig.meddle = meddle;
	while (rig.counts.given < packets) {
		step();
		if (rig.counts.given / CHECK_EACH != next) {
			next = rig.counts.given / CHECK_EACH;
			roce_rig_check();
		}
		if (rig.counts.given / TELL_EACH != told) {
			told = rig.counts.given / TELL_EACH;
			tell(&rig.counts);
		}
	}
	roce_rig_free();
	tell(&rig.counts);
	printf("%sok 1 - nothing broke, and all was reached\n1..1\n",
		was_a_storm(&rig.counts) ? "" : "not ");
	return was_a_storm(&rig.counts) ? 0 : 1;
}
