/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unlink of a file that is open here. NFS has no files without a name, so the
 * file is renamed to .nfsXXXX in its directory and removed after its last
 * close, as the kernel's client does it (the names are of the same form: what
 * a crash leaves behind is swept by the same scripts).
 */
#include "fs_op.h"
#include "fs_silly.h"
#include "fs_asked.h"
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_live.h"
#include "fs_replay.h"
#include "log.h"
#include "nfs4_keep.h"
#include "nfs4_tables.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of FS_TABLES_SILLY. */
enum {
	SILLY_DIR = 10, /* slot */
	SILLY_NAME = 11,
	SILLY_REQUEST = 12,
};

struct fs_silly {
	struct list link;     /* fs->replays.sillies */
	struct fs_inode *dir; /* referenced */
	struct fs_inode *in;  /* while an op is at it: which has a reference */
	struct nfs4_fh dir_fh;
	uint64_t dir_seq;
	struct rpc_cred cred; /* who unlinked it, removes it */
	char from[FS_NAME_MAX + 1];
	char name[FS_SILLY_NAME];
	live_ref live_ref; /* its record, fs_live.h */
	uint64_t request;  /* the call that renames it (nfs4_once), until it is done; then 0 */
	bool is_all;       /* the request asks for nothing more: fs_op_once() */
};

void fs_silly_name(struct fs *fs, uint64_t fileid, char ret[FS_SILLY_NAME])
{
	/* The counter starts at random: two clients that unlink one file choose two names. */
	snprintf(ret, FS_SILLY_NAME, ".nfs%016llx%08x", (unsigned long long)fileid,
		(unsigned int)atomic_fetch_add(&fs->silly_cnt, 1));
}

/* Or about to be: the server may have done the OPEN already. Inode lock held. */
static bool is_open(const struct fs_inode *in)
{
	return in->opens > 0 || in->opening > 0;
}

bool fs_silly_needed(struct fs_inode *in)
{
	bool needed;

	mutex_lock(&in->lock);
	needed = is_open(in) && !in->silly;
	mutex_unlock(&in->lock);
	return needed;
}

bool fs_silly_left(struct fs_inode *dir)
{
	bool left;

	mutex_lock(&dir->lock);
	left = dir->sillies > 0;
	mutex_unlock(&dir->lock);
	return left;
}

/* From before the rename is sent until after the removal is answered. */
static void silly_count(struct fs *fs, struct fs_inode *dir, int n)
{
	mutex_lock(&dir->lock);
	dir->sillies += (uint32_t)n;
	mutex_unlock(&dir->lock);
	atomic_fetch_add(&fs->sillies, (uint32_t)n);
}

static void silly_free(struct fs *fs, struct fs_silly *s)
{
	atomic_fetch_add(&fs->sillies_gone, 1); /* before it is none of those that are there */
	silly_count(fs, s->dir, -1);
	live_drop(fs->live, &s->live_ref);
	fs_inode_put(fs, s->dir);
	free(s);
}

/* The name is no link of any program's: what a stat shows is without it. */
static void name_count(struct fs_inode *in, int n)
{
	mutex_lock(&in->lock);
	in->nfs_names = (uint8_t)(in->nfs_names + n);
	mutex_unlock(&in->lock);
	fs_attr_changed(in); /* its links and its ctime */
}

/* ---- for the process that takes the mount over ---- */

static void put_one(struct tables_out *t, const struct fs_inode *in, const struct fs_silly *s)
{
	tables_record(t, FS_TABLES_SILLY);
	tables_put(t, FS_TABLES_SLOT, in->slot);
	tables_put(t, SILLY_DIR, s->dir->slot);
	nfs4_tables_put_cred(t, FS_TABLES_CRED, &s->cred);
	tables_put_bytes(t, SILLY_NAME, s->name, strlen(s->name));
	if (s->request)
		tables_put(t, SILLY_REQUEST, s->request);
}

static void put_silly(void *ctx, struct fs_inode *in)
{
	if (in->silly && in->silly_name)
		put_one(ctx, in, in->silly_name);
}

static void live_silly(const struct fs *fs, const struct fs_inode *in, struct fs_silly *s)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_SILLY, .group = in->slot};
	struct tables_out t;

	if (!fs->live)
		return;
	tables_begin_in(&t);
	put_one(&t, in, s);
	fs_live_put(fs, &s->live_ref, &key, &t);
}

/* It goes with its last close. Inode lock held. */
static void becomes_silly(const struct fs *fs, struct fs_inode *in, struct fs_silly *s)
{
	in->silly = true;
	in->silly_name = s;
	s->in = NULL;
	s->request = 0;
	live_silly(fs, in, s);
}

void fs_silly_tables_put(struct tables_out *t, struct fs *fs)
{
	fs_inode_each(fs, put_silly, t);
}

int fs_silly_tables_get(const struct tables_record *r, struct fs *fs)
{
	struct fs_inode *in = fs_inode_tables_of(r, FS_TABLES_SLOT, fs);
	struct fs_inode *dir = fs_inode_tables_of(r, SILLY_DIR, fs);
	size_t len;
	const char *name = tables_get_bytes(r, SILLY_NAME, &len);
	struct fs_silly *s;

	if (!in || !dir || in->silly || !name || len >= sizeof(s->name) || memchr(name, '\0', len))
		return -EBADMSG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (!nfs4_tables_get_cred(r, FS_TABLES_CRED, &s->cred)) {
		free(s);
		return -EBADMSG;
	}
	memcpy(s->name, name, len);
	s->dir = fs_inode_ref(fs, dir);
	fs_inode_fh(dir, &s->dir_fh);
	silly_count(fs, dir, 1);
	s->request = tables_get(r, SILLY_REQUEST);
	if (s->request) {
		s->in = fs_inode_ref(fs, in);
		list_push_back(&fs->replays.sillies, &s->link);
	} else {
		in->silly_name = s;
		in->silly = true;
	}
	live_silly(fs, in, s);
	return 0;
}

/* As who unlinked it would remove that name, though without the supplementary groups. */
static bool remove_again(struct fs *fs, const struct fs_silly *s)
{
	struct {
		struct fuse_in_header h;
		char name[FS_SILLY_NAME];
	} req = {
		.h =
			{
				.opcode = FUSE_UNLINK,
				.unique = fs_replay_unique(fs),
				.nodeid = s->dir->slot,
				.uid = s->cred.uid,
				.gid = s->cred.gid,
			},
	};

	req.h.len = (uint32_t)(sizeof(req.h) + strlen(s->name) + 1);
	memcpy(req.name, s->name, strlen(s->name));
	if (!fs_replay_add(fs, &req, req.h.len))
		return false;
	fs_asked_await(fs, req.h.unique);
	return true;
}

/* It was renamed. Returns: false: out of memory. */
static bool was_renamed(struct fs *fs, struct fs_inode *in, struct fs_silly *s)
{
	bool open;

	mutex_lock(&in->lock);
	open = is_open(in) && !in->silly;
	in->nfs_names = open || in->silly;
	if (open)
		becomes_silly(fs, in, s);
	mutex_unlock(&in->lock);
	fs_live_inode(fs, in);
	return open || remove_again(fs, s); /* closed meanwhile */
}

bool fs_silly_settle(struct fs *fs)
{
	struct list *node;
	bool ok = true;

	while (ok && (node = list_pop_front(&fs->replays.sillies))) {
		struct fs_silly *s = container_of(node, struct fs_silly, link);
		struct fs_inode *in = s->in;

		if (nfs4_redo_was_done(fs->client, s->request))
			ok = was_renamed(fs, in, s);
		if (s->in)
			silly_free(fs, s);
		fs_inode_put(fs, in);
	}
	return ok;
}

void fs_silly_fini(struct fs *fs)
{
	struct list *node;

	while ((node = list_pop_front(&fs->replays.sillies)))
		free(container_of(node, struct fs_silly, link));
}

/* ---- removal ---- */

static void silly_removed(struct fs_op *op, int err)
{
	struct fs_silly *s = op->silly;
	void (*done)(struct fs_op * op, int err) = op->silly_done;

	if (err && err != ENOENT)
		log_warn_limited("removing %s: %s", s->name, strerror(err));
	name_count(s->in, -1);
	fs_live_inode(op->lane->fs, s->in);
	op->silly = NULL;
	silly_free(op->lane->fs, s);
	done(op, 0);
}

static void remove_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_silly *s = op->silly;

	if (!call->err)
		fs_attr_update_own(
			op->lane->fs, s->dir, &call->u.remove.dir_attr, s->dir_seq, fs_op_now(op));
	silly_removed(op, -call->err);
}

static void remove_start(struct fs_op *op)
{
	struct nfs4_op_remove *r = &op->call->u.remove;
	struct fs_silly *s = op->silly;

	memset(r, 0, sizeof(*r));
	s->dir_seq = fs_attr_seq(s->dir);
	r->dir = &s->dir_fh;
	r->name.p = s->name;
	r->name.len = (uint32_t)strlen(s->name);
	op->call->cred = &s->cred;
	op->call->done = remove_done;
	nfs4_remove(op->call);
}

static void silly_clear(struct fs_op *op)
{
	op->failed = silly_removed;
	fs_op_call(op, remove_start);
}

static void silly_remove(struct fs_op *op, struct fs_inode *in)
{
	op->silly->in = in;
	fs_deleg_clear(op, in, true, silly_clear);
}

static void finish(struct fs_op *op, int err)
{
	atomic_fetch_add(&op->lane->fs->closes, 1);
	atomic_fetch_sub(&op->lane->fs->releasing, 1);
	fs_op_end(op);
}

void fs_silly_finish(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	struct fs_silly *s = NULL;

	mutex_lock(&in->lock);
	if (!is_open(in) && in->silly) {
		s = in->silly_name;
		in->silly_name = NULL;
		in->silly = false;
	}
	mutex_unlock(&in->lock);
	if (!s) {
		finish(op, 0);
		return;
	}
	op->silly = s;
	op->silly_done = finish;
	silly_remove(op, in);
}

/* ---- the rename ---- */

static void rename_failed(struct fs_op *op, int err)
{
	struct fs_silly *s = op->silly;

	op->silly = NULL;
	silly_free(op->lane->fs, s);
	op->silly_done(op, err);
}

static void rename_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_silly *s = op->silly;
	struct fs_inode *in = s->in;
	bool open;

	if (call->err) {
		rename_failed(op, -call->err);
		return;
	}
	fs_attr_update_own(
		op->lane->fs, s->dir, &call->u.rename.to_attr, s->dir_seq, fs_op_now(op));
	name_count(in, 1);
	fs_live_inode(op->lane->fs, in);
	mutex_lock(&in->lock);
	open = is_open(in);
	if (open)
		becomes_silly(op->lane->fs, in, s);
	mutex_unlock(&in->lock);
	if (open) {
		op->silly = NULL;
		op->silly_done(op, 0);
	} else {
		silly_remove(op, in); /* closed meanwhile */
	}
}

static void rename_start(struct fs_op *op)
{
	struct nfs4_op_rename *r = &op->call->u.rename;
	struct fs_silly *s = op->silly;

	memset(r, 0, sizeof(*r));
	s->dir_seq = fs_attr_seq(s->dir);
	r->from_dir = r->to_dir = &s->dir_fh;
	r->from.p = s->from;
	r->from.len = (uint32_t)strlen(s->from);
	r->to.p = s->name;
	r->to.len = (uint32_t)strlen(s->name);
	op->call->cred = &s->cred;
	op->call->done = rename_done;
	if (s->is_all)
		fs_op_once(op);
	else
		fs_op_once_part(op);
	s->request = op->once.request;
	live_silly(op->lane->fs, s->in, s);
	nfs4_rename(op->call);
}

static void rename_clear(struct fs_op *op)
{
	if (op->abandoned) { /* it waited: others may have given the name to another file since */
		rename_failed(op, EINTR);
		return;
	}
	op->failed = rename_failed;
	fs_op_call(op, rename_start);
}

void fs_silly_rename(struct fs_op *op, struct fs_inode *dir, const char *name, struct fs_inode *in,
	bool is_all, void (*done)(struct fs_op *op, int err))
{
	struct fs *fs = op->lane->fs;
	struct fs_silly *s = calloc(1, sizeof(*s));

	if (!s || !fs_op_name(s->from, name)) {
		free(s);
		done(op, s ? ENAMETOOLONG : ENOMEM);
		return;
	}
	s->dir = fs_inode_ref(fs, dir);
	silly_count(fs, dir, 1);
	fs_inode_fh(dir, &s->dir_fh);
	s->in = in;
	s->is_all = is_all;
	s->cred = op->cred;
	fs_silly_name(fs, fs_inode_fileid(in), s->name);
	op->silly = s;
	op->silly_done = done;
	fs_deleg_clear(op, in, true, rename_clear);
}
