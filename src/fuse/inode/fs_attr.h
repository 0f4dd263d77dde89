/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attribute cache, and what the kernel is told of it: NFS attributes <-> struct
 * stat, cache times (nfs(5) ac*).
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_ATTR_H
#define RPCRDMAFS_FS_ATTR_H

#include "fs_inode.h"
#include "nfs4_ops.h"

void fs_stat_fill(const struct fs *fs, const struct nfs4_attr *a, struct stat *st);
/*
 * Changes made by us so far, of any inode (`in` is not looked at). fs_op_call() notes it in
 * op->attr_seq before each start: pass op->attr_seq with whatever attributes that call brought, of
 * whichever inode. Taken when the reply is there it protects nothing.
 */
uint64_t fs_attr_seq(struct fs_inode *in);
/* The next number: what is on its way has a lower one. */
uint64_t fs_attr_seq_next(void);
/*
 * fs_attr_update - note attributes that a call only read
 *
 * Doubles or resets the cache time; a change by somebody else makes the kernel's pages stale
 * (inval_want). seq: fs_attr_seq() from before the call was started: op->attr_seq, for any inode.
 * Attributes that may be older than a change of ours are dropped, and what is cached expires.
 */
void fs_attr_update(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns);
/*
 * fs_attr_update_own - note attributes from a call that changed the inode itself
 *
 * (SETATTR, LINK; the directory of CREATE, REMOVE, RENAME...) Counts as a local change, so
 * fs_attr_changed() is not needed beside it. Fields that a->valid lacks are kept, but then the
 * whole expires; a->valid == 0 is fs_attr_changed().
 */
void fs_attr_update_own(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns);
/*
 * fs_attr_wrote - the same, of a WRITE that ended at byte `end`
 *
 * The file is as long at least, also if a has no size. Returns: it has a suid or sgid bit, which
 * the server may have cleared.
 */
bool fs_attr_wrote(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns, uint64_t end);
/*
 * Nobody changes it from here on without our knowing: attributes on their way may be older. Inode
 * lock held.
 */
void fs_attr_fence(struct fs_inode *in);
/* Something we did changed the inode: attributes on their way are older, cached ones expire. */
void fs_attr_changed(struct fs_inode *in);
/* Somebody else changed it, we do not know what: the kernel's pages are stale. */
void fs_attr_by_others(struct fs *fs, struct fs_inode *in);
/* Cached attributes still good? Then copied. Returns: since when they are cached; 0: they are not.
 */
uint64_t fs_attr_cached(struct fs *fs, struct fs_inode *in, struct nfs4_attr *ret, uint64_t now_ns);
/*
 * fs_attr_newest - of attributes that a call brought, what may be told of them now
 *
 * seq: as for fs_attr_update(). Those that are cached, if they are good; else what came, but for a
 * size from before a WRITE of ours: the kernel would cut off what it was told is written.
 * Returns: as fs_stat_pages_stale().
 */
bool fs_attr_newest(
	struct fs *fs, struct fs_inode *in, struct nfs4_attr *a, uint64_t seq, uint64_t now_ns);
/*
 * fs_attr_ask - what a LOOKUP in `dir` is to ask about it
 *
 * The kernel keeps a name as long as its directory's attributes are good. They are renewed when
 * half of that time is over, else the names looked up last would be kept for a moment only.
 */
enum nfs4_dir_attr fs_attr_ask(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
/*
 * Seconds the kernel may cache the attributes of an inode, and a name in `dir`; may its names be
 * walked without asking, by whoever has them? Lock of the inode or directory held.
 */
double fs_attr_timeout(struct fs *fs, struct fs_inode *in, uint64_t now_ns);
double fs_stat_entry_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
bool fs_stat_dentries_stay(const struct fs *fs, const struct fs_inode *dir);
/* Seconds the kernel may cache that a name is absent. */
double fs_stat_negative_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
/*
 * fs_stat_entry - what a LOOKUP or READDIRPLUS tells the kernel about a name in `dir`
 *
 * in holds the kernel's lookup count already (fs_inode_lookup(..., 1)). seq: as for
 * fs_attr_update(), of the call that found the name.
 * Returns: false: the kernel holds pages of an older version of this file, which must go before it
 * learns the new size: READDIRPLUS then packs the name with ino 0 and takes the lookup back;
 * fs_reply_entry() does it right by itself.
 */
bool fs_stat_entry(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e);
/* The same without asking (fs_reply.c, which has waited). */
void fs_stat_entry_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e);
/* Does the kernel hold pages of an older version? */
bool fs_stat_pages_stale(struct fs_inode *in);
/*
 * fs_stat_tell - the kernel is given attributes
 *
 * ret_st: `a`, with the links that programs made: a .nfs name is none.
 * Returns: seconds that it may cache them. guarded: none, as it would not know that another inode
 * of its own changed them.
 */
double fs_stat_tell(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, bool guarded,
	uint64_t now_ns, struct stat *ret_st);

#endif
