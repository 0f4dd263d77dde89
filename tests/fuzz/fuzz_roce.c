/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is a series of packets to an endpoint that is connected, with receives, Sends under
 * way, a window that the peer may read (10000 bytes) and one that it may write (20000 bytes).
 *
 *   1 byte   bit 0: IPv6; bits 1-2: MTU; bit 3: the endpoint of the input before goes on, if it is
 *            still connected, else is connected again
 *   and for each packet
 *   2 bytes  its length
 *   1 byte   what is put right: enum right
 *   1 byte   how it comes, and what the owner does before: enum way
 *   ...      the packet without ICRC; of the CM: an attribute, then a MAD from its byte 24 on;
 *            nothing: the one before once more
 *
 * Afterwards all is as it should be (roce_rig_check()).
 */
#include "fuzz.h"

#include <string.h>

#include "roce_rig.h"

#define INPUT_MAX 256u /* longer ones only take longer */
#define IS_V6     0x01
#define GOES_ON   0x08

/* An input, as far as it is. */
struct run {
	bool in_batch;
	const uint8_t *last; /* packet */
	size_t last_len;
	struct rig_given given[RIG_TOGETHER]; /* cnt packets that are there, and not received yet */
	uint8_t bytes[RIG_TOGETHER][RIG_PACKET];
	unsigned int cnt;
};

enum right {
	RIGHT_NUMBER = 0x01, /* queue pair; of the CM: communication IDs and queue pair */
	RIGHT_PSN = 0x06,    /* 0x02: the one in turn, 0x04: one before, 0x06: one later */
	RIGHT_KEY = 0x18,  /* RETH, IETH. 0x08: of the window to write; 0x10: read; 0x18: closed */
	RIGHT_ICRC = 0x20, /* it is put behind the packet */
	RIGHT_ADDRESS = 0x40, /* it comes from the peer */
	RIGHT_MAD = 0x80,     /* it is one of the CM */
};

enum way {
	WAY_CE = 0x01,
	WAY_HANDED_OVER = 0x02,
	WAY_TRUSTED = 0x04,
	WAY_FULL = 0x08, /* the payload is made as long as the MTU */
	WAY_MORE = 0x10, /* the next one is of the same batch, and received together with it */
	WAY_OWNER = 0xe0,
};

static struct rig_win *window(bool is_open, unsigned int access)
{
	for (unsigned int i = 0; i < RIG_WINS; i++)
		if ((rig.wins[i].access != 0) == is_open && rig.wins[i].access == access)
			return &rig.wins[i];
	return &rig.wins[0];
}

/* ahead: packets that are there before it. */
static void put_psn(uint8_t *b, unsigned int kind, unsigned int which, unsigned int ahead)
{
	const struct roce_ep *ep = roce_of(rig.ep);
	bool is_resp = kind & ROCE_IS_RESP;
	uint32_t psn = is_resp ? ep->req.acked : ep->resp.psn + ahead;

	if (which == 0)
		return;
	if (which == 0x04)
		psn--;
	if (which == 0x06)
		psn = is_resp ? ep->req.sent - 1 : psn + 1;
	b[9] = (uint8_t)(psn >> 16);
	roce_wire_put16(b + 10, psn & 0xffff);
}

/* The address in the packet is an offset. */
static void put_key(uint8_t *b, unsigned int kind, unsigned int which)
{
	const struct rig_win *w = which == 0x08   ? window(true, FAB_REMOTE_WRITE)
				  : which == 0x10 ? window(true, FAB_REMOTE_READ)
						  : window(false, 0);
	uint8_t *ext = b + ROCE_BTH_LEN;

	if (which == 0)
		return;
	if (kind & ROCE_HAS_RETH) {
		roce_wire_put64(ext, roce_wire_get64(ext) + (uintptr_t)w->area->addr);
		roce_wire_put32(ext + 8, w->rkey);
	} else if (kind & ROCE_HAS_IETH) {
		roce_wire_put32(ext, w->rkey);
	}
}

/* Returns the length with ICRC. */
static size_t packet(uint8_t *b, const uint8_t *data, size_t size, unsigned int right, bool is_full,
	unsigned int ahead)
{
	unsigned int kind = size > 0 ? roce_wire_kind(data[0]) : 0;
	size_t head = ROCE_BTH_LEN + (size > 0 ? roce_rig_ext_len(data[0]) : 0);
	size_t full = head + roce_of(rig.ep)->mtu;

	if (size > full)
		size = full;
	memset(b, 'f', RIG_PACKET);
	memcpy(b, data, size);
	if (size < head)
		return size;
	if (is_full) {
		size = full;
		b[1] &= 0xcf;
	}
	if (right & RIGHT_NUMBER) {
		b[5] = (uint8_t)(rig.qpn >> 16);
		roce_wire_put16(b + 6, rig.qpn & 0xffff);
	}
	put_psn(b, kind, right & RIGHT_PSN, ahead);
	put_key(b, kind, right & RIGHT_KEY);
	return right & RIGHT_ICRC ? size + ROCE_ICRC_LEN : size;
}

static size_t mad(uint8_t *b, const uint8_t *data, size_t size, unsigned int right)
{
	uint8_t body[ROCE_MAD_LEN - 24] = {0};
	uint16_t attr = size > 0 ? data[0] : 0;

	if (size > 1)
		memcpy(body, data + 1, size - 1 < sizeof(body) ? size - 1 : sizeof(body));
	if (right & RIGHT_NUMBER) {
		roce_wire_put32(body, RIG_PEER_ID);
		roce_wire_put32(body + 4, rig.id);
		if (attr == ROCE_MAD_DREQ)
			roce_wire_put32(body + 8, rig.qpn << 8);
	}
	return roce_rig_build_mad(b, attr, body, sizeof(body));
}

static void owner(unsigned int what)
{
	switch (what) {
	case 0x20:
		roce_rig_send(0x23);
		break;
	case 0x40:
		roce_rig_recv(0);
		break;
	case 0x60:
		roce_rig_open(0, FAB_REMOTE_READ);
		break;
	case 0x80:
		roce_rig_close(3);
		break;
	case 0xa0:
		roce_rig_room();
		roce_rig_pass(REACTOR_NEVER);
		break;
	case 0xc0:
		rig.room = 2;
		break;
	case 0xe0:
		roce_rig_disconnect();
		break;
	default:
		break;
	}
}

static void receive(struct run *run)
{
	roce_rig_give_together(run->given, run->cnt);
	run->cnt = 0;
}

/* By our own socket the peer's alone come; they wait for more of the batch. */
static void give(struct run *run, size_t len, const struct rig_way *how)
{
	const uint8_t *b = run->bytes[run->cnt];

	if (how->stranger || how->handed_over || len > ROCE_PACKET_MAX) {
		receive(run);
		roce_rig_give(b, len, how);
		return;
	}
	run->given[run->cnt++] = (struct rig_given){.b = b, .len = len, .way = *how};
	if (run->cnt == RIG_TOGETHER || !run->in_batch)
		receive(run);
}

/* Returns the bytes that were taken. */
static size_t record(struct run *run, const uint8_t *data, size_t size)
{
	size_t len = (size_t)data[0] << 8 | data[1];
	unsigned int right = data[2], way = data[3];
	const struct rig_way how = {.ce = way & WAY_CE,
		.handed_over = way & WAY_HANDED_OVER,
		.trusted = way & WAY_TRUSTED,
		.stranger = !(right & RIGHT_ADDRESS),
		.port = RIG_PORT};
	uint8_t *b = run->bytes[run->cnt];
	size_t n;

	if (len > size - 4)
		len = size - 4;
	if (len > 0) {
		run->last = data + 4;
		run->last_len = len;
	}
	if (!run->in_batch)
		owner(way & WAY_OWNER);
	n = right & RIGHT_MAD
		    ? mad(b, run->last, run->last_len, right)
		    : packet(b, run->last, run->last_len, right, way & WAY_FULL, run->cnt);
	if (right & RIGHT_ICRC)
		roce_rig_seal(b, n, how.port);
	if (!run->in_batch)
		roce_rig_batch_begin();
	run->in_batch = way & WAY_MORE;
	give(run, n, &how);
	if (!run->in_batch) {
		roce_rig_batch_end();
		roce_rig_check_queues();
	}
	return len + 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned int mtus[] = {576, 1500, 1500, 9000};
	static struct run run;

	if (size < 1 || size > INPUT_MAX)
		return 0;
	run.in_batch = false;
	run.last = data;
	run.last_len = 0;
	run.cnt = 0;
	if (rig.ep && !(data[0] & GOES_ON))
		roce_rig_free();
	if (!rig.ep)
		roce_rig_new(1);
	if (rig.state != RIG_UP) {
		rig.is_v6 = data[0] & IS_V6;
		rig.ip_mtu = mtus[data[0] >> 1 & 3];
	}
	roce_rig_connect();
	data++;
	size--;
	while (size >= 4) {
		size_t taken = record(&run, data, size);

		data += taken;
		size -= taken;
	}
	if (run.in_batch) {
		receive(&run);
		roce_rig_batch_end();
	}
	roce_rig_room();
	roce_rig_pass(0);
	roce_rig_check();
	return 0;
}
