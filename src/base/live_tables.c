/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "live.h"
#include "live_int.h"

/* A record that was checked. Of 32 bytes: qsort() moves larger ones by pointers, and is slower. */
struct entry {
	uint64_t id, group;
	live_ref ref;
	uint32_t len;
	uint32_t raw; /* of a raw one: where it begins, by RAW_UNIT; 0: it is none */
	uint16_t count_field;
	uint8_t rank, minor;
};

#define RAW_UNIT 16u
static_assert(LIVE_RAW_LEAD % RAW_UNIT == 0 && LIVE_SIZE_MAX / RAW_UNIT <= 1ull << 32,
	"each raw record has a number");

struct reader {
	uint8_t *map;
	size_t size;
	struct entry *entries;
	size_t cnt, room;
};

static const struct live_head *head_of(const struct reader *r)
{
	return live_head_in(r->map);
}

static const struct live_slot *slot_at(const struct reader *r, live_ref ref)
{
	return live_slot_in(r->map, ref);
}

static int map_other(struct reader *r, int fd, int prot)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *map;

	if (fstat(fd, &st) != 0)
		return -errno;
	/* A file that can be made shorter may be a SIGBUS. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size < (off_t)LIVE_PAGE ||
		st.st_size > (off_t)LIVE_SIZE_MAX || st.st_size % LIVE_PAGE != 0)
		return -EBADMSG;
	map = mmap(NULL, (size_t)st.st_size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r->map = map;
	r->size = (size_t)st.st_size;
	return 0;
}

static int check_head(const struct reader *r)
{
	const struct live_head *h = head_of(r);
	uint32_t state = atomic_load(&h->state);

	if (memcmp(h->magic, LIVE_MAGIC, sizeof(LIVE_MAGIC)) != 0 || h->version != LIVE_VERSION ||
		h->size != r->size)
		return -EBADMSG;
	if (state == LIVE_INCOMPLETE)
		return -ENODATA;
	return state == LIVE_COMPLETE ? 0 : -EBADMSG;
}

static int add(struct reader *r, const struct entry *e)
{
	if (r->cnt == r->room) {
		size_t room = r->room ? r->room * 2 : 1024;
		struct entry *entries = realloc(r->entries, room * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		r->entries = entries;
		r->room = room;
	}
	r->entries[r->cnt++] = *e;
	return 0;
}

static bool is_about(const struct live_about *a, unsigned int cls, size_t room)
{
	if (cls == LIVE_RAW_CLASS)
		return a->minor == LIVE_RAW && a->len == room;
	return a->minor != LIVE_RAW && live_class_of(a->len) == cls;
}

/* Where it comes among those of its rank. */
static uint64_t group_of(const struct live_slot *slot)
{
	uint64_t place;

	if (slot->about.minor != LIVE_RAW)
		return slot->about.group;
	place = atomic_load(&slot->place);
	return place == LIVE_RAW_LAST ? UINT64_MAX : place;
}

/* A slot of the class, in bounds; a record in it has at most `room` bytes. raw: where a raw one is.
 */
static int read_slot(struct reader *r, live_ref ref, unsigned int cls, size_t room, size_t raw)
{
	const struct live_slot *slot = slot_at(r, ref);
	uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
	struct live_about a = slot->about;

	if (seq == 0)
		return 0;
	if (!is_about(&a, cls, room) || a.id < LIVE_FIRST_SEQ || a.id > seq || slot->zero != 0 ||
		a.zero != 0 || a.crc_max > LIVE_CRC_MAX ||
		slot->crc != live_crc(seq, &a, slot + 1) ||
		(a.minor != LIVE_RAW && (slot->place != 0 || !tables_is_record(slot + 1, a.len))))
		return -EBADMSG;
	if (a.minor == LIVE_RAW && atomic_load(&slot->place) == LIVE_RAW_NONE)
		return 0;
	return add(r, &(struct entry){
			      .id = a.id,
			      .group = group_of(slot),
			      .ref = ref,
			      .raw = (uint32_t)(raw / RAW_UNIT),
			      .len = a.len,
			      .count_field = a.count_field,
			      .rank = a.rank,
			      /* It was there before what took its place, as yet beside it. */
			      .minor = a.minor == LIVE_RAW ? 0 : a.minor,
		      });
}

static const struct live_chunk *chunk_at(const struct reader *r, size_t at)
{
	return (const struct live_chunk *)(r->map + at);
}

static bool has_zeros(const struct live_chunk *c)
{
	static const uint64_t zero[sizeof(c->zero) / sizeof(c->zero[0])];

	return memcmp(c->zero, zero, sizeof(zero)) == 0;
}

static bool is_end(const struct reader *r, size_t at)
{
	return at == r->size || (chunk_at(r, at)->what == 0 && has_zeros(chunk_at(r, at)));
}

/* LIVE_CLASSES: it is no chunk. */
static unsigned int class_at(const struct reader *r, size_t at)
{
	const struct live_chunk *c = chunk_at(r, at);
	uint64_t what = atomic_load_explicit(&c->what, memory_order_acquire);
	unsigned int cls = 0;

	if (what == live_chunk_word(LIVE_RAW_CLASS))
		cls = LIVE_RAW_CLASS;
	while (cls < LIVE_CLASSES && what != live_chunk_word(cls))
		cls++;
	return has_zeros(c) ? cls : LIVE_CLASSES;
}

/* Whether a raw chunk is what it says, if it is in bounds. */
static bool is_raw(const struct live_chunk *c)
{
	uint64_t unit = c->raw_size < LIVE_PAGE ? LIVE_UNIT : LIVE_PAGE;

	return c->raw_size > 0 && c->raw_size != LIVE_PAGE && c->raw_size % unit == 0 &&
	       c->raw_cnt > 0 &&
	       c->raw_cnt <= c->raw_len / (c->raw_size + sizeof(struct live_slot)) &&
	       c->raw_len - c->raw_cnt * c->raw_size >=
		       sizeof(*c) + c->raw_cnt * sizeof(struct live_slot) &&
	       c->reserved == 0;
}

/* 0: it ends behind the memory, or cannot be. */
static size_t len_at(const struct reader *r, size_t at, unsigned int cls)
{
	const struct live_chunk *c = chunk_at(r, at);
	uint64_t len = cls == LIVE_RAW_CLASS ? c->raw_len : live_chunk_len(cls);

	if (len > r->size - at || len % LIVE_PAGE != 0)
		return 0;
	if (cls == LIVE_RAW_CLASS)
		return is_raw(c) ? len : 0;
	return (c->raw_len | c->raw_size | c->raw_cnt) == 0 &&
			       c->reserved <= (cls < LIVE_SMALL ? 0 : len)
		       ? len
		       : 0;
}

/* All slots of the chunk. */
static int read_chunk(struct reader *r, size_t at, unsigned int cls)
{
	const struct live_chunk *c = chunk_at(r, at);
	bool raw = cls == LIVE_RAW_CLASS;
	size_t cnt = raw ? c->raw_cnt : live_slots_of(cls);
	size_t room = raw ? live_raw_room(c->raw_size) : live_room(cls);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = read_slot(r, live_slot_ref(at, cls, i), cls, room,
			raw ? at + live_raw_piece(c, i) + live_raw_before(c->raw_size) : 0);
	return err;
}

static int read_all(struct reader *r)
{
	uint64_t used = atomic_load(&head_of(r)->used);
	size_t at = LIVE_PAGE, last = LIVE_PAGE, before = 0;
	int err = 0;

	while (!err && !is_end(r, at)) {
		unsigned int cls = class_at(r, at);
		size_t len = cls == LIVE_CLASSES ? 0 : len_at(r, at, cls);

		if (len == 0)
			return -EBADMSG;
		before = r->cnt;
		err = read_chunk(r, at, cls);
		last = at;
		at += len;
	}
	/* A chunk that was not counted yet has no record. */
	if (!err && used != at && (used != last || r->cnt != before))
		return -EBADMSG;
	return err;
}

/* Of two versions of a record, which one process left that died between two stores, the newer. */
static int drop_old(struct reader *r)
{
	size_t size = 16, mask, kept = 0;
	uint32_t *found; /* index + 1, by id */

	while (size < r->cnt * 2)
		size *= 2;
	mask = size - 1;
	found = calloc(size, sizeof(*found));
	if (!found)
		return -ENOMEM;
	for (size_t i = 0; i < r->cnt; i++) {
		struct entry e = r->entries[i], *other = NULL;
		size_t at = (size_t)(e.id * 0x9e3779b97f4a7c15ull >> 24) & mask;

		for (; found[at] != 0 && !other; at = (at + 1) & mask)
			if (r->entries[found[at] - 1].id == e.id)
				other = &r->entries[found[at] - 1];
		if (!other) {
			found[at] = (uint32_t)(kept + 1);
			r->entries[kept++] = e;
		} else if (slot_at(r, other->ref)->seq < slot_at(r, e.ref)->seq) {
			*other = e;
		}
	}
	r->cnt = kept;
	free(found);
	return 0;
}

static int in_order(const void *one, const void *two)
{
	const struct entry *a = one, *b = two;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* False: there is none. */
static bool put_raw(const struct reader *r, const struct entry *e, struct tables_out *t)
{
	const struct live_slot *slot = slot_at(r, e->ref);
	const uint8_t *p = r->map + (size_t)e->raw * RAW_UNIT;
	uint32_t len;

	memcpy(&len, p, sizeof(len));
	if (len == 0 || len > e->len)
		return false;
	tables_record(t, (uint16_t)slot->about.group);
	tables_put_pieces(t, (uint16_t)(slot->about.group >> 16), p, len);
	return true;
}

static void put_all(const struct reader *r, struct tables_out *t)
{
	for (size_t i = 0; i < r->cnt; i++) {
		const struct entry *e = &r->entries[i];
		const struct live_slot *slot = slot_at(r, e->ref);

		if (e->raw == 0)
			tables_put_record(t, slot + 1, e->len);
		else if (!put_raw(r, e, t))
			continue;
		if (e->count_field != 0)
			tables_put(t, e->count_field, atomic_load(&slot->count));
	}
}

static void close_other(struct reader *r)
{
	if (r->map)
		munmap(r->map, r->size);
	free(r->entries);
}

/* Its records, checked. close_other() afterwards, in any case. */
static int open_other(struct reader *r, int fd, int prot)
{
	int err = map_other(r, fd, prot);

	if (!err)
		err = check_head(r);
	if (!err)
		err = read_all(r);
	return err ? err : drop_old(r);
}

int live_tables(int fd, struct tables_out *t)
{
	struct reader r = {0};
	int err = open_other(&r, fd, PROT_READ);

	if (!err) {
		if (r.cnt > 0)
			qsort(r.entries, r.cnt, sizeof(*r.entries), in_order);
		put_all(&r, t);
	}
	close_other(&r);
	return err;
}

/* Pieces of the chunk at `at` without a record; small ones share their pages. */
static void trim_chunk(const struct reader *r, int fd, size_t at)
{
	const struct live_chunk *c = chunk_at(r, at);
	const struct live_slot *slot = (const struct live_slot *)(c + 1);

	for (uint64_t i = 0; i < c->raw_cnt && c->raw_size > LIVE_PAGE; i++) {
		size_t piece = at + live_raw_piece(c, i);

		if (atomic_load(&slot[i].place) == LIVE_RAW_NONE)
			(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)piece, (off_t)c->raw_size);
	}
}

void live_tables_trim(int fd)
{
	struct reader r = {0};

	if (open_other(&r, fd, PROT_READ) == 0)
		for (size_t at = LIVE_PAGE; !is_end(&r, at);) {
			unsigned int cls = class_at(&r, at);

			if (cls == LIVE_RAW_CLASS)
				trim_chunk(&r, fd, at);
			at += len_at(&r, at, cls); /* all of it was read already */
		}
	close_other(&r);
}

int live_tables_mark(
	int fd, uint16_t type, bool (*is)(void *ctx, const struct tables_record *r), void *ctx)
{
	struct reader r = {0};
	int err = open_other(&r, fd, PROT_READ | PROT_WRITE);

	for (size_t i = 0; !err && i < r.cnt; i++) {
		const struct entry *e = &r.entries[i];
		struct live_slot *slot = live_slot_in(r.map, e->ref);
		const uint8_t *bytes = (const uint8_t *)(slot + 1);
		struct tables_in in = {.next = bytes, .end = bytes + e->len};
		struct tables_record record;

		if (e->raw == 0 && tables_next(&in, &record) && record.type == type &&
			is(ctx, &record))
			atomic_store(&slot->count, 1);
	}
	close_other(&r);
	return err;
}
