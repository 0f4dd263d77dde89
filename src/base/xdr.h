/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XDR cursors (RFC 4506) over caller's memory: bounded, with a sticky error.
 * After an overrun every further call does nothing and returns 0 or NULL, so
 * a codec checks ->failed once, at its end, and never uses a value before.
 * Lengths that come from the wire are bounded by the cursor itself and by the
 * caller's `max`.
 *
 * Context: pure; no allocation, no log.
 */
#ifndef RPCRDMAFS_XDR_H
#define RPCRDMAFS_XDR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XDR_UNIT       4u
#define XDR_PAD(len)   ((4u - ((len)&3u)) & 3u)
#define XDR_ROUND(len) (((size_t)(len) + 3u) & ~(size_t)3u)

struct xdr_enc {
	uint8_t *base; /* start of the stream: xdr_enc_len() counts from here */
	uint8_t *p;
	uint8_t *end;
	bool failed; /* something did not fit */
};

struct xdr_dec {
	const uint8_t *base;
	const uint8_t *p;
	const uint8_t *end;
	bool failed; /* something was missing or out of bounds */
};

void xdr_enc_init(struct xdr_enc *x, void *buf, size_t len);
size_t xdr_enc_len(const struct xdr_enc *x);
static inline void xdr_put_u32(struct xdr_enc *x, uint32_t v);
static inline void xdr_put_u64(struct xdr_enc *x, uint64_t v);
void xdr_put_bool(struct xdr_enc *x, bool v);
/* Fixed-length opaque with its round-up zeroed. */
void xdr_put_fixed(struct xdr_enc *x, const void *data, size_t len);
/* Variable-length opaque or string: length word, bytes, round-up. */
void xdr_put_opaque(struct xdr_enc *x, const void *data, size_t len);
/* Room for `len` raw bytes (a multiple of 4), to be filled by the caller; NULL if full. */
uint8_t *xdr_put_reserve(struct xdr_enc *x, size_t len);
/* Writes `v` over 4 bytes that an earlier xdr_put_* of this stream wrote at offset `off`. */
void xdr_patch_u32(struct xdr_enc *x, size_t off, uint32_t v);

void xdr_dec_init(struct xdr_dec *x, const void *buf, size_t len);
size_t xdr_dec_pos(const struct xdr_dec *x);
/* Bytes not decoded yet; 0 after a failure, so that loops end. */
size_t xdr_dec_left(const struct xdr_dec *x);
static inline uint32_t xdr_get_u32(struct xdr_dec *x);
static inline uint64_t xdr_get_u64(struct xdr_dec *x);
/* Any value but 0 and 1 fails (RFC 4506 section 4.4). */
bool xdr_get_bool(struct xdr_dec *x);
/* `len` bytes and their round-up; the pointer stays valid as long as the buffer. */
const uint8_t *xdr_get_fixed(struct xdr_dec *x, size_t len);
/* Variable-length opaque of at most `max` bytes; *ret_len untouched on failure. */
const uint8_t *xdr_get_opaque(struct xdr_dec *x, size_t max, uint32_t *ret_len);
/* Skips a variable-length opaque of at most `max` bytes. */
void xdr_skip_opaque(struct xdr_dec *x, size_t max);
/* An array's count, refused when more than `max` or when `min_item` bytes each cannot be there. */
uint32_t xdr_get_count(struct xdr_dec *x, uint32_t max, size_t min_item);
/* Marks the stream as bad (a value that XDR allows and the protocol does not). */
void xdr_fail(struct xdr_dec *x);

/* ---- of which a message has dozens ---- */

static inline void xdr_put_u32(struct xdr_enc *x, uint32_t v)
{
	uint32_t be = htobe32(v);

	if (x->failed || x->end - x->p < (ptrdiff_t)sizeof(be)) {
		x->failed = true;
		return;
	}
	memcpy(x->p, &be, sizeof(be));
	x->p += sizeof(be);
}

static inline uint32_t xdr_get_u32(struct xdr_dec *x)
{
	uint32_t be;

	if (x->failed || x->end - x->p < (ptrdiff_t)sizeof(be)) {
		x->failed = true;
		return 0;
	}
	memcpy(&be, x->p, sizeof(be));
	x->p += sizeof(be);
	return be32toh(be);
}

static inline void xdr_put_u64(struct xdr_enc *x, uint64_t v)
{
	uint64_t be = htobe64(v);

	if (x->failed || x->end - x->p < (ptrdiff_t)sizeof(be)) {
		x->failed = true;
		return;
	}
	memcpy(x->p, &be, sizeof(be));
	x->p += sizeof(be);
}

static inline uint64_t xdr_get_u64(struct xdr_dec *x)
{
	uint64_t be;

	if (x->failed || x->end - x->p < (ptrdiff_t)sizeof(be)) {
		x->failed = true;
		return 0;
	}
	memcpy(&be, x->p, sizeof(be));
	x->p += sizeof(be);
	return be64toh(be);
}

#endif
