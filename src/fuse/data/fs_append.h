/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * O_APPEND: a write goes to the end that the file has at the server, not to the
 * one that the kernel knows, where another client made it longer or shorter.
 *
 * Its WRITE is bound to the end (VERIFY of the size in the same COMPOUND) that
 * the file must have when all that we wrote before is through. So of the
 * writebacks of an inode (fs_writeback.h) one that appends is on its way alone: it
 * waits for those before it, and what writes otherwise waits for it. Meanwhile
 * others join the next one.
 *
 *   sent --(NOT_SAME)--> GETATTR --> sent again, to the end that there is
 *                        shorter, and something of what is unstable is behind that
 *                        --> COMMIT: was it lost, or did another truncate it?
 *                        longer, and a process before this one may have sent it (fs_replay.h)
 *                        --> READ: is it there? Then it is written where it was
 *
 * The kernel is told to drop what it has of the file, and holds the data of this
 * write, and of those that follow until it asks for the size, at offsets where
 * it is not. These are shifted here, and dropped one by one.
 *
 * At its own offset, as it was asked for, goes
 *   what would replace or follow data that a restarted server lost: that is written again;
 *   what was sent before, and not answered, in a session that is lost: it may be there already;
 *   the rest of a WRITE that was done in part;
 *   a write with O_DIRECT, whose parts the kernel sends side by side, and one of a
 *   mapping; under a delegation; below what the kernel knows to be the end (RWF_NOAPPEND)
 *
 * Context: the op's lane; the inode's lock guards what is in fs_unstable.
 */
#ifndef RPCRDMAFS_FS_APPEND_H
#define RPCRDMAFS_FS_APPEND_H

#include "fs_unstable.h"

/* ---- requests ---- */

/* A WRITE request came: its op->off, asked and append. */
void fs_append_begin(struct fs_op *op);
/* `count` bytes are about to be answered: the kernel's end is behind them. */
void fs_append_answer(struct fs_op *op, size_t count);
/* Are they of one kind, and `op` the next one? Inode lock held. */
static inline bool fs_append_joins(const struct fs_op *c, const struct fs_op *op)
{
	if (!fs_rw(c)->append && !fs_rw(op)->append)
		return true;
	return fs_rw(c)->append && fs_rw(op)->append && c->off + (off_t)c->size == op->off &&
	       fs_rw(c)->asked + (off_t)c->size == fs_rw(op)->asked;
}

/* ---- the WRITE ---- */

/* Is it bound to the end? */
static inline bool fs_append_at_end(const struct fs_op *op)
{
	return fs_rw(op)->append && !fs_rw(op)->plain;
}
/*
 * fs_append_missed - its WRITE failed; because of the end?
 *
 * Then true: `again` runs when it is known where to write, or `gave_up` if that cannot be found
 * out; both with the op's call, its batch as it was.
 */
bool fs_append_missed(struct fs_op *op, void (*again)(struct fs_op *op),
	void (*gave_up)(struct fs_op *op, int err));
/* It is about to be sent, and is no writeback: where, whoever takes the mount over must know. */
void fs_append_note(struct fs_op *op);
/* It is over, in whichever way: the kernel is told to drop what it has at the wrong place. */
void fs_append_over(struct fs_op *op);
/* Nobody answered: those that wait behind it would wait as long, one after the other. */
void fs_append_doom(struct fs_op *op, int err);
/* Did that happen to it? Positive errno. */
int fs_append_doomed(struct fs_op *op);

/* ---- the kernel's end. Inode lock held ---- */

/*
 * Without the lock: the op's READ is about to be answered with so many bytes. The kernel takes a
 * short answer for the end.
 */
void fs_append_read(struct fs_op *op, size_t len);

extern const struct fs_part fs_append_part;

#endif
