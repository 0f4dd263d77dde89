/* SPDX-License-Identifier: BSD-3-Clause */
/* Holes and copies. What a mount refuses is done as a program would do it then. */
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static bool some_range(struct fsx_file *f, size_t *ret_off, size_t *ret_len)
{
	*ret_off = fsx_some_offset(f);
	*ret_len = fsx_some_length(*ret_off < fsx.limit ? fsx.limit - *ret_off : 1);
	return *ret_off < fsx.limit;
}

void fsx_do_allocate(void)
{
	struct fsx_file *f = fsx_some_file();
	size_t off, len;

	if (!some_range(f, &off, &len)) {
		fsx_note(f, "allocate: no");
		return;
	}
	fsx_note(f, "allocate %zu at %zu (size %zu)", len, off, f->size);
	if (fallocate(f->slots[0].fd, 0, (off_t)off, (off_t)len)) {
		if (errno != EOPNOTSUPP)
			fsx_wrong("fallocate: %s", strerror(errno));
		fsx.refused++;
		if (off + len > f->size && ftruncate(f->slots[0].fd, (off_t)(off + len)))
			fsx_wrong("ftruncate: %s", strerror(errno));
	}
	if (off + len > f->size)
		fsx_model_resize(f, off + len);
}

void fsx_do_punch(void)
{
	struct fsx_file *f = fsx_some_file();
	struct fsx_slot *s = &f->slots[0];
	size_t off, len, end;

	if (!some_range(f, &off, &len)) {
		fsx_note(f, "punch: no");
		return;
	}
	end = off + len < f->size ? off + len : f->size;
	fsx_note(f, "punch %zu at %zu (size %zu)", len, off, f->size);
	if (fallocate(s->fd, PUNCH, (off_t)off, (off_t)len)) {
		if (errno != EOPNOTSUPP)
			fsx_wrong("fallocate: %s", strerror(errno));
		fsx.refused++;
		if (off < end) {
			memset(fsx.io, 0, end - off);
			fsx_settle(f, s);
			fsx_pwrite(s, fsx.io, end - off, off);
			f->cached |= !(s->flags & O_DIRECT);
		}
	}
	fsx_model_zero(f, off, len);
}

/* Data is never told to be a hole; a hole may be told to be data. */
static void want_hole(struct fsx_file *f, size_t from, size_t to, const char *said)
{
	for (size_t i = from; i < to; i++) {
		if (f->model[i])
			fsx_wrong("%s: offset %zu of %s is data (%02x), expected no hole there; "
				  "size %zu",
				said, i, f->path, f->model[i], f->size);
	}
}

void fsx_do_seek(void)
{
	struct fsx_file *f = fsx_some_file();
	struct fsx_slot *s = fsx_some_slot(f, O_RDONLY);
	size_t off = fsx_some_offset(f);
	bool hole = fsx_rnd(2);
	off_t at;

	fsx_note(f, "seek %s at %zu (size %zu)", hole ? "hole" : "data", off, f->size);
	fsx_settle(f, s);
	at = lseek(s->fd, (off_t)off, hole ? SEEK_HOLE : SEEK_DATA);
	if (at < 0) {
		if (errno != ENXIO || (hole && off < f->size))
			fsx_wrong("lseek: %s", strerror(errno));
		want_hole(f, off, f->size, "ENXIO");
		return;
	}
	if (off >= f->size || (size_t)at < off || (size_t)at > f->size ||
		(!hole && (size_t)at == f->size))
		fsx_wrong("lseek: found %lld, size %zu", (long long)at, f->size);
	if (hole)
		want_hole(f, (size_t)at, (size_t)at < f->size ? (size_t)at + 1 : f->size,
			"SEEK_HOLE");
	else
		want_hole(f, off, (size_t)at, "SEEK_DATA");
}

/* As a program does it that knows no better. */
static void copy_by_hand(
	struct fsx_file *from, size_t off_in, struct fsx_file *to, size_t off_out, size_t len)
{
	fsx.refused++;
	fsx_note_more(", by hand");
	fsx_settle(from, &from->slots[0]);
	fsx_settle(to, &to->slots[0]);
	fsx_pread(&from->slots[0], fsx.io, len, off_in, len);
	fsx_pwrite(&to->slots[0], fsx.io, len, off_out);
}

static void copy(
	struct fsx_file *from, size_t off_in, struct fsx_file *to, size_t off_out, size_t len)
{
	off_t in = (off_t)off_in, out = (off_t)off_out;
	size_t done = 0;

	while (done < len) {
		ssize_t n = copy_file_range(
			from->slots[0].fd, &in, to->slots[0].fd, &out, len - done, 0);

		if (n < 0 && (errno == EOPNOTSUPP || errno == EXDEV)) {
			copy_by_hand(from, off_in + done, to, off_out + done, len - done);
			return;
		}
		if (n <= 0)
			fsx_wrong("copy_file_range returned %zd after %zu: %s", n, done,
				strerror(errno));
		done += (size_t)n;
	}
}

void fsx_do_copy(void)
{
	static const struct fsx_slot direct = {.flags = O_DIRECT};
	struct fsx_file *from = fsx_some_file(), *to = fsx_some_file();
	size_t in = fsx_some_offset(from), out = fsx_some_offset(to), len;

	if (in >= from->size || out == fsx.limit) {
		fsx_note(to, "copy: no");
		return;
	}
	len = from->size - in < fsx.limit - out ? from->size - in : fsx.limit - out;
	len = fsx_some_length(len < FSX_IO_MAX ? len : FSX_IO_MAX);
	/* Onto itself is EINVAL. */
	if (from == to && in < out + len && out < in + len)
		len = in > out ? in - out : out - in;
	if (len == 0) {
		fsx_note(to, "copy: onto itself");
		return;
	}
	fsx_note(to, "copy %zu at %zu of %s (size %zu) to %zu of %s (size %zu)", len, in,
		from == to ? "it" : "one", from->size, out, from == to ? "it" : "the other",
		to->size);
	/* Where the kernel copies through the page cache, that is what it does to direct ones. */
	fsx_settle(from, &direct);
	fsx_settle(to, &direct);
	copy(from, in, to, out, len);
	to->cached = true;
	fsx_model_write(to, out, from->model + in, len);
}
