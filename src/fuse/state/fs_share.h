/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server calls an open: all open files of one user on one inode, which
 * have one open owner, one stateid and one CLOSE (RFC 8881 section 9.1). Each
 * open file is OPENed all the same (close-to-open), and joins.
 *
 * The owner is of this user and this file, so that a CLOSE has to wait for the
 * OPENs of this share only. An OPEN by name has an owner, and so a share, of
 * its own: which file it opens only its reply says, and by then a CLOSE of the
 * share it would have joined may be on its way.
 *
 * OPENs and LOCKs enter a share side by side; CLOSE, OPEN_DOWNGRADE and the
 * claim of what a delegation serves are alone in it. First come, first served:
 * who waits holds no call. When it is about to be closed it is over: OPENs that
 * come then have another one, and another owner.
 *
 * Context: the inode's lock guards what is not constant, but for `state`.
 */
#ifndef RPCRDMAFS_FS_SHARE_H
#define RPCRDMAFS_FS_SHARE_H

#include "fs_op.h"

struct fs_share {
	struct fs_share *next; /* inode->shares */
	/* constant; the inode is referenced by who references the share */
	struct fs *fs;
	struct fs_inode *inode;
	struct rpc_cred cred;
	uint64_t owner;
	struct nfs4_state state;
	/* inode lock */
	live_ref live_ref; /* fs_share_tables.h */
	uint32_t refs;
	bool over;         /* closed, about to be, or lost: nobody joins any more */
	uint32_t opens[4]; /* open files, by share_access */
	uint32_t access;   /* what the server has it open for, or a delegation serves it for */
	uint32_t inside;   /* who entered side by side ... */
	bool alone;        /* ... or alone */
	uint32_t round;    /* of the return that has looked at it last (fs_deleg_return.c) */
	struct list queue; /* of fs_op.link: who waits to enter */
};

/* Not among the inode's yet. owner: of the OPEN; 0: a new one. NULL: out of memory. */
struct fs_share *fs_share_new(
	struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred, uint64_t owner);
/* Others may join from now on. fs_share_opened() does it, too. */
void fs_share_list(struct fs_share *sh);
/*
 * The one of this owner, which a process before had from the same request, with a reference for the
 * caller; NULL: there is none. On the server each such request opens with an owner of its own: two
 * shares of it would be one open there, which the first of them closes.
 */
struct fs_share *fs_share_of_owner(struct fs_inode *in, uint64_t owner);
/*
 * The first of this user's, or a new one; referenced. request: that is to open it: done again after
 * a crash it has the same owner. NULL: out of memory.
 */
struct fs_share *fs_share_join(
	struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred, uint64_t request);
/* Inside. Is it closed, or about to be, or lost? Then join another one. */
bool fs_share_is_over(struct fs_share *sh);
/* f is open by it from now on, and has the caller's reference; NULL: by none. */
void fs_share_give(struct fs_share *sh, struct fs_file *f);
/* NULL is accepted. The last one: whatever the server holds of it is forgotten. */
void fs_share_put(struct fs_share *sh);

/* `then` runs inside: at once, or on the op's lane; the op's call is given back if it waits. */
void fs_share_enter(
	struct fs_op *op, struct fs_share *sh, bool alone, void (*then)(struct fs_op *op));
void fs_share_leave(struct fs_share *sh);
/* From alone: the server has it open for this from now on; 0: it is closed. */
void fs_share_leave_downgraded(struct fs_share *sh, uint32_t share_access);

/*
 * f's OPEN is done, by the op: it counts in f->share, which others may join, is among the inode's
 * open files, and is looked at from time to time (fs_validate.h).
 */
void fs_share_opened(struct fs_op *op, struct fs_file *f);
/* Its CLOSE is done, or need not be; it counted in the share until fs_share_drop(). */
void fs_share_closed(struct fs *fs, struct fs_file *f);
/* What all open files need. Inode lock held. */
uint32_t fs_share_needs(const struct fs_share *sh);
/*
 * One of them is closed. True: the server may have to hear of it, and `then` runs alone inside, as
 * fs_share_enter() says.
 */
bool fs_share_drop(struct fs_op *op, struct fs_share *sh, uint32_t share_access,
	void (*then)(struct fs_op *op));
/*
 * Alone. *ret_left: what is needed now; 0: nothing, and nobody joins any more. Returns: true: the
 * server has it open for more.
 */
bool fs_share_left(struct fs_share *sh, uint32_t *ret_left);
/* The share_access of an open with these O_*. */
uint32_t fs_share_access(int flags);
/* Does what ACCESS said allow an open with these O_*? */
bool fs_share_allows(int flags, uint32_t access);
extern const struct fs_part fs_share_part;

/* Any difference between two users matters. */
bool fs_share_same_cred(const struct rpc_cred *a, const struct rpc_cred *b);

#endif
