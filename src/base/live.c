/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "live_int.h"
#include "mutex.h"

/* Nobody makes it shorter while it is read. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct slots {
	live_ref *refs;
	size_t cnt, total; /* free ones; all, for which refs has room */
};

struct live {
	int fd;
	uint8_t *map;
	size_t size;
	_Atomic uint64_t seq; /* the next one */
	_Atomic uint64_t bytes;
	struct mutex lock; /* of chunks and free slots */
	size_t used;
	struct slots free[LIVE_CLASSES];
};

static struct live_head *head_of(const struct live *l)
{
	return (struct live_head *)l->map;
}

static struct live_slot *slot_at(const struct live *l, live_ref ref)
{
	return (struct live_slot *)(l->map + (size_t)ref * LIVE_UNIT);
}

/* The pages are there: where memory is short, a store to one that is not would be a SIGBUS. */
static bool reserve(struct live *l, size_t at, size_t len)
{
	int rc;

	do
		rc = fallocate(l->fd, 0, (off_t)at, (off_t)len);
	while (rc != 0 && errno == EINTR);
	return rc == 0;
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
		map = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
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
	if (!reserve(l, 0, LIVE_PAGE))
		return -errno;
	/* Records have what users read and write. */
	(void)madvise(l->map, l->size, MADV_DONTDUMP);
	*head_of(l) = (struct live_head){.version = LIVE_VERSION, .size = l->size};
	memcpy(head_of(l)->magic, LIVE_MAGIC, sizeof(LIVE_MAGIC));
	l->used = LIVE_PAGE;
	atomic_store(&head_of(l)->used, l->used);
	atomic_store(&head_of(l)->state, LIVE_COMPLETE);
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

/* One more chunk of the class: its slots are free. With the lock. */
static bool cut(struct live *l, unsigned int cls)
{
	struct slots *s = &l->free[cls];
	size_t at = l->used, len = live_chunk_len(cls), cnt = live_slots_of(cls);
	struct live_chunk *c = (struct live_chunk *)(l->map + at);
	live_ref *refs;

	if (l->size - at < len || !reserve(l, at, cls < LIVE_SMALL ? len : LIVE_PAGE))
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
	atomic_store_explicit(&head_of(l)->used, l->used, memory_order_release);
	return true;
}

/* LIVE_NONE: there is no memory. */
static live_ref take(struct live *l, unsigned int cls)
{
	struct slots *s = &l->free[cls];
	live_ref ref = LIVE_NONE;

	mutex_lock(&l->lock);
	if (s->cnt > 0 || cut(l, cls))
		ref = s->refs[--s->cnt];
	mutex_unlock(&l->lock);
	return ref;
}

/* The lock is also what lets nothing be written to the slot before its seq is 0. */
static void give_back(struct live *l, live_ref ref, unsigned int cls)
{
	struct slots *s = &l->free[cls];

	mutex_lock(&l->lock);
	assert(s->cnt < s->total);
	s->refs[s->cnt++] = ref;
	mutex_unlock(&l->lock);
}

/* A slot of the class, with pages for `len` bytes of a record. LIVE_NONE: there is no memory. */
static live_ref take_pages(struct live *l, unsigned int cls, size_t len)
{
	live_ref ref = take(l, cls);

	if (ref == LIVE_NONE || cls < LIVE_SMALL ||
		reserve(l, (size_t)ref * LIVE_UNIT, sizeof(struct live_slot) + len))
		return ref;
	give_back(l, ref, cls);
	return LIVE_NONE;
}

/* The record of the slot is gone. */
static void clear(struct live *l, live_ref ref)
{
	struct live_slot *slot = slot_at(l, ref);
	unsigned int cls = live_class_of(slot->about.len);

	atomic_store_explicit(&slot->seq, 0, memory_order_release);
	atomic_fetch_sub(&l->bytes, live_slot_size(cls));
	give_back(l, ref, cls);
}

/* False: there is no memory for it. */
static bool put(
	struct live *l, live_ref *ref, const struct live_key *key, const void *record, size_t len)
{
	struct live_slot *old = *ref == LIVE_NONE ? NULL : slot_at(l, *ref), *slot;
	unsigned int cls = live_class_of(len);
	live_ref taken = take_pages(l, cls, len);
	uint64_t seq;

	if (taken == LIVE_NONE)
		return false;
	seq = atomic_fetch_add(&l->seq, 1);
	slot = slot_at(l, taken);
	slot->about = (struct live_about){
		.id = old ? old->about.id : seq,
		.group = key->group,
		.len = (uint32_t)len,
		.count_field = key->count_field,
		.rank = key->rank,
		.minor = key->minor,
	};
	atomic_store_explicit(
		&slot->count, old ? atomic_load(&old->count) : 0, memory_order_relaxed);
	memcpy(slot + 1, record, len);
	slot->crc = live_crc(seq, &slot->about, record);
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
	atomic_fetch_add(&l->bytes, live_slot_size(cls));
	if (old)
		clear(l, *ref);
	*ref = taken;
	return true;
}

void live_put(struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t)
{
	const void *record;
	size_t len;

	if (l) {
		record = tables_record_bytes(t, &len);
		assert(!record || tables_is_record(record, len));
		if (!record || len > LIVE_RECORD_MAX || !put(l, ref, key, record, len))
			live_spoil(l);
	}
	tables_reset(t);
}

void live_spoil(struct live *l)
{
	if (l)
		atomic_store(&head_of(l)->state, LIVE_INCOMPLETE);
}

bool live_is_complete(const struct live *l)
{
	return atomic_load(&head_of(l)->state) != LIVE_INCOMPLETE;
}

void *live_raw(struct live *l, const struct live_key *key, uint16_t type, size_t size)
{
	unsigned int cls = live_class_of(size);
	live_ref ref = size <= LIVE_RECORD_MAX ? take_pages(l, cls, size) : LIVE_NONE;
	struct live_slot *slot;
	uint64_t seq;

	if (ref == LIVE_NONE)
		return NULL;
	seq = atomic_fetch_add(&l->seq, 1);
	slot = slot_at(l, ref);
	slot->about = (struct live_about){
		.id = seq,
		.group = type,
		.len = (uint32_t)size,
		.count_field = key->count_field,
		.rank = key->rank,
		.minor = LIVE_RAW,
	};
	memset(slot + 1, 0, sizeof(uint32_t));
	slot->crc = live_crc(seq, &slot->about, slot + 1);
	atomic_store_explicit(&slot->seq, seq, memory_order_release);
	atomic_fetch_add(&l->bytes, live_slot_size(cls));
	return slot + 1;
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
		atomic_store_explicit(&slot_at(l, ref)->count, value, memory_order_relaxed);
}

uint64_t live_bytes(const struct live *l)
{
	return l ? atomic_load(&l->bytes) : 0;
}
