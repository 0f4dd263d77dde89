/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITEs of pages that programs changed through mappings, and who has to wait for them.
 *
 * Nobody waits for such a WRITE. Up to Linux 6.14 the kernel copies the page and takes it for
 * written at once: munmap(2) returns, and so does an invalidation of the page, before the WRITE is
 * answered, or even read: it is a background request, which the kernel may keep to itself. A
 * request that looks at the file at the server after that (SEEK) waits here until the server has
 * it.
 *
 * Context: the op's lane; the lists are guarded by the inode's lock.
 */
#ifndef RPCRDMAFS_FS_MAPPED_H
#define RPCRDMAFS_FS_MAPPED_H

#include "fs_op.h"

/* Of an operation that waits for them: in its work. */
struct fs_mapped_wait {
	struct fs_op *op;
	struct reactor_timer tick;
	void (*again)(struct fs_op *op);
	uint64_t since_ns;
	bool unsure; /* some may be among what no lane knows of */
};

/* op is such a WRITE, until it ends: the first thing that is done with it. */
void fs_mapped_begin(struct fs_op *op);
/*
 * fs_mapped_await - what the kernel took for written before this call is at the server
 *
 * The op's call is given back; `again` runs on the op's lane, maybe before this returns: touch the
 * op no more. w->unsure then: for a second there was always something that no lane knows of, or
 * this lane is to read no more, and so more may come that this call should have waited for.
 */
void fs_mapped_await(struct fs_op *op, struct fs_mapped_wait *w, void (*again)(struct fs_op *op));

#endif
