/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer keeps what it asked the endpoint for, by PSN: so it knows which PSNs and MSNs the
 * answers may have. Of one connection, that of the last REQ.
 */
#ifndef RPCRDMAFS_ROCE_PEER_COUNT_H
#define RPCRDMAFS_ROCE_PEER_COUNT_H

#include "peer.h"

/* A connection to this queue pair, whose first request has this PSN. */
void peer_count_begin(uint32_t qpn, uint32_t psn, uint32_t mtu);
/* From BTH on; it was sent, and is whole. */
void peer_count_sent(const uint8_t *b, size_t len);
/* One of the connection to this queue pair: an acknowledgement, or a part of a Read's answer. */
void peer_count_came(uint32_t qpn, const struct peer_packet *k);

#endif
