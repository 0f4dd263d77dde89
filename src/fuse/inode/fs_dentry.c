/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that are told to the kernel, and taken back when somebody loses the right
 * to search their directory.
 *
 * What is on its way to the kernel while the right to search shrinks: a name is
 * judged and noted under the directory's lock, so that it is either taken back
 * with the others or finds fs->names_seq set. That refuses time to what the
 * server was asked for before. When the name is noted and the reply still to be
 * written, the notice waits for it: LOOKUP, READDIRPLUS and all that makes a name
 * hold the directory's lock in the kernel. A LOOKUP that only looks at a known
 * name again does not. If the kernel drops the name, the time that it gets then
 * is without meaning; if it only lets its time end, and the process that asked
 * does not run between the reply and the notice, it keeps that one name for its
 * time.
 */
#include "fs_attr.h"
#include "fs_inode.h"
#include "fs_dentry.h"
#include "fs_notify.h"

static uint64_t longest_ns(const struct fs *fs)
{
	return fs->conf.acdirmax_s * NSEC_PER_SEC;
}

static bool is_full(const struct fs *fs)
{
	size_t used = fs_names_bytes();

	return used > FS_NAMES_FREE && used > FS_NAMES_FREE + FS_NAMES_EACH * fs_inode_count(fs);
}

double fs_names_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	uint64_t seq, uint64_t now_ns)
{
	uint32_t known = in->named;
	double timeout;

	if (!dir || is_full(fs))
		return 0;
	mutex_lock(&dir->lock);
	timeout = fs_entry_timeout(fs, dir, now_ns);
	if (timeout > 0 && (seq < fs->names_seq || !fs_names_add(&dir->names, name, &known, now_ns,
							   longest_ns(fs))))
		timeout = 0;
	mutex_unlock(&dir->lock);
	in->named = known;
	return timeout;
}

bool fs_names_move(struct fs *fs, struct fs_inode *from, struct fs_inode *to, const char *name,
	uint64_t now_ns)
{
	uint32_t known = 0;
	bool ok = true;

	if (fs->conf.noac || fs->conf.lookupcache == FS_LOOKUPCACHE_NONE)
		return true;
	mutex_lock(&to->lock);
	if (from != to || fs_names_may_stay(fs, to))
		ok = fs_names_add(&to->names, name, &known, now_ns, longest_ns(fs));
	mutex_unlock(&to->lock);
	return ok;
}

void fs_names_moved(struct fs *fs, struct fs_inode *from, struct fs_inode *to)
{
	bool may_stay;

	if (from == to)
		return;
	mutex_lock(&to->lock);
	may_stay = fs_names_may_stay(fs, to);
	mutex_unlock(&to->lock);
	if (!may_stay)
		fs_names_recall(fs, to);
}

struct fs_names *fs_names_take(struct fs *fs, struct fs_inode *dir)
{
	uint64_t seq = fs_attr_seq_next(), last = fs->names_seq;
	struct fs_names *n = dir->names;

	dir->names = NULL;
	/* Another directory's may be later. */
	while (last < seq && !atomic_compare_exchange_weak(&fs->names_seq, &last, seq))
		;
	return n;
}

void fs_names_drop(struct fs *fs, struct fs_inode *dir, struct fs_names *n)
{
	struct fs_lane *l = fs_lane_current();

	if (!n)
		return;
	if (l)
		stats_count(&l->stats->invals, n->count);
	n->dir = fs_inode_ref(fs, dir);
	fs_notify_names(fs, n);
}

void fs_names_recall(struct fs *fs, struct fs_inode *dir)
{
	struct fs_names *n;

	mutex_lock(&dir->lock);
	n = fs_names_take(fs, dir);
	mutex_unlock(&dir->lock);
	fs_names_drop(fs, dir, n);
}
