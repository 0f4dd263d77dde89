/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRC without a table or an instruction, beside zlib's. */
#include <criterion/criterion.h>
#include <zlib.h>

#include "roce_crc.h"

static uint8_t bytes[8192];

static void fill(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		x = x * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

TestSuite(roce_crc, .init = fill);

static void is_the_same(uint32_t before, const uint8_t *p, size_t len)
{
	uint32_t want = (uint32_t)crc32(before, p, (uInt)len);

	cr_assert_eq(roce_crc_own(before, p, len), want, "%zu bytes behind %#x", len, before);
	cr_assert_eq(roce_crc(before, p, len), want, "%zu bytes behind %#x", len, before);
}

Test(roce_crc, of_any_length)
{
	for (size_t len = 0; len <= 700; len++)
		is_the_same(0, bytes, len);
	is_the_same(0, bytes, sizeof(bytes));
}

Test(roce_crc, of_what_is_not_aligned)
{
	for (size_t at = 0; at < 16; at++)
		for (size_t len = 4080; len <= 4112; len++)
			is_the_same(0, bytes + at, len);
}

Test(roce_crc, goes_on_from_what_is_before)
{
	static const uint32_t before[] = {1, 0xffffffff, 0xdebb20e3, 0x80000000};

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		for (size_t len = 0; len <= 700; len += 7)
			is_the_same(before[i], bytes, len);
}

/* In each place: what one bit is in the end depends on where it is alone. */
Test(roce_crc, of_one_bit)
{
	static uint8_t zeros[512];

	for (size_t bit = 0; bit < 8 * sizeof(zeros); bit++) {
		zeros[bit / 8] = (uint8_t)(1u << bit % 8);
		is_the_same(0, zeros, sizeof(zeros));
		zeros[bit / 8] = 0;
	}
}

/* x^300 + x^155 + x^117 + x^89 + 1 is a multiple of the polynomial. */
Test(roce_crc, what_is_taken_away_is_a_multiple)
{
	uint32_t power = 1, sum = 1;

	for (unsigned int i = 1; i <= 300; i++) {
		power = power << 1 ^ (power >> 31 ? 0x04c11db7u : 0);
		if (i == 300 || i == 155 || i == 117 || i == 89)
			sum ^= power;
	}
	cr_assert_eq(sum, 0);
}
