/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data buffers in memory that outlives this process, as requests are received into them
 * (fs_asked.h).
 *
 * Context: any lane; without fs->live they are buffers as any.
 */
#ifndef RPCRDMAFS_FS_ASKED_BUF_H
#define RPCRDMAFS_FS_ASKED_BUF_H

#include "fs_asked.h"

/* Data buffers in the memory ctx (a struct live), as struct slab_memory.get. */
void *fs_asked_buf_memory(void *ctx, size_t size, unsigned int cnt);
/*
 * fs_asked_buf_receive - read(2) of a request, which is noted before it is anything else
 *
 * to->mem: l->rxbuf's. It is a record from the moment on at which the kernel writes it there: a
 * process may be killed on its way back from the system call. As fuse_session_receive_buf().
 */
int fs_asked_buf_receive(struct fs_lane *l, struct fuse_buf *to);
/*
 * The handler of the request that came last has returned, or another lane is to answer it. Until
 * then rxbuf is its record: of one that is answered at once no other is made.
 */
void fs_asked_buf_list(struct fs_lane *l);
/* The buffer is for something else from now on: a request in it that is needed is copied. */
void fs_asked_buf_leave(const struct fs_lane *l, const struct rpcrdma_buf *buf);
/* The same, and the transport has it back. */
void fs_asked_buf_put(struct fs_lane *l, struct rpcrdma_buf *buf);
/* That follows soon, with so much data. A hint. */
void fs_asked_buf_expect(const struct fs_lane *l, size_t size);
/*
 * fs_asked_buf_lend - the data of a WRITE is needed beside its record, which may be over before
 *
 * buf: that the request came in; it may be for something else from now on, as of
 * fs_asked_buf_leave(). data, size: all of its data. Returns: its bytes in the record, the caller's
 * until fs_asked_buf_give_back() of *ret_ref; NULL: it has no record that is all of it.
 */
uint8_t *fs_asked_buf_lend(const struct fs_lane *l, const struct rpcrdma_buf *buf,
	const uint8_t *data, size_t size, live_ref *ret_ref);
/* The WRITE request that came in buf is about another place of its file. */
void fs_asked_buf_move(
	const struct fs_lane *l, const struct rpcrdma_buf *buf, uint64_t unique, uint64_t off);
/* ref: of the request `unique`. LIVE_NONE is accepted. */
void fs_asked_buf_give_back(struct fs *fs, live_ref ref, uint64_t unique);

#endif
