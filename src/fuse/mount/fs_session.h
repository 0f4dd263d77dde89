/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libfuse session, the mount, and their end: fs_session.c, fs_mount.c,
 * fs_unmount.c.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_FS_SESSION_H
#define RPCRDMAFS_FS_SESSION_H

#include "fs_fs.h"

extern const struct fuse_custom_io fs_custom_io; /* patches the reply to INIT */
/* Is descriptor fd an open /dev/fuse? 0; -errno with one line in text. */
int fs_mountfd_check(int fd, char *text, size_t text_len);
/* What is mounted at the mountpoint, without asking it anything. 0 or -errno. */
int fs_mount_dev(const struct fs *fs, dev_t *ret_dev);
/* Takes a mount away as who is not root must. 0 or -errno. Waits for fusermount3. */
int fs_unmount_fusermount(const char *mountpoint);
/* The end, lanes idle: the kernel's connection is closed, then what is left of the mount. */
void fs_unmount_end(struct fs *fs);
void fs_session_free(struct fs *fs);

#endif
