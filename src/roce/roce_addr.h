/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of sockets, of IPv4 and IPv6, without their ports.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_ADDR_H
#define RPCRDMAFS_ROCE_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* In network byte order; of IPv4 the first 4 bytes, and zeros. */
void roce_addr_put(uint8_t to[16], const struct sockaddr *sa);
/* Of an address of one link alone the link counts. One of another family is another one. */
bool roce_addr_is_same(const struct sockaddr *a, const struct sockaddr *b);
/* The number of the link, of an address of one link alone; else 0. One made anew is another one. */
uint32_t roce_addr_link(const struct sockaddr *sa);

#endif
