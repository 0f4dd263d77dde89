/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC (annex A17.3.3): CRC-32 of a packet from its IP header on, with ones in place
 * of what may change on the way, behind eight bytes of ones.
 *
 * It covers the Identification of an IPv4 header, which no socket tells. Ours is 0: the kernel
 * writes that where a datagram must not be fragmented and the socket is not connected. Where it
 * cuts packets from one datagram, they count up from 0. A peer's may be any. CRCs are linear, so it
 * is found from the difference: 16 of 32 bits remain that check the packet. IPv6 has no such field.
 *
 * Context: pure, but for the struct that remembers.
 */
#ifndef RPCRDMAFS_ROCE_ICRC_H
#define RPCRDMAFS_ROCE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One direction. IPv4 addresses are in the first four bytes. */
struct roce_flow_addrs {
	bool is_v6;
	uint8_t src[16], dst[16];
};

/*
 * Over the headers of a datagram of udp_len bytes (header, packet, ICRC), up to the BTH. id: IPv4's
 * Identification.
 */
uint32_t roce_icrc_begin(const struct roce_flow_addrs *a, uint16_t id, uint16_t src_port,
	size_t udp_len, const uint8_t bth[12]);
/* ... and over what follows the BTH, piece by piece. */
uint32_t roce_icrc_add(uint32_t crc, const void *p, size_t len);
/* As it stands in the packet: the lowest byte first. */
static inline void roce_icrc_put(uint8_t *p, uint32_t crc)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(crc >> 8 * i);
}

#define ROCE_ICRC_LENS 64u

/* The change that each bit of an Identification makes, by the length of what follows it. Zeroed. */
struct roce_icrc_ids {
	struct {
		size_t len;
		uint32_t basis[32]; /* [i]: has bit i, and no higher one; 0: there is none */
		uint16_t id[32];    /* whose change that is */
	} lens[ROCE_ICRC_LENS];
};

/*
 * p: a packet as it came, len bytes with ICRC. apart: apart_len of them, behind the BTH, are here
 * and not in p; NULL: none. Is it whole? If so, *ret_id is its Identification; of IPv6 0.
 */
bool roce_icrc_check(struct roce_icrc_ids *ids, const struct roce_flow_addrs *a, uint16_t src_port,
	const uint8_t *p, size_t len, const uint8_t *apart, size_t apart_len, uint16_t *ret_id);

#endif
