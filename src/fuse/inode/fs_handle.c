/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_handle.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#define FIRST_BITS 6u /* the first block has 64 slots */

/* 16 bytes. Which one is free, the table's `free` and `next` alone say. */
struct fs_handle_slot {
	void *_Atomic what; /* NULL: free */
	_Atomic uint32_t generation;
	uint32_t next; /* a free one: the next one that is free; 0: none */
};

/* Block b has 64 << b slots: those numbered from (64 << b) - 63 on, as 0 is no slot's number. */
static unsigned int block_of(uint32_t nr)
{
	return 31u - (unsigned int)__builtin_clz(((nr - 1) >> FIRST_BITS) + 1);
}

static uint32_t length_of(unsigned int block)
{
	return 1u << (FIRST_BITS + block);
}

static struct fs_handle_slot *slot_at(const struct fs_handles *h, uint32_t nr)
{
	unsigned int b = nr ? block_of(nr) : FS_HANDLE_BLOCKS;
	struct fs_handle_slot *first =
		b < FS_HANDLE_BLOCKS ? atomic_load_explicit(&h->blocks[b], memory_order_acquire)
				     : NULL;

	return first ? &first[nr - 1 - (length_of(b) - length_of(0))] : NULL;
}

void fs_handle_fini(struct fs_handles *h)
{
	for (unsigned int b = 0; b < FS_HANDLE_BLOCKS; b++)
		free(h->blocks[b]);
	*h = (struct fs_handles){.used = 0};
}

/* The memory of a slot is there from now on. False: there is none. */
static bool make_slot(struct fs_handles *h, uint32_t nr)
{
	unsigned int b = block_of(nr);

	if (b >= FS_HANDLE_BLOCKS)
		return false;
	if (!h->blocks[b]) {
		struct fs_handle_slot *first = calloc(length_of(b), sizeof(*first));

		if (!first)
			return false;
		atomic_store_explicit(&h->blocks[b], first, memory_order_release);
	}
	return true;
}

/* A slot that never was in use; 0: there is none. */
static uint32_t new_slot(struct fs_handles *h)
{
	uint32_t nr = h->used + 1;

	if (!make_slot(h, nr))
		return 0;
	h->used = nr;
	return nr;
}

static void fill(struct fs_handle_slot *s, void *what, uint32_t generation)
{
	s->next = 0;
	atomic_store_explicit(&s->generation, generation, memory_order_relaxed);
	atomic_store_explicit(&s->what, what, memory_order_release);
}

bool fs_handle_put(struct fs_handles *h, uint64_t handle, void *what)
{
	uint32_t nr = (uint32_t)handle;
	struct fs_handle_slot *s;

	if (nr == 0 || !make_slot(h, nr))
		return false;
	s = slot_at(h, nr);
	if (atomic_load_explicit(&s->what, memory_order_relaxed))
		return false;
	fill(s, what, (uint32_t)(handle >> 32));
	if (nr > h->used)
		h->used = nr;
	return true;
}

void fs_handle_put_all(struct fs_handles *h, uint32_t generation)
{
	for (uint32_t nr = h->used; nr > 0; nr--) {
		/* Of those between two that were put the block may be missing. */
		struct fs_handle_slot *s = make_slot(h, nr) ? slot_at(h, nr) : NULL;

		if (!s || atomic_load_explicit(&s->what, memory_order_relaxed))
			continue;
		s->next = h->free;
		h->free = nr;
	}
	h->generation = generation;
}

uint64_t fs_handle_take(struct fs_handles *h, void *what)
{
	uint32_t nr = h->free ? h->free : new_slot(h);
	struct fs_handle_slot *s = slot_at(h, nr);

	if (!s)
		return FS_HANDLE_NONE;
	if (nr == h->free)
		h->free = s->next;
	fill(s, what, ++h->generation);
	return (uint64_t)h->generation << 32 | nr;
}

void fs_handle_give(struct fs_handles *h, uint64_t handle)
{
	uint32_t nr = (uint32_t)handle;
	struct fs_handle_slot *s;

	if (handle == FS_HANDLE_NONE)
		return;
	assert(fs_handle_of(h, handle));
	s = slot_at(h, nr);
	atomic_store_explicit(&s->what, NULL, memory_order_relaxed);
	s->next = h->free;
	h->free = nr;
}

void *fs_handle_of(const struct fs_handles *h, uint64_t handle)
{
	const struct fs_handle_slot *s = slot_at(h, (uint32_t)handle);

	if (!s || atomic_load_explicit(&s->generation, memory_order_relaxed) != handle >> 32)
		return NULL;
	return atomic_load_explicit(&s->what, memory_order_acquire);
}
