/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where control sockets are: /run/rpcrdmafs/PID.sock of root, otherwise
 * $XDG_RUNTIME_DIR/rpcrdmafs/PID.sock. The folder is its owner's alone.
 *
 * Context: any thread.
 */
#ifndef RPCRDMAFS_CTL_DIR_H
#define RPCRDMAFS_CTL_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CTL_PATH_MAX 100 /* sun_path has 108 bytes; ".PID" comes and goes */

/* This user's folder. False: there is none ($XDG_RUNTIME_DIR is not set, or too long). */
bool ctl_dir(char path[CTL_PATH_MAX]);
/*
 * Makes it, 0700, if it is not there. 0; -errno: -EPERM: it is somebody else's, or a link.
 */
int ctl_dir_make(const char *dir);
/*
 * ctl_dir_connect - a connection to a socket in such a folder, non-blocking
 *
 * A socket that nobody listens on any more (its daemon died) is removed.
 * Returns: a descriptor; -ECONNREFUSED: it was such one; -EAGAIN: too many wait; -errno.
 */
int ctl_dir_connect(const char *path);
/* The PID that names it; 0: it is no control socket's name. */
pid_t ctl_dir_name_pid(const char *name);
/* Removes the sockets of daemons that died. */
void ctl_dir_sweep(const char *dir);

#endif
