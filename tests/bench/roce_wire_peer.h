/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The questions that roce_wire's endpoint asks its peer, which is a process of its own and shares
 * no code with src/roce.
 */
#ifndef RPCRDMAFS_ROCE_WIRE_PEER_H
#define RPCRDMAFS_ROCE_WIRE_PEER_H

#include <stdint.h>

#include "wire_qp.h"

#define CHUNK  (1u << 20) /* of an RDMA Write or Read */
#define CHUNKS 16u
#define OP_LEN 4096u
#define CALL   200u /* bytes of a call, and of its reply */

/* The endpoint asks its peer for one of these, in a Send. */
enum what {
	WRITE_TO_ME = 1,
	READ_FROM_ME,
	OPERATION,
	MIXED,
};

struct ask {
	uint8_t what;
	uint32_t rkey;
	uint64_t addr;
	uint64_t bytes; /* MIXED: the number of the operation, which lengths come from */
	/* MIXED: of addr, in the chunks; the key and the address of all chunks. */
	uint64_t off;
	uint32_t mr;
	uint64_t chunks;
};

/* The byte at this place of the chunks. */
static inline uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 31 + (off >> 12));
}

/* Parts of an operation of MIXED. */
enum part {
	CALLED = 1, /* what is behind the ask in the Send that asks: byte_at(0), and so on */
	WRITTEN,    /* to addr: byte_at(off), and so on */
	READ,       /* from the second half of the chunks */
	REPLIED,    /* byte_at(0), and so on */
};

#define MIXED_MOST (3 * MTU) /* bytes of each */

/*
 * How long a part of the n-th operation is. A quarter is around a multiple of the MTU, a quarter
 * is short, the others are of any length: of one packet to four, with each pad.
 */
static inline uint32_t mixed_len(uint64_t n, enum part part)
{
	uint32_t x = ((uint32_t)n * 4 + part) * 2654435761u, len;

	x ^= x >> 15;
	x *= 2246822519u;
	x ^= x >> 13;
	switch (x & 3) {
	case 0:
		len = (x >> 2) % (MIXED_MOST / MTU + 1) * MTU + (x >> 8) % 7;
		len = len < 3 ? 0 : len - 3;
		break;
	case 1:
		len = (x >> 2) % 9;
		break;
	default:
		len = (x >> 2) % (MIXED_MOST + 1);
	}
	len = len > MIXED_MOST ? MIXED_MOST : len;
	return len == 0 && part == WRITTEN ? 1 : len; /* a window is of some bytes */
}

/* Where READ begins. */
static inline uint64_t mixed_off(uint64_t n)
{
	return CHUNKS / 2 * CHUNK + n * 7919 % CHUNK;
}

/* The peer: does not return. It ends with the DREQ, or when the endpoint ends it. */
_Noreturn void peer_run(const struct wire *w);

#endif
