/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the communication manager that make a connection (IBA volume 1
 * section 12.6, annex A11 for IP addresses): from them a dissector learns which
 * queue pairs belong together, and by the port that they carry RPC.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_CM_H
#define RPCRDMAFS_ROCE_CM_H

#include "roce_frame.h"

#define ROCE_CM_LEN         256u
#define ROCE_CM_REQ_PRIV    56u  /* private data of the user in a request */
#define ROCE_CM_REP_PRIV    196u /* ... in a reply */
#define ROCE_CM_RETRY_COUNT 6u

/* Client and server of a connection. */
struct roce_cm {
	const struct roce_flow *out; /* client to server, as it began */
	const struct roce_flow *in;
	uint32_t id; /* of the connection, unique */
	uint16_t src_port, dst_port;
	uint8_t reads;       /* RDMA Reads that the client serves at once */
	const uint8_t *priv; /* of the request */
	size_t priv_len;
	const uint8_t *peer_priv; /* of the reply */
	size_t peer_priv_len;
};

/* Private data that is too long is cut. */
void roce_cm_request(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN]);
void roce_cm_reply(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN]);
void roce_cm_ready(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN]);

#endif
