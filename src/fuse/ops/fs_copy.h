/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_file_range in two parts: fs_copy.c asks the server to copy and says what
 * comes next, fs_copywait.c waits for what the server goes on with by itself.
 *
 * Context: the lane of the operation.
 */
#ifndef RPCRDMAFS_FS_COPY_H
#define RPCRDMAFS_FS_COPY_H

#include "fs_op.h"
#include "nfs4_offload.h"

/* op->mem; op->inode, file and off are the destination's, inode2 and file2 the source's. */
struct fs_copy {
	struct fs_op *op;
	off_t src_off;
	size_t done, durable;  /* of op->size */
	struct nfs4_verf verf; /* of what is between them */
	unsigned int tries;
	int err;         /* after so much the server refused */
	bool sent;       /* some of it may be done ... */
	bool torn;       /* ... which is not told */
	bool no_clone;   /* by COPY from now on ... */
	bool by_hand;    /* ... and synchronously */
	bool attr_stale; /* the destination's attributes must be asked for */
	/* fs_copywait.c: an asynchronous COPY of `asked` bytes */
	struct nfs4_offload off;
	struct reactor_timer tick;
	uint64_t asked;
	bool busy; /* a call about it is in flight or waited for */
	bool told; /* off.res is there */
	bool gone; /* the server did not know it; CB_OFFLOAD may be on its way */
	unsigned int ticks, due;
};

static inline struct fs_copy *fs_copy_of(const struct fs_op *op)
{
	return op->mem;
}

/* ---- fs_copy.c ---- */

#define FS_NO_CLONE 8u

struct fs_fsid {
	uint64_t major, minor;
};

/* Of a mount: file systems that have no CLONE. */
struct fs_clones {
	struct mutex lock; /* everything below */
	struct fs_fsid none[FS_NO_CLONE];
	unsigned int cnt; /* seen so far: the newest are remembered */
};

/* The next thing to do after a part; ends the op after the last. */
void fs_copy_next(struct fs_op *op);
/* `len` bytes more are copied (at most as many as asked for); what is not durable has `verf`. */
void fs_copy_did(
	struct fs_op *op, uint64_t len, enum nfs4_stable committed, const struct nfs4_verf *verf);
/* The server changes nothing more: replies what is durable, or err (positive). Ends the op. */
void fs_copy_finish(struct fs_op *op, int err);
/* Lets who has data to write again pass. */
void fs_copy_yield(struct fs_op *op);

/* ---- fs_copywait.c ---- */

/* Of a lane: operations that wait for the server to copy. */
struct fs_copywait_lane {
	unsigned int cnt;
	uint64_t no_wait_until; /* none does as long as its callbacks do not come */
};

extern const struct fs_part fs_copywait_part;

void fs_copywait_init(struct fs_op *op);
/* The op ends. */
void fs_copywait_fini(struct fs_op *op);
/* May a COPY of so much be answered before it is done? */
bool fs_copywait_may(const struct fs_op *op, uint64_t count);
/* op->call's was: waits without a call, then fs_copy_did(), fs_copy_next() or fs_copy_finish(). */
void fs_copywait_begin(struct fs_op *op);

#endif
