/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel invalidations, from threads of their own.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_NOTIFY_H
#define RPCRDMAFS_FS_NOTIFY_H

#include "fs_int.h"

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
 * fs_notify_then - invalidate, and go on with the op when the kernel has done it
 *
 * As fs_op_notify_range(), off < 0: attributes only; for an op without a call.
 */
void fs_notify_then(struct fs_op *op, struct fs_inode *in, off_t off, off_t len,
	void (*then)(struct fs_op *op));
/* The kernel asks before it walks these dentries in n->dir; takes n and n->dir's reference. */
void fs_notify_dentries(struct fs *fs, struct fs_dentries *n);

#endif
