/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames (InfiniBand Architecture Specification, annex A17) of messages
 * that were sent and received by other means: Ethernet, IP, UDP, transport
 * headers, payload split at the path MTU, invariant CRC.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_FRAME_H
#define RPCRDMAFS_ROCE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "udp_frame.h"

#define ROCE_UDP_PORT 4791u
#define ROCE_MTU_MAX  4096u
/* Ethernet, IPv6, UDP, BTH and 16 bytes more, payload, ICRC. */
#define ROCE_FRAME_MAX (14u + 40u + 8u + 12u + 16u + ROCE_MTU_MAX + 4u)

/* One end of a connection. */
struct roce_end {
	struct udp_frame_end udp; /* but for the port */
	uint32_t qpn;
};

/* One direction of a connection. */
struct roce_flow {
	bool is_v6;
	uint16_t udp_port; /* source */
	struct roce_end src, dst;
	uint32_t psn; /* of the next request packet */
	uint32_t msn; /* of responses: requests answered so far */
	uint32_t mtu;
};

/* Part of a message's payload. */
struct roce_piece {
	const void *p;
	uint32_t len;
};

enum roce_kind {
	ROCE_SEND,
	ROCE_SEND_INV,  /* with Invalidate: `rkey` */
	ROCE_WRITE,     /* to `addr`, `rkey` */
	ROCE_READ,      /* request of `len` bytes at `addr`, `rkey`; no payload */
	ROCE_READ_RESP, /* its answer, of the same `len` bytes, with the request's psn */
};

#define ROCE_MAX_PIECES 5u

/* A message; then the state of its being cut into frames. */
struct roce_msg {
	enum roce_kind kind;
	struct roce_piece pieces[ROCE_MAX_PIECES]; /* payload; not of READ */
	unsigned int piece_cnt;
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;      /* payload; READ: asked for */
	uint32_t resp_psn; /* READ_RESP */
	/* roce_frame_next() */
	uint32_t done;
	bool ended;
	unsigned int piece;
	uint32_t piece_off;
};

/*
 * roce_frame_next - the next frame of a message into out (ROCE_FRAME_MAX bytes)
 *
 * Takes sequence numbers from the flow: one for each packet, a READ as many as its answer has.
 * Returns: the frame's length; 0: there are no more.
 */
size_t roce_frame_next(struct roce_flow *f, struct roce_msg *m, uint8_t *out);
/* A datagram of 256 bytes from one end's queue pair 1 to the other's. */
size_t roce_frame_mad(
	const struct roce_flow *f, uint32_t psn, const uint8_t mad[256], uint8_t *out);

/* The invariant CRC of a frame, from IP header to what is before the CRC, as its four bytes. */
void roce_frame_icrc(const uint8_t *ip, size_t len, uint8_t icrc[4]);

#endif
