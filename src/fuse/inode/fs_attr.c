/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attribute cache: what was seen last, how long it is good (nfs(5):
 * acregmin..acregmax, acdirmin..acdirmax, doubling while the change attribute
 * stays), and what a change means for the kernel's pages.
 *
 * Who changed it? The change attribute is opaque: it can be compared for
 * equality only. Attributes that a call of ours which changed the inode brings
 * back (fs_attr_update_own) are taken as our own change; any other difference
 * to the last change attribute known was made by somebody else, or cannot be
 * told from that, and then the kernel's pages of the file are stale.
 *
 * While a delegation is held nobody else changes it: what is cached stays good,
 * until a change of our own.
 */
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_inode_record.h"
#include "fs_dentry.h"
#include "fs_live.h"
#include "fs_part.h"

/* An owner's name that was not known in time is asked for again soon. */
#define LATE_S 1

/*
 * Counts the changes made by us, of all inodes: a call notes it when it starts, an inode when it
 * changes. So the attributes that a call brings of an inode nobody knew it would meet (LOOKUP,
 * READDIR) can be held against the changes of that inode too.
 */
static _Atomic uint64_t changes;

/* Is `a` later than `b`? Times of one server only. */
static bool later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static void cache_limits(
	const struct fs *fs, const struct fs_inode *in, uint32_t *ret_min, uint32_t *ret_max)
{
	bool dir = in->attr.type == NF4DIR;

	*ret_min = dir ? fs->conf.acdirmin_s : fs->conf.acregmin_s;
	*ret_max = dir ? fs->conf.acdirmax_s : fs->conf.acregmax_s;
}

static void attr_merge(struct nfs4_attr *to, const struct nfs4_attr *a)
{
	const uint32_t v = a->valid;

	if ((v & NFS4_ATTR_STAT) == NFS4_ATTR_STAT) {
		*to = *a;
		return;
	}
	fs_inode_record_note(to, a);
	if (v & NFS4_ATTR_CHANGE)
		to->change = a->change;
	if (v & NFS4_ATTR_SIZE)
		to->size = a->size;
	if (v & NFS4_ATTR_NLINK)
		to->nlink = a->nlink;
	if (v & (NFS4_ATTR_OWNER | NFS4_ATTR_GROUP)) {
		to->owner_late = a->owner_late;
		to->owner_alien = a->owner_alien;
	}
	if (v & NFS4_ATTR_RDEV) {
		to->rdev_major = a->rdev_major;
		to->rdev_minor = a->rdev_minor;
	}
	if (v & NFS4_ATTR_SPACE_USED)
		to->space_used = a->space_used;
	if (v & NFS4_ATTR_ATIME)
		to->atime = a->atime;
	if (v & NFS4_ATTR_MTIME)
		to->mtime = a->mtime;
	if (v & NFS4_ATTR_CTIME)
		to->ctime = a->ctime;
	to->valid |= v;
}

/*
 * Enough of the attributes for a stat? Servers may leave a few out (space_used, rdev); the ones
 * here are mandatory to understand the file at all.
 */
static bool is_whole(const struct nfs4_attr *a)
{
	const uint32_t need = NFS4_ATTR_TYPE | NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_MODE;

	return (a->valid & need) == need;
}

/* Period of validity after new whole attributes. Inode lock held. */
static void renew_period(struct fs *fs, struct fs_inode *in, bool changed, uint64_t now_ns)
{
	uint32_t now_ms = (uint32_t)(now_ns / NSEC_PER_MSEC);
	uint32_t min_s, max_s;

	cache_limits(fs, in, &min_s, &max_s);
	if (changed || in->attr_to_s < min_s) {
		in->attr_to_s = min_s;
		in->attr_to_ms = now_ms;
	} else if (now_ms - in->attr_to_ms >= in->attr_to_s * 1000) {
		in->attr_to_s *= 2;
		in->attr_to_ms = now_ms;
	}
	if (in->attr_to_s > max_s)
		in->attr_to_s = max_s;
	in->attr_ns = now_ns;
}

static void expire(struct fs_inode *in)
{
	in->attr_ns = 0;
}

/* May `a`, whose call was started at `seq`, be older than what is known? Inode lock held. */
static bool may_be_older(const struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq)
{
	if (seq >= in->attr_seq || !in->attr_known)
		return false;
	/* A later ctime is later on the server too, whatever overtook whom on the way. */
	return !(a->valid & in->attr.valid & NFS4_ATTR_CTIME) || !later(&a->ctime, &in->attr.ctime);
}

/*
 * Known attributes are of later, whoever made the change: `a` was overtaken. Or the server's time
 * has gone back: the next ones are believed. Inode lock held.
 */
static bool is_overtaken(struct fs_inode *in, const struct nfs4_attr *a)
{
	if (!in->attr_known || !(a->valid & in->attr.valid & NFS4_ATTR_CTIME) ||
		!later(&in->attr.ctime, &a->ctime))
		return false;
	in->attr.valid &= ~NFS4_ATTR_CTIME;
	return true;
}

uint64_t fs_attr_seq(struct fs_inode *in)
{
	return atomic_load(&changes);
}

uint64_t fs_attr_seq_next(void)
{
	return atomic_fetch_add(&changes, 1) + 1;
}

/* Returns: names that the kernel may not walk any more: fs_dentry_drop(). */
static struct fs_dentries *note(
	struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, bool own, uint64_t now_ns)
{
	struct fs_dentries *lost =
		fs_dentry_search_shrinks(&in->attr, a) ? fs_dentry_take(fs, in) : NULL;
	bool compare = (in->attr.valid & a->valid & NFS4_ATTR_CHANGE) != 0;
	bool changed = compare && a->change != in->attr.change;
	bool urged = false;

	if (changed && !own && in->opened) {
		in->inval_want++;
		in->data_change = 0;
		urged = fs_part_inode_changed(fs, in);
	}
	in->live_old |= fs->live && fs_inode_record_differs(&in->attr, a);
	attr_merge(&in->attr, a);
	/* A server that lost what is unstable gets it back: the file has not become shorter. */
	if (in->attr.size < fs_part_inode_end(fs, in))
		in->attr.size = fs_part_inode_end(fs, in);
	if (is_whole(a)) {
		in->attr_known = true;
		renew_period(fs, in, changed, now_ns);
	} else if (in->attr_known && in->attr_ns != 0 && compare && !changed) {
		renew_period(fs, in, false, now_ns); /* the rest has not changed either */
	} else if (!(own && in->attr.type == NF4DIR)) {
		/*
		 * What a WRITE brings lacks blocks and mode (suid went?): ask again. A directory
		 * that we changed keeps its time, but it is not prolonged: a chmod by somebody
		 * else is seen as late as ever, not later.
		 */
		expire(in);
	}
	if (urged)
		expire(in); /* the size is ours until the COMMIT tells the server's */
	return lost;
}

void fs_attr_update(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns)
{
	struct fs_dentries *lost = NULL;
	bool old;

	if (a->valid == 0)
		return;
	fs_facts_note(fs, in, a);
	mutex_lock(&in->lock);
	/* While we write, a change that is seen may be that: what is written back tells the rest.
	 */
	if (!may_be_older(in, a, seq) && !is_overtaken(in, a) &&
		!(in->attr_known && fs_part_inode_is_dirty(fs, in)))
		lost = note(fs, in, a, false, now_ns);
	else if (!fs_part_inode_is_vouched(fs, in)) /* else what is known needs no other answer */
		expire(in);
	old = in->live_old;
	mutex_unlock(&in->lock);
	if (old)
		fs_live_inode(fs, in);
	fs_dentry_drop(fs, in, lost);
}

/* end: where what was written ends; 0: nothing was. Returns: the mode that is known now. */
static uint32_t note_own(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a,
	uint64_t seq, uint64_t now_ns, uint64_t end)
{
	struct fs_dentries *lost = NULL;
	uint32_t mode;
	bool old;

	fs_facts_note(fs, in, a);
	mutex_lock(&in->lock);
	if (a->valid == 0) /* ours changed it: the next is no other's, nor later than that */
		in->attr.valid &= ~(NFS4_ATTR_CHANGE | NFS4_ATTR_CTIME);
	if (a->valid == 0 || may_be_older(in, a, seq))
		expire(in);
	else
		lost = note(fs, in, a, true, now_ns);
	in->attr_seq = fs_attr_seq_next();
	/*
	 * Pages are not known to be the ones of a change attribute any more: between the last one
	 * that we saw and this one somebody else may have written too, and the WRITE's GETATTR
	 * shows only the end. The next open drops them.
	 */
	in->data_change = 0;
	/* The kernel drops its attributes itself when it sends what changes them. */
	in->told_change = 0;
	/* So long it is, also if the server did not tell. */
	if (!(a->valid & NFS4_ATTR_SIZE) && in->attr.size < end)
		in->attr.size = end;
	mode = in->attr.mode;
	old = in->live_old;
	mutex_unlock(&in->lock);
	if (old)
		fs_live_inode(fs, in);
	fs_dentry_drop(fs, in, lost);
	return mode;
}

void fs_attr_update_own(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns)
{
	(void)note_own(fs, in, a, seq, now_ns, 0);
}

bool fs_attr_wrote(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns, uint64_t end)
{
	return (note_own(fs, in, a, seq, now_ns, end) & (S_ISUID | S_ISGID)) != 0;
}

void fs_attr_fence(struct fs_inode *in)
{
	mutex_assert_held(&in->lock);
	in->attr_seq = fs_attr_seq_next();
}

void fs_attr_changed(struct fs_inode *in)
{
	mutex_lock(&in->lock);
	in->attr_seq = fs_attr_seq_next();
	in->data_change = 0;
	in->told_change = 0;
	expire(in);
	mutex_unlock(&in->lock);
}

void fs_attr_by_others(struct fs *fs, struct fs_inode *in)
{
	mutex_lock(&in->lock);
	in->inval_want++;
	in->data_change = 0;
	fs_part_inode_changed(fs, in);
	expire(in);
	mutex_unlock(&in->lock);
}

/* How long they are still good, ns. Inode lock held. */
static uint64_t good_for(const struct fs *fs, const struct fs_inode *in, uint64_t now_ns)
{
	bool late = in->attr.owner_late;
	uint64_t to_s = late && in->attr_to_s > LATE_S ? LATE_S : in->attr_to_s;
	uint64_t until_ns = in->attr_ns + to_s * NSEC_PER_SEC;

	if (fs->conf.noac || !in->attr_known || in->attr_ns == 0 || fs_part_inode_is_dirty(fs, in))
		return 0;
	if (fs_part_inode_is_vouched(fs, in) && !late)
		return fs->conf.acregmax_s * NSEC_PER_SEC;
	if (now_ns >= until_ns)
		return 0;
	return until_ns - now_ns;
}

uint64_t fs_attr_cached(struct fs *fs, struct fs_inode *in, struct nfs4_attr *ret, uint64_t now_ns)
{
	uint64_t since = 0;

	mutex_lock(&in->lock);
	if (good_for(fs, in, now_ns) > 0) {
		since = in->attr_ns;
		*ret = in->attr;
	}
	mutex_unlock(&in->lock);
	return since;
}

bool fs_attr_newest(
	struct fs *fs, struct fs_inode *in, struct nfs4_attr *a, uint64_t seq, uint64_t now_ns)
{
	bool stale;

	mutex_lock(&in->lock);
	if (good_for(fs, in, now_ns) > 0)
		*a = in->attr;
	else if (may_be_older(in, a, seq))
		a->size = in->attr.size;
	if (a->size < fs_part_inode_end(fs, in))
		a->size = fs_part_inode_end(fs, in);
	stale = in->inval_want != in->inval_done;
	mutex_unlock(&in->lock);
	return stale;
}

enum nfs4_dir_attr fs_attr_ask(struct fs *fs, struct fs_inode *dir, uint64_t now_ns)
{
	uint64_t left;
	bool due;

	if (fs->conf.noac)
		return NFS4_DIR_CHANGES;
	mutex_lock(&dir->lock);
	left = good_for(fs, dir, now_ns);
	due = left == 0 || left < dir->attr_to_s * NSEC_PER_SEC / 2;
	mutex_unlock(&dir->lock);
	return due ? NFS4_DIR_STAT : NFS4_DIR_NONE;
}

double fs_attr_timeout(struct fs *fs, struct fs_inode *in, uint64_t now_ns)
{
	return (double)good_for(fs, in, now_ns) / (double)NSEC_PER_SEC;
}
