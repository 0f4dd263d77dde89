/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of deadlines: a pairing heap whose nodes lie in their owners, so that
 * arming a timer never allocates and cannot fail. Equal keys leave in the order
 * they came.
 *
 * Context: pure; the owner of the queue serialises. A zeroed node is in no queue.
 */
#ifndef RPCRDMAFS_TIMERQ_H
#define RPCRDMAFS_TIMERQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timerq_node {
	uint64_t key_ns;
	uint64_t seq;              /* 0: in no queue */
	struct timerq_node *child; /* first of those that are later */
	struct timerq_node *next;  /* sibling */
	struct timerq_node *prev;  /* sibling before, or the parent for the first child */
};

struct timerq {
	struct timerq_node *root; /* the earliest */
	uint64_t seq;             /* of the newest node */
};

static inline bool timerq_is_queued(const struct timerq_node *n)
{
	return n->seq != 0;
}

/* `n` must be in no queue. */
void timerq_insert(struct timerq *q, struct timerq_node *n, uint64_t key_ns);
/* Takes `n` out of its queue, which is `q`. */
void timerq_remove(struct timerq *q, struct timerq_node *n);
/* The earliest; NULL if there is none. It stays in the queue. */
static inline struct timerq_node *timerq_first(const struct timerq *q)
{
	return q->root;
}

#endif
