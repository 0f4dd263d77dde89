/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks that are not local (local_lock=, nolock: the kernel then keeps them and
 * never asks) are the server's. One that it cannot hold is an error, never a
 * lock that only this machine knows of.
 *
 * A lock that was granted is a point from which the program sees what others
 * did under theirs: before it is answered the attributes are asked for, and the
 * kernel's pages dropped if they are not known to be of that version. Before an
 * UNLOCK the file is committed: what had to be written again after it, because
 * the server was restarted, could undo what another one wrote under its lock.
 *
 * A lock for which nobody waits any more is given back.
 */
#include "fs_current.h"
#include "fs_lock.h"
#include "fs_attr.h"
#include "fs_file.h"
#include "fs_interrupt.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_ops.h"
#include "fs_pages.h"
#include "fs_reply.h"
#include "fs_share_tables.h"
#include "fs_unstable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

/* Times that a lock is asked for again because files are being closed. */
#define DENIED_ASKS 50u

/* ---- the answer ---- */

static bool is_heard(const struct fs_op *op)
{
	return fs_lock_op(op)->wait ? fs_lock_op(op)->wait->req != NULL : op->req != NULL;
}

/* False: nobody took it. */
static bool answer(struct fs_op *op, int err)
{
	if (err == ESHUTDOWN)
		err = EIO;
	if (fs_lock_op(op)->wait)
		return fs_lockwait_answer(fs_lock_op(op)->wait, err);
	return fs_reply_early(op, err);
}

static void end(struct fs_op *op)
{
	fs_lockwait_done(op);
	fs_lockowner_over(op);
	fs_op_end(op);
}

static void finish(struct fs_op *op, int err)
{
	fs_lockowner_turn_over(op);
	answer(op, err);
	end(op);
}

/* ---- a lock that nobody wants any more ---- */

static void taken_back(struct fs_op *op, int err)
{
	end(op);
}

static void take_back(struct fs_op *op)
{
	fs_lockowner_unlock(op, fs_lock_op(op)->range.off, fs_lock_op(op)->range.len, taken_back);
}

/* ---- granted ---- */

/* Not taken back any more: its owner may have it from another request, too. */
static void granted_reply(struct fs_op *op)
{
	answer(op, 0);
	end(op);
}

static void pages_dropped(struct fs_op *op)
{
	fs_pages_dropped(op->inode, &op->attr, op->attr_seq);
	granted_reply(op);
}

/* The lock is there, but not what it is to make visible. */
static void look_failed(struct fs_op *op, int err)
{
	fs_attr_changed(op->inode);
	fs_op_notify(op, op->inode, true, granted_reply);
}

static void look_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_attr *a = &call->u.getattr.attr;

	if (call->err) {
		look_failed(op, -call->err);
		return;
	}
	fs_attr_update(op->lane->fs, op->inode, a, op->attr_seq, fs_op_now(op));
	op->attr = *a;
	if (!fs_pages_good(op->inode, a, true)) {
		fs_attr_by_others(op->lane->fs, op->inode); /* what was read ahead is old as well */
		fs_op_notify(op, op->inode, true, pages_dropped);
	} else if (fs_pages_told_other(op->inode, a)) {
		fs_op_notify(op, op->inode, false, granted_reply);
	} else {
		granted_reply(op);
	}
}

static void look_start(struct fs_op *op)
{
	memset(&op->call->u.getattr, 0, sizeof(op->call->u.getattr));
	op->call->u.getattr.fh = &op->fh;
	op->call->done = look_done;
	nfs4_getattr(op->call);
}

static void granted(struct fs_op *op)
{
	const struct fs_lockrange *r = &fs_lock_op(op)->range;

	fs_lock_op(op)->owner->holding = true;
	fs_lockwait_granted(op);
	if (!r->write && fs_lock_op(op)->held)
		fs_lockwait_wake(op, r->off, r->len); /* it may have been a lock to write */
	if (!is_heard(op) && !fs_lock_op(op)->held) {
		take_back(op);
		return;
	}
	fs_lock_op(op)->held = true; /* a signal comes too late */
	fs_lockowner_turn_over(op);
	op->failed = look_failed;
	fs_op_call(op, look_start);
}

/* ---- LOCK ---- */

static void sleep_on(struct fs_op *op, int err)
{
	fs_lockowner_turn_over(op);
	if (err)
		finish(op, err);
	else if (fs_lane_is_ending(op->lane))
		finish(op, EIO);
	else if (fs_lock_op(op)->wait->signalled)
		finish(op, EINTR);
	else
		fs_lockwait_sleep(op, &fs_lock_op(op)->denied);
}

static void lock_certain(struct fs_op *op, int err);

/*
 * A flock goes with the last close(), and so may others, but the kernel does not wait for what a
 * close() leaves to us: what is in the way may be a lock that nobody has any more. If files are
 * being closed, or one was since the server was asked, it is asked again, a round trip later.
 */
static bool asks_again(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;

	return (atomic_load(&fs->releasing) > 0 ||
		       atomic_load(&fs->closes) != fs_lock_op(op)->closes) &&
	       fs_lock_op(op)->asks++ < DENIED_ASKS;
}

static void ask(struct fs_op *op);

static void refused(struct fs_op *op)
{
	if (asks_again(op))
		lock_certain(op, 0);
	else if (!fs_lockclose_await(op, fs_lock_op(op)->denied.owner, ask))
		finish(op, EAGAIN);
}

static void denied(struct fs_op *op)
{
	const struct fs_lockowner *o = fs_lock_op(op)->owner;

	if (!is_heard(op))
		end(op);
	else if (!fs_lock_op(op)->wait)
		refused(op);
	else if (o->flock && o->holding)
		/* flock(2): the old lock goes first, so that two that upgrade do not wait for ever
		 */
		fs_lockowner_unlock(op, 0, NFS4_LOCK_TO_END, sleep_on);
	else
		sleep_on(op, 0);
}

/* It may be locked: before the owner's next turn it is not. */
static void no_answer(struct fs_op *op, int err)
{
	const struct fs_lockrange *r = &fs_lock_op(op)->range;

	fs_lockowner_note_doubt(op, r->off, r->len);
	if (is_heard(op)) {
		fs_interrupt_abandon(op);
		answer(op, err);
	}
	take_back(op);
}

/* The server may have moved it to another open, or have none of it. */
static void note_share(struct fs_op *op)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;

	mutex_lock(&op->lane->fs->locks->lock);
	if (o->lo.state)
		o->share = container_of(o->lo.state, struct fs_share, state);
	fs_share_tables_live_owner(op->lane->fs, o);
	mutex_unlock(&op->lane->fs->locks->lock);
}

static void lock_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	note_share(op);
	fs_share_leave(op->file->share);
	if (!call->err) {
		granted(op);
	} else if (call->status == NFS4ERR_DENIED) {
		fs_lock_op(op)->denied = call->u.lock.denied;
		denied(op);
	} else if (!fs_lock_answered(call)) {
		no_answer(op, -call->err);
	} else {
		finish(op, -call->err);
	}
}

/*
 * The server has nothing of the owner. If this process dies before it has heard of the lock, the
 * request is done again, and is by the same owner then.
 */
static void name_for(const struct fs_op *op, struct fs_lockowner *o)
{
	uint64_t request = fs_lock_op(op)->wait ? fs_lock_op(op)->wait->unique : op->unique;

	if (op->lane->fs->live && request != 0)
		o->lo.number = nfs4_owner_of_request(request);
}

static void lock_start(struct fs_op *op)
{
	struct fs_lockowner *o = fs_lock_op(op)->owner;
	const struct fs_lockrange *r = &fs_lock_op(op)->range;

	if (!is_heard(op)) {
		fs_share_leave(op->file->share);
		end(op);
		return;
	}
	mutex_lock(&op->lane->fs->locks->lock);
	o->file = op->file;
	if (!o->lo.state) {
		o->share = op->file->share;
		name_for(op, o);
	}
	fs_share_tables_live_owner(op->lane->fs, o); /* before the server is asked */
	mutex_unlock(&op->lane->fs->locks->lock);
	fs_lock_op(op)->held = o->lo.state && nfs4_lockowner_holds(&o->lo, r->off, r->len);
	fs_lockwait_asks(op);
	fs_lock_op(op)->closes = atomic_load(&op->lane->fs->closes);
	op->call->u.lock = (struct nfs4_op_lock){
		.fh = &op->fh,
		.state = op->file->state,
		.lock = &o->lo,
		.write = r->write,
		.wait = fs_lock_op(op)->wait != NULL,
		.offset = r->off,
		.length = r->len,
	};
	op->call->done = lock_done;
	nfs4_lock(op->call);
}

static void lock_failed(struct fs_op *op, int err)
{
	fs_share_leave(op->file->share);
	finish(op, err);
}

static void lock_inside(struct fs_op *op)
{
	op->failed = lock_failed;
	fs_op_call(op, lock_start);
}

/* Locks are the server's: it must know of the open. */
static void claim_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err) {
		lock_failed(op, -call->err);
		return;
	}
	fs_share_leave(op->file->share);
	fs_share_enter(op, op->file->share, false, lock_inside);
}

static void claim_start(struct fs_op *op)
{
	op->call->u.open = (struct nfs4_op_open){.claim = op->file->state};
	op->call->done = claim_done;
	nfs4_claim(op->call);
}

static void claim_alone(struct fs_op *op)
{
	op->failed = lock_failed;
	fs_op_call(op, claim_start);
}

static void lock_certain(struct fs_op *op, int err)
{
	struct fs_share *sh = op->file->share;

	if (fs_lock_op(op)->owner->doubt)
		finish(op, err ? err : EIO);
	else if (nfs4_deleg_serves(&sh->state))
		fs_share_enter(op, sh, true, claim_alone);
	else
		fs_share_enter(op, sh, false, lock_inside);
}

static void lock_turn(struct fs_op *op)
{
	const struct fs_lockowner *o = fs_lock_op(op)->owner;

	if (o->doubt)
		fs_lockowner_unlock(op, o->doubt_off, o->doubt_len, lock_certain);
	else
		lock_certain(op, 0);
}

static void ask(struct fs_op *op)
{
	fs_lockowner_turn(op, lock_turn);
}

/* ---- UNLOCK ---- */

static void unlock_turn(struct fs_op *op)
{
	fs_lockowner_unlock(op, fs_lock_op(op)->range.off, fs_lock_op(op)->range.len, finish);
}

/* An error is the next fsync's or close's: the data stays where it is. */
static void unlock_committed(struct fs_op *op, int err)
{
	fs_lockowner_turn(op, unlock_turn);
}

/* ---- requests ---- */

/* Of fs_lock_op(op)->range, or F_UNLCK of it. */
static void set_lock(struct fs_op *op, uint64_t key, bool flock, int type, pid_t pid, bool sleep)
{
	uint32_t need = type == F_WRLCK ? OPEN4_SHARE_ACCESS_WRITE : OPEN4_SHARE_ACCESS_READ;

	if (type != F_UNLCK && !(op->file->share_access & need)) {
		fs_reply_err(op, EBADF);
		return;
	}
	fs_lock_op(op)->range.write = type == F_WRLCK;
	fs_lock_op(op)->owner =
		fs_lockowner_get(op->lane->fs, op->inode, key, flock, type != F_UNLCK);
	if (fs_lock_op(op)->owner && type != F_UNLCK)
		fs_lockowner_used(op->lane->fs, fs_lock_op(op)->owner, pid);
	if (!fs_lock_op(op)->owner)
		fs_reply_err(op, type == F_UNLCK ? 0 : ENOLCK);
	else if (type == F_UNLCK)
		fs_commit(op, unlock_committed);
	else if (sleep && !fs_lockwait_new(op, ask))
		finish(op, ENOLCK);
	else
		ask(op);
}

static bool set_range(struct fs_op *op, const struct flock *lock)
{
	fs_lock_op(op)->range.off = (uint64_t)lock->l_start;
	fs_lock_op(op)->range.len = lock->l_len ? (uint64_t)lock->l_len : NFS4_LOCK_TO_END;
	return lock->l_start >= 0 && lock->l_len >= 0;
}

void fs_do_setlk(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
	struct fs_op *op = fs_op_begin_file(req, fi);

	if (op == NULL)
		return;
	if (set_range(op, lock))
		set_lock(op, fi->lock_owner, false, lock->l_type, lock->l_pid, sleep);
	else
		fs_reply_err(op, EINVAL);
}

void fs_do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int how)
{
	struct fs_op *op = fs_op_begin_file(req, fi);
	int type = how & LOCK_UN ? F_UNLCK : how & LOCK_EX ? F_WRLCK : F_RDLCK;

	if (op == NULL)
		return;
	fs_lock_op(op)->range.len = NFS4_LOCK_TO_END;
	set_lock(op, fi->lock_owner, true, type, 0, !(how & LOCK_NB));
}

/* ---- GETLK ---- */

static void ask_test(struct fs_op *op);

static void test_done(struct nfs4_call *call)
{
	const struct nfs4_op_lockt *t = &call->u.lockt;
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	struct fs_op *op = fs_op_of(call);

	if (call->err) {
		fs_reply_err(op, -call->err);
		return;
	}
	if (t->conflict && fs_lockclose_await(op, t->denied.owner, ask_test))
		return;
	if (t->conflict) {
		/* WIRE: what begins or ends beyond off_t ends with it. */
		uint64_t off = t->denied.offset < INT64_MAX ? t->denied.offset : INT64_MAX;

		lock.l_type = t->denied.write ? F_WRLCK : F_RDLCK;
		lock.l_start = (off_t)off;
		if (t->denied.length <= INT64_MAX - off)
			lock.l_len = (off_t)t->denied.length;
		if (t->denied.owner != 0)
			lock.l_pid = fs_lockowner_pid(op->lane->fs, op->inode, t->denied.owner);
	}
	fs_reply_lock(op, &lock);
}

static void test_start(struct fs_op *op)
{
	op->call->u.lockt = (struct nfs4_op_lockt){
		.fh = &op->fh,
		.owner = fs_lock_op(op)->number,
		.write = fs_lock_op(op)->range.write,
		.offset = fs_lock_op(op)->range.off,
		.length = fs_lock_op(op)->range.len,
	};
	op->call->done = test_done;
	nfs4_lockt(op->call);
}

static void ask_test(struct fs_op *op)
{
	fs_op_call(op, test_start);
}

void fs_do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	struct fs_op *op = fs_op_begin_file(req, fi);
	struct fs *fs = fs_current()->fs;

	if (op == NULL)
		return;
	if (!set_range(op, lock) || (lock->l_type != F_RDLCK && lock->l_type != F_WRLCK)) {
		fs_reply_err(op, EINVAL);
		return;
	}
	fs_lock_op(op)->range.write = lock->l_type == F_WRLCK;
	fs_lock_op(op)->number = fs_lockowner_number(fs, op->inode, fi->lock_owner);
	ask_test(op);
}
