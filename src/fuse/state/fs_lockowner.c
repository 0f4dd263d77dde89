/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lock owners: found by the kernel's number, asked one thing at a time, gone
 * when the kernel closes what they belong to.
 */
#include "fs_inode.h"
#include "fs_lock.h"
#include "fs_op.h"
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the inode ---- */

/* locks_lock held. */
static struct fs_lockowner *find(struct fs_inode *in, uint64_t key, bool flock)
{
	struct fs_lockowner *o = atomic_load(&in->lockowners);

	while (o && !(o->key == key && o->flock == flock))
		o = o->next;
	return o;
}

static struct fs_lockowner *owner_new(struct fs *fs, struct fs_inode *in, uint64_t key, bool flock)
{
	struct fs_lockowner *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->live = fs->live;
	o->inode = in;
	o->key = key;
	o->flock = flock;
	list_init(&o->queue);
	nfs4_lockowner_init(&o->lo, fs->client);
	o->next = atomic_load(&in->lockowners);
	atomic_store(&in->lockowners, o);
	return o;
}

struct fs_lockowner *fs_lockowner_get(
	struct fs *fs, struct fs_inode *in, uint64_t key, bool flock, bool make)
{
	struct fs_lockowner *o;

	mutex_lock(&fs->locks->lock);
	o = find(in, key, flock);
	if (!o && make)
		o = owner_new(fs, in, key, flock);
	if (o)
		o->refs++;
	mutex_unlock(&fs->locks->lock);
	return o;
}

uint64_t fs_lockowner_number(struct fs *fs, struct fs_inode *in, uint64_t key)
{
	const struct fs_lockowner *o;
	uint64_t number;

	mutex_lock(&fs->locks->lock);
	o = find(in, key, false);
	number = o ? o->lo.number : 0;
	mutex_unlock(&fs->locks->lock);
	return o ? number : nfs4_new_owner(fs->client);
}

pid_t fs_lockowner_pid(struct fs *fs, struct fs_inode *in, uint64_t number)
{
	const struct fs_lockowner *o;
	pid_t pid = 0;

	mutex_lock(&fs->locks->lock);
	for (o = atomic_load(&in->lockowners); o; o = o->next)
		if (o->lo.number == number && atomic_load(&o->holding))
			pid = o->pid;
	mutex_unlock(&fs->locks->lock);
	return pid;
}

void fs_lockowner_used(struct fs *fs, struct fs_lockowner *o, pid_t pid)
{
	mutex_lock(&fs->locks->lock);
	o->pid = pid;
	mutex_unlock(&fs->locks->lock);
}

struct fs_lockowner *fs_lockowner_ref(struct fs *fs, struct fs_lockowner *o)
{
	mutex_lock(&fs->locks->lock);
	o->refs++;
	mutex_unlock(&fs->locks->lock);
	return o;
}

static void unlink_owner(struct fs_lockowner *o)
{
	struct fs_lockowner *prev = atomic_load(&o->inode->lockowners);

	if (prev == o) {
		atomic_store(&o->inode->lockowners, o->next);
		return;
	}
	while (prev->next != o)
		prev = prev->next;
	prev->next = o->next;
}

/* One that the server knows nothing of goes with its last user; others with their file. */
void fs_lockowner_put(struct fs *fs, struct fs_lockowner *o)
{
	bool dead;

	if (!o)
		return;
	mutex_lock(&fs->locks->lock);
	dead = --o->refs == 0 && !o->lo.state && !o->doubt;
	if (dead) {
		unlink_owner(o);
		live_drop(o->live, &o->live_ref);
	}
	mutex_unlock(&fs->locks->lock);
	if (dead)
		free(o);
}

/* ---- turns ---- */

void fs_lockowner_turn(struct fs_op *op, void (*then)(struct fs_op *op))
{
	struct fs *fs = op->lane->fs;
	struct fs_lockowner *o = fs_lock_op(op)->owner;
	bool now;

	assert(!fs_lock_op(op)->turn);
	fs_lock_op(op)->turn = true;
	mutex_lock(&fs->locks->lock);
	now = !o->busy;
	o->busy = true;
	if (!now) {
		op->then = then;
		list_push_back(&o->queue, &op->link);
	}
	mutex_unlock(&fs->locks->lock);
	if (now)
		then(op);
	else
		fs_op_put_call(op); /* `then` comes from this lane's mailbox: not before */
}

void fs_lockowner_turn_over(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_lockowner *o = fs_lock_op(op)->owner;
	struct list *node;

	if (!fs_lock_op(op)->turn)
		return;
	fs_lock_op(op)->turn = false;
	mutex_lock(&fs->locks->lock);
	node = list_pop_front(&o->queue);
	o->busy = node != NULL;
	mutex_unlock(&fs->locks->lock);
	if (node)
		fs_op_wake(container_of(node, struct fs_op, link));
}

void fs_lockowner_over(struct fs_op *op)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;

	fs_lockowner_turn_over(op);
	fs_lock_op(op)->owner = NULL;
	fs_lockowner_put(op->lane->fs, o);
}

/* ---- LOCKU ---- */

void fs_lockowner_note_doubt(struct fs_op *op, uint64_t off, uint64_t len)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;

	/* With two of them: all. It comes to nothing worse than locks lost that may be lost. */
	if (o->doubt && (o->doubt_off != off || o->doubt_len != len)) {
		off = 0;
		len = NFS4_LOCK_TO_END;
	}
	o->doubt_off = off;
	o->doubt_len = len;
	o->doubt = true;
}

static bool covers(uint64_t off1, uint64_t len1, uint64_t off2, uint64_t len2)
{
	if (off1 > off2)
		return false;
	if (len1 == NFS4_LOCK_TO_END || len2 == NFS4_LOCK_TO_END)
		return len1 == NFS4_LOCK_TO_END;
	return off2 - off1 <= len1 && len2 <= len1 - (off2 - off1);
}

static void locku_failed(struct fs_op *op, int err)
{
	if (!fs_op_is_void(op)) /* else it was not sent */
		fs_lockowner_note_doubt(op, fs_lock_op(op)->off, fs_lock_op(op)->len);
	fs_lock_op(op)->unlocked(op, err);
}

static void locku_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_lockowner *o = fs_lock_op(op)->owner;
	uint64_t off = fs_lock_op(op)->off, len = fs_lock_op(op)->len;

	if (!fs_lock_answered(call)) {
		locku_failed(op, -call->err);
		return;
	}
	if (o->doubt && covers(off, len, o->doubt_off, o->doubt_len))
		o->doubt = false;
	o->holding = o->lo.state && nfs4_lockowner_holds(&o->lo, 0, NFS4_LOCK_TO_END);
	if (!call->err)
		fs_lockwait_wake(op, off, len);
	fs_lock_op(op)->unlocked(op, -call->err);
}

static void locku_start(struct fs_op *op)
{
	op->call->u.locku = (struct nfs4_op_locku){
		.fh = &op->fh,
		.lock = &fs_lock_op(op)->owner->lo,
		.offset = fs_lock_op(op)->off,
		.length = fs_lock_op(op)->len,
	};
	op->call->done = locku_done;
	nfs4_locku(op->call);
}

void fs_lockowner_unlock(
	struct fs_op *op, uint64_t off, uint64_t len, void (*then)(struct fs_op *op, int err))
{
	assert(fs_lock_op(op)->turn);
	fs_lock_op(op)->off = off;
	fs_lock_op(op)->len = len;
	fs_lock_op(op)->unlocked = then;
	op->failed = locku_failed;
	fs_op_call(op, locku_start);
}

/* ---- the end of an owner ---- */

/* Nothing of it is left on the server: it is as new, for who waits for its turn. */
static void renew(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_lockowner *o = fs_lock_op(op)->owner;

	if (o->lo.state)
		nfs4_lockowner_free(&o->lo, op->lane->sess);
	mutex_lock(&fs->locks->lock);
	nfs4_lockowner_init(&o->lo, fs->client);
	o->file = NULL;
	o->share = NULL;
	o->holding = false;
	o->doubt = false;
	live_drop(o->live, &o->live_ref);
	mutex_unlock(&fs->locks->lock);
}

/* ---- FLUSH ---- */

void fs_lockowner_flush_begin(struct fs_op *op, void (*then)(struct fs_op *op))
{
	struct fs_inode *in = op->inode;

	if (atomic_load(&in->lockowners))
		fs_lock_op(op)->owner =
			fs_lockowner_get(op->lane->fs, in, op->fi.lock_owner, false, false);
	if (fs_lock_op(op)->owner)
		fs_lockowner_turn(op, then);
	else
		then(op);
}

static void flush_unlocked(struct fs_op *op, int err)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;

	if (o->doubt)
		log_warn_limited("locks of file %llu may not be released before it is closed: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	else
		renew(op);
	fs_lockowner_over(op);
	fs_lock_op(op)->then(op, fs_lock_op(op)->err);
}

void fs_lockowner_flush_end(struct fs_op *op, int err, void (*then)(struct fs_op *op, int err))
{
	if (!fs_lock_op(op)->owner) {
		then(op, err);
		return;
	}
	fs_lock_op(op)->err = err;
	fs_lock_op(op)->then = then;
	fs_lockowner_unlock(op, 0, NFS4_LOCK_TO_END, flush_unlocked);
}

/* ---- RELEASE ---- */

static void release_next(struct fs_op *op);

/* locks_lock held. */
static bool goes(const struct fs_op *op, const struct fs_lockowner *o)
{
	return fs_lock_op(op)->whole ? o->share == op->file->share : o->file == op->file;
}

/* At the end of the share without an answer too: what the server holds goes with the open. */
static void release_unlocked(struct fs_op *op, int err)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;
	struct fs *fs = op->lane->fs;

	if (err)
		log_warn_limited("locks of file %llu, which is closed: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	if (fs_lock_op(op)->whole || !o->doubt) {
		renew(op);
	} else {
		mutex_lock(&fs->locks->lock);
		o->file = NULL;
		mutex_unlock(&fs->locks->lock);
	}
	fs_lockowner_over(op);
	release_next(op);
}

static void release_turn(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	bool mine;

	mutex_lock(&fs->locks->lock);
	mine = goes(op, fs_lock_op(op)->owner);
	mutex_unlock(&fs->locks->lock);
	if (mine) {
		fs_lockowner_unlock(op, 0, NFS4_LOCK_TO_END, release_unlocked);
		return;
	}
	/* A FLUSH came first. */
	fs_lockowner_over(op);
	release_next(op);
}

static void release_next(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_lockowner *o;

	mutex_lock(&fs->locks->lock);
	o = atomic_load(&op->inode->lockowners);
	while (o && !goes(op, o))
		o = o->next;
	if (o)
		o->refs++;
	mutex_unlock(&fs->locks->lock);
	fs_lock_op(op)->owner = o;
	if (o)
		fs_lockowner_turn(op, release_turn);
	else
		fs_lock_op(op)->released(op);
}

static void release_begin(struct fs_op *op, bool whole, void (*then)(struct fs_op *op))
{
	if (!atomic_load(&op->inode->lockowners)) {
		then(op);
		return;
	}
	memset(op->work, 0, FS_OP_WORK);
	fs_lock_op(op)->whole = whole;
	fs_lock_op(op)->released = then;
	release_next(op);
}

void fs_lockowner_release(struct fs_op *op, void (*then)(struct fs_op *op))
{
	release_begin(op, false, then);
}

void fs_lockowner_release_share(struct fs_op *op, void (*then)(struct fs_op *op))
{
	release_begin(op, true, then);
}
