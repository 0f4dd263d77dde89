/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared mappings, which stay over other operations. */
#include "fsx.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

void fsx_unmap(struct fsx_file *f)
{
	if (f->map && munmap(f->map, fsx.limit))
		fsx_wrong("munmap: %s", strerror(errno));
	f->map = NULL;
}

static uint8_t *map_of(struct fsx_file *f)
{
	void *map;

	if (f->map)
		return f->map;
	map = mmap(NULL, fsx.limit, PROT_READ | PROT_WRITE, MAP_SHARED, f->slots[0].fd, 0);
	if (map == MAP_FAILED)
		fsx_wrong("mmap: %s", strerror(errno));
	f->map = map;
	return f->map;
}

/* False: there is nothing to see. */
static bool some_part(struct fsx_file *f, size_t *ret_off, size_t *ret_len)
{
	*ret_off = fsx_some_offset(f);
	if (*ret_off >= f->size)
		*ret_off = f->size ? fsx_rnd((uint32_t)f->size) : 0;
	*ret_len = fsx_some_length(f->size > *ret_off ? f->size - *ret_off : 1);
	return f->size > 0;
}

void fsx_do_map_read(void)
{
	struct fsx_file *f = fsx_some_file();
	size_t off, len;

	if (!some_part(f, &off, &len)) {
		fsx_note(f, "map read: no");
		return;
	}
	fsx_note(f, "map read %zu at %zu (size %zu)", len, off, f->size);
	fsx_compare(f, map_of(f) + off, off, len, "map read");
}

void fsx_do_map_write(void)
{
	struct fsx_file *f = fsx_some_file();
	size_t off, len, start;
	uint32_t sync = fsx_rnd(4);

	if (!some_part(f, &off, &len)) {
		fsx_note(f, "map write: no");
		return;
	}
	start = off & ~(size_t)(FSX_PAGE - 1);
	fsx_note(f, "map write %zu at %zu (size %zu)%s", len, off, f->size,
		sync == 0   ? ", MS_SYNC"
		: sync == 1 ? ", MS_ASYNC"
			    : "");
	fsx_fill(fsx.io, len);
	memcpy(map_of(f) + off, fsx.io, len);
	fsx_model_write(f, off, fsx.io, len);
	f->cached = true;
	if (sync < 2 && msync(f->map + start, off + len - start, sync == 0 ? MS_SYNC : MS_ASYNC))
		fsx_wrong("msync: %s", strerror(errno));
}

void fsx_do_map_again(void)
{
	struct fsx_file *f = fsx_some_file();

	fsx_note(f, "unmap");
	fsx_unmap(f);
}
