/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations (RFC 8881 section 10.4): the server promises to ask before it
 * lets anybody else change a file (READ), or open it at all (WRITE). While one
 * is held
 *
 *   an open that it allows, by a user of whom an OPEN said what he may do while it was held, costs
 *   no call, nor does its close; one user's rights never serve another
 *   cached attributes stay good
 *
 * Locks are the server's all the same. What would break the promise from our
 * side (fs_deleg_clear) waits until it is returned, so that the server does not
 * have to call back and keep the request waiting meanwhile; that holds a call.
 *
 *   held -> due      recalled; in the way of something here; idle for a lease, or too many;
 *                    forgotten by the kernel; the end of the mount
 *        -> returned what it serves is claimed, then DELEGRETURN (fs_deleg_return.c)
 *   held -> lost     with the client ID, or revoked: there is nothing to return
 *
 * From `due` on it is ending: nothing is opened by it, attributes age again,
 * and OPENs wait for the end. Without an answer (soft) it stays due and is tried
 * again; who waits goes on, and meets the server's recall.
 *
 * Context: any lane; a delegation is returned by the lane that brought it.
 * nfs4 calls the nfs4_deleg_ops with states.lock, so nothing of nfs4_held.h is
 * called with deleg_lock or one that comes after it (mutex_order.h).
 */
#ifndef RPCRDMAFS_FS_DELEG_H
#define RPCRDMAFS_FS_DELEG_H

#include "fs_op.h"

#define FS_DELEG_USERS 4u

/* What ACCESS said of a user. */
struct fs_deleg_user {
	struct rpc_cred cred;
	uint32_t access;
};

/* Of a mount. */
struct fs_delegs {
	struct mutex lock; /* `list`, and what delegations say that they have under it */
	struct list list;  /* of fs_deleg.lru, least recently used first */
	_Atomic uint32_t cnt;
	_Atomic bool no_write; /* who asked for one got one to read */
	uint32_t max;          /* more than so many: the idle ones go */
	uint64_t idle_ns;      /* one that nothing is open by goes after so long; 0: a lease */
};

/* Of a lane: the delegations that it returns. */
struct fs_deleg_lane {
	struct fs_lane *lane;
	struct list ops; /* of fs_op.link: those kept for it that are free */
	unsigned int ops_busy;
	unsigned int cnt; /* of fs_deleg.lane */
	bool drain;       /* all are due */
	struct list due;  /* of fs_deleg.due: to be returned, or lost; fs->delegs->lock */
	struct list late; /* the same: to be tried again */
	struct reactor_timer timer;
};

struct fs_deleg {
	struct nfs4_deleg nd;
	/* constant */
	struct fs *fs;
	struct fs_lane *lane;   /* returns it */
	struct fs_inode *inode; /* referenced */
	enum nfs4_deleg_type type;
	/* deleg_lock (inode->deleg: written with it and the inode's lock, read with either) */
	struct list lru; /* fs->delegs->list */
	struct list due; /* lane->deleg->due or _late */
	uint64_t used_ns;
	bool returning; /* an op is at it */
	/* written with deleg_lock and the inode's, read with either */
	bool ending;
	bool lost;
	bool recalled; /* somebody is about to change the file */
	/* inode lock */
	bool ready;             /* nd may be used */
	unsigned int opening;   /* who uses nd: it stays where it is */
	struct fs_op *returner; /* waits for that */
	struct list waiters;    /* of fs_op.link: for its end */
	struct fs_deleg_user users[FS_DELEG_USERS];
	unsigned int users_cnt, users_next;
	uint64_t users_seq; /* fs_attr_seq() of the last change of rights */
};

/* Nothing changes the file without our knowing. Inode lock held. */
static inline bool fs_deleg_vouches(const struct fs_deleg *d)
{
	return d && d->ready && !d->ending;
}

/* ---- fs_deleg.c ---- */

void fs_deleg_init(struct fs *fs);
void fs_deleg_fini(struct fs *fs);
/* Shall the op's OPEN ask for one? */
bool fs_deleg_wanted(struct fs_op *op);
/*
 * The op's OPEN succeeded, and its attributes are noted: takes the delegation that it brought, or
 * refuses it; notes what the user may do while one is held.
 */
void fs_deleg_opened(struct fs_op *op);
/*
 * We changed what users may do with the file (mode, owner, group), or tried to: with one to write
 * that is kept each of them is asked for anew. Before the change is answered, and after
 * fs_attr_update_own() or fs_attr_changed().
 */
void fs_deleg_rights_changed(struct fs_inode *in);
/* By name none was wanted; if it is open for writing now, one that is held has to go. */
void fs_deleg_opened_by_name(struct fs_op *op, struct fs_inode *in);
/*
 * fs_deleg_clear - `then` runs when no delegation is in the way of changing `in`
 *
 * At once, or on the op's lane; the op's call is given back if it has to wait. any: a WRITE one is
 * too. None is taken until the op ends.
 */
void fs_deleg_clear(
	struct fs_op *op, struct fs_inode *in, bool any, void (*then)(struct fs_op *op));
/* The same for an OPEN: waits for one that is ending too, and one may be taken afterwards. */
void fs_deleg_await(struct fs_op *op, bool writes, void (*then)(struct fs_op *op));
/* The op ends: gives back what fs_deleg_clear() barred. */
void fs_deleg_unbar(struct fs_op *op);
/* A file of it was closed. */
void fs_deleg_touch(struct fs_op *op, struct fs_inode *in);
/* The kernel has forgotten the inode. Referenced by the caller. */
void fs_deleg_evict(struct fs *fs, struct fs_inode *in);

/* ---- fs_deleg_open.c ---- */

/* Opens op->file by a delegation; op->attr and op->attr_seq are as after an OPEN. False: OPEN it.
 */
bool fs_deleg_open(struct fs_op *op);

/* ---- fs_deleg_return.c ---- */

/* It is to be returned. deleg_lock held. */
void fs_deleg_return_due(struct fs_deleg *d);
/* All are to be returned. */
void fs_deleg_return_all(struct fs *fs);
/* It is gone. deleg_lock held. */
void fs_deleg_return_lost(struct fs_deleg *d);
/* nd is not used any more. */
void fs_deleg_return_unuse(struct fs_deleg *d);
/* To its lane. deleg_lock held. */
void fs_deleg_return_queue(struct fs_deleg *d);
/* On its lane: the return begins (l->deleg->ops is not empty); it is lost. */
void fs_deleg_return(struct fs_lane *l, struct fs_deleg *d);
void fs_deleg_return_end(struct fs_deleg *d);

/* ---- fs_deleg_lane.c ---- */

extern const struct fs_part fs_deleg_lane_part;
/* There is one more: looks from time to time for those that nothing is open by. */
void fs_deleg_lane_watch(struct fs_lane *l);

#endif
