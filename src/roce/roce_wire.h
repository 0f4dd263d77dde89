/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of RoCEv2 (InfiniBand Architecture Specification, volume 1, chapter 9; annex A17): what
 * stands in a UDP datagram between its header and the invariant CRC.
 *
 *   BTH 12 | extended headers, as the opcode says | payload | pad 0-3 | ICRC 4
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_WIRE_H
#define RPCRDMAFS_ROCE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_PORT      4791u
#define ROCE_BTH_LEN   12u
#define ROCE_ICRC_LEN  4u
#define ROCE_HDR_MAX   (ROCE_BTH_LEN + 16u + 4u) /* of those that are sent here */
#define ROCE_MTU_LEAST 256u
#define ROCE_MTU_MOST  4096u
/* A datagram: the headers of WRITE_ONLY with Immediate, payload, ICRC. */
#define ROCE_PACKET_MAX (ROCE_BTH_LEN + 20u + ROCE_MTU_MOST + 3u + ROCE_ICRC_LEN)

#define ROCE_PKEY_DEFAULT 0xffffu
#define ROCE_QP_GSI       1u
#define ROCE_QKEY_GSI     0x80010000u

/* ---- packet sequence numbers: 24 bits ---- */

#define ROCE_PSN_MASK 0xffffffu

static inline uint32_t roce_wire_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & ROCE_PSN_MASK;
}

/* How far a is behind b; negative: it is before it. Section 9.7.1: half of all numbers. */
static inline int32_t roce_wire_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* ---- opcodes, volume 1 table 38 ---- */

enum {
	ROCE_OP_SEND_FIRST = 0x00,
	ROCE_OP_SEND_MIDDLE = 0x01,
	ROCE_OP_SEND_LAST = 0x02,
	ROCE_OP_SEND_LAST_IMM = 0x03,
	ROCE_OP_SEND_ONLY = 0x04,
	ROCE_OP_SEND_ONLY_IMM = 0x05,
	ROCE_OP_WRITE_FIRST = 0x06,
	ROCE_OP_WRITE_MIDDLE = 0x07,
	ROCE_OP_WRITE_LAST = 0x08,
	ROCE_OP_WRITE_LAST_IMM = 0x09,
	ROCE_OP_WRITE_ONLY = 0x0a,
	ROCE_OP_WRITE_ONLY_IMM = 0x0b,
	ROCE_OP_READ_REQUEST = 0x0c,
	ROCE_OP_READ_RESP_FIRST = 0x0d,
	ROCE_OP_READ_RESP_MIDDLE = 0x0e,
	ROCE_OP_READ_RESP_LAST = 0x0f,
	ROCE_OP_READ_RESP_ONLY = 0x10,
	ROCE_OP_ACK = 0x11,
	ROCE_OP_ATOMIC_ACK = 0x12,
	ROCE_OP_SEND_LAST_INV = 0x16,
	ROCE_OP_SEND_ONLY_INV = 0x17,
	ROCE_OP_RC_END = 0x20, /* of a reliable connection: those below */
	ROCE_OP_UD_SEND_ONLY = 0x64,
	ROCE_OP_CNP = 0x81, /* annex A17.9.3 */
};

/* Of an opcode; bits. 0: it is none of ours. */
enum {
	ROCE_IS_SEND = 1 << 0,
	ROCE_IS_WRITE = 1 << 1,
	ROCE_IS_READ = 1 << 2, /* a request */
	ROCE_IS_RESP = 1 << 3, /* of READ, or an acknowledgement: for the requester */
	ROCE_IS_FIRST = 1 << 4,
	ROCE_IS_LAST = 1 << 5, /* with FIRST: it is the only one */
	ROCE_HAS_RETH = 1 << 6,
	ROCE_HAS_AETH = 1 << 7,
	ROCE_HAS_IETH = 1 << 8,
	ROCE_HAS_DETH = 1 << 9,
	ROCE_HAS_IMM = 1 << 10,
	ROCE_IS_CNP = 1 << 11,
	ROCE_IS_OTHER = 1 << 12, /* a request that is not done here, or reserved; all is payload */
};

unsigned int roce_wire_kind(uint8_t opcode);

/* Syndrome of an AETH, table 44 and following: 0b0rrttttt. */
enum {
	ROCE_AETH_ACK = 0x1f, /* without a count of credits */
	ROCE_AETH_RNR = 0x20, /* | timer */
	ROCE_AETH_NAK = 0x60, /* | why */
	ROCE_AETH_NAK_SEQUENCE = 0x60,
	ROCE_AETH_NAK_INVALID = 0x61,
	ROCE_AETH_NAK_ACCESS = 0x62,
	ROCE_AETH_NAK_OPERATION = 0x63,
};

/* The time of an RNR NAK's code, table 45. */
uint64_t roce_wire_rnr_ns(uint8_t code);

/* ---- packets ---- */

struct roce_packet {
	uint8_t opcode;
	unsigned int kind; /* ROCE_IS_*, ROCE_HAS_* */
	uint8_t pad;
	bool ack_req, becn, migrated;
	uint16_t pkey; /* of what is sent: 0: the default one */
	uint32_t qpn, psn;
	/* by what it has */
	uint64_t va;            /* RETH */
	uint32_t rkey, dma_len; /* RETH; rkey: IETH too */
	uint8_t syndrome;       /* AETH */
	uint32_t msn;
	uint32_t qkey, src_qpn; /* DETH */
	const uint8_t *payload;
	uint32_t payload_len; /* without pad */
};

/*
 * roce_wire_decode - what came
 *
 * len: of the datagram, with ICRC, which is not looked at. ret->payload is in it.
 * Returns: false: it is no packet, or of an opcode that is none of ours.
 */
bool roce_wire_decode(const uint8_t *p, size_t len, struct roce_packet *ret);
/* Headers of what is sent, by its opcode; payload_len decides the pad. Returns their length. */
size_t roce_wire_encode(const struct roce_packet *p, uint8_t out[ROCE_HDR_MAX]);
/* Bytes that make the payload whole words. */
static inline uint32_t roce_wire_pad(uint32_t payload_len)
{
	return -payload_len & 3;
}
/* The path MTU that Linux has with IP packets of this size: the largest that fits in them. */
uint32_t roce_wire_mtu(unsigned int ip_mtu);
/* Packets that so many bytes take: at least one. */
static inline uint32_t roce_wire_packets(uint32_t len, uint32_t mtu)
{
	return len <= mtu ? 1 : (uint32_t)(((uint64_t)len + mtu - 1) / mtu);
}

/* ---- numbers in the order of the wire ---- */

static inline uint32_t roce_wire_get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t roce_wire_get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | roce_wire_get16(p + 1);
}

static inline uint32_t roce_wire_get32(const uint8_t *p)
{
	return roce_wire_get16(p) << 16 | roce_wire_get16(p + 2);
}

static inline uint64_t roce_wire_get64(const uint8_t *p)
{
	return (uint64_t)roce_wire_get32(p) << 32 | roce_wire_get32(p + 4);
}

static inline uint8_t *roce_wire_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static inline uint8_t *roce_wire_put32(uint8_t *p, uint32_t v)
{
	return roce_wire_put16(roce_wire_put16(p, v >> 16), v & 0xffff);
}

static inline uint8_t *roce_wire_put64(uint8_t *p, uint64_t v)
{
	return roce_wire_put32(roce_wire_put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

#endif
