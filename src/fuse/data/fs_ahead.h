/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read-ahead: who reads a file from one end to the other finds the next READs
 * answered already (design, section 3). The kernel asks a FUSE mount for 128 KiB
 * at a time, unless root raised its limit; here a READ has rsize.
 *
 * Two requests of a handle that follow each other make a stream. Ahead of it
 * *blocks* are fetched: operations without a request, which read into a buffer
 * of the lane and keep it. A request that lies in one is answered from it, with
 * no copy of ours, and the last one gives the buffer back. A request elsewhere
 * ends the stream.
 *
 *   flying --(answered)--> ready --(read to its end, old, stale)--> over
 *
 * A block is stale, and never told, as soon as the inode was changed by us since
 * its READ was sent, or somebody else's change was seen (by an open, say, or when
 * a lock was had). And it gets as old as attributes may (acregmin), at most 3 s:
 * what another client writes meanwhile is seen as late as with the kernel's pages.
 *
 * Budget: option readahead=, in MiB of a lane, and an eighth of its buffers.
 * Nothing is fetched when buffers or operations are short.
 *
 * A small file may come with its OPEN (fs_openread.h): one block, flying until that
 * is answered, and nobody has the handle before.
 *
 * Context: a handle's blocks are guarded by its inode's lock; a block's buffer
 * and operation are its lane's, other lanes' requests are answered from it while
 * they count in `readers`.
 */
#ifndef RPCRDMAFS_FS_AHEAD_H
#define RPCRDMAFS_FS_AHEAD_H

#include "fs_op.h"

/* Of a handle that is read as a stream. */
struct fs_ahead {
	uint64_t next;        /* where the stream goes on */
	uint64_t upto;        /* where what is fetched ends */
	unsigned int run;     /* requests that followed each other */
	struct list blocks;   /* of fs_block.link: those that may be read */
	unsigned int flying;  /* READs on their way, of others too */
	struct fs_op *closer; /* waits for those */
};

/* Of a lane. */
struct fs_ahead_lane {
	struct fs_lane *lane;
	struct list blocks; /* of fs_block.lane_link */
	struct reactor_timer timer;
	unsigned int cnt, max; /* blocks */
	/* fs_openread.h: blocks in a row that nobody read; OPENs since then without one */
	unsigned int open_vain, open_plain;
};

extern const struct fs_part fs_ahead_part;

/* May requests of a handle with these O_* be read ahead of? */
bool fs_ahead_may(const struct fs_lane *l, int flags);
/*
 * fs_ahead_note - a READ request of `size` bytes at `off` came: fetches what may follow it
 *
 * From l's thread, after the request itself was sent or answered. f: referenced by the caller.
 */
void fs_ahead_note(struct fs_lane *l, struct fs_file *f, uint64_t off, size_t size);
/*
 * fs_ahead_serve - answers the READ from a block
 *
 * True: it is answered and over, or waits for a block that is flying: `again` runs on the op's
 * lane, without a call. False: there is none, the server must be asked.
 */
bool fs_ahead_serve(struct fs_op *op, void (*again)(struct fs_op *op));
/*
 * fs_ahead_close - before the handle's CLOSE: nothing is read with its open any more
 *
 * True: a READ is flying still; `again` runs on the op's lane.
 */
bool fs_ahead_close(struct fs_op *op, void (*again)(struct fs_op *op));

/* ---- fs_openread.c: a block that is read by the caller's call ---- */

/*
 * fs_ahead_first - the first `size` bytes of a file that is being opened
 *
 * Inode lock held. The caller references the inode for it, gives it a buffer, and calls
 * fs_ahead_arm(); fs_ahead_landed() must follow. NULL: there is no room.
 */
struct fs_op *fs_ahead_first(struct fs_lane *l, struct fs_file *f, size_t size);
/* The lane has blocks: those that get old will go. No lock held. */
void fs_ahead_arm(struct fs_lane *l);
/*
 * Its READ is over. failed: nothing came; else `len` bytes lie in its buffer. It may be gone then.
 * No lock held.
 */
void fs_ahead_landed(struct fs_op *b, bool failed, size_t len, bool eof);

#endif
