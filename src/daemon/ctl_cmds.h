/* SPDX-License-Identifier: BSD-3-Clause */
/* What a running mount answers on its control socket. A command is added in the table there. */
#ifndef RPCRDMAFS_CTL_CMDS_H
#define RPCRDMAFS_CTL_CMDS_H

#include "ctl.h"
#include "options.h"

/* For ctl_start(); ctx: the struct mount. */
extern const struct ctl_command mount_commands[];
/* capture: ctl_capture.c */
int ctl_capture_run(void *ctx, int argc, char **argv, int fd, FILE *out);
/* remount: ctl_remount.c */
int ctl_remount_run(void *ctx, int argc, char **argv, int fd, FILE *out);
/*
 * ctl_remount_check - would a remount with these options change what cannot be changed?
 *
 * now: what is in force. asked: the -o string, which is changed. Pure.
 * Returns: 0; -EINVAL: *fault names the option; -ENOMEM.
 */
int ctl_remount_check(
	const struct options *now, const char *source, char *asked, char *fault, size_t len);

#endif
