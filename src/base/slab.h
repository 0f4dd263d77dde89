/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slab: `cnt` buffers of one size from one mapping. Its user knows which of them are free.
 *
 * Context: one thread owns it.
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
	bool lent; /* the memory is not the slab's own */
};

/* Memory for slabs that is not their own. */
struct slab_memory {
	/*
	 * cnt buffers of size bytes each, in a row, from page boundary to page boundary; there as
	 * long as the slab. NULL: there is no memory. The member NULL: a slab has its own.
	 */
	void *(*get)(void *ctx, size_t size, unsigned int cnt);
	void *ctx;
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
/* The same in memory that is lent. mem->get NULL: in its own. */
int slab_init_in(struct slab *s, const struct slab_memory *mem, size_t size, unsigned int cnt);
void slab_fini(struct slab *s);
void *slab_at(const struct slab *s, unsigned int idx);

#endif
