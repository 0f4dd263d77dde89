/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_slot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS 8u
#define CHUNK      (1u << CHUNK_BITS)
#define CHUNKS_MAX (1u << (31 - CHUNK_BITS)) /* a slot's number has 31 bits */
#define DIR_MIN    16u

struct fs_slot_chunk {
	struct fs_inode *in[CHUNK]; /* NULL: free */
	uint32_t next[CHUNK];       /* a free one: the next in this chunk; CHUNK: none */
	uint32_t used, free;
	uint32_t open_prev, open_next; /* as fs_slots.open */
};

void fs_slot_init(struct fs_slots *s, uint32_t generation)
{
	*s = (struct fs_slots){.generation = generation};
}

void fs_slot_fini(struct fs_slots *s)
{
	for (uint32_t i = 0; i < s->chunks_cnt; i++)
		free(s->chunks[i]);
	free(s->chunks);
	fs_slot_init(s, 0);
}

static void open_push(struct fs_slots *s, uint32_t nr)
{
	struct fs_slot_chunk *c = s->chunks[nr];

	c->open_prev = 0;
	c->open_next = s->open;
	if (s->open)
		s->chunks[s->open - 1]->open_prev = nr + 1;
	s->open = nr + 1;
}

static void open_del(struct fs_slots *s, uint32_t nr)
{
	const struct fs_slot_chunk *c = s->chunks[nr];

	if (c->open_prev)
		s->chunks[c->open_prev - 1]->open_next = c->open_next;
	else
		s->open = c->open_next;
	if (c->open_next)
		s->chunks[c->open_next - 1]->open_prev = c->open_prev;
}

static bool directory_grow(struct fs_slots *s)
{
	uint32_t cnt = s->chunks_cnt ? s->chunks_cnt * 2 : DIR_MIN;
	struct fs_slot_chunk **to;

	if (cnt > CHUNKS_MAX)
		return false;
	to = realloc(s->chunks, cnt * sizeof(struct fs_slot_chunk *));
	if (!to)
		return false;
	memset(to + s->chunks_cnt, 0, (cnt - s->chunks_cnt) * sizeof(struct fs_slot_chunk *));
	s->chunks = to;
	s->chunks_cnt = cnt;
	return true;
}

/* All slots without an inode are free, but for 0, which is no nodeid. */
static void chunk_fill(struct fs_slots *s, uint32_t nr)
{
	struct fs_slot_chunk *c = s->chunks[nr];

	c->free = CHUNK;
	for (uint32_t i = CHUNK; i-- > (nr == 0 ? 1 : 0);)
		if (!c->in[i]) {
			c->next[i] = c->free;
			c->free = i;
		}
	if (c->free != CHUNK)
		open_push(s, nr);
}

static bool chunk_add(struct fs_slots *s)
{
	uint32_t nr = 0;

	while (nr < s->chunks_cnt && s->chunks[nr])
		nr++;
	if (nr == s->chunks_cnt && !directory_grow(s))
		return false;
	s->chunks[nr] = calloc(1, sizeof(struct fs_slot_chunk));
	if (!s->chunks[nr])
		return false;
	chunk_fill(s, nr);
	return true;
}

bool fs_slot_put(struct fs_slots *s, uint64_t slot, struct fs_inode *in)
{
	uint64_t nr = slot >> CHUNK_BITS;
	struct fs_slot_chunk *c;

	if (slot == FS_SLOT_NONE || nr >= CHUNKS_MAX)
		return false;
	while (nr >= s->chunks_cnt)
		if (!directory_grow(s))
			return false;
	if (!s->chunks[nr])
		s->chunks[nr] = calloc(1, sizeof(*c));
	c = s->chunks[nr];
	if (!c || c->in[slot % CHUNK])
		return false;
	c->in[slot % CHUNK] = in;
	c->used++;
	return true;
}

void fs_slot_put_all(struct fs_slots *s, uint32_t generation)
{
	for (uint32_t nr = s->chunks_cnt; nr-- > 0;)
		if (s->chunks[nr])
			chunk_fill(s, nr);
	s->generation = generation;
}

uint32_t fs_slot_take(struct fs_slots *s, struct fs_inode *in, uint32_t *ret_generation)
{
	struct fs_slot_chunk *c;
	uint32_t nr, i;

	if (!s->open && !chunk_add(s))
		return FS_SLOT_NONE;
	nr = s->open - 1;
	c = s->chunks[nr];
	i = c->free;
	c->free = c->next[i];
	c->next[i] = FS_SLOT_NONE;
	c->in[i] = in;
	c->used++;
	if (c->free == CHUNK)
		open_del(s, nr);
	*ret_generation = ++s->generation;
	return nr << CHUNK_BITS | i;
}

void fs_slot_give(struct fs_slots *s, uint32_t slot)
{
	uint32_t nr = slot >> CHUNK_BITS, i = slot % CHUNK;
	struct fs_slot_chunk *c = s->chunks[nr];

	assert(c->in[i]);
	if (c->free == CHUNK)
		open_push(s, nr);
	c->in[i] = NULL;
	c->next[i] = c->free;
	c->free = i;
	/* The last one that has room stays: the next inode would make it again. */
	if (--c->used > 0 || nr == 0 || (s->open == nr + 1 && !c->open_next))
		return;
	open_del(s, nr);
	free(c);
	s->chunks[nr] = NULL;
}

struct fs_inode *fs_slot_inode(const struct fs_slots *s, uint64_t slot)
{
	uint64_t nr = slot >> CHUNK_BITS;

	return nr < s->chunks_cnt && s->chunks[nr] ? s->chunks[nr]->in[slot % CHUNK] : NULL;
}

void fs_slot_each(const struct fs_slots *s, void (*fn)(void *ctx, struct fs_inode *in), void *ctx)
{
	for (uint32_t nr = 0; nr < s->chunks_cnt; nr++)
		for (uint32_t i = 0; s->chunks[nr] && i < CHUNK; i++)
			if (s->chunks[nr]->in[i])
				fn(ctx, s->chunks[nr]->in[i]);
}

uint32_t *fs_slot_next(const struct fs_slots *s, uint32_t slot)
{
	return &s->chunks[slot >> CHUNK_BITS]->next[slot % CHUNK];
}
