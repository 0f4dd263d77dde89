/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of operations, how they are parked, what they reference.
 *
 * Context: the lane of the op, unless stated.
 */
#ifndef RPCRDMAFS_FS_OP_H
#define RPCRDMAFS_FS_OP_H

#include "fs_file.h"
#include "fs_lane.h"
#include "fs_notify.h"
#include "nfs4_held.h"

#define FS_OP_BARS 2u /* RENAME: two files */

/*
 * One FUSE request in work: taken from the lane's pool when it is read, given
 * back after its reply when no call is in flight. Its NFS call lies behind it in memory.
 */
struct fs_op {
	struct fs_lane *lane;
	struct nfs4_call *call; /* the one that carries it: its own, for ever (fs_op_of()) */
	struct list pool_link;  /* lane->ops */
	struct list link;
	fuse_req_t req;            /* NULL once replied */
	uint64_t unique, begin_ns; /* of the request */
	uint64_t read_ns;          /* when it was read, by reactor_clock() */
	struct nfs4_times times;
	uint32_t opcode;
	bool on_file;    /* of fs_op_begin_file() */
	bool file_holds; /* op->inode, which the op itself has no reference to */
	bool background; /* counted in fs->background */
	bool abandoned;  /* its program was dying: counted in lane->abandoned, and on_file in the
			  * file's
			  */
	struct rpc_cred cred;
	struct rpcrdma_buf *buf; /* stolen receive buffer or a sink; put with the op */
	void *mem;               /* malloced by a handler (a target, a list); freed with the op */
	bool has_call;           /* call is got from the session */
	bool want_buf;           /* parked for a buffer too */
	bool last_buf;           /* and may have the one that others leave (fs_metalane.h) */
	/*
	 * The operation changes the inode whose attributes it replies (SETATTR): its reply never
	 * waits for an invalidation. The kernel holds back writes until it is answered, and
	 * dropping a dirty page waits for its write.
	 */
	bool own;
	bool shadow; /* of a special file: it is told as the user's who may not use it */
	struct fs_inode *inode, *inode2; /* referenced until the op ends */
	struct fs_file *file, *file2;    /* referenced until the op ends; COPY: from file2 */
	struct nfs4_fh fh, fh2;          /* copies: calls point at these */
	char *name, *name2;              /* FS_NAME_MAX + 1 bytes each, its own */
	struct fuse_file_info fi;
	struct nfs4_attr attr; /* of a reply that waits for an invalidation */
	struct fs_inode *reply_dir, *reply_inode;
	void (*undo)(struct fs_op *op, int err); /* of a reply that nobody takes */
	off_t off;
	size_t size;
	uint64_t attr_seq; /* fs_attr_seq() when the call was started */
	void *work;        /* FS_OP_WORK bytes, zeroed: a structure of the request's handler */
	/* Gives back what `work` has; fs_op_end() calls it. NULL: nothing. */
	void (*ended)(struct fs_op *op);
	bool began;               /* its first call was started: it may have been done in part */
	bool gated;               /* counted in inode->unstable->io ... */
	bool gated_abandoned;     /* ... and in abandoned */
	struct fs_commit *commit; /* its own, for ever (fs_unstable.h) */
	/* Runs when the op is taken from the parking list (no request was free before). */
	void (*resume)(struct fs_op *op);
	/*
	 * Set before fs_op_call() by what must not just answer an error when the session is dead;
	 * err: positive errno. Cleared by each start.
	 */
	void (*failed)(struct fs_op *op, int err);
	/* fs_silly_rename() in work */
	struct fs_silly *silly;
	void (*silly_done)(struct fs_op *op, int err);
	/* fs_access_check() in work */
	struct {
		struct fs_inode *inode; /* op->inode or inode2 */
		unsigned int mask;
		void (*then)(struct fs_op *op);
	} may;
	/* fs_op_notify() or fs_rewrite_wait() in work */
	struct fs_notice notice;
	struct reactor_msg notified;
	void (*then)(struct fs_op *op);
	bool alone;                     /* how it enters the share it waits for (fs_share.h) */
	struct fs_writeback *writeback; /* its own, for ever (fs_writeback.h) */
	struct fs_block *block;         /* its own, for ever (fs_block.h) */
	struct nfs4_once once;          /* of the request: its call is not executed twice */
	/* fs_deleg.h: inodes that it keeps free of delegations until it ends; referenced */
	struct fs_inode *barred[FS_OP_BARS];
	unsigned int bars;
	/* fs_deleg_return.c: an operation that returns this one */
	struct fs_deleg *deleg;
	struct fs_share *claims;
	uint32_t round;
};

/*
 * The work of the request's handler: a structure of its own, in op->work, zeroed when the operation
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
/*
 * For an operation on an open file, which holds its inode; with the opener's credential. NULL: that
 * is no handle, and the request was answered EBADF.
 */
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
/*
 * fs_op_once - the call that is about to be sent does all that the request asks for
 *
 * In its `start`. It is not executed twice even if this process dies (nfs4_once): if it was
 * executed the request is answered with success (fs_replay.c). So never for a call that another one
 * of this kind must follow.
 */
void fs_op_once(struct fs_op *op);
/*
 * fs_op_once_part - the same of a call that is a part of it
 *
 * If it was executed the request is done again without it: op->once.request is the number that
 * nfs4_redo_was_done() knows it by.
 */
void fs_op_once_part(struct fs_op *op);
/* The request that such a number is of. */
uint64_t fs_op_request_of(uint64_t number);
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
