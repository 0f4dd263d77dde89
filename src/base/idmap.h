/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of users and groups ("user@domain") and their numbers on this machine.
 * Who knows them (a resolver) may need seconds and one thread: a thread of its
 * own asks it, one name after the other, and the answers are kept for a while.
 * Lanes read what is kept, and never wait: an answer that is not there yet has
 * a ticket, and a lane that wants to know is told by a message.
 *
 * What is kept and what is asked are bounded, whatever names a server makes up.
 *
 * Context: any thread. One lock, never held while the resolver is asked.
 */
#ifndef RPCRDMAFS_IDMAP_H
#define RPCRDMAFS_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reactor.h"

#define IDMAP_NOBODY     65534u
#define IDMAP_IN_MAX     1024u /* longest name that is mapped: RFC 8881's NFS4_OPAQUE_LIMIT */
#define IDMAP_OUT_MAX    255u  /* longest name that a number is given */
#define IDMAP_KEPT_MAX   16384u
#define IDMAP_QUEUE_MAX  4096u
#define IDMAP_WAIT_NS    (5 * NSEC_PER_SEC)   /* who waits longer does without */
#define IDMAP_KEEP_NS    (600 * NSEC_PER_SEC) /* as the kernel's nfs_idmap_cache_timeout */
#define IDMAP_NO_KEEP_NS (60 * NSEC_PER_SEC)  /* that there is none */

enum idmap_kind {
	IDMAP_USER,
	IDMAP_GROUP,
};

/* Called by one thread at a time, from the first question on; may take its time. */
struct idmap_resolver {
	/* *ret_id is set in any case: without a number of its own a name is nobody. 0 or -errno. */
	int (*to_id)(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id);
	/* At most IDMAP_OUT_MAX bytes and a NUL. 0 or -errno: it has no name. */
	int (*to_name)(void *ctx, enum idmap_kind kind, uint32_t id, char name[IDMAP_OUT_MAX + 1]);
	/* The end, on the same thread or after it; optional. */
	void (*fini)(void *ctx);
};

struct idmap;

/*
 * own_thread: the resolver is asked by a thread, which is started by the first question; false: by
 * idmap_step() (tests in virtual time). NULL with errno.
 */
struct idmap *idmap_new(const struct idmap_resolver *res, void *ctx, bool own_thread);
/*
 * After all waiters were cancelled. A resolver that does not come back within a second is left to
 * the end of the process, with what it uses. NULL is accepted.
 */
void idmap_free(struct idmap *m);

enum idmap_answer {
	IDMAP_KNOWN,
	IDMAP_NONE,    /* it is known that there is none: the number is nobody's, the name empty */
	IDMAP_ASKED,   /* *ret_ticket: the answer's */
	IDMAP_REFUSED, /* too much is asked already, or it was not answered within IDMAP_WAIT_NS */
};

/* now_ns: CLOCK_MONOTONIC, or the virtual time that idmap_step() is told. */
enum idmap_answer idmap_to_id(struct idmap *m, enum idmap_kind kind, const char *name, size_t len,
	uint64_t now_ns, uint32_t *ret_id, uint64_t *ret_ticket);
enum idmap_answer idmap_to_name(struct idmap *m, enum idmap_kind kind, uint32_t id, uint64_t now_ns,
	char name[IDMAP_OUT_MAX + 1], uint64_t *ret_ticket);

/* The ticket of the last answer: those up to it are there. */
uint64_t idmap_answered(struct idmap *m);

/* Who is told of answers: one of each lane, embedded; its message is the lane's. */
struct idmap_waiter {
	struct list link;
	struct reactor *reactor;
	struct reactor_msg msg; /* ->run: calls idmap_told() first */
	uint64_t ticket;
	bool posted;
};

void idmap_waiter_init(
	struct idmap_waiter *w, struct reactor *r, void (*told)(struct reactor_msg *msg));
/* w's message comes once the ticket is answered; the earliest one counts until then. */
void idmap_wait(struct idmap *m, struct idmap_waiter *w, uint64_t ticket);
void idmap_told(struct idmap *m, struct idmap_waiter *w);
/* No message follows. False: it is on its way already. */
bool idmap_cancel(struct idmap *m, struct idmap_waiter *w);

/* Without a thread: answers the oldest question. False: there is none. */
bool idmap_step(struct idmap *m, uint64_t now_ns);

#endif
