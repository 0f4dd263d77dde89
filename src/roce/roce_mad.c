/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_mad.h"
#include "roce_wire.h"

#include <string.h>

/* The header of a MAD (section 13.4.3). */
#define BASE_VERSION  1u
#define CLASS_CM      0x07u
#define CLASS_VERSION 2u
#define METHOD_SEND   0x03u
#define HEAD_LEN      24u

#define SERVICE_TCP 0x0000000001060000ull /* annex A11.2: the port is in the lower half */
#define LID_NONE    0xffffu
#define CM_TIMEOUT  20u /* 4.3 s: so long the peer has for an answer */
/*
 * 0.5 s: so long we have. The peer's REP comes again after that, as it does not answer a repeated
 * REQ (Linux): where the REP or our RTU is lost, nothing else goes on.
 */
#define OUR_TIMEOUT 17u
#define CM_RETRIES  15u
#define RNR_RETRY   7u /* for ever */
#define HOPS        64u

static uint8_t *put_head(uint8_t mad[ROCE_MAD_LEN], uint16_t attr, uint64_t tid)
{
	memset(mad, 0, ROCE_MAD_LEN);
	mad[0] = BASE_VERSION;
	mad[1] = CLASS_CM;
	mad[2] = CLASS_VERSION;
	mad[3] = METHOD_SEND;
	roce_wire_put64(mad + 8, tid);
	roce_wire_put16(mad + 16, attr);
	return mad + HEAD_LEN;
}

/* 256 is 1, 4096 is 5. */
static uint32_t mtu_code(uint32_t mtu)
{
	uint32_t code = 1;

	while (code < 5 && 128u << code < mtu)
		code++;
	return code;
}

/* For librdmacm's peers (annex A11.3): addresses and the port that it came from. */
static void put_ip_cm(const struct roce_mad_req *req, uint8_t *p)
{
	size_t at = req->is_v6 ? 0 : 12, len = 16 - at;

	p[1] = req->is_v6 ? 0x60 : 0x40;
	roce_wire_put16(p + 2, req->src_port);
	memcpy(p + 4 + at, req->local + at, len);
	memcpy(p + 20 + at, req->remote + at, len);
}

void roce_mad_put_req(const struct roce_mad_req *req, uint8_t mad[ROCE_MAD_LEN])
{
	uint8_t *p = put_head(mad, ROCE_MAD_REQ, req->tid);
	size_t len = req->priv_len < ROCE_MAD_REQ_PRIV ? req->priv_len : ROCE_MAD_REQ_PRIV;

	roce_wire_put32(p, req->local_id);
	roce_wire_put64(p + 8, SERVICE_TCP | req->dst_port);
	roce_wire_put64(p + 16, req->guid);
	roce_wire_put32(p + 32, req->qpn << 8 | req->reads);
	p[43] = CM_TIMEOUT << 3; /* the peer's; a reliable connection */
	roce_wire_put32(p + 44, req->psn << 8 | OUR_TIMEOUT << 3 | req->retries);
	roce_wire_put16(p + 48, ROCE_PKEY_DEFAULT);
	p[50] = (uint8_t)(mtu_code(req->mtu) << 4 | RNR_RETRY);
	p[51] = CM_RETRIES << 4;
	roce_wire_put16(p + 52, LID_NONE);
	roce_wire_put16(p + 54, LID_NONE);
	memcpy(p + 56, req->local, 16);
	memcpy(p + 72, req->remote, 16);
	roce_wire_put32(p + 88, req->flow_label << 12);
	p[92] = req->tos;
	p[93] = HOPS;
	p[95] = (uint8_t)(req->ack_timeout << 3);
	put_ip_cm(req, p + 140);
	if (len > 0)
		memcpy(p + 140 + 36, req->priv, len);
}

void roce_mad_put(const struct roce_mad *m, uint8_t mad[ROCE_MAD_LEN])
{
	uint8_t *p = put_head(mad, (uint16_t)m->attr, m->tid);

	roce_wire_put32(p, m->local_id);
	roce_wire_put32(p + 4, m->remote_id);
	if (m->attr == ROCE_MAD_DREQ)
		roce_wire_put32(p + 8, m->qpn << 8);
	if (m->attr == ROCE_MAD_REJ) {
		p[8] = (uint8_t)(m->rejected << 6);
		roce_wire_put16(p + 10, m->reason);
	}
}

static bool is_cm(const uint8_t *mad, size_t len)
{
	return len == ROCE_MAD_LEN && mad[0] == BASE_VERSION && mad[1] == CLASS_CM &&
	       mad[2] == CLASS_VERSION && mad[3] == METHOD_SEND;
}

bool roce_mad_get(const uint8_t *mad, size_t len, struct roce_mad *ret)
{
	const uint8_t *p = mad + HEAD_LEN;
	uint32_t attr;

	if (!is_cm(mad, len))
		return false;
	attr = roce_wire_get16(mad + 16);
	if (attr < ROCE_MAD_REQ || attr > ROCE_MAD_DREP)
		return false;
	*ret = (struct roce_mad){.attr = (enum roce_mad_attr)attr, .tid = roce_wire_get64(mad + 8)};
	ret->local_id = roce_wire_get32(p);
	if (ret->attr != ROCE_MAD_REQ)
		ret->remote_id = roce_wire_get32(p + 4);
	if (ret->attr == ROCE_MAD_REP) {
		ret->qpn = roce_wire_get24(p + 12);
		ret->psn = roce_wire_get24(p + 20);
		ret->rnr_retry = p[27] >> 5;
		ret->priv = p + 36;
		ret->priv_len = ROCE_MAD_REP_PRIV;
	}
	if (ret->attr == ROCE_MAD_DREQ)
		ret->qpn = roce_wire_get24(p + 8);
	if (ret->attr == ROCE_MAD_REJ)
		ret->reason =
			(uint8_t)(roce_wire_get16(p + 10) > 255 ? 255 : roce_wire_get16(p + 10));
	if (ret->attr == ROCE_MAD_MRA)
		ret->timeout = p[9] >> 3;
	return true;
}
