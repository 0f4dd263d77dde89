/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_frame.h"

#include <assert.h>
#include <libdeflate.h>
#include <string.h>

#define ETH_LEN  14u
#define IPV4_LEN 20u
#define IPV6_LEN 40u
#define UDP_LEN  8u
#define BTH_LEN  12u
#define ICRC_LEN 4u

#define PKEY_DEFAULT 0xffffu
#define QKEY_GSI     0x80010000u
#define AETH_ACK     0x1fu /* ACK, without a count of credits */
#define PSN_MASK     0xffffffu

/* Opcodes of reliable connections, IBA volume 1 table 38. */
enum {
	RC_SEND_FIRST = 0x00,
	RC_SEND_MIDDLE = 0x01,
	RC_SEND_LAST = 0x02,
	RC_SEND_ONLY = 0x04,
	RC_WRITE_FIRST = 0x06,
	RC_WRITE_MIDDLE = 0x07,
	RC_WRITE_LAST = 0x08,
	RC_WRITE_ONLY = 0x0a,
	RC_READ_REQUEST = 0x0c,
	RC_READ_RESP_FIRST = 0x0d,
	RC_READ_RESP_MIDDLE = 0x0e,
	RC_READ_RESP_LAST = 0x0f,
	RC_READ_RESP_ONLY = 0x10,
	RC_SEND_LAST_INV = 0x16,
	RC_SEND_ONLY_INV = 0x17,
	UD_SEND_ONLY = 0x64,
};

struct bth {
	uint8_t opcode;
	uint8_t pad;
	bool ack_req;
	uint32_t qpn, psn;
};

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v & 0xffff);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint8_t *put_bytes(uint8_t *p, const void *v, size_t len)
{
	memcpy(p, v, len);
	return p + len;
}

/* Packets that `len` bytes take: at least one. */
static uint32_t packets_of(uint32_t len, uint32_t mtu)
{
	return len <= mtu ? 1 : (len + mtu - 1) / mtu;
}

/* ---- headers ---- */

/* `len`: of what is behind the BTH, with round-up, without ICRC. */
static uint8_t *put_headers(uint8_t *p, const struct roce_flow *f, const struct bth *b, size_t len)
{
	struct udp_frame u = {.is_v6 = f->is_v6, .src = f->src.udp, .dst = f->dst.udp};

	u.src.port = f->udp_port;
	u.dst.port = ROCE_UDP_PORT;
	p += udp_frame_head(&u, BTH_LEN + len + ICRC_LEN, p);
	*p++ = b->opcode;
	*p++ = (uint8_t)(b->pad << 4);
	p = put32(put16(p, PKEY_DEFAULT), b->qpn & 0xffffff);
	return put32(p, (b->ack_req ? 0x80000000u : 0) | (b->psn & PSN_MASK));
}

/*
 * Annex A17.3.3: CRC-32 of the packet with ones in place of what may change on
 * the way, behind eight bytes of ones for the header that InfiniBand has there.
 */
void roce_frame_icrc(const uint8_t *ip, size_t len, uint8_t icrc[4])
{
	bool is_v6 = ip[0] >> 4 == 6;
	size_t ip_len = is_v6 ? IPV6_LEN : IPV4_LEN, head = ip_len + UDP_LEN + BTH_LEN;
	uint8_t masked[8 + IPV6_LEN + UDP_LEN + BTH_LEN], *h = masked + 8;
	uint32_t crc;

	assert(len >= head);
	memset(masked, 0xff, 8);
	memcpy(h, ip, head);
	if (is_v6) {
		h[0] |= 0x0f; /* traffic class, flow label */
		h[1] = h[2] = h[3] = 0xff;
		h[7] = 0xff; /* hop limit */
	} else {
		h[1] = 0xff;          /* type of service */
		h[8] = 0xff;          /* time to live */
		h[10] = h[11] = 0xff; /* checksum */
	}
	h[ip_len + 6] = h[ip_len + 7] = 0xff; /* UDP's checksum */
	h[ip_len + UDP_LEN + 4] = 0xff;       /* FECN, BECN, reserved */
	crc = libdeflate_crc32(0, masked, 8 + head);
	crc = libdeflate_crc32(crc, ip + head, len - head);
	for (unsigned int i = 0; i < 4; i++)
		icrc[i] = (uint8_t)(crc >> 8 * i);
}

static size_t finish(uint8_t *frame, uint8_t *end)
{
	roce_frame_icrc(frame + ETH_LEN, (size_t)(end - frame) - ETH_LEN, end);
	return (size_t)(end - frame) + ICRC_LEN;
}

/* ---- messages ---- */

static uint8_t opcode_of(enum roce_kind kind, bool first, bool last)
{
	/* first, middle, last, only */
	static const uint8_t ops[][4] = {
		[ROCE_SEND] = {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST, RC_SEND_ONLY},
		[ROCE_SEND_INV] = {RC_SEND_FIRST, RC_SEND_MIDDLE, RC_SEND_LAST_INV,
			RC_SEND_ONLY_INV},
		[ROCE_WRITE] = {RC_WRITE_FIRST, RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_WRITE_ONLY},
		[ROCE_READ] = {RC_READ_REQUEST, RC_READ_REQUEST, RC_READ_REQUEST, RC_READ_REQUEST},
		[ROCE_READ_RESP] = {RC_READ_RESP_FIRST, RC_READ_RESP_MIDDLE, RC_READ_RESP_LAST,
			RC_READ_RESP_ONLY},
	};

	return ops[kind][first ? (last ? 3 : 0) : last ? 2 : 1];
}

static size_t ext_len(enum roce_kind kind, bool first, bool last)
{
	switch (kind) {
	case ROCE_SEND:
		return 0;
	case ROCE_SEND_INV:
		return last ? 4 : 0;
	case ROCE_WRITE:
		return first ? 16 : 0;
	case ROCE_READ:
		return 16;
	case ROCE_READ_RESP:
		return first || last ? 4 : 0;
	}
	return 0;
}

/* Extended headers: RETH, IETH, AETH. */
static uint8_t *put_ext(uint8_t *p, const struct roce_flow *f, const struct roce_msg *m, size_t len)
{
	if (len == 16)
		return put32(put32(put64(p, m->addr), m->rkey), m->len);
	if (len == 4 && m->kind == ROCE_SEND_INV)
		return put32(p, m->rkey);
	if (len == 4)
		return put32(p, AETH_ACK << 24 | (f->msn & 0xffffff));
	return p;
}

static uint8_t *put_payload(uint8_t *p, struct roce_msg *m, uint32_t len)
{
	while (len > 0) {
		const struct roce_piece *piece = &m->pieces[m->piece];
		uint32_t n = piece->len - m->piece_off;

		assert(m->piece < m->piece_cnt);
		n = n < len ? n : len;
		if (n > 0)
			p = put_bytes(p, (const uint8_t *)piece->p + m->piece_off, n);
		m->piece_off += n;
		len -= n;
		if (m->piece_off == piece->len) {
			m->piece++;
			m->piece_off = 0;
		}
	}
	return p;
}

static uint32_t take_psn(struct roce_flow *f, struct roce_msg *m, bool first)
{
	uint32_t psn = f->psn;

	if (m->kind == ROCE_READ_RESP) {
		if (first)
			f->msn++;
		return m->resp_psn++;
	}
	f->psn += m->kind == ROCE_READ ? packets_of(m->len, f->mtu) : 1;
	f->psn &= PSN_MASK;
	return psn;
}

size_t roce_frame_next(struct roce_flow *f, struct roce_msg *m, uint8_t *out)
{
	uint32_t left = m->kind == ROCE_READ ? 0 : m->len - m->done;
	uint32_t n = left < f->mtu ? left : f->mtu, pad = -n & 3;
	bool first = m->done == 0, last = left <= f->mtu;
	size_t ext = ext_len(m->kind, first, last);
	struct bth b = {.opcode = opcode_of(m->kind, first, last),
		.pad = (uint8_t)pad,
		.ack_req = last && m->kind != ROCE_READ_RESP,
		.qpn = f->dst.qpn};
	uint8_t *p;

	if (m->ended)
		return 0;
	b.psn = take_psn(f, m, first);
	p = put_headers(out, f, &b, ext + n + pad);
	p = put_payload(put_ext(p, f, m, ext), m, n);
	memset(p, 0, pad);
	m->done += n;
	m->ended = last;
	return finish(out, p + pad);
}

size_t roce_frame_mad(const struct roce_flow *f, uint32_t psn, const uint8_t mad[256], uint8_t *out)
{
	struct bth b = {.opcode = UD_SEND_ONLY, .ack_req = true, .qpn = 1, .psn = psn};
	uint8_t *p = put_headers(out, f, &b, 8 + 256);

	p = put32(put32(p, QKEY_GSI), 1);
	return finish(out, put_bytes(p, mad, 256));
}
