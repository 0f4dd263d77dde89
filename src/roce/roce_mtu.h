/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path MTU: what our route says, and less where nothing tells that large packets do not pass.
 *
 * Context: pure. Sizes are bytes.
 */
#ifndef RPCRDMAFS_ROCE_MTU_H
#define RPCRDMAFS_ROCE_MTU_H

#include <stdbool.h>
#include <stdint.h>

/* Ethernet's MTU has room for such packets. Larger ones are large. */
#define ROCE_MTU_SAFE 1024u
/* Times that something is sent again, after which it does not pass. */
#define ROCE_MTU_TRIES 3u

struct roce_mtu {
	uint32_t most;       /* of connections to this peer */
	unsigned int losses; /* of them in a row, where large packets were due and none passed */
	/* Of this connection: */
	bool came, went;    /* a large packet of the peer's did; one of ours, for sure */
	unsigned int reads; /* new ones that large packets answer */
	uint32_t again_psn; /* of the first Read that was asked for once more ... */
	unsigned int again; /* ... so often */
};

/* Another peer, or another address of ours: nothing is known of the path. */
void roce_mtu_forget(struct roce_mtu *m);
/* Of the next connection; ip_mtu: that of the route. */
uint32_t roce_mtu_of(const struct roce_mtu *m, unsigned int ip_mtu);
void roce_mtu_begin(struct roce_mtu *m);
/* The peer asked for a Read of so many bytes; once more. */
void roce_mtu_read(struct roce_mtu *m, uint32_t psn, uint32_t len, bool again);
/*
 * A connection of this path MTU has ended. send_due: a large Send was sent again and again;
 * write_due: the peer may have had more to write than a packet that is not large has room for,
 * and it did not miss a Send of ours. True: the next ones have a smaller one.
 */
bool roce_mtu_end(struct roce_mtu *m, uint32_t mtu, bool send_due, bool write_due);

#endif
