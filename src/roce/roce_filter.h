/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters: the kernel does not give a socket what they drop, though it was sent to its address and
 * port (socket(7), SO_ATTACH_FILTER). Errors that ICMP tells pass through none: they are heard.
 *
 * Context: any thread. All return 0 or -errno.
 */
#ifndef RPCRDMAFS_ROCE_FILTER_H
#define RPCRDMAFS_ROCE_FILTER_H

#include <sys/socket.h>

/* Drops all: nobody reads it. */
int roce_filter_all(int fd);
/*
 * Drops packets that users of this machine send in the name of the peer. Over IPv6 the kernel lets
 * anybody send from an address that is not the machine's (IPV6_FREEBIND); to this machine they come
 * through the loopback interface, and those of a peer elsewhere do not. Over IPv4 it sends nothing
 * from such an address, unless the sender has CAP_NET_RAW or CAP_NET_ADMIN. Nothing is dropped
 * where the peer is this machine, or may be (net.ipv6.ip_nonlocal_bind).
 */
int roce_filter_forged(int fd, const struct sockaddr_storage *peer);

#endif
