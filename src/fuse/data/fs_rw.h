/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of a READ or WRITE request (fs_op.work), and of a writeback. */
#ifndef RPCRDMAFS_FS_RW_H
#define RPCRDMAFS_FS_RW_H

#include "fs_op.h"

struct fs_rw {
	const uint8_t *data; /* WRITE: the payload in op->buf */
	size_t done;
	bool sync;
	bool unstable; /* WRITE: a part is not durable yet ... */
	bool torn;     /* ... and its parts met different servers */
	struct nfs4_verf verf;
	struct fs_unstable_mem *unstable_mem; /* WRITE: of fs_unstable_reserve() */
	struct fs_extent *tail;
	bool answered; /* WRITE: to the process before (fs_asked_is_rewrite()) */
	/* WRITE: fs_append.h */
	bool append; /* to the end, wherever that is by then */
	bool redone; /* by this process: it may be there already ... */
	bool sought; /* ... and was looked for */
	bool plain;  /* or not any more: to its offset */
	bool moved;  /* others changed the file meanwhile */
	bool committed;
	unsigned int misses;
	uint64_t end; /* of the file, as the server said */
	int doomed;   /* one before it had no answer; inode lock */
	off_t asked;  /* the offset that the kernel knows it by */
	void (*again)(struct fs_op *op);
	void (*gave_up)(struct fs_op *op, int err);
	/* WRITE: fs_mapped.h; inode lock */
	struct list mapped_link; /* unstable->mapped */
	uint64_t mapped_seq;
	bool checked; /* READ: waited for what was lost */
	bool grows;   /* ... data behind its begin may come while it is on its way */
};

static inline struct fs_rw *fs_rw(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct fs_rw);
	return op->work;
}

#endif
