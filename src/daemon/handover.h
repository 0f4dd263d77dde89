/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mount goes over to another program in the same process: its descriptors and its environment are
 * all that the next program gets. It finds the tables (fs_handover_put()), /dev/fuse as they say,
 * and the program before, which takes the mount back if the next one cannot go on.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_HANDOVER_H
#define RPCRDMAFS_HANDOVER_H

#include "keeper.h"
#include "live.h"
#include "tables.h"

/* A program is asked before it is executed whether it knows these tables, and prints that it does.
 */
#define HANDOVER_ASK     "--can-resume="
#define HANDOVER_VERSION 1
#define HANDOVER_ANSWER  "rpcrdmafs can resume\n"

/* The record of the program itself. */
#define HANDOVER_RECORD 200u

struct handover {
	int tables_fd;
	int before; /* the program before, or -1: there is none to go back to */
	struct tables_in tables;
	char *mountpoint, *owner, *version; /* version: of the program before */
	char *source;                       /* or NULL: the program before did not say */
	char *set;                          /* options.set of this program; or NULL */
	char why[400];   /* the mount cannot be taken over, as yet; or was given back; "" */
	uint64_t stored; /* the number of the records in the store (store.h), or 0 */
	uint64_t mounted_ns, paused_ns; /* CLOCK_MONOTONIC: since when it is mounted, and waits */
	uint64_t count, longest_ns;     /* hand-overs before this one, and their longest pause */
	uint64_t crashes;               /* daemons before this one that died */
	/* When the program of the one before took over from another one, and how many had died
	 * until then; 0: it did not. */
	uint64_t upgraded_ns, upgraded_crashes;
	bool crashed;              /* the one before did: nobody handed anything over */
	bool left;                 /* ... as that wanted to end */
	struct keeper_crash crash; /* if it did */
};

/* Is that argument HANDOVER_ASK? Then it is answered, and *ret_status is the exit status. */
bool handover_is_asked(const char *arg, int *ret_status);
/*
 * handover_take - what the program before left, or a daemon that died (keeper.h, store.h)
 *
 * Returns: NULL with errno 0: there is nothing, or only what the store had and was of no use (this
 * was logged, and the old mount is dead): it is an ordinary start; else it cannot be used.
 */
struct handover *handover_take(void);
void handover_free(struct handover *h);
/* This is the program before: the next one could not go on. */
static inline bool handover_is_given_back(const struct handover *h)
{
	return h->before < 0 && !h->crashed;
}
/* The record's fields, written by the program that leaves. */
struct handover_facts {
	const char *mountpoint, *owner, *source;
	uint64_t mounted_ns, paused_ns, count, longest_ns, crashes, stored;
	uint64_t upgraded_ns, upgraded_crashes;
	/* options.set of the next program, and of this one, which may have to go on; or NULL. */
	const char *set, *set_before;
	bool left; /* the program ends by itself: what is next is no crash */
};
void handover_put(struct tables_out *t, const struct handover_facts *f);
/* The same, in memory that outlives this process. */
void handover_live(struct live *live, live_ref *ref, const struct handover_facts *f);
/*
 * handover_exec - this process is the other program from now on
 *
 * program: its descriptor. before: -1, or that of the one to go back to. With this program's
 * arguments. Returns: -errno: it could not be executed, and nothing has changed.
 */
int handover_exec(int program, int tables_fd, int before);
/*
 * handover_give_back - this program cannot go on: the one before does, which has none to go back to
 *
 * It finds h->why. Does not return if that is executed. h->before is -1 afterwards.
 */
void handover_give_back(struct handover *h);
/* The program that runs: a descriptor, or -errno. */
int handover_self(void);

#endif
