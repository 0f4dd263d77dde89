/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of unstable data: the lane's budget for it, and how it comes back to
 * its lane, whichever lane's COMMIT released it.
 */
#include "fs_asked_buf.h"
#include "fs_file.h"
#include "fs_lane.h"
#include "fs_unstable.h"
#include "fs_part.h"

#include <assert.h>
#include <linux/fuse.h>
#include <stdlib.h>

/* A copy counts as so many bytes at least: extents of a few bytes make long lists too. */
#define CHARGE_MIN 512u

/* ---- the lane's budget ---- */

/* Buffers that other lanes gave back. */
static void take_returned(struct fs_lane *l)
{
	struct list batch;
	struct list *node;

	list_init(&batch);
	mutex_lock(&l->unstable->lock);
	list_splice_back(&batch, &l->unstable->returned);
	l->unstable->return_posted = false;
	mutex_unlock(&l->unstable->lock);
	while ((node = list_pop_front(&batch)))
		fs_asked_buf_put(l, container_of(node, struct rpcrdma_buf, link));
}

static void returned(struct reactor_msg *msg)
{
	take_returned(container_of(msg, struct fs_unstable_lane, return_msg)->lane);
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->unstable = mem;
	l->unstable->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	list_init(&l->unstable->mems);
	list_init(&l->unstable->returned);
	l->unstable->return_msg.run = returned;
	l->unstable->bufs_max = l->half_bufs; /* the other half is for what is on its way */
	mutex_init(&l->unstable->lock, MUTEX_FS_UNSTABLE);
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	struct fs_unstable_mem *k;
	struct fs_extent *e;

	assert(list_empty(&l->unstable->mems));
	while ((e = l->unstable->spare_extents)) {
		l->unstable->spare_extents = e->next;
		free(e);
	}
	while ((k = l->unstable->spare_mems)) {
		l->unstable->spare_mems = k->next;
		free(k);
	}
	take_returned(l);
	mutex_destroy(&l->unstable->lock);
}

/* Nobody else takes of it. */
static bool budget_take(struct fs_lane *l, bool large, uint32_t charge)
{
	bool ok = large ? l->unstable->bufs < l->unstable->bufs_max
			: l->unstable->bytes + charge <= FS_UNSTABLE_BYTES;

	if (ok && large)
		l->unstable->bufs++;
	else if (ok)
		l->unstable->bytes += charge;
	return ok;
}

static void budget_put(struct fs_lane *l, bool large, uint32_t charge)
{
	if (large)
		l->unstable->bufs--;
	else
		l->unstable->bytes -= charge;
}

/* It is late, or not any more. fs_unstable_lane.lock held. */
static void count_late(struct fs_lane *l, const struct fs_unstable_mem *k, int by)
{
	if (k->buf)
		l->unstable->late_bufs += (unsigned int)by;
	else
		l->unstable->late_bytes += (uint32_t)by * k->charge;
}

void fs_unstable_mem_late(struct fs_lane *l, const struct fs_inode *in, uint64_t until_ns)
{
	struct list late;

	list_init(&late);
	mutex_lock(&l->unstable->lock);
	list_for_each_safe (node, next, &l->unstable->mems) {
		struct fs_unstable_mem *k = container_of(node, struct fs_unstable_mem, link);

		if (k->file->inode != in)
			continue;
		if (!k->not_before)
			count_late(l, k, 1);
		k->not_before = until_ns;
		list_del(node);
		list_push_back(&late, node);
	}
	list_splice_back(&l->unstable->mems, &late);
	mutex_unlock(&l->unstable->lock);
}

void fs_unstable_mem_urge(struct fs_unstable_mem *k)
{
	struct fs_lane *l = k->lane;
	bool waits;

	mutex_lock(&l->unstable->lock);
	waits = k->not_before != 0;
	if (!waits) {
		k->since_ns = 0;
		list_del(&k->link);
		list_push_front(&l->unstable->mems, &k->link);
	}
	mutex_unlock(&l->unstable->lock);
	if (waits)
		return;
	l->commit->due = true;
	fs_lane_kick(l);
}

bool fs_unstable_mem_half(const struct fs_lane *l)
{
	unsigned int bufs = l->unstable->bufs - l->unstable->late_bufs;

	mutex_assert_held(&l->unstable->lock);
	return (bufs > 0 && bufs * 2 >= l->unstable->bufs_max - l->unstable->late_bufs) ||
	       (l->unstable->bytes - l->unstable->late_bytes) * 2 >=
		       FS_UNSTABLE_BYTES - l->unstable->late_bytes;
}

struct fs_unstable_mem *fs_unstable_mem_oldest(struct fs_lane *l, uint64_t now_ns)
{
	const struct fs_unstable_mem *first = NULL;

	mutex_assert_held(&l->unstable->lock);
	while (!list_empty(&l->unstable->mems)) {
		struct fs_unstable_mem *k =
			list_first(&l->unstable->mems, struct fs_unstable_mem, link);

		if (k->not_before <= now_ns)
			return k;
		if (k == first)
			return NULL;
		if (!first)
			first = k;
		/* Those that wait are not looked at each time. */
		list_del(&k->link);
		list_push_back(&l->unstable->mems, &k->link);
	}
	return NULL;
}

/* bytes: of its own data; 0: that is elsewhere. */
static struct fs_unstable_mem *mem_get(struct fs_lane *l, size_t bytes)
{
	struct fs_unstable_mem *k = bytes == 0 ? l->unstable->spare_mems : NULL;

	if (!k)
		return malloc(sizeof(*k) + bytes);
	l->unstable->spare_mems = k->next;
	return k;
}

/* Of another lane it is not kept: one that only commits would gather them. */
static void mem_put(struct fs_lane *current, struct fs_unstable_mem *k)
{
	if (!k->lent || k->lane != current) {
		free(k);
		return;
	}
	k->next = current->unstable->spare_mems;
	current->unstable->spare_mems = k;
}

/* Off its lane's list and budget. */
static void mem_leave(const struct fs_lane *current, struct fs_unstable_mem *k)
{
	struct fs_lane *l = k->lane;
	struct rpcrdma_buf *buf = k->buf;

	mutex_assert_held(&l->unstable->lock);
	list_del(&k->link);
	budget_put(l, buf != NULL, k->charge);
	if (k->not_before)
		count_late(l, k, -1);
	if (!buf || l == current)
		return;
	list_push_back(&l->unstable->returned, &buf->link);
	if (!l->unstable->return_posted) /* inside the lock: the lane may not go before */
		reactor_post(l->reactor, &l->unstable->return_msg);
	l->unstable->return_posted = true;
}

/* The first ones, which are of one lane, leave it. Returns: the first of another lane, or NULL. */
static const struct fs_unstable_mem *leave_lane(
	const struct fs_lane *current, struct fs_unstable_mem *dead)
{
	struct fs_lane *l = dead->lane;

	mutex_lock(&l->unstable->lock);
	for (; dead && dead->lane == l; dead = dead->next)
		mem_leave(current, dead);
	mutex_unlock(&l->unstable->lock);
	return dead;
}

/* Its lane may be gone by now. */
static void mem_free(struct fs_lane *current, struct fs_unstable_mem *k)
{
	if (k->buf && k->lane == current)
		fs_asked_buf_put(current, k->buf);
	fs_asked_buf_give_back(current->fs, k->record, k->unique);
	fs_file_put(current->fs, k->file);
	mem_put(current, k);
}

void fs_unstable_mem_free(struct fs_lane *l, struct fs_unstable_mem *dead)
{
	while (dead) {
		const struct fs_unstable_mem *end = leave_lane(l, dead);

		while (dead != end) {
			struct fs_unstable_mem *next = dead->next;

			mem_free(l, dead);
			dead = next;
		}
	}
}

struct fs_unstable_mem *fs_unstable_mem_new(struct fs_op *op)
{
	bool large = op->size >= FS_UNSTABLE_LARGE;
	size_t bytes = sizeof(struct fs_unstable_mem) + op->size;
	uint32_t charge = large ? 0 : bytes < CHARGE_MIN ? CHARGE_MIN : (uint32_t)bytes;
	const struct fuse_in_header *h = (const void *)op->buf->mem;
	live_ref record = LIVE_NONE;
	struct fs_unstable_mem *k;
	uint8_t *lent = NULL;

	if (!budget_take(op->lane, large, charge))
		return NULL;
	if (!large)
		lent = fs_asked_buf_lend(op->lane, op->buf, fs_rw(op)->data, op->size, &record);
	k = mem_get(op->lane, large || lent ? 0 : op->size);
	if (!k) {
		fs_asked_buf_give_back(op->lane->fs, record, h->unique);
		budget_put(op->lane, large, charge);
		return NULL;
	}
	k->lent = lent;
	k->record = record;
	k->unique = h->unique;
	list_init(&k->link);
	k->next = NULL;
	k->lane = op->lane;
	k->file = op->file;
	k->buf = NULL;
	k->refs = 0;
	k->charge = charge;
	k->since_ns = k->not_before = 0;
	atomic_init(&k->gen, nfs4_client_generation(op->lane->fs->client));
	return k;
}

void fs_unstable_mem_unused(struct fs_op *op)
{
	struct fs_lane *l = op->lane;
	struct fs_unstable_mem *k = fs_rw(op)->unstable_mem;

	if (!k)
		return;
	budget_put(l, op->size >= FS_UNSTABLE_LARGE, k->charge);
	fs_asked_buf_give_back(l->fs, k->record, k->unique);
	mem_put(l, k);
	fs_rw(op)->unstable_mem = NULL;
}

struct fs_extent *fs_unstable_mem_get_extent(struct fs_lane *l)
{
	struct fs_extent *e = l->unstable->spare_extents;

	if (!e)
		return malloc(sizeof(*e));
	l->unstable->spare_extents = e->next;
	return e;
}

void fs_unstable_mem_put_extent(struct fs_lane *l, struct fs_extent *e)
{
	if (!e)
		return;
	e->next = l->unstable->spare_extents;
	l->unstable->spare_extents = e;
}

static void inode_gone(struct fs_inode *in)
{
	if (in->unstable)
		free(in->unstable->v);
	free(in->unstable);
}

const struct fs_part fs_unstable_mem_part = {
	.lane_size = sizeof(struct fs_unstable_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.inode_gone = inode_gone,
	.inode_end = fs_unstable_end,
	.inode_changed = fs_unstable_urge,
};
