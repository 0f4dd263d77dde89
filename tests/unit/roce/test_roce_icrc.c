/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC of packets as they come: with any Identification, and changed on the way. */
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "roce_icrc.h"
#include "roce_wire.h"

#define PORT 50123u

static const struct roce_flow_addrs v4 = {.src = {10, 0, 0, 1}, .dst = {10, 0, 0, 2}};
static const struct roce_flow_addrs v6 = {
	.is_v6 = true, .src = {0xfe, 0x80, [15] = 1}, .dst = {0xfe, 0x80, [15] = 2}};
static struct roce_icrc_ids ids;
static uint8_t packet[ROCE_PACKET_MAX];
static uint16_t found; /* Identification */

/* Annex A17.3.3, over a packet with this Identification. Its length with ICRC. */
static size_t make(const struct roce_flow_addrs *a, uint16_t id, size_t payload)
{
	uint8_t m[8 + 40 + 8 + ROCE_PACKET_MAX] = {0}, *p = m + 8;
	size_t body = ROCE_BTH_LEN + payload, udp = 8 + body + 4, head;
	uLong crc;

	for (size_t i = 0; i < body; i++)
		packet[i] = (uint8_t)(i * 31 + payload);
	memset(m, 0xff, 8);
	if (a->is_v6) {
		head = 40;
		memset(p, 0xff, 8);
		p[0] = 0x6f;
		p[4] = (uint8_t)(udp >> 8);
		p[5] = (uint8_t)udp;
		p[6] = 17;
		memcpy(p + 8, a->src, 16);
		memcpy(p + 24, a->dst, 16);
	} else {
		head = 20;
		p[0] = 0x45;
		p[1] = 0xff;
		p[2] = (uint8_t)((udp + 20) >> 8);
		p[3] = (uint8_t)(udp + 20);
		p[4] = (uint8_t)(id >> 8);
		p[5] = (uint8_t)id;
		p[6] = 0x40;
		p[8] = 0xff;
		p[9] = 17;
		p[10] = p[11] = 0xff;
		memcpy(p + 12, a->src, 4);
		memcpy(p + 16, a->dst, 4);
	}
	p += head;
	p[0] = PORT >> 8;
	p[1] = PORT & 0xff;
	p[2] = ROCE_PORT >> 8;
	p[3] = ROCE_PORT & 0xff;
	p[4] = (uint8_t)(udp >> 8);
	p[5] = (uint8_t)udp;
	p[6] = p[7] = 0xff;
	memcpy(p + 8, packet, body);
	p[8 + 4] = 0xff;
	crc = crc32(0, m, (uInt)(8 + head + 8 + body));
	for (int i = 0; i < 4; i++)
		packet[body + (size_t)i] = (uint8_t)(crc >> 8 * i);
	return body + 4;
}

static bool is_whole(const struct roce_flow_addrs *a, size_t len)
{
	return roce_icrc_check(&ids, a, PORT, packet, len, NULL, 0, &found);
}

Test(roce_icrc, any_identification_will_do)
{
	static const size_t payloads[] = {0, 4, 16, 1024, 4096, 4112};

	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		for (unsigned int id = 0; id < 65536; id += 251) {
			cr_assert(is_whole(&v4, make(&v4, (uint16_t)id, payloads[i])), "%zu, %u",
				payloads[i], id);
			cr_assert_eq(found, id);
		}
		cr_assert(is_whole(&v4, make(&v4, 0xffff, payloads[i])));
		cr_assert_eq(found, 0xffff);
		cr_assert(is_whole(&v6, make(&v6, 0, payloads[i])));
		cr_assert_eq(found, 0);
	}
}

/* Of 65536 changes one may look like another Identification. */
Test(roce_icrc, what_was_changed_is_not_whole)
{
	size_t len = make(&v4, 0x1234, 64);
	unsigned int missed = 0;

	for (size_t bit = 0; bit < 8 * len; bit++) {
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* FECN, BECN: these may change. */
		missed += bit / 8 != 4 && is_whole(&v4, len);
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	cr_assert_leq(missed, 1);
	cr_assert(is_whole(&v4, len));
	cr_assert_not(roce_icrc_check(&ids, &v6, PORT, packet, len, NULL, 0, &found));
	len = make(&v6, 0, 64);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert(bit / 8 == 4 || !is_whole(&v6, len));
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	cr_assert_not(roce_icrc_check(&ids, &v6, PORT + 1, packet, len, NULL, 0, &found));
}

Test(roce_icrc, piece_by_piece_it_is_the_same)
{
	size_t len = make(&v4, 0, 1000);
	uint32_t crc = roce_icrc_begin(&v4, 0, PORT, 8 + len, packet);
	uint8_t out[4];

	for (size_t i = ROCE_BTH_LEN; i < len - 4; i += 7)
		crc = roce_icrc_add(crc, packet + i, len - 4 - i < 7 ? len - 4 - i : 7);
	roce_icrc_put(out, crc);
	cr_assert_arr_eq(out, packet + len - 4, 4);
}
