/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_metalane.h"
#include "fs_interrupt.h"

#include <linux/fuse.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Two names and what comes before them; of a data lane, so many on their way at once. */
#define PARCEL_MAX 1024u
#define PARCELS    64u
#define MISSED     8u

/* One request on its way. */
struct parcel {
	struct reactor_msg msg;
	struct list link; /* waiting */
	struct fs *fs;
	_Atomic bool busy; /* set by the lane that reads, cleared by the metadata lane */
	uint64_t read_ns;
	uint32_t len;
	alignas(8) uint8_t bytes[PARCEL_MAX];
};

struct fs_handover {
	unsigned int next;       /* a data lane: of parcels, to be used next */
	struct list waiting;     /* the metadata lane: parcels that arrived */
	uint64_t missed[MISSED]; /* ... and interrupted requests that had not */
	unsigned int missed_cnt;
	struct parcel parcels[PARCELS];
};

bool fs_handover_is_metadata(uint32_t opcode)
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

static bool was_missed(const struct fs_handover *h, uint64_t unique)
{
	for (unsigned int i = 0; i < MISSED; i++)
		if (h->missed[i] == unique)
			return true;
	return false;
}

static void begin(struct fs_lane *l, struct parcel *p)
{
	struct fuse_buf fbuf = {.mem = p->bytes, .size = p->len};
	const struct fuse_in_header *h = (const void *)p->bytes;
	uint64_t unique = h->unique;

	l->unique = unique;
	l->opcode = h->opcode;
	l->read_ns = p->read_ns;
	fs_lane_set_current(l);
	fuse_session_process_buf(l->fs->se, &fbuf);
	atomic_store_explicit(&p->busy, false, memory_order_release);
	l->fs->handed--;
	if (was_missed(l->handover, unique))
		fs_interrupt_now(l, unique);
}

static void arrived(struct reactor_msg *msg)
{
	struct parcel *p = container_of(msg, struct parcel, msg);
	struct fs_lane *meta = p->fs->meta;

	list_push_back(&meta->handover->waiting, &p->link);
	fs_lane_turn(meta);
}

void fs_handover_turn(struct fs_lane *l)
{
	struct fs *fs = l->fs;
	struct list *node;
	bool full;

	if (l != fs->meta)
		return;
	while (!list_empty(&l->handover->waiting) && (l->ops_free > 0 || fs_interrupt_spare(l))) {
		node = list_pop_front(&l->handover->waiting);
		begin(l, container_of(node, struct parcel, link));
	}
	full = !list_empty(&l->handover->waiting);
	if (fs->meta_full != full)
		fs->meta_full = full;
}

void fs_handover_interrupt(struct fs_lane *l, uint64_t unique)
{
	struct fs_handover *h = l->handover;

	if (!fs_interrupt_now(l, unique) && l == l->fs->meta)
		h->missed[h->missed_cnt++ % MISSED] = unique;
}

void fs_lane_for_metadata(struct fs_lane *l)
{
	l->fs->meta = l;
	l->fs->readers--;
}

/* ---- data lanes ---- */

bool fs_handover_give(struct fs_lane *l, const void *req, size_t len)
{
	const struct fuse_in_header *in = req;
	struct fs_handover *h = l->handover;
	struct fs *fs = l->fs;
	struct parcel *p;

	if (!fs->meta || len > PARCEL_MAX || !fs_handover_is_metadata(in->opcode) || fs->meta_full)
		return false;
	p = &h->parcels[h->next];
	if (atomic_load_explicit(&p->busy, memory_order_acquire))
		return false;
	h->next = (h->next + 1) % PARCELS;
	p->fs = fs;
	p->len = (uint32_t)len;
	p->read_ns = l->read_ns;
	p->msg.run = arrived;
	memcpy(p->bytes, req, len);
	atomic_store_explicit(&p->busy, true, memory_order_relaxed);
	fs->handed++;
	stats_count(&l->stats->handed_over, 1);
	reactor_post(fs->meta->reactor, &p->msg);
	return true;
}

unsigned int fs_handover_last_bufs(const struct fs_lane *l)
{
	return l->fs->meta ? 1 : 0;
}

unsigned int fs_handover_spare_bufs(const struct fs_op *op)
{
	const struct fs_lane *l = op->lane;
	unsigned int half = l->unstable_bufs_max;

	if (!l->fs->meta || l == l->fs->meta || op->last_buf || half <= 2)
		return 0;
	return half / 2 < half - 2 ? half / 2 : half - 2;
}

/* ---- begin and end ---- */

bool fs_handover_lane_init(struct fs_lane *l)
{
	if (!l->fs->conf.metalane)
		return true;
	l->handover = calloc(1, sizeof(*l->handover));
	if (!l->handover)
		return false;
	list_init(&l->handover->waiting);
	l->fs->readers++;
	return true;
}

void fs_handover_lane_fini(struct fs_lane *l)
{
	if (l->fs->meta == l)
		l->fs->meta = NULL;
	free(l->handover);
	l->handover = NULL;
}

void fs_handover_no_more(struct fs_lane *l)
{
	struct fs *fs = l->fs;

	if (!l->handover || l == fs->meta)
		return;
	/* Not after the count says so: then it may be gone. */
	mutex_lock(&fs->lanes_lock);
	fs->readers--;
	if (fs->meta)
		fs_lane_kick(fs->meta);
	mutex_unlock(&fs->lanes_lock);
}

bool fs_handover_is_over(const struct fs_lane *l)
{
	const struct fs *fs = l->fs;

	return l != fs->meta || (fs->readers == 0 && fs->handed == 0);
}

bool fs_handover_reads_on(const struct fs_lane *l)
{
	return l->abandoned || l->notify_waits || l->fs->meta;
}
