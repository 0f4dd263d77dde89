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
 * ctl_dir_open - such a folder, of which all is then found by the descriptor
 *
 * Another user can put anything in the place of his folder, at any time: a link is not followed,
 * and the folder must be that user's.
 * Ownership: the descriptor is the caller's. Returns: it; -EPERM: somebody else's; -errno.
 */
int ctl_dir_open(const char *path, uid_t owner);
/*
 * ctl_dir_connect - a connection to a socket in such a folder, non-blocking
 *
 * The process that listens must be the folder's owner's, or root's, and the one that the name says:
 * where it is in a PID namespace below ours, by the PID that it has there; where it is seen in none
 * of ours that is not looked at. In a folder of this user, and in no other, a socket that nobody
 * listens on any more (its daemon died) is removed.
 * Ownership: the descriptor is the caller's. Returns: it; -ECONNREFUSED: it was such one;
 * -EAGAIN: too many wait; -EPERM: another process listens there; -ENOTSOCK; -errno.
 */
int ctl_dir_connect(int dir, const char *name);
/* The PID that names it; 0: it is no control socket's name. */
pid_t ctl_dir_name_pid(const char *name);
/* Removes the sockets of daemons that died from a folder of this user. */
void ctl_dir_sweep(const char *path);

#endif
