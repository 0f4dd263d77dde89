/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdr.h"

#include <assert.h>

/* Stands for a NULL buffer of length 0, so that no arithmetic is done on NULL. */
static uint8_t nothing[1];

void xdr_enc_init(struct xdr_enc *x, void *buf, size_t len)
{
	assert(buf || !len);
	x->base = x->p = buf ? buf : nothing;
	x->end = x->base + len;
	x->failed = false;
}

size_t xdr_enc_len(const struct xdr_enc *x)
{
	return (size_t)(x->p - x->base);
}

/* Room for `len` bytes and their round-up, which is zeroed; NULL if full. */
static uint8_t *enc_take(struct xdr_enc *x, size_t len)
{
	size_t left = (size_t)(x->end - x->p);
	uint8_t *p = x->p;

	/* `len` alone first: XDR_ROUND() wraps near SIZE_MAX. */
	if (x->failed || len > left || XDR_ROUND(len) > left) {
		x->failed = true;
		return NULL;
	}
	x->p += XDR_ROUND(len);
	for (uint8_t *pad = p + len; pad < x->p; pad++)
		*pad = 0;
	return p;
}

void xdr_put_bool(struct xdr_enc *x, bool v)
{
	xdr_put_u32(x, v ? 1 : 0);
}

void xdr_put_fixed(struct xdr_enc *x, const void *data, size_t len)
{
	uint8_t *p = enc_take(x, len);

	if (p && len)
		memcpy(p, data, len);
}

void xdr_put_opaque(struct xdr_enc *x, const void *data, size_t len)
{
	if (len > UINT32_MAX) {
		x->failed = true;
		return;
	}
	xdr_put_u32(x, (uint32_t)len);
	xdr_put_fixed(x, data, len);
}

uint8_t *xdr_put_reserve(struct xdr_enc *x, size_t len)
{
	assert(XDR_PAD(len) == 0);
	return enc_take(x, len);
}

void xdr_patch_u32(struct xdr_enc *x, size_t off, uint32_t v)
{
	uint32_t be;

	if (x->failed)
		return;
	assert(off % XDR_UNIT == 0 && xdr_enc_len(x) >= 4 && off <= xdr_enc_len(x) - 4);
	be = htobe32(v);
	memcpy(x->base + off, &be, sizeof(be));
}

void xdr_dec_init(struct xdr_dec *x, const void *buf, size_t len)
{
	assert(buf || !len);
	x->base = x->p = buf ? buf : nothing;
	x->end = x->base + len;
	x->failed = false;
}

size_t xdr_dec_pos(const struct xdr_dec *x)
{
	return (size_t)(x->p - x->base);
}

size_t xdr_dec_left(const struct xdr_dec *x)
{
	/* A loop "while something is left" must end when the stream went bad. */
	return x->failed ? 0 : (size_t)(x->end - x->p);
}

const uint8_t *xdr_get_fixed(struct xdr_dec *x, size_t len)
{
	const uint8_t *p = x->p;
	size_t left = xdr_dec_left(x);

	/* WIRE: `len` alone first: XDR_ROUND() wraps near SIZE_MAX. */
	if (x->failed || len > left || XDR_ROUND(len) > left) {
		x->failed = true;
		return NULL;
	}
	x->p += XDR_ROUND(len);
	return p;
}

bool xdr_get_bool(struct xdr_dec *x)
{
	uint32_t v = xdr_get_u32(x);

	if (v > 1) {
		x->failed = true;
		return false;
	}
	return v == 1;
}

const uint8_t *xdr_get_opaque(struct xdr_dec *x, size_t max, uint32_t *ret_len)
{
	uint32_t len = xdr_get_u32(x);
	const uint8_t *p;

	if (len > max)
		x->failed = true;
	p = xdr_get_fixed(x, len);
	if (p)
		*ret_len = len;
	return p;
}

void xdr_skip_opaque(struct xdr_dec *x, size_t max)
{
	uint32_t len;

	(void)xdr_get_opaque(x, max, &len);
}

uint32_t xdr_get_count(struct xdr_dec *x, uint32_t max, size_t min_item)
{
	uint32_t cnt = xdr_get_u32(x);

	/* WIRE: by division, since the product may wrap. */
	if (cnt > max || (min_item && cnt > xdr_dec_left(x) / min_item)) {
		x->failed = true;
		return 0;
	}
	return cnt;
}

void xdr_fail(struct xdr_dec *x)
{
	x->failed = true;
}
