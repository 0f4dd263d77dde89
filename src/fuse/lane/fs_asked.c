/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_asked_int.h"
#include "fs_live.h"
#include "fs_tables.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 256u

/* ---- the table; lock held ---- */

static uint32_t place_of(const struct fs_asked *a, uint64_t unique)
{
	return (uint32_t)((unique * 0x9e3779b97f4a7c15ull) >> 32) & (a->size - 1);
}

struct fs_asked_entry *fs_asked_find(const struct fs_asked *a, uint64_t unique)
{
	uint32_t at = place_of(a, unique);

	while (a->v[at].unique != 0 && a->v[at].unique != unique)
		at = (at + 1) & (a->size - 1);
	return &a->v[at];
}

static bool grow(struct fs_asked *a)
{
	struct fs_asked to = {.size = a->size * 2};

	to.v = calloc(to.size, sizeof(*to.v));
	if (!to.v)
		return false;
	for (uint32_t i = 0; i < a->size; i++)
		if (a->v[i].unique != 0)
			*fs_asked_find(&to, a->v[i].unique) = a->v[i];
	free(a->v);
	a->v = to.v;
	a->size = to.size;
	return true;
}

/* Those behind it that are there because its place was taken move up. */
static void take_out(struct fs_asked *a, struct fs_asked_entry *e)
{
	uint32_t hole = (uint32_t)(e - a->v);

	for (uint32_t at = (hole + 1) & (a->size - 1); a->v[at].unique != 0;
		at = (at + 1) & (a->size - 1)) {
		uint32_t home = place_of(a, a->v[at].unique);

		if (((at - home) & (a->size - 1)) < ((at - hole) & (a->size - 1)))
			continue;
		a->v[hole] = a->v[at];
		hole = at;
	}
	a->v[hole] = (struct fs_asked_entry){0};
	a->cnt--;
}

/* ---- the requests ---- */

static void make_places(struct fs_asked *a, struct live *live)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_REQUEST, .count_field = FS_ASKED_STATE};

	a->places = live_raw_small(live, &key, FS_TABLES_REQUEST, FS_ASKED_BYTES,
		FS_ASKED_PLACE_SIZE, FS_ASKED_PLACES);
	if (!a->places)
		return;
	a->first = live_raw_ref(live, a->places);
	while (a->free_cnt < FS_ASKED_PLACES) {
		a->free[a->free_cnt] = (uint16_t)(FS_ASKED_PLACES - 1 - a->free_cnt);
		a->free_cnt++;
	}
}

int fs_asked_new(struct fs *fs)
{
	struct fs_asked *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->size = SIZE_MIN;
	a->v = calloc(a->size, sizeof(*a->v));
	if (!a->v) {
		free(a);
		return -ENOMEM;
	}
	mutex_init(&a->lock, MUTEX_FS_ASKED);
	make_places(a, fs->live);
	fs->asked = a;
	return 0;
}

void fs_asked_free(struct fs *fs)
{
	struct fs_asked *a = fs->asked;

	if (!a)
		return;
	mutex_destroy(&a->lock);
	free(a->v);
	free(a);
	fs->asked = NULL;
}

/* It has an answer, which somebody waits for. */
static bool is_answered(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
	case FUSE_NOTIFY_REPLY:
	case FUSE_DESTROY:
		return false;
	default:
		return true;
	}
}

size_t fs_asked_get_bytes(const struct tables_record *r, void *to)
{
	const void *p = NULL;
	size_t len, all = 0;

	while ((p = tables_get_next(r, FS_ASKED_BYTES, p, &len))) {
		memcpy((uint8_t *)to + all, p, len);
		all += len;
	}
	return all;
}

static live_ref put(const struct fs *fs, const void *p, size_t len, uint64_t order, uint64_t state)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_REQUEST,
		.group = order,
		.crc_max = LIVE_CRC_NONE,
		.count_field = FS_ASKED_STATE,
		.count = state};
	live_ref ref = LIVE_NONE;

	live_put_pieces(fs->live, &ref, &key, FS_TABLES_REQUEST, FS_ASKED_BYTES, p, len);
	return ref;
}

/* There is no record in it any more: it is free. Lock held. */
static void leave_place(struct fs *fs, live_ref ref)
{
	struct fs_asked *a = fs->asked;

	live_raw_place(fs->live, ref, LIVE_RAW_NONE);
	a->free[a->free_cnt++] = (uint16_t)(ref - a->first);
}

void fs_asked_put_in_place(struct fs *fs, struct fs_asked_entry *e, const struct fuse_in_header *h,
	size_t len, uint64_t state)
{
	struct fs_asked *a = fs->asked;

	if (len > FS_ASKED_PLACE_SIZE || a->free_cnt == 0 || h->len != len) {
		e->ref = put(fs, h, len, e->order, state);
		e->in = FS_ASKED_IN_RECORD;
		return;
	}
	e->ref = a->first + a->free[--a->free_cnt];
	e->in = FS_ASKED_IN_PLACE;
	memcpy(fs_asked_place(a, e->ref), h, len);
	live_count(fs->live, e->ref, state);
	live_raw_place(fs->live, e->ref, e->order);
}

/* Another lane may have just read what it is about, and be at it (fs_asked_note_late()). */
static void note_interrupt(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	const struct fs_asked_entry *e;

	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique == 0)
		a->missed[a->missed_cnt++ % FS_ASKED_MISSED] = unique;
	else if (!e->kept)
		live_count(fs->live, e->ref, FS_ASKED_INTERRUPTED);
	mutex_unlock(&a->lock);
}

/* Lock held. */
static uint64_t state_of(const struct fs_asked *a, uint64_t unique)
{
	for (unsigned int i = 0; i < FS_ASKED_MISSED; i++)
		if (a->missed[i] == unique)
			return FS_ASKED_INTERRUPTED;
	return FS_ASKED_NEW;
}

/* False: there is no memory for it, or it is there already. Lock held. */
static bool insert(struct fs_asked *a, const struct fs_asked_entry *new)
{
	struct fs_asked_entry *e =
		a->cnt * 2 < a->size || grow(a) ? fs_asked_find(a, new->unique) : NULL;

	if (!e || e->unique != 0)
		return false;
	*e = *new;
	a->cnt++;
	return true;
}

uint64_t fs_asked_next_order(struct fs *fs)
{
	return atomic_fetch_add(&fs->asked->order, 1) + 1;
}

/* e: with its order. A record, unlike a place, is not written in the lock that all requests take.
 */
static void note(
	struct fs *fs, struct fs_asked_entry *e, const struct fuse_in_header *h, size_t len)
{
	struct fs_asked *a = fs->asked;
	bool is_new;

	if (e->in != FS_ASKED_IN_BUF && len > FS_ASKED_PLACE_SIZE)
		e->ref = put(fs, h, len, e->order, FS_ASKED_NEW);
	mutex_lock(&a->lock);
	if (e->in != FS_ASKED_IN_BUF && len <= FS_ASKED_PLACE_SIZE)
		fs_asked_put_in_place(fs, e, h, len, state_of(a, e->unique));
	else if (e->in != FS_ASKED_IN_BUF)
		live_count(fs->live, e->ref, state_of(a, e->unique));
	is_new = insert(a, e);
	if (is_new && e->in == FS_ASKED_IN_BUF)
		live_raw_place(fs->live, e->ref, e->order);
	else if (!is_new && e->in == FS_ASKED_IN_PLACE)
		leave_place(fs, e->ref);
	mutex_unlock(&a->lock);
	if (is_new)
		return;
	live_spoil(fs->live);
	if (e->in == FS_ASKED_IN_RECORD)
		live_drop(fs->live, &e->ref);
}

bool fs_asked_note_first(struct fs *fs, const struct fuse_in_header *h, size_t len)
{
	const struct fuse_interrupt_in *in = (const void *)(h + 1);

	if (!fs->asked)
		return false;
	if (h->opcode == FUSE_INTERRUPT && len >= sizeof(*h) + sizeof(*in))
		note_interrupt(fs, in->unique);
	return is_answered(h->opcode) && h->unique != 0;
}

void fs_asked_note(struct fs *fs, const void *req, size_t len, live_ref buf)
{
	const struct fuse_in_header *h = req;
	bool in_buf = h->opcode == FUSE_WRITE && buf != LIVE_NONE;
	struct fs_asked_entry e = {.unique = h->unique,
		.ref = in_buf ? buf : LIVE_NONE,
		.in = in_buf ? FS_ASKED_IN_BUF : FS_ASKED_IN_RECORD};

	if (!fs_asked_note_first(fs, h, len))
		return;
	e.order = fs_asked_next_order(fs);
	note(fs, &e, h, len);
}

void fs_asked_note_late(struct fs *fs, const struct fuse_in_header *h, uint64_t order)
{
	struct fs_asked_entry e = {.unique = h->unique, .order = order, .in = FS_ASKED_IN_RECORD};

	note(fs, &e, h, h->len);
}

void fs_asked_acknowledged(struct fs *fs, const void *req)
{
	const struct fuse_in_header *h = req;
	struct fs_asked *a = fs->asked;

	if (!a)
		return;
	mutex_lock(&a->lock);
	live_count(fs->live, fs_asked_find(a, h->unique)->ref, FS_ASKED_KEPT);
	mutex_unlock(&a->lock);
}

/* ---- answers ---- */

/* Nobody needs it any more: the record that is to be dropped. Lock held. */
static live_ref over(struct fs *fs, struct fs_asked_entry *e)
{
	live_ref ref = e->ref;

	if (e->kept || !e->answered)
		return LIVE_NONE;
	if (e->in == FS_ASKED_IN_PLACE)
		leave_place(fs, ref);
	else if (e->in == FS_ASKED_IN_BUF)
		live_raw_place(fs->live, ref, LIVE_RAW_NONE);
	if (e->lent)
		live_retire(fs->live, ref);
	if (e->in != FS_ASKED_IN_RECORD || e->lent)
		ref = LIVE_NONE;
	take_out(fs->asked, e);
	return ref;
}

static bool is_counted(const struct fs_asked_entry *e, enum fs_asked_counted as)
{
	return (e->counted & 1u << as) != 0;
}

/* Lock held. */
static void await_no_more(struct fs_asked *a, struct fs_asked_entry *e)
{
	for (unsigned int as = 0; as < FS_ASKED_COUNTED; as++)
		if (is_counted(e, as))
			atomic_fetch_sub(&a->counts[as], 1);
	e->counted = 0;
}

void fs_asked_answered(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	live_ref ref = LIVE_NONE;
	struct fs_asked_entry *e;

	if (!a || unique == 0 || fs_asked_buf_answered(fs, unique))
		return;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique != 0) {
		e->answered = true;
		await_no_more(a, e);
		ref = over(fs, e);
	}
	mutex_unlock(&a->lock);
	live_drop(fs->live, &ref);
}

/* Until it is answered (await_no_more()). */
static void count(struct fs *fs, uint64_t unique, enum fs_asked_counted as)
{
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry *e;

	if (!a)
		return;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique != 0 && !is_counted(e, as)) {
		atomic_fetch_add(&a->counts[as], 1);
		e->counted |= (uint8_t)(1u << as);
	}
	mutex_unlock(&a->lock);
}

void fs_asked_await(struct fs *fs, uint64_t unique)
{
	count(fs, unique, FS_ASKED_AWAITED);
}

void fs_asked_await_no_more(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry *e;

	if (!a || unique == 0)
		return;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique != 0)
		await_no_more(a, e);
	mutex_unlock(&a->lock);
}

static bool counts(const struct fs *fs, enum fs_asked_counted as)
{
	return fs->asked && atomic_load(&fs->asked->counts[as]) > 0;
}

bool fs_asked_awaits(const struct fs *fs)
{
	return counts(fs, FS_ASKED_AWAITED);
}

void fs_asked_rewrite(struct fs *fs, uint64_t unique)
{
	count(fs, unique, FS_ASKED_REWRITES);
}

void fs_asked_precede(struct fs *fs, uint64_t unique)
{
	count(fs, unique, FS_ASKED_PRECEDES);
}

bool fs_asked_precedes(const struct fs *fs)
{
	return counts(fs, FS_ASKED_PRECEDES);
}

bool fs_asked_rewrites(const struct fs *fs)
{
	return counts(fs, FS_ASKED_REWRITES);
}

/* As it is now. unique 0: there is none. */
static struct fs_asked_entry look_up(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry e = {.unique = 0};

	if (!a || unique == 0)
		return e;
	mutex_lock(&a->lock);
	e = *fs_asked_find(a, unique);
	mutex_unlock(&a->lock);
	return e;
}

bool fs_asked_is_awaited(struct fs *fs, uint64_t unique)
{
	const struct fs_asked_entry e = look_up(fs, unique);

	return is_counted(&e, FS_ASKED_AWAITED);
}

bool fs_asked_is_rewrite(struct fs *fs, uint64_t unique)
{
	const struct fs_asked_entry e = look_up(fs, unique);

	return is_counted(&e, FS_ASKED_REWRITES);
}

bool fs_asked_is(struct fs *fs, uint64_t unique)
{
	return look_up(fs, unique).unique != 0;
}

bool fs_asked_keep(struct fs *fs, uint64_t unique, uint64_t *ret_order)
{
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry *e;
	bool is_there;

	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	is_there = e->unique != 0;
	if (is_there) {
		e->kept = true;
		*ret_order = e->order;
		live_count(fs->live, e->ref, FS_ASKED_KEPT);
	}
	mutex_unlock(&a->lock);
	return is_there;
}

void fs_asked_release(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	live_ref ref = LIVE_NONE;
	struct fs_asked_entry *e;

	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique != 0) {
		e->kept = false;
		ref = over(fs, e);
	}
	mutex_unlock(&a->lock);
	live_drop(fs->live, &ref);
}
