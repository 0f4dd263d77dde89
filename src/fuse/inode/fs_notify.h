/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel invalidations, from threads of their own.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_NOTIFY_H
#define RPCRDMAFS_FS_NOTIFY_H

#include "fs_inode.h"

#include <sys/uio.h>

/* One entry of a notify thread's queue. */
struct fs_notice {
	struct list link;
	struct fs_inode *inode; /* referenced */
	off_t off, len;         /* of the pages that go; off < 0: attributes only */
	uint32_t inval;         /* inode->inval_want this fulfils; with off >= 0 */
	struct reactor *reactor;
	struct reactor_msg *told; /* posted there afterwards; NULL: malloced, nobody waits */
};

/*
 * fs_notify_write - one notice, written to /dev/fuse by whoever does that for this thread
 *
 * Context: a notify thread, within fuse_lowlevel_notify_*. Returns: as writev(2), with errno.
 */
ssize_t fs_notify_write(struct fs *fs, int fd, const struct iovec *iov, int count);
int fs_notify_start(struct fs *fs);
/* No new ones: what asks for one goes on at once. Those in work end as long as lanes read. */
void fs_notify_quiesce(struct fs *fs);
bool fs_notify_busy(struct fs *fs);
void fs_notify_stop(struct fs *fs);
/*
 * Attributes only (off < 0) or pages too; dropped silently when the kernel forgot the inode. False:
 * there was no memory or room, and nothing is done.
 */
bool fs_notify_inval_inode(struct fs *fs, struct fs_inode *in, off_t off, off_t len);
/*
 * The same, and n->told is posted when the kernel has done it. All but `link` and `inval` is filled
 * in; n and its reference of the inode are the queue's until then.
 */
void fs_notify_then(struct fs *fs, struct fs_notice *n);
/* The kernel asks before it walks these dentries in n->dir; takes n and n->dir's reference. */
void fs_notify_dentries(struct fs *fs, struct fs_dentries *n);

#endif
