/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extents of an inode's data that is not durable yet: an array, sorted by offset, apart from
 * each other.
 *
 * Context: inode lock held.
 */
#ifndef RPCRDMAFS_FS_EXTENT_H
#define RPCRDMAFS_FS_EXTENT_H

#include "fs_unstable.h"

/* Room for two more for each WRITE on its way: its own, and what it splits off. */
bool fs_extent_reserve(struct fs_unstable *r);
/* The index of the first one that ends behind `off`; r->cnt: none does. */
size_t fs_extent_find(const struct fs_unstable *r, uint64_t off);
/* At index i, for which there is room; it references its memory. */
void fs_extent_insert(struct fs_unstable *r, size_t i, struct fs_extent *e);
/*
 * Extents lose what they have of [off, end). tail: for the one split that there can be; NULL
 * afterwards if it was needed. Without one no extent may reach beyond both ends. Memory whose last
 * extent goes is put before *dead.
 */
void fs_extent_cut(struct fs_unstable *r, uint64_t off, uint64_t end, struct fs_extent **tail,
	struct fs_unstable_mem **dead);
/* Those that `which` names go. Returns their bytes. */
uint64_t fs_extent_remove(struct fs_unstable *r,
	bool (*which)(const struct fs_extent *e, void *ctx), void *ctx,
	struct fs_unstable_mem **dead);

#endif
