/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files and directories of this mount that something is mounted on, as far as this process'
 * mount namespace shows it: read from /proc/self/mountinfo, anew when the kernel says that it
 * changed.
 *
 * Context: any thread. Reads /proc, never the mount itself.
 */
#ifndef RPCRDMAFS_FS_COVERS_H
#define RPCRDMAFS_FS_COVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mutex.h"

struct fs_covers {
	struct mutex lock;
	const char *file;
	int fd;      /* -1: not open yet */
	char *paths; /* of what is covered, from the mount's root on, without '/' before; NULL */
	size_t len;  /* of them, each with its NUL */
};

void fs_covers_init(struct fs_covers *c);
void fs_covers_fini(struct fs_covers *c);
/*
 * fs_covers_of - the directories in which something is mounted on `name`
 *
 * dev: of the mount; 0: not known, and so nothing is.
 * ret_dirs: NULL if there is none. Else *ret_cnt paths in *ret_len bytes, each with its NUL; "" is
 * the root. The caller's, by free().
 * Returns: 0, or -ENOMEM with *ret_dirs NULL: the caller does not know, and its operation fails.
 */
int fs_covers_of(struct fs_covers *c, dev_t dev, const char *name, char **ret_dirs,
	unsigned int *ret_cnt, size_t *ret_len);
/* Is anything mounted on a file of ours? True also where that is not known. */
bool fs_covers_any(struct fs_covers *c, dev_t dev);
/*
 * fs_covers_parse - pure: what mountinfo says is mounted on files of `dev`
 *
 * ret_paths: as struct fs_covers.paths has it, the caller's, by free(); NULL: nothing.
 * Returns: 0, or -ENOMEM with nothing in *ret_paths: keep what was known.
 */
int fs_covers_parse(const char *mountinfo, dev_t dev, char **ret_paths, size_t *ret_len);

#endif
