/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of a file that was read ahead (fs_ahead.h), or came with its OPEN (fs_openread.h): an
 * operation without a request, and the buffer that it keeps.
 *
 * Context: inode lock held, unless stated. A block's operation and buffer are its lane's.
 */
#ifndef RPCRDMAFS_FS_BLOCK_H
#define RPCRDMAFS_FS_BLOCK_H

#include "fs_op.h"

struct fs_block {
	struct fs_op *op;      /* for ever */
	struct list link;      /* fs_ahead.blocks */
	struct list lane_link; /* lane->ahead->blocks; the lane's */
	struct list waiters;   /* of fs_op.link: until its READ is over */
	unsigned int readers;  /* that are answered from it right now */
	bool flying, eof;
	bool dropped; /* no request finds it any more */
	bool at_open; /* fs_openread.h; the lane's */
	bool used;    /* a request was answered from it */
	size_t len;   /* of what was read */
	uint64_t seq; /* inode->attr_seq, and inval_want when it was sent */
	uint32_t inval;
	uint64_t since;
};

/* fs_part.op_made. */
void fs_block_made(struct fs_op *op, void *mem);
/* From its lane: the operation is a block of `blocks` from here on, and flying. */
void fs_block_begin(struct fs_op *b, struct list *blocks);
/* Of the file: where its end is, as it was asked for. */
uint64_t fs_block_end(const struct fs_op *b);
/*
 * No request finds it any more. If nothing holds it, it goes to *gone, for fs_block_send_home();
 * else who holds it sees to that: its READ, or the last reader.
 */
void fs_block_detach(struct fs_op *b, struct list *gone);
/* The same, of those that end before `off`. */
void fs_block_detach_before(struct list *blocks, uint64_t off, struct list *gone);
/* They are over. From `l`'s thread, no lock held. */
void fs_block_send_home(struct fs_lane *l, struct list *gone);
/* Was it read too long ago, or the inode changed since? now_ns: of any lane. */
bool fs_block_is_stale(const struct fs_op *b, uint64_t now_ns);
/* The block with all that the READ wants, or with what there is of it; or NULL. */
struct fs_op *fs_block_find(const struct list *blocks, const struct fs_op *op);
/* One reader less, which read up to `read_to`. */
void fs_block_read_over(struct fs_op *b, uint64_t read_to, struct list *gone);

#endif
