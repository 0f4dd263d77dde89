/* SPDX-License-Identifier: BSD-3-Clause */
/* What a running mount answers on its control socket. A command is added in the table there. */
#ifndef RPCRDMAFS_CTL_CMDS_H
#define RPCRDMAFS_CTL_CMDS_H

#include "ctl.h"

/* For ctl_start(); ctx: the struct mount. */
extern const struct ctl_command mount_commands[];
/* capture: ctl_capture.c */
int ctl_run_capture(void *ctx, int argc, char **argv, int fd, FILE *out);

#endif
