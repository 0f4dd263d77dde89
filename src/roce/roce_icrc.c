/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_icrc.h"
#include "roce_crc.h"
#include "roce_wire.h"

#include <string.h>

#define IPV4_LEN 20u
#define IPV6_LEN 40u
#define UDP_LEN  8u
#define IP_UDP   17u

static uint8_t *put_bytes(uint8_t *p, const void *v, size_t len)
{
	memcpy(p, v, len);
	return p + len;
}

/* Type of service, time to live and checksum are ones. */
static uint8_t *put_ipv4(uint8_t *p, const struct roce_flow_addrs *a, uint16_t id, size_t udp_len)
{
	p = roce_wire_put16(p, 0x45ff);
	p = roce_wire_put16(p, (uint32_t)(IPV4_LEN + udp_len));
	p = roce_wire_put32(p, (uint32_t)id << 16 | 0x4000); /* do not fragment */
	p = roce_wire_put32(p, 0xff00ffffu | IP_UDP << 16);
	return put_bytes(put_bytes(p, a->src, 4), a->dst, 4);
}

/* Traffic class, flow label and hop limit are ones. */
static uint8_t *put_ipv6(uint8_t *p, const struct roce_flow_addrs *a, size_t udp_len)
{
	p = roce_wire_put32(p, 0x6fffffffu);
	p = roce_wire_put32(p, (uint32_t)udp_len << 16 | IP_UDP << 8 | 0xff);
	return put_bytes(put_bytes(p, a->src, 16), a->dst, 16);
}

uint32_t roce_icrc_add(uint32_t crc, const void *p, size_t len)
{
	return roce_crc(crc, p, len);
}

uint32_t roce_icrc_begin(const struct roce_flow_addrs *a, uint16_t id, uint16_t src_port,
	size_t udp_len, const uint8_t bth[ROCE_BTH_LEN])
{
	uint8_t head[8 + IPV6_LEN + UDP_LEN + ROCE_BTH_LEN], *p = head;

	memset(p, 0xff, 8);
	p = a->is_v6 ? put_ipv6(p + 8, a, udp_len) : put_ipv4(p + 8, a, id, udp_len);
	p = roce_wire_put16(roce_wire_put16(p, src_port), ROCE_PORT);
	p = roce_wire_put16(roce_wire_put16(p, (uint32_t)udp_len), 0xffff);
	p = put_bytes(p, bth, ROCE_BTH_LEN);
	p[4 - (int)ROCE_BTH_LEN] = 0xff; /* FECN, BECN, reserved */
	return roce_icrc_add(0, head, (size_t)(p - head));
}

/* ---- Identifications ---- */

/* A vector of a basis where each has a highest bit of its own. */
static void insert(uint32_t basis[32], uint16_t ids[32], uint32_t v, uint16_t id)
{
	for (int bit = 31; bit >= 0 && v != 0; bit--) {
		if (!(v >> bit & 1))
			continue;
		if (basis[bit] == 0) {
			basis[bit] = v;
			ids[bit] = id;
			return;
		}
		v ^= basis[bit];
		id ^= ids[bit];
	}
}

/* Of messages of the same length what differs in the CRC depends on what differs in them alone. */
static void learn(uint32_t basis[32], uint16_t ids[32], size_t len)
{
	static const uint8_t zeros[IPV4_LEN + UDP_LEN + ROCE_PACKET_MAX];
	uint32_t none;

	memset(basis, 0, 32 * sizeof(basis[0]));
	none = roce_icrc_add(roce_icrc_add(0, zeros, 2), zeros, len);
	for (int bit = 0; bit < 16; bit++) {
		uint8_t id[2];

		roce_wire_put16(id, 1u << bit);
		insert(basis, ids, roce_icrc_add(roce_icrc_add(0, id, 2), zeros, len) ^ none,
			(uint16_t)(1u << bit));
	}
}

/* The Identification that makes this difference, if one does. */
static bool find_id(struct roce_icrc_ids *ids, size_t len, uint32_t diff, uint16_t *ret)
{
	size_t at = len / 4 % ROCE_ICRC_LENS;

	if (ids->lens[at].len != len) {
		learn(ids->lens[at].basis, ids->lens[at].id, len);
		ids->lens[at].len = len;
	}
	*ret = 0;
	for (int bit = 31; bit >= 0 && diff != 0; bit--)
		if (diff >> bit & 1) {
			diff ^= ids->lens[at].basis[bit];
			*ret ^= ids->lens[at].id[bit];
		}
	return diff == 0;
}

bool roce_icrc_check(struct roce_icrc_ids *ids, const struct roce_flow_addrs *a, uint16_t src_port,
	const uint8_t *p, size_t len, const uint8_t *apart, size_t apart_len, uint16_t *ret_id)
{
	size_t body = len - ROCE_ICRC_LEN, from = ROCE_BTH_LEN;
	const uint8_t *icrc = p + body;
	uint32_t crc = roce_icrc_begin(a, 0, src_port, UDP_LEN + len, p), diff;

	if (apart) {
		crc = roce_icrc_add(crc, apart, apart_len);
		from += apart_len;
	}
	crc = roce_icrc_add(crc, p + from, body - from);
	diff = crc ^ ((uint32_t)icrc[3] << 24 | (uint32_t)icrc[2] << 16 | (uint32_t)icrc[1] << 8 |
			     icrc[0]);
	/* Behind the Identification: 14 bytes of IP, UDP, what is before the ICRC. */
	*ret_id = 0;
	return diff == 0 ||
	       (!a->is_v6 && find_id(ids, IPV4_LEN - 6 + UDP_LEN + body, diff, ret_id));
}
