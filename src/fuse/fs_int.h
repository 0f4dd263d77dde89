/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside src/fuse: the inode table, open files, and the operation object.
 *
 * Threads: an fs_op belongs to the lane that read its request. Inodes are the
 * only thing lanes share: the table has one lock, each inode a short lock of
 * its own, and neither is held across a call to another layer.
 */
#ifndef RPCRDMAFS_FS_INT_H
#define RPCRDMAFS_FS_INT_H

#define FUSE_USE_VERSION 314

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_covers.h"
#include "log.h"
#include "mutex.h"
#include "nfs4_held.h"

/*
 * The kernel holds a nodeid of it, the number of its slot (fs_slot.h). There may be millions: at
 * most 512 bytes each, the longest filehandle and the table included; its name in fs_dentry.h comes
 * to that.
 */
struct fs_inode {
	struct mutex lock;      /* everything below `refs` */
	uint64_t nlookup;       /* the kernel's references; table lock */
	uint32_t refs;          /* open files, operations by nodeid; table lock */
	_Atomic uint32_t noted; /* where its name was noted last (fs_dentry.h); no lock */
	uint32_t slot;          /* for ever: the nodeid ... */
	uint32_t generation;    /* ... and what no other inode of that nodeid has */
	uint8_t fh_len;
	bool unhashed;         /* table lock: the filehandle names another file, or none, now */
	bool attr_known;       /* attr holds all that a stat needs */
	bool silly;            /* renamed to .nfs... on unlink while open */
	uint8_t nfs_names;     /* links that the server counts, but no program made: .nfs... */
	bool removed;          /* a directory: maybe by us, while it was open (fs_place.h) */
	bool opened;           /* was open once: the kernel may hold pages of it */
	uint32_t opens;        /* open files */
	uint32_t inval_want;   /* changes by others that make the kernel's pages stale */
	struct nfs4_attr attr; /* the newest attributes seen */
	uint64_t attr_ns;      /* when they arrived (reactor_now) */
	uint32_t attr_to_ms;   /* start of the period after which attr_to_s may double; it wraps */
	uint32_t attr_to_s;    /* how long they are good: doubles while nothing changes */
	uint32_t inval_done;   /* how many of inval_want the kernel was told */
	/* Counts of operations, of which a mount has at most some thousands */
	uint16_t deleg_bars;  /* on their way, beside which no delegation is taken */
	uint16_t opening;     /* files whose OPEN is on its way */
	uint64_t data_change; /* change attribute the kernel's cached pages belong to; 0: none */
	uint64_t told_change; /* change attribute of the attributes the kernel holds; 0: none */
	uint64_t attr_seq; /* of our last change: a reply from before it must not overwrite attrs */
	union {
		uint64_t write_seq; /* a file: counts UNSTABLE writes: what a COMMIT covers */
		struct {            /* a directory: its name, and fs->moves then (fs_place.h) */
			uint32_t place, place_moves;
		};
	};
	struct fs_unstable
		*unstable;       /* data the server may lose (fs_unstable.h); NULL: never written */
	struct list open_files;  /* of fs_file */
	struct fs_share *shares; /* by `next` (fs_share.h) */
	struct fs_deleg *deleg;  /* the server's promise (fs_deleg.h); NULL: none */
	struct fs_silly *silly_name; /* parent and name of the .nfs file */
	union {
		uint32_t writers; /* a file: open for writing, or on their way to be */
		uint32_t sillies; /* a directory: .nfs files in it */
	};
	_Atomic uint16_t
		facts; /* its file system (fs_facts.h): 1 + nfs4_fs.nr; 0: not known; no lock */
	/* Owners of locks on the server (fs_lock.h), by `next`; fs->locks_lock */
	struct fs_lockowner *_Atomic lockowners;
	struct fs_dentries *dentries; /* of a directory: what the kernel may walk (fs_dentry.h) */
	uint8_t fh[];                 /* fh_len bytes */
};

/* An open file in the lane that looks at it again (fs_validate.h). */
struct fs_watch {
	/* under the lane's lock of that */
	struct list link;
	struct fs_lane *lane; /* NULL: nobody does */
	uint64_t due_s;       /* by the lane's clock */
	/* the lane's */
	uint32_t period_s;
	uint32_t seen; /* inode->inval_want when it was looked at last ... */
	uint32_t told; /* ... and when the kernel was told */
};

/* An open file: fuse_file_info.fh points here. */
struct fs_file {
	struct fs_inode *inode;
	struct list link;         /* inode->open_files, inode->lock */
	struct list all_link;     /* fs->files, table lock */
	struct fs_share *share;   /* whose state it is open by, from its OPEN on; referenced */
	struct nfs4_state *state; /* the share's; NULL: it has none */
	struct rpc_cred cred;     /* of the opener: READ, WRITE and CLOSE go out under it */
	uint32_t share_access;
	int flags;              /* O_* of the open */
	_Atomic uint32_t refs;  /* the handle itself and operations in flight */
				/* under inode->lock */
	bool opening;           /* counted in the inode's */
	bool closing;           /* nothing more is read ahead */
	_Atomic bool released;  /* its RELEASE has come */
	struct fs_ahead *ahead; /* fs_ahead.h; NULL: never read */
	uint32_t unstable;      /* fs_unstable_mems of it: data not committed yet */
	uint32_t writebacks; /* its writebacks (fs_writeback.h): the server has not got them yet */
	int write_err;       /* data was lost: the next fsync or close tells it */
	int next_err;        /* that, or of the rest of a short write: the next write tells it */
	uint32_t abandoned;  /* operations of programs that died (fs_interrupt.c) ... */
	struct fs_op *releasing; /* ... which this RELEASE waits for */
	struct fs_watch watch;
};

#define FS_NAME_MAX 255
#define FS_OP_BARS  2u /* RENAME: two files */

/* One entry of a notify thread's queue. */
struct fs_notice {
	struct list link;
	struct fs_inode *inode; /* referenced */
	off_t off, len;         /* of the pages that go; off < 0: attributes only */
	uint32_t inval;         /* inode->inval_want this fulfils; with off >= 0 */
	struct reactor *reactor;
	struct reactor_msg *told; /* posted there afterwards; NULL: malloced, nobody waits */
};

/*
 * One FUSE request in work: taken from the lane's pool when it is read, given
 * back after its reply when no call is in flight. Its NFS call lies behind it in memory.
 */
struct fs_op {
	struct fs_lane *lane;
	struct nfs4_call *call; /* the one that carries it: its own, for ever (fs_op_of()) */
	struct list pool_link;  /* lane->ops */
	struct list link;
	fuse_req_t req;            /* NULL once replied */
	uint64_t unique, begin_ns; /* of the request */
	uint64_t read_ns;          /* when it was read, by reactor_clock() */
	struct nfs4_times times;
	uint32_t opcode;
	bool on_file;    /* of fs_op_begin_file() */
	bool file_holds; /* op->inode, which the op itself has no reference to */
	bool background; /* counted in fs->background */
	bool abandoned;  /* its program was dying: counted in lane->abandoned, and on_file in the
			  * file's
			  */
	struct rpc_cred cred;
	struct rpcrdma_buf *buf; /* stolen receive buffer or a sink; put with the op */
	void *mem;               /* malloced by a handler (a target, a list); freed with the op */
	bool has_call;           /* call is got from the session */
	bool want_buf;           /* parked for a buffer too */
	bool last_buf;           /* and may have the one that others leave (fs_metalane.h) */
	/*
	 * The operation changes the inode whose attributes it replies (SETATTR): its reply never
	 * waits for an invalidation. The kernel holds back writes until it is answered, and
	 * dropping a dirty page waits for its write.
	 */
	bool own;
	bool shadow; /* of a special file: it is told as the user's who may not use it */
	struct fs_inode *inode, *inode2; /* referenced until the op ends */
	struct fs_file *file, *file2;    /* referenced until the op ends; COPY: from file2 */
	struct nfs4_fh fh, fh2;          /* copies: calls point at these */
	char *name, *name2;              /* FS_NAME_MAX + 1 bytes each, its own */
	struct fuse_file_info fi;
	struct nfs4_attr attr; /* of a reply that waits for an invalidation */
	struct fs_inode *reply_dir, *reply_inode;
	void (*undo)(struct fs_op *op, int err); /* of a reply that nobody takes */
	off_t off;
	size_t size;
	uint64_t attr_seq; /* fs_attr_seq() when the call was started */
	void *work; /* FS_OP_WORK bytes, zeroed: what who handles the request makes of it (fs_op.h)
		     */
	/* Gives back what `work` has; fs_op_end() calls it. NULL: nothing. */
	void (*ended)(struct fs_op *op);
	bool began;               /* its first call was started: it may have been done in part */
	bool gated;               /* counted in inode->unstable->io ... */
	bool gated_abandoned;     /* ... and in abandoned */
	struct fs_commit *commit; /* its own, for ever (fs_unstable.h) */
	/* Runs when the op is taken from the parking list (no request was free before). */
	void (*resume)(struct fs_op *op);
	/*
	 * Set before fs_op_call() by what must not just answer an error when the session is dead;
	 * err: positive errno. Cleared by each start.
	 */
	void (*failed)(struct fs_op *op, int err);
	/* fs_silly_rename() in work */
	struct fs_silly *silly;
	void (*silly_done)(struct fs_op *op, int err);
	/* fs_access_check() in work */
	struct {
		struct fs_inode *inode; /* op->inode or inode2 */
		unsigned int mask;
		void (*then)(struct fs_op *op);
	} may;
	/* fs_op_notify() or fs_rewrite_wait() in work */
	struct fs_notice notice;
	struct reactor_msg notified;
	void (*then)(struct fs_op *op);
	bool alone;                     /* how it enters the share it waits for (fs_share.h) */
	struct fs_writeback *writeback; /* its own, for ever (fs_writeback.h) */
	struct fs_block *block;         /* its own, for ever (fs_block.h) */
	/* fs_deleg.h: inodes that it keeps free of delegations until it ends; referenced */
	struct fs_inode *barred[FS_OP_BARS];
	unsigned int bars;
	/* fs_deleg_return.c: an operation that returns this one */
	struct fs_deleg *deleg;
	struct fs_share *claims;
	uint32_t round;
};

/* How a stopping lane ends: each step follows when the one before is complete. */
enum fs_lane_state {
	FS_LANE_NEW,
	FS_LANE_RUNS,
	FS_LANE_QUIET,  /* stopping; reads on until the notify threads are idle (fs_lane.c) */
	FS_LANE_DRAINS, /* reads no more; operations end, left-over files are closed */
	FS_LANE_IDLE,
};

struct fs_kick; /* fs_lane.c */
struct fs_part;
struct fs_forward;

struct fs_lane {
	struct fs *fs;
	struct list link; /* fs->lanes, fs->lanes_lock */
	struct reactor *reactor;
	struct nfs4_session *sess;
	struct rpcrdma *xprt;
	struct stats *stats;
	fs_lane_report *report;
	void *report_ctx;
	struct reactor_fd src;     /* /dev/fuse */
	struct rpcrdma_buf *rxbuf; /* where the next request is received; NULL: taken by a WRITE */
	struct list ops;           /* of fs_op.pool_link: all that are its own */
	struct list free_ops;      /* of fs_op.link */
	unsigned int ops_cnt, ops_free;
	unsigned int spare_cnt; /* of ops_cnt: added later (fs_interrupt.c) */
	unsigned int abandoned;
	unsigned int notify_waits; /* operations that wait for the notify thread */
	struct list parked;        /* ops waiting for a request or a buffer */
	struct reactor_timer idle_timer;
	struct reactor_timer interrupt_timer;
	/* of the request that was read last */
	uint64_t unique, read_ns;
	uint32_t opcode;
	_Atomic uint64_t interrupted; /* another lane read a FUSE_INTERRUPT of this one; 0: none */
	struct fs_kick *kick;
	struct fs_forward *forward; /* fs_metalane.h; NULL: without option metalane */
	enum fs_lane_state state;
	unsigned int half_bufs; /* half of its data buffers: as many may stay unstable */
	/* Of its parts, made with it (fs_part.lane_made). */
	struct fs_unstable_lane *unstable;
	struct fs_commit_lane *commit;
	struct fs_writeback_lane *writeback;
	struct fs_ahead_lane *ahead;
	struct fs_deleg_lane *deleg;
	struct fs_lockwait_lane *lockwait;
	struct fs_copywait_lane *copywait;
	struct fs_validate *validate;
	/* fs_lane.c: how many requests to read at once; so many were there, when it counted so many
	 */
	unsigned int read_batch;
	bool read_full;
	uint64_t read_lulls;  /* of reactor_lulls() */
	_Atomic bool reading; /* a request may be read, and nobody know of it */
	bool receiving;       /* a handler runs: rxbuf is in use */
	bool stalled;         /* stopped reading for want of an op, buffer or call */
	bool again;           /* fs_lane_turn() was called while it ran */
	bool drained;         /* counted in fs->lanes_drained */
	bool turning;         /* guards against recursion in fs_lane_turn() */
	bool last;            /* the last lane to drain: it closes what is left open */
};

/* Names that were told as shadows last, by number (fs_special.c). */
#define FS_SHADOWED 256u

struct fs {
	struct fs_conf conf;
	const struct fs_part *const *parts; /* fs_part.h; ends with NULL */
	struct nfs4_client *client;
	struct fuse_session *se;
	int fd, mount_fd; /* the latter of a mountpoint /dev/fd/N; else -1 */
	bool mounted;
	bool init_done; /* the INIT reply went out */
	int init_err;
	uint32_t init_flags; /* what the kernel offered */
	uint32_t max_write, max_read;
	size_t data_size; /* smallest of the lanes */
	_Atomic bool exited;
	struct fs_inode *root;
	uint64_t fsid_major, fsid_minor;            /* of the root */
	struct nfs4_fs unknown;                     /* facts of a file system that are not known */
	struct fs_table *table;                     /* fs_inode.c */
	struct fs_notify *pages, *attrs, *dentries; /* fs_notify.c: the threads */
	bool expire_dentries;        /* the kernel can end a name's time and no more */
	_Atomic uint64_t dentry_seq; /* names found before: their time may not begin */
	struct list files;           /* of fs_file by all_link; table lock */
	struct list dirs;            /* of fs_open_dir (fs_place.h); table lock */
	_Atomic uint32_t moves;      /* counts renames; changed with the table lock */
	_Atomic uint32_t files_open, files_opening;
	_Atomic uint32_t silly_cnt;    /* last counter of a .nfs name */
	_Atomic uint32_t sillies;      /* .nfs files that are there, or on their way */
	_Atomic uint32_t sillies_gone; /* counts those that were */
	_Atomic uint32_t releasing;  /* files that are being closed, and removed if they are .nfs */
	_Atomic uint32_t closes;     /* counts those that were */
	unsigned int max_background; /* unanswered ones, as long as the kernel keeps none back */
	_Atomic unsigned int background; /* unanswered requests that may be of those */
	_Atomic uint64_t full_ns;        /* when there were so many last (reactor_now); 0: never */
	_Atomic uint64_t lost_bytes;     /* fs_losses() */
	_Atomic uint32_t lost_files;
	struct mutex lanes_lock;
	struct list lanes;
	unsigned int lanes_cnt, lanes_drained; /* lanes_lock */
	struct fs_lane *metalane;              /* the lane for metadata, or NULL (fs_metalane.h) */
	_Atomic unsigned int readers;          /* lanes that read, or will */
	_Atomic unsigned int forwarded;        /* requests on their way to it */
	_Atomic bool metalane_full;            /* it has no operation left */
	dev_t dev;
	struct mutex unmount_lock; /* mounted */
	_Atomic bool ops_log;      /* fs_set_ops_log() */
	struct fs_covers covers;   /* what is mounted on our files */
	_Atomic uint64_t shadowed[FS_SHADOWED];
	/* Of the rooms above (fs.c) */
	struct fs_sync *sync;
	struct fs_locks *locks;
	struct fs_delegs *delegs;
	struct fs_clones *clones;
};

#endif
