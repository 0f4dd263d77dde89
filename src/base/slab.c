/* SPDX-License-Identifier: BSD-3-Clause */
#include "slab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE (2ul << 20)

/*
 * Adapters read and write these pages. A child that shared them copy-on-write would take the page
 * that the adapter knows, and leave the parent with a copy of it. Nor is what users read and write
 * to be in a core dump.
 */
static void keep_to_ourselves(void *p, size_t len)
{
	(void)madvise(p, len, MADV_DONTFORK);
	(void)madvise(p, len, MADV_DONTDUMP);
}

/*
 * Of huge pages where the system has some to give: the kernel pins a buffer page by page to copy a
 * request into it, which is faster there.
 */
static void *map(size_t len)
{
	size_t room = len, before;
	uint8_t *p;

	if (len >= HUGE_PAGE && __builtin_add_overflow(len, HUGE_PAGE, &room))
		return MAP_FAILED;
	p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || room == len)
		return p;
	before = HUGE_PAGE - (uintptr_t)p % HUGE_PAGE;
	munmap(p, before);
	if (before < HUGE_PAGE)
		munmap(p + before + len, HUGE_PAGE - before);
	(void)madvise(p + before, len, MADV_HUGEPAGE);
	return p + before;
}

int slab_init(struct slab *s, size_t size, unsigned int cnt)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t stride, map_len;
	uint32_t *free_idx;
	uint8_t *taken;
	void *base;

	if (!size || !cnt)
		return -EINVAL;
	if (__builtin_add_overflow(size, page - 1, &stride))
		return -EINVAL;
	stride -= stride % page;
	if (__builtin_mul_overflow(stride, cnt, &map_len))
		return -EINVAL;

	free_idx = malloc(cnt * sizeof(*free_idx));
	taken = calloc(cnt, sizeof(*taken));
	if (!free_idx || !taken)
		goto out_free;
	base = map(map_len);
	if (base == MAP_FAILED)
		goto out_free;
	keep_to_ourselves(base, map_len);

	/* Index 0 on top: a slab that is never full touches only its beginning. */
	for (unsigned int i = 0; i < cnt; i++)
		free_idx[i] = cnt - 1 - i;
	*s = (struct slab){
		.base = base,
		.map_len = map_len,
		.stride = stride,
		.size = size,
		.cnt = cnt,
		.free_cnt = cnt,
		.free_idx = free_idx,
		.taken = taken,
	};
	return 0;

out_free:
	free(free_idx);
	free(taken);
	return -ENOMEM;
}

void slab_fini(struct slab *s)
{
	if (s->base)
		munmap(s->base, s->map_len);
	free(s->free_idx);
	free(s->taken);
	memset(s, 0, sizeof(*s));
}

void *slab_get(struct slab *s)
{
	uint32_t idx;

	if (!s->free_cnt)
		return NULL;
	idx = s->free_idx[--s->free_cnt];
	assert(!s->taken[idx]);
	s->taken[idx] = 1;
	return slab_at(s, idx);
}

void slab_put(struct slab *s, void *buf)
{
	unsigned int idx = slab_index(s, buf);

	assert(s->taken[idx]);
	s->taken[idx] = 0;
	s->free_idx[s->free_cnt++] = idx;
}

unsigned int slab_index(const struct slab *s, const void *buf)
{
	size_t off;

	assert(slab_contains(s, buf));
	off = (size_t)((const uint8_t *)buf - s->base);
	assert(off % s->stride == 0);
	return (unsigned int)(off / s->stride);
}

void *slab_at(const struct slab *s, unsigned int idx)
{
	assert(idx < s->cnt);
	return s->base + idx * s->stride;
}

bool slab_contains(const struct slab *s, const void *p)
{
	/* As integers: comparing pointers into different objects is undefined. */
	return (uintptr_t)p - (uintptr_t)s->base < s->map_len;
}
