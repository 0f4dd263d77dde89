/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of an endpoint in a capture (capture.h), as frames: each one that the socket took,
 * and each one that came and was taken for the endpoint's, in their order, from the BTH to the ICRC
 * as on the wire. So is what IP and UDP say, as far as a socket tells.
 *
 * Without contents of files the payload of RDMA Writes and of answers of Reads is left out, unless
 * the endpoint's owner says that it is a message's (fab_ep_ops.is_message).
 *
 * The datagrams that made the connection are kept: a capture that begins later begins with them.
 *
 * Context: the endpoint's lane.
 */
#ifndef RPCRDMAFS_ROCE_CAP_H
#define RPCRDMAFS_ROCE_CAP_H

#include "capture.h"
#include "roce_mad.h"
#include "roce_wire.h"
#include "udp_frame.h"

struct roce_ep;
struct roce_rx_about;

/* BTH, DETH, MAD, ICRC. */
#define ROCE_CAP_MAD (UDP_FRAME_HEAD_MAX + ROCE_BTH_LEN + 8u + ROCE_MAD_LEN + ROCE_ICRC_LEN)

struct roce_cap_kept {
	size_t len; /* 0: there was none */
	uint8_t frame[ROCE_CAP_MAD];
};

struct roce_cap {
	struct capture_batch *batch; /* with the first frame */
	uint32_t run;                /* of the capture that was told of the connection */
	struct roce_cap_kept req, rep, rtu;
};

/* One that came. */
struct roce_cap_in {
	const uint8_t *bytes; /* `len` with those that are apart (roce_rx.h) */
	size_t len;
	const struct roce_rx_about *about;
	uint16_t port, id; /* that it is from; its Identification */
};

/* Before what it is for is done. */
void roce_cap_received(
	struct roce_ep *ep, const struct roce_packet *p, const struct roce_cap_in *in);
/* Packets [first, first + cnt) of ep->tx went out from that port. */
void roce_cap_sent(struct roce_ep *ep, uint16_t port, unsigned int first, unsigned int cnt);
void roce_cap_free(struct roce_ep *ep);

#endif
