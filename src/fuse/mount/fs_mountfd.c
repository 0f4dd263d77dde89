/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mountpoint of the form /dev/fd/N: somebody who may mount has opened
 * /dev/fuse, mounted with fd=N and started us with it, so that we need no
 * right of our own. Where it is mounted we are not told, and it is not ours to
 * unmount.
 */
#include "fs_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MISC_MAJOR 10
#define FUSE_MINOR 229

int fs_mountfd_of(const char *mountpoint)
{
	int fd, end = 0;

	/* As libfuse reads it: what it would not take for a descriptor is a path. */
	if (sscanf(mountpoint, "/dev/fd/%d%n", &fd, &end) != 1 || mountpoint[end] || fd < 0)
		return -1;
	return fd;
}

int fs_mountfd_check(int fd, char *text, size_t len)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0) {
		snprintf(text, len,
			"mountpoint: descriptor %d is not open: open /dev/fuse as %d, mount with "
			"fd=%d, "
			"and let us inherit it",
			fd, fd, fd);
		return -EBADF;
	}
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(MISC_MAJOR, FUSE_MINOR) ||
		(flags & O_ACCMODE) != O_RDWR) {
		snprintf(text, len,
			"mountpoint: descriptor %d is not /dev/fuse, open for reading and writing",
			fd);
		return -EINVAL;
	}
	return 0;
}
