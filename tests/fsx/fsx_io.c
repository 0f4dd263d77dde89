/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads, writes, sizes. */
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *how(const struct fsx_slot *s)
{
	if (s->flags & O_DIRECT)
		return s->flags & O_SYNC ? " direct, sync" : " direct";
	return s->flags & O_SYNC ? " sync" : "";
}

/* Direct ones as often as not with the alignment that a disk would want. */
static uint8_t *some_memory(const struct fsx_slot *s)
{
	return fsx.io + (s->flags & O_DIRECT && fsx_rnd(2) ? fsx_rnd(FSX_PAGE) : 0);
}

void fsx_settle(struct fsx_file *f, const struct fsx_slot *s)
{
	if (!f->cached || !(s->flags & O_DIRECT))
		return;
	if (fsync(f->slots[0].fd))
		fsx_wrong("fsync: %s", strerror(errno));
	f->cached = false;
}

void fsx_pread(struct fsx_slot *s, uint8_t *mem, size_t len, size_t off, size_t want)
{
	ssize_t n;

	if (lseek(s->fd, (off_t)off, SEEK_SET) != (off_t)off)
		fsx_wrong("lseek: %s", strerror(errno));
	n = fsx.op % 2 ? pread(s->fd, mem, len, (off_t)off) : read(s->fd, mem, len);
	if (n < 0)
		fsx_wrong("read: %s", strerror(errno));
	if ((size_t)n != want)
		fsx_wrong("read of %zu at %zu: expected %zu bytes, found %zd", len, off, want, n);
}

void fsx_pwrite(struct fsx_slot *s, const uint8_t *mem, size_t len, size_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(s->fd, mem + done, len - done, (off_t)(off + done));

		if (n <= 0)
			fsx_wrong("write returned %zd: %s", n, strerror(errno));
		done += (size_t)n;
	}
}

/* All of it, through slot 0. */
void fsx_check_file(struct fsx_file *f, const char *what)
{
	struct stat st;

	if (fstat(f->slots[0].fd, &st))
		fsx_wrong("fstat: %s", strerror(errno));
	if ((size_t)st.st_size != f->size)
		fsx_wrong("%s of %s: expected size %zu, found %lld", what, f->path, f->size,
			(long long)st.st_size);
	fsx_settle(f, &f->slots[0]);
	for (size_t off = 0; off < f->size; off += FSX_IO_MAX) {
		size_t len = f->size - off < FSX_IO_MAX ? f->size - off : FSX_IO_MAX;

		fsx_pread(&f->slots[0], fsx.io, FSX_IO_MAX, off, len);
		fsx_compare(f, fsx.io, off, len, what);
	}
}

void fsx_do_read(void)
{
	struct fsx_file *f = fsx_some_file();
	struct fsx_slot *s = fsx_some_slot(f, O_RDONLY);
	size_t off = fsx_some_offset(f), len = fsx_some_length(FSX_IO_MAX), want;
	uint8_t *mem = some_memory(s);

	fsx_note(f, "read%s %zu at %zu", how(s), len, off);
	want = off >= f->size ? 0 : len < f->size - off ? len : f->size - off;
	fsx_settle(f, s);
	fsx_pread(s, mem, len, off, want);
	fsx_compare(f, mem, off, want, "read");
}

void fsx_do_write(void)
{
	struct fsx_file *f = fsx_some_file();
	struct fsx_slot *s = fsx_some_slot(f, O_WRONLY);
	size_t off = fsx_some_offset(f), len;
	uint8_t *mem = some_memory(s);

	if (off == fsx.limit)
		off -= 1 + fsx_rnd(FSX_PAGE);
	len = fsx_some_length(fsx.limit - off);
	fsx_note(f, "write%s %zu at %zu (size %zu)", how(s), len, off, f->size);
	fsx_fill(mem, len);
	fsx_settle(f, s);
	if (fsx.sabotage != FSX_LOST || fsx.op != fsx.sabotage_op)
		fsx_pwrite(s, mem, len, off);
	if (!(s->flags & (O_DIRECT | O_SYNC)))
		f->cached = true;
	fsx_model_write(f, off, mem, len);
}

/* By a descriptor of its own: the offset says nothing. */
void fsx_do_append(void)
{
	struct fsx_file *f = fsx_some_file();
	size_t len = fsx_some_length(FSX_IO_MAX / 8);
	struct fsx_slot s = {.flags = O_WRONLY | O_APPEND};
	uint32_t at = fsx_rnd(2) ? (uint32_t)f->size : 0;
	uint8_t *mem;

	if (fsx.mode == FSX_DIRECT || (fsx.mode == FSX_MIXED && fsx_rnd(2)))
		s.flags |= O_DIRECT;
	mem = some_memory(&s);
	if (f->unlinked || f->size == fsx.limit) {
		fsx_note(f, "append: no");
		return;
	}
	if (len > fsx.limit - f->size)
		len = fsx.limit - f->size;
	fsx_note(f, "append%s %zu to %zu, in two parts", how(&s), len, f->size);
	fsx_fill(mem, len);
	fsx_settle(f, &s);
	s.fd = open(f->path, s.flags | O_CLOEXEC);
	if (s.fd < 0 && errno == EINVAL && s.flags & O_DIRECT) {
		/* Linux' NFS client knows no O_APPEND with O_DIRECT. */
		fsx.refused++;
		fsx_note_more(", cached");
		s.flags &= ~O_DIRECT;
		s.fd = open(f->path, s.flags | O_CLOEXEC);
	}
	if (s.fd < 0)
		fsx_wrong("open: %s", strerror(errno));
	fsx_pwrite(&s, mem, len / 2, at);
	fsx_pwrite(&s, mem + len / 2, len - len / 2, at);
	if (close(s.fd))
		fsx_wrong("close: %s", strerror(errno));
	f->cached |= !(s.flags & O_DIRECT);
	fsx_model_write(f, f->size, mem, len);
}

void fsx_do_truncate(void)
{
	struct fsx_file *f = fsx_some_file();
	size_t size = fsx_some_offset(f);
	bool by_path = fsx_rnd(2) && !f->unlinked;

	/* More often smaller: they grow by themselves. */
	if (fsx_rnd(3) == 0)
		size >>= fsx_rnd(8);
	fsx_note(f, "%s to %zu (size %zu)", by_path ? "truncate" : "ftruncate", size, f->size);
	if (by_path ? truncate(f->path, (off_t)size) : ftruncate(f->slots[0].fd, (off_t)size))
		fsx_wrong("truncate: %s", strerror(errno));
	fsx_model_resize(f, size);
}

void fsx_do_sync(void)
{
	struct fsx_file *f = fsx_some_file();
	bool data = fsx_rnd(2);

	fsx_note(f, "%s", data ? "fdatasync" : "fsync");
	if (data ? fdatasync(f->slots[0].fd) : fsync(f->slots[0].fd))
		fsx_wrong("fsync: %s", strerror(errno));
	f->cached = false;
}
