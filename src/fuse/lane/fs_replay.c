/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_replay.h"
#include "fs_asked_buf.h"
#include "fs_tables.h"
#include "log.h"
#include "nfs4_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct replay {
	struct list link; /* fs->replays.list, lanes_lock */
	size_t len;
	bool rewrites;  /* data that whoever wrote it was told is written */
	uint64_t after; /* not while this request is awaited; 0: at once */
	uint8_t bytes[];
};

/* Our numbers are from here on, far from those of the kernel. */
#define OURS (1ull << 62)

/* No other process' of this mount is of the same time. */
uint64_t fs_replay_unique(struct fs *fs)
{
	struct timespec ts;

	if (fs->replays.unique == 0) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		fs->replays.unique =
			OURS | (uint64_t)ts.tv_sec << 30 | ((uint64_t)ts.tv_nsec & ~1ull);
	}
	fs->replays.unique += 2;
	return fs->replays.unique;
}

static bool add(struct fs *fs, const void *req, size_t len, bool rewrites, uint64_t after)
{
	struct replay *p = malloc(sizeof(*p) + len);

	if (!p)
		return false;
	p->len = len;
	p->rewrites = rewrites;
	p->after = after;
	memcpy(p->bytes, req, len);
	fs_asked_note(fs, req, len, LIVE_NONE);
	if (rewrites)
		fs_asked_acknowledged(fs, req);
	mutex_lock(&fs->lanes_lock);
	list_push_back(&fs->replays.list, &p->link);
	atomic_fetch_add(&fs->replays.cnt, 1);
	atomic_store(&fs->replaying, true);
	mutex_unlock(&fs->lanes_lock);
	return true;
}

bool fs_replay_add(struct fs *fs, const void *req, size_t len)
{
	return add(fs, req, len, false, 0);
}

bool fs_replay_add_data(struct fs *fs, const void *req, size_t len)
{
	return add(fs, req, len, true, 0);
}

bool fs_replay_add_after(struct fs *fs, const void *req, size_t len, uint64_t unique)
{
	return add(fs, req, len, false, unique);
}

static bool is_release(const struct replay *p, uint64_t handle)
{
	struct fuse_in_header h;
	struct fuse_release_in in;

	if (p->len < sizeof(h) + sizeof(in))
		return false;
	memcpy(&h, p->bytes, sizeof(h));
	memcpy(&in, p->bytes + sizeof(h), sizeof(in));
	return h.opcode == FUSE_RELEASE && in.fh == handle;
}

uint64_t fs_replay_of_owner(struct fs *fs, uint64_t owner)
{
	uint64_t unique = 0;

	mutex_lock(&fs->lanes_lock);
	list_for_each (node, &fs->replays.list) {
		struct fuse_in_header h;

		memcpy(&h, container_of(node, struct replay, link)->bytes, sizeof(h));
		if (nfs4_owner_of_request(h.unique) == owner)
			unique = h.unique;
	}
	mutex_unlock(&fs->lanes_lock);
	return unique;
}

bool fs_replay_has_release(struct fs *fs, uint64_t handle)
{
	bool has = false;

	mutex_lock(&fs->lanes_lock);
	list_for_each (node, &fs->replays.list)
		has = has || is_release(container_of(node, struct replay, link), handle);
	mutex_unlock(&fs->lanes_lock);
	return has;
}

/* ---- of the process before ---- */

static bool add_interrupt(struct fs *fs, const struct fuse_in_header *of)
{
	const struct {
		struct fuse_in_header h;
		struct fuse_interrupt_in in;
	} req = {
		.h = {.len = sizeof(req), .opcode = FUSE_INTERRUPT, .unique = fs_replay_unique(fs)},
		.in = {.unique = of->unique},
	};

	return fs_replay_add(fs, &req, sizeof(req));
}

/* Whoever asked is not looked for: it was answered. */
static void by_nobody(uint8_t *req)
{
	struct fuse_in_header h;

	memcpy(&h, req, sizeof(h));
	h.pid = 0;
	memcpy(req, &h, sizeof(h));
}

/* Of an interrupt. */
#define INT_BIT 1ull

/*
 * Does the kernel wait for no answer? It was answered, and the process died before that was noted;
 * or the kernel gave it up, as when the process died amid reading it. An answer to an interrupt of
 * it finds it, and does nothing.
 */
static bool is_over(const struct fs *fs, uint64_t unique)
{
	const struct fuse_out_header h = {.len = sizeof(h), .unique = unique | INT_BIT};

	return fs->replays.device >= 0 && unique < OURS &&
	       write(fs->replays.device, &h, sizeof(h)) < 0 && errno == ENOENT;
}

int fs_replay_get(struct fs *fs, const struct tables_record *r, uint64_t *ret_unique)
{
	uint64_t state = tables_get(r, FS_ASKED_STATE);
	uint8_t *bytes = malloc(r->len > 0 ? r->len : 1);
	struct fuse_in_header h = {0};
	size_t len;
	int err = 0;

	*ret_unique = 0;
	if (!bytes)
		return -ENOMEM;
	len = fs_asked_get_bytes(r, bytes);
	if (len >= sizeof(h))
		memcpy(&h, bytes, sizeof(h));
	if (len < sizeof(h) || h.len != len) {
		free(bytes);
		return -EBADMSG;
	}
	/* Of one that was noted as the process died there may be two records. */
	if (fs_asked_is(fs, h.unique) || (state != FS_ASKED_KEPT && is_over(fs, h.unique))) {
		free(bytes);
		return 0;
	}
	if (state == FS_ASKED_KEPT)
		by_nobody(bytes);
	if (!add(fs, bytes, len, state == FS_ASKED_KEPT, 0) ||
		(state == FS_ASKED_INTERRUPTED && !add_interrupt(fs, &h)))
		err = -ENOMEM;
	/*
	 * It may have been answered: then what the kernel asks for next comes after it. Only a
	 * lock may be waited for as long as others please.
	 */
	if (!err && h.opcode != FUSE_SETLKW)
		fs_asked_await(fs, h.unique);
	*ret_unique = state == FS_ASKED_KEPT ? 0 : h.unique;
	free(bytes);
	return err;
}

/* ---- lanes take them ---- */

static bool any(const struct fs *fs)
{
	return atomic_load_explicit(&fs->replays.cnt, memory_order_relaxed) > 0;
}

/*
 * Data that was acknowledged is written before anything that was asked after that, and that may
 * read it, or write over it: one after the other, as a part of it may be there twice. And after
 * what was asked before, and may write over it (precedes_data()). lanes_lock.
 */
static struct replay *next(struct fs *fs)
{
	struct replay *p;

	if (list_empty(&fs->replays.list))
		return NULL;
	p = container_of(fs->replays.list.next, struct replay, link);
	if (p->rewrites && fs_asked_precedes(fs))
		return NULL;
	return fs_asked_rewrites(fs) || fs_asked_is_awaited(fs, p->after) ? NULL : p;
}

bool fs_replay_is_next(const struct fs_lane *l)
{
	bool is;

	if (l->link.prev != &l->fs->lanes || !list_empty(&l->parked) || !any(l->fs))
		return false;
	mutex_lock(&l->fs->lanes_lock);
	is = next(l->fs) != NULL;
	mutex_unlock(&l->fs->lanes_lock);
	return is;
}

enum fs_replay_turn fs_replay_turn(struct fs_lane *l)
{
	struct fs *fs = l->fs;
	bool first = l->link.prev == &fs->lanes;

	if (!fs->replaying)
		return FS_REPLAY_NONE;
	/* Said before it is looked at, so that whoever answers in this moment sees it. */
	if (first)
		atomic_store(&fs->replays.looked_for, true);
	if (fs_replay_is_next(l))
		return FS_REPLAY_NEXT;
	if (any(fs)) /* another lane answered what the next one waits for? */
		return !first && atomic_exchange(&fs->replays.looked_for, false) ? FS_REPLAY_OTHERS
										 : FS_REPLAY_NONE;
	if (fs_asked_awaits(fs) || !atomic_exchange(&fs->replaying, false))
		return FS_REPLAY_NONE;
	atomic_store(&fs->replays.over, true);
	return FS_REPLAY_OVER;
}

/* ---- what was done already ---- */

static void answer(struct fs *fs, uint64_t unique)
{
	struct fuse_out_header h = {.len = sizeof(h), .unique = unique};

	/* Refused: nobody waits for it any more. */
	(void)!write(fs->fd, &h, sizeof(h));
	fs_asked_answered(fs, unique);
}

/* The name that it made is looked up: the answer has the same form. name: in `req`. */
static size_t as_lookup(uint8_t *req, struct fuse_in_header *h, const uint8_t *name)
{
	size_t len = strnlen((const char *)name, (size_t)(req + h->len - name));

	if (name + len >= req + h->len)
		return 0;
	memmove(req + sizeof(*h), name, len + 1);
	h->opcode = FUSE_LOOKUP;
	h->len = (uint32_t)(sizeof(*h) + len + 1);
	memcpy(req, h, sizeof(*h));
	return h->len;
}

/* The file is there, and empty: it is opened. */
static size_t as_open(uint8_t *req, const struct fuse_in_header *h)
{
	struct fuse_create_in in;

	if (h->len < sizeof(*h) + sizeof(in))
		return 0;
	memcpy(&in, req + sizeof(*h), sizeof(in));
	in.flags &= ~(uint32_t)(O_EXCL | O_TRUNC);
	memcpy(req + sizeof(*h), &in, sizeof(in));
	return h->len;
}

/* The server did what the request asks for. Returns: the bytes of what is left to do; 0: none. */
static size_t rest_of(struct fs *fs, uint8_t *req)
{
	struct fuse_in_header h;

	memcpy(&h, req, sizeof(h));
	switch (h.opcode) {
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		answer(fs, h.unique);
		return 0;
	case FUSE_MKDIR:
		return as_lookup(req, &h, req + sizeof(h) + sizeof(struct fuse_mkdir_in));
	case FUSE_MKNOD:
		return as_lookup(req, &h, req + sizeof(h) + sizeof(struct fuse_mknod_in));
	case FUSE_LINK:
		return as_lookup(req, &h, req + sizeof(h) + sizeof(struct fuse_link_in));
	case FUSE_SYMLINK:
		return as_lookup(req, &h, req + sizeof(h));
	case FUSE_CREATE:
		return as_open(req, &h);
	default:
		return h.len;
	}
}

/*
 * It changes what is in a file. It may have been answered, as late as just before the process died,
 * and its program may have written since.
 */
static bool precedes_data(const struct replay *p)
{
	struct fuse_in_header h;
	struct fuse_setattr_in attr;
	struct fuse_open_in open;
	const uint8_t *arg = p->bytes + sizeof(h);

	memcpy(&h, p->bytes, sizeof(h));
	switch (h.opcode) {
	case FUSE_SETATTR:
		if (p->len < sizeof(h) + sizeof(attr))
			return false;
		memcpy(&attr, arg, sizeof(attr));
		return (attr.valid & FATTR_SIZE) != 0;
	case FUSE_OPEN:
	case FUSE_CREATE: /* begins as that one does */
		if (p->len < sizeof(h) + sizeof(open))
			return false;
		memcpy(&open, arg, sizeof(open));
		return (open.flags & O_TRUNC) != 0;
	case FUSE_WRITE:
	case FUSE_FALLOCATE:
	case FUSE_COPY_FILE_RANGE:
		return true;
	default:
		return false;
	}
}

static struct replay *pop(struct fs *fs)
{
	struct replay *p;

	mutex_lock(&fs->lanes_lock);
	p = next(fs);
	if (p) {
		list_del(&p->link);
		atomic_fetch_sub(&fs->replays.cnt, 1);
	}
	mutex_unlock(&fs->lanes_lock);
	return p;
}

int fs_replay_receive(struct fs_lane *l, struct fuse_buf *buf)
{
	size_t room = (size_t)(l->rxbuf->data - l->rxbuf->mem) + l->fs->data_size;
	struct fs *fs = l->fs;
	struct replay *p;
	size_t len = 0;

	fs_asked_buf_leave(l, l->rxbuf);
	while (len == 0 && (p = pop(fs))) {
		struct fuse_in_header h;

		memcpy(&h, p->bytes, sizeof(h));
		if (p->rewrites)
			fs_asked_rewrite(fs, h.unique);
		else if (precedes_data(p))
			fs_asked_precede(fs, h.unique);
		len = nfs4_redo_was_done(fs->client, h.unique) ? rest_of(fs, p->bytes) : p->len;
		if (len > room) { /* cannot be: INIT says how long they are */
			log_err("a request of %zu bytes was too long to be done again", len);
			len = 0;
		}
		memcpy(buf->mem, p->bytes, len);
		free(p);
	}
	buf->size = len;
	return len > 0 ? (int)len : -EAGAIN;
}

void fs_replay_fini(struct fs *fs)
{
	struct list *node;

	while ((node = list_pop_front(&fs->replays.list)))
		free(container_of(node, struct replay, link));
}
