/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng.h"

#include <string.h>

#define BLOCK_SECTION     0x0a0d0d0au
#define BLOCK_INTERFACE   1u
#define BLOCK_STATS       5u
#define BLOCK_PACKET      6u
#define BYTE_ORDER_MAGIC  0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u

#define OPT_END       0u
#define OPT_COMMENT   1u
#define SHB_USERAPPL  4u
#define IF_NAME       2u
#define IF_TSRESOL    9u
#define ISB_STARTTIME 2u
#define ISB_ENDTIME   3u
#define ISB_IFRECV    4u
#define ISB_IFDROP    5u

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *put_option(uint8_t *p, uint16_t code, const void *value, size_t len)
{
	size_t padded = (len + 3) & ~(size_t)3;

	p = put16(put16(p, code), (uint16_t)len);
	memset(p, 0, padded);
	if (len > 0)
		memcpy(p, value, len);
	return p + padded;
}

static uint8_t *put_text(uint8_t *p, uint16_t code, const char *text)
{
	return put_option(p, code, text, strlen(text));
}

/* Times of the statistics block are two words, the upper one first, whatever the byte order. */
static uint8_t *put_time(uint8_t *p, uint16_t code, uint64_t ns)
{
	uint32_t words[2] = {(uint32_t)(ns >> 32), (uint32_t)ns};

	return put_option(p, code, words, sizeof(words));
}

static uint8_t *put_count(uint8_t *p, uint16_t code, uint64_t v)
{
	return put_option(p, code, &v, sizeof(v));
}

/* The length stands at a block's both ends. */
static uint8_t *end_block(uint8_t *block, uint8_t *p)
{
	uint32_t len = (uint32_t)(p - block) + 4;

	put32(block + 4, len);
	return put32(p, len);
}

size_t pcapng_head(uint8_t out[PCAPNG_HEAD_MAX])
{
	const uint8_t tsresol = 9; /* 10^-9 s */
	uint8_t *p = out, *block = out;

	p = put32(put32(p, BLOCK_SECTION), 0);
	p = put16(put16(put32(p, BYTE_ORDER_MAGIC), 1), 0); /* version 1.0 */
	memset(p, 0xff, 8);                                 /* the section's length is not known */
	p += 8;
	p = put_text(p, SHB_USERAPPL, "rpcrdmafs");
	p = put_text(p, OPT_COMMENT,
		"RPC-over-RDMA messages as the client sent and received them. Without an RDMA "
		"device: the RoCEv2 frames in which they went; else frames made for this file");
	p = end_block(block, put_option(p, OPT_END, NULL, 0));
	block = p;
	p = put32(put32(p, BLOCK_INTERFACE), 0);
	p = put16(put16(p, LINKTYPE_ETHERNET), 0);
	p = put32(p, 0); /* no length that all are cut to */
	p = put_text(p, IF_NAME, "rpcrdmafs");
	p = put_option(p, IF_TSRESOL, &tsresol, 1);
	p = end_block(block, put_option(p, OPT_END, NULL, 0));
	return (size_t)(p - out);
}

size_t pcapng_packet(uint8_t *out, uint64_t ns, size_t len, size_t whole)
{
	size_t padded = (len + 3) & ~(size_t)3;
	uint8_t *p = put32(put32(put32(out, BLOCK_PACKET), 0), 0);

	p = put32(put32(p, (uint32_t)(ns >> 32)), (uint32_t)ns);
	p = put32(put32(p, (uint32_t)len), (uint32_t)whole);
	memset(p + len, 0, padded - len);
	return (size_t)(end_block(out, p + padded) - out);
}

size_t pcapng_stats(uint8_t out[PCAPNG_STATS_LEN], const struct pcapng_stats *st)
{
	uint64_t ns = st->end_ns;
	uint8_t *p = put32(put32(put32(out, BLOCK_STATS), 0), 0);

	p = put32(put32(p, (uint32_t)(ns >> 32)), (uint32_t)ns);
	p = put_time(p, ISB_STARTTIME, st->start_ns);
	p = put_time(p, ISB_ENDTIME, st->end_ns);
	p = put_count(p, ISB_IFRECV, st->received);
	p = put_count(p, ISB_IFDROP, st->dropped);
	p = put_option(p, OPT_END, NULL, 0);
	return (size_t)(end_block(out, p) - out);
}
