/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another program takes the mount over, in this process: the side that leaves.
 *
 *   CHECKS   the new program is asked whether it knows our tables
 *   SYNCS    what programs wrote is made durable, delegations are returned; all goes on
 *   WAITS    lanes read no more; what is in work ends
 *   HOLDS    lanes are asked to stand still, all at once
 *
 * then all is written down, and the new program executed. Until that moment it can be given up, and
 * the lanes go on; afterwards the program that comes up can go back to this one (handover.h).
 *
 * A program that leaves the mount to another process, which somebody else starts (store.h), does
 * SYNCS, WAITS and HOLDS as well, and ends when they are done or their time is over.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_UPGRADE_H
#define RPCRDMAFS_UPGRADE_H

#include <stdio.h>

#include "lane.h"
#include "reactor.h"

struct mount;

/* Exit status: it is to be started again (EX_TEMPFAIL; RestartForceExitStatus= of the unit). */
#define UPGRADE_LEFT 75

enum upgrade_state {
	UPGRADE_NONE,
	UPGRADE_CHECKS,
	UPGRADE_SYNCS,
	UPGRADE_WAITS,
	UPGRADE_HOLDS,
};

struct upgrade {
	enum upgrade_state state;
	struct reactor_timer timer;
	bool leaves;          /* nobody takes over here: this process ends */
	bool only_check;      /* it ends after CHECKS ... */
	bool checked;         /* ... and the program could take over */
	int program;          /* its descriptor */
	int child;            /* CHECKS: PID of the program that is asked, and ... */
	int answer;           /* ... where it says whether it can */
	uint64_t until_ns;    /* given up then */
	bool was_paused;      /* that time counts from the first pause */
	uint64_t ticket;      /* of fs_sync_wish() */
	uint64_t paused_ns;   /* since when lanes do not read; 0: they do */
	unsigned int asked;   /* lanes that were told to stand still, and have not answered */
	uint32_t held;        /* bits of those that do */
	char *set;            /* options.set of the next program; NULL: as ours is */
	const char *obstacle; /* what was in the way last */
	char why[500];        /* "": the last one was not given up */
};

void upgrade_init(struct mount *m);
/*
 * upgrade_start - program: its descriptor, which is duplicated
 *
 * only_check: it is asked whether it could take over, and no more.
 * Returns: 0: it goes on by itself; -errno with one line in out.
 */
int upgrade_start(struct mount *m, int program, bool only_check, FILE *out);
/*
 * upgrade_set - this program goes on with other options (optset.h), in the same way
 *
 * Returns: as upgrade_start().
 */
int upgrade_set(struct mount *m, const char *list, FILE *out);
/*
 * upgrade_leave - this process ends, with UPGRADE_LEFT, and the mount waits for the next one
 *
 * Only if that finds it in the store. Returns: as upgrade_start().
 */
int upgrade_leave(struct mount *m, FILE *out);
/* One line: what it is at, or why the last one was given up, or how many there were. */
void upgrade_say(const struct mount *m, FILE *out);
/* The mount is about to end, or the mount's state has changed: lanes go on. */
void upgrade_give_up(struct mount *m, const char *why);
/* LANE_HELD and LANE_BUSY. */
void upgrade_on_report(struct mount *m, const struct lane_report *r);

#endif
