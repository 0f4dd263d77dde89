/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each operation replies exactly once; these end it.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_REPLY_H
#define RPCRDMAFS_FS_REPLY_H

#include "fs_op.h"

/*
 * A request that was answered already (fs_interrupt.c) is answered to nobody: then these take back
 * what the answer would have given, as they do when the kernel does not take it.
 *
 * Inodes given here must be referenced by the op (inode, inode2). Attributes of a file whose pages
 * in the kernel are stale are told only after the notify thread has dropped the pages.
 */
void fs_reply_err(struct fs_op *op, int err); /* err: positive errno, 0: success without a body */
/* in: with the kernel's lookup count taken (fs_inode_lookup(..., 1)). */
void fs_reply_entry(
	struct fs_op *op, struct fs_inode *dir, struct fs_inode *in, const struct nfs4_attr *a);
void fs_reply_negative(struct fs_op *op, struct fs_inode *dir);
void fs_reply_attr(struct fs_op *op, struct fs_inode *in, const struct nfs4_attr *a);
/*
 * Of an OPEN or CREATE. undo: takes the open back and ends the op, with 0 for err, if nobody takes
 * the answer: no RELEASE will come.
 */
void fs_reply_open(struct fs_op *op, struct fs_file *f, void (*undo)(struct fs_op *op, int err));
void fs_reply_create(struct fs_op *op, struct fs_inode *dir, struct fs_inode *in, struct fs_file *f,
	void (*undo)(struct fs_op *op, int err));
/* False: nobody took the handle, which is the caller's again. */
bool fs_reply_opendir(struct fs_op *op, const struct fuse_file_info *fi);
void fs_reply_data(struct fs_op *op, const void *data, size_t len);
void fs_reply_length(struct fs_op *op, size_t len); /* of an xattr, or of their names */
void fs_reply_write(struct fs_op *op, size_t count);
/* Answers without ending the op (fs_writeback.h). */
void fs_reply_write_early(struct fs_op *op, size_t count);
void fs_reply_readlink(struct fs_op *op, const char *target);
void fs_reply_statfs(struct fs_op *op, const struct statvfs *st);
void fs_reply_lock(struct fs_op *op, const struct flock *lock);
void fs_reply_lseek(struct fs_op *op, off_t off);
/*
 * Answers without ending the op (RELEASE): it goes on without a request. Nothing if it has none.
 * False: nobody took the answer.
 */
bool fs_reply_early(struct fs_op *op, int err);

/* fs_trace.c: a request is answered, by its lane; result: bytes or 0, or -errno. */
void fs_trace_answered(struct fs_op *op, int64_t result);

#endif
