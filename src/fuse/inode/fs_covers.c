/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_covers.h"
#include "mount_field.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define READ_STEP (64u * 1024)

/* A mount of a line; the paths with their escapes. */
struct line {
	unsigned int id, parent;
	dev_t dev;
	const char *root, *point;
	size_t root_len, point_len;
};

/* ---- mountinfo: proc_pid_mountinfo(5) ---- */

#define FIELDS 5u /* ID, parent, device, root, mountpoint: the rest is not looked at */

static bool parse_line(const char *at, struct line *l)
{
	const char *field[FIELDS], *end;
	char *rest;

	for (unsigned int i = 0; i < FIELDS; i++) {
		field[i] = at;
		at += strcspn(at, " \n");
		if (at == field[i] || (*at != ' ' && i + 1 < FIELDS))
			return false;
		at++;
	}
	end = at - 1;
	l->id = (unsigned int)strtoul(field[0], NULL, 10);
	l->parent = (unsigned int)strtoul(field[1], NULL, 10);
	l->dev = (dev_t)strtoul(field[2], &rest, 10);
	if (*rest != ':')
		return false;
	l->dev = makedev((unsigned int)l->dev, (unsigned int)strtoul(rest + 1, NULL, 10));
	l->root = field[3];
	l->root_len = (size_t)(field[4] - field[3]) - 1;
	l->point = field[4];
	l->point_len = (size_t)(end - field[4]);
	return true;
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return *at ? at + 1 : at;
}

/* The mounts of `dev`: one, and what was bound from it. 0 or -ENOMEM. */
static int mounts_of(const char *mountinfo, dev_t dev, struct line **ret, unsigned int *ret_cnt)
{
	struct line l, *found = NULL, *more;

	*ret_cnt = 0;
	for (const char *at = mountinfo; *at; at = next_line(at)) {
		if (!parse_line(at, &l) || l.dev != dev)
			continue;
		more = realloc(found, (*ret_cnt + 1) * sizeof(*found));
		if (!more) {
			free(found);
			return -ENOMEM;
		}
		found = more;
		found[(*ret_cnt)++] = l;
	}
	*ret = found;
	return 0;
}

static const struct line *by_id(const struct line *mounts, unsigned int cnt, unsigned int id)
{
	for (unsigned int i = 0; i < cnt; i++)
		if (mounts[i].id == id)
			return &mounts[i];
	return NULL;
}

/* Where in the file system of `on` the mount `l` lies: its root, and the way from there. */
static size_t put_path(char *to, const struct line *on, const struct line *l)
{
	size_t below = on->point_len == 1 ? 0 : on->point_len; /* "/" */
	size_t n = 0;

	if (on->root_len > 1)
		n = mount_field(to, on->root + 1, on->root_len - 1);
	if (l->point_len > below + 1) {
		if (n > 0)
			to[n++] = '/';
		n += mount_field(to + n, l->point + below + 1, l->point_len - below - 1);
	}
	to[n++] = '\0';
	return n;
}

int fs_covers_parse(const char *mountinfo, dev_t dev, char **ret_paths, size_t *ret_len)
{
	struct line l, *ours;
	unsigned int cnt;
	char *paths = NULL, *more;
	size_t len = 0;
	int err = mounts_of(mountinfo, dev, &ours, &cnt);

	if (err != 0)
		return err;
	for (const char *at = mountinfo; cnt > 0 && *at; at = next_line(at)) {
		const struct line *on = parse_line(at, &l) ? by_id(ours, cnt, l.parent) : NULL;

		if (!on)
			continue;
		more = realloc(paths, len + on->root_len + l.point_len + 2);
		if (!more) { /* a part would not name what is covered */
			free(paths);
			free(ours);
			return -ENOMEM;
		}
		paths = more;
		len += put_path(paths + len, on, &l);
	}
	free(ours);
	*ret_paths = paths;
	*ret_len = len;
	return 0;
}

/* ---- the list, kept until it changes ---- */

void fs_covers_init(struct fs_covers *c)
{
	mutex_init(&c->lock, MUTEX_FS_COVERS);
	c->file = "/proc/self/mountinfo";
	c->fd = -1;
	c->paths = NULL;
	c->len = 0;
}

void fs_covers_fini(struct fs_covers *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->paths);
	mutex_destroy(&c->lock);
}

/* NULL: it cannot be read. */
static char *read_all(int fd)
{
	char *text = NULL, *more;
	size_t len = 0;
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return NULL;
	do {
		more = realloc(text, len + READ_STEP + 1);
		if (!more) {
			free(text);
			return NULL;
		}
		text = more;
		n = read(fd, text + len, READ_STEP);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0) { /* nor would a part of the file */
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

/* The kernel tells each descriptor once. */
static bool has_changed(struct fs_covers *c)
{
	struct pollfd p = {.events = POLLPRI};

	if (c->fd < 0) {
		c->fd = open(c->file, O_RDONLY | O_CLOEXEC);
		return c->fd >= 0;
	}
	p.fd = c->fd;
	return poll(&p, 1, 0) > 0;
}

/* A list that cannot be read leaves the one of before. */
static void refresh(struct fs_covers *c, dev_t dev)
{
	char *text, *paths;
	size_t len;

	if (!has_changed(c))
		return;
	text = read_all(c->fd);
	if (text && fs_covers_parse(text, dev, &paths, &len) == 0) {
		free(c->paths);
		c->paths = paths;
		c->len = len;
	} else { /* a change is told once: a new descriptor tells it again */
		close(c->fd);
		c->fd = -1;
	}
	free(text);
}

/* Is it a path to this name? *ret_dir: how much of it is the directory. */
static bool is_named(const char *path, const char *name, size_t *ret_dir)
{
	const char *slash = strrchr(path, '/');

	*ret_dir = slash ? (size_t)(slash - path) : 0;
	return strcmp(slash ? slash + 1 : path, name) == 0;
}

int fs_covers_of(struct fs_covers *c, dev_t dev, const char *name, char **ret_dirs,
	unsigned int *ret_cnt, size_t *ret_len)
{
	char *dirs = NULL;
	unsigned int cnt = 0;
	size_t len = 0, dir;
	int err = 0;

	*ret_dirs = NULL;
	if (dev == 0)
		return 0;
	mutex_lock(&c->lock);
	refresh(c, dev);
	for (size_t at = 0; at < c->len; at += strlen(c->paths + at) + 1) {
		if (!is_named(c->paths + at, name, &dir))
			continue;
		if (!dirs && !(dirs = malloc(c->len))) {
			err = -ENOMEM;
			break;
		}
		memcpy(dirs + len, c->paths + at, dir);
		dirs[len + dir] = '\0';
		len += dir + 1;
		cnt++;
	}
	mutex_unlock(&c->lock);
	*ret_dirs = dirs;
	*ret_cnt = cnt;
	*ret_len = len;
	return err;
}

bool fs_covers_any(struct fs_covers *c, dev_t dev)
{
	bool any;

	if (dev == 0)
		return true;
	mutex_lock(&c->lock);
	refresh(c, dev);
	any = c->len > 0 || c->fd < 0;
	mutex_unlock(&c->lock);
	return any;
}
