/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libfuse session, the mount, and their end: fs_session.c, fs_mount.c,
 * fs_unmount.c.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_FS_SESSION_H
#define RPCRDMAFS_FS_SESSION_H

#include <stdint.h>

#include "fs_fs.h"

/* INIT as the kernel sent it, and as it was answered: a successor answers it again to itself. */
#define FS_INIT_REQUEST_MAX 256u
#define FS_INIT_REPLY_MAX   128u
struct fs_init {
	uint8_t request[FS_INIT_REQUEST_MAX];
	size_t request_len;               /* 0: too long, or none has come */
	uint8_t reply[FS_INIT_REPLY_MAX]; /* struct fuse_init_out */
	size_t reply_len;
	bool again; /* the reply is not for the kernel */
	int device; /* another process': its descriptor of /dev/fuse */
};

/* The protocol of the kernel that sent it is 7.minor; 0: nobody knows. */
uint32_t fs_session_minor(const struct fs_init *init);
/* Made with the session. 0 or -ENOMEM. */
int fs_session_init_new(struct fs *fs);
/*
 * fs_session_init_again - the session takes up what another process agreed on with the kernel
 *
 * was: of that process. Returns: 0; -EPROTO: this one would have agreed on something else.
 */
int fs_session_init_again(struct fs *fs, const struct fs_init *was);
/*
 * fs_mount_again - the session of a connection that is there already
 *
 * fd: its descriptor, which is closed. Returns: 0; -errno with text: fd is as it was.
 */
int fs_mount_again(struct fs *fs, int fd, const struct fs_init *was, char *text, size_t len);
extern const struct fuse_custom_io fs_custom_io; /* patches the reply to INIT */
/* Is descriptor fd an open /dev/fuse? 0; -errno with one line in text. */
int fs_mountfd_check(int fd, char *text, size_t text_len);
/* What is mounted at the mountpoint, without asking it anything. 0 or -errno. */
int fs_mount_dev(const char *mountpoint, dev_t *ret_dev);
/* Is that mount the uppermost one there? dev: 0: nobody knows it, and it is not. */
bool fs_unmount_is_there(const char *mountpoint, dev_t dev);
/* Takes the uppermost mount away; what programs have open goes on. 0 or -errno. May wait for
 * fusermount3. */
int fs_unmount_detach(const char *mountpoint);
/* The end, lanes idle: the kernel's connection is closed, then what is left of the mount. */
void fs_unmount_end(struct fs *fs);
void fs_session_free(struct fs *fs);

#endif
