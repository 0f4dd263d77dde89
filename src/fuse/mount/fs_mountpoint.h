/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands at a mountpoint, as the kernel's table of mounts tells: a stat would ask the file
 * system that is mounted there, which may wait for a dead server for ever.
 */
#ifndef RPCRDMAFS_FS_MOUNTPOINT_H
#define RPCRDMAFS_FS_MOUNTPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct fs_mounted {
	char type[64], source[1024];
	uid_t uid; /* FUSE: who may use it; else -1 */
	gid_t gid;
	dev_t dev;
};

/* Reads a mountinfo table: the uppermost mount exactly at path (absolute). False: there is none. */
bool fs_mountpoint_find(FILE *table, const char *path, struct fs_mounted *ret);
/* The device of that mount if it is one of ours, of this source; else 0. */
dev_t fs_mountpoint_dev(FILE *table, const char *path, const char *source);

#endif
