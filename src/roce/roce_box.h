/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that one endpoint of the machine has at a time, of Unix sockets: the box that packets are
 * handed over to, and a port of the peer's.
 *
 * Context: any. The caller owns the descriptors, and closes them.
 */
#ifndef RPCRDMAFS_ROCE_BOX_H
#define RPCRDMAFS_ROCE_BOX_H

#include "roce_rx.h"

/* A box of a number of 24 bits that nobody has. Returns: its descriptor, or -errno. */
int roce_box_open(uint32_t *ret_number);
/* A packet that somebody handed over, and *ret about it. Returns: its length; 0: there is none. */
size_t roce_box_recv(int box, uint8_t bytes[ROCE_PACKET_MAX], struct sockaddr_storage *ret_from,
	struct roce_rx_about *ret);
/* To the box of that number, from ours; -1: there is none. False: nobody has that number. */
bool roce_box_send(
	int box, uint32_t number, const uint8_t *p, size_t len, const struct roce_rx_about *about);

/*
 * That port of that address is one connection's of this machine, as long as the descriptor is open.
 * Returns: the descriptor; -EADDRINUSE: it is another one's; -errno.
 */
int roce_box_claim(const uint8_t addr[16], uint16_t port);

#endif
