/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CRC of a message is what it leaves as a polynomial modulo
 * P = x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1.
 * P divides M = x^300 + x^155 + x^117 + x^89 + 1, the only multiple of five terms up to degree 420.
 * So 64 bits at the front may be taken away if they are added (XOR) 145, 183, 211 and 300 bits
 * further on: that is a multiple of M. Some dozens of bytes are left at the end, with the same
 * CRC as all. Fourteen operations on registers take away eight bytes; a table takes eight loads.
 * The idea is S. Russell's ("Chorba: a novel CRC32 implementation", 2024).
 *
 * The first bit of a message is the lowest one of its first byte, so "further on" in words of the
 * machine is towards higher bits.
 */
#include "roce_crc.h"

#include <endian.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define WORDS 6u                 /* until a word's bits have come down: 300 / 64 + 2 */
#define BLOCK (WORDS * 8u)       /* bytes */
#define AHEAD ((WORDS - 1) * 8u) /* where the bits of a block end behind it */
#define LEAST 256u               /* bytes, below which a table is as good */

static bool has_instruction(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
	return (getauxval(AT_HWCAP) & (HWCAP_CRC32 | HWCAP_PMULL)) != 0;
#else
	return false;
#endif
}

static inline uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* add: what belongs to this word, and to the five behind it. */
static inline __attribute__((always_inline)) void take_away(
	uint64_t add[WORDS], unsigned int i, const uint8_t *p)
{
	uint64_t w = word_at(p + (size_t)8 * i) ^ add[i % WORDS];

	add[(i + 2) % WORDS] ^= w << (145 - 128) ^ w << (183 - 128);
	add[(i + 3) % WORDS] ^= w >> (192 - 145) ^ w >> (192 - 183) ^ w << (211 - 192);
	add[(i + 4) % WORDS] ^= w >> (256 - 211) ^ w << (300 - 256);
	add[(i + 5) % WORDS] = w >> (320 - 300); /* nothing was added there before */
}

uint32_t roce_crc_own(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t add[WORDS] = {(uint32_t)~crc};
	uint8_t rest[BLOCK + AHEAD];

	if (len < sizeof(rest))
		return libdeflate_crc32(crc, p, len);
	for (; len >= sizeof(rest); p += BLOCK, len -= BLOCK) {
		take_away(add, 0, p);
		take_away(add, 1, p);
		take_away(add, 2, p);
		take_away(add, 3, p);
		take_away(add, 4, p);
		take_away(add, 5, p);
	}
	memcpy(rest, p, len);
	for (unsigned int i = 0; i + 1 < WORDS; i++) {
		uint64_t v = htole64(word_at(p + (size_t)8 * i) ^ add[i]);

		memcpy(rest + (size_t)8 * i, &v, sizeof(v));
	}
	return libdeflate_crc32(UINT32_MAX, rest, len); /* a register of zeros */
}

uint32_t roce_crc(uint32_t crc, const void *p, size_t len)
{
	return len < LEAST || has_instruction() ? libdeflate_crc32(crc, p, len)
						: roce_crc_own(crc, p, len);
}
