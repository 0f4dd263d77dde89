/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA Reads that the peer waits for.
 *
 * Context: the endpoint's lane.
 */
#ifndef RPCRDMAFS_ROCE_READ_H
#define RPCRDMAFS_ROCE_READ_H

#include "roce_int.h"

#define ROCE_READ_FAR 0x400000 /* PSNs behind the expected one: no peer asks for those again */

/* The n-th of the queue. */
struct roce_read *roce_read_at(struct roce_responder *q, unsigned int n);
enum roce_read_verdict {
	ROCE_READ_TAKEN,
	ROCE_READ_AGAIN,   /* it was asked for once more; answered again, as far as there is room */
	ROCE_READ_CLOSED,  /* its key does not open it */
	ROCE_READ_MANY,    /* more than agreed on */
	ROCE_READ_DROPPED, /* as if it were lost */
};
/*
 * One that came: the expected packet, or one of before, which is answered once more, from the PSN
 * that it has now (section 9.4.4).
 */
enum roce_read_verdict roce_read_take(struct roce_ep *ep, const struct roce_packet *p, bool is_new);
/*
 * One waits so far behind what is expected that nothing is taken before its answer, or PSNs would
 * seem to be ahead that are behind (section 9.7.3).
 */
bool roce_read_waits_far(struct roce_responder *q);
/* The first that is not answered as a whole; NULL: there is none. */
struct roce_read *roce_read_next(struct roce_responder *q);
/* All packets that were put together have gone out: Reads that are answered leave the queue. */
void roce_read_out(struct roce_responder *q);
/* From this PSN on nothing went out. */
void roce_read_back(struct roce_ep *ep, uint32_t psn);

#endif
