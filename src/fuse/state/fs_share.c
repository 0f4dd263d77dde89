/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_op.h"
#include "fs_share.h"
#include "fs_share_tables.h"
#include "fs_file.h"
#include "fs_part.h"
#include "fs_validate.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* The kernel passes it on: opened to be executed (include/linux/fs.h). */
#define FMODE_EXEC_FLAG 0x20

bool fs_share_same_cred(const struct rpc_cred *a, const struct rpc_cred *b)
{
	return a->flavor == b->flavor && a->uid == b->uid && a->gid == b->gid &&
	       a->gids_cnt == b->gids_cnt &&
	       memcmp(a->gids, b->gids, a->gids_cnt * sizeof(a->gids[0])) == 0;
}

uint32_t fs_share_access(int flags)
{
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return OPEN4_SHARE_ACCESS_READ;
	case O_WRONLY:
		return OPEN4_SHARE_ACCESS_WRITE;
	default:
		return OPEN4_SHARE_ACCESS_BOTH;
	}
}

bool fs_share_allows(int flags, uint32_t access)
{
	uint32_t want = 0;

	if (flags & FMODE_EXEC_FLAG)
		want = ACCESS4_EXECUTE;
	else if ((flags & O_ACCMODE) != O_WRONLY)
		want = ACCESS4_READ;
	return (access & want) == want;
}

/* ---- on the inode ---- */

struct fs_share *fs_share_new(
	struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred, uint64_t owner)
{
	struct fs_share *sh = calloc(1, sizeof(*sh));

	if (!sh)
		return NULL;
	sh->fs = fs;
	sh->inode = in;
	sh->cred = *cred;
	sh->owner = owner ? owner : nfs4_new_owner(fs->client);
	sh->refs = 1;
	list_init(&sh->queue);
	mutex_lock(&in->lock);
	fs_share_tables_live(fs, sh); /* before the server is asked */
	mutex_unlock(&in->lock);
	return sh;
}

/* Inode lock held. */
static void unlist(struct fs_share *sh)
{
	struct fs_share **p = &sh->inode->shares;

	while (*p && *p != sh)
		p = &(*p)->next;
	if (*p)
		*p = sh->next;
}

/* Inode lock held. */
static void list(struct fs_share *sh)
{
	struct fs_share **p = &sh->inode->shares;

	while (*p && *p != sh)
		p = &(*p)->next;
	*p = sh;
}

void fs_share_list(struct fs_share *sh)
{
	mutex_lock(&sh->inode->lock);
	list(sh);
	mutex_unlock(&sh->inode->lock);
}

struct fs_share *fs_share_of_owner(struct fs_inode *in, uint64_t owner)
{
	struct fs_share *sh;

	mutex_lock(&in->lock);
	sh = in->shares;
	while (sh && (sh->over || sh->owner != owner))
		sh = sh->next;
	if (sh)
		sh->refs++;
	mutex_unlock(&in->lock);
	return sh;
}

/* Inode lock held. */
static struct fs_share *find_share(struct fs_inode *in, const struct rpc_cred *cred)
{
	struct fs_share *sh = in->shares;

	mutex_assert_held(&in->lock);
	while (sh && (sh->over || !fs_share_same_cred(&sh->cred, cred)))
		sh = sh->next;
	return sh;
}

struct fs_share *fs_share_join(
	struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred, uint64_t request)
{
	struct fs_share *sh;

	mutex_lock(&in->lock);
	sh = find_share(in, cred);
	if (sh)
		sh->refs++;
	mutex_unlock(&in->lock);
	if (sh)
		return sh;
	sh = fs_share_new(fs, in, cred, fs->live ? nfs4_owner_of_request(request) : 0);
	if (sh)
		fs_share_list(sh);
	return sh;
}

bool fs_share_is_over(struct fs_share *sh)
{
	bool over, open;

	mutex_lock(&sh->inode->lock);
	over = sh->over;
	open = fs_share_needs(sh) != 0;
	mutex_unlock(&sh->inode->lock);
	if (over || !open || !nfs4_state_is_lost(&sh->state))
		return over;
	mutex_lock(&sh->inode->lock);
	sh->over = true;
	mutex_unlock(&sh->inode->lock);
	return true;
}

void fs_share_give(struct fs_share *sh, struct fs_file *f)
{
	f->share = sh;
	f->state = sh ? &sh->state : NULL;
}

void fs_share_put(struct fs_share *sh)
{
	struct fs_inode *in;
	bool last;

	if (!sh)
		return;
	in = sh->inode;
	mutex_lock(&in->lock);
	last = --sh->refs == 0;
	if (last)
		unlist(sh);
	mutex_unlock(&in->lock);
	if (!last)
		return;
	nfs4_state_forget(&sh->state); /* if its CLOSE failed */
	live_drop(sh->fs->live, &sh->live_ref);
	free(sh);
}

/* ---- open files ---- */

void fs_share_opened(struct fs_op *op, struct fs_file *f)
{
	struct fs *fs = op->lane->fs;
	struct fs_share *sh = f->share;
	struct fs_inode *in = f->inode;

	fs_inode_table_lock(fs);
	mutex_lock(&in->lock);
	fs_file_opened(fs, f);
	fs_inode_table_unlock(fs);
	list(sh);
	sh->opens[f->share_access]++;
	sh->access |= f->share_access;
	fs_share_tables_live_access(fs, sh);
	fs_share_tables_live_file(fs, f, op->unique);
	mutex_unlock(&in->lock);
	fs_validate_watch(op->lane, f);
}

void fs_share_closed(struct fs *fs, struct fs_file *f)
{
	fs_validate_unwatch(f);
	fs_file_closed(fs, f);
}

uint32_t fs_share_needs(const struct fs_share *sh)
{
	uint32_t access = 0;

	mutex_assert_held(&sh->inode->lock);
	for (uint32_t i = 1; i < 4; i++)
		access |= sh->opens[i] ? i : 0;
	return access;
}

bool fs_share_left(struct fs_share *sh, uint32_t *ret_left)
{
	uint32_t left;
	bool more;

	mutex_lock(&sh->inode->lock);
	left = fs_share_needs(sh);
	more = left != sh->access;
	if (!left)
		sh->over = true;
	mutex_unlock(&sh->inode->lock);
	*ret_left = left;
	return more;
}

/* ---- who may do what at a time ---- */

/* Inode lock held. */
static bool may_enter(const struct fs_share *sh, bool alone)
{
	return !sh->alone && (!alone || sh->inside == 0);
}

/* Inode lock held. */
static void go_in(struct fs_share *sh, bool alone)
{
	sh->alone = alone;
	sh->inside += !alone;
}

/* True: it is inside; false: it waits. Inode lock held. */
static bool enter(struct fs_op *op, struct fs_share *sh, bool alone, void (*then)(struct fs_op *op))
{
	bool now = list_empty(&sh->queue) && may_enter(sh, alone);

	if (now) {
		go_in(sh, alone);
	} else {
		op->then = then;
		op->alone = alone;
		list_push_back(&sh->queue, &op->link);
	}
	return now;
}

static void entered(struct fs_op *op, bool now, void (*then)(struct fs_op *op))
{
	if (now)
		then(op);
	else
		fs_op_put_call(op); /* `then` comes from this lane's mailbox: not before */
}

void fs_share_enter(
	struct fs_op *op, struct fs_share *sh, bool alone, void (*then)(struct fs_op *op))
{
	bool now;

	mutex_lock(&sh->inode->lock);
	now = enter(op, sh, alone, then);
	mutex_unlock(&sh->inode->lock);
	entered(op, now, then);
}

bool fs_share_drop(struct fs_op *op, struct fs_share *sh, uint32_t share_access,
	void (*then)(struct fs_op *op))
{
	bool less, now = false;

	mutex_lock(&sh->inode->lock);
	sh->opens[share_access]--;
	less = fs_share_needs(sh) != sh->access;
	if (less)
		now = enter(op, sh, true, then);
	mutex_unlock(&sh->inode->lock);
	if (less)
		entered(op, now, then);
	return less;
}

/* Inode lock held. *ret_woken: who enters now. */
static void leave(struct fs_share *sh, struct list *ret_woken)
{
	list_init(ret_woken);
	if (sh->alone)
		sh->alone = false;
	else
		sh->inside--;
	while (!list_empty(&sh->queue)) {
		struct fs_op *op = list_first(&sh->queue, struct fs_op, link);

		if (!may_enter(sh, op->alone))
			break;
		go_in(sh, op->alone);
		list_del(&op->link);
		list_push_back(ret_woken, &op->link);
	}
}

void fs_share_leave(struct fs_share *sh)
{
	struct list woken;

	mutex_lock(&sh->inode->lock);
	leave(sh, &woken);
	mutex_unlock(&sh->inode->lock);
	fs_op_wake_all(&woken);
}

void fs_share_leave_downgraded(struct fs_share *sh, uint32_t share_access)
{
	struct list woken;

	mutex_lock(&sh->inode->lock);
	sh->access = share_access;
	fs_share_tables_live_access(sh->fs, sh);
	leave(sh, &woken);
	mutex_unlock(&sh->inode->lock);
	fs_op_wake_all(&woken);
}

static void file_gone(struct fs_file *f)
{
	fs_share_put(f->share);
}

const struct fs_part fs_share_part = {
	.file_gone = file_gone,
};
