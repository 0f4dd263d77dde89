/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of inodes: a nodeid is the number of a slot, which is used again when its inode is
 * forgotten. The generation tells the two apart: no other inode of this mount had it, nor, as it
 * begins at random, is it likely to have been that of this number in a mount before. It has 32
 * bits, as in the kernel's inodes and filehandles.
 *
 * Slots lie in chunks, which never move; one whose slots are all free is given back. There are
 * indexes and no pointers between them, so that a table can be handed to another process.
 *
 * Context: the inode table's lock. 12 bytes for each inode.
 */
#ifndef RPCRDMAFS_FS_SLOT_H
#define RPCRDMAFS_FS_SLOT_H

#include <stdbool.h>
#include <stdint.h>

struct fs_inode;
struct fs_slot_chunk;

#define FS_SLOT_NONE 0u /* no slot, as 0 is no nodeid */

struct fs_slots {
	struct fs_slot_chunk **chunks; /* NULL: given back */
	uint32_t chunks_cnt;
	uint32_t open;       /* 1 + the number of the first chunk that has a free slot; 0: none */
	uint32_t generation; /* of the inode that was made last */
};

/* generation: where to begin, at random. */
void fs_slot_init(struct fs_slots *s, uint32_t generation);
void fs_slot_fini(struct fs_slots *s);
/*
 * fs_slot_take - a number for an inode that is made
 *
 * The first one taken is 1, FUSE_ROOT_ID.
 * Returns: FS_SLOT_NONE: out of memory, or of numbers.
 */
uint32_t fs_slot_take(struct fs_slots *s, struct fs_inode *in, uint32_t *ret_generation);
void fs_slot_give(struct fs_slots *s, uint32_t slot);
/*
 * fs_slot_put - the inode has this number, of another process' table
 *
 * Until fs_slot_put_all() none is taken or given back.
 * Returns: false: out of memory, out of range, or in use. WIRE: any number may be put.
 */
bool fs_slot_put(struct fs_slots *s, uint64_t slot, struct fs_inode *in);
/* The others are free. generation: of the inode that was made last. */
void fs_slot_put_all(struct fs_slots *s, uint32_t generation);
/* NULL: not in use, or out of range. WIRE: any number may be asked for. */
struct fs_inode *fs_slot_inode(const struct fs_slots *s, uint64_t slot);
/* Calls fn with the inode of each slot in use, in their order: mostly that of their memory. */
void fs_slot_each(const struct fs_slots *s, void (*fn)(void *ctx, struct fs_inode *in), void *ctx);
/* Of a slot in use: the next one in whatever chain it is, for the inode table. */
uint32_t *fs_slot_next(const struct fs_slots *s, uint32_t slot);

#endif
