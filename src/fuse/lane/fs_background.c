/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_background.h"
#include "fs_op.h"

#include <linux/fuse.h>
#include <poll.h>

/* Parts of fs->background. */
#define UNANSWERED 1ull
#define ANSWERING  (1ull << 24) /* of those that are unanswered */
#define BEGUN      (1ull << 40) /* answers; it wraps */

static unsigned int unanswered(uint64_t background)
{
	return (unsigned int)(background % ANSWERING);
}

static unsigned int answering(uint64_t background)
{
	return (unsigned int)(background % BEGUN / ANSWERING);
}

void fs_background_begin(struct fs_op *op)
{
	op->background = op->opcode == FUSE_READ || op->opcode == FUSE_WRITE ||
			 op->opcode == FUSE_RELEASE || op->opcode == FUSE_RELEASEDIR;
	if (op->background)
		atomic_fetch_add(&op->lane->fs->background, UNANSWERED);
}

void fs_background_end(struct fs_op *op)
{
	struct fs_lane *l = op->lane;
	struct fs *fs = l->fs;

	if (!op->background)
		return;
	fs_background_answered(l); /* of one that could not be given */
	op->background = false;
	l->answering = true;
	if (unanswered(atomic_fetch_add(&fs->background, ANSWERING + BEGUN)) >= fs->max_background)
		atomic_store(&fs->full_ns, fs_op_now(op));
}

void fs_background_answered(struct fs_lane *l)
{
	if (!l->answering)
		return;
	l->answering = false;
	atomic_fetch_sub(&l->fs->background, ANSWERING + UNANSWERED);
}

unsigned int fs_background_cnt(const struct fs *fs)
{
	return unanswered(atomic_load(&fs->background));
}

bool fs_background_is_kept(const struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	uint64_t full_ns = atomic_load(&fs->full_ns);

	return fs_background_cnt(fs) >= fs->max_background ||
	       (full_ns != 0 && fs_op_now(op) < full_ns + FS_BACKGROUND_NS);
}

static bool others_read(const struct fs_lane *l)
{
	bool read = false;

	mutex_lock(&l->fs->lanes_lock);
	list_for_each (node, &l->fs->lanes)
		if (container_of(node, struct fs_lane, link) != l)
			read |= atomic_load(&container_of(node, struct fs_lane, link)->reading);
	mutex_unlock(&l->fs->lanes_lock);
	return read;
}

bool fs_background_is_unread(const struct fs_lane *l)
{
	struct pollfd p = {.fd = l->fs->fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0 || others_read(l);
}

/*
 * If the kernel kept any when /dev/fuse was empty then max_background were read and not answered.
 * All of those are counted once no lane reads and nothing is on its way to the metadata lane,
 * unless an answer was begun meanwhile.
 */
bool fs_background_is_none(const struct fs_lane *l)
{
	uint64_t before = atomic_load(&l->fs->background), after;

	if (answering(before) > 0 || fs_background_is_unread(l))
		return false;
	if (atomic_load(&l->fs->forwarded) > 0)
		return false;
	after = atomic_load(&l->fs->background);
	return unanswered(after) < l->fs->max_background && after / BEGUN == before / BEGUN;
}
