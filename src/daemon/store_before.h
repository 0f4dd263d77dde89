/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep=systemd: a program that has taken a mount over and dies again and again is followed by the
 * one before. The manager starts what the unit says, which is the new one; so it holds the program
 * before as well, as a descriptor, and the new one executes that.
 *
 * The store has besides (store.h), if it has a place more than STORE_PLACES:
 *
 *   rpcrdmafs-before    the program before, until the new one is as good
 *   rpcrdmafs-instead   it goes on in place of what the unit says, until the next upgrade
 *                       or restart
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_STORE_BEFORE_H
#define RPCRDMAFS_STORE_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- of a program that serves ---- */

/*
 * It has taken over from that program, a descriptor, which stays the caller's; the store has
 * no earlier one from then on. -1, the same program, a store without a place: nor this one.
 */
void store_before_put(int program);
/* No program but the unit's goes on with the mount. */
void store_before_drop(void);

/* ---- of one that follows a daemon that died ---- */

struct listened;

/* The variables of sd_listen_fds(3) as they are now. NULL: out of memory. */
struct listened *store_before_note(void);
/* NULL is accepted. */
void store_before_forget(struct listened *l);
/*
 * store_before_take - if another program is to go on in place of this one, this process is that one
 *
 * Before anything else is done with the descriptors, all of which it has. names, cnt: as of
 * sd_listen_fds_with_names(3), which unset the variables in l. Returns: the descriptor of the
 * program before, which is the caller's; -1: there is none.
 */
int store_before_take(const struct listened *l, char *const *names, int cnt);

struct store_before {
	int program;         /* -1: there is none */
	uint64_t since_ns;   /* CLOCK_MONOTONIC: when it was followed; 0: it was not */
	unsigned int deaths; /* of the other program's daemons since then */
};

/* As of KEEPER_EARLY_DEATHS. One whose time is over goes. died_ns: the last death. */
bool store_before_is_better(const struct store_before *b, uint64_t died_ns);
/*
 * It goes on from the next start on, which is no death. Returns: 0: this process is to end with
 * UPGRADE_LEFT; -errno: it does not.
 */
int store_before_instead(int program);

#endif
