/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store is a list of chunks, a chunk is names back to back: a byte with the
 * length, then so many bytes. Time goes in periods as long as a name can be
 * good: what was noted in the last but one is over and freed. A file remembers
 * by a number where it was noted last, so that a directory that is listed again
 * and again does not fill memory. (Two names of one file may have the same
 * number, one in four thousand million; the second then stays for its time.)
 */
#include "fs_dentry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a chunk: whole units of malloc. */
#define CHUNK_MIN 56u
#define CHUNK_MAX 4088u

struct fs_dentry_chunk {
	struct fs_dentry_chunk *next;
	uint16_t used, room;
	uint8_t at[];
};

#define CHUNK_HEAD offsetof(struct fs_dentry_chunk, at)

static _Atomic size_t bytes;     /* of all stores */
static _Atomic uint32_t periods; /* of all stores; a key is never 0 */

/* ---- the store ---- */

static void *take_memory(size_t len)
{
	void *p = malloc(len);

	if (p)
		atomic_fetch_add(&bytes, len);
	return p;
}

static void give_back(void *p, size_t len)
{
	free(p);
	atomic_fetch_sub(&bytes, len);
}

static void free_chunks(struct fs_dentry_chunk *c)
{
	while (c) {
		struct fs_dentry_chunk *next = c->next;

		give_back(c, CHUNK_HEAD + c->room);
		c = next;
	}
}

static uint32_t count_chunks(const struct fs_dentry_chunk *c)
{
	uint32_t count = 0;

	for (; c; c = c->next)
		for (uint32_t off = 0; off < c->used; off += 1u + c->at[off])
			count++;
	return count;
}

static void begin_period(struct fs_dentries *n, uint64_t now_ns)
{
	n->now = NULL;
	n->since_ns = now_ns;
	do
		n->key = atomic_fetch_add(&periods, 1) + 1;
	while (n->key == 0);
}

static struct fs_dentries *store_new(uint64_t now_ns)
{
	struct fs_dentries *n = take_memory(sizeof(*n));

	if (!n)
		return NULL;
	memset(n, 0, sizeof(*n));
	list_init(&n->link);
	begin_period(n, now_ns);
	return n;
}

/* What was noted in a period is good until the end of the next one. */
static void turn(struct fs_dentries *n, uint64_t now_ns, uint64_t good_ns)
{
	uint64_t age_ns = now_ns - n->since_ns;

	if (age_ns < good_ns)
		return;
	free_chunks(n->before);
	n->before = n->now;
	if (age_ns / 2 >= good_ns) {
		free_chunks(n->before);
		n->before = NULL;
	}
	n->count = count_chunks(n->before);
	begin_period(n, now_ns);
}

/* FNV-1a. */
static uint32_t number_of(const struct fs_dentries *n, const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull ^ n->key;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3ull;
	h ^= h >> 32;
	return (uint32_t)h != 0 ? (uint32_t)h : 1;
}

/* Room for `len` more: the chunks of a large directory are large. */
static bool make_room(struct fs_dentries *n, size_t len)
{
	struct fs_dentry_chunk *c = n->now;
	size_t size = c ? (CHUNK_HEAD + c->room) * 2 + 8 : CHUNK_MIN;

	if (c && c->used + len <= c->room)
		return true;
	while (size < CHUNK_HEAD + len)
		size = size * 2 + 8;
	if (size > CHUNK_MAX)
		size = CHUNK_MAX;
	c = take_memory(size);
	if (!c)
		return false;
	c->used = 0;
	c->room = (uint16_t)(size - CHUNK_HEAD);
	c->next = n->now;
	n->now = c;
	return true;
}

bool fs_dentry_store_add(struct fs_dentries **store, const char *name, uint32_t *known,
	uint64_t now_ns, uint64_t good_ns)
{
	struct fs_dentries *n = *store ? *store : store_new(now_ns);
	size_t len = strnlen(name, FS_NAME_MAX);
	struct fs_dentry_chunk *c;
	uint32_t number;

	if (!n)
		return false;
	*store = n;
	turn(n, now_ns, good_ns);
	number = number_of(n, name, len);
	if (*known == number)
		return true;
	if (!make_room(n, len + 1))
		return false;
	c = n->now;
	c->at[c->used] = (uint8_t)len;
	memcpy(c->at + c->used + 1, name, len);
	c->used = (uint16_t)(c->used + len + 1);
	n->count++;
	*known = number;
	return true;
}

static bool each_of(const struct fs_dentry_chunk *c,
	bool (*tell)(void *ctx, const char *name, size_t len), void *ctx)
{
	char name[FS_NAME_MAX + 1];

	for (; c; c = c->next)
		for (uint32_t off = 0; off < c->used; off += 1u + c->at[off]) {
			size_t len = c->at[off];

			memcpy(name, c->at + off + 1, len);
			name[len] = '\0';
			if (!tell(ctx, name, len))
				return false;
		}
	return true;
}

void fs_dentry_store_each(const struct fs_dentries *n,
	bool (*tell)(void *ctx, const char *name, size_t len), void *ctx)
{
	if (each_of(n->now, tell, ctx))
		each_of(n->before, tell, ctx);
}

void fs_dentry_store_free(struct fs_dentries *n)
{
	if (!n)
		return;
	free_chunks(n->now);
	free_chunks(n->before);
	give_back(n, sizeof(*n));
}

size_t fs_dentry_store_bytes(void)
{
	return atomic_load(&bytes);
}

/* ---- who may search ---- */
