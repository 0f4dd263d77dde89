/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_HEAD 8u
#define FIELD_HEAD  4u
#define NUMBER_MAX  8u
#define END_CRC     1u
/* Of END: its head, and one field of 4 bytes. */
#define END_LEN  (RECORD_HEAD + FIELD_HEAD + 4u)
#define WRITE_AT (256u * 1024)

static const uint8_t magic[8] = {'r', 'd', 'm', 'a', 'f', 's', 'T', '1'};

/* ---- writing ---- */

static void put_le(uint8_t *to, uint64_t value, size_t len)
{
	uint64_t le = htole64(value);

	memcpy(to, &le, len);
}

static bool grow(struct tables_out *t, size_t len)
{
	size_t size = (t->used + len) * 2;
	uint8_t *buf = realloc(t->buf == t->few ? NULL : t->buf, size);

	if (!buf) {
		t->err = -ENOMEM;
		return false;
	}
	if (t->buf == t->few)
		memcpy(buf, t->few, t->used);
	t->buf = buf;
	t->size = size;
	return true;
}

/* `len` more bytes at the end of what is not written; NULL: there was a failure. */
static inline uint8_t *room(struct tables_out *t, size_t len)
{
	if (t->err || (t->size - t->used < len && !grow(t, len)))
		return NULL;
	t->used += len;
	return t->buf + t->used - len;
}

static void flush(struct tables_out *t)
{
	size_t done = 0;

	while (!t->err && done < t->used) {
		ssize_t n = write(t->fd, t->buf + done, t->used - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			t->err = -errno;
	}
	t->crc = libdeflate_crc32(t->crc, t->buf, t->used);
	t->used = 0;
}

/* t->few is left as it is. */
static void begin(struct tables_out *t, int fd)
{
	t->fd = fd;
	t->err = 0;
	t->crc = 0;
	t->buf = t->few;
	t->size = sizeof(t->few);
	t->used = 0;
	t->record = 0;
}

void tables_begin(struct tables_out *t, int fd)
{
	uint8_t *p;

	begin(t, fd);
	p = room(t, sizeof(magic));
	if (p)
		memcpy(p, magic, sizeof(magic));
}

void tables_begin_in(struct tables_out *t)
{
	begin(t, -1);
}

/* The length of the record that is complete. */
static void put_length(struct tables_out *t)
{
	if (t->record && !t->err)
		put_le(t->buf + t->record - 4, t->used - t->record, 4);
	t->record = 0;
}

static void record_over(struct tables_out *t)
{
	put_length(t);
	if (t->used >= WRITE_AT)
		flush(t);
}

/* Its first `len` bytes are the caller's to write; NULL: there was a failure. */
static uint8_t *new_record(struct tables_out *t, size_t len)
{
	uint8_t *p;

	record_over(t);
	p = room(t, len);
	if (p)
		t->record = (size_t)(p - t->buf) + RECORD_HEAD;
	return p;
}

static void begin_record(struct tables_out *t, uint16_t type)
{
	uint8_t *p = new_record(t, RECORD_HEAD);

	if (p)
		put_le(p, type, RECORD_HEAD);
}

void tables_record(struct tables_out *t, uint16_t type)
{
	assert(type != TABLES_END);
	begin_record(t, type);
}

void tables_put_record(struct tables_out *t, const void *bytes, size_t len)
{
	uint8_t *p;

	assert(len >= RECORD_HEAD);
	p = new_record(t, len);
	if (p)
		memcpy(p, bytes, len);
}

/* Behind it follow the bytes. */
static uint8_t *put_field_head(uint8_t *to, uint16_t field, size_t len)
{
	put_le(to, field, 2);
	put_le(to + 2, len, 2);
	return to + FIELD_HEAD;
}

void tables_put_bytes(struct tables_out *t, uint16_t field, const void *bytes, size_t len)
{
	uint8_t *p;

	assert(len <= TABLES_FIELD_MAX);
	if (len == 0)
		return;
	p = room(t, FIELD_HEAD + len);
	if (!p)
		return;
	memcpy(put_field_head(p, field, len), bytes, len);
}

void tables_put_pieces(struct tables_out *t, uint16_t field, const void *p, size_t len)
{
	for (size_t at = 0; at < len; at += TABLES_PIECE)
		tables_put_bytes(t, field, (const uint8_t *)p + at,
			len - at < TABLES_PIECE ? len - at : TABLES_PIECE);
}

size_t tables_pieces_len(size_t len)
{
	return RECORD_HEAD + (len + TABLES_PIECE - 1) / TABLES_PIECE * FIELD_HEAD + len;
}

uint8_t *tables_pieces_first(uint8_t *record)
{
	return record + RECORD_HEAD + FIELD_HEAD;
}

void tables_pieces_record(uint8_t *to, uint16_t type, uint16_t field, const void *p, size_t len)
{
	put_le(to, type, 4);
	put_le(to + 4, tables_pieces_len(len) - RECORD_HEAD, 4);
	to += RECORD_HEAD;
	for (size_t at = 0; at < len; at += TABLES_PIECE) {
		size_t n = len - at < TABLES_PIECE ? len - at : TABLES_PIECE;

		to = put_field_head(to, field, n);
		memcpy(to, (const uint8_t *)p + at, n);
		to += n;
	}
}

void tables_put(struct tables_out *t, uint16_t field, uint64_t value)
{
	size_t len = value == 0 ? 0 : NUMBER_MAX - (size_t)__builtin_clzll(value) / 8;
	uint8_t *p = len > 0 ? room(t, FIELD_HEAD + NUMBER_MAX) : NULL;

	if (!p)
		return;
	/* All its bytes, of which the last ones are not used: that is one store. */
	put_le(put_field_head(p, field, len), value, NUMBER_MAX);
	t->used -= NUMBER_MAX - len;
}

static void free_buf(struct tables_out *t)
{
	if (t->buf != t->few)
		free(t->buf);
	t->buf = t->few;
	t->size = sizeof(t->few);
}

int tables_end(struct tables_out *t)
{
	uint32_t crc;

	record_over(t);
	flush(t);
	crc = htole32(t->crc);
	begin_record(t, TABLES_END);
	tables_put_bytes(t, END_CRC, &crc, sizeof(crc));
	record_over(t);
	flush(t);
	free_buf(t);
	return t->err;
}

const void *tables_record_bytes(struct tables_out *t, size_t *ret_len)
{
	put_length(t);
	*ret_len = t->err ? 0 : t->used;
	return *ret_len ? t->buf : NULL;
}

void tables_reset(struct tables_out *t)
{
	t->err = 0;
	t->used = 0;
	t->record = 0;
}

void tables_end_in(struct tables_out *t)
{
	free_buf(t);
	tables_reset(t);
}

/* ---- reading ---- */

static uint64_t get_le(const uint8_t *p, size_t len)
{
	uint64_t le = 0;

	memcpy(&le, p, len);
	return le64toh(le);
}

/* A field at p, of at most `left` bytes; 0: it does not fit. Else its length with its head. */
static size_t field_at(const uint8_t *p, size_t left)
{
	size_t len;

	if (left < FIELD_HEAD)
		return 0;
	len = FIELD_HEAD + (size_t)get_le(p + 2, 2);
	return len <= left ? len : 0;
}

/* The record at p, in bounds; of its fields nothing is known. */
static bool head_at(const uint8_t *p, size_t left, struct tables_record *r)
{
	if (left < RECORD_HEAD || get_le(p + 2, 2) != 0)
		return false;
	r->type = (uint16_t)get_le(p, 2);
	r->fields = p + RECORD_HEAD;
	r->len = (size_t)get_le(p + 4, 4);
	return r->len <= left - RECORD_HEAD;
}

/* The same with all its fields. */
static bool record_at(const uint8_t *p, size_t left, struct tables_record *r)
{
	if (!head_at(p, left, r))
		return false;
	for (size_t at = 0; at < r->len;) {
		size_t len = field_at(r->fields + at, r->len - at);

		if (len == 0)
			return false;
		at += len;
	}
	return true;
}

/* One that is not the last of a file. */
static bool inner_record_at(const uint8_t *p, size_t left, struct tables_record *r)
{
	return record_at(p, left, r) && r->type != TABLES_END;
}

bool tables_is_record(const void *bytes, size_t len)
{
	struct tables_record r;

	return inner_record_at(bytes, len, &r) && r.len == len - RECORD_HEAD;
}

static bool is_good(struct tables_in *t)
{
	const uint8_t *p = t->map + sizeof(magic), *end = t->map + t->len;
	struct tables_record r;
	uint32_t crc;

	if (t->len < sizeof(magic) + END_LEN || memcmp(t->map, magic, sizeof(magic)) != 0)
		return false;
	t->end = end - END_LEN;
	if (!record_at(t->end, END_LEN, &r) || r.type != TABLES_END ||
		!tables_copy(&r, END_CRC, &crc, sizeof(crc)) ||
		le32toh(crc) != libdeflate_crc32(0, t->map, t->len - END_LEN))
		return false;
	while (p < t->end) {
		if (!inner_record_at(p, (size_t)(t->end - p), &r))
			return false;
		p = r.fields + r.len;
	}
	return true;
}

int tables_open(struct tables_in *t, int fd)
{
	struct stat st;
	void *map;

	*t = (struct tables_in){0};
	if (fstat(fd, &st) != 0)
		return -errno;
	if (st.st_size <= 0)
		return -EBADMSG;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	t->map = map;
	t->len = (size_t)st.st_size;
	if (!is_good(t)) {
		tables_close(t);
		return -EBADMSG;
	}
	tables_rewind(t);
	return 0;
}

void tables_close(struct tables_in *t)
{
	if (t->map)
		munmap((void *)(uintptr_t)t->map, t->len);
	*t = (struct tables_in){0};
}

void tables_rewind(struct tables_in *t)
{
	t->next = t->map ? t->map + sizeof(magic) : NULL;
}

bool tables_next(struct tables_in *t, struct tables_record *ret)
{
	/* Its fields were looked at by tables_open(). */
	if (t->next == t->end || !head_at(t->next, (size_t)(t->end - t->next), ret))
		return false;
	t->next = ret->fields + ret->len;
	return true;
}

const void *tables_get_next(
	const struct tables_record *r, uint16_t field, const void *after, size_t *ret_len)
{
	const uint8_t *p = r->fields, *end = r->fields + r->len;

	if (after) {
		p = (const uint8_t *)after - FIELD_HEAD;
		p += field_at(p, (size_t)(end - p));
	}
	while (p < end) {
		size_t len = field_at(p, (size_t)(end - p));

		if (get_le(p, 2) == field) {
			*ret_len = len - FIELD_HEAD;
			return p + FIELD_HEAD;
		}
		p += len;
	}
	*ret_len = 0;
	return NULL;
}

const void *tables_get_bytes(const struct tables_record *r, uint16_t field, size_t *ret_len)
{
	return tables_get_next(r, field, NULL, ret_len);
}

uint64_t tables_get(const struct tables_record *r, uint16_t field)
{
	size_t len;
	const void *p = tables_get_bytes(r, field, &len);

	return p && len <= NUMBER_MAX ? get_le(p, len) : 0;
}

bool tables_copy(const struct tables_record *r, uint16_t field, void *to, size_t len)
{
	size_t has;
	const void *p = tables_get_bytes(r, field, &has);

	if (!p || has != len)
		return false;
	memcpy(to, p, len);
	return true;
}
