/* SPDX-License-Identifier: BSD-3-Clause */
#include "live_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* With the lock, on the chunk's first pages, which are there. */
static void make_raw(struct live *l, struct live_chunk *c, const struct live_about *about)
{
	struct live_slot *slot = (struct live_slot *)(c + 1);

	for (uint64_t i = 0; i < c->raw_cnt; i++, slot++) {
		uint64_t seq = atomic_fetch_add(&l->seq, 1);

		slot->about = *about;
		slot->about.id = seq;
		atomic_store(&slot->place, LIVE_RAW_NONE);
		slot->crc = live_crc(seq, &slot->about, NULL);
		atomic_store_explicit(&slot->seq, seq, memory_order_release);
	}
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Where pieces begin that follow what ends at `at`: where a huge page may; small ones, so that they
 * end where a page does. */
static size_t first_after(size_t at, size_t size, size_t cnt)
{
	if (size >= LIVE_PAGE)
		return round_up(at, LIVE_HUGE_PAGE);
	return round_up(at + size * cnt, LIVE_PAGE) - size * cnt;
}

/* Behind the last chunk. With the lock. NULL: there is no memory. */
static struct live_chunk *cut_raw(
	struct live *l, const struct live_about *about, size_t size, unsigned int cnt)
{
	struct live_chunk *c = (struct live_chunk *)(l->map + l->used);
	size_t heads = sizeof(struct live_chunk) + cnt * sizeof(struct live_slot);
	size_t first = first_after(l->used + heads, size, cnt);

	if (first > l->size || (l->size - first) / size < cnt ||
		!live_reserve(l, l->used, size < LIVE_PAGE ? first - l->used + size * cnt : heads))
		return NULL;
	c->raw_len = first - l->used + size * cnt;
	c->raw_size = size;
	c->raw_cnt = cnt;
	make_raw(l, c, about);
	atomic_store_explicit(&c->what, live_chunk_word(LIVE_RAW_CLASS), memory_order_release);
	l->used += c->raw_len;
	atomic_store_explicit(&live_head_in(l->map)->used, l->used, memory_order_release);
	return c;
}

/* As slab.c: of huge pages, where the system allows it to shared memory. */
static void note_raw(struct live *l, struct live_raw *raw, const struct live_chunk *c)
{
	raw->first = (uint8_t *)c + live_raw_piece(c, 0);
	raw->size = c->raw_size;
	raw->cnt = c->raw_cnt;
	raw->ref = live_slot_ref((size_t)((const uint8_t *)c - l->map), LIVE_RAW_CLASS, 0);
	if (raw->size >= LIVE_PAGE)
		(void)madvise(raw->first, raw->size * raw->cnt, MADV_HUGEPAGE);
}

static void *make(struct live *l, const struct live_key *key, uint16_t type, uint16_t field,
	size_t size, unsigned int cnt)
{
	struct live_about about = {
		.group = (uint64_t)field << 16 | type,
		.len = (uint32_t)live_raw_room(size),
		.count_field = key->count_field,
		.rank = key->rank,
		.minor = LIVE_RAW,
	};
	const struct live_chunk *c = NULL;
	struct live_raw *raw;

	raw = calloc(1, sizeof(*raw) + cnt);
	if (!raw)
		return NULL;
	mutex_lock(&l->lock);
	c = cut_raw(l, &about, size, cnt);
	if (c) {
		note_raw(l, raw, c);
		raw->next = l->raws;
		atomic_store_explicit(&l->raws, raw, memory_order_release);
	}
	mutex_unlock(&l->lock);
	if (!c) {
		free(raw);
		return NULL;
	}
	return raw->first;
}

void *live_raw_pieces(struct live *l, const struct live_key *key, uint16_t type, uint16_t field,
	size_t size, unsigned int cnt)
{
	size_t whole = size > UINT32_MAX ? 0 : round_up(size, LIVE_PAGE);

	return whole > LIVE_PAGE && cnt > 0 ? make(l, key, type, field, whole, cnt) : NULL;
}

void *live_raw_small(struct live *l, const struct live_key *key, uint16_t type, uint16_t field,
	size_t size, unsigned int cnt)
{
	assert(size > 0 && size < LIVE_PAGE && size % LIVE_UNIT == 0 && cnt > 0);
	return make(l, key, type, field, size, cnt);
}

/* The one that has p. */
static struct live_raw *raw_of(const struct live *l, const uint8_t *p)
{
	struct live_raw *raw = atomic_load_explicit(&l->raws, memory_order_acquire);

	while (raw && (p < raw->first || p >= raw->first + raw->size * raw->cnt))
		raw = raw->next;
	return raw;
}

live_ref live_raw_ref(const struct live *l, const void *record)
{
	const struct live_raw *raw = l ? raw_of(l, record) : NULL;
	size_t i = raw ? (size_t)((const uint8_t *)record - raw->first) / raw->size : 0;

	return raw ? raw->ref + (live_ref)i : LIVE_NONE;
}

/* The one that has this record's piece. */
static struct live_raw *raw_with(const struct live *l, live_ref ref)
{
	struct live_raw *raw = atomic_load_explicit(&l->raws, memory_order_acquire);

	while (ref < raw->ref || ref - raw->ref >= raw->cnt)
		raw = raw->next;
	return raw;
}

bool live_raw_reserve(struct live *l, live_ref ref)
{
	struct live_raw *raw = raw_with(l, ref);
	live_ref i = ref - raw->ref;

	if (!raw->reserved[i])
		raw->reserved[i] =
			live_reserve(l, (size_t)(raw->first - l->map) + i * raw->size, raw->size);
	return raw->reserved[i];
}

void live_raw_place(struct live *l, live_ref ref, uint64_t place)
{
	atomic_store_explicit(&live_slot_in(l->map, ref)->place, place, memory_order_release);
}

uint64_t live_raw_placed(const struct live *l, live_ref ref)
{
	return atomic_load_explicit(&live_slot_in(l->map, ref)->place, memory_order_relaxed);
}

void live_raw_forget(struct live *l)
{
	struct live_raw *raw = l->raws, *next;

	for (; raw; raw = next) {
		next = raw->next;
		free(raw);
	}
	l->raws = NULL;
}

/* Of /proc/PID/smaps: where the mapping that these lines are of begins; 0: it is no such line. */
static uintptr_t mapping_of(const char *line)
{
	char *end;
	uintptr_t first = strtoul(line, &end, 16);

	return *end == '-' && end > line ? first : 0;
}

uint64_t live_raw_huge_bytes(const struct live *l)
{
	uintptr_t map = (uintptr_t)l->map, at = 0;
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long long kib, sum = 0;
	char line[512];

	if (!smaps)
		return 0;
	while (fgets(line, sizeof(line), smaps)) {
		if (mapping_of(line) != 0)
			at = mapping_of(line);
		else if (at >= map && at < map + l->size &&
			 sscanf(line, "ShmemPmdMapped: %llu kB", &kib) == 1)
			sum += kib;
	}
	fclose(smaps);
	return sum << 10;
}
