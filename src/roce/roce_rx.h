/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come: where they are received, and who takes them.
 *
 * Amid an RDMA Write of several packets the kernel copies the payloads of the next ones where they
 * belong, and the rest of each into a slot. Another packet's may come there as well, which
 * roce_rx_settle() takes out again. So the memory of a Write that has begun has no defined contents
 * before its end, as with adapters.
 *
 * Context: the endpoint's lane.
 */
#ifndef RPCRDMAFS_ROCE_RX_H
#define RPCRDMAFS_ROCE_RX_H

#include "roce_int.h"

#define ROCE_RX_BATCH  32u
#define ROCE_RX_PIECES 3u

/* One packet. */
struct roce_rx_slot {
	uint8_t bytes[ROCE_PACKET_MAX + 1]; /* with a hole, if some are apart */
	uint8_t control[64];
	struct sockaddr_storage from;
	size_t len;         /* of all of it */
	uint8_t *apart;     /* where the bytes behind its BTH are; NULL: none are apart */
	uint32_t apart_len; /* so many of them */
};

struct roce_rx_about {
	const struct sockaddr_storage *from;
	uint8_t tos;          /* of IP; of what was handed over: congestion on its way (ECN) */
	bool handed_over;     /* by whoever got it ... */
	bool trusted;         /* ... who may have packets of connections */
	const uint8_t *apart; /* as above */
	uint32_t apart_len;
};

/*
 * roce_rx_ready - reads what the socket has
 *
 * fd: where the endpoint has it: what is read may close it, or put another one there; then no more
 * is read. own: the kernel has it for packets of our peer alone. Returns: true: that was much, or
 * there is another one: there may be more.
 */
bool roce_rx_ready(struct roce_ep *ep, const int *fd, bool own);
/*
 * roce_rx_place - where the next packets are received
 *
 * own: as above; if not, all of each in its slot: strangers write no memory. ret_iov: the pieces of
 * each, of which some may have no bytes.
 */
void roce_rx_place(const struct roce_ep *ep, bool own, struct roce_rx_slot *slots,
	struct iovec (*ret_iov)[ROCE_RX_PIECES], unsigned int cnt);
/*
 * roce_rx_settle - they have come, with their lengths
 *
 * A packet that does not belong where it was put is copied into its slot, and so is each one that
 * follows it: before any of them is taken, as that may write where they are.
 */
void roce_rx_settle(const struct roce_ep *ep, struct roce_rx_slot *slots, unsigned int cnt);
/* One packet of len bytes is taken, or dropped. */
void roce_rx_packet(
	struct roce_ep *ep, const uint8_t *bytes, size_t len, const struct roce_rx_about *about);

#endif
