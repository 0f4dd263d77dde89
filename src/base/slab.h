/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slab: `cnt` buffers of one size from one anonymous mapping. Its user knows
 * which of them are free.
 *
 * Context: one thread owns it.
 */
#ifndef RPCRDMAFS_SLAB_H
#define RPCRDMAFS_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab {
	uint8_t *base;
	size_t map_len;
	size_t stride; /* bytes from one buffer to the next: a multiple of the page size */
	size_t size;   /* usable bytes of each */
	unsigned int cnt;
};

/*
 * slab_init - map the buffers
 *
 * size: usable bytes of each buffer; each starts on a page boundary.
 * Memory is touched only when it is used: resident size grows with use. A child of fork() does not
 * have it, nor has a core dump.
 * Returns: 0, -EINVAL, -ENOMEM.
 */
int slab_init(struct slab *s, size_t size, unsigned int cnt);
void slab_fini(struct slab *s);
void *slab_at(const struct slab *s, unsigned int idx);

#endif
