/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of a file, opened and closed; its names; its life without one. */
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void beside(char *to, const struct fsx_file *f, const char *suffix)
{
	if (snprintf(to, FSX_PATH, "%s%s", f->path, suffix) >= FSX_PATH)
		fsx_wrong("the path is too long");
}

static int some_flags(void)
{
	static const int access[] = {O_RDWR, O_RDWR, O_RDONLY, O_WRONLY};
	int flags = access[fsx_rnd(4)];

	if (fsx.mode == FSX_DIRECT || (fsx.mode == FSX_MIXED && fsx_rnd(2)))
		flags |= O_DIRECT;
	if (fsx_rnd(6) == 0)
		flags |= fsx_rnd(2) ? O_SYNC : O_DSYNC;
	return flags;
}

static void slot_open(struct fsx_file *f, struct fsx_slot *s, int flags)
{
	s->fd = open(f->path, flags | O_CLOEXEC, 0644);
	s->flags = flags;
	if (s->fd < 0)
		fsx_wrong("open: %s", strerror(errno));
}

static void slot_close(struct fsx_slot *s)
{
	if (s->fd >= 0 && close(s->fd))
		fsx_wrong("close: %s", strerror(errno));
	s->fd = -1;
}

void fsx_create(struct fsx_file *f, const char *path)
{
	int flags = (some_flags() & ~O_ACCMODE) | O_RDWR;

	if (path)
		snprintf(f->path, sizeof(f->path), "%s", path);
	for (int i = 0; i < FSX_SLOTS; i++)
		f->slots[i].fd = -1;
	f->second[0] = '\0';
	f->unlinked = f->cached = false;
	fsx_model_resize(f, 0);
	slot_open(f, &f->slots[0], flags | O_CREAT | O_EXCL);
}

void fsx_close_all(struct fsx_file *f)
{
	for (int i = 0; i < FSX_SLOTS; i++)
		slot_close(&f->slots[i]);
}

void fsx_remove(struct fsx_file *f)
{
	if (!f->unlinked && unlink(f->path))
		fsx_wrong("unlink: %s", strerror(errno));
	if (f->second[0] && unlink(f->second))
		fsx_wrong("unlink: %s", strerror(errno));
	f->second[0] = '\0';
	f->unlinked = true;
}

struct fsx_slot *fsx_some_slot(struct fsx_file *f, int access)
{
	struct fsx_slot *s = &f->slots[fsx_rnd(FSX_SLOTS)];
	int has = s->flags & O_ACCMODE;

	return s->fd >= 0 && (has == O_RDWR || has == access) ? s : &f->slots[0];
}

static void want_size(const char *path, size_t size)
{
	struct stat st;

	if (stat(path, &st))
		fsx_wrong("stat %s: %s", path, strerror(errno));
	if ((size_t)st.st_size != size)
		fsx_wrong("%s: expected size %zu, found %lld", path, size, (long long)st.st_size);
}

static void want_absent(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 || errno != ENOENT)
		fsx_wrong("%s is still there", path);
}

/* One that has no name any more ends here sometimes, and a new one begins. */
static bool begins_anew(struct fsx_file *f)
{
	if (!f->unlinked)
		return false;
	if (fsx_rnd(3)) {
		fsx_note(f, "open: no name");
		return true;
	}
	fsx_note(f, "the last close (size %zu), and a new file", f->size);
	fsx_check_file(f, "before the last close");
	fsx_unmap(f);
	fsx_close_all(f);
	fsx_create(f, NULL);
	return true;
}

void fsx_do_reopen(void)
{
	struct fsx_file *f = fsx_some_file();
	struct fsx_slot *s = &f->slots[fsx_rnd(FSX_SLOTS)];
	int flags = some_flags();
	bool empty = fsx_rnd(12) == 0, settle = fsx_rnd(2);

	if (begins_anew(f))
		return;
	if (s == &f->slots[0])
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	else if (s->fd >= 0 && fsx_rnd(3) == 0)
		flags = -1;
	else if (empty && (flags & O_ACCMODE) != O_RDONLY)
		flags |= O_TRUNC;
	fsx_note(f, flags < 0 ? "close %d" : "close and open %d, flags %#o", (int)(s - f->slots),
		(unsigned int)flags);
	/* The new one first, or the old one: between them the file may be open nowhere. */
	if (settle)
		slot_close(s);
	if (flags < 0) {
		slot_close(s);
		return;
	}
	struct fsx_slot old = *s;

	slot_open(f, s, flags);
	slot_close(&old);
	if (flags & O_TRUNC)
		fsx_model_resize(f, 0);
}

/* Over a file that is open, and back. */
void fsx_do_rename(void)
{
	struct fsx_file *f = fsx_some_file();
	char over[FSX_PATH];
	uint8_t had[100], has[100];
	int fd;

	if (f->unlinked) {
		fsx_note(f, "rename: no name");
		return;
	}
	fsx_note(f, "rename over an open file, and back");
	beside(over, f, ".over");
	fsx_fill(had, sizeof(had));
	fd = open(over, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, had, sizeof(had)) != (ssize_t)sizeof(had))
		fsx_wrong("%s: %s", over, strerror(errno));
	if (rename(f->path, over))
		fsx_wrong("rename: %s", strerror(errno));
	want_size(over, f->size);
	want_absent(f->path);
	if (pread(fd, has, sizeof(has), 0) != (ssize_t)sizeof(has) ||
		memcmp(had, has, sizeof(had)) != 0)
		fsx_wrong("the file that was renamed over is not what it was");
	if (close(fd))
		fsx_wrong("close: %s", strerror(errno));
	if (rename(over, f->path))
		fsx_wrong("rename back: %s", strerror(errno));
	want_absent(over);
	want_size(f->path, f->size);
}

void fsx_do_link(void)
{
	struct fsx_file *f = fsx_some_file();
	struct stat st;

	if (f->unlinked) {
		fsx_note(f, "link: no name");
		return;
	}
	if (f->second[0]) {
		bool swap = fsx_rnd(2);

		fsx_note(f, "unlink the %s name", swap ? "first" : "second");
		if (unlink(swap ? f->path : f->second))
			fsx_wrong("unlink: %s", strerror(errno));
		want_absent(swap ? f->path : f->second);
		if (swap && rename(f->second, f->path))
			fsx_wrong("rename: %s", strerror(errno));
		want_absent(f->second);
		want_size(f->path, f->size);
		f->second[0] = '\0';
		return;
	}
	fsx_note(f, "link");
	beside(f->second, f, ".second");
	if (link(f->path, f->second))
		fsx_wrong("link: %s", strerror(errno));
	want_size(f->second, f->size);
	if (stat(f->path, &st) || st.st_nlink < 2)
		fsx_wrong("link: %s has one name", f->path);
}

void fsx_do_unlink(void)
{
	struct fsx_file *f = fsx_some_file();
	struct stat st;

	if (f->unlinked) {
		fsx_note(f, "unlink: no name");
		return;
	}
	fsx_note(f, "unlink while open (size %zu)", f->size);
	fsx_remove(f);
	want_absent(f->path);
	if (fstat(f->slots[0].fd, &st) || (size_t)st.st_size != f->size)
		fsx_wrong("the open file's size is %lld, expected %zu", (long long)st.st_size,
			f->size);
}
