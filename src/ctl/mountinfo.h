/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts of rpcrdmafs in the kernel's table, found without asking any file system.
 *
 * Context: any thread.
 */
#ifndef RPCRDMAFS_MOUNTINFO_H
#define RPCRDMAFS_MOUNTINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct mountinfo {
	char dev[32];                  /* "0:52" */
	uid_t uid;                     /* who mounted it (FUSE's user_id=) */
	unsigned long flags, fs_flags; /* MS_* of the mountpoint, and of the file system */
	bool allow_other;
};

/*
 * mountinfo_path - an absolute path without ".", ".." and doubled slashes; pure
 *
 * cwd: where a relative one begins. False: too long, or empty.
 */
bool mountinfo_path(const char *cwd, const char *path, char out[PATH_MAX]);
/* The uppermost file system at exactly that path. False: none, or it is not rpcrdmafs. */
bool mountinfo_find(FILE *table, const char *path, struct mountinfo *ret);
/*
 * mountinfo_mounted - the same in this process' table
 *
 * Links before the mountpoint are followed: `path` is absolute and becomes the one in the table.
 */
bool mountinfo_mounted(char path[PATH_MAX], struct mountinfo *ret);

#endif
