/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the communication manager (InfiniBand Architecture Specification, volume 1, chapter
 * 12; annex A11 for IP addresses), which connect two queue pairs and part them again.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_MAD_H
#define RPCRDMAFS_ROCE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_MAD_LEN      256u
#define ROCE_MAD_REQ_PRIV 56u  /* private data of the user in a REQ, at most */
#define ROCE_MAD_REP_PRIV 196u /* ... in a REP */

/* AttributeID, table 104. */
enum roce_mad_attr {
	ROCE_MAD_REQ = 0x10,
	ROCE_MAD_MRA = 0x11, /* wait longer */
	ROCE_MAD_REJ = 0x12,
	ROCE_MAD_REP = 0x13,
	ROCE_MAD_RTU = 0x14,
	ROCE_MAD_DREQ = 0x15,
	ROCE_MAD_DREP = 0x16,
};

/* Reasons of a REJ, table 109. */
enum {
	ROCE_REJ_TIMEOUT = 4,
	ROCE_REJ_NO_QP = 1,
	ROCE_REJ_NO_RESOURCES = 3,
	ROCE_REJ_BAD_COMM = 6,
	ROCE_REJ_BAD_SERVICE = 8, /* nobody listens there */
	ROCE_REJ_STALE = 10,
	ROCE_REJ_MTU = 26,
	ROCE_REJ_CONSUMER = 28,
};

struct roce_mad {
	enum roce_mad_attr attr;
	uint64_t tid;
	uint32_t local_id, remote_id; /* of whoever sends it */
	uint32_t qpn;                 /* REP: of the sender; DREQ: of the receiver */
	uint32_t psn;                 /* REP: what the receiver starts to send with */
	uint8_t rnr_retry;            /* REP */
	uint8_t reason;               /* REJ */
	uint8_t rejected;             /* REJ: 0: a REQ; 1: a REP */
	uint8_t timeout;              /* MRA: 4.096 us << timeout, in all */
	const uint8_t *priv;          /* REP */
	size_t priv_len;
};

/* A REQ. Addresses as GIDs: an IPv4 one as ::ffff:a.b.c.d. */
struct roce_mad_req {
	uint64_t tid;
	uint32_t local_id;
	bool is_v6;
	uint8_t local[16], remote[16];
	uint16_t src_port, dst_port;
	uint64_t guid;
	uint32_t qpn;
	uint32_t psn;  /* what the peer starts to send with */
	uint8_t reads; /* that the peer may have under way */
	uint8_t retries, ack_timeout;
	uint32_t mtu; /* bytes */
	uint32_t flow_label;
	uint8_t tos; /* of what the peer is to send */
	const uint8_t *priv;
	size_t priv_len; /* what is longer than ROCE_MAD_REQ_PRIV is cut */
};

void roce_mad_put_req(const struct roce_mad_req *req, uint8_t mad[ROCE_MAD_LEN]);
/* One that has no more than numbers: all but REQ and REP. */
void roce_mad_put(const struct roce_mad *m, uint8_t mad[ROCE_MAD_LEN]);
/* False: it is none of these, or no CM's. ret->priv is in mad. */
bool roce_mad_get(const uint8_t *mad, size_t len, struct roce_mad *ret);

#endif
