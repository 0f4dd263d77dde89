/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_cm.h"

#include <string.h>

#define MAD_HEAD 24u

#define ATTR_REQUEST 0x0010u
#define ATTR_REPLY   0x0013u
#define ATTR_READY   0x0014u

#define SERVICE_TCP 0x0000000001060000ull /* annex A11.2: the port is in the lower half */
#define PS_TIMEOUT  20u                   /* 4.3 s */
#define LID_NONE    0xffffu

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

/* Returns: where the message begins; all of it is zero. */
static uint8_t *head(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN], uint32_t attr)
{
	memset(mad, 0, ROCE_CM_LEN);
	mad[0] = 1;             /* base version */
	mad[1] = 0x07;          /* communication management */
	mad[2] = 2;             /* class version */
	mad[3] = 0x03;          /* Send */
	put64(mad + 8, cm->id); /* the same in all three */
	put16(mad + 16, attr);
	return mad + MAD_HEAD;
}

static uint32_t client_id(const struct roce_cm *cm)
{
	return cm->id << 1;
}

static uint32_t server_id(const struct roce_cm *cm)
{
	return cm->id << 1 | 1;
}

/* GID of an address: IPv4 as ::ffff:a.b.c.d. */
static void put_gid(uint8_t *p, const struct roce_flow *f, const uint8_t ip[16])
{
	if (f->is_v6) {
		memcpy(p, ip, 16);
		return;
	}
	p[10] = p[11] = 0xff;
	memcpy(p + 12, ip, 4);
}

static void put_ip(uint8_t *p, const struct roce_flow *f, const uint8_t ip[16])
{
	if (f->is_v6)
		memcpy(p, ip, 16);
	else
		memcpy(p + 12, ip, 4);
}

/* GUID: the hardware address as EUI-64. */
static void put_guid(uint8_t *p, const uint8_t mac[6])
{
	memcpy(p, mac, 3);
	p[3] = 0xff;
	p[4] = 0xfe;
	memcpy(p + 5, mac + 3, 3);
}

static void put_priv(uint8_t *p, size_t room, const uint8_t *priv, size_t len)
{
	if (priv != NULL && len > 0)
		memcpy(p, priv, len < room ? len : room);
}

/* 256 is 1, 4096 is 5. */
static uint8_t mtu_code(uint32_t mtu)
{
	uint8_t code = 1;

	while (code < 5 && 128u << code < mtu)
		code++;
	return code;
}

void roce_cm_request(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN])
{
	const struct roce_flow *f = cm->out;
	uint8_t *p = head(cm, mad, ATTR_REQUEST);

	put32(p, client_id(cm));
	put64(p + 8, SERVICE_TCP | cm->dst_port);
	put_guid(p + 16, f->src.udp.mac);
	put32(p + 32, f->src.qpn << 8 | cm->reads);
	p[43] = PS_TIMEOUT << 3; /* reliable connection */
	put32(p + 44, f->psn << 8 | PS_TIMEOUT << 3 | ROCE_CM_RETRY_COUNT);
	put16(p + 48, 0xffff);
	p[50] = (uint8_t)(mtu_code(f->mtu) << 4 | 7); /* waits for receives for ever */
	p[51] = 0xf0;
	put16(p + 52, LID_NONE);
	put16(p + 54, LID_NONE);
	put_gid(p + 56, f, f->src.udp.ip);
	put_gid(p + 72, f, f->dst.udp.ip);
	p[93] = 64; /* hop limit */
	p[95] = 19 << 3;
	p += 140;
	p[1] = f->is_v6 ? 0x60 : 0x40;
	put16(p + 2, cm->src_port);
	put_ip(p + 4, f, f->src.udp.ip);
	put_ip(p + 20, f, f->dst.udp.ip);
	put_priv(p + 36, ROCE_CM_REQ_PRIV, cm->priv, cm->priv_len);
}

void roce_cm_reply(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN])
{
	const struct roce_flow *f = cm->in;
	uint8_t *p = head(cm, mad, ATTR_REPLY);

	put32(p, server_id(cm));
	put32(p + 4, client_id(cm));
	put32(p + 12, f->src.qpn << 8);
	put32(p + 20, f->psn << 8);
	p[25] = cm->reads;
	p[26] = 15 << 3;
	put_guid(p + 28, f->src.udp.mac);
	put_priv(p + 36, ROCE_CM_REP_PRIV, cm->peer_priv, cm->peer_priv_len);
}

void roce_cm_ready(const struct roce_cm *cm, uint8_t mad[ROCE_CM_LEN])
{
	uint8_t *p = head(cm, mad, ATTR_READY);

	put32(p, client_id(cm));
	put32(p + 4, server_id(cm));
}
