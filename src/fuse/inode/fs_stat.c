/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel is told about an inode: struct stat, and for how long it may
 * believe it and the names that lead to it.
 */
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_dentry.h"
#include "fs_place.h"
#include "fs_part.h"

#include <string.h>
#include <sys/sysmacros.h>

#define BLOCK_UNIT 512u
#define SEARCH_ALL (S_IXUSR | S_IXGRP | S_IXOTH)

static mode_t type_mode(enum nfs4_ftype type)
{
	switch (type) {
	case NF4REG:
	case NF4NAMEDATTR:
		return S_IFREG;
	case NF4DIR:
	case NF4ATTRDIR:
		return S_IFDIR;
	case NF4BLK:
		return S_IFBLK;
	case NF4CHR:
		return S_IFCHR;
	case NF4LNK:
		return S_IFLNK;
	case NF4SOCK:
		return S_IFSOCK;
	case NF4FIFO:
		return S_IFIFO;
	}
	return S_IFREG;
}

/*
 * All of a FUSE mount has one st_dev, but an export may lead into other file systems of the server
 * (fsid differs from the root's), whose fileids repeat. There the fsid is mixed in; within the
 * root's file system st_ino is the server's own.
 */
static ino_t stat_ino(const struct fs *fs, const struct nfs4_attr *a)
{
	uint64_t h;

	if (!(a->valid & NFS4_ATTR_FSID) ||
		(a->fsid_major == fs->fsid_major && a->fsid_minor == fs->fsid_minor))
		return a->fileid;
	h = a->fsid_major * 0x9e3779b97f4a7c15ull ^ (a->fsid_minor + 0x632be59bd9b4e019ull);
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	h ^= h >> 32;
	/* The low bits of fileids differ, those of fsids may not. */
	return a->fileid ^ (h | 1ull << 63);
}

void fs_stat_fill(const struct fs *fs, const struct nfs4_attr *a, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = stat_ino(fs, a);
	st->st_mode = type_mode(a->type) | (a->mode & 07777);
	st->st_nlink = a->nlink;
	st->st_uid = a->uid;
	st->st_gid = a->gid;
	if (a->type == NF4BLK || a->type == NF4CHR)
		st->st_rdev = makedev(a->rdev_major, a->rdev_minor);
	/* WIRE: off_t is signed; a size beyond it would be negative. */
	st->st_size = a->size > INT64_MAX ? INT64_MAX : (off_t)a->size;
	st->st_blksize = fs->max_write ? fs->max_write : 4096;
	st->st_blocks =
		(blkcnt_t)(a->space_used / BLOCK_UNIT + (a->space_used % BLOCK_UNIT ? 1 : 0));
	st->st_atim = a->atime;
	st->st_mtim = a->mtime;
	st->st_ctim = a->ctime;
}

/*
 * With several users a name is cached only where everybody may search. Without default_permissions
 * the kernel leaves search permission to our LOOKUP: a cached name is walked without asking, by
 * anybody. (An ACL that denies search to one user in a directory with x for all is not seen.) With
 * it the kernel takes nobody for the owner of a directory whose owner has no number here.
 */
bool fs_stat_dentries_stay(const struct fs *fs, const struct fs_inode *dir)
{
	bool judged = fs->conf.default_permissions && !dir->attr.owner_alien;

	return !fs->conf.allow_other || judged || (dir->attr.mode & SEARCH_ALL) == SEARCH_ALL;
}

/* A name is believed as long as the attributes of its directory. */
static double name_timeout_locked(struct fs *fs, struct fs_inode *dir, uint64_t now_ns)
{
	return fs_stat_dentries_stay(fs, dir) ? fs_attr_timeout(fs, dir, now_ns) : 0;
}

double fs_stat_entry_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns)
{
	if (fs->conf.lookupcache == FS_LOOKUPCACHE_NONE)
		return 0;
	return name_timeout_locked(fs, dir, now_ns);
}

double fs_stat_negative_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns)
{
	double timeout;

	/* The kernel would not know that another spelling of the name was made meanwhile. */
	if (!dir || fs->conf.lookupcache != FS_LOOKUPCACHE_ALL ||
		fs_facts(fs, dir)->case_insensitive)
		return 0;
	mutex_lock(&dir->lock);
	timeout = name_timeout_locked(fs, dir, now_ns);
	mutex_unlock(&dir->lock);
	return timeout;
}

double fs_stat_tell(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, bool guarded,
	uint64_t now_ns, struct stat *ret_st)
{
	double timeout;
	uint32_t ours;

	fs_stat_fill(fs, a, ret_st);
	mutex_lock(&in->lock);
	ours = in->nfs_names;
	timeout = guarded ? 0 : fs_attr_timeout(fs, in, now_ns);
	in->told_change = timeout > 0 ? a->change : 0;
	if (a->valid & NFS4_ATTR_SIZE)
		fs_part_inode_told(fs, in, a->size);
	mutex_unlock(&in->lock);
	ret_st->st_nlink -= ours < ret_st->st_nlink ? ours : ret_st->st_nlink;
	return timeout;
}

void fs_stat_entry_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e)
{
	memset(ret_e, 0, sizeof(*ret_e));
	ret_e->ino = fs_inode_ino(fs, in);
	ret_e->generation = in->generation;
	if (a->type == NF4DIR)
		fs_place_note(fs, dir, in, name);
	ret_e->attr_timeout = fs_stat_tell(fs, in, a, false, now_ns, &ret_e->attr);
	ret_e->entry_timeout = fs_dentry_tell(fs, dir, in, name, seq, now_ns);
}

bool fs_stat_pages_stale(struct fs_inode *in)
{
	bool stale;

	mutex_lock(&in->lock);
	stale = in->inval_want != in->inval_done;
	mutex_unlock(&in->lock);
	return stale;
}

bool fs_stat_entry(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e)
{
	if (fs_stat_pages_stale(in))
		return false;
	fs_stat_entry_tell(fs, dir, in, name, a, seq, now_ns, ret_e);
	return true;
}
