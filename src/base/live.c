/* SPDX-License-Identifier: BSD-3-Clause */
#include "live_writer.h"
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Nobody makes it shorter while it is read. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define CACHE_LINE 64u /* as long as they are on most processors */
#define FETCHED    5u  /* classes whose next slot is fetched beforehand: up to 512 bytes */

/* Of a slot that has a chunk of its own. */
static struct live_chunk *chunk_of(const struct live *l, live_ref ref)
{
	return (struct live_chunk *)live_slot_in(l->map, ref) - 1;
}

bool live_reserve(struct live *l, size_t at, size_t len)
{
	int rc;

	/* By way of the mapping, which may want huge pages, and has them from then on. */
	do
		rc = madvise(l->map + at, len, MADV_POPULATE_WRITE);
	while (rc != 0 && errno == EINTR);
	if (rc == 0 || errno != EINVAL)
		return rc == 0;
	do /* before Linux 5.14 */
		rc = fallocate(l->fd, 0, (off_t)at, (off_t)len);
	while (rc != 0 && errno == EINTR);
	return rc == 0;
}

/*
 * At a boundary of huge pages, so that the memory may consist of them. MAP_FAILED: there is no
 * room.
 */
static void *map_file(int fd, size_t size)
{
	size_t room = size + LIVE_HUGE_PAGE, before;
	void *map;
	uint8_t *p =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return MAP_FAILED;
	before = (LIVE_HUGE_PAGE - (uintptr_t)p % LIVE_HUGE_PAGE) % LIVE_HUGE_PAGE;
	map = mmap(p + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
		fd, 0);
	if (map == MAP_FAILED) {
		munmap(p, room);
		return MAP_FAILED;
	}
	if (before > 0)
		munmap(p, before);
	munmap(p + before + size, LIVE_HUGE_PAGE - before);
	return map;
}

/* As much as there may be. RLIMIT_FSIZE is asked for: a file that exceeds it costs a SIGXFSZ. */
static int map_all(struct live *l)
{
	struct rlimit most;
	void *map;

	if (getrlimit(RLIMIT_FSIZE, &most) != 0)
		return -errno;
	for (uint64_t size = LIVE_SIZE_MAX; size >= LIVE_SIZE_MIN; size /= 2) {
		if (size > most.rlim_cur) {
			errno = EFBIG;
			continue;
		}
		if (ftruncate(l->fd, (off_t)size) != 0)
			continue;
		map = map_file(l->fd, size);
		if (map != MAP_FAILED) {
			l->map = map;
			l->size = size;
			return 0;
		}
	}
	return -errno;
}

static int set_up(struct live *l)
{
	int err;

	l->fd = memfd_create("rpcrdmafs-live", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->fd < 0)
		return -errno;
	err = map_all(l);
	if (err)
		return err;
	if (fcntl(l->fd, F_ADD_SEALS, SEALS) != 0)
		return -errno;
	if (!live_reserve(l, 0, LIVE_PAGE))
		return -errno;
	/* Records have what users read and write. */
	(void)madvise(l->map, l->size, MADV_DONTDUMP);
	*live_head_in(l->map) = (struct live_head){.version = LIVE_VERSION, .size = l->size};
	memcpy(live_head_in(l->map)->magic, LIVE_MAGIC, sizeof(LIVE_MAGIC));
	l->used = LIVE_PAGE;
	atomic_store(&live_head_in(l->map)->used, l->used);
	atomic_store(&live_head_in(l->map)->state, LIVE_COMPLETE);
	return 0;
}

struct live *live_new(void)
{
	struct live *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return NULL;
	l->seq = LIVE_FIRST_SEQ;
	mutex_init(&l->lock, MUTEX_LIVE);
	err = set_up(l);
	if (err) {
		live_free(l);
		errno = -err;
		return NULL;
	}
	return l;
}

int live_fd(const struct live *l)
{
	return l->fd;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	live_raw_forget(l);
	if (l->map)
		munmap(l->map, l->size);
	if (l->fd >= 0)
		close(l->fd);
	for (unsigned int cls = 0; cls < LIVE_CLASSES; cls++)
		free(l->free[cls].refs);
	mutex_destroy(&l->lock);
	free(l);
}

/* ---- slots ---- */

/* With the lock. */
static void note_first(struct live_slots *s)
{
	atomic_store_explicit(
		&s->first, s->cnt > 0 ? s->refs[s->cnt - 1] : LIVE_NONE, memory_order_relaxed);
}

/* One more chunk of the class: its slots are free. With the lock. */
static bool cut(struct live *l, unsigned int cls)
{
	struct live_slots *s = &l->free[cls];
	size_t at = l->used, len = live_chunk_len(cls), cnt = live_slots_of(cls);
	struct live_chunk *c = (struct live_chunk *)(l->map + at);
	live_ref *refs;

	if (l->size - at < len || !live_reserve(l, at, cls < LIVE_SMALL ? len : LIVE_PAGE))
		return false;
	/* Each of them has a place when it is free again: giving one back cannot fail. */
	refs = realloc(s->refs, (s->total + cnt) * sizeof(*refs));
	if (!refs)
		return false;
	s->refs = refs;
	s->total += cnt;
	for (size_t i = cnt; i > 0; i--)
		refs[s->cnt++] = live_slot_ref(at, cls, i - 1);
	atomic_store_explicit(&c->what, live_chunk_word(cls), memory_order_release);
	l->used += len;
	atomic_store_explicit(&live_head_in(l->map)->used, l->used, memory_order_release);
	return true;
}

/* The processor fetches so many bytes of the slot that is taken next. */
static void fetch_next(const struct live *l, unsigned int cls, size_t len)
{
	live_ref ref = atomic_load_explicit(&l->free[cls].first, memory_order_relaxed);

	if (ref == LIVE_NONE)
		return;
	for (size_t at = 0; at < len; at += CACHE_LINE)
		__builtin_prefetch((const uint8_t *)live_slot_in(l->map, ref) + at, 1);
}

/* LIVE_NONE: there is no memory. */
static live_ref take(struct live *l, unsigned int cls)
{
	struct live_slots *s = &l->free[cls];
	live_ref ref = LIVE_NONE;

	mutex_lock(&l->lock);
	if (s->cnt > 0 || cut(l, cls))
		ref = s->refs[--s->cnt];
	note_first(s);
	mutex_unlock(&l->lock);
	/* One that never was in use would be waited for, at the lock that follows its record. */
	if (cls < FETCHED)
		fetch_next(l, cls, live_slot_size(cls));
	return ref;
}

/* The lock is also what lets nothing be written to the slot before its seq is 0. */
static void give_back(struct live *l, live_ref ref, unsigned int cls)
{
	struct live_slots *s = &l->free[cls];

	mutex_lock(&l->lock);
	assert(s->cnt < s->total);
	s->refs[s->cnt++] = ref;
	note_first(s);
	mutex_unlock(&l->lock);
}

/* The chunk, which has one slot, has pages for so many of its bytes; none is given back. */
static bool reserve_chunk(struct live *l, struct live_chunk *c, size_t len)
{
	if (len <= c->reserved)
		return true;
	if (!live_reserve(l, (size_t)((uint8_t *)c - l->map), len))
		return false;
	c->reserved = len;
	return true;
}

/* A slot of the class, with pages for `len` bytes of a record. LIVE_NONE: there is no memory. */
static live_ref take_pages(struct live *l, unsigned int cls, size_t len)
{
	live_ref ref = take(l, cls);

	if (ref == LIVE_NONE || cls < LIVE_SMALL ||
		reserve_chunk(l, chunk_of(l, ref),
			sizeof(struct live_chunk) + sizeof(struct live_slot) + len))
		return ref;
	give_back(l, ref, cls);
	return LIVE_NONE;
}

static unsigned int class_at(const struct live *l, live_ref ref)
{
	return live_class_of(live_slot_in(l->map, ref)->about.len);
}

void live_retire(struct live *l, live_ref ref)
{
	atomic_store_explicit(&live_slot_in(l->map, ref)->seq, 0, memory_order_release);
}

bool live_is_retired(const struct live *l, live_ref ref)
{
	return atomic_load_explicit(&live_slot_in(l->map, ref)->seq, memory_order_acquire) == 0;
}

void live_give_back(struct live *l, live_ref ref)
{
	unsigned int cls = class_at(l, ref);

	atomic_fetch_sub(&l->bytes, live_slot_size(cls));
	give_back(l, ref, cls);
}

/* The record of the slot is gone. */
static void clear(struct live *l, live_ref ref)
{
	live_retire(l, ref);
	live_give_back(l, ref);
}

static uint32_t crc_max_of(const struct live_key *key)
{
	if (key->crc_max == LIVE_CRC_NONE)
		return 0;
	return key->crc_max > 0 && key->crc_max < LIVE_CRC_MAX ? key->crc_max : LIVE_CRC_MAX;
}

/* A slot for a record of `len` bytes, which are to be written there. LIVE_NONE: there is none. */
static live_ref begin(struct live *l, live_ref old, const struct live_key *key, size_t len)
{
	live_ref ref = len <= LIVE_RECORD_MAX ? take_pages(l, live_class_of(len), len) : LIVE_NONE;
	struct live_slot *slot;

	if (ref == LIVE_NONE)
		return LIVE_NONE;
	slot = live_slot_in(l->map, ref);
	slot->about = (struct live_about){
		.id = old == LIVE_NONE ? 0 : live_slot_in(l->map, old)->about.id,
		.group = key->group,
		.len = (uint32_t)len,
		.count_field = key->count_field,
		.rank = key->rank,
		.minor = key->minor,
		.crc_max = crc_max_of(key),
	};
	atomic_store_explicit(&slot->count, old == LIVE_NONE ? key->count : live_counted(l, old),
		memory_order_relaxed);
	return ref;
}

/* It counts from now on, and *ref not any more. */
static void commit(struct live *l, live_ref *ref, live_ref taken)
{
	struct live_slot *slot = live_slot_in(l->map, taken);
	uint64_t seq = atomic_fetch_add(&l->seq, 1);

	if (slot->about.id == 0)
		slot->about.id = seq;
	slot->crc = live_crc(seq, &slot->about, slot + 1);
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
	atomic_fetch_add(&l->bytes, live_slot_size(live_class_of(slot->about.len)));
	if (*ref != LIVE_NONE)
		clear(l, *ref);
	*ref = taken;
}

void live_put(struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t)
{
	const void *record;
	live_ref taken = LIVE_NONE;
	size_t len;

	if (l) {
		record = tables_record_bytes(t, &len);
		assert(!record || tables_is_record(record, len));
		if (record)
			taken = begin(l, *ref, key, len);
		if (taken == LIVE_NONE) {
			live_spoil(l);
		} else {
			memcpy(live_slot_in(l->map, taken) + 1, record, len);
			commit(l, ref, taken);
		}
	}
	tables_reset(t);
}

void live_put_pieces(struct live *l, live_ref *ref, const struct live_key *key, uint16_t type,
	uint16_t field, const void *p, size_t len)
{
	live_ref taken = begin(l, *ref, key, tables_pieces_len(len));

	if (taken == LIVE_NONE) {
		live_spoil(l);
		return;
	}
	tables_pieces_record((uint8_t *)(live_slot_in(l->map, taken) + 1), type, field, p, len);
	commit(l, ref, taken);
}

void live_expect(const struct live *l, size_t len)
{
	unsigned int cls = live_class_of(len);

	if (cls < LIVE_SMALL)
		fetch_next(l, cls, sizeof(struct live_slot) + len);
}

uint8_t *live_pieces(const struct live *l, live_ref ref)
{
	return tables_pieces_first((uint8_t *)(live_slot_in(l->map, ref) + 1));
}

void live_spoil(struct live *l)
{
	if (l && atomic_exchange(&live_head_in(l->map)->state, LIVE_INCOMPLETE) == LIVE_COMPLETE)
		log_err("what a next process needs could not be noted: if this one is killed, the "
			"mount ends");
}

bool live_is_complete(const struct live *l)
{
	return atomic_load(&live_head_in(l->map)->state) != LIVE_INCOMPLETE;
}

void live_drop(struct live *l, live_ref *ref)
{
	if (l && *ref != LIVE_NONE)
		clear(l, *ref);
	*ref = LIVE_NONE;
}

void live_count(struct live *l, live_ref ref, uint64_t value)
{
	if (l && ref != LIVE_NONE)
		atomic_store_explicit(
			&live_slot_in(l->map, ref)->count, value, memory_order_relaxed);
}

uint64_t live_counted(const struct live *l, live_ref ref)
{
	return atomic_load_explicit(&live_slot_in(l->map, ref)->count, memory_order_relaxed);
}

uint64_t live_bytes(const struct live *l)
{
	return l ? atomic_load(&l->bytes) : 0;
}
