/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_frame.h"

#include <string.h>

#define IPV4_LEN     20u
#define UDP_LEN      8u
#define IP_PROTO_UDP 17u
#define HOP_LIMIT    64u

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v & 0xffff);
}

static uint8_t *put_bytes(uint8_t *p, const void *v, size_t len)
{
	memcpy(p, v, len);
	return p + len;
}

void udp_frame_mac(struct udp_frame_end *end, bool is_v6)
{
	end->mac[0] = 0x02; /* locally administered */
	end->mac[1] = 0;
	memcpy(end->mac + 2, is_v6 ? end->ip + 12 : end->ip, 4);
}

static uint16_t ip_checksum(const uint8_t *p)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < IPV4_LEN; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* `len`: of what is behind the IP header. */
static uint8_t *put_ip(uint8_t *ip, const struct udp_frame *f, size_t len)
{
	uint8_t *p;

	if (f->is_v6) {
		p = put16(put32(ip, 0x60000000u | (uint32_t)f->tos << 20), (uint32_t)len);
		*p++ = IP_PROTO_UDP;
		*p++ = HOP_LIMIT;
		return put_bytes(put_bytes(p, f->src.ip, 16), f->dst.ip, 16);
	}
	p = put16(put16(ip, 0x4500u | f->tos), (uint32_t)(IPV4_LEN + len));
	p = put16(put16(p, f->id), 0x4000); /* never in fragments */
	*p++ = HOP_LIMIT;
	*p++ = IP_PROTO_UDP;
	p = put16(p, 0);
	p = put_bytes(put_bytes(p, f->src.ip, 4), f->dst.ip, 4);
	put16(ip + 10, ip_checksum(ip));
	return p;
}

size_t udp_frame_head(const struct udp_frame *f, size_t len, uint8_t out[UDP_FRAME_HEAD_MAX])
{
	uint8_t *p = put_bytes(put_bytes(out, f->dst.mac, 6), f->src.mac, 6);

	p = put_ip(put16(p, f->is_v6 ? 0x86dd : 0x0800), f, UDP_LEN + len);
	p = put16(put16(p, f->src.port), f->dst.port);
	p = put16(put16(p, (uint32_t)(UDP_LEN + len)), 0);
	return (size_t)(p - out);
}
