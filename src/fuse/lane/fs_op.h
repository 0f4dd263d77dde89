/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of operations, how they are parked, what they reference.
 *
 * Context: the lane of the op, unless stated.
 */
#ifndef RPCRDMAFS_FS_OP_H
#define RPCRDMAFS_FS_OP_H

#include "fs_int.h"

/*
 * The work of who handles a request: a structure of its own, in op->work, zeroed when the operation
 * begins. A function that returns it as such has FS_OP_WORK_HOLDS().
 */
#define FS_OP_WORK             464u
#define FS_OP_WORK_HOLDS(type) _Static_assert(sizeof(type) <= FS_OP_WORK, "FS_OP_WORK is too small")

/*
 * fs_op_begin - an op for the request a handler was called with
 *
 * The loop reads only when an op is free. Takes the caller's credential from req; op->inode is the
 * inode of `ino`. NULL: that is no nodeid (any more), and the request was answered ESTALE.
 */
struct fs_op *fs_op_begin(fuse_req_t req, fuse_ino_t ino);
/* For an operation on an open file, which holds its inode; with the opener's credential. */
struct fs_op *fs_op_begin_file(fuse_req_t req, const struct fuse_file_info *fi);
/* Without a request (stop, tests). NULL: none free. */
struct fs_op *fs_op_new(struct fs_lane *l);
/*
 * fs_op_call - get a call for the op, then run `start` (which fills op->call and starts it)
 *
 * At once if the op still has the call of its last operation; parks the op when no request is
 * free. Sets op->fh from op->inode and fh2 from op->inode2 (where they are), op->attr_seq, and
 * call.cred = &op->cred before `start`. When the session is dead: op->failed, or an error reply.
 */
void fs_op_call(struct fs_op *op, void (*start)(struct fs_op *op));
/* Like fs_op_call() for an op that needs a data buffer (op->buf) first. */
void fs_op_call_buf(struct fs_op *op, void (*start)(struct fs_op *op));
/* After the reply: everything the op holds is given back. */
void fs_op_end(struct fs_op *op);
/* The lane has `cnt` more, all free, until it goes. False: out of memory; some may be there. */
bool fs_op_pool_add(struct fs_lane *l, unsigned int cnt);
/* None is in work. */
void fs_op_pool_fini(struct fs_lane *l);
/*
 * One of no pool: its owner makes it ready by fs_op_init() before each use, and takes it back
 * in fs_part.op_ended (fs_deleg_return.c). NULL: out of memory.
 */
struct fs_op *fs_op_alloc(const struct fs *fs);
void fs_op_free(struct fs_op *op);
void fs_op_init(struct fs_op *op, struct fs_lane *l);
/* Gives the call back early: the op is about to wait for something else. */
void fs_op_put_call(struct fs_op *op);
/*
 * fs_op_notify - invalidates what the kernel has, and goes on when it has done that
 *
 * Gives the op's call back: an op that waits holds nothing that others need. `then` runs on the
 * op's lane, never from here. pages: else attributes only.
 */
void fs_op_notify(
	struct fs_op *op, struct fs_inode *in, bool pages, void (*then)(struct fs_op *op));
/* The same with the pages of a range (len 0: to the end): what is dirty there is written first. */
void fs_op_notify_range(struct fs_op *op, struct fs_inode *in, off_t off, off_t len,
	void (*then)(struct fs_op *op));
/* Any lane: op->then runs on the op's lane. */
void fs_op_wake(struct fs_op *op);
/* All of a list of fs_op.link, in its order; it is empty then. No lock held that they may want. */
void fs_op_wake_all(struct list *ops);
enum fs_op_tried {
	FS_OP_WENT,
	FS_OP_NO_CALL,
	FS_OP_NO_BUF
};
/* fs_lane.c: starts a parked op if what it waits for is there. */
enum fs_op_tried fs_op_try(struct fs_op *op);
/* The call of an operation, which leads back to it. */
struct fs_op_call {
	struct nfs4_call call;
	struct fs_op *op;
};
static inline struct fs_op *fs_op_of(struct nfs4_call *call)
{
	return container_of(call, struct fs_op_call, call)->op;
}
static inline uint64_t fs_op_now(const struct fs_op *op)
{
	return reactor_now(op->lane->reactor);
}
/* Nobody waits for it any more, and nothing of it was done: then nothing need be. */
static inline bool fs_op_is_void(const struct fs_op *op)
{
	return op->abandoned && !op->began;
}
/*
 * Does op->off, op->size end past the server's maxfilesize? The kernel compares with it where it
 * knows it, which it does not of a FUSE mount.
 */
bool fs_op_is_too_big(const struct fs_op *op);
/* Copies a name into op->name or name2; false: longer than 255 bytes (ENAMETOOLONG). */
bool fs_op_name(char dst[FS_NAME_MAX + 1], const char *name);

#endif
