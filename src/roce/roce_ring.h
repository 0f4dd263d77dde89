/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings of what was posted.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_ROCE_RING_H
#define RPCRDMAFS_ROCE_RING_H

#include <stdint.h>

/*
 * Places of a ring for n entries. Counts of entries begin again at 0 after 2^32, and places must go
 * on there as anywhere else: the size is a power of two.
 */
static inline uint32_t roce_ring_size(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

#endif
