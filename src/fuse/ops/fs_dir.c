/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OPENDIR, READDIR, READDIRPLUS, RELEASEDIR. The kernel takes a page of
 * entries at a time, the server gives hundreds: what came is packed
 * (fs_dirpack.h) and handed out from there. An entry's offset is the server's
 * cookie, so that telldir and seekdir work as long as the server's cookies
 * live; "." and "..", which NFS does not send, have offsets 1 and 2, which are
 * no cookies (RFC 8881 section 18.23.3).
 *
 * rewinddir reads anew. When the server does not know a cookie any more, the
 * directory is read from its start up to the entry that had it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fs_current.h"
#include "fs_direntry.h"
#include "fs_dirpack.h"
#include "fs_inode.h"
#include "fs_live.h"
#include "fs_nameop.h"
#include "fs_place.h"
#include "fs_reply.h"
#include "fs_tables.h"
#include "log.h"
#include "nfs4_tables.h"

#define COUNT_MIN  (64u * 1024)
#define COUNT_MAX  (256u * 1024) /* more saves few calls and costs memory */
#define COUNT_HEAD 512u          /* around the entries, nfs4.h */

/* Fields of FS_TABLES_DIR. */
enum {
	DIR_VERF = 10,
};

/*
 * An open directory. The kernel's handle holds a reference, and each READDIR: the kernel may close
 * the directory of a program that died although its READDIR is still on its way.
 */
struct fs_dir {
	struct fs_open_dir open; /* first */
	_Atomic uint32_t refs;
	uint64_t handle;      /* fuse_file_info.fh (fs_handle.h) */
	struct mutex lock;    /* requests of one handle may be on several lanes */
	struct rpc_cred cred; /* of the opener */
	struct fs_dirpack *pack;
	size_t hint; /* into pack */
	struct nfs4_verf verf;
	uint32_t maxcount;
	live_ref live_ref; /* its record, fs_live.h */
};

struct readdir {
	struct fs_dir *dir; /* referenced */
	bool plus;
	bool asked;         /* the server has answered this request */
	bool bad;           /* with a cookie that cannot be */
	bool scan, scanned; /* the cookie was lost: reading from the start */
	uint64_t cookie;    /* to ask with, and what came with it */
	struct nfs4_verf verf;
	struct fs_dirpack *pack;
};

static struct readdir *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct readdir);
	return op->work;
}

static struct fs_dir *dir_of(const struct fs_op *op)
{
	return work(op)->dir;
}

/* ---- open and release ---- */

static void put_one(struct tables_out *t, const struct fs_dir *dir)
{
	tables_record(t, FS_TABLES_DIR);
	tables_put(t, FS_TABLES_SLOT, dir->open.inode->slot);
	tables_put(t, FS_TABLES_HANDLE, dir->handle);
	nfs4_tables_put_cred(t, FS_TABLES_CRED, &dir->cred);
	tables_put_bytes(t, DIR_VERF, dir->verf.data, sizeof(dir->verf.data));
}

static void live_dir(const struct fs *fs, struct fs_dir *dir)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_DIR, .group = dir->handle};
	struct tables_out t;

	if (!fs->live)
		return;
	tables_begin_in(&t);
	put_one(&t, dir);
	fs_live_put(fs, &dir->live_ref, &key, &t);
}

static void dir_put(struct fs *fs, struct fs_dir *dir)
{
	if (atomic_fetch_sub(&dir->refs, 1) != 1)
		return;
	live_drop(fs->live, &dir->live_ref);
	fs_inode_table_lock(fs);
	list_del(&dir->open.link);
	fs_handle_give(&fs->dir_handles, dir->handle);
	fs_inode_table_unlock(fs);
	fs_inode_put(fs, dir->open.inode);
	fs_dirpack_free(dir->pack);
	mutex_destroy(&dir->lock);
	free(dir);
}

/* handle: of another process; FS_HANDLE_NONE: a new one. */
static struct fs_dir *dir_new(
	struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred, uint64_t handle)
{
	struct fs_dir *dir = calloc(1, sizeof(*dir));

	if (dir == NULL)
		return NULL;
	fs_inode_table_lock(fs);
	if (handle == FS_HANDLE_NONE)
		dir->handle = fs_handle_take(&fs->dir_handles, dir);
	else if (fs_handle_put(&fs->dir_handles, handle, dir))
		dir->handle = handle;
	fs_inode_table_unlock(fs);
	if (dir->handle == FS_HANDLE_NONE) {
		free(dir);
		return NULL;
	}
	mutex_init(&dir->lock, MUTEX_FS_DIR);
	dir->refs = 1;
	dir->cred = *cred;
	dir->maxcount = COUNT_MIN;
	dir->open.inode = fs_inode_ref(fs, in);
	fs_inode_table_lock(fs);
	list_push_back(&fs->dirs, &dir->open.link);
	fs_inode_table_unlock(fs);
	return dir;
}

void fs_dir_put_all(struct fs *fs)
{
	while (!list_empty(&fs->dirs))
		dir_put(fs, list_first(&fs->dirs, struct fs_dir, open.link));
}

void fs_dir_tables_put(struct tables_out *t, struct fs *fs)
{
	list_for_each (node, &fs->dirs)
		put_one(t, container_of(node, struct fs_dir, open.link));
}

int fs_dir_tables_get(const struct tables_record *r, struct fs *fs)
{
	struct fs_inode *in = fs_inode_tables_of(r, FS_TABLES_SLOT, fs);
	struct fs_dir *dir;
	struct rpc_cred cred;

	if (in == NULL || !nfs4_tables_get_cred(r, FS_TABLES_CRED, &cred))
		return -EBADMSG;
	dir = dir_new(fs, in, &cred, tables_get(r, FS_TABLES_HANDLE));
	if (dir == NULL)
		return -ENOMEM;
	tables_copy(r, DIR_VERF, dir->verf.data, sizeof(dir->verf.data));
	live_dir(fs, dir);
	return 0;
}

static void opendir_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs *fs = op->lane->fs;
	struct fs_dir *dir;

	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	fs_nameop_read(op, &call->u.access.attr);
	if ((call->u.access.access & ACCESS4_READ) == 0) {
		fs_reply_err(op, EACCES);
		return;
	}
	dir = dir_new(fs, op->inode, &op->cred, FS_HANDLE_NONE);
	if (dir == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	live_dir(fs, dir);
	op->fi.fh = dir->handle;
	op->fi.cache_readdir = op->fi.keep_cache = 0;
	if (!fs_reply_opendir(op, &op->fi))
		dir_put(fs, dir);
}

static void opendir_start(struct fs_op *op)
{
	op->call->u.access = (struct nfs4_op_access){.fh = &op->fh, .want = ACCESS4_READ};
	op->call->done = opendir_done;
	nfs4_access(op->call);
}

/* The kernel leaves the permission to us; asking also brings fresh attributes (close-to-open). */
void fs_do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin(req, ino);

	if (op == NULL)
		return;
	op->fi = *fi;
	fs_op_call(op, opendir_start);
}

void fs_do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin(req, ino);
	struct fs *fs = fs_current()->fs;
	struct fs_dir *dir = fs_handle_of(&fs->dir_handles, fi->fh);

	if (dir != NULL)
		dir_put(fs, dir);
	if (op != NULL)
		fs_reply_err(op, dir != NULL ? 0 : EBADF);
}

/* NFS changes directories synchronously. */
void fs_do_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin(req, ino);

	if (op != NULL)
		fs_reply_err(op, 0);
}

/* ---- handing out ---- */

static uint64_t cookie_of(const struct fs_op *op)
{
	return op->off <= FS_DIRENTRY_DOTDOT && op->off >= 0 ? 0 : (uint64_t)op->off;
}

/* False: the server must be asked first. dir->lock held. */
static bool hand_out(struct fs_op *op, struct fs_dir *dir, struct fs_direntries *out)
{
	const struct fs_dirpack *p = dir->pack;
	const struct fs_dirrec *rec = NULL;

	if (p == NULL)
		return false;
	switch (fs_dirpack_after(p, cookie_of(op), &dir->hint, &rec)) {
	case FS_DIRPACK_FOUND:
	case FS_DIRPACK_EOF:
		break;
	case FS_DIRPACK_END:
	case FS_DIRPACK_MISS:
		return false;
	}
	if (!fs_direntry_dots(op, out))
		return true;
	while (rec != NULL && fs_direntry_add(op, out, p, rec))
		rec = fs_dirpack_next(p, rec);
	return true;
}

/* ---- asking the server ---- */

static void readdir_start(struct fs_op *op);

/* Replies from what is there, or asks for more; once asked, what came must do. */
static void readdir_go(struct fs_op *op)
{
	struct fs_dir *dir = dir_of(op);
	struct fs_direntries out;
	bool there;

	if (op->req == NULL) {
		fs_reply_err(op, EINTR); /* no counts may be taken for entries that nobody gets */
		return;
	}
	out.plus = work(op)->plus;
	out.len = 0;
	out.room = op->size < FS_DIRENTRY_MAX ? op->size : FS_DIRENTRY_MAX;
	mutex_lock(&dir->lock);
	there = hand_out(op, dir, &out);
	mutex_unlock(&dir->lock);
	if (there) {
		fs_reply_data(op, out.mem, out.len);
	} else if (work(op)->asked) {
		log_warn_limited("a directory's entries do not lead on: the server's cookies or "
				 "names are wrong");
		fs_reply_err(op, EIO);
	} else {
		work(op)->cookie = cookie_of(op);
		fs_op_call_buf(op, readdir_start);
	}
}

static bool take_entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	struct fs_op *op = fs_op_of(call);

	/* WIRE: reserved; they would be taken for "." and "..". */
	if (de->cookie <= FS_DIRENTRY_DOTDOT) {
		work(op)->bad = true;
		return false;
	}
	return fs_dirpack_add(work(op)->pack, de);
}

/* The pack becomes the directory's. */
static void install(struct fs_op *op, struct fs_dirpack *p, const struct nfs4_verf *verf)
{
	struct fs_dir *dir = dir_of(op);
	bool changed;

	mutex_lock(&dir->lock);
	/* Read on to the end of the last one: a large directory, read through. */
	if (dir->pack != NULL && p->start != 0 && dir->pack->last == p->start &&
		dir->maxcount < COUNT_MAX)
		dir->maxcount *= 2;
	fs_dirpack_free(dir->pack);
	dir->pack = p;
	dir->hint = 0;
	changed = memcmp(&dir->verf, verf, sizeof(*verf)) != 0;
	dir->verf = *verf;
	if (changed)
		live_dir(op->lane->fs, dir);
	mutex_unlock(&dir->lock);
	work(op)->asked = true;
	readdir_go(op);
}

/* A part of the directory, read from its start in search of the entry that had op->off. */
static void scan_step(struct fs_op *op, struct fs_dirpack *p, const struct nfs4_verf *verf)
{
	const struct fs_dirrec *rec;
	size_t hint = 0;

	if (fs_dirpack_after(p, cookie_of(op), &hint, &rec) != FS_DIRPACK_MISS) {
		work(op)->scan = false;
		if (!p->eof && p->last == cookie_of(op)) {
			/* It is the last one of this part: go on behind it. */
			work(op)->cookie = p->last;
			work(op)->verf = *verf;
			fs_dirpack_free(p);
			fs_op_call_buf(op, readdir_start);
			return;
		}
		install(op, p, verf);
		return;
	}
	work(op)->cookie = p->last;
	work(op)->verf = *verf;
	if (p->eof || p->last == p->start) {
		/* The entry is gone, and with it the place to go on from: skipping would hide
		 * files. */
		fs_reply_err(op, ESTALE);
	} else {
		fs_op_call_buf(op, readdir_start);
	}
	fs_dirpack_free(p);
}

static void readdir_failed(struct fs_op *op)
{
	struct nfs4_call *call = op->call;
	bool lost = call->status == NFS4ERR_BAD_COOKIE || call->status == NFS4ERR_NOT_SAME;

	if (lost && work(op)->cookie != 0 && !work(op)->scanned) {
		work(op)->scan = work(op)->scanned = true;
		work(op)->cookie = 0;
		fs_op_call_buf(op, readdir_start);
		return;
	}
	fs_nameop_error(op);
}

static void readdir_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	struct fs_dirpack *p = work(op)->pack;
	const struct nfs4_verf verf = call->u.readdir.verf_out;

	work(op)->pack = NULL;
	if (call->err != 0) {
		fs_dirpack_free(p);
		readdir_failed(op);
		return;
	}
	if (work(op)->bad) {
		fs_dirpack_free(p);
		log_warn_limited("READDIR: the server uses a reserved cookie");
		fs_reply_err(op, EIO);
		return;
	}
	p->eof = call->u.readdir.eof;
	p->got_ns = fs_op_now(op);
	if (work(op)->scan)
		scan_step(op, p, &verf);
	else
		install(op, p, &verf);
}

static void readdir_start(struct fs_op *op)
{
	struct fs_dir *dir = dir_of(op);
	struct nfs4_op_readdir *o = &op->call->u.readdir;
	uint32_t room = (uint32_t)op->lane->fs->data_size;
	struct fs_dirpack *p = fs_dirpack_new(work(op)->cookie);

	if (p == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	p->seq = op->attr_seq;
	p->sent_ns = fs_op_now(op);
	work(op)->pack = p;
	*o = (struct nfs4_op_readdir){
		.fh = &op->fh,
		.cookie = work(op)->cookie,
		.plus = work(op)->plus,
		.entry = take_entry,
	};
	mutex_lock(&dir->lock);
	o->maxcount = dir->maxcount;
	if (o->cookie != 0)
		o->verf = work(op)->scanned ? work(op)->verf : dir->verf;
	mutex_unlock(&dir->lock);
	if (o->maxcount + COUNT_HEAD > room)
		o->maxcount = room - COUNT_HEAD;
	o->sink = (struct rpcrdma_span){op->buf, op->buf->data, o->maxcount + COUNT_HEAD};
	op->call->done = readdir_done;
	nfs4_readdir(op->call);
}

static void readdir_ended(struct fs_op *op)
{
	dir_put(op->lane->fs, dir_of(op));
}

static void readdir_begin(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	const struct fuse_file_info *fi, bool plus)
{
	struct fs_op *op = fs_op_begin(req, ino);
	struct fs_dir *dir;

	if (op == NULL)
		return;
	dir = fs_handle_of(&op->lane->fs->dir_handles, fi->fh);
	if (dir == NULL) {
		fs_reply_err(op, EBADF);
		return;
	}
	op->fi = *fi;
	op->size = size;
	op->off = off;
	work(op)->plus = plus;
	work(op)->dir = dir;
	atomic_fetch_add(&dir->refs, 1);
	op->ended = readdir_ended;
	op->cred = dir->cred;
	if (off == 0) {
		mutex_lock(&dir->lock);
		fs_dirpack_free(dir->pack);
		dir->pack = NULL;
		mutex_unlock(&dir->lock);
	}
	readdir_go(op);
}

void fs_do_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	readdir_begin(req, ino, size, off, fi, false);
}

void fs_do_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	readdir_begin(req, ino, size, off, fi, true);
}
