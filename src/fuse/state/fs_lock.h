/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks that the server keeps: fcntl, OFD and flock, all of them byte ranges
 * there.
 *
 * An owner is what the kernel calls one (a process' files, or one open file),
 * of one kind, on one inode. What is done to it takes turns: the next waits
 * until the one before is answered by the server, whichever lane it is on. An
 * operation that waits for its turn holds no call.
 *
 * A request that sleeps until a lock is free is an fs_lockwait from its arrival
 * to its answer. It has an operation only while the server is asked; in
 * between it holds nothing that others need, so that any number of them may
 * sleep. It is asked again when a lock of this mount that was in the way goes,
 * when the server calls (CB_NOTIFY_LOCK), and from time to time. Of an inode's
 * sleepers one after the other is tried, the oldest first, and those that what
 * it found stands in the way of as well are left asleep: an unlock does not
 * cost a call for each.
 *
 * FLUSH and RELEASE take their turn before they COMMIT and keep it: who locks
 * under the same number afterwards (the kernel uses them again) comes behind.
 *
 * Context: fs->locks->lock guards owners and sleepers; it is held for a few
 * memory accesses. libfuse's own locks may be taken inside, an inode's not.
 */
#ifndef RPCRDMAFS_FS_LOCK_H
#define RPCRDMAFS_FS_LOCK_H

#include "fs_op.h"

/* What a lock is asked for; len: or NFS4_LOCK_TO_END. */
struct fs_lockrange {
	uint64_t off, len;
	bool write;
};

struct fs_lockowner {
	struct fs_lockowner *next; /* inode->lockowners; locks_lock, as all that follows */
	struct fs_inode *inode;    /* whose owners it is among */
	uint64_t key;              /* the kernel's number */
	struct live *live;         /* fs->live */
	live_ref live_ref;         /* fs_share_tables.h */
	bool flock;
	pid_t pid;              /* of who locked last, as the kernel has it; 0: not known */
	unsigned int refs;      /* operations and sleepers */
	bool busy;              /* it is somebody's turn */
	struct list queue;      /* of fs_op.link: who waits for it */
	struct fs_file *file;   /* through which it locked last: goes with it; NULL: with none */
	struct fs_share *share; /* on whose open it hangs, or may; NULL: on none */
	/* Owner: whose turn it is (others may look at `holding`: it is a guess then) */
	_Atomic bool holding; /* some lock */
	/* A call in this range had no answer: what is held there must go first. */
	bool doubt;
	uint64_t doubt_off, doubt_len;
	struct nfs4_lockowner lo;
};

/* Of a mount. */
struct fs_locks {
	struct mutex lock; /* everything below, and owners */
	struct list waits; /* of fs_lockwait, oldest first */
	uint64_t frees;    /* counts locks that went */
	uint64_t poll_ns;  /* after so long one that sleeps is tried again, then less often */
};

/* Of a lane: requests that sleep until they have a lock. */
struct fs_lockwait_lane {
	struct fs_lane *lane;
	struct list waits; /* of fs_lockwait */
	struct reactor_timer timer;
	unsigned int tries;  /* operations that ask for them again */
	_Atomic bool due;    /* some are to be looked at ... */
	_Atomic bool signal; /* ... because a signal came */
};

/* A request that sleeps until it has its lock. */
struct fs_lockwait {
	struct list link;      /* fs->locks->waits, oldest first; locks_lock */
	struct list lane_link; /* lane->lockwait->waits; the lane's alone */
	struct fs_lane *lane;  /* constant, as the next five */
	void (*ask)(struct fs_op *op);
	struct fs_inode *inode;     /* of the file */
	struct fs_file *file;       /* referenced */
	struct fs_lockowner *owner; /* referenced */
	struct fs_lockrange range;
	/* the lane's alone */
	fuse_req_t req;  /* NULL: answered */
	uint64_t unique; /* constant: the kernel's number of it */
	bool signalled;  /* EINTR if it is not granted now */
	uint64_t due_ns;
	unsigned int doublings; /* of the time between two tries */
	uint64_t frees;         /* fs->locks->frees when it was asked for */
	/* locks_lock */
	struct fs_op *op; /* asks the server; NULL: asleep */
	bool woken;       /* worth a try */
	bool trying;      /* this inode's one that is tried */
};

/* The work of a request for a lock, and of FLUSH and RELEASE (fs_op.work). */
struct fs_lock_op {
	struct fs_lockowner *owner; /* referenced */
	struct fs_lockwait *wait;   /* whose request it is; NULL: op->req */
	struct fs_lockrange range;
	bool turn;         /* it is this operation's, or it waits for it */
	bool held;         /* a part of the range before it asked, or all */
	unsigned int asks; /* that were denied while files were being closed */
	uint32_t closes;   /* fs->closes when the server was asked */
	/* fs_lockclose.c: whose lock is in the way; since when it is waited for */
	uint64_t holder, since;
	bool full; /* the kernel may have kept requests back since then */
	struct reactor_timer tick;
	struct fs_op *op; /* of tick */
	void (*again)(struct fs_op *op);
	uint64_t number;   /* LOCKT: of the owner */
	uint64_t off, len; /* LOCKU in work, and what follows it */
	void (*unlocked)(struct fs_op *op, int err);
	struct nfs4_denied denied;
	int err;
	void (*then)(struct fs_op *op, int err);
	bool whole; /* RELEASE: of the share's owners */
	void (*released)(struct fs_op *op);
};
static inline struct fs_lock_op *fs_lock_op(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct fs_lock_op);
	return op->work;
}

/* ---- for the rest of src/fuse ---- */

/*
 * FLUSH: op->fi.lock_owner's locks on op->inode. `then` runs when nothing else of that owner is in
 * work (at once if there is none), and nothing is until fs_lockowner_flush_end(), which gives its
 * locks back and goes on with err.
 */
void fs_lockowner_flush_begin(struct fs_op *op, void (*then)(struct fs_op *op));
void fs_lockowner_flush_end(struct fs_op *op, int err, void (*then)(struct fs_op *op, int err));
/*
 * RELEASE: the locks of owners that locked through op->file last: flock and OFD owners are the open
 * file itself, and what a FLUSH left of others. Its share may stay open: what the server did not
 * answer for stays in doubt.
 */
void fs_lockowner_release(struct fs_op *op, void (*then)(struct fs_op *op));
/* The end of op->file's share: all that hang on its open, whichever file they locked through. */
void fs_lockowner_release_share(struct fs_op *op, void (*then)(struct fs_op *op));
/* For nfs4_client_on_lock_free(); ctx: the fs. */
void fs_lockwait_freed(void *ctx, uint64_t number);
extern const struct fs_part fs_lockwait_part;

static inline bool fs_lock_overlap(uint64_t off1, uint64_t len1, uint64_t off2, uint64_t len2)
{
	/* off + len is at most UINT64_MAX, but for a length of TO_END */
	uint64_t end1 = len1 == NFS4_LOCK_TO_END ? UINT64_MAX : off1 + len1;
	uint64_t end2 = len2 == NFS4_LOCK_TO_END ? UINT64_MAX : off2 + len2;

	return off1 < end2 && off2 < end1;
}

/* ---- fs_lockowner.c ---- */

/* Referenced. make: if there is none; NULL: there is none, or out of memory. Any lane. */
struct fs_lockowner *fs_lockowner_get(
	struct fs *fs, struct fs_inode *in, uint64_t key, bool flock, bool make);
/* For LOCKT: a number of nobody's if there is no such owner (fcntl). */
uint64_t fs_lockowner_number(struct fs *fs, struct fs_inode *in, uint64_t key);
/* Who locked by this owner last; 0: not known, or nobody of this mount holds a lock by it. */
pid_t fs_lockowner_pid(struct fs *fs, struct fs_inode *in, uint64_t number);
/* This process locks by it. */
void fs_lockowner_used(struct fs *fs, struct fs_lockowner *o, pid_t pid);
struct fs_lockowner *fs_lockowner_ref(struct fs *fs, struct fs_lockowner *o);
void fs_lockowner_put(struct fs *fs, struct fs_lockowner *o);

/*
 * fs_lockowner_turn - `then` runs when it is the op's turn with fs_lock_op(op)->owner
 *
 * At once, or on the op's lane; the op's call is given back if it has to wait.
 */
void fs_lockowner_turn(struct fs_op *op, void (*then)(struct fs_op *op));
/* Does nothing if it is not the op's. */
void fs_lockowner_turn_over(struct fs_op *op);

/*
 * In its turn: LOCKU of a range, then `then`. err: positive errno or 0. Without an answer the
 * range is in doubt, with one it is not any more. Sleepers are woken before `then`.
 */
void fs_lockowner_unlock(
	struct fs_op *op, uint64_t off, uint64_t len, void (*then)(struct fs_op *op, int err));
/* Its turn: a call that may have locked [off, len) had no answer. */
void fs_lockowner_note_doubt(struct fs_op *op, uint64_t off, uint64_t len);
/* Was this an answer of the server's, whatever it said? */
static inline bool fs_lock_answered(const struct nfs4_call *call)
{
	return !call->err || call->status != NFS4_OK;
}
/* Gives back the turn and the owner. */
void fs_lockowner_over(struct fs_op *op);

/* ---- fs_lockclose.c ---- */

/*
 * fs_lockclose_await - a lock of owner `holder` (struct nfs4_denied) was in the way of op's
 *
 * True: it may be one that nobody has any more. The op's turn and call are given back, and `again`
 * runs on its lane when it is gone, or when it is not going after all; at most a second after the
 * first time. False: the op is as it was.
 */
bool fs_lockclose_await(struct fs_op *op, uint64_t holder, void (*again)(struct fs_op *op));

/* ---- fs_lockwait.c ---- */

/*
 * The request of `op`, which sleeps, becomes a sleeper that `op` asks for; range and owner are
 * those of fs_lock_op(op)-> ask: for this range again, by an operation that is made for it. False:
 * out of memory.
 */
bool fs_lockwait_new(struct fs_op *op, void (*ask)(struct fs_op *op));
/* The op was denied: it ends, and its request sleeps. denied: what was in the way. */
void fs_lockwait_sleep(struct fs_op *op, const struct nfs4_denied *denied);
/* False: nobody heard it, and the kernel wants no lock. */
bool fs_lockwait_answer(struct fs_lockwait *w, int err);
/* The next three do nothing for an op without a sleeper. Before the server is asked. */
void fs_lockwait_asks(struct fs_op *op);
/* It has its lock, but is not answered yet: who comes next? */
void fs_lockwait_granted(struct fs_op *op);
/* The sleeper is not needed any more. */
void fs_lockwait_done(struct fs_op *op);
/* A range is free now. On op's lane, which may start others. */
void fs_lockwait_wake(struct fs_op *op, uint64_t off, uint64_t len);

#endif
