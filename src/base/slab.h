/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slab: `cnt` buffers of one size from one anonymous mapping. Each buffer
 * has an owner tag (FREE or taken) that a double put trips over in an assert.
 *
 * Context: one thread owns it; slab_contains() is pure.
 */
#ifndef RPCRDMAFS_SLAB_H
#define RPCRDMAFS_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slab {
	uint8_t *base;
	size_t map_len;
	size_t stride; /* bytes from one buffer to the next: a multiple of the page size */
	size_t size;   /* usable bytes of each */
	unsigned int cnt;
	unsigned int free_cnt;
	uint32_t *free_idx; /* stack of free indices: the last one put is taken first (warm) */
	uint8_t *taken;
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
/* A free buffer, NULL if none: the caller parks its work. */
void *slab_get(struct slab *s);
void slab_put(struct slab *s, void *buf);
/* Index of the buffer that starts at `buf`. */
unsigned int slab_index(const struct slab *s, const void *buf);
void *slab_at(const struct slab *s, unsigned int idx);
bool slab_contains(const struct slab *s, const void *p);

#endif
