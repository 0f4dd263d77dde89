/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_share_tables.h"
#include "fs_live.h"
#include "fs_replay.h"
#include "nfs4_keep.h"
#include "nfs4_tables.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>

enum {
	SHARE_OWNER = 10,
	SHARE_OVER = 11,
	SHARE_ACCESS = 12,
	SHARE_STATELESS = 13, /* the server knows nothing of it */
	SHARE_APART = 14,     /* its state has a record of its own, NFS4_KEEP_STATE */
};

enum {
	FILE_ACCESS = 10,
	FILE_FLAGS = 11, /* O_* */
	FILE_WRITE_ERR = 12,
	FILE_NEXT_ERR = 13,
	FILE_OWNER = 14,  /* of its share */
	FILE_DATA = 15,   /* fs_live_data() */
	FILE_UNIQUE = 16, /* the request that opened it */
};

enum {
	LOCK_KEY = 10,
	LOCK_FLOCK = 11,
	LOCK_PID = 12,
	LOCK_HOLDING = 13,
	LOCK_DOUBT = 14,
	LOCK_DOUBT_OFF = 15,
	LOCK_DOUBT_LEN = 16,
	LOCK_OWNER = 17, /* of its share */
};

enum {
	WAIT_UNIQUE = 20,
	WAIT_UID = 21,
	WAIT_GID = 22,
	WAIT_PID = 23,
	WAIT_OFF = 24,
	WAIT_LEN = 25,
	WAIT_WRITE = 26,
	WAIT_LOCK_PID = 27,
};

/* ---- put ---- */

static void put_open(struct tables_out *t, const struct fs_file *f)
{
	tables_record(t, FS_TABLES_FILE);
	tables_put(t, FS_TABLES_HANDLE, f->handle);
	nfs4_tables_put_cred(t, FS_TABLES_CRED, &f->cred);
	tables_put(t, FILE_ACCESS, f->share_access);
	tables_put(t, FILE_FLAGS, (uint32_t)f->flags);
}

static void put_file(struct tables_out *t, const struct fs_file *f)
{
	put_open(t, f);
	tables_put(t, FILE_WRITE_ERR, (uint32_t)f->write_err);
	tables_put(t, FILE_NEXT_ERR, (uint32_t)f->next_err);
}

static void put_owner(struct tables_out *t, const struct fs_lockowner *o)
{
	tables_record(t, FS_TABLES_LOCKOWNER);
	tables_put(t, FS_TABLES_HANDLE, o->file ? o->file->handle : FS_HANDLE_NONE);
	tables_put(t, LOCK_KEY, o->key);
	tables_put(t, LOCK_FLOCK, o->flock);
	tables_put(t, LOCK_PID, (uint32_t)o->pid);
	tables_put(t, LOCK_HOLDING, atomic_load(&o->holding));
	tables_put(t, LOCK_DOUBT, o->doubt);
	tables_put(t, LOCK_DOUBT_OFF, o->doubt_off);
	tables_put(t, LOCK_DOUBT_LEN, o->doubt_len);
}

static void put_open_of(struct tables_out *t, const struct fs_share *sh)
{
	tables_record(t, FS_TABLES_SHARE);
	tables_put(t, FS_TABLES_SLOT, sh->inode->slot);
	nfs4_tables_put_cred(t, FS_TABLES_CRED, &sh->cred);
	tables_put(t, SHARE_OWNER, sh->owner);
	tables_put(t, SHARE_OVER, sh->over);
}

static void put_share(struct tables_out *t, struct fs_share *sh)
{
	put_open_of(t, sh);
	tables_put(t, SHARE_ACCESS, sh->access);
	tables_put(t, SHARE_STATELESS, sh->state.cl == NULL);
	if (sh->state.cl)
		nfs4_keep_put_state(t, &sh->state);
	list_for_each (node, &sh->inode->open_files) {
		const struct fs_file *f = container_of(node, struct fs_file, link);

		if (f->share == sh)
			put_file(t, f);
	}
	for (struct fs_lockowner *o = atomic_load(&sh->inode->lockowners); o; o = o->next)
		if (o->share == sh && o->lo.state == &sh->state) {
			put_owner(t, o);
			nfs4_keep_put_lockowner(t, &o->lo);
		}
}

static void put_shares(void *ctx, struct fs_inode *in)
{
	for (struct fs_share *sh = in->shares; sh; sh = sh->next)
		put_share(ctx, sh);
}

void fs_share_tables_put(struct tables_out *t, struct fs *fs)
{
	fs_inode_each(fs, put_shares, t);
}

void fs_share_tables_put_waits(struct tables_out *t, struct fs *fs)
{
	list_for_each (node, &fs->locks->waits) {
		const struct fs_lockwait *w = container_of(node, struct fs_lockwait, link);
		const struct fuse_ctx *asks = w->req ? fuse_req_ctx(w->req) : NULL;

		if (!asks)
			continue;
		tables_record(t, FS_TABLES_LOCKWAIT);
		tables_put(t, FS_TABLES_SLOT, w->inode->slot);
		tables_put(t, FS_TABLES_HANDLE, w->file->handle);
		tables_put(t, LOCK_KEY, w->owner->key);
		tables_put(t, LOCK_FLOCK, w->owner->flock);
		tables_put(t, WAIT_UNIQUE, w->unique);
		tables_put(t, WAIT_UID, asks->uid);
		tables_put(t, WAIT_GID, asks->gid);
		tables_put(t, WAIT_PID, (uint32_t)asks->pid);
		tables_put(t, WAIT_OFF, w->range.off);
		tables_put(t, WAIT_LEN, w->range.len);
		tables_put(t, WAIT_WRITE, w->range.write);
		tables_put(t, WAIT_LOCK_PID, (uint32_t)w->owner->pid);
	}
}

/* ---- as it is now ---- */

void fs_share_tables_live(struct fs *fs, struct fs_share *sh)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_OPENS,
		.group = sh->owner,
		.minor = FS_LIVE_MINOR_SHARE,
		.count_field = SHARE_ACCESS,
		.count = sh->access};
	struct tables_out t;

	if (!fs->live)
		return;
	tables_begin_in(&t);
	put_open_of(&t, sh);
	tables_put(&t, SHARE_APART, true);
	fs_live_put(fs, &sh->live_ref, &key, &t);
}

void fs_share_tables_live_access(struct fs *fs, const struct fs_share *sh)
{
	live_count(fs->live, sh->live_ref, sh->access);
}

void fs_share_tables_live_file(struct fs *fs, struct fs_file *f, uint64_t unique)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_OPENS,
		.group = f->share ? f->share->owner : 0,
		.minor = FS_LIVE_MINOR_FILE,
		.count_field = FILE_DATA};
	struct tables_out t;

	if (!fs->live || !f->share)
		return;
	tables_begin_in(&t);
	put_open(&t, f);
	tables_put(&t, FILE_OWNER, f->share->owner);
	tables_put(&t, FILE_UNIQUE, unique);
	fs_live_put(fs, &f->live_ref, &key, &t);
	fs_live_data(f);
}

void fs_share_tables_live_owner(struct fs *fs, struct fs_lockowner *o)
{
	struct live_key key = {.rank = FS_LIVE_RANK_OPENS, .minor = FS_LIVE_MINOR_LOCKOWNER};
	struct tables_out t;

	if (!fs->live || !o->share)
		return;
	key.group = o->share->owner;
	tables_begin_in(&t);
	put_owner(&t, o);
	tables_put(&t, LOCK_OWNER, o->share->owner);
	nfs4_keep_put_number(&t, &o->lo);
	fs_live_put(fs, &o->live_ref, &key, &t);
}

/* ---- get ---- */

/* Its share is not there any more, or was not there yet: nobody was told of it. */
static bool is_of_another(
	const struct fs_share_tables *at, const struct tables_record *r, uint16_t owner_field)
{
	uint64_t owner = tables_get(r, owner_field);

	return owner != 0 && (!at->share || at->share->owner != owner);
}

static int get_share(struct fs_share_tables *at, const struct tables_record *r)
{
	struct fs_inode *in = fs_inode_tables_of(r, FS_TABLES_SLOT, at->fs);
	struct rpc_cred cred;
	struct fs_share *sh;
	struct nfs4_fh fh;

	if (!in || !nfs4_tables_get_cred(r, FS_TABLES_CRED, &cred) ||
		tables_get(r, SHARE_ACCESS) > OPEN4_SHARE_ACCESS_BOTH)
		return -EBADMSG;
	sh = fs_share_new(at->fs, in, &cred, tables_get(r, SHARE_OWNER));
	if (!sh)
		return -ENOMEM;
	fs_share_list(sh);
	at->share = sh;
	at->closed = at->apart = tables_get(r, SHARE_APART);
	sh->over = tables_get(r, SHARE_OVER);
	sh->access = (uint32_t)tables_get(r, SHARE_ACCESS);
	mutex_lock(&in->lock);
	fs_share_tables_live(at->fs, sh);
	fs_share_tables_live_access(at->fs, sh);
	mutex_unlock(&in->lock);
	fs_inode_fh(in, &fh);
	if (tables_get(r, SHARE_STATELESS) || tables_get(r, SHARE_APART))
		return 0;
	return nfs4_keep_get_state(r, at->fs->client, &sh->state, &fh);
}

static int get_state(const struct fs_share_tables *at, const struct tables_record *r)
{
	struct fs_share *sh = at->share;
	struct nfs4_fh fh;

	if (!sh || nfs4_keep_owner_of(r) != sh->owner)
		return 0;
	/* A process that died had two of one owner: the later one has the newer stateid. */
	nfs4_state_forget(&sh->state);
	fs_inode_fh(sh->inode, &fh);
	return nfs4_keep_get_state(r, at->fs->client, &sh->state, &fh);
}

static struct fs_file *take_file(struct fs *fs, struct fs_share *sh, const struct rpc_cred *cred,
	uint32_t access, int flags, uint64_t handle)
{
	struct fs_file *f = fs_file_put_back(fs, sh->inode, cred, access, flags, handle);

	if (!f)
		return NULL;
	fs_share_give(sh, f);
	fs_inode_table_lock(fs);
	mutex_lock(&sh->inode->lock);
	fs_file_opened(fs, f);
	sh->refs++;
	sh->opens[access]++;
	mutex_unlock(&sh->inode->lock);
	fs_inode_table_unlock(fs);
	return f;
}

static int get_file(struct fs_share_tables *at, const struct tables_record *r)
{
	uint64_t access = tables_get(r, FILE_ACCESS);
	struct fs_share *sh = at->share;
	struct rpc_cred cred;
	struct fs_file *f;

	if (is_of_another(at, r, FILE_OWNER))
		return 0;
	if (!sh || access == 0 || access > OPEN4_SHARE_ACCESS_BOTH ||
		!nfs4_tables_get_cred(r, FS_TABLES_CRED, &cred))
		return -EBADMSG;
	f = take_file(at->fs, sh, &cred, (uint32_t)access, (int)(uint32_t)tables_get(r, FILE_FLAGS),
		tables_get(r, FS_TABLES_HANDLE));
	if (!f)
		return -ENOMEM;
	at->closed = false;
	f->unique = tables_get(r, FILE_UNIQUE);
	f->write_err = (int)(uint32_t)tables_get(r, FILE_WRITE_ERR);
	f->next_err = (int)(uint32_t)tables_get(r, FILE_NEXT_ERR);
	fs_live_data_get(f, tables_get(r, FILE_DATA));
	f->released = f->left; /* to the one after this process, too */
	mutex_lock(&sh->inode->lock);
	fs_share_tables_live_file(at->fs, f, f->unique);
	mutex_unlock(&sh->inode->lock);
	return 0;
}

void fs_share_tables_unanswered(struct fs *fs, uint64_t unique)
{
	bool is = false;

	list_for_each (node, &fs->files) {
		struct fs_file *f = container_of(node, struct fs_file, all_link);

		if (unique == 0 || f->unique != unique || f->left)
			continue;
		f->in_doubt = !is;
		f->left = is; /* a process in between opened it anew, and gave the first handle */
		atomic_fetch_add(&fs->replays.files_in_doubt, !is);
		is = true;
	}
}

/* Its last file was released, and the server had not closed it. */
static int close_share(struct fs *fs, struct fs_share *sh)
{
	uint32_t access = sh->state.cl ? sh->state.share_access : 0;
	struct fs_file *f;

	if (access == 0)
		return 0;
	f = take_file(fs, sh, &sh->cred, access, 0, FS_HANDLE_NONE);
	if (f)
		f->left = true;
	return f ? 0 : -ENOMEM;
}

static int hold_owner(struct fs_share_tables *at, struct fs_lockowner *o)
{
	struct fs_lockowner **v = realloc(at->owners, (at->owners_cnt + 1) * sizeof(*v));

	if (!v) {
		fs_lockowner_put(at->fs, o);
		return -ENOMEM;
	}
	v[at->owners_cnt++] = o;
	at->owners = v;
	return 0;
}

static void put_owners(struct fs_share_tables *at)
{
	for (size_t i = 0; i < at->owners_cnt; i++)
		fs_lockowner_put(at->fs, at->owners[i]);
	free(at->owners);
	at->owners = NULL;
	at->owners_cnt = 0;
}

static int get_owner(struct fs_share_tables *at, const struct tables_record *r)
{
	struct fs_share *sh = at->share;
	struct fs_lockowner *o;
	int err = 0;

	if (is_of_another(at, r, LOCK_OWNER))
		return 0;
	if (!sh)
		return -EBADMSG;
	o = fs_lockowner_get(
		at->fs, sh->inode, tables_get(r, LOCK_KEY), tables_get(r, LOCK_FLOCK), true);
	if (!o)
		return -ENOMEM;
	if (o->lo.state) { /* it was there before, and hangs on its open */
		fs_lockowner_put(at->fs, o);
		return -EBADMSG;
	}
	o->pid = (pid_t)tables_get(r, LOCK_PID);
	o->file = fs_handle_of(&at->fs->file_handles, tables_get(r, FS_TABLES_HANDLE));
	o->share = sh;
	o->doubt = tables_get(r, LOCK_DOUBT);
	o->doubt_off = tables_get(r, LOCK_DOUBT_OFF);
	o->doubt_len = tables_get(r, LOCK_DOUBT_LEN);
	atomic_store(&o->holding, tables_get(r, LOCK_HOLDING) != 0);
	if (tables_get(r, LOCK_OWNER)) {
		o->lo.number = nfs4_keep_number_of(r);
		return hold_owner(at, o);
	}
	err = nfs4_keep_get_lockowner(r, at->fs->client, &o->lo, &sh->state);
	fs_lockowner_put(at->fs, o);
	return err;
}

/* The locks of the owner of that number. */
static int get_locks(const struct fs_share_tables *at, const struct tables_record *r)
{
	struct fs_share *sh = at->share;
	struct fs_lockowner *o = NULL;
	int err;

	for (size_t i = 0; i < at->owners_cnt && !o; i++)
		if (at->owners[i]->lo.number == nfs4_keep_number_of(r))
			o = at->owners[i];
	if (!o || !sh->state.cl || o->lo.state)
		return 0;
	err = nfs4_keep_get_lockowner(r, at->fs->client, &o->lo, &sh->state);
	atomic_store(&o->holding, nfs4_lockowner_holds(&o->lo, 0, NFS4_LOCK_TO_END));
	mutex_lock(&at->fs->locks->lock);
	fs_share_tables_live_owner(at->fs, o);
	mutex_unlock(&at->fs->locks->lock);
	return err;
}

/* As the kernel asked for it. */
static int get_wait(const struct fs_share_tables *at, const struct tables_record *r)
{
	uint64_t off = tables_get(r, WAIT_OFF), len = tables_get(r, WAIT_LEN);
	struct {
		struct fuse_in_header h;
		struct fuse_lk_in lk;
	} req = {
		.h =
			{
				.len = sizeof(req),
				.opcode = FUSE_SETLKW,
				.unique = tables_get(r, WAIT_UNIQUE),
				.nodeid = tables_get(r, FS_TABLES_SLOT),
				.uid = (uint32_t)tables_get(r, WAIT_UID),
				.gid = (uint32_t)tables_get(r, WAIT_GID),
				.pid = (uint32_t)tables_get(r, WAIT_PID),
			},
		.lk =
			{
				.fh = tables_get(r, FS_TABLES_HANDLE),
				.owner = tables_get(r, LOCK_KEY),
				.lk =
					{
						.start = off,
						.end = len == NFS4_LOCK_TO_END ? INT64_MAX
									       : off + len - 1,
						.type = tables_get(r, WAIT_WRITE) ? F_WRLCK
										  : F_RDLCK,
						.pid = (uint32_t)tables_get(r, WAIT_LOCK_PID),
					},
				.lk_flags = tables_get(r, LOCK_FLOCK) ? FUSE_LK_FLOCK : 0,
			},
	};

	if (len == 0 || (len != NFS4_LOCK_TO_END && off + len - 1 < off))
		return -EBADMSG;
	return fs_replay_add(at->fs, &req, sizeof(req)) ? 0 : -ENOMEM;
}

/* There are files of it, and the server does not know: a delegation served it. */
static void get_served(struct fs *fs, struct fs_share *sh)
{
	struct nfs4_fh fh;
	uint32_t access = 0;

	/* One that was released is closed, or was on its way to that. */
	list_for_each (node, &sh->inode->open_files) {
		const struct fs_file *f = container_of(node, struct fs_file, link);

		if (f->share == sh && !f->left)
			access |= f->share_access;
	}
	if (access == 0 || sh->state.cl)
		return;
	fs_inode_fh(sh->inode, &fh);
	nfs4_keep_get_served(fs->client, &sh->state, &fh, &sh->cred, access, sh->owner,
		fs_inode_fileid(sh->inode));
}

int fs_share_tables_end(struct fs_share_tables *at)
{
	int err = at->closed ? close_share(at->fs, at->share) : 0;

	if (at->apart)
		get_served(at->fs, at->share);
	put_owners(at);
	fs_share_put(at->share);
	at->share = NULL;
	at->closed = at->apart = false;
	return err;
}

int fs_share_tables_get(struct fs_share_tables *at, const struct tables_record *r)
{
	int err;

	switch (r->type) {
	case FS_TABLES_SHARE:
		err = fs_share_tables_end(at);
		return err ? err : get_share(at, r);
	case NFS4_KEEP_STATE:
		return get_state(at, r);
	case NFS4_KEEP_LOCKS:
		return get_locks(at, r);
	case FS_TABLES_FILE:
		return get_file(at, r);
	case FS_TABLES_LOCKOWNER:
		return get_owner(at, r);
	default:
		return get_wait(at, r);
	}
}
