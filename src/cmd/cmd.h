/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands about running mounts: rpcrdmafs stat, info, log, sync, capture, upgrade, set, leave;
 * and hold, which keeps mounts of containers. A source to mount always has a colon, so their names
 * cannot be meant otherwise.
 *
 * Context: the only thread of the program.
 */
#ifndef RPCRDMAFS_CMD_H
#define RPCRDMAFS_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl_client.h"

/* Is argv[1] the name of one? Then *ret_status is its exit status: 0; 1: it failed; 2: usage. */
int cmd_run(int argc, char **argv, int *ret_status);

/*
 * One line on standard error: what the command of that name could not do. Returns 1.
 *
 * WIRE: root may ask the daemon of anybody, who shall not drive the terminal: of what a daemon
 * says control characters are escaped, by these functions and by cmd_print().
 */
int cmd_fail(const char *command, const char *fault);
/* The same of one mount of several. */
int cmd_fail_at(const char *command, const struct ctl_daemon *d, const char *fault);
/* The lines of a daemon's answer, which is changed. */
void cmd_print(FILE *out, char *answer);
/*
 * cmd_mount - the arguments of a command without options of its own: MOUNT, and more
 *
 * cnt: how many, with MOUNT. *ret: the daemon, whose mountpoint is malloced. argv[optind] is MOUNT.
 * Returns: -1: go on; else the exit status, and what is to be said has been.
 */
int cmd_mount(int argc, char **argv, int cnt, void (*help)(FILE *to), struct ctl_daemon *ret);
/* Each takes its own argv, argv[0] is its name. They return their exit status. */
int cmd_hold(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_leave(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sync(int argc, char **argv);
int cmd_upgrade(int argc, char **argv);
/*
 * cmd_upgrade_ask - a request that has the mount handed over; waits until it is
 *
 * Another user's daemon is waited for until d->until_ms, or as cmd_upgrade_limit() says.
 * fd: goes with it, or -1. *ret_pause_ns: for how long requests waited; only if they did.
 * Returns: 0; -1: fault says why the mount goes on as it did, or that nobody answers.
 */
int cmd_upgrade_ask(const struct ctl_daemon *d, const char *request, int fd, uint64_t *ret_pause_ns,
	char *fault, size_t len);
/*
 * cmd_upgrade_limit - until when a daemon is waited for: it can say for ever that it is at it
 *
 * Only another user's has such an end (d->until_ms); all his have the same. before: the daemon
 * that had this before it in a list in which those of a user stand together; NULL: none. Pure but
 * for the user's id.
 */
void cmd_upgrade_limit(struct ctl_daemon *d, const struct ctl_daemon *before, int64_t now_ms);
/* Is it that time? Then fault says that the daemon is not waited for any longer. */
bool cmd_upgrade_is_late(const struct ctl_daemon *d, char *fault, size_t len);
/*
 * cmd_sync_daemon - what programs wrote until now is durable on the server
 *
 * Waits for that. Returns: 0; -EIO: fault says what went wrong.
 */
int cmd_sync_daemon(const struct ctl_daemon *d, char *fault, size_t len);

#endif
