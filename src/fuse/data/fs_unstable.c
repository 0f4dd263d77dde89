/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_unstable.h"
#include "fs_extent.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void unstable_init(struct fs_unstable *r)
{
	list_init(&r->waiters);
	list_init(&r->writebacks);
	list_init(&r->writeback_waiters);
	list_init(&r->mapped);
	list_init(&r->mapped_waiters);
}

struct fs_unstable *fs_unstable_of(struct fs_inode *in)
{
	mutex_assert_held(&in->lock);
	if (!in->unstable) {
		in->unstable = calloc(1, sizeof(*in->unstable));
		if (in->unstable)
			unstable_init(in->unstable);
	}
	return in->unstable;
}

void fs_unstable_count(struct fs_file *f, int more)
{
	struct fs_inode *in = f->inode;

	fs_file_unstable(f, more);
	in->unstable->mems += (size_t)more;
	atomic_store_explicit(&in->is_unstable, in->unstable->mems > 0, memory_order_release);
}

void fs_unstable_listed(struct fs_file *f, int more)
{
	struct fs_inode *in = f->inode;
	bool any = !list_empty(&in->unstable->writebacks);

	fs_file_writebacks(f, more);
	atomic_store_explicit(&in->is_written_back, any, memory_order_release);
}

uint64_t fs_unstable_end(const struct fs_inode *in)
{
	const struct fs_unstable *r = in->unstable;
	uint64_t end = 0;

	mutex_assert_held(&in->lock);
	if (!r)
		return 0;
	if (r->cnt > 0)
		end = r->v[r->cnt - 1]->off + r->v[r->cnt - 1]->len;
	list_for_each (node, &r->writebacks) {
		const struct fs_op *c = container_of(node, struct fs_writeback, link)->op;

		if (end < (uint64_t)c->off + c->size)
			end = (uint64_t)c->off + c->size;
	}
	return end;
}

static bool same_verf(const struct nfs4_verf *a, const struct nfs4_verf *b)
{
	return memcmp(a->data, b->data, sizeof(a->data)) == 0;
}

static void set_lost(struct fs_unstable *r, struct fs_extent *e, bool lost)
{
	if (lost == e->lost)
		return;
	e->lost = lost;
	if (!lost) {
		r->lost--;
		return;
	}
	r->lost++;
	r->losses++;
}

bool fs_unstable_new_verf(struct fs_unstable *r, const struct nfs4_verf *verf)
{
	size_t before = r->lost;

	if (same_verf(&r->verf, verf))
		return false;
	r->verf = *verf;
	for (size_t i = 0; i < r->cnt; i++)
		if (!same_verf(&r->v[i]->verf, verf))
			set_lost(r, r->v[i], true);
	return r->lost > before;
}

static void say_lost(struct fs_lane *l, struct fs_inode *in)
{
	stats_count(&l->stats->verifier_changes, 1);
	log_warn_limited("write verifier changed: uncommitted data of file %llu is written again",
		(unsigned long long)fs_inode_fileid(in));
}

/* ---- WRITE ---- */

/* Nothing more of what could not be committed. Inode lock held. */
static bool may_be_unstable(struct fs_unstable *r)
{
	if (r->cnt == 0)
		r->failures = 0; /* that was given up */
	return r->failures == 0;
}

bool fs_unstable_reserve(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_extent *tail = fs_unstable_mem_get_extent(op->lane);
	struct fs_unstable_mem *k = tail ? fs_unstable_mem_new(op) : NULL;
	bool ok = false;

	if (k) {
		mutex_lock(&in->lock);
		ok = in->unstable && may_be_unstable(in->unstable) &&
		     fs_extent_reserve(in->unstable);
		if (ok)
			in->unstable->reserved++;
		mutex_unlock(&in->lock);
	}
	fs_rw(op)->unstable_mem = k;
	if (!ok) {
		fs_unstable_mem_unused(op);
		fs_unstable_mem_put_extent(op->lane, tail);
		return false;
	}
	fs_rw(op)->tail = tail;
	return true;
}

/* The data goes into the memory, and that to its lane's list. Inode lock held. */
static void mem_fill(struct fs_op *op, struct fs_unstable_mem *k)
{
	struct fs_lane *l = op->lane;
	struct fs_extent *e = &k->first;

	if (op->size >= FS_UNSTABLE_LARGE) {
		k->buf = op->buf;
		k->buf->owner = k;
		op->buf = NULL;
		e->p = (uint8_t *)(uintptr_t)fs_rw(op)->data;
	} else if (k->lent) {
		e->p = k->lent;
	} else {
		memcpy(k->data, fs_rw(op)->data, fs_rw(op)->done);
		stats_count(&l->stats->copied_bytes, fs_rw(op)->done);
		e->p = k->data;
	}
	e->mem = k;
	k->since_ns = fs_op_now(op);
	fs_file_get(k->file);
	fs_unstable_count(k->file, 1);
	mutex_lock(&l->unstable->lock);
	list_push_back(&l->unstable->mems, &k->link);
	mutex_unlock(&l->unstable->lock);
}

/* Until it is durable; where it is now, and no more than is written. Inode lock held. */
static void keep(struct fs_op *op, struct fs_extent *e)
{
	struct fs *fs = op->lane->fs;

	fs_kept_move(&e->kept, &op->writeback->kept);
	if (!op->writeback->active)
		fs_kept_request(fs, &e->kept, op->unique);
	if (fs_rw(op)->append || fs_rw(op)->done < op->size)
		fs_kept_data(fs, &e->kept, op->file, e->off, e->p, e->len);
}

static void add_unstable(struct fs_op *op, struct fs_unstable *r, bool lost)
{
	struct fs_inode *in = op->inode;
	struct fs_extent *e = &fs_rw(op)->unstable_mem->first;

	*e = (struct fs_extent){
		.off = (uint64_t)op->off,
		.len = (uint32_t)fs_rw(op)->done,
		.verf = fs_rw(op)->verf,
		.lost = lost,
	};
	e->seq = ++in->write_seq;
	mem_fill(op, fs_rw(op)->unstable_mem);
	keep(op, e);
	fs_extent_insert(r, fs_extent_find(r, e->off), e);
	fs_rw(op)->unstable_mem = NULL;
}

/*
 * Data that is stable already lies in the middle of an extent, and there is no memory to split it:
 * the extent takes the new bytes.
 */
static bool patched(struct fs_op *op, struct fs_unstable *r)
{
	size_t i = fs_extent_find(r, (uint64_t)op->off);
	struct fs_extent *e = i < r->cnt ? r->v[i] : NULL;
	uint64_t off = (uint64_t)op->off;

	if (fs_rw(op)->tail || !e || e->off >= off || e->off + e->len <= off + fs_rw(op)->done)
		return false;
	memcpy(e->p + (off - e->off), fs_rw(op)->data, fs_rw(op)->done);
	fs_kept_data(op->lane->fs, &e->kept, e->mem->file, e->off, e->p, e->len);
	stats_count(&op->lane->stats->copied_bytes, fs_rw(op)->done);
	return true;
}

bool fs_unstable_wrote(struct fs_op *op, bool unstable, bool lost)
{
	struct fs_inode *in = op->inode;
	uint64_t off = (uint64_t)op->off, end = off + fs_rw(op)->done;
	struct fs_unstable_mem *dead = NULL;
	struct fs_unstable *r;
	struct list to_wake = LIST_INIT(to_wake);
	bool changed = false, some_lost = false;

	mutex_lock(&in->lock);
	r = in->unstable;
	if (r && fs_rw(op)->unstable_mem)
		r->reserved--;
	if (r && end > off) {
		if (!patched(op, r))
			fs_extent_cut(r, off, end, &fs_rw(op)->tail, &dead);
		if (unstable && fs_rw(op)->unstable_mem) {
			add_unstable(op, r, lost);
			changed = fs_unstable_new_verf(r, &fs_rw(op)->verf) || lost;
			some_lost = r->lost > 0;
		}
	}
	fs_rewrite_left(op, &to_wake);
	mutex_unlock(&in->lock);
	fs_unstable_mem_free(op->lane, dead);
	fs_unstable_mem_unused(op);
	fs_unstable_mem_put_extent(op->lane, fs_rw(op)->tail);
	fs_rw(op)->tail = NULL;
	if (changed)
		say_lost(op->lane, in);
	fs_op_wake_all(&to_wake);
	return some_lost;
}

void fs_unstable_cut(struct fs_lane *l, struct fs_inode *in, uint64_t size)
{
	struct fs_unstable_mem *dead = NULL;
	struct fs_extent *none = NULL;

	mutex_lock(&in->lock);
	fs_unstable_shorter(in, size);
	if (in->unstable)
		fs_extent_cut(in->unstable, size, UINT64_MAX, &none, &dead);
	mutex_unlock(&in->lock);
	fs_unstable_mem_free(l, dead);
}

void fs_unstable_truncated(struct fs_op *op, uint64_t size)
{
	const struct nfs4_call *call = op->call;
	struct fs_inode *in = op->inode;
	const struct fs_unstable *r = in->unstable;

	if (call->err && call->status != NFS4_OK)
		return; /* refused */
	if (call->err) {
		mutex_lock(&in->lock);
		if (r && r->cnt > 0 && r->v[r->cnt - 1]->off + r->v[r->cnt - 1]->len > size)
			fs_file_tell_error(in, -call->err);
		mutex_unlock(&in->lock);
	}
	fs_unstable_cut(op->lane, in, size);
}

/* ---- COMMIT ---- */

bool fs_unstable_is_empty(const struct fs_inode *in)
{
	return !atomic_load(&in->is_unstable);
}

bool fs_unstable_suspect_locked(const struct fs_op *op)
{
	uint64_t off = (uint64_t)op->off;
	uint32_t gen = nfs4_client_generation(op->lane->fs->client);
	const struct fs_unstable *r = op->inode->unstable;
	bool suspect;

	mutex_assert_held(&op->inode->lock);
	if (!r)
		return false;
	suspect = r->rewriting || r->lost > 0;
	/* Of what lies behind, the last one too: the file would end before it. */
	if (!suspect && r->cnt > 0 && r->v[r->cnt - 1]->off >= off)
		suspect = r->v[r->cnt - 1]->mem->gen != gen;
	for (size_t i = fs_extent_find(r, off);
		!suspect && i < r->cnt && r->v[i]->off < off + op->size; i++)
		suspect = r->v[i]->mem->gen != gen;
	return suspect;
}

bool fs_unstable_suspect(const struct fs_op *op)
{
	bool suspect;

	if (!atomic_load(&op->inode->is_unstable))
		return false;
	mutex_lock(&op->inode->lock);
	suspect = fs_unstable_suspect_locked(op);
	mutex_unlock(&op->inode->lock);
	return suspect;
}

bool fs_unstable_urge(struct fs_inode *in)
{
	mutex_assert_held(&in->lock);
	if (!in->unstable || in->unstable->cnt == 0)
		return false;
	fs_unstable_mem_urge(in->unstable->v[0]->mem); /* a COMMIT is of the whole file */
	return true;
}

struct covered {
	uint64_t seq;
	const struct nfs4_verf *verf;
};

static bool is_durable(const struct fs_extent *e, void *ctx)
{
	const struct covered *c = ctx;

	return !e->lost && e->seq <= c->seq && same_verf(&e->verf, c->verf);
}

void fs_unstable_commit_sent(struct fs_op *op)
{
	struct fs_inode *in = op->inode;

	mutex_lock(&in->lock);
	op->commit->seq = in->write_seq;
	op->commit->losses = in->unstable->losses;
	mutex_unlock(&in->lock);
}

bool fs_unstable_committed(struct fs_op *op, const struct nfs4_verf *verf)
{
	struct fs_inode *in = op->inode;
	struct covered c = {.seq = op->commit->seq, .verf = verf};
	struct fs_unstable *r = in->unstable;
	struct fs_unstable_mem *dead = NULL;
	bool lost, clean;

	mutex_lock(&in->lock);
	fs_extent_remove(r, is_durable, &c, &dead);
	r->failures = 0;
	lost = fs_unstable_new_verf(r, verf);
	/* Also what another operation found lost meanwhile, and may have written again since. */
	clean = r->losses == op->commit->losses && r->lost == 0;
	mutex_unlock(&in->lock);
	fs_unstable_mem_free(op->lane, dead);
	if (lost)
		say_lost(op->lane, in);
	return clean;
}

static bool is_of_file(const struct fs_extent *e, void *ctx)
{
	return e->mem->file == ctx;
}

bool fs_unstable_drop(struct fs_lane *l, struct fs_file *f, int err)
{
	struct fs_unstable_mem *dead = NULL;
	uint64_t bytes = 0;

	mutex_lock(&f->inode->lock);
	if (f->unstable > 0) {
		fs_file_tell_error(f->inode, err); /* before its record goes */
		bytes = fs_extent_remove(f->inode->unstable, is_of_file, f, &dead);
	}
	mutex_unlock(&f->inode->lock);
	atomic_fetch_add(&l->fs->lost_bytes, bytes);
	fs_unstable_mem_free(l, dead);
	return bytes > 0;
}
