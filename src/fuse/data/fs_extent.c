/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_extent.h"
#include "fs_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool fs_extent_reserve(struct fs_unstable *r)
{
	size_t need = r->cnt + 2 * (r->reserved + 1);
	size_t cap = r->cap ? r->cap : 16;
	struct fs_extent **v;

	if (need <= r->cap)
		return true;
	while (cap < need)
		cap *= 2;
	v = realloc(r->v, cap * sizeof(struct fs_extent *));
	if (!v)
		return false;
	r->v = v;
	r->cap = cap;
	return true;
}

size_t fs_extent_find(const struct fs_unstable *r, uint64_t off)
{
	size_t lo = 0, hi = r->cnt;

	/* Appends come at the end. */
	if (hi > 0 && r->v[hi - 1]->off + r->v[hi - 1]->len <= off)
		return hi;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->v[mid]->off + r->v[mid]->len > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* What the server may lose, as fs_gauges() tells it. */
static void count_uncommitted(struct fs_extent *e, int64_t bytes)
{
	atomic_fetch_add_explicit(
		&e->mem->lane->unstable->uncommitted, (uint64_t)bytes, memory_order_relaxed);
}

static void shorten(struct fs_extent *e, uint32_t len)
{
	count_uncommitted(e, (int64_t)len - e->len);
	e->len = len;
}

/* It is no longer all that was written. */
static void keep_rest(struct fs_extent *e)
{
	fs_kept_data(e->mem->lane->fs, &e->kept, e->mem->file, e->off, e->p, e->len);
}

void fs_extent_insert(struct fs_unstable *r, size_t i, struct fs_extent *e)
{
	assert(r->cnt < r->cap);
	memmove(&r->v[i + 1], &r->v[i], (r->cnt - i) * sizeof(struct fs_extent *));
	r->v[i] = e;
	r->cnt++;
	count_uncommitted(e, e->len);
	r->lost += e->lost;
	r->losses += e->lost;
	e->mem->refs++;
}

/* The extent goes; its memory too if it was the last. */
static void release(struct fs_unstable *r, struct fs_extent *e, struct fs_unstable_mem **dead)
{
	struct fs_unstable_mem *k = e->mem;

	r->lost -= e->lost;
	count_uncommitted(e, -(int64_t)e->len);
	fs_kept_drop(k->lane->fs, &e->kept);
	if (--k->refs == 0) {
		fs_unstable_count(k->file, -1);
		k->next = *dead;
		*dead = k;
	}
	if (e != &k->first)
		free(e);
}

static void remove_range(
	struct fs_unstable *r, size_t from, size_t to, struct fs_unstable_mem **dead)
{
	for (size_t i = from; i < to; i++)
		release(r, r->v[i], dead);
	if (to > from)
		memmove(&r->v[from], &r->v[to], (r->cnt - to) * sizeof(struct fs_extent *));
	r->cnt -= to - from;
}

uint64_t fs_extent_remove(struct fs_unstable *r,
	bool (*which)(const struct fs_extent *e, void *ctx), void *ctx,
	struct fs_unstable_mem **dead)
{
	uint64_t bytes = 0;
	size_t to = 0;

	for (size_t i = 0; i < r->cnt; i++) {
		if (!which(r->v[i], ctx)) {
			r->v[to++] = r->v[i];
			continue;
		}
		bytes += r->v[i]->len;
		release(r, r->v[i], dead);
	}
	r->cnt = to;
	return bytes;
}

/* [off, end) is in the middle of extent i, whose second part becomes `tail`. */
static void split(
	struct fs_unstable *r, size_t i, uint64_t off, uint64_t end, struct fs_extent *tail)
{
	struct fs_extent *e = r->v[i];

	*tail = *e;
	tail->off = end;
	tail->p += end - e->off;
	tail->len -= (uint32_t)(end - e->off);
	tail->kept = (struct fs_kept){.order = e->kept.order};
	keep_rest(tail);
	shorten(e, (uint32_t)(off - e->off));
	keep_rest(e);
	fs_extent_insert(r, i + 1, tail);
}

void fs_extent_cut(struct fs_unstable *r, uint64_t off, uint64_t end, struct fs_extent **tail,
	struct fs_unstable_mem **dead)
{
	size_t i = fs_extent_find(r, off), to;

	if (i < r->cnt && r->v[i]->off < off) {
		struct fs_extent *e = r->v[i];

		if (e->off + e->len > end) {
			split(r, i, off, end, *tail);
			*tail = NULL;
			return;
		}
		shorten(e, (uint32_t)(off - e->off));
		keep_rest(e);
		i++;
	}
	for (to = i; to < r->cnt && r->v[to]->off + r->v[to]->len <= end; to++)
		;
	remove_range(r, i, to, dead);
	if (i < r->cnt && r->v[i]->off < end) {
		struct fs_extent *e = r->v[i];

		e->p += end - e->off;
		shorten(e, e->len - (uint32_t)(end - e->off));
		e->off = end;
		keep_rest(e);
	}
}
