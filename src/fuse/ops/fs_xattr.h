/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended attributes: what the requests for one and for their list have in common.
 *
 * Context: the op's lane.
 */
#ifndef RPCRDMAFS_FS_XATTR_H
#define RPCRDMAFS_FS_XATTR_H

#include "fs_op.h"

#define FS_XATTR_USER     "user."
#define FS_XATTR_USER_LEN (sizeof(FS_XATTR_USER) - 1)
#define FS_XATTR_ACL      "system.nfs4_acl"
/* The longest list of names that Linux has. */
#define FS_XATTR_LIST_MAX 65536u

/* Does the file system of op->inode have user.* (RFC 8276)? And ACLs? */
bool fs_xattr_has_user(const struct fs_op *op);
bool fs_xattr_has_acl(const struct fs_op *op);
/* Where the server's answer of at most `most` bytes comes to: op->buf. */
struct rpcrdma_span fs_xattr_sink(const struct fs_op *op, size_t most);
/* Answers a request for op->size bytes: 0 asks how many there are. E2BIG: more than `max`. */
void fs_xattr_reply(struct fs_op *op, const void *value, size_t len, size_t max);

#endif
