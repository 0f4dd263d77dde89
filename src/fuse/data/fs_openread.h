/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small file comes with its OPEN: READ of all of it in the same COMPOUND. Whoever
 * opens a file to read it, and knows nothing of it yet, has it after one call to the
 * server instead of two.
 *
 * What comes is a block of fs_ahead.h, answered from, stale and dropped as those are.
 *
 * Which: a regular file of 1..64 KiB, as far as is known (LOOKUP nearly always told
 * its size a moment ago), opened for reading only, whose pages the kernel has not
 * got, or will drop. Larger ones are read in more requests than one, and what is
 * fetched for nothing should cost less than a call. Not one that we are writing, and
 * not with O_DIRECT, `noac` or acregmin=0, where nothing is to be believed for longer
 * than its own request.
 *
 * No delegation comes with it (nfs4_ops.h): what is opened again, with pages that the
 * kernel keeps, gets one then.
 *
 * Many programs open and do not read (locks, fstat). After FS_OPENREAD_VAIN blocks
 * in a row of a lane that nobody has read, only each FS_OPENREAD_TRY-th OPEN of
 * those that might brings one, until one is read.
 *
 * Budget: that of read-ahead (an eighth of the lane's buffers), whether or not the
 * option readahead= is set; with none left the OPEN is sent as it always was.
 *
 * Context: the op's lane. No lock held.
 */
#ifndef RPCRDMAFS_FS_OPENREAD_H
#define RPCRDMAFS_FS_OPENREAD_H

#include "fs_op.h"

#define FS_OPENREAD_MAX  (64u << 10)
#define FS_OPENREAD_VAIN 8u
#define FS_OPENREAD_TRY  32u

/* The work of an OPEN request (fs_op.work). */
struct fs_openread {
	struct fs_op *block; /* of fs_openread_begin(), or NULL */
};
static inline struct fs_openread *fs_openread(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct fs_openread);
	return op->work;
}
/* Of an OPEN by filehandle that is about to start: call.u.open is filled in, but for `read`. */
void fs_openread_begin(struct fs_op *op);
/*
 * fs_openread_end - its end; does nothing if it has no READ
 *
 * opened: the call has just ended well, and its reply is there still.
 */
void fs_openread_end(struct fs_op *op, bool opened);

#endif
