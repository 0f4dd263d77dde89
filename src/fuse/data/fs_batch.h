/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: large writebacks (fs_writeback.h) that follow each other in a file go to
 * the server as one WRITE, each from its own buffer, so that nothing is copied.
 *
 * The first one is the head of the batch and the one that is open; the others are
 * its parts. Each of them is a writeback as any other: in the inode's list, in the
 * lane's budget, and unstable by itself. Only the call is the head's:
 *
 *   open --(full, wanted, another one opened, time)--> one WRITE of all
 *        --(answered)--> who is covered is over; a part that is not goes by itself,
 *                        and the head goes on with what is left of it
 *        --(refused)---> each goes by itself, and has its own answer
 *        --(no answer)-> all fail: each would wait as long
 *
 * By itself a part is written from its first byte again, so it may be written
 * twice: the same bytes at the same place, where nobody else writes meanwhile.
 *
 * Why there are always some WRITEs on their way in a long stream: a batch is at
 * most a part of what a lane may write back (FS_BATCH_SHARE).
 *
 * Context: a batch is of one handle and one lane. It is made up under the
 * inode's lock while its head is open; once that is taken (fs_writeback.c) it is
 * the lane's alone.
 */
#ifndef RPCRDMAFS_FS_BATCH_H
#define RPCRDMAFS_FS_BATCH_H

#include "fs_op.h"

/* Of a lane's writebacks one batch has this part at most. */
#define FS_BATCH_SHARE 2u

void fs_batch_lane_init(struct fs_lane *l);

/* ---- while it is open. Inode lock held ---- */

/* The last writeback of the batch, or the head. */
struct fs_op *fs_batch_last(struct fs_op *head);
/* May `op`, a writeback, be the next of it? */
bool fs_batch_takes(struct fs_op *head, const struct fs_op *op);
void fs_batch_add(struct fs_op *head, struct fs_op *op);
/* Nothing as long as its last one would fit any more. */
bool fs_batch_is_full(struct fs_op *head);

/* ---- its WRITE. The lane; each works for a head without parts too ---- */

/* Room for all (fs_unstable_reserve). False: not for all, the WRITE must be FILE_SYNC. */
bool fs_batch_reserve(struct fs_op *head);
/* The data to be written: the rest of the head, and the parts; no more than wsize. */
void fs_batch_data(const struct fs_op *head, struct nfs4_op_write *w);
/*
 * fs_batch_wrote - the parts are the head's no more
 *
 * covered: bytes of them that `w` covers. Cars that end in there are over; the others go by
 * themselves, which the head must not wait for.
 */
void fs_batch_wrote(struct fs_op *head, const struct nfs4_op_write *w, size_t covered);
/* Nothing of them is written, and nothing will be. err: positive errno. */
void fs_batch_fail(struct fs_op *head, int err);

#endif
