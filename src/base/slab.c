/* SPDX-License-Identifier: BSD-3-Clause */
#include "slab.h"

#include <assert.h>
#include <errno.h>
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
	return slab_init_in(s, &(const struct slab_memory){.get = NULL}, size, cnt);
}

int slab_init_in(struct slab *s, const struct slab_memory *mem, size_t size, unsigned int cnt)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t stride, map_len;
	void *base;

	if (!size || !cnt)
		return -EINVAL;
	if (__builtin_add_overflow(size, page - 1, &stride))
		return -EINVAL;
	stride -= stride % page;
	if (__builtin_mul_overflow(stride, cnt, &map_len))
		return -EINVAL;

	base = mem->get ? mem->get(mem->ctx, size, cnt) : map(map_len);
	if (base == MAP_FAILED || base == NULL)
		return -ENOMEM;
	if (!mem->get)
		keep_to_ourselves(base, map_len);
	*s = (struct slab){
		.base = base,
		.map_len = map_len,
		.stride = stride,
		.size = size,
		.cnt = cnt,
		.lent = mem->get != NULL,
	};
	return 0;
}

void slab_fini(struct slab *s)
{
	if (s->base && !s->lent)
		munmap(s->base, s->map_len);
	memset(s, 0, sizeof(*s));
}

void *slab_at(const struct slab *s, unsigned int idx)
{
	assert(idx < s->cnt);
	return s->base + idx * s->stride;
}
