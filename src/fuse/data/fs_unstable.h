/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data of UNSTABLE WRITEs is kept until a COMMIT says that the
 * server has it on stable storage (RFC 8881 section 18.3), to be written again
 * when the server lost it.
 *
 * An inode's extents never overlap: a later write takes over its range, so that
 * the order in which they are written again does not matter. The memory is the
 * buffer that the request was received into, kept as it is, from
 * FS_UNSTABLE_LARGE bytes on, and a copy below (with keep= the request's record). Each lane has a
 * budget for both; when half is used, or after some seconds, the lane commits its oldest file in
 * the background (fs_commit.c), and a WRITE that finds none left goes FILE_SYNC: it waits for
 * nothing, so this cannot deadlock. So does one to a file whose COMMIT in the
 * background failed: such a file keeps what it has of the budget, and the others
 * share the rest as if there was no more.
 *
 * The gate: while data of an inode is written again nothing else may change
 * its data (fs_rewrite_enter), nor while the server may still do what a program
 * asked for that died meanwhile (fs_interrupt.c): the next one's change would
 * be undone. The lane that writes it has its buffer and its
 * call before it closes the gate, and what is on its way then has its own.
 *
 * Context: the inode's lock guards its extents, fs_unstable_lane.lock the lane's
 * budget; fs_unstable_lane.lock is the inner one. Memory that belongs to another lane goes
 * back through that lane's mailbox.
 */
#ifndef RPCRDMAFS_FS_UNSTABLE_H
#define RPCRDMAFS_FS_UNSTABLE_H

#include "fs_kept.h"
#include "fs_rw.h"

/* Payloads from here on are never copied. */
#define FS_UNSTABLE_LARGE 16384u
/* Bytes of copies that a lane may hold, their bookkeeping included. */
#define FS_UNSTABLE_BYTES (8u << 20)

struct fs_extent {
	uint64_t off;
	uint32_t len;
	uint8_t *p; /* in mem */
	union {
		struct fs_unstable_mem *mem;
		struct fs_extent *next; /* of lane->unstable->spare_extents */
	};
	uint64_t seq; /* inode->write_seq when it was written: what a COMMIT covers */
	struct nfs4_verf verf;
	bool lost;   /* the server does not have it any more */
	bool moving; /* is being written again */
	struct fs_kept kept;
};

/* It holds the data of one WRITE request. */
struct fs_unstable_mem {
	struct list link; /* lane->unstable->mems, oldest first; fs_unstable_lane.lock */
	struct fs_unstable_mem *next; /* while on its way to be freed */
	struct fs_lane *lane;         /* whose budget and whose buffer */
	struct fs_file *file; /* who wrote it; referenced: credential and state to write it again */
	struct rpcrdma_buf *buf; /* NULL: a copy in data, or in a record */
	uint8_t *lent;           /* with keep=: the copy is in the record of ... */
	live_ref record;         /* ... */
	uint64_t unique;         /* ... this request (fs_asked_buf_lend()) */
	uint32_t refs;           /* extents; inode lock */
	uint32_t charge;         /* of FS_UNSTABLE_BYTES */
	uint64_t since_ns; /* by its lane's clock; 0: to be committed at once; fs_unstable_lane.lock
			    */
	uint64_t not_before;  /* a COMMIT failed: when the next one is due; 0: none did;
				 fs_unstable_lane.lock */
	_Atomic uint32_t gen; /* nfs4_client_generation() before it was last written */
	struct fs_extent
		first; /* of all the data; a part that is split off is an object of its own */
	uint8_t data[];
};

/* Of an inode that was written to. */
struct fs_unstable {
	struct fs_extent **v; /* by offset */
	size_t cnt, cap;
	size_t reserved; /* WRITEs on their way that may add extents */
	size_t mems;     /* of extents; any: inode->is_unstable */
	size_t lost;     /* extents that are */
	uint64_t losses; /* counts extents that became so */
	/* COMMITs in the background that failed since one succeeded: nothing more is written
	 * UNSTABLE */
	unsigned int failures;
	struct nfs4_verf verf;  /* the newest one seen */
	unsigned int io;        /* changes of data on their way (fs_rewrite_enter) ... */
	unsigned int abandoned; /* ... of programs that died: nothing may overtake them */
	bool rewriting;         /* the gate is closed */
	struct fs_op *rewriter; /* closed it, and waits for io to become 0 */
	struct list waiters;    /* of fs_op.link: until the gate opens */
	/* fs_writeback.h */
	struct list writebacks; /* of fs_writeback.link, oldest first: inode->is_written_back */
	uint64_t writeback_seq; /* counts them */
	struct fs_op *open;     /* that others may still join, in it or in its batch; NULL: none */
	struct list writeback_waiters; /* of fs_op.link */
	/* fs_mapped.h */
	struct list mapped; /* of fs_rw.mapped_link, oldest first */
	uint64_t mapped_seq;
	struct list mapped_waiters; /* of fs_op.link */
	/* fs_append.h */
	unsigned int appends; /* writebacks that are */
	int64_t shift;        /* from the end that the kernel knows to the one there is */
	uint64_t kernel_end;  /* the kernel's is there, or behind it */
};

/* `more` memories of the handle's unstable data, 1 or -1. Inode lock held. */
void fs_unstable_count(struct fs_file *f, int more);
/* `more` writebacks of the handle, when the inode's list has, or has not, them. Inode lock held. */
void fs_unstable_listed(struct fs_file *f, int more);
/*
 * Where the last byte ends that is not committed, or that the server has not got yet: so long is
 * the file at least. Inode lock held.
 */
uint64_t fs_unstable_end(const struct fs_inode *in);
/* The kernel's end may be as short as that (fs_append.h). Inode lock held. */
static inline void fs_unstable_shorter(struct fs_inode *in, uint64_t size)
{
	mutex_assert_held(&in->lock);
	if (in->unstable && in->unstable->kernel_end > size)
		in->unstable->kernel_end = size;
}

/* Of a lane: its budget, and what it holds. */
struct fs_unstable_lane {
	struct fs_lane *lane;
	struct mutex lock; /* everything below */
	struct list mems;  /* of fs_unstable_mem, oldest first */
	unsigned int bufs_max;
	_Atomic unsigned int bufs;    /* they grow by the lane alone, without the lock ... */
	_Atomic uint32_t bytes;       /* ... */
	unsigned int late_bufs;       /* of bufs: of files whose COMMIT failed */
	uint32_t late_bytes;          /* of bytes */
	_Atomic uint64_t uncommitted; /* bytes of extents */
	uint32_t gen;                 /* nfs4_client_generation() that all of it is from */
	struct list returned;         /* buffers that other lanes released */
	struct reactor_msg return_msg;
	bool return_posted;
	/* The lane's own, without the lock. */
	struct fs_extent *spare_extents;
	struct fs_unstable_mem *spare_mems; /* without `data`; by `next` */
};

extern const struct fs_part fs_unstable_mem_part;

/* ---- the gate ---- */

/*
 * fs_rewrite_enter - before a call that changes data of op->inode
 *
 * False: the gate is closed; the call was given back, and `again` runs on the op's lane when it
 * opens. True: fs_rewrite_leave() must follow (fs_unstable_wrote() does it).
 */
bool fs_rewrite_enter(struct fs_op *op, void (*again)(struct fs_op *op));
void fs_rewrite_leave(struct fs_op *op);
/* The same, with the inode's lock held: fs_op_wake_all(to_wake) must follow, without. */
void fs_rewrite_left(struct fs_op *op, struct list *to_wake);
extern const struct fs_part fs_rewrite_part;

/* ---- WRITE ---- */

/* Room for what the WRITE of op->size bytes may leave behind. False: it must be FILE_SYNC. */
bool fs_unstable_reserve(struct fs_op *op);
/*
 * fs_unstable_wrote - fs_rw(op)->done bytes at op->off are written; leaves the gate
 *
 * unstable: they are held until COMMIT under fs_rw(op)->verf; takes the op's buffer if it is large.
 * lost: and the server has lost them already. Older data in that range is over. done 0: nothing was
 * written, the reservation is given back.
 *
 * True: the server has lost data of the file, which is to be written again; see fs_commit_wrote().
 */
bool fs_unstable_wrote(struct fs_op *op, bool unstable, bool lost);

/* ---- truncation ---- */

/* Data from `size` on is over. */
void fs_unstable_cut(struct fs_lane *l, struct fs_inode *in, uint64_t size);
/*
 * The op's SETATTR of the size ended. Without an answer it may have been done: data behind it is
 * not written again, and as it may still be the file's, every handle hears of the error.
 */
void fs_unstable_truncated(struct fs_op *op, uint64_t size);

/* ---- COMMIT (fs_commit.c) ---- */

/*
 * fs_commit - all that was written to op->inode is at the server, and durable, then `done`
 *
 * Data that the server lost meanwhile is written again first. err: positive errno of the COMMIT or
 * 0; data that could not be written again is an error of the handles (fs_file_take_error()).
 */
void fs_commit(struct fs_op *op, void (*done)(struct fs_op *op, int err));
/* One COMMIT of all of the file, with the call that the op has; fs_unstable_committed() judges it.
 */
void fs_commit_call(struct fs_op *op, void (*done)(struct nfs4_call *call));
/*
 * Somebody else changes the inode: what is unstable of it is committed at once, so that a restart
 * of the server does not make us write it over his. Any lane; inode lock held. False: nothing is.
 */
bool fs_unstable_urge(struct fs_inode *in);

/* Any lane; with the inode's lock or without. */
bool fs_unstable_is_empty(const struct fs_inode *in);
/* Data in or behind the range of a READ may not be what the server has: commit first. Any lane. */
bool fs_unstable_suspect(const struct fs_op *op);
/* The same, with the inode's lock held. */
bool fs_unstable_suspect_locked(const struct fs_op *op);
/* Notes in op->commit what a COMMIT that is sent now covers. */
void fs_unstable_commit_sent(struct fs_op *op);
/*
 * fs_unstable_committed - it returned `verf`: what it covers is released, or lost
 *
 * Returns: true: nothing was lost since it was sent, so all that was written until then is durable.
 */
bool fs_unstable_committed(struct fs_op *op, const struct nfs4_verf *verf);
/*
 * Data that a handle which goes away could not commit is given up: the file's other handles hear of
 * err, positive errno (fs_file_tell_error()). False: there was nothing.
 */
bool fs_unstable_drop(struct fs_lane *l, struct fs_file *f, int err);

/* Made if there is none; NULL: out of memory. Inode lock held. */
struct fs_unstable *fs_unstable_of(struct fs_inode *in);
/* A verifier was seen: what came under another one is lost. True: there is such. Inode lock held.
 */
bool fs_unstable_new_verf(struct fs_unstable *r, const struct nfs4_verf *verf);

/* ---- fs_unstable_mem.c ---- */

/* For the op's WRITE, counted in its lane's budget. NULL: none left. */
struct fs_unstable_mem *fs_unstable_mem_new(struct fs_op *op);
/* Gives back fs_rw(op)->unstable_mem, if nothing was put into it. */
void fs_unstable_mem_unused(struct fs_op *op);
/*
 * An extent for what may be split off; one that was not needed (NULL: it was) is the next one's,
 * as nearly all are. From the lane's thread. NULL: out of memory.
 */
struct fs_extent *fs_unstable_mem_get_extent(struct fs_lane *l);
void fs_unstable_mem_put_extent(struct fs_lane *l, struct fs_extent *e);
/*
 * The lane's COMMIT of this inode failed: what the lane holds of it waits until then, behind all
 * else, and does not count in what is left of its budget.
 */
void fs_unstable_mem_late(struct fs_lane *l, const struct fs_inode *in, uint64_t until_ns);
/* It is to be committed at once, unless it must wait: tells its lane. Any lane. */
void fs_unstable_mem_urge(struct fs_unstable_mem *k);
/* Is half of the budget used, but for what is late? fs_unstable_lane.lock held. */
bool fs_unstable_mem_half(const struct fs_lane *l);
/* The oldest that need not wait; NULL: there is none. fs_unstable_lane.lock held. */
struct fs_unstable_mem *fs_unstable_mem_oldest(struct fs_lane *l, uint64_t now_ns);
/* Gives memory back, each to its lane. No lock held. */
void fs_unstable_mem_free(struct fs_lane *l, struct fs_unstable_mem *dead);

/* ---- fs_rewrite.c ---- */

/* Waits for the gate to open (then `again`, without a call); false: it is. */
bool fs_rewrite_wait(struct fs_op *op, void (*again)(struct fs_op *op));
bool fs_rewrite_is_due(struct fs_inode *in);
/*
 * fs_rewrite - writes again what is lost of op->inode, then `done`
 *
 * Or waits until somebody else has. Errors are the handles' (fs_file_tell_error), not the
 * operation's. durable: FILE_SYNC. op->failed is honoured as by fs_op_call_buf().
 */
void fs_rewrite(struct fs_op *op, bool durable, void (*done)(struct fs_op *op));

/* ---- fs_commit.c ---- */

/* An operation that has its inode committed (fs_commit()), and written again before that. */
struct fs_commit {
	void (*done)(struct fs_op *op, int err);
	void (*rewritten)(struct fs_op *op);
	uint64_t seq, losses; /* inode->write_seq and unstable->losses when it was sent */
	unsigned int tries;   /* that found data lost */
	bool durable;         /* it is written again FILE_SYNC */
	struct fs_file *file; /* whose data is written again: referenced */
	uint64_t off;
	uint32_t len, part; /* and how much of it is written */
	struct nfs4_verf verf;
	uint32_t gen;
};

/* Of a lane: the COMMIT in the background. */
struct fs_commit_lane {
	struct fs_lane *lane;
	bool busy;
	struct reactor_timer timer; /* looks for the next one */
	_Atomic bool due;           /* another lane found one that is due at once */
};

/*
 * fs_commit_background - COMMIT of the oldest file of the lane, if half of its budget is used, or
 * if that is old or to be committed at once
 *
 * f: of this one anyway (its data was lost); or NULL.
 */
void fs_commit_background(struct fs_lane *l, struct fs_file *f);

/* fs_unstable_wrote(), and what is unstable now will be committed in time. The op's lane. */
void fs_commit_wrote(struct fs_op *op, bool unstable, bool lost);

extern const struct fs_part fs_commit_part;

#endif
