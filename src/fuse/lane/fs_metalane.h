/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metadata lane (option metalane): a stat never waits behind a gigabyte.
 *
 * One lane beside the others has a connection, a session and a few buffers of
 * its own for what carries no data of files: names, attributes, opens, locks,
 * extended attributes. It does not read /dev/fuse. The other lanes, the *data
 * lanes*, do, look at the opcode, and *forward* such a request: its bytes are copied and posted to
 * the metadata lane, which goes on with them as if it had read them. So the two never share a send
 * queue, a slot, a credit or a buffer. READ and WRITE stay with the lane that read them, and so
 * does what waits for a file's data: FLUSH, FSYNC, RELEASE, COPY_FILE_RANGE,
 * FALLOCATE, LSEEK. FORGET needs no call: it is done at once.
 *
 * The kernel's queue is one, and what it holds is found only by reading what is
 * before it. So with a metadata lane a data lane reads on, whatever is parked:
 * - an operation is never missing: fs_interrupt_spare() makes more (1024 at most);
 * - READs have a buffer only with a call, and leave a quarter of all to receive
 *   requests into; WRITEs that wait keep theirs. The last one is for data that a
 *   server lost (fs_rewrite.c), which WRITEs may wait for. What READs may not
 *   take and what may be unstable (half) is never all: READs always end.
 * A request waits in the kernel all the same when so many data requests are
 * outstanding that these are used up.
 *
 * A request is taken by the data lane itself when it is too long (SETXATTR), when as many as may be
 * are under way, or when the metadata lane has no operation left: as without this option.
 *
 * FUSE_INTERRUPT may overtake the request that it is about: the metadata lane
 * remembers the last ones that it found nothing for.
 *
 * The end: the metadata lane stays QUIET (fs_lane.c) until no other lane reads
 * any more and what they forwarded has begun; then it drains as they do.
 *
 * Context: the lane that is the argument.
 */
#ifndef RPCRDMAFS_FS_METALANE_H
#define RPCRDMAFS_FS_METALANE_H

#include "fs_op.h"

/* False: out of memory. */
bool fs_metalane_lane_init(struct fs_lane *l);
void fs_metalane_lane_fini(struct fs_lane *l);

/* Pure: is a request with this opcode the metadata lane's? */
bool fs_metalane_is_metadata(uint32_t opcode);
/*
 * fs_metalane_forward - leaves the request to the metadata lane
 *
 * req: `len` bytes, as read from /dev/fuse; copied. False: it is the caller's.
 */
bool fs_metalane_forward(struct fs_lane *l, const void *req, size_t len);
/* Requests that wait for an operation begin. */
void fs_metalane_turn(struct fs_lane *l);
/* A FUSE_INTERRUPT of this request came (fs_interrupt_now()). */
void fs_metalane_interrupt(struct fs_lane *l, uint64_t unique);

/*
 * Does the lane go on reading, or taking what is forwarded, whatever is parked? Also while
 * operations wait for the notify thread: it may wait for a page that a READ has locked which nobody
 * has read yet.
 */
bool fs_metalane_reads_on(const struct fs_lane *l);
/* How many buffers must be left when the lane takes one to receive into ... */
unsigned int fs_metalane_last_bufs(const struct fs_lane *l);
/* ... and when the op takes one. */
unsigned int fs_metalane_spare_bufs(const struct fs_op *op);

/* The lane reads no more. */
void fs_metalane_no_more(struct fs_lane *l);
/* Comes no request any more from other lanes? True for a data lane. */
bool fs_metalane_is_over(const struct fs_lane *l);

#endif
