/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is held, and who waits until it is not.
 *
 * A delegation that comes while something here is on its way that it would be
 * in the way of is refused: the server would have to call it back at once.
 */
#include "fs_deleg.h"
#include "fs_attr.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_inode.h"
#include "fs_share.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>

/* As many as the kernel's client does not mind by far. */
#define DELEGS_MAX 2000u
/* Of those least recently used so many are looked at for one that is idle. */
#define LOOK_AT 64u

/* ---- what the server says; states.lock held ---- */

static void on_recall(void *ctx, struct nfs4_deleg *nd)
{
	struct fs_deleg *d = container_of(nd, struct fs_deleg, nd);

	mutex_lock(&d->fs->delegs->lock);
	mutex_lock(&d->inode->lock);
	d->recalled = true;
	mutex_unlock(&d->inode->lock);
	fs_deleg_return_due(d);
	mutex_unlock(&d->fs->delegs->lock);
}

static void on_lost(void *ctx, struct nfs4_deleg *nd)
{
	struct fs_deleg *d = container_of(nd, struct fs_deleg, nd);

	mutex_lock(&d->fs->delegs->lock);
	fs_deleg_return_lost(d);
	mutex_unlock(&d->fs->delegs->lock);
}

static bool is_of(const struct fs_deleg *d, bool read, bool write)
{
	return d->type == OPEN_DELEGATE_WRITE ? write : read;
}

static void on_recall_any(void *ctx, uint32_t keep, bool read, bool write)
{
	struct fs *fs = ctx;
	uint32_t cnt = 0;

	mutex_lock(&fs->delegs->lock);
	list_for_each (node, &fs->delegs->list) {
		const struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

		cnt += !d->ending && is_of(d, read, write);
	}
	list_for_each (node, &fs->delegs->list) {
		struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

		if (cnt <= keep)
			break;
		if (d->ending || !is_of(d, read, write))
			continue;
		fs_deleg_return_due(d);
		cnt--;
	}
	mutex_unlock(&fs->delegs->lock);
}

/* What is written back is a change that the server has not seen. */
static bool on_getattr(void *ctx, struct nfs4_deleg *nd, uint64_t *ret_change, uint64_t *ret_size)
{
	struct fs_inode *in = container_of(nd, struct fs_deleg, nd)->inode;
	bool known;

	mutex_lock(&in->lock);
	known = in->attr_known;
	*ret_change = in->attr.change + fs_writeback_any(in);
	*ret_size = in->attr.size > fs_unstable_end(in) ? in->attr.size : fs_unstable_end(in);
	mutex_unlock(&in->lock);
	return known;
}

static const struct nfs4_deleg_ops deleg_ops = {
	.recall = on_recall,
	.lost = on_lost,
	.recall_any = on_recall_any,
	.getattr = on_getattr,
};

void fs_deleg_init(struct fs *fs)
{
	mutex_init(&fs->delegs->lock, MUTEX_FS_DELEG);
	list_init(&fs->delegs->list);
	fs->delegs->max = DELEGS_MAX;
	if (fs->conf.delegation)
		nfs4_deleg_set_ops(fs->client, &deleg_ops, fs);
}

/* Lanes have returned them all, unless they never ran. */
void fs_deleg_fini(struct fs *fs)
{
	struct list *node;

	while ((node = list_pop_front(&fs->delegs->list)) != NULL) {
		struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

		nfs4_deleg_forget(&d->nd);
		d->inode->deleg = NULL;
		free(d);
	}
	mutex_destroy(&fs->delegs->lock);
}

/* ---- taken ---- */

/* Would nothing here be against it? Inode lock held. */
static bool is_welcome(const struct fs_op *op, enum nfs4_deleg_type type)
{
	const struct fs_inode *in = op->inode;

	return op->lane->state == FS_LANE_RUNS && !in->deleg && in->deleg_bars == 0 &&
	       (type == OPEN_DELEGATE_WRITE || in->writers == 0);
}

bool fs_deleg_wanted(struct fs_op *op)
{
	const struct fs_conf *conf = &op->lane->fs->conf;
	struct fs_inode *in = op->inode;
	bool writes = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE;
	bool wanted;

	if (!conf->delegation || conf->noac || conf->acregmax_s == 0 || (op->fi.flags & O_DIRECT))
		return false;
	mutex_lock(&in->lock);
	wanted = is_welcome(op, writes ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ) &&
		 (!writes ||
			 (in->opens == 0 && in->writers == 1 && !op->lane->fs->delegs->no_write));
	mutex_unlock(&in->lock);
	return wanted;
}

/* Notes what ACCESS said in the op's OPEN, unless that is from before `seq`. Inode lock held. */
static void note_user(struct fs_deleg *d, const struct fs_op *op, uint64_t seq)
{
	const struct rpc_cred *cred = &op->cred;
	struct fs_deleg_user *u = NULL;

	if (op->attr_seq < seq)
		return;
	for (unsigned int i = 0; i < d->users_cnt && !u; i++)
		if (fs_share_same_cred(&d->users[i].cred, cred))
			u = &d->users[i];
	if (!u && d->users_cnt < FS_DELEG_USERS)
		u = &d->users[d->users_cnt++];
	if (!u) {
		u = &d->users[d->users_next];
		d->users_next = (d->users_next + 1) % FS_DELEG_USERS;
	}
	u->cred = *cred;
	u->access = op->call->u.open.access;
}

void fs_deleg_rights_changed(struct fs_inode *in)
{
	mutex_lock(&in->lock);
	if (in->deleg) {
		in->deleg->users_cnt = in->deleg->users_next = 0;
		in->deleg->users_seq = fs_attr_seq_next();
	}
	mutex_unlock(&in->lock);
}

static struct fs_deleg *deleg_new(struct fs_op *op)
{
	struct fs_deleg *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fs = op->lane->fs;
	d->lane = op->lane;
	d->inode = fs_inode_ref(d->fs, op->inode);
	d->type = op->call->u.open.deleg_type;
	d->used_ns = fs_op_now(op);
	list_init(&d->lru);
	list_init(&d->due);
	list_init(&d->waiters);
	return d;
}

/* Nothing but it is on the inode from here on, and it is not to be used before nfs4 has it. */
static bool put_on(struct fs_op *op, struct fs_deleg *d, enum nfs4_deleg_type type)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->inode;
	bool on;

	mutex_lock(&fs->delegs->lock);
	mutex_lock(&in->lock);
	on = is_welcome(op, type);
	if (on) {
		in->deleg = d;
		list_push_back(&fs->delegs->list, &d->lru);
		fs->delegs->cnt++;
	}
	mutex_unlock(&in->lock);
	mutex_unlock(&fs->delegs->lock);
	return on;
}

/* One that nothing is open by must make room. */
static void make_room(struct fs *fs)
{
	unsigned int looked = 0;
	bool idle = false;

	mutex_lock(&fs->delegs->lock);
	list_for_each (node, &fs->delegs->list) {
		struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

		if (looked++ == LOOK_AT || idle)
			break;
		mutex_lock(&d->inode->lock);
		idle = !d->ending && d->inode->opens == 0;
		mutex_unlock(&d->inode->lock);
		if (idle)
			fs_deleg_return_due(d);
	}
	mutex_unlock(&fs->delegs->lock);
}

static void take(struct fs_op *op)
{
	const struct nfs4_op_open *o = &op->call->u.open;
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->inode;
	struct fs_deleg *d = deleg_new(op);

	if (!d || !put_on(op, d, o->deleg_type)) {
		if (d)
			fs_inode_put(fs, in);
		free(d);
		/* nfsd grants one beside writers of the same client, which is no use to us. */
		if (o->want_deleg && o->deleg_type == OPEN_DELEGATE_READ &&
			(o->share_access & OPEN4_SHARE_ACCESS_WRITE))
			fs->delegs->no_write = true;
		nfs4_return_refuse(op->call);
		return;
	}
	stats_set(&op->lane->stats->delegations, ++op->lane->deleg->cnt);
	switch (nfs4_deleg_take(&d->nd, op->call)) {
	case NFS4_DELEG_KEPT:
		break;
	case NFS4_DELEG_RECALLED:
		on_recall(fs, &d->nd);
		break;
	case NFS4_DELEG_GONE:
		on_lost(fs, &d->nd);
		break;
	}
	mutex_lock(&in->lock);
	d->ready = true;
	note_user(d, op, in->attr_seq); /* any change of ours may have been one of rights */
	fs_attr_fence(in);
	mutex_unlock(&in->lock);
	/* What this OPEN brought is of now. */
	op->attr_seq = fs_attr_seq(in);
	fs_deleg_lane_watch(op->lane);
	if (fs->delegs->cnt > fs->delegs->max)
		make_room(fs);
}

void fs_deleg_opened(struct fs_op *op)
{
	const struct nfs4_op_open *o = &op->call->u.open;
	struct fs_inode *in = op->inode;

	if (o->deleg_type == OPEN_DELEGATE_READ || o->deleg_type == OPEN_DELEGATE_WRITE) {
		take(op);
		return;
	}
	mutex_lock(&in->lock);
	if (fs_deleg_vouches(in->deleg))
		note_user(in->deleg, op, in->deleg->users_seq);
	mutex_unlock(&in->lock);
}

void fs_deleg_opened_by_name(struct fs_op *op, struct fs_inode *in)
{
	const struct nfs4_op_open *o = &op->call->u.open;
	struct fs *fs = op->lane->fs;

	if (o->deleg_type == OPEN_DELEGATE_READ || o->deleg_type == OPEN_DELEGATE_WRITE)
		nfs4_return_refuse(op->call);
	mutex_lock(&fs->delegs->lock);
	if (in->deleg && is_of(in->deleg, o->share_access & OPEN4_SHARE_ACCESS_WRITE, false))
		fs_deleg_return_due(in->deleg);
	mutex_unlock(&fs->delegs->lock);
}

/* ---- in the way ---- */

/* Marks what is in the way as due, and waits for its end. */
static void await_end(struct fs_op *op, struct fs_inode *in, bool read, bool write,
	void (*then)(struct fs_op *op))
{
	struct fs *fs = op->lane->fs;
	struct fs_deleg *d;
	bool wait = false;

	mutex_lock(&fs->delegs->lock);
	d = in->deleg;
	if (d && is_of(d, read, write))
		fs_deleg_return_due(d);
	if (d && d->ending) {
		wait = true;
		op->then = then;
		mutex_lock(&in->lock);
		list_push_back(&d->waiters, &op->link);
		mutex_unlock(&in->lock);
	}
	mutex_unlock(&fs->delegs->lock);
	if (wait)
		fs_op_put_call(op); /* `then` comes from this lane's mailbox: not before */
	else
		then(op);
}

static bool has_any(struct fs_inode *in)
{
	bool any;

	mutex_lock(&in->lock);
	any = in->deleg != NULL;
	mutex_unlock(&in->lock);
	return any;
}

static void bar(struct fs_op *op, struct fs_inode *in)
{
	for (unsigned int i = 0; i < op->bars; i++)
		if (op->barred[i] == in)
			return;
	assert(op->bars < FS_OP_BARS);
	op->barred[op->bars++] = fs_inode_ref(op->lane->fs, in);
	mutex_lock(&in->lock);
	in->deleg_bars++;
	mutex_unlock(&in->lock);
}

void fs_deleg_unbar(struct fs_op *op)
{
	while (op->bars > 0) {
		struct fs_inode *in = op->barred[--op->bars];

		mutex_lock(&in->lock);
		in->deleg_bars--;
		mutex_unlock(&in->lock);
		fs_inode_put(op->lane->fs, in);
	}
}

void fs_deleg_clear(struct fs_op *op, struct fs_inode *in, bool any, void (*then)(struct fs_op *op))
{
	if (op->lane->fs->conf.delegation)
		bar(op, in);
	if (has_any(in))
		await_end(op, in, true, any, then);
	else
		then(op);
}

void fs_deleg_await(struct fs_op *op, bool writes, void (*then)(struct fs_op *op))
{
	if (has_any(op->inode))
		await_end(op, op->inode, writes, false, then);
	else
		then(op);
}

/* ---- how it is used ---- */

void fs_deleg_touch(struct fs_op *op, struct fs_inode *in)
{
	struct fs *fs = op->lane->fs;
	struct fs_deleg *d;

	if (!has_any(in))
		return;
	mutex_lock(&fs->delegs->lock);
	d = in->deleg;
	if (d) {
		d->used_ns = fs_op_now(op);
		list_del(&d->lru);
		list_push_back(&fs->delegs->list, &d->lru);
	}
	mutex_unlock(&fs->delegs->lock);
}

void fs_deleg_evict(struct fs *fs, struct fs_inode *in)
{
	if (!has_any(in))
		return;
	mutex_lock(&fs->delegs->lock);
	if (in->deleg)
		fs_deleg_return_due(in->deleg);
	mutex_unlock(&fs->delegs->lock);
}
