/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The questions that roce_wire's endpoint asks its peer, which is a process of its own and shares
 * no code with src/roce.
 */
#ifndef RPCRDMAFS_ROCE_WIRE_PEER_H
#define RPCRDMAFS_ROCE_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define MTU    4096u
#define CHUNK  (1u << 20) /* of an RDMA Write or Read */
#define CHUNKS 16u
#define OP_LEN 4096u
#define CALL   200u /* bytes of a call, and of its reply */

#define DIE(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, "roce_wire: " __VA_ARGS__);                                        \
		fputc('\n', stderr);                                                               \
		exit(1);                                                                           \
	} while (0)

/* The endpoint asks its peer for one of these, in a Send. */
enum what {
	WRITE_TO_ME = 1,
	READ_FROM_ME,
	OPERATION,
};

struct ask {
	uint8_t what;
	uint32_t rkey;
	uint64_t addr;
	uint64_t bytes;
};

struct wire {
	bool v6;
	const char *ep_addr, *peer_addr;
	unsigned int
		lossy; /* of 1000 packets so many are lost each way, and as many marked (ECN) */
};

/* Address and port of the family. Returns its length. */
socklen_t wire_addr(
	const struct wire *w, struct sockaddr_storage *to, const char *text, uint16_t port);

/* The byte at this place of the chunks. */
static inline uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 31 + (off >> 12));
}

/* The peer: does not return. It ends with the DREQ, or when the endpoint ends it. */
_Noreturn void peer_run(const struct wire *w);

#endif
