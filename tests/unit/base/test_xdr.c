/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xdr.h"

/* `len` bytes on the heap, no more: ASan sees a read past them. */
static uint8_t *exact(const void *bytes, size_t len)
{
	uint8_t *buf = malloc(len ? len : 1);

	cr_assert_not_null(buf);
	if (len)
		memcpy(buf, bytes, len);
	return buf;
}

/* ---- encoding ---- */

Test(xdr, encodes_big_endian)
{
	static const uint8_t want[] = {0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
		0x17, 0x18, 0, 0, 0, 1, 0, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 5, 'h', 'e', 'l',
		'l', 'o', 0, 0, 0, 0, 0, 0, 0};
	uint8_t buf[sizeof(want)];
	struct xdr_enc x;

	memset(buf, 0xee, sizeof(buf));
	xdr_enc_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 0x01020304);
	xdr_put_u64(&x, 0x1112131415161718);
	xdr_put_bool(&x, true);
	xdr_put_bool(&x, false);
	xdr_put_fixed(&x, "abc", 3);
	xdr_put_opaque(&x, "hello", 5);
	xdr_put_opaque(&x, NULL, 0);
	cr_assert_not(x.failed);
	cr_assert_eq(xdr_enc_len(&x), sizeof(want));
	cr_assert_eq(memcmp(buf, want, sizeof(want)), 0);
}

Test(xdr, encoder_that_is_full_stays_failed_and_writes_nothing)
{
	uint8_t buf[8];
	struct xdr_enc x;

	memset(buf, 0xee, sizeof(buf));
	xdr_enc_init(&x, buf, 7);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 2);
	cr_assert(x.failed);
	xdr_put_fixed(&x, NULL, 0);
	xdr_put_fixed(&x, "a", 1);
	xdr_put_bool(&x, true);
	cr_assert_null(xdr_put_reserve(&x, 0));
	xdr_patch_u32(&x, 0, 77);
	cr_assert_eq(xdr_enc_len(&x), 4);
	cr_assert_eq(memcmp(buf, "\0\0\0\1\xee\xee\xee\xee", 8), 0);
}

Test(xdr, each_put_is_refused_at_each_shortage)
{
	for (size_t room = 0; room < 16; room++) {
		uint8_t *buf = exact("0123456789abcdef", room);
		struct xdr_enc x;

		xdr_enc_init(&x, buf, room);
		xdr_put_u32(&x, 1);
		cr_assert_eq(x.failed, room < 4);
		xdr_enc_init(&x, buf, room);
		xdr_put_u64(&x, 1);
		cr_assert_eq(x.failed, room < 8);
		xdr_enc_init(&x, buf, room);
		xdr_put_fixed(&x, "12345", 5);
		cr_assert_eq(x.failed, room < 8);
		xdr_enc_init(&x, buf, room);
		xdr_put_opaque(&x, "12345", 5);
		cr_assert_eq(x.failed, room < 12);
		xdr_enc_init(&x, buf, room);
		cr_assert_eq(xdr_put_reserve(&x, 12) == NULL, room < 12);
		cr_assert_eq(x.failed, room < 12);
		free(buf);
	}
}

Test(xdr, huge_lengths_do_not_wrap_the_encoder)
{
	static const size_t lens[] = {UINT32_MAX - 3, UINT32_MAX, (size_t)UINT32_MAX + 1,
		SIZE_MAX - 3, SIZE_MAX - 2, SIZE_MAX};
	uint8_t buf[16];
	struct xdr_enc x;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		xdr_enc_init(&x, buf, sizeof(buf));
		xdr_put_fixed(&x, "", lens[i]);
		cr_assert(x.failed);
		xdr_enc_init(&x, buf, sizeof(buf));
		xdr_put_opaque(&x, "", lens[i]);
		cr_assert(x.failed);
	}
	xdr_enc_init(&x, buf, sizeof(buf));
	cr_assert_null(xdr_put_reserve(&x, SIZE_MAX - 3));
}

Test(xdr, encoder_without_memory_takes_nothing)
{
	struct xdr_enc x;

	xdr_enc_init(&x, NULL, 0);
	xdr_put_fixed(&x, NULL, 0);
	cr_assert_not(x.failed);
	cr_assert_eq(xdr_enc_len(&x), 0);
	xdr_put_u32(&x, 0);
	cr_assert(x.failed);
}

Test(xdr, reserve_gives_raw_room_in_the_stream)
{
	uint8_t buf[12];
	struct xdr_enc x;
	uint8_t *room;

	memset(buf, 0xee, sizeof(buf));
	xdr_enc_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 7);
	room = xdr_put_reserve(&x, 8);
	cr_assert_eq(room, buf + 4);
	cr_assert_eq(room[0], 0xee);
	cr_assert_eq(xdr_enc_len(&x), 12);
}

Test(xdr, patch_overwrites_an_earlier_word)
{
	uint8_t buf[12];
	struct xdr_enc x;

	xdr_enc_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 2);
	xdr_put_u32(&x, 3);
	xdr_patch_u32(&x, 4, 0xa1b2c3d4);
	xdr_patch_u32(&x, 8, 9);
	cr_assert_eq(memcmp(buf, "\0\0\0\1\xa1\xb2\xc3\xd4\0\0\0\x09", 12), 0);
	cr_assert_eq(xdr_enc_len(&x), 12);
}

Test(xdr, patch_of_what_was_not_written_trips, .signal = SIGABRT)
{
	uint8_t buf[12];
	struct xdr_enc x;

	xdr_enc_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 1);
	xdr_patch_u32(&x, 4, 2);
}

/* ---- decoding ---- */

typedef void (*getter_fn)(struct xdr_dec *x);

static void get_u32(struct xdr_dec *x)
{
	cr_assert(xdr_get_u32(x) == 5 || x->failed);
}

static void get_u64(struct xdr_dec *x)
{
	cr_assert(xdr_get_u64(x) == 0x0000000568656c6c || x->failed);
}

static void get_fixed(struct xdr_dec *x)
{
	const uint8_t *p = xdr_get_fixed(x, 9);

	cr_assert((p && !memcmp(p + 4, "hello", 5)) || x->failed);
}

static void get_opaque(struct xdr_dec *x)
{
	uint32_t len = 4711;
	const uint8_t *p = xdr_get_opaque(x, 5, &len);

	if (p)
		cr_assert(len == 5 && !memcmp(p, "hello", 5));
	else
		cr_assert_eq(len, 4711);
}

static void skip_opaque(struct xdr_dec *x)
{
	xdr_skip_opaque(x, 5);
}

static void get_count(struct xdr_dec *x)
{
	cr_assert_eq(xdr_get_count(x, 5, 1), x->failed ? 0 : 5);
}

Test(xdr, each_getter_fails_cleanly_at_each_truncation)
{
	static const char stream[] = "\0\0\0\5hello\0\0\0";
	static const struct {
		getter_fn get;
		size_t needs, takes;
	} cases[] = {
		{get_u32, 4, 4},
		{get_u64, 8, 8},
		{get_fixed, 12, 12},
		{get_opaque, 12, 12},
		{skip_opaque, 12, 12},
		{get_count, 9, 4},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t len = 0; len <= 12; len++) {
			uint8_t *buf = exact(stream, len);
			struct xdr_dec x;

			xdr_dec_init(&x, buf, len);
			cases[i].get(&x);
			cr_assert_eq(x.failed, len < cases[i].needs, "case %zu len %zu", i, len);
			if (!x.failed) {
				cr_assert_eq(xdr_dec_pos(&x), cases[i].takes);
				cr_assert_eq(xdr_dec_left(&x), len - cases[i].takes);
			}
			free(buf);
		}
	}
}

Test(xdr, bool_is_zero_or_one)
{
	struct xdr_dec x;

	xdr_dec_init(&x, "\0\0\0\0\0\0\0\1\0\0\0\2", 12);
	cr_assert_eq(xdr_get_bool(&x), false);
	cr_assert_eq(xdr_get_bool(&x), true);
	cr_assert_not(x.failed);
	cr_assert_eq(xdr_get_bool(&x), false);
	cr_assert(x.failed);
	xdr_dec_init(&x, "\1\0\0\0", 4);
	cr_assert_eq(xdr_get_bool(&x), false);
	cr_assert(x.failed);
	xdr_dec_init(&x, "\0\0\0", 3);
	cr_assert_eq(xdr_get_bool(&x), false);
	cr_assert(x.failed);
}

Test(xdr, after_a_failure_nothing_more_is_returned)
{
	uint32_t len = 4711;
	struct xdr_dec x;

	xdr_dec_init(&x, "\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1", 16);
	cr_assert_eq(xdr_get_u32(&x), 1);
	xdr_fail(&x);
	cr_assert_eq(xdr_get_u32(&x), 0);
	cr_assert_eq(xdr_get_u64(&x), 0);
	cr_assert_eq(xdr_get_bool(&x), false);
	cr_assert_null(xdr_get_fixed(&x, 0));
	cr_assert_null(xdr_get_fixed(&x, 4));
	cr_assert_null(xdr_get_opaque(&x, 100, &len));
	cr_assert_eq(len, 4711);
	xdr_skip_opaque(&x, 100);
	cr_assert_eq(xdr_get_count(&x, 100, 0), 0);
	cr_assert_eq(xdr_dec_left(&x), 0);
	cr_assert_eq(xdr_dec_pos(&x), 4);
	cr_assert(x.failed);
}

Test(xdr, opaque_lengths_near_the_end_of_the_range_are_refused)
{
	static const char *const words[] = {"\xff\xff\xff\xff", "\xff\xff\xff\xfe",
		"\xff\xff\xff\xfd", "\xff\xff\xff\xfc", "\x80\0\0\0", "\x7f\xff\xff\xff",
		"\0\0\0\x09"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint8_t bytes[12] = {0};
		uint32_t len = 4711;
		struct xdr_dec x;
		uint8_t *buf;

		memcpy(bytes, words[i], 4);
		buf = exact(bytes, sizeof(bytes));
		xdr_dec_init(&x, buf, sizeof(bytes));
		cr_assert_null(xdr_get_opaque(&x, SIZE_MAX, &len));
		cr_assert(x.failed);
		cr_assert_eq(len, 4711);
		xdr_dec_init(&x, buf, sizeof(bytes));
		xdr_skip_opaque(&x, UINT32_MAX);
		cr_assert(x.failed);
		free(buf);
	}
}

Test(xdr, fixed_lengths_near_the_end_of_the_range_are_refused)
{
	struct xdr_dec x;

	for (size_t below = 0; below < 5; below++) {
		xdr_dec_init(&x, "abcd", 4);
		cr_assert_null(xdr_get_fixed(&x, SIZE_MAX - below));
		cr_assert(x.failed);
	}
}

Test(xdr, opaque_is_bounded_by_the_callers_maximum)
{
	uint32_t len = 4711;
	struct xdr_dec x;

	xdr_dec_init(&x, "\0\0\0\5hello\0\0\0", 12);
	cr_assert_null(xdr_get_opaque(&x, 4, &len));
	cr_assert(x.failed);
	cr_assert_eq(len, 4711);
}

Test(xdr, empty_opaque_at_the_end_is_not_a_failure)
{
	uint32_t len = 4711;
	struct xdr_dec x;

	xdr_dec_init(&x, "\0\0\0\0", 4);
	cr_assert_not_null(xdr_get_opaque(&x, 0, &len));
	cr_assert_eq(len, 0);
	cr_assert_not(x.failed);

	xdr_dec_init(&x, NULL, 0);
	cr_assert_not_null(xdr_get_fixed(&x, 0));
	cr_assert_eq(xdr_dec_left(&x), 0);
	cr_assert_not(x.failed);
	cr_assert_eq(xdr_get_u32(&x), 0);
	cr_assert(x.failed);
}

Test(xdr, count_is_bounded_by_maximum_and_by_what_is_there)
{
	static const uint8_t stream[16] = {0, 0, 0, 3};
	static const uint8_t all_ones[8] = {255, 255, 255, 255};
	struct xdr_dec x;

	xdr_dec_init(&x, stream, sizeof(stream));
	cr_assert_eq(xdr_get_count(&x, 3, 4), 3);
	cr_assert_eq(xdr_dec_pos(&x), 4);
	xdr_dec_init(&x, stream, sizeof(stream));
	cr_assert_eq(xdr_get_count(&x, 2, 4), 0);
	cr_assert(x.failed);
	xdr_dec_init(&x, stream, sizeof(stream) - 1);
	cr_assert_eq(xdr_get_count(&x, 3, 4), 0);
	cr_assert(x.failed);
	xdr_dec_init(&x, stream, sizeof(stream));
	cr_assert_eq(xdr_get_count(&x, 3, SIZE_MAX), 0);
	cr_assert(x.failed);
	xdr_dec_init(&x, all_ones, sizeof(all_ones));
	cr_assert_eq(xdr_get_count(&x, UINT32_MAX, 4), 0);
	cr_assert(x.failed);
	xdr_dec_init(&x, all_ones, sizeof(all_ones)); /* void items take no room */
	cr_assert_eq(xdr_get_count(&x, UINT32_MAX, 0), UINT32_MAX);
	cr_assert_not(x.failed);
}

/* ---- property: what was put is got back, and no prefix of it is accepted whole ---- */

enum item_kind {
	ITEM_U32,
	ITEM_U64,
	ITEM_BOOL,
	ITEM_FIXED,
	ITEM_OPAQUE,
	ITEM_KINDS,
};

struct item {
	enum item_kind kind;
	uint64_t value;
	size_t len;
	uint8_t bytes[40];
};

static uint64_t rng_state = 0x9e3779b97f4a7c15;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static struct item random_item(void)
{
	struct item it = {.kind = (enum item_kind)(rng() % ITEM_KINDS), .value = rng()};

	it.len = rng() % (sizeof(it.bytes) + 1);
	for (size_t i = 0; i < it.len; i++)
		it.bytes[i] = (uint8_t)rng();
	return it;
}

static void put_item(struct xdr_enc *x, const struct item *it)
{
	switch (it->kind) {
	case ITEM_U32:
		xdr_put_u32(x, (uint32_t)it->value);
		break;
	case ITEM_U64:
		xdr_put_u64(x, it->value);
		break;
	case ITEM_BOOL:
		xdr_put_bool(x, it->value & 1);
		break;
	case ITEM_FIXED:
		xdr_put_fixed(x, it->bytes, it->len);
		break;
	case ITEM_OPAQUE:
		xdr_put_opaque(x, it->bytes, it->len);
		break;
	case ITEM_KINDS:
		cr_assert_fail();
	}
}

static bool get_item(struct xdr_dec *x, const struct item *it)
{
	const uint8_t *p;
	uint32_t len;

	switch (it->kind) {
	case ITEM_U32:
		return xdr_get_u32(x) == (uint32_t)it->value;
	case ITEM_U64:
		return xdr_get_u64(x) == it->value;
	case ITEM_BOOL:
		return xdr_get_bool(x) == (it->value & 1);
	case ITEM_FIXED:
		p = xdr_get_fixed(x, it->len);
		return p && !memcmp(p, it->bytes, it->len);
	case ITEM_OPAQUE:
		p = xdr_get_opaque(x, sizeof(it->bytes), &len);
		return p && len == it->len && !memcmp(p, it->bytes, len);
	case ITEM_KINDS:
		break;
	}
	return false;
}

Test(xdr, random_streams_come_back_and_no_prefix_does)
{
	for (int round = 0; round < 300; round++) {
		struct item items[8];
		uint8_t bytes[8 * 48];
		struct xdr_enc e;
		size_t total;

		xdr_enc_init(&e, bytes, sizeof(bytes));
		for (int i = 0; i < 8; i++) {
			items[i] = random_item();
			put_item(&e, &items[i]);
		}
		cr_assert_not(e.failed);
		total = xdr_enc_len(&e);
		cr_assert_eq(total % 4, 0);

		for (size_t len = 0; len <= total; len++) {
			uint8_t *buf = exact(bytes, len);
			struct xdr_dec d;

			xdr_dec_init(&d, buf, len);
			for (int i = 0; i < 8; i++) {
				bool same = get_item(&d, &items[i]);

				cr_assert(same || d.failed, "round %d item %d", round, i);
			}
			cr_assert_eq(d.failed, len < total);
			free(buf);
		}
	}
}

Test(xdr, random_bytes_never_lead_outside)
{
	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[64];
		size_t len = rng() % (sizeof(bytes) + 1);
		uint8_t *buf;
		struct xdr_dec d;

		for (size_t i = 0; i < len; i++)
			bytes[i] = rng() % 4 ? (uint8_t)(rng() % 8) * (i % 4 == 3) : (uint8_t)rng();
		buf = exact(bytes, len);
		xdr_dec_init(&d, buf, len);
		while (xdr_dec_left(&d)) {
			struct item it = random_item();

			get_item(&d, &it);
			if (!d.failed && rng() % 4 == 0)
				(void)xdr_get_count(&d, (uint32_t)rng(), rng() % 9);
			cr_assert(d.p >= d.base && d.p <= d.end);
			if (it.kind == ITEM_FIXED && !it.len && rng() % 2)
				break;
		}
		free(buf);
	}
}
