/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies: each ends its operation, and each request gets exactly one. A
 * request that the kernel gave up meanwhile (-ENOENT), or that was answered
 * when its program died (fs_interrupt.c), still has its effects taken back: a
 * lookup count, an open file.
 */
#include "fs_op.h"
#include "fs_reply.h"
#include "fs_background.h"
#include "fs_attr.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_pages.h"
#include "fs_shadow.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * The request, answered with this very call: nobody can answer it again. result: bytes, or -errno.
 */
static fuse_req_t take_req_with(struct fs_op *op, int64_t result)
{
	fuse_req_t req = op->req;

	mutex_assert_none();
	assert(req);
	op->req = NULL;
	fs_background_end(op);
	stats_count(&op->lane->stats->fuse_replies, 1);
	fs_trace_answered(op, result);
	return req;
}

static fuse_req_t take_req(struct fs_op *op)
{
	return take_req_with(op, 0);
}

bool fs_reply_early(struct fs_op *op, int err)
{
	return op->req && fuse_reply_err(take_req_with(op, -err), err) != -ENOENT;
}

/* Nobody waits for the answer any more: the op ends without. */
static bool end_abandoned(struct fs_op *op)
{
	if (op->req)
		return false;
	fs_op_end(op);
	return true;
}

void fs_reply_err(struct fs_op *op, int err)
{
	fs_reply_early(op, err);
	fs_op_end(op);
}

/* ---- attributes and names ---- */

/*
 * Runs `reply` when the kernel's stale pages of the inode, if any, are gone. Each reply asks again
 * before it tells: another change may have been seen while it waited.
 */
static bool waits_for_pages(struct fs_op *op, bool stale, void (*reply)(struct fs_op *op))
{
	if (op->own || !op->req || !stale)
		return false;
	fs_op_notify(op, op->reply_inode, true, reply);
	return true;
}

/*
 * While this reply waited, or was on its way, newer attributes may have come: then these. Returns:
 * the kernel's pages are stale.
 */
static bool newest_attr(struct fs_op *op, struct fs_inode *in)
{
	return fs_attr_newest(op->lane->fs, in, &op->attr, op->attr_seq, fs_op_now(op));
}

static void attr_now(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->reply_inode;
	bool stale = newest_attr(op, in);
	struct stat st;
	double timeout;

	/* What the kernel asked for since it was told EINTR may be older than the change. */
	if (op->own && !op->req)
		fs_notify_inval_inode(fs, in, -1, 0);
	if (end_abandoned(op) || waits_for_pages(op, stale, attr_now))
		return;
	timeout = fs_stat_tell(
		fs, in, &op->attr, fs_shadow_is_guarded(fs, &op->attr), fs_op_now(op), &st);
	if (op->shadow)
		st.st_rdev = 0;
	fuse_reply_attr(take_req(op), &st, timeout);
	fs_op_end(op);
}

void fs_reply_attr(struct fs_op *op, struct fs_inode *in, const struct nfs4_attr *a)
{
	op->attr = *a;
	op->reply_inode = in;
	attr_now(op);
}

static void tell_entry(struct fs_op *op, struct fuse_entry_param *e)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->reply_inode, *dir = op->reply_dir;
	bool guarded = op->shadow || fs_shadow_is_guarded(fs, &op->attr);

	fs_stat_entry_tell(
		fs, guarded ? NULL : dir, in, op->name, &op->attr, op->attr_seq, fs_op_now(op), e);
	if (guarded) {
		fs_stat_tell(fs, in, &op->attr, true, fs_op_now(op), &e->attr);
		fs_shadow_tell(fs, dir, op->name, op->shadow, e);
	}
}

static void entry_now(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->reply_inode;
	struct fuse_entry_param e;

	if (waits_for_pages(op, newest_attr(op, in), entry_now))
		return;
	if (op->req)
		tell_entry(op, &e);
	if (!op->req || fuse_reply_entry(take_req(op), &e) == -ENOENT)
		fs_inode_forget(fs, fs_inode_ino(fs, in), 1);
	fs_op_end(op);
}

void fs_reply_entry(
	struct fs_op *op, struct fs_inode *dir, struct fs_inode *in, const struct nfs4_attr *a)
{
	op->attr = *a;
	op->reply_dir = dir;
	op->reply_inode = in;
	entry_now(op);
}

void fs_reply_negative(struct fs_op *op, struct fs_inode *dir)
{
	struct fuse_entry_param e = {
		.entry_timeout = fs_stat_negative_timeout(op->lane->fs, dir, fs_op_now(op)),
	};

	if (end_abandoned(op))
		return;
	/* Inode number 0 with a time: the kernel remembers that there is none. */
	if (e.entry_timeout > 0)
		fuse_reply_entry(take_req_with(op, -ENOENT), &e);
	else
		fuse_reply_err(take_req_with(op, -ENOENT), ENOENT);
	fs_op_end(op);
}

/* ---- opens ---- */

void fs_reply_open(struct fs_op *op, struct fs_file *f, void (*undo)(struct fs_op *op, int err))
{
	bool given, taken;

	op->fi.fh = f->handle;
	given = fs_file_of_request(op->lane->fs, op->unique, &op->fi.fh);
	taken = op->req && fuse_reply_open(take_req(op), &op->fi) != -ENOENT;
	if (taken && !op->fi.keep_cache)
		fs_pages_dropped(op->inode, &op->attr,
			op->attr_seq); /* the answer makes the kernel do that */
	if (taken && !given)
		fs_op_end(op);
	else
		undo(op, 0);
}

static void create_now(struct fs_op *op)
{
	struct fuse_entry_param e;
	bool given;

	if (waits_for_pages(op, newest_attr(op, op->reply_inode), create_now))
		return;
	if (op->req)
		fs_stat_entry_tell(op->lane->fs, op->reply_dir, op->reply_inode, op->name,
			&op->attr, op->attr_seq, fs_op_now(op), &e);
	op->fi.fh = op->file->handle;
	given = fs_file_of_request(op->lane->fs, op->unique, &op->fi.fh);
	if (!op->req || fuse_reply_create(take_req(op), &e, &op->fi) == -ENOENT || given)
		op->undo(op, 0);
	else
		fs_op_end(op);
}

void fs_reply_create(struct fs_op *op, struct fs_inode *dir, struct fs_inode *in, struct fs_file *f,
	void (*undo)(struct fs_op *op, int err))
{
	op->reply_dir = dir;
	op->reply_inode = in;
	op->undo = undo;
	create_now(op);
}

bool fs_reply_opendir(struct fs_op *op, const struct fuse_file_info *fi)
{
	bool taken = op->req && fuse_reply_open(take_req(op), fi) != -ENOENT;

	fs_op_end(op);
	return taken;
}

/* ---- data ---- */

/* One writev of header and data, straight from where they lie. */
void fs_reply_data(struct fs_op *op, const void *data, size_t len)
{
	if (end_abandoned(op))
		return;
	fuse_reply_buf(take_req_with(op, (int64_t)len), data, len);
	fs_op_end(op);
}

void fs_reply_length(struct fs_op *op, size_t len)
{
	if (end_abandoned(op))
		return;
	fuse_reply_xattr(take_req(op), len);
	fs_op_end(op);
}

void fs_reply_write(struct fs_op *op, size_t count)
{
	/* Pages read since the kernel was told EINTR may be older than the data. */
	if (!op->req)
		fs_notify_inval_inode(op->lane->fs, op->inode, op->off, (off_t)count);
	if (end_abandoned(op))
		return;
	fuse_reply_write(take_req_with(op, (int64_t)count), count);
	fs_op_end(op);
}

void fs_reply_write_early(struct fs_op *op, size_t count)
{
	fuse_reply_write(take_req_with(op, (int64_t)count), count);
}

void fs_reply_readlink(struct fs_op *op, const char *target)
{
	if (end_abandoned(op))
		return;
	fuse_reply_readlink(take_req(op), target);
	fs_op_end(op);
}

void fs_reply_statfs(struct fs_op *op, const struct statvfs *st)
{
	if (end_abandoned(op))
		return;
	fuse_reply_statfs(take_req(op), st);
	fs_op_end(op);
}

void fs_reply_lseek(struct fs_op *op, off_t off)
{
	if (end_abandoned(op))
		return;
	fuse_reply_lseek(take_req(op), off);
	fs_op_end(op);
}

void fs_reply_lock(struct fs_op *op, const struct flock *lock)
{
	if (end_abandoned(op))
		return;
	fuse_reply_lock(take_req(op), lock);
	fs_op_end(op);
}
