/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a delegation ends.
 *
 *   due         (any thread) marked: nothing is opened by it any more
 *   -> COMMIT   of a WRITE one: what is unstable
 *   -> kernel   its attributes go, as they were told for longer than usual; pages stay, the next
 *               open compares the change attribute
 *   -> claims   of what it serves, one share after the other, alone in each
 *   -> DELEGRETURN
 *
 * All operations of a lane may be waiting for this: so it has operations of its
 * own. It waits for calls that are on their way, for the notify thread (which
 * waits for nobody when it is about attributes only) and for who is inside a
 * share, never for another delegation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_lane.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_share.h"
#include "log.h"

#define RETRY_NS NSEC_PER_SEC /* one that could not be is tried again after so long */

/* Counts returns, for fs_share.round. */
static _Atomic uint32_t rounds;

/* ---- due; deleg_lock held ---- */

static void end_promise(struct fs_deleg *d, bool lost)
{
	mutex_lock(&d->inode->lock);
	d->ending = true;
	if (lost) {
		d->lost = true;
		d->inode->attr_ns = 0;
	}
	mutex_unlock(&d->inode->lock);
}

void fs_deleg_return_queue(struct fs_deleg *d)
{
	mutex_assert_held(&d->fs->delegs->lock);
	list_del(&d->due);
	list_push_back(&d->lane->deleg->due, &d->due);
	fs_lane_kick(d->lane);
}

void fs_deleg_return_due(struct fs_deleg *d)
{
	mutex_assert_held(&d->fs->delegs->lock);
	end_promise(d, false);
	if (!d->returning && !d->lost)
		fs_deleg_return_queue(d);
}

void fs_deleg_return_all(struct fs *fs)
{
	mutex_lock(&fs->delegs->lock);
	list_for_each (node, &fs->delegs->list) {
		struct fs_deleg *d = container_of(node, struct fs_deleg, lru);

		if (!d->ending)
			fs_deleg_return_due(d);
	}
	mutex_unlock(&fs->delegs->lock);
}

void fs_deleg_return_lost(struct fs_deleg *d)
{
	mutex_assert_held(&d->fs->delegs->lock);
	end_promise(d, true);
	if (!d->returning)
		fs_deleg_return_queue(d);
}

/* ---- off the inode ---- */

void fs_deleg_return_unuse(struct fs_deleg *d)
{
	struct fs *fs = d->fs;
	struct fs_op *next = NULL;

	mutex_lock(&fs->delegs->lock);
	mutex_lock(&d->inode->lock);
	if (--d->opening == 0) {
		next = d->returner;
		d->returner = NULL;
	}
	mutex_unlock(&d->inode->lock);
	if (d->lost && !d->returning)
		fs_deleg_return_queue(d); /* the lane's turn may have left it */
	mutex_unlock(&fs->delegs->lock);
	if (next)
		fs_op_wake(next);
}

static void wake_waiters(struct fs_deleg *d)
{
	struct list woken;

	list_init(&woken);
	mutex_lock(&d->inode->lock);
	list_splice_back(&woken, &d->waiters);
	mutex_unlock(&d->inode->lock);
	fs_op_wake_all(&woken);
}

/* It is none any more. False: somebody is still at it, and tells when he is not. */
static bool take_off(struct fs_deleg *d)
{
	struct fs_lane *l = d->lane;
	struct fs *fs = d->fs;
	struct fs_inode *in = d->inode;
	bool off;

	mutex_lock(&fs->delegs->lock);
	mutex_lock(&in->lock);
	off = d->opening == 0;
	if (off) {
		in->deleg = NULL;
		list_del(&d->lru);
		list_del(&d->due);
		fs->delegs->cnt--;
	}
	mutex_unlock(&in->lock);
	mutex_unlock(&fs->delegs->lock);
	if (!off)
		return false;
	wake_waiters(d);
	stats_set(&l->stats->delegations, --l->deleg->cnt);
	fs_inode_put(fs, in);
	free(d);
	return true;
}

/* Does the kernel hold attributes of it? */
static bool is_told(struct fs_inode *in)
{
	bool told;

	mutex_lock(&in->lock);
	told = in->told_change != 0;
	mutex_unlock(&in->lock);
	return told;
}

void fs_deleg_return_end(struct fs_deleg *d)
{
	if (is_told(d->inode))
		fs_notify_inval_inode(d->fs, d->inode, -1, 0);
	take_off(d);
}

/* ---- the return ---- */

static void claim_next(struct fs_op *op);

static void over(struct fs_op *op)
{
	struct fs_deleg *d = op->deleg;

	take_off(d); /* nobody is at it: that was waited for */
	fs_op_end(op);
}

/* The next one that this return has not looked at, referenced. */
static struct fs_share *next_share(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_share *sh;

	mutex_lock(&in->lock);
	sh = in->shares;
	while (sh && sh->round == op->round)
		sh = sh->next;
	if (sh) {
		sh->round = op->round;
		sh->refs++;
	}
	mutex_unlock(&in->lock);
	return sh;
}

/* The end of the mount: the server will find out. */
static void give_up(struct fs_op *op)
{
	struct fs_share *sh;

	op->round = ++rounds;
	while ((sh = next_share(op)) != NULL) {
		nfs4_deleg_close(&sh->state);
		fs_share_put(sh);
	}
	nfs4_deleg_forget(&op->deleg->nd);
	over(op);
}

static void return_failed(struct fs_op *op, int err)
{
	struct fs_deleg *d = op->deleg;
	struct fs_lane *l = op->lane;
	bool lost;

	log_warn_limited("the delegation of file %llu cannot be returned: %s",
		(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	if (!fs_lane_may_commit(l)) {
		give_up(op);
		return;
	}
	mutex_lock(&l->fs->delegs->lock);
	d->returning = false;
	lost = d->lost;
	if (lost)
		fs_deleg_return_queue(d);
	else
		list_push_back(&l->deleg->late, &d->due);
	mutex_unlock(&l->fs->delegs->lock);
	wake_waiters(d);
	if (!lost)
		reactor_timer_in(l->reactor, &l->deleg->timer, RETRY_NS);
	fs_op_end(op);
}

/* What came with a recalled one will not be true for long: whoever asks next asks the server. */
static void distrust(struct fs_deleg *d)
{
	mutex_lock(&d->inode->lock);
	if (d->recalled)
		d->inode->attr_ns = 0;
	mutex_unlock(&d->inode->lock);
}

static void return_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_delegreturn *r = &call->u.delegreturn;

	if (call->err && call->status == NFS4_OK) {
		return_failed(op, -call->err);
		return;
	}
	if (call->err) {
		log_warn_limited("DELEGRETURN of file %llu: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(-call->err));
		nfs4_deleg_forget(&op->deleg->nd);
	} else {
		fs_attr_update(op->lane->fs, op->inode, &r->attr, op->attr_seq, fs_op_now(op));
		distrust(op->deleg);
	}
	over(op);
}

static void return_start(struct fs_op *op)
{
	op->call->u.delegreturn = (struct nfs4_op_delegreturn){
		.fh = &op->fh,
		.deleg = &op->deleg->nd,
	};
	op->call->done = return_done;
	nfs4_delegreturn(op->call);
}

/* ---- claims ---- */

static void put_share(struct fs_op *op)
{
	fs_share_leave(op->claims);
	fs_share_put(op->claims);
	op->claims = NULL;
}

static void claim_failed(struct fs_op *op, int err)
{
	put_share(op);
	return_failed(op, err);
}

/* After an answer of the server's its files are lost; nfs4 has said so. */
static void claim_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err && call->status == NFS4_OK) {
		claim_failed(op, -call->err);
		return;
	}
	put_share(op);
	claim_next(op);
}

static void claim_start(struct fs_op *op)
{
	op->call->u.open = (struct nfs4_op_open){.claim = &op->claims->state};
	op->call->cred = &op->claims->cred;
	op->call->done = claim_done;
	nfs4_claim(op->call);
}

static void claim_alone(struct fs_op *op)
{
	if (nfs4_deleg_serves(&op->claims->state)) {
		op->failed = claim_failed;
		fs_op_call(op, claim_start);
		return;
	}
	put_share(op);
	claim_next(op);
}

static void claim_next(struct fs_op *op)
{
	op->claims = next_share(op);
	if (op->claims) {
		fs_share_enter(op, op->claims, true, claim_alone);
		return;
	}
	op->failed = return_failed;
	fs_op_call(op, return_start);
}

/* ---- before it ---- */

static void tell_kernel(struct fs_op *op)
{
	if (is_told(op->inode))
		fs_op_notify(op, op->inode, false, claim_next);
	else
		claim_next(op);
}

/* What could not be committed is unstable still: a later COMMIT's business. */
static void committed(struct fs_op *op, int err)
{
	if (err)
		log_warn_limited("COMMIT of file %llu, whose delegation is returned: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
	tell_kernel(op);
}

static void unused(struct fs_op *op)
{
	if (op->deleg->type == OPEN_DELEGATE_WRITE && fs_writeback_is_dirty(op->inode))
		fs_commit(op, committed);
	else
		tell_kernel(op);
}

void fs_deleg_return(struct fs_lane *l, struct fs_deleg *d)
{
	struct fs_op *op = container_of(list_pop_front(&l->deleg->ops), struct fs_op, link);
	bool wait;

	l->deleg->ops_busy++;
	fs_op_init(op, l);
	op->deleg = d;
	op->round = ++rounds;
	op->inode = fs_inode_ref(l->fs, d->inode);
	op->cred = d->nd.cred;
	mutex_lock(&d->inode->lock);
	wait = d->opening > 0;
	if (wait) {
		op->then = unused;
		d->returner = op;
	}
	mutex_unlock(&d->inode->lock);
	if (!wait)
		unused(op);
}
