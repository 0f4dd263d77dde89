/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_asked.h"
#include "fs_live.h"
#include "fs_tables.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 256u
/* Places for requests that are not long: to take one costs less than a record. */
#define PLACES     1024u
#define PLACE_SIZE 256u

/* entry.in: its bytes are in */
enum {
	IN_RECORD,
	IN_BUF,   /* a data buffer */
	IN_PLACE, /* one of fs_asked.places */
};

struct entry {
	uint64_t unique; /* 0: none */
	uint64_t order;
	live_ref ref;
	uint8_t in;          /* IN_* */
	bool kept, answered; /* it goes when it is answered and not kept */
	bool awaited;        /* counted in `awaited` */
	bool rewritten;      /* counted in `rewriting` */
};

/* A table of entries, by number; of its places one half is free. */
struct fs_asked {
	struct mutex lock; /* all of it */
	struct entry *v;
	uint32_t size, cnt;
	uint8_t *places; /* NULL: there was no memory for them */
	live_ref first;  /* of places */
	uint16_t free[PLACES];
	uint32_t free_cnt;
	uint64_t order; /* counts what came */
	_Atomic uint32_t awaited, rewriting;
};

/* ---- the table; lock held ---- */

static uint32_t place_of(const struct fs_asked *a, uint64_t unique)
{
	return (uint32_t)((unique * 0x9e3779b97f4a7c15ull) >> 32) & (a->size - 1);
}

/* Where it is, or would be. */
static struct entry *find(const struct fs_asked *a, uint64_t unique)
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
			*find(&to, a->v[i].unique) = a->v[i];
	free(a->v);
	a->v = to.v;
	a->size = to.size;
	return true;
}

/* Those behind it that are there because its place was taken move up. */
static void take_out(struct fs_asked *a, struct entry *e)
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
	a->v[hole] = (struct entry){0};
	a->cnt--;
}

/* ---- the requests ---- */

static void make_places(struct fs_asked *a, struct live *live)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_REQUEST, .count_field = FS_ASKED_STATE};

	a->places =
		live_raw_small(live, &key, FS_TABLES_REQUEST, FS_ASKED_BYTES, PLACE_SIZE, PLACES);
	if (!a->places)
		return;
	a->first = live_raw_ref(live, a->places);
	while (a->free_cnt < PLACES) {
		a->free[a->free_cnt] = (uint16_t)(PLACES - 1 - a->free_cnt);
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

/* A record of its bytes, in a place if there is one: e->ref and e->in. Lock held. */
static void put_in_place(
	struct fs *fs, struct entry *e, const struct fuse_in_header *h, size_t len, uint64_t state)
{
	struct fs_asked *a = fs->asked;

	if (len > PLACE_SIZE || a->free_cnt == 0 || h->len != len) {
		e->ref = put(fs, h, len, e->order, state);
		e->in = IN_RECORD;
		return;
	}
	e->ref = a->first + a->free[--a->free_cnt];
	e->in = IN_PLACE;
	memcpy(a->places + (size_t)(e->ref - a->first) * PLACE_SIZE, h, len);
	live_count(fs->live, e->ref, state);
	live_raw_place(fs->live, e->ref, e->order);
}

static void note_interrupt(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;

	mutex_lock(&a->lock);
	if (!find(a, unique)->kept)
		live_count(fs->live, find(a, unique)->ref, FS_ASKED_INTERRUPTED);
	mutex_unlock(&a->lock);
}

/* False: there is no memory for it, or it is there already. Lock held. */
static bool insert(struct fs_asked *a, const struct entry *new)
{
	struct entry *e = a->cnt * 2 < a->size || grow(a) ? find(a, new->unique) : NULL;

	if (!e || e->unique != 0)
		return false;
	*e = *new;
	a->cnt++;
	return true;
}

/* A request that has no place: its record is not written in the lock, which all requests take. */
static void note_long(struct fs *fs, struct entry *e, const void *req, size_t len)
{
	struct fs_asked *a = fs->asked;

	mutex_lock(&a->lock);
	e->order = ++a->order;
	mutex_unlock(&a->lock);
	e->ref = put(fs, req, len, e->order, FS_ASKED_NEW);
}

void fs_asked_note(struct fs *fs, const void *req, size_t len, live_ref buf)
{
	const struct fuse_in_header *h = req;
	const struct fuse_interrupt_in *in = (const void *)(h + 1);
	struct fs_asked *a = fs->asked;
	struct entry e = {.unique = h->unique, .ref = buf};
	bool is_new;

	if (!a)
		return;
	if (h->opcode == FUSE_INTERRUPT && len >= sizeof(*h) + sizeof(*in))
		note_interrupt(fs, in->unique);
	if (!is_answered(h->opcode) || h->unique == 0)
		return;
	e.in = h->opcode == FUSE_WRITE && buf != LIVE_NONE ? IN_BUF : IN_RECORD;
	if (e.in != IN_BUF && len > PLACE_SIZE)
		note_long(fs, &e, req, len);
	mutex_lock(&a->lock);
	if (e.order == 0)
		e.order = ++a->order;
	if (e.in != IN_BUF && len <= PLACE_SIZE)
		put_in_place(fs, &e, h, len, FS_ASKED_NEW);
	is_new = insert(a, &e);
	if (is_new && e.in == IN_BUF)
		live_raw_place(fs->live, buf, e.order);
	if (!is_new && e.in == IN_PLACE)
		leave_place(fs, e.ref);
	mutex_unlock(&a->lock);
	if (is_new)
		return;
	live_spoil(fs->live);
	if (e.in == IN_RECORD)
		live_drop(fs->live, &e.ref);
}

/* ---- data buffers ---- */

void *fs_asked_memory(void *ctx, size_t size, unsigned int cnt)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_REQUEST, .count_field = FS_ASKED_STATE};

	static_assert(LIVE_RAW_LEAD == RPCRDMA_DATA_LEAD, "a request begins where a record may");
	return live_raw_pieces(ctx, &key, FS_TABLES_REQUEST, FS_ASKED_BYTES, size, cnt);
}

/* ref: of the buffer where h begins. */
static void leave(struct fs *fs, live_ref ref, const struct fuse_in_header *h)
{
	struct fs_asked *a = fs->asked;
	struct entry *e;

	if (ref == LIVE_NONE || live_raw_placed(fs->live, ref) == LIVE_RAW_NONE)
		return;
	mutex_lock(&a->lock);
	e = find(a, h->unique);
	if (e->unique != 0 && e->ref == ref)
		put_in_place(fs, e, h, h->len, live_counted(fs->live, ref));
	live_raw_place(fs->live, ref, LIVE_RAW_NONE);
	mutex_unlock(&a->lock);
}

void fs_asked_leave(const struct fs_lane *l, const struct rpcrdma_buf *buf)
{
	leave(l->fs, live_raw_ref(l->fs->live, buf->mem), (const void *)buf->mem);
}

void fs_asked_put_buf(struct fs_lane *l, struct rpcrdma_buf *buf)
{
	fs_asked_leave(l, buf);
	rpcrdma_buf_put(l->xprt, buf);
}

/* Bytes that the kernel writes there next are a record at once. */
static void expect(struct live *live, live_ref ref, struct fuse_in_header *h)
{
	if (!live_raw_reserve(live, ref))
		live_spoil(live);
	__atomic_store_n(&h->len, 0, __ATOMIC_RELEASE);
	live_count(live, ref, FS_ASKED_NEW);
	live_raw_place(live, ref, LIVE_RAW_LAST);
}

int fs_asked_receive(struct fs_lane *l, struct fuse_buf *to)
{
	struct fuse_in_header *h = to->mem;
	struct live *live = l->fs->live;
	live_ref ref = live_raw_ref(live, h);
	int len;

	leave(l->fs, ref, h);
	if (ref != LIVE_NONE)
		expect(live, ref, h);
	len = fuse_session_receive_buf(l->fs->se, to);
	if (len > 0)
		fs_asked_note(l->fs, h, (size_t)len, ref);
	if (ref != LIVE_NONE && live_raw_placed(live, ref) == LIVE_RAW_LAST)
		live_raw_place(live, ref, LIVE_RAW_NONE);
	return len;
}

/* ---- answers ---- */

/* Nobody needs it any more: the record that is to be dropped. Lock held. */
static live_ref over(struct fs *fs, struct entry *e)
{
	live_ref ref = e->ref;

	if (e->kept || !e->answered)
		return LIVE_NONE;
	if (e->in == IN_PLACE)
		leave_place(fs, ref);
	else if (e->in == IN_BUF)
		live_raw_place(fs->live, ref, LIVE_RAW_NONE);
	if (e->in != IN_RECORD)
		ref = LIVE_NONE;
	take_out(fs->asked, e);
	return ref;
}

/* Lock held. */
static void await_no_more(struct fs_asked *a, struct entry *e)
{
	if (e->awaited)
		atomic_fetch_sub(&a->awaited, 1);
	if (e->rewritten)
		atomic_fetch_sub(&a->rewriting, 1);
	e->awaited = e->rewritten = false;
}

void fs_asked_answered(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	live_ref ref = LIVE_NONE;
	struct entry *e;

	if (!a || unique == 0)
		return;
	mutex_lock(&a->lock);
	e = find(a, unique);
	if (e->unique != 0) {
		e->answered = true;
		await_no_more(a, e);
		ref = over(fs, e);
	}
	mutex_unlock(&a->lock);
	live_drop(fs->live, &ref);
}

/* Counted until it is answered (await_no_more()). */
static void await(struct fs *fs, uint64_t unique, bool rewritten)
{
	struct fs_asked *a = fs->asked;
	struct entry *e;

	if (!a)
		return;
	mutex_lock(&a->lock);
	e = find(a, unique);
	if (e->unique != 0) {
		atomic_fetch_add(rewritten ? &a->rewriting : &a->awaited, 1);
		e->awaited |= !rewritten;
		e->rewritten |= rewritten;
	}
	mutex_unlock(&a->lock);
}

void fs_asked_await(struct fs *fs, uint64_t unique)
{
	await(fs, unique, false);
}

void fs_asked_await_no_more(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	struct entry *e;

	if (!a || unique == 0)
		return;
	mutex_lock(&a->lock);
	e = find(a, unique);
	if (e->unique != 0)
		await_no_more(a, e);
	mutex_unlock(&a->lock);
}

bool fs_asked_awaits(const struct fs *fs)
{
	return fs->asked && atomic_load(&fs->asked->awaited) > 0;
}

void fs_asked_rewrite(struct fs *fs, uint64_t unique)
{
	await(fs, unique, true);
}

bool fs_asked_rewrites(const struct fs *fs)
{
	return fs->asked && atomic_load(&fs->asked->rewriting) > 0;
}

/* As it is now. unique 0: there is none. */
static struct entry look_up(struct fs *fs, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	struct entry e = {.unique = 0};

	if (!a || unique == 0)
		return e;
	mutex_lock(&a->lock);
	e = *find(a, unique);
	mutex_unlock(&a->lock);
	return e;
}

bool fs_asked_is_awaited(struct fs *fs, uint64_t unique)
{
	return look_up(fs, unique).awaited;
}

bool fs_asked_is(struct fs *fs, uint64_t unique)
{
	return look_up(fs, unique).unique != 0;
}

bool fs_asked_keep(struct fs *fs, uint64_t unique, uint64_t *ret_order)
{
	struct fs_asked *a = fs->asked;
	struct entry *e;
	bool is_there;

	mutex_lock(&a->lock);
	e = find(a, unique);
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
	struct entry *e;

	mutex_lock(&a->lock);
	e = find(a, unique);
	if (e->unique != 0) {
		e->kept = false;
		ref = over(fs, e);
	}
	mutex_unlock(&a->lock);
	live_drop(fs->live, &ref);
}
