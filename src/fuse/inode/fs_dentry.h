/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names that the kernel may walk without asking: which of them each
 * directory has, so that they can be taken back when somebody loses the right
 * to search it. A name is known until its time is over for certain, then
 * forgotten with all others of its age.
 *
 * Memory: a byte more than its length for each name, and for those that are
 * told again in the next period; FS_DENTRY_FREE in all, and FS_DENTRY_EACH more for
 * each inode. What finds no room is given no time.
 */
#ifndef RPCRDMAFS_FS_DENTRY_H
#define RPCRDMAFS_FS_DENTRY_H

#include "fs_inode.h"

/*
 * fs_dentry_tell - how long the kernel may know `name`, which is `in`, in `dir`; seconds
 *
 * seq: fs_attr_seq() from before the call that found it was started. 0: not at all, then it is
 * not noted either. Any lane; takes dir's lock.
 */
double fs_dentry_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	uint64_t seq, uint64_t now_ns);
/*
 * RENAME: the kernel takes the time along that the name has where it was. The first is called
 * before the server is asked; false: out of memory. The other when it is done, before that is
 * answered.
 */
bool fs_dentry_move(struct fs *fs, struct fs_inode *from, struct fs_inode *to, const char *name,
	uint64_t now_ns);
void fs_dentry_moved(struct fs *fs, struct fs_inode *from, struct fs_inode *to);
/* Another process told it (fs_tables.h). False: out of memory. */
bool fs_dentry_told(struct fs *fs, struct fs_inode *dir, const char *name, uint64_t now_ns);
/* Nobody may walk the names in `dir` any more without asking; `dir` may be any inode. */
void fs_dentry_inval(struct fs *fs, struct fs_inode *dir);

/* ---- the same in two steps, for who holds the lock of the inode ---- */

/* Does the right to search a directory with attributes `old` shrink for somebody with `a`? */
bool fs_dentry_search_shrinks(const struct nfs4_attr *old, const struct nfs4_attr *a);
/* Names on their way to the kernel are given no time either. NULL: it knows none. */
struct fs_dentries *fs_dentry_take(struct fs *fs, struct fs_inode *dir);
/* After the lock is released; n may be NULL. They go soon: nobody waits for it. */
void fs_dentry_drop(struct fs *fs, struct fs_inode *dir, struct fs_dentries *n);

/* ---- the store ---- */

#define FS_DENTRY_FREE (16u * 1024 * 1024)
#define FS_DENTRY_EACH 64u

struct fs_dentry_chunk;

struct fs_dentries {
	struct fs_dentry_chunk *now, *before; /* of this period, newest first; of the last one */
	uint64_t since_ns;                    /* this period began */
	uint32_t key;                         /* no other period of any store has it */
	uint32_t count;                       /* of names */
	/* taken: */
	struct list link;     /* the dentries thread's queue */
	struct fs_inode *dir; /* referenced */
};

/*
 * fs_dentry_store_add - note a name
 *
 * *store may be NULL, and is made. known: 0 or what the last call for this file left there: the
 * same name is noted once a period. good_ns: how long any name is good; the same for all calls.
 * Returns: false: out of memory, and nothing has changed.
 */
bool fs_dentry_store_add(struct fs_dentries **store, const char *name, uint32_t *known,
	uint64_t now_ns, uint64_t good_ns);
/* Calls `tell` with each name (NUL-terminated) until it returns false. */
void fs_dentry_store_each(const struct fs_dentries *n,
	bool (*tell)(void *ctx, const char *name, size_t len), void *ctx);
/* NULL is accepted. */
void fs_dentry_store_free(struct fs_dentries *n);
/* Of all stores, bytes. */
size_t fs_dentry_store_bytes(void);

#endif
