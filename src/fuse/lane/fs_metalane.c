/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_current.h"
#include "fs_lane.h"
#include "fs_metalane.h"
#include "fs_asked_buf.h"
#include "fs_interrupt.h"

#include <linux/fuse.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Two names and what comes before them; of a data lane, so many on their way at once. */
#define FORWARDED_MAX 1024u
#define FORWARDED_CNT 64u
#define MISSED        8u

/* One request on its way. */
struct forwarded {
	struct reactor_msg msg;
	struct list link; /* waiting */
	struct fs *fs;
	_Atomic bool busy; /* set by the lane that reads, cleared by the metadata lane */
	uint64_t read_ns;
	uint32_t len;
	alignas(8) uint8_t bytes[FORWARDED_MAX];
};

struct fs_forward {
	unsigned int next;       /* a data lane: of `forwarded`, to be used next */
	struct list waiting;     /* the metadata lane: those that arrived */
	uint64_t missed[MISSED]; /* ... and interrupted requests that had not */
	unsigned int missed_cnt;
	struct forwarded forwarded[FORWARDED_CNT];
};

bool fs_metalane_is_metadata(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_LOOKUP:
	case FUSE_GETATTR:
	case FUSE_SETATTR:
	case FUSE_READLINK:
	case FUSE_SYMLINK:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_LINK:
	case FUSE_OPEN:
	case FUSE_CREATE:
	case FUSE_ACCESS:
	case FUSE_STATFS:
	case FUSE_SETXATTR:
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
	case FUSE_REMOVEXATTR:
	case FUSE_OPENDIR:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_RELEASEDIR:
	case FUSE_FSYNCDIR:
	case FUSE_GETLK:
	case FUSE_SETLK:
	case FUSE_SETLKW:
		return true;
	default:
		return false;
	}
}

/* ---- the metadata lane ---- */

static bool was_missed(const struct fs_forward *h, uint64_t unique)
{
	for (unsigned int i = 0; i < MISSED; i++)
		if (h->missed[i] == unique)
			return true;
	return false;
}

static void begin(struct fs_lane *l, struct forwarded *p)
{
	struct fuse_buf fbuf = {.mem = p->bytes, .size = p->len};
	const struct fuse_in_header *h = (const void *)p->bytes;
	uint64_t unique = h->unique;

	l->unique = unique;
	l->opcode = h->opcode;
	l->redone = false;
	l->read_ns = p->read_ns;
	fs_current_set(l, l->stats);
	fuse_session_process_buf(l->fs->se, &fbuf);
	atomic_store_explicit(&p->busy, false, memory_order_release);
	l->fs->forwarded--;
	if (was_missed(l->forward, unique))
		fs_interrupt_now(l, unique);
}

static void arrived(struct reactor_msg *msg)
{
	struct forwarded *p = container_of(msg, struct forwarded, msg);
	struct fs_lane *metalane = p->fs->metalane;

	list_push_back(&metalane->forward->waiting, &p->link);
	fs_lane_turn(metalane);
}

void fs_metalane_turn(struct fs_lane *l)
{
	struct fs *fs = l->fs;
	struct list *node;
	bool full;

	if (l != fs->metalane)
		return;
	while (!list_empty(&l->forward->waiting) && (l->ops_free > 0 || fs_interrupt_spare(l))) {
		node = list_pop_front(&l->forward->waiting);
		begin(l, container_of(node, struct forwarded, link));
	}
	full = !list_empty(&l->forward->waiting);
	if (fs->metalane_full != full)
		fs->metalane_full = full;
}

void fs_metalane_interrupt(struct fs_lane *l, uint64_t unique)
{
	struct fs_forward *h = l->forward;

	if (!fs_interrupt_now(l, unique) && l == l->fs->metalane)
		h->missed[h->missed_cnt++ % MISSED] = unique;
}

void fs_metalane_make(struct fs_lane *l)
{
	l->fs->metalane = l;
	l->fs->readers--;
}

/* ---- data lanes ---- */

bool fs_metalane_forward(struct fs_lane *l, const void *req, size_t len)
{
	const struct fuse_in_header *in = req;
	struct fs_forward *h = l->forward;
	struct fs *fs = l->fs;
	struct forwarded *p;

	if (!fs->metalane || len > FORWARDED_MAX || !fs_metalane_is_metadata(in->opcode) ||
		fs->metalane_full)
		return false;
	p = &h->forwarded[h->next];
	if (atomic_load_explicit(&p->busy, memory_order_acquire))
		return false;
	fs_asked_buf_list(l);
	h->next = (h->next + 1) % FORWARDED_CNT;
	p->fs = fs;
	p->len = (uint32_t)len;
	p->read_ns = l->read_ns;
	p->msg.run = arrived;
	memcpy(p->bytes, req, len);
	atomic_store_explicit(&p->busy, true, memory_order_relaxed);
	fs->forwarded++;
	stats_count(&l->stats->handed_over, 1);
	reactor_post(fs->metalane->reactor, &p->msg);
	return true;
}

unsigned int fs_metalane_last_bufs(const struct fs_lane *l)
{
	return l->fs->metalane ? 1 : 0;
}

unsigned int fs_metalane_spare_bufs(const struct fs_op *op)
{
	const struct fs_lane *l = op->lane;
	unsigned int half = l->half_bufs;

	if (!l->fs->metalane || l == l->fs->metalane || op->last_buf || half <= 2)
		return 0;
	return half / 2 < half - 2 ? half / 2 : half - 2;
}

/* ---- begin and end ---- */

bool fs_metalane_lane_init(struct fs_lane *l)
{
	if (!l->fs->conf.metalane)
		return true;
	l->forward = calloc(1, sizeof(*l->forward));
	if (!l->forward)
		return false;
	list_init(&l->forward->waiting);
	l->fs->readers++;
	return true;
}

void fs_metalane_lane_fini(struct fs_lane *l)
{
	if (l->fs->metalane == l)
		l->fs->metalane = NULL;
	free(l->forward);
	l->forward = NULL;
}

void fs_metalane_no_more(struct fs_lane *l)
{
	struct fs *fs = l->fs;

	if (!l->forward || l == fs->metalane)
		return;
	/* Not after the count says so: then it may be gone. */
	mutex_lock(&fs->lanes_lock);
	fs->readers--;
	if (fs->metalane)
		fs_lane_kick(fs->metalane);
	mutex_unlock(&fs->lanes_lock);
}

bool fs_metalane_is_over(const struct fs_lane *l)
{
	const struct fs *fs = l->fs;

	return l != fs->metalane || (fs->readers == 0 && fs->forwarded == 0);
}

bool fs_metalane_reads_on(const struct fs_lane *l)
{
	return l->abandoned || l->notify_waits || l->fs->metalane;
}
