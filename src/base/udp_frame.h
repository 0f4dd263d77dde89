/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers of a UDP datagram in a frame of a capture: Ethernet, IPv4 or IPv6, UDP without a
 * checksum. No socket tells all of it; the rest is what is usual.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_UDP_FRAME_H
#define RPCRDMAFS_UDP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UDP_FRAME_HEAD_MAX (14u + 40u + 8u)

struct udp_frame_end {
	uint8_t ip[16]; /* an IPv4 address is the first four */
	uint8_t mac[6];
	uint16_t port;
};

struct udp_frame {
	bool is_v6;
	uint8_t tos; /* type of service, or traffic class; with ECN */
	uint16_t id; /* IPv4's Identification */
	struct udp_frame_end src, dst;
};

/* An Ethernet address that stands for one that nobody tells: made from the IP address. */
void udp_frame_mac(struct udp_frame_end *end, bool is_v6);
/* Headers of a datagram with `len` bytes of payload. Returns: their length. */
size_t udp_frame_head(const struct udp_frame *f, size_t len, uint8_t out[UDP_FRAME_HEAD_MAX]);

#endif
