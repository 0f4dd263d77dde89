/* SPDX-License-Identifier: BSD-3-Clause */
/* What files must hold, what was done, and what is random. */
#include "fsx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY 50

static uint64_t seed_said, state;
static char history[HISTORY][200];
static char again[2 * FSX_PATH];

/* ---- random numbers ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void fsx_seed(uint64_t seed)
{
	seed_said = state = seed;
}

uint64_t fsx_the_seed(void)
{
	return seed_said;
}

uint32_t fsx_rnd(uint32_t below)
{
	state += 0x9e3779b97f4a7c15ull;
	return below ? (uint32_t)((mix(state) >> 32) % below) : 0;
}

struct fsx_file *fsx_some_file(void)
{
	/* One of them more often: it gets a longer history. */
	fsx.last = &fsx.files[fsx_rnd(3) == 0];
	return fsx.last;
}

/* Most are small, for the sake of time: large ones take as long as hundreds of those. */
static size_t some_size(size_t max)
{
	size_t top = max >> (fsx_rnd(8) + fsx_rnd(8));

	return fsx_rnd((uint32_t)top + 1);
}

size_t fsx_some_offset(const struct fsx_file *f)
{
	static const uint32_t units[] = {512, 4096, 4096, 4096, 65536, 262144, 1048576};
	size_t off, unit = units[fsx_rnd(sizeof(units) / sizeof(units[0]))];

	switch (fsx_rnd(8)) {
	case 0:
		off = 0;
		break;
	case 1:
		off = f->size;
		break;
	case 2:
		off = f->size + fsx_rnd(3);
		off = off > 3 ? off - 3 : 0;
		break;
	case 3:
		off = f->size + some_size(fsx.limit);
		break;
	case 4:
	case 5:
		off = some_size(f->size + unit) / unit * unit + fsx_rnd(3);
		off = off ? off - 1 : 0;
		break;
	default:
		off = fsx_rnd((uint32_t)f->size + 1);
		break;
	}
	return off < fsx.limit ? off : fsx.limit;
}

size_t fsx_some_length(size_t max)
{
	size_t len;

	switch (fsx_rnd(6)) {
	case 0:
		len = FSX_PAGE * (1 + fsx_rnd(16));
		break;
	case 1:
		len = FSX_PAGE * (1 + fsx_rnd(16)) + fsx_rnd(3) - 1;
		break;
	case 2:
		len = 1 + fsx_rnd(10);
		break;
	default:
		len = 1 + some_size(FSX_IO_MAX / 2);
		break;
	}
	return len < max ? len : max;
}

/* ---- the model ---- */

void fsx_fill(uint8_t *mem, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = mix(seed_said ^ (uint64_t)fsx.op << 32 ^ i) | 0x0101010101010101ull;

		memcpy(mem + i, &word, len - i < 8 ? len - i : 8);
	}
}

void fsx_model_resize(struct fsx_file *f, size_t size)
{
	if (size < f->size)
		memset(f->model + size, 0, f->size - size);
	f->size = size;
}

void fsx_model_write(struct fsx_file *f, size_t off, const uint8_t *mem, size_t len)
{
	if (len > 0 && off + len > f->size)
		f->size = off + len;
	memmove(f->model + off, mem, len);
}

void fsx_model_zero(struct fsx_file *f, size_t off, size_t len)
{
	if (off < f->size)
		memset(f->model + off, 0, len < f->size - off ? len : f->size - off);
}

/* FNV-1a, of words. */
static void digest(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = 0;

		memcpy(&word, p + i, len - i < 8 ? len - i : 8);
		fsx.digest = (fsx.digest ^ word) * 0x100000001b3ull;
	}
}

void fsx_compare(struct fsx_file *f, const uint8_t *got, size_t off, size_t len, const char *how)
{
	const uint8_t *want = f->model + off;
	size_t first = 0, end, bad = 0;

	digest(got, len);
	if (memcmp(got, want, len) == 0)
		return;
	while (got[first] == want[first])
		first++;
	for (end = first; end < len && got[end] != want[end]; end++)
		;
	for (size_t i = first; i < len; i++)
		bad += got[i] != want[i];
	fsx_wrong("%s of %s: the first difference is at offset %zu: expected %02x, found %02x; "
		  "right again at %zu; %zu of the bytes %zu to %zu are wrong; size %zu",
		how, f->path, off + first, want[first], got[first], off + end, bad, off, off + len,
		f->size);
}

/* ---- what was done ---- */

void fsx_note(const struct fsx_file *f, const char *fmt, ...)
{
	char *note = history[fsx.op % HISTORY];
	va_list ap;

	note[0] = f == &fsx.files[0] ? 'a' : 'b';
	note[1] = ' ';
	va_start(ap, fmt);
	vsnprintf(note + 2, sizeof(history[0]) - 2, fmt, ap);
	va_end(ap);
}

void fsx_note_more(const char *fmt, ...)
{
	char *note = history[fsx.op % HISTORY];
	size_t len = strlen(note);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note + len, sizeof(history[0]) - len, fmt, ap);
	va_end(ap);
}

void fsx_again(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(again, sizeof(again), fmt, ap);
	va_end(ap);
}

void fsx_wrong(const char *fmt, ...)
{
	unsigned long first = fsx.op + 1 > HISTORY ? fsx.op + 1 - HISTORY : 0;
	va_list ap;

	printf("seed %llu, operation %lu; the last ones were:\n", (unsigned long long)seed_said,
		fsx.op);
	for (unsigned long i = first; i <= fsx.op; i++)
		printf("  %lu %s\n", i, history[i % HISTORY]);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\nagain: fsx -s %llu -n %lu %s\n", (unsigned long long)seed_said, fsx.op + 1,
		again);
	fflush(stdout);
	_Exit(1); /* mappings and descriptors may not be closed: that may hang as well */
}
