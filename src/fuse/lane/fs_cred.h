/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The credential of who asks.
 *
 * Context: the lane that read the request.
 */
#ifndef RPCRDMAFS_FS_CRED_H
#define RPCRDMAFS_FS_CRED_H

#include "fs_fs.h"

/*
 * fs_cred_of - uid, gid and supplementary groups of the caller
 *
 * From /proc/PID/status, cached for a moment. now_ns: when the request was read, by the clock that
 * all requests of this thread go by.
 */
void fs_cred_of(fuse_req_t req, uint64_t now_ns, struct rpc_cred *ret_cred);
/* Pure: the "Groups:" line of a status file. Returns the number put into gids, at most max. */
unsigned int fs_cred_parse_groups(const char *status, uint32_t *gids, unsigned int max);
/* Pure: does the status file belong to who has these as fsuid and fsgid? */
bool fs_cred_is_of(const char *status, uint32_t uid, uint32_t gid);
/*
 * Is the process that /proc shows under the request's pid the one that asks? That may be a pid of
 * another namespace. Reads /proc.
 */
bool fs_cred_is_caller(const struct fuse_ctx *ctx);

#endif
