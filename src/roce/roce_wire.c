/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_wire.h"

#define ONLY (ROCE_IS_FIRST | ROCE_IS_LAST)

/*
 * GRH (IPv6), UDP, BTH, the extended headers of XRC and atomic operations, ICRC: so much of its own
 * MTU Linux leaves to headers (iboe_get_mtu()). Some adapters refuse a connection of a larger path
 * MTU, others cut it without a word.
 */
#define OVERHEAD (40u + 8u + ROCE_BTH_LEN + 4u + 28u + ROCE_ICRC_LEN)

unsigned int roce_wire_kind(uint8_t opcode)
{
	static const uint16_t kinds[256] = {
		[ROCE_OP_SEND_FIRST] = ROCE_IS_SEND | ROCE_IS_FIRST,
		[ROCE_OP_SEND_MIDDLE] = ROCE_IS_SEND,
		[ROCE_OP_SEND_LAST] = ROCE_IS_SEND | ROCE_IS_LAST,
		[ROCE_OP_SEND_LAST_IMM] = ROCE_IS_SEND | ROCE_IS_LAST | ROCE_HAS_IMM,
		[ROCE_OP_SEND_ONLY] = ROCE_IS_SEND | ONLY,
		[ROCE_OP_SEND_ONLY_IMM] = ROCE_IS_SEND | ONLY | ROCE_HAS_IMM,
		[ROCE_OP_SEND_LAST_INV] = ROCE_IS_SEND | ROCE_IS_LAST | ROCE_HAS_IETH,
		[ROCE_OP_SEND_ONLY_INV] = ROCE_IS_SEND | ONLY | ROCE_HAS_IETH,
		[ROCE_OP_WRITE_FIRST] = ROCE_IS_WRITE | ROCE_IS_FIRST | ROCE_HAS_RETH,
		[ROCE_OP_WRITE_MIDDLE] = ROCE_IS_WRITE,
		[ROCE_OP_WRITE_LAST] = ROCE_IS_WRITE | ROCE_IS_LAST,
		[ROCE_OP_WRITE_LAST_IMM] = ROCE_IS_WRITE | ROCE_IS_LAST | ROCE_HAS_IMM,
		[ROCE_OP_WRITE_ONLY] = ROCE_IS_WRITE | ONLY | ROCE_HAS_RETH,
		[ROCE_OP_WRITE_ONLY_IMM] = ROCE_IS_WRITE | ONLY | ROCE_HAS_RETH | ROCE_HAS_IMM,
		[ROCE_OP_READ_REQUEST] = ROCE_IS_READ | ONLY | ROCE_HAS_RETH,
		[ROCE_OP_READ_RESP_FIRST] = ROCE_IS_RESP | ROCE_IS_FIRST | ROCE_HAS_AETH,
		[ROCE_OP_READ_RESP_MIDDLE] = ROCE_IS_RESP,
		[ROCE_OP_READ_RESP_LAST] = ROCE_IS_RESP | ROCE_IS_LAST | ROCE_HAS_AETH,
		[ROCE_OP_READ_RESP_ONLY] = ROCE_IS_RESP | ONLY | ROCE_HAS_AETH,
		[ROCE_OP_ACK] = ROCE_IS_RESP | ONLY | ROCE_HAS_AETH,
		[ROCE_OP_UD_SEND_ONLY] = ROCE_IS_SEND | ONLY | ROCE_HAS_DETH,
		[ROCE_OP_CNP] = ROCE_IS_CNP,
	};

	if (kinds[opcode] == 0 && opcode < ROCE_OP_RC_END && opcode != ROCE_OP_ATOMIC_ACK)
		return ROCE_IS_OTHER;
	return kinds[opcode];
}

uint64_t roce_wire_rnr_ns(uint8_t code)
{
	/* In units of 10 us. */
	static const uint16_t times[32] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	return (code & 31) == 0 ? 655360000ull : times[code & 31] * 10000ull;
}

static size_t ext_len(unsigned int kind)
{
	return (kind & ROCE_HAS_RETH ? 16u : 0u) + (kind & ROCE_HAS_AETH ? 4u : 0u) +
	       (kind & ROCE_HAS_IETH ? 4u : 0u) + (kind & ROCE_HAS_DETH ? 8u : 0u) +
	       (kind & ROCE_HAS_IMM ? 4u : 0u) + (kind & ROCE_IS_CNP ? 16u : 0u);
}

/* Extended headers: those of one opcode follow each other in this order. */
static void decode_ext(const uint8_t *p, struct roce_packet *ret)
{
	if (ret->kind & ROCE_HAS_DETH) {
		ret->qkey = roce_wire_get32(p);
		ret->src_qpn = roce_wire_get24(p + 5);
	}
	if (ret->kind & ROCE_HAS_RETH) {
		ret->va = roce_wire_get64(p);
		ret->rkey = roce_wire_get32(p + 8);
		ret->dma_len = roce_wire_get32(p + 12);
	}
	if (ret->kind & ROCE_HAS_AETH) {
		ret->syndrome = p[0];
		ret->msn = roce_wire_get24(p + 1);
	}
	if (ret->kind & ROCE_HAS_IETH)
		ret->rkey = roce_wire_get32(p);
}

bool roce_wire_decode(const uint8_t *p, size_t len, struct roce_packet *ret)
{
	size_t head;

	*ret = (struct roce_packet){.opcode = 0};
	if (len < ROCE_BTH_LEN + ROCE_ICRC_LEN || len > ROCE_PACKET_MAX || len % 4 != 0)
		return false;
	ret->opcode = p[0];
	ret->kind = roce_wire_kind(p[0]);
	ret->pad = p[1] >> 4 & 3;
	ret->migrated = p[1] & 0x40;
	head = ROCE_BTH_LEN + ext_len(ret->kind);
	/* The transport's version is 0; others may mean anything (section 9.2.4). */
	if (ret->kind == 0 || (p[1] & 0x0f) != 0 || len < head + ret->pad + ROCE_ICRC_LEN)
		return false;
	ret->pkey = (uint16_t)roce_wire_get16(p + 2);
	ret->becn = p[4] & 0x40;
	ret->qpn = roce_wire_get24(p + 5);
	ret->ack_req = p[8] & 0x80;
	ret->psn = roce_wire_get24(p + 9);
	decode_ext(p + ROCE_BTH_LEN, ret);
	ret->payload = p + head;
	ret->payload_len = (uint32_t)(len - head - ret->pad - ROCE_ICRC_LEN);
	return true;
}

size_t roce_wire_encode(const struct roce_packet *p, uint8_t out[ROCE_HDR_MAX])
{
	unsigned int kind = roce_wire_kind(p->opcode);
	uint8_t *q = out;

	*q++ = p->opcode;
	/* Migration state: this path is the one that there is, as adapters say; a CNP does not. */
	*q++ = (uint8_t)((kind & ROCE_IS_CNP ? 0 : 0x40) | roce_wire_pad(p->payload_len) << 4);
	q = roce_wire_put16(q, p->pkey ? p->pkey : ROCE_PKEY_DEFAULT);
	q = roce_wire_put32(q, (p->becn ? 0x40000000u : 0) | (p->qpn & ROCE_PSN_MASK));
	q = roce_wire_put32(q, (p->ack_req ? 0x80000000u : 0) | (p->psn & ROCE_PSN_MASK));
	if (kind & ROCE_HAS_DETH)
		q = roce_wire_put32(roce_wire_put32(q, p->qkey), p->src_qpn);
	if (kind & ROCE_HAS_AETH)
		q = roce_wire_put32(q, (uint32_t)p->syndrome << 24 | (p->msn & ROCE_PSN_MASK));
	if (kind & ROCE_IS_CNP) {
		roce_wire_put64(roce_wire_put64(q, 0), 0);
		q += 16;
	}
	return (size_t)(q - out);
}

uint32_t roce_wire_mtu(unsigned int ip_mtu)
{
	uint32_t mtu = ROCE_MTU_MOST;

	while (mtu > ROCE_MTU_LEAST && mtu + OVERHEAD > ip_mtu)
		mtu /= 2;
	return mtu;
}
