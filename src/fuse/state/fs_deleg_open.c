/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OPEN without the server. The user may do it (an OPEN of his said so, under
 * this delegation, and a change of what he may would have ended it), the
 * attributes are those that the server has, and what the file is opened for is
 * not against the promise.
 *
 * A user who has it open already has one file more. Otherwise it is a new share
 * that the delegation serves, which the server hears of only when it is claimed.
 */
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_op.h"
#include "fs_share.h"

#include <fcntl.h>

/* Inode lock held. */
static bool may_open(const struct fs_deleg *d, const struct fs_op *op)
{
	const uint32_t change = ACCESS4_MODIFY | ACCESS4_EXTEND;
	bool writes = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE;

	for (unsigned int i = 0; i < d->users_cnt; i++) {
		const struct fs_deleg_user *u = &d->users[i];

		if (fs_share_same_cred(&u->cred, &op->cred))
			return fs_share_allows(op->fi.flags, u->access) &&
			       (!writes || (u->access & change) == change);
	}
	return false;
}

/* Inode lock held. */
static bool is_usable(const struct fs_inode *in, const struct fs_op *op)
{
	const struct fs_deleg *d = in->deleg;
	bool writes = op->file->share_access & OPEN4_SHARE_ACCESS_WRITE;

	return fs_deleg_vouches(d) && in->attr_known && in->attr_ns != 0 &&
	       (!writes || d->type == OPEN_DELEGATE_WRITE) && may_open(d, op);
}

/* One that has it open for that, and that nobody is about to change. Inode lock held. */
static struct fs_share *share_that_covers(struct fs_inode *in, const struct fs_op *op)
{
	const uint32_t access = op->file->share_access;

	for (struct fs_share *sh = in->shares; sh; sh = sh->next)
		if (!sh->over && !sh->alone && list_empty(&sh->queue) &&
			(fs_share_needs(sh) & access) == access &&
			fs_share_same_cred(&sh->cred, &op->cred))
			return sh;
	return NULL;
}

/* The delegation stays where it is until fs_deleg_return_unuse(); *ret_sh is entered. */
static struct fs_deleg *begin(struct fs_op *op, struct fs_share **ret_sh)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->inode;
	struct fs_deleg *d = NULL;

	mutex_lock(&fs->delegs->lock);
	mutex_lock(&in->lock);
	if (is_usable(in, op)) {
		d = in->deleg;
		d->opening++;
		d->used_ns = fs_op_now(op);
		list_del(&d->lru);
		list_push_back(&fs->delegs->list, &d->lru);
		*ret_sh = share_that_covers(in, op);
		if (*ret_sh) {
			(*ret_sh)->refs++;
			(*ret_sh)->inside++;
		}
		op->attr = in->attr;
		op->attr_seq = fs_attr_seq(in);
	}
	mutex_unlock(&in->lock);
	mutex_unlock(&fs->delegs->lock);
	return d;
}

static bool open_new(struct fs_op *op, struct fs_deleg *d)
{
	struct fs_file *f = op->file;
	struct fs_share *sh = fs_share_new(op->lane->fs, op->inode, &op->cred, 0);

	if (!sh)
		return false;
	if (!nfs4_deleg_open(&d->nd, &sh->state, &sh->cred, f->share_access, sh->owner,
		    fs_inode_fileid(op->inode))) {
		fs_share_put(sh);
		return false;
	}
	fs_share_give(sh, f);
	fs_share_opened(op, f);
	return true;
}

static bool open_more(struct fs_op *op, struct fs_deleg *d, struct fs_share *sh)
{
	bool held = nfs4_deleg_holds(&d->nd) && !nfs4_state_is_lost(&sh->state);

	if (held) {
		fs_share_give(sh, op->file);
		fs_share_opened(op, op->file);
	}
	fs_share_leave(sh);
	if (!held)
		fs_share_put(sh);
	return held;
}

bool fs_deleg_open(struct fs_op *op)
{
	struct fs_share *sh = NULL;
	struct fs_deleg *d;
	bool opened;

	/* O_TRUNC changes it, and is a call anyway. */
	if (op->lane->fs->delegs->cnt == 0 || (op->fi.flags & O_TRUNC))
		return false;
	d = begin(op, &sh);
	if (!d)
		return false;
	opened = sh ? open_more(op, d, sh) : open_new(op, d);
	fs_deleg_return_unuse(d);
	return opened;
}
