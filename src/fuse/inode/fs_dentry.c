/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that are told to the kernel, and taken back when somebody loses the right
 * to search their directory.
 *
 * The right to search may shrink while a name is on its way to the kernel. A name
 * is judged and noted under the directory's lock, so that it is either taken back
 * with the others or finds fs->dentry_seq set. That refuses time to what the
 * server was asked for before. When the name is noted and the reply still to be
 * written, the notice waits for it: LOOKUP, READDIRPLUS and all that makes a name
 * hold the directory's lock in the kernel. A LOOKUP that only looks at a known
 * name again does not. If the kernel drops the name, the time that it gets then
 * is without meaning; if it only lets its time end, and the process that asked
 * does not run between the reply and the notice, it keeps that one name for its
 * time.
 */
#include "fs_attr.h"
#include "fs_current.h"
#include "fs_inode.h"
#include "fs_dentry.h"
#include "fs_notify.h"

#define SEARCH_ALL (S_IXUSR | S_IXGRP | S_IXOTH)

static uint64_t longest_ns(const struct fs *fs)
{
	return fs->conf.acdirmax_s * NSEC_PER_SEC;
}

static bool is_full(const struct fs *fs)
{
	size_t used = fs_dentry_store_bytes();

	return used > FS_DENTRY_FREE && used > FS_DENTRY_FREE + FS_DENTRY_EACH * fs_inode_count(fs);
}

double fs_dentry_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	uint64_t seq, uint64_t now_ns)
{
	uint32_t known = in->noted;
	double timeout;

	if (!dir || is_full(fs))
		return 0;
	mutex_lock(&dir->lock);
	timeout = fs_stat_entry_timeout(fs, dir, now_ns);
	if (timeout > 0 && (seq < fs->dentry_seq || !fs_dentry_store_add(&dir->dentries, name,
							    &known, now_ns, longest_ns(fs))))
		timeout = 0;
	mutex_unlock(&dir->lock);
	in->noted = known;
	return timeout;
}

bool fs_dentry_move(struct fs *fs, struct fs_inode *from, struct fs_inode *to, const char *name,
	uint64_t now_ns)
{
	uint32_t known = 0;
	bool ok = true;

	if (fs->conf.noac || fs->conf.lookupcache == FS_LOOKUPCACHE_NONE)
		return true;
	mutex_lock(&to->lock);
	if (from != to || fs_stat_dentries_stay(fs, to))
		ok = fs_dentry_store_add(&to->dentries, name, &known, now_ns, longest_ns(fs));
	mutex_unlock(&to->lock);
	return ok;
}

bool fs_dentry_told(struct fs *fs, struct fs_inode *dir, const char *name, uint64_t now_ns)
{
	uint32_t known = 0;
	bool ok;

	mutex_lock(&dir->lock);
	ok = fs_dentry_store_add(&dir->dentries, name, &known, now_ns, longest_ns(fs));
	mutex_unlock(&dir->lock);
	return ok;
}

void fs_dentry_moved(struct fs *fs, struct fs_inode *from, struct fs_inode *to)
{
	bool may_stay;

	if (from == to)
		return;
	mutex_lock(&to->lock);
	may_stay = fs_stat_dentries_stay(fs, to);
	mutex_unlock(&to->lock);
	if (!may_stay)
		fs_dentry_inval(fs, to);
}

struct fs_dentries *fs_dentry_take(struct fs *fs, struct fs_inode *dir)
{
	uint64_t seq = fs_attr_seq_next(), last = fs->dentry_seq;
	struct fs_dentries *n = dir->dentries;

	dir->dentries = NULL;
	/* Another directory's may be later. */
	while (last < seq && !atomic_compare_exchange_weak(&fs->dentry_seq, &last, seq))
		;
	return n;
}

void fs_dentry_drop(struct fs *fs, struct fs_inode *dir, struct fs_dentries *n)
{
	struct stats *stats = fs_current_stats();

	if (!n)
		return;
	if (stats)
		stats_count(&stats->invals, n->count);
	n->dir = fs_inode_ref(fs, dir);
	fs_notify_dentries(fs, n);
}

void fs_dentry_inval(struct fs *fs, struct fs_inode *dir)
{
	struct fs_dentries *n;

	mutex_lock(&dir->lock);
	n = fs_dentry_take(fs, dir);
	mutex_unlock(&dir->lock);
	fs_dentry_drop(fs, dir, n);
}

bool fs_dentry_search_shrinks(const struct nfs4_attr *old, const struct nfs4_attr *a)
{
	const uint32_t both = old->valid & a->valid;
	uint32_t mode = a->valid & NFS4_ATTR_MODE ? a->mode : old->mode;

	if (old->type != NF4DIR)
		return false;
	if ((both & NFS4_ATTR_MODE) && (old->mode & ~a->mode & SEARCH_ALL))
		return true;
	/* To others than before. */
	return (mode & SEARCH_ALL) != SEARCH_ALL &&
	       (((both & NFS4_ATTR_OWNER) && old->uid != a->uid) ||
		       ((both & NFS4_ATTR_GROUP) && old->gid != a->gid));
}
