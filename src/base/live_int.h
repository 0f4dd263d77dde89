/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the memory of live.h looks, for its writer (live.c) and its reader (live_tables.c).
 *
 * A page with the head; then chunks one after the other, each cut into slots of one class: a small
 * chunk has many slots, a large one has one. A raw chunk (live_raw_pieces()) has the heads of its
 * slots first; pieces of memory follow up to its end, one for each. The record begins
 * LIVE_RAW_LEAD bytes before the second page of a piece, or with the piece, if that is smaller than
 * a page (live_raw_small()). Behind the last chunk all is 0.
 *
 * Whether a slot has a record says its seq alone, which is written last and cleared first. All
 * versions of a record have one id, and the highest seq of them counts. Which slots are free is
 * known only in memory of the process. Numbers are those of the machine.
 */
#ifndef RPCRDMAFS_LIVE_INT_H
#define RPCRDMAFS_LIVE_INT_H

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <libdeflate.h>

#include "live.h"

#define LIVE_MAGIC       "rdmafsL"
#define LIVE_VERSION     3u
#define LIVE_PAGE        4096u
#define LIVE_UNIT        64u /* of a live_ref: slots begin at multiples of it */
#define LIVE_SIZE_MAX    (64ull << 30)
#define LIVE_SIZE_MIN    (8ull << 20)
#define LIVE_SMALL_CHUNK (64u << 10)
#define LIVE_CRC_MAX     4096u /* live_about.crc_max if the key does not say it */
/* As `minor`: it is of a raw chunk, and `group` is the type and the field. */
#define LIVE_RAW 0xffu
/* Bits in two bytes: damage of one makes no record a free slot. */
#define LIVE_FIRST_SEQ  (1ull << 32 | 1)
#define LIVE_COMPLETE   0x776f6c65u
#define LIVE_INCOMPLETE 0x6c61636bu

struct live_head {
	char magic[8];
	uint32_t version;
	_Atomic uint32_t state; /* LIVE_COMPLETE or LIVE_INCOMPLETE */
	uint64_t size;          /* of the file */
	_Atomic uint64_t used;  /* where the last chunk ends; it may lag behind by one */
};

/* At a chunk's begin; a slot follows. */
struct live_chunk {
	_Atomic uint64_t what; /* live_chunk_word(): not before the chunk is there */
	uint64_t raw_len;      /* of a raw chunk: all of its bytes */
	uint64_t raw_size;     /* of a piece */
	uint64_t raw_cnt;
	uint64_t reserved; /* the writer's: where the slot is large, its bytes that have pages */
	uint64_t zero[3];
};

/* Constant as long as the slot has this record; the checksum covers it. */
struct live_about {
	uint64_t id; /* the seq of the first version */
	uint64_t group;
	uint32_t len; /* bytes of the record, which follows the slot's head */
	uint16_t count_field;
	uint8_t rank, minor;
	uint32_t crc_max; /* bytes of the record that the checksum covers, at most */
	uint32_t zero;
};

struct live_slot {
	_Atomic uint64_t seq; /* 0: it is free */
	_Atomic uint64_t count;
	struct live_about about;
	uint32_t crc;
	uint32_t zero;
	_Atomic uint64_t place; /* of a raw slot: live_raw_place() */
};

static_assert(sizeof(struct live_head) <= LIVE_PAGE, "the head is one page");
static_assert(sizeof(struct live_chunk) == LIVE_UNIT && sizeof(struct live_slot) == LIVE_UNIT,
	"slots have their place");
static_assert(sizeof(struct live_about) == 32, "no byte of it is left out, and it is of words");

static inline struct live_head *live_head_in(uint8_t *map)
{
	return (struct live_head *)map;
}

static inline struct live_slot *live_slot_in(uint8_t *map, live_ref ref)
{
	return (struct live_slot *)(map + (size_t)ref * LIVE_UNIT);
}

/* ---- classes ---- */

enum {
	LIVE_SMALL = 12,
	LIVE_CLASSES = LIVE_SMALL + 9,
	LIVE_RAW_CLASS = 32
};

static const uint16_t live_small_sizes[LIVE_SMALL] = {
	128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 4352};

/* Bytes of a slot with its head. A large chunk has a page more than a power of two. */
static inline size_t live_slot_size(unsigned int cls)
{
	if (cls < LIVE_SMALL)
		return live_small_sizes[cls];
	if (cls == LIVE_RAW_CLASS)
		return sizeof(struct live_slot);
	return LIVE_PAGE + ((size_t)(2 * LIVE_PAGE) << (cls - LIVE_SMALL)) -
	       sizeof(struct live_chunk);
}

static inline size_t live_chunk_len(unsigned int cls)
{
	return cls < LIVE_SMALL ? LIVE_SMALL_CHUNK
				: live_slot_size(cls) + sizeof(struct live_chunk);
}

static inline size_t live_slots_of(unsigned int cls)
{
	return (live_chunk_len(cls) - sizeof(struct live_chunk)) / live_slot_size(cls);
}

/* The one of number i in a chunk. */
static inline live_ref live_slot_ref(size_t chunk, unsigned int cls, size_t i)
{
	return (live_ref)((chunk + sizeof(struct live_chunk) + i * live_slot_size(cls)) /
			  LIVE_UNIT);
}

/* Bytes of a piece before its record. */
static inline size_t live_raw_before(uint64_t raw_size)
{
	return raw_size < LIVE_PAGE ? 0 : LIVE_PAGE - LIVE_RAW_LEAD;
}

/* Bytes of a piece that a record may have. */
static inline size_t live_raw_room(uint64_t raw_size)
{
	return raw_size - live_raw_before(raw_size);
}

/* Where in a raw chunk the piece of slot i begins. */
static inline size_t live_raw_piece(const struct live_chunk *c, uint64_t i)
{
	return c->raw_len - (c->raw_cnt - i) * c->raw_size;
}

static inline size_t live_room(unsigned int cls)
{
	return live_slot_size(cls) - sizeof(struct live_slot);
}

/* LIVE_CLASSES: a record of `len` bytes is too long. */
static inline unsigned int live_class_of(size_t len)
{
	unsigned int cls = 0;

	/* Most records are small, and have a class several times. */
	while (cls < LIVE_SMALL && live_small_sizes[cls] - sizeof(struct live_slot) < len)
		cls++;
	while (cls >= LIVE_SMALL && cls < LIVE_CLASSES && live_room(cls) < len)
		cls++;
	return cls;
}

static inline uint64_t live_chunk_word(unsigned int cls)
{
	return 0x6c766368ull << 32 | cls << 16 | (0xffff ^ cls);
}

/* Of the numbers beside a record: a few instructions, where a checksum takes longer. */
static inline uint32_t live_mix(uint64_t seq, const struct live_about *a)
{
	uint64_t words[sizeof(*a) / 8], mix = seq;

	memcpy(words, a, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		mix = (mix ^ words[i]) * 0x9e3779b97f4a7c15ull;
		mix ^= mix >> 29;
	}
	return (uint32_t)(mix >> 32 ^ mix);
}

static inline uint32_t live_crc(uint64_t seq, const struct live_about *a, const void *record)
{
	uint32_t mix = live_mix(seq, a), max = a->crc_max;

	return max == 0 ? mix : libdeflate_crc32(mix, record, a->len < max ? a->len : max);
}

#endif
