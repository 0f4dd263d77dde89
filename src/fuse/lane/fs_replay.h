/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a process before this one read and did not answer (fs_tables.h): one lane takes
 * them, in their order, before any lane reads /dev/fuse. It may have answered some and not noted
 * that, so all are done before whatever the kernel asks for now, but locks that others hold
 * (fs_asked_await()).
 *
 * Context: fs_replay_add(): before lanes run; the others: any lane.
 */
#ifndef RPCRDMAFS_FS_REPLAY_H
#define RPCRDMAFS_FS_REPLAY_H

#include "fs_lane.h"
#include "tables.h"

/* A number for a request of our own: the kernel has none of it, and takes no answer to it. */
uint64_t fs_replay_unique(struct fs *fs);
/* req: len bytes, as the kernel sends it; copied. False: out of memory. */
bool fs_replay_add(struct fs *fs, const void *req, size_t len);
/* The same, a WRITE of data that was acknowledged: what comes after it waits for it. */
bool fs_replay_add_data(struct fs *fs, const void *req, size_t len);
/* The same, of our own, that is not done while that request is awaited. 0: at once. */
bool fs_replay_add_after(struct fs *fs, const void *req, size_t len, uint64_t unique);
/* The request that opens by this owner (nfs4_owner_of_request()); 0: none of them does. */
uint64_t fs_replay_of_owner(struct fs *fs, uint64_t owner);
/* A RELEASE of this handle is among them. */
bool fs_replay_has_release(struct fs *fs, uint64_t handle);
/*
 * fs_replay_get - a request that the process before did not answer (FS_TABLES_REQUEST, _READ)
 *
 * It will be done by a lane, as if it had just been read. Before lanes start. *ret_unique: its
 * number; 0: it was answered, or the kernel waits for no answer, or there is another record of it.
 * Returns: 0; -EBADMSG; -ENOMEM.
 */
int fs_replay_get(struct fs *fs, const struct tables_record *r, uint64_t *ret_unique);
/* While fs->replaying: is there one, and is it this lane that takes it, now? */
bool fs_replay_is_next(const struct fs_lane *l);
/* The oldest one into buf->mem, which is l->rxbuf's. Returns: its length; -EAGAIN: there is none.
 */
int fs_replay_receive(struct fs_lane *l, struct fuse_buf *buf);
enum fs_replay_turn {
	FS_REPLAY_NONE,
	FS_REPLAY_NEXT,   /* the lane takes the next one: /dev/fuse need not be ready for it */
	FS_REPLAY_OTHERS, /* the first lane is to look again */
	FS_REPLAY_OVER,   /* all are done, once: all lanes read now */
};
/* After such a request, or anything else. */
enum fs_replay_turn fs_replay_turn(struct fs_lane *l);
void fs_replay_fini(struct fs *fs);

#endif
