/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_direntry.h"
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_op.h"
#include "fs_shadow.h"
#include "fs_writeback.h"

#include <string.h>

#define INO_UNKNOWN 0xffffffffu /* as libfuse: 0 would hide the entry */

/* What readdir shows of an entry that carries no attributes: type and number. */
static void plain_stat(const struct fs_op *op, uint64_t fileid, uint8_t type, struct stat *st)
{
	struct nfs4_attr a = {
		.valid = NFS4_ATTR_FSID | NFS4_ATTR_FILEID,
		.fileid = fileid,
		.type = (enum nfs4_ftype)type,
	};
	struct fs_inode *in = op->inode;

	/* An entry is in its directory's file system, or its number means little anyway. */
	mutex_lock(&in->lock);
	a.fsid_major = in->attr.fsid_major;
	a.fsid_minor = in->attr.fsid_minor;
	mutex_unlock(&in->lock);
	fs_stat_fill(op->lane->fs, &a, st);
	if (fileid == 0)
		st->st_ino = INO_UNKNOWN;
	if (type == 0)
		st->st_mode = 0;
}

/*
 * The attributes to tell the kernel about `in`: those of the reply, unless ours are newer. The
 * reply may have waited here while the file was written; an old size would cut its pages off.
 * Returns: false: neither can be trusted.
 */
static bool pick_attr(
	struct fs_op *op, const struct fs_dirpack *p, struct fs_inode *in, struct nfs4_attr *attr)
{
	struct fs *fs = op->lane->fs;
	bool newer;

	mutex_lock(&in->lock);
	newer = in->attr_known &&
		(in->attr_seq > p->seq || in->attr_ns > p->sent_ns || fs_writeback_any(in));
	mutex_unlock(&in->lock);
	if (newer)
		return fs_attr_cached(fs, in, attr, fs_op_now(op)) != 0;
	fs_attr_update(fs, in, attr, p->seq, p->got_ns);
	return true;
}

/* The entry with a lookup count taken, or with ino 0 and none: the kernel then looks it up. */
static void fill_entry(struct fs_op *op, const struct fs_dirpack *p, const struct fs_dirrec *rec,
	struct fuse_entry_param *e)
{
	struct fs *fs = op->lane->fs;
	struct nfs4_attr attr;
	struct nfs4_fh fh;
	struct fs_inode *in;

	memset(e, 0, sizeof(*e));
	plain_stat(op, rec->fileid, rec->type, &e->attr);
	/* Whose inode it is depends on who walks it. */
	if (!fs_dirpack_rec_attr(rec, &attr, &fh) || fs_shadow_is_guarded(fs, &attr) ||
		fs_facts_missing(fs, op->inode, &attr))
		return;
	in = fs_inode_lookup(fs, &fh, &attr, 1);
	if (in == NULL)
		return;
	if (!pick_attr(op, p, in, &attr) ||
		!fs_stat_entry(fs, op->inode, in, fs_dirpack_rec_name(rec), &attr, p->seq,
			fs_op_now(op), e))
		fs_inode_forget(fs, fs_inode_ino(fs, in), 1);
	fs_inode_put(fs, in);
}

static bool out_plain(struct fs_op *op, struct fs_direntries *out, const char *name,
	const struct stat *st, uint64_t off)
{
	size_t room = out->room - out->len;
	size_t len;

	if (out->plus) {
		const struct fuse_entry_param e = {.attr = *st};

		len = fuse_add_direntry_plus(
			op->req, out->mem + out->len, room, name, &e, (off_t)off);
	} else {
		len = fuse_add_direntry(op->req, out->mem + out->len, room, name, st, (off_t)off);
	}
	if (len > room)
		return false;
	out->len += len;
	return true;
}

bool fs_direntry_add(struct fs_op *op, struct fs_direntries *out, const struct fs_dirpack *p,
	const struct fs_dirrec *rec)
{
	const char *name = fs_dirpack_rec_name(rec);
	size_t room = out->room - out->len;
	struct fuse_entry_param e;
	struct stat st;

	if (!out->plus) {
		plain_stat(op, rec->fileid, rec->type, &st);
		return out_plain(op, out, name, &st, rec->cookie);
	}
	/* No count may be taken for an entry that is not sent. */
	if (fuse_add_direntry_plus(op->req, NULL, 0, name, NULL, 0) > room)
		return false;
	fill_entry(op, p, rec, &e);
	out->len += fuse_add_direntry_plus(
		op->req, out->mem + out->len, room, name, &e, (off_t)rec->cookie);
	return true;
}

bool fs_direntry_dots(struct fs_op *op, struct fs_direntries *out)
{
	struct stat st;
	uint64_t fileid;

	if (op->off >= FS_DIRENTRY_DOTDOT || op->off < 0)
		return true;
	fileid = fs_inode_fileid(op->inode);
	plain_stat(op, fileid, NF4DIR, &st);
	if (op->off < FS_DIRENTRY_DOT && !out_plain(op, out, ".", &st, FS_DIRENTRY_DOT))
		return false;
	/* The parent is known to the kernel alone, except that the root's is the root. */
	if (op->inode != op->lane->fs->root)
		plain_stat(op, 0, NF4DIR, &st);
	return out_plain(op, out, "..", &st, FS_DIRENTRY_DOTDOT);
}
