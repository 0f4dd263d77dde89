/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands about running mounts: rpcrdmafs stat, info, log, sync, capture. A source to
 * mount always has a colon, so their names cannot be meant otherwise.
 *
 * Context: the only thread of the program.
 */
#ifndef RPCRDMAFS_CMD_H
#define RPCRDMAFS_CMD_H

/* Is argv[1] the name of one? Then *ret_status is its exit status: 0; 1: it failed; 2: usage. */
int cmd_run(int argc, char **argv, int *ret_status);

/* Each takes its own argv, argv[0] is its name. They return their exit status. */
int cmd_info(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sync(int argc, char **argv);

#endif
