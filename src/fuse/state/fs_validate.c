/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wheel of seconds: each file is in the slot of the second when it is to be
 * looked at, so that ten thousand of them cost what is due. One that is due in
 * more than SLOTS seconds is passed over as often as the wheel turns.
 */
#include "fs_op.h"
#include "fs_validate.h"
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_share.h"
#include "fs_part.h"

#include <fcntl.h>
#include <stdlib.h>

#define SLOTS 64u
/* Operations that are left to requests. */
#define OPS_SPARE 2u
/* Files of other users that are passed over to fill a COMPOUND. */
#define PASS_MAX 64u
/* A file that we are writing to, or a lane without an operation or a session: soon. */
#define SOON_S 1u

struct fs_validate {
	struct fs_lane *lane;
	struct reactor_timer timer;
	bool busy;         /* a COMPOUND is on its way */
	uint64_t turned_s; /* the wheel stands here */
	struct mutex lock;
	struct list slots[SLOTS]; /* of fs_file.watch.link; lock */
	struct list due;          /* the same */
	/* the COMPOUND: files, referenced, and what is asked of each */
	unsigned int cnt;
	struct fs_file *files[NFS4_GETATTRS_MAX];
	struct nfs4_fh fh[NFS4_GETATTRS_MAX];
	struct nfs4_attr attr[NFS4_GETATTRS_MAX];
};

static uint64_t now_s(const struct fs_validate *v)
{
	return reactor_now(v->lane->reactor) / NSEC_PER_SEC;
}

/* ---- the wheel ---- */

/* In `s` seconds, 1 at least. */
static void put(struct fs_validate *v, struct fs_file *f, uint64_t s)
{
	uint64_t due_s = now_s(v) + s;

	mutex_lock(&v->lock);
	if (f->watch.lane) {
		f->watch.due_s = due_s;
		list_push_back(&v->slots[due_s % SLOTS], &f->watch.link);
	}
	mutex_unlock(&v->lock);
}

/* Files that are due go into that list. */
static void turn(struct fs_validate *v)
{
	uint64_t to_s = now_s(v);
	uint64_t steps = to_s - v->turned_s < SLOTS ? to_s - v->turned_s : SLOTS;

	mutex_lock(&v->lock);
	for (uint64_t s = to_s - steps + 1; s <= to_s; s++) {
		list_for_each_safe (node, next, &v->slots[s % SLOTS]) {
			if (container_of(node, struct fs_file, watch.link)->watch.due_s > to_s)
				continue;
			list_del(node);
			list_push_back(&v->due, node);
		}
	}
	mutex_unlock(&v->lock);
	v->turned_s = to_s;
}

/* The next second that has something. 0: none. */
static uint64_t next_s(struct fs_validate *v)
{
	uint64_t s = 0;

	mutex_lock(&v->lock);
	if (!list_empty(&v->due))
		s = now_s(v) + SOON_S;
	for (uint64_t i = 1; s == 0 && i <= SLOTS; i++)
		if (!list_empty(&v->slots[(v->turned_s + i) % SLOTS]))
			s = v->turned_s + i;
	mutex_unlock(&v->lock);
	return s;
}

static bool may_ask(const struct fs_validate *v)
{
	return v->lane->state == FS_LANE_RUNS && !v->busy;
}

static void arm(struct fs_validate *v)
{
	uint64_t s = may_ask(v) ? next_s(v) : 0;

	if (s)
		reactor_timer_set(v->lane->reactor, &v->timer, s * NSEC_PER_SEC);
}

/* Referenced; NULL: nothing is due. */
static struct fs_file *take_due(struct fs_validate *v)
{
	struct list *node;
	struct fs_file *f = NULL;

	mutex_lock(&v->lock);
	node = list_pop_front(&v->due);
	if (node)
		f = fs_file_get(container_of(node, struct fs_file, watch.link));
	mutex_unlock(&v->lock);
	return f;
}

static void put_due(struct fs_validate *v, struct fs_file *f)
{
	mutex_lock(&v->lock);
	if (f->watch.lane)
		list_push_front(&v->due, &f->watch.link);
	mutex_unlock(&v->lock);
}

/* ---- one file ---- */

static uint32_t at_least(uint32_t s)
{
	return s > SOON_S ? s : SOON_S;
}

/* Did somebody change it? Then the period starts anew, and the kernel's pages go. */
static void look_for_change(struct fs_validate *v, struct fs_file *f)
{
	struct fs *fs = v->lane->fs;
	struct fs_inode *in = f->inode;
	struct fs_watch *w = &f->watch;
	uint32_t want;
	bool stale;

	mutex_lock(&in->lock);
	want = in->inval_want;
	stale = want != in->inval_done;
	mutex_unlock(&in->lock);
	if (want != w->seen)
		w->period_s = 0;
	w->seen = want;
	/* Once for each change: the thread that tells it may wait for long. */
	if (stale && w->told != want && fs_notify_inval_inode(fs, in, 0, 0))
		w->told = want;
}

/* A change that is seen now may be our own. Inode lock held. */
static bool is_written(const struct fs_inode *in)
{
	return fs_writeback_any(in) || (in->unstable && in->unstable->io > 0);
}

/* Is the server to be asked? Else *ret_s: when it is to be looked at again. */
static bool is_old(struct fs_validate *v, struct fs_file *f, uint64_t *ret_s)
{
	struct fs_inode *in = f->inode;
	uint64_t now_ns = reactor_now(v->lane->reactor);
	double left = SOON_S;

	mutex_lock(&in->lock);
	if (fs_deleg_vouches(in->deleg))
		left = at_least(v->lane->fs->conf.acregmax_s);
	else if (!is_written(in))
		left = fs_attr_timeout(v->lane->fs, in, now_ns);
	mutex_unlock(&in->lock);
	*ret_s = (uint64_t)left + 1;
	return left <= 0;
}

/* It was asked about, or cannot be now: longer than the last time. */
static void again_later(struct fs_validate *v, struct fs_file *f)
{
	const struct fs_conf *conf = &v->lane->fs->conf;
	uint32_t max_s = at_least(conf->acregmax_s), s = f->watch.period_s * 2;

	if (s == 0)
		s = at_least(conf->acregmin_s);
	f->watch.period_s = s < max_s ? s : max_s;
	put(v, f, f->watch.period_s);
	fs_file_put(v->lane->fs, f);
}

static void note(struct fs_op *op, struct fs_file *f, const struct nfs4_attr *a)
{
	struct fs_validate *v = op->lane->validate;
	bool written;

	mutex_lock(&f->inode->lock);
	written = is_written(f->inode);
	mutex_unlock(&f->inode->lock);
	if (!written)
		fs_attr_update(op->lane->fs, f->inode, a, op->attr_seq, fs_op_now(op));
	look_for_change(v, f);
}

/* ---- the COMPOUND ---- */

/* Another handle of the same file. */
static bool is_there(const struct fs_validate *v, const struct fs_file *f)
{
	for (unsigned int i = 0; i < v->cnt; i++)
		if (v->files[i]->inode == f->inode)
			return true;
	return false;
}

static bool fits(const struct fs_validate *v, const struct fs_file *f)
{
	return v->cnt == 0 || fs_share_same_cred(&v->files[0]->cred, &f->cred);
}

/* Files of one user that are to be asked about. */
static void gather(struct fs_validate *v)
{
	struct fs_file *pass[PASS_MAX], *f;
	unsigned int passed = 0;
	uint64_t s;

	while (v->cnt < NFS4_GETATTRS_MAX && passed < PASS_MAX && (f = take_due(v))) {
		look_for_change(v, f);
		if (!is_old(v, f, &s)) {
			put(v, f, s);
			fs_file_put(v->lane->fs, f);
		} else if (is_there(v, f)) {
			again_later(v, f);
		} else if (fits(v, f)) {
			fs_inode_fh(f->inode, &v->fh[v->cnt]);
			v->files[v->cnt++] = f;
		} else {
			pass[passed++] = f;
		}
	}
	while (passed > 0) {
		f = pass[--passed];
		put_due(v, f);
		fs_file_put(v->lane->fs, f);
	}
}

static void ask_next(struct fs_validate *v);

/* Files from `i` on were not asked about. */
static void give_back(struct fs_validate *v, unsigned int i)
{
	while (v->cnt > i) {
		struct fs_file *f = v->files[--v->cnt];

		put_due(v, f);
		fs_file_put(v->lane->fs, f);
	}
}

static void over(struct fs_op *op)
{
	struct fs_validate *v = op->lane->validate;

	for (unsigned int i = 0; i < v->cnt; i++)
		again_later(v, v->files[i]);
	v->cnt = 0;
	v->busy = false;
	fs_op_end(op);
}

static void answered(struct nfs4_call *call)
{
	const struct nfs4_op_getattrs *o = &call->u.getattrs;
	struct fs_op *op = fs_op_of(call);
	struct fs_validate *v = op->lane->validate;

	for (unsigned int i = 0; i < o->got; i++)
		note(op, v->files[i], &v->attr[i]);
	stats_count(&op->lane->stats->validations, o->got);
	/* The one behind those that were answered failed. */
	if (!call->err)
		give_back(v, o->got);
	else if (call->status != NFS4_OK)
		give_back(v, o->got + 1);
	over(op);
	ask_next(v);
}

/* Without a session each fails at once: not one inside the other. */
static void failed(struct fs_op *op, int err)
{
	struct fs_validate *v = op->lane->validate;

	over(op);
	arm(v);
}

static void start(struct fs_op *op)
{
	struct fs_validate *v = op->lane->validate;

	op->call->u.getattrs =
		(struct nfs4_op_getattrs){.fh = v->fh, .cnt = v->cnt, .attr = v->attr};
	op->call->done = answered;
	nfs4_getattrs(op->call);
}

static void ask_next(struct fs_validate *v)
{
	struct fs_op *op;

	if (may_ask(v) && v->lane->ops_free > OPS_SPARE)
		gather(v);
	if (v->cnt == 0) {
		arm(v);
		return;
	}
	op = fs_op_new(v->lane);
	op->cred = v->files[0]->cred;
	op->failed = failed;
	v->busy = true;
	fs_op_call(op, start);
}

static void ticked(struct reactor_timer *t)
{
	struct fs_validate *v = container_of(t, struct fs_validate, timer);

	turn(v);
	ask_next(v);
}

/* ---- for the lane ---- */

static bool lane_init(struct fs_lane *l)
{
	struct fs_validate *v = calloc(1, sizeof(*v));

	if (!v)
		return false;
	v->lane = l;
	v->turned_s = now_s(v);
	mutex_init(&v->lock, MUTEX_FS_VALIDATE);
	reactor_timer_init(&v->timer, ticked);
	list_init(&v->due);
	for (unsigned int i = 0; i < SLOTS; i++)
		list_init(&v->slots[i]);
	l->validate = v;
	return true;
}

static struct fs_lane *first_lane(struct fs *fs)
{
	struct fs_lane *l;

	mutex_lock(&fs->lanes_lock);
	l = list_first(&fs->lanes, struct fs_lane, link);
	mutex_unlock(&fs->lanes_lock);
	return l;
}

/* Files that are open already are looked at by the first lane. Out of memory: they are not. */
static void lane_started(struct fs_lane *l)
{
	struct fs *fs = l->fs;
	struct fs_file **files = NULL;
	size_t max, cnt = 0;

	arm(l->validate);
	if (l != first_lane(fs))
		return;
	fs_inode_table_lock(fs);
	max = fs->files_open;
	if (max > 0)
		files = calloc(max, sizeof(struct fs_file *));
	if (files)
		list_for_each (node, &fs->files) {
			struct fs_file *f = container_of(node, struct fs_file, all_link);

			if (!f->watch.lane && cnt < max)
				files[cnt++] = fs_file_get(f);
		}
	fs_inode_table_unlock(fs);
	while (cnt > 0) {
		fs_validate_watch(l, files[--cnt]);
		fs_file_put(fs, files[cnt]);
	}
	free(files);
}

/* Nothing more is asked. */
static void lane_stop(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->validate->timer);
}

/* Every file is closed. */
static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->validate->timer);
	mutex_destroy(&l->validate->lock);
	free(l->validate);
	l->validate = NULL;
}

void fs_validate_watch(struct fs_lane *l, struct fs_file *f)
{
	struct fs_validate *v = l->validate;
	const struct fs_conf *conf = &l->fs->conf;
	struct fs_watch *w = &f->watch;

	if (conf->noac || (f->flags & O_DIRECT) || !(f->share_access & OPEN4_SHARE_ACCESS_READ))
		return;
	w->lane = l;
	w->period_s = at_least(conf->acregmin_s);
	mutex_lock(&f->inode->lock);
	w->seen = f->inode->inval_want;
	w->told = f->inode->inval_done;
	mutex_unlock(&f->inode->lock);
	put(v, f, w->period_s);
	arm(v);
}

void fs_validate_unwatch(struct fs_file *f)
{
	struct fs_lane *l = f->watch.lane;

	if (!l)
		return;
	mutex_lock(&l->validate->lock);
	f->watch.lane = NULL;
	list_del(&f->watch.link);
	mutex_unlock(&l->validate->lock);
}

const struct fs_part fs_validate_part = {
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_started = lane_started,
	.lane_stop = lane_stop,
};
