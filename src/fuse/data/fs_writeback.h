/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write-back: a WRITE request is answered as soon as its data lies in a
 * buffer of ours, and the server gets it afterwards (design, section 3).
 *
 * The operation that was answered goes on as a *writeback*: it keeps the buffer
 * that the request was received into, and is the WRITE to the server. A small
 * request opens a writeback: the next ones that touch its range are copied into
 * the same buffer, until it is full, somebody needs the data at the server, a
 * write lands elsewhere, or a moment has passed. Then it is sent, and nothing
 * joins it any more. From FS_UNSTABLE_LARGE bytes on nothing is copied: each
 * request is a writeback of its own, and those that follow each other are one batch, which is one
 * WRITE (fs_batch.h).
 *
 *   open --(full, wanted, another one opened, time)--> sent --(answered)--> over
 *
 * The writebacks of an inode never overlap: who writes where one lies waits until
 * it is over. So their order at the server does not matter. And whoever asks
 * the server for something that they would change (data, size, times) waits for
 * those that were there before it (fs_writeback_wait).
 *
 * Not written back go O_DIRECT, O_SYNC, `sync`, `noac`, what the kernel writes from
 * mappings, what may end past the server's largest file, and whatever finds the
 * lane's budget used up (option dirty=, and a quarter of its buffers): that write
 * is answered by the server, so that writers keep its pace.
 *
 * An error is every handle's, at the next write, and at the next fsync or close,
 * and the kernel drops the pages that it was told are written.
 *
 * Context: an inode's writebacks are guarded by its lock; a writeback is its lane's,
 * other lanes fill it while it is open and then ask that lane to send it.
 */
#ifndef RPCRDMAFS_FS_WRITEBACK_H
#define RPCRDMAFS_FS_WRITEBACK_H

#include "fs_unstable.h"

/* No WRITE of ours ends after it. */
#define FS_WRITEBACK_ALL UINT64_MAX

/* Of a lane. */
struct fs_writeback_lane {
	struct fs_lane *lane;
	struct list open; /* of fs_writeback.open_link, oldest first */
	struct reactor_timer timer;
	unsigned int cnt, max;  /* writebacks */
	_Atomic uint64_t bytes; /* in them; other lanes fill them too */
	unsigned int batch_max; /* writebacks that one WRITE may be of */
};

extern const struct fs_part fs_writeback_part;

/* An operation that is a writeback, or waits for some. Guarded by the inode's lock, but for these:
 */
struct fs_writeback {
	struct fs_op *op;      /* for ever */
	bool active;           /* it is one: for its own lane, which the list is not */
	struct list link;      /* unstable->writebacks */
	uint64_t seq;          /* of the writeback; of the last one to wait for */
	uint64_t off, end;     /* what waits is for these */
	struct list open_link; /* lane->writeback->open; the lane's */
	uint64_t since;        /* ... and from when on it is; the lane's */
	void (*send)(struct fs_op *op);
	struct fs_kept kept;
	/* fs_batch.h: of a head, those behind it; of those, the place there */
	struct list parts, part_link;
	unsigned int part_cnt;
};

/*
 * fs_writeback_join - takes the data of a WRITE request into a writeback that is open
 *
 * op: off and size are set; data still lies where it was received. True: it is answered, and over.
 */
bool fs_writeback_join(struct fs_op *op, const void *data);
/*
 * fs_writeback_begin - answers the WRITE request: from here on it is a writeback
 *
 * op->buf and fs_rw.data hold its data, and nothing that is written back overlaps it. send: starts
 * the WRITE, on the op's lane; at once or later; it ends in fs_writeback_done(). Returns: false: it
 * cannot be written back, and is not answered.
 */
bool fs_writeback_begin(struct fs_op *op, void (*send)(struct fs_op *op));
/* The server answered, or will not: ends the op. err: positive errno, 0: all of it is written. */
void fs_writeback_done(struct fs_op *op, int err);
/*
 * The program was told that the op's data is written, and the kernel may show it: no longer. Each
 * handle is told. Before the record of the data goes: whoever takes the mount over has either.
 */
void fs_writeback_take_back(struct fs_op *op, int err);

/*
 * fs_writeback_wait - does `in` write back something in [off, end)? Then its end is waited for.
 *
 * in: an inode that the op has a reference of. Data written back after this call is not waited
 * for. Call it before the op enters a gate or a share. True: the call was given back, and `again`
 * runs on the op's lane, maybe before this returns: touch the op no more. False: there is nothing.
 * durable: whoever waits will commit it: where that saves the COMMIT it goes FILE_SYNC.
 */
bool fs_writeback_wait(struct fs_op *op, struct fs_inode *in, uint64_t off, uint64_t end,
	bool durable, void (*again)(struct fs_op *op));
/* For a WRITE: what overlaps it; unless it appends, all, if some of those do. */
bool fs_writeback_wait_to_write(struct fs_op *op, void (*again)(struct fs_op *op));
/*
 * A writeback that must be the only one on its way: is it the inode's oldest? False: not yet;
 * `again` runs on its lane when it is.
 */
bool fs_writeback_turn(struct fs_op *op, void (*again)(struct fs_op *op));
/* A writeback is not written where the kernel would have it. Inode lock held. */
void fs_writeback_moved(struct fs_op *c);
/* Is something written back that ends past `off`? Inode lock held. */
bool fs_writeback_beyond(const struct fs_inode *in, uint64_t off);
/* Has the inode data that the server has not got, or not durable? */
bool fs_writeback_is_dirty(const struct fs_inode *in);
/* Is anything of the inode written back? Inode lock held. */
static inline bool fs_writeback_any(const struct fs_inode *in)
{
	return in->unstable && !list_empty(&in->unstable->writebacks);
}

#endif
