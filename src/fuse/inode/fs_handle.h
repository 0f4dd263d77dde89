/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handles of open files, and those of open directories: the kernel has a number and no address
 * (fuse_file_info.fh), of a slot and a generation. So a table can be handed to another process, and
 * a number that is no handle, or was one, is found out.
 *
 * Slots lie in blocks that never move, each twice as long as the one before, and are kept until the
 * end: 16 bytes for each of as many handles as were open at once, and up to as much again.
 *
 * Context: fs_handle_of(): any lane, without a lock, as requests for data take none that all lanes
 * share. The others: the inode table's lock.
 */
#ifndef RPCRDMAFS_FS_HANDLE_H
#define RPCRDMAFS_FS_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

struct fs_handle_slot;

#define FS_HANDLE_NONE   0u
#define FS_HANDLE_BLOCKS 24u

struct fs_handles {
	struct fs_handle_slot *_Atomic blocks[FS_HANDLE_BLOCKS]; /* NULL: not needed yet */
	uint32_t used;                                           /* slots that ever were in use */
	uint32_t free;       /* the first of these that is free; 0: none */
	uint32_t generation; /* of the handle that was made last */
};

/* All zero is a table without handles. */
void fs_handle_fini(struct fs_handles *h);
/* Returns: FS_HANDLE_NONE: out of memory, or of numbers. */
uint64_t fs_handle_take(struct fs_handles *h, void *what);
/* No request knows it any more. FS_HANDLE_NONE is accepted. */
void fs_handle_give(struct fs_handles *h, uint64_t handle);
/*
 * fs_handle_put - it has this handle, of another process' table
 *
 * Until fs_handle_put_all() none is taken or given back.
 * Returns: false: out of memory, out of range, or in use. WIRE: any number may be put.
 */
bool fs_handle_put(struct fs_handles *h, uint64_t handle, void *what);
/* The others are free. generation: of the handle that was made last. */
void fs_handle_put_all(struct fs_handles *h, uint32_t generation);
/*
 * fs_handle_of - whose handle it is
 *
 * It may be used as long as the kernel may: until the reply to its RELEASE.
 * Returns: NULL: it is none. Any number may be asked for.
 */
void *fs_handle_of(const struct fs_handles *h, uint64_t handle);

#endif
