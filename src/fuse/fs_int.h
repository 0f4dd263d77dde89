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
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fs.h"
#include "nfs4_held.h"
#include "log.h"

/*
 * What the kernel holds a nodeid of. The nodeid is the inode's address (the
 * root: FUSE_ROOT_ID). There may be millions: at most 512 bytes each, the longest filehandle and
 * the table included; its name in fs_names.h comes to that.
 */
struct fs_inode {
	struct fs_inode *hash_next;
	pthread_mutex_t lock;   /* everything below `refs` */
	uint64_t nlookup;       /* the kernel's references; table lock */
	uint32_t refs;          /* operations and open files in flight; table lock */
	_Atomic uint32_t named; /* where its name was noted last (fs_names.h); no lock */
	uint8_t fh_len;
	bool unhashed;         /* table lock: the filehandle names another file, or none, now */
	bool attr_known;       /* attr holds all that a stat needs */
	bool deleted;          /* unlinked: attributes are not refreshed any more */
	bool silly;            /* renamed to .nfs... on unlink while open */
	bool opened;           /* was open once: the kernel may hold pages of it */
	uint32_t opens;        /* open files */
	uint32_t inval_want;   /* changes by others that make the kernel's pages stale */
	struct nfs4_attr attr; /* the newest attributes seen */
	uint64_t attr_ns;      /* when they arrived (reactor_now) */
	uint64_t attr_to_ns;   /* start of the period after which attr_to_s may double */
	uint32_t attr_to_s;    /* how long they are good: doubles while nothing changes */
	uint32_t inval_done;   /* how many of inval_want the kernel was told */
	uint64_t data_change;  /* change attribute the kernel's cached pages belong to; 0: none */
	uint64_t told_change;  /* change attribute of the attributes the kernel holds; 0: none */
	uint64_t attr_seq; /* of our last change: a reply from before it must not overwrite attrs */
	uint64_t write_seq;       /* counts UNSTABLE writes: what a COMMIT covers */
	struct fs_retain *retain; /* data the server may lose (fs_retain.h); NULL: never written */
	struct list open_files;   /* of fs_file */
	struct fs_share *shares;  /* by `next` (fs_share.h) */
	struct fs_deleg *deleg;   /* the server's promise (fs_deleg.h); NULL: none */
	uint32_t writers;         /* files open for writing, or on their way to be */
	uint32_t deleg_bars;      /* operations on their way beside which none is taken */
	struct fs_silly *silly_name; /* parent and name of the .nfs file */
	uint32_t sillies;            /* a directory: .nfs files in it */
	/* Owners of locks on the server (fs_lock.h), by `next`; fs->locks_lock */
	struct fs_lockowner *_Atomic lockowners;
	struct fs_names *names; /* of a directory: what the kernel may walk (fs_names.h) */
	uint8_t fh[];           /* fh_len bytes */
};

/* An open file: fuse_file_info.fh points here. */
struct fs_file {
	struct fs_inode *inode;
	struct list link;       /* inode->open_files, inode->lock */
	struct list all_link;   /* fs->files, table lock */
	struct fs_share *share; /* whose state it is open by, from its OPEN on; referenced */
	struct rpc_cred cred;   /* of the opener: READ, WRITE and CLOSE go out under it */
	uint32_t share_access;
	int flags;             /* O_* of the open */
	_Atomic uint32_t refs; /* the handle itself and operations in flight */
	/* under inode->lock */
	uint32_t kept;           /* fs_keeps of it: UNSTABLE data not committed yet */
	uint32_t behind;         /* its carriers (fs_dirty.h): the server has not got them yet */
	int write_err;           /* reported once by fsync, flush or the next write */
	uint32_t unheard;        /* operations of programs that died (fs_interrupt.c) ... */
	struct fs_op *releasing; /* ... which this RELEASE waits for */
};

#define FS_NAME_MAX 255
#define FS_OP_BARS  2u /* RENAME: two files */

/* What a lock is asked for; len: or NFS4_LOCK_TO_END. */
struct fs_lockrange {
	uint64_t off, len;
	bool write;
};

/* One entry of the notify thread's queue; embedded in an op that waits for it. */
struct fs_notice {
	struct list link;
	struct fs_inode *inode; /* referenced while queued */
	off_t off, len;
	uint32_t inval;   /* inode->inval_want this fulfils; with off >= 0 */
	struct fs_op *op; /* continues on its lane afterwards; NULL: malloced, nobody waits */
};

/*
 * One FUSE request in work: taken from the lane's pool when it is read, given
 * back after its reply when no call is in flight. Embeds the NFS call.
 */
struct fs_op {
	struct nfs4_call call; /* first */
	struct fs_lane *lane;
	struct list link;
	fuse_req_t req;            /* NULL once replied */
	uint64_t unique, begin_ns; /* of the request */
	bool on_file;              /* of fs_op_begin_file() */
	bool unheard; /* its program was dying: counted in lane->unheard, and on_file in the file's
		       */
	struct rpc_cred cred;
	struct rpcrdma_buf *buf; /* stolen receive buffer or a sink; put with the op */
	void *mem;               /* malloced by a handler (a target, a list); freed with the op */
	bool has_call;           /* call is got from the session */
	bool want_buf;           /* parked for a buffer too */
	/*
	 * The operation changes the inode whose attributes it replies (SETATTR): its reply never
	 * waits for an invalidation. The kernel holds back writes until it is answered, and
	 * dropping a dirty page waits for its write.
	 */
	bool own;
	struct fs_inode *inode, *inode2; /* referenced until the op ends */
	struct fs_file *file, *file2;    /* referenced until the op ends; COPY: from file2 */
	struct nfs4_fh fh, fh2;          /* copies: calls point at these */
	char name[FS_NAME_MAX + 1], name2[FS_NAME_MAX + 1];
	struct fuse_file_info fi;
	struct nfs4_attr attr; /* of a reply that waits for an invalidation */
	struct fs_inode *reply_dir, *reply_inode;
	off_t off;
	size_t size;
	uint64_t attr_seq; /* fs_attr_seq() when the call was started */
	union {
		struct {
			const uint8_t *data; /* WRITE: the payload in buf */
			size_t done;
			bool sync;
			bool unstable; /* WRITE: a part is not durable yet ... */
			bool torn;     /* ... and its parts met different servers */
			struct nfs4_verf verf;
			struct fs_keep *keep; /* WRITE: of fs_retain_reserve() */
			struct fs_extent *ext, *tail;
			bool checked; /* READ: waited for what was lost */
			bool grows; /* ... data behind its begin may come while it is on its way */
		} rw;
		struct {
			uint32_t mode, umask;
		} create;
		struct {
			int to_set;
			struct stat st;
		} setattr;
		struct {
			enum nfs4_ftype type;
			mode_t mode, umask;
			dev_t rdev;
			struct nfs4_state state; /* MKNOD of a regular file */
		} make;
		struct {
			bool hole;    /* SEEK_HOLE, else SEEK_DATA */
			bool written; /* the kernel has written what it held there */
		} seek;
		struct { /* RMDIR, while it waits for the end of .nfs files */
			struct reactor_timer tick;
			uint64_t since;
			uint32_t gone;     /* fs->sillies_gone when the server was asked */
			unsigned int asks; /* whose answer a .nfs file may have outlived */
		} rmdir;
		struct {                         /* RENAME */
			struct fs_inode *target; /* referenced until it is out of the way */
			struct fs_inode *source; /* referenced until nothing is in its way */
		} rename;
		struct {
			bool plus;
			bool asked;         /* the server has answered this request */
			bool bad;           /* with a cookie that cannot be */
			bool scan, scanned; /* the cookie was lost: reading from the start */
			uint64_t cookie;    /* to ask with, and what came with it */
			struct nfs4_verf verf;
			struct fs_dirpack *pack;
		} dir;
		struct {
			uint32_t len; /* of the value, or of the names so far, in mem */
			enum nfs4_setxattr_option option;
			uint64_t cookie; /* LISTXATTR: to ask with */
			bool user;       /* a name of user.* */
			int refusal;     /* errno for who has the right to ask for it */
			bool over;       /* more names than Linux can list */
		} xattr;
		struct {                            /* fs_lock.h; FLUSH and RELEASE too */
			struct fs_lockowner *owner; /* referenced */
			struct fs_lockwait *wait;   /* whose request it is; NULL: op->req */
			struct fs_lockrange range;
			bool turn;         /* it is this operation's, or it waits for it */
			bool held;         /* a part of the range before it asked, or all */
			unsigned int asks; /* that were denied while files were being closed */
			uint32_t closes;   /* fs->closes when the server was asked */
			uint64_t number;   /* LOCKT: of the owner */
			uint64_t off, len; /* LOCKU in work, and what follows it */
			void (*unlocked)(struct fs_op *op, int err);
			struct nfs4_denied denied;
			int err;
			void (*then)(struct fs_op *op, int err);
			bool whole; /* RELEASE: of the share's owners */
			void (*released)(struct fs_op *op);
		} lock;
		uint64_t num;
		void *ptr;
	} u;
	/* Gives back what u.dir has; fs_op_end() calls it. NULL: nothing. */
	void (*ended)(struct fs_op *op);
	bool began;         /* its first call was started: it may have been done in part */
	bool gated;         /* counted in inode->retain->io ... */
	bool gated_unheard; /* ... and in unheard */
	struct {            /* fs_commit() in work */
		void (*done)(struct fs_op *op, int err);
		void (*rewritten)(struct fs_op *op);
		uint64_t seq, losses; /* inode->write_seq and retain->losses when it was sent */
		unsigned int tries;   /* that found data lost */
		bool durable;         /* it is written again FILE_SYNC */
		struct fs_file *file; /* whose data is written again: referenced */
		uint64_t off;
		uint32_t len, part; /* and how much of it is written */
		struct nfs4_verf verf;
		uint32_t gen;
	} commit;
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
	/* fs_notify_then() or fs_retain_wait() in work */
	struct fs_notice notice;
	struct reactor_msg notified;
	void (*then)(struct fs_op *op);
	bool alone;               /* how it enters the share it waits for (fs_share.h) */
	struct {                  /* fs_dirty.h: a carrier, or one that waits for carriers */
		struct list link; /* retain->behind */
		uint64_t seq;     /* of the carrier; of the last one to wait for */
		uint64_t off, end;
		struct list open_link; /* lane->dirty_open */
		uint64_t since;        /* ... and from when on it is */
		void (*send)(struct fs_op *op);
	} dirty;
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
	FS_LANE_QUIET,  /* stopping; reads on until the notify threads are idle (fs_loop.c) */
	FS_LANE_DRAINS, /* reads no more; operations end, left-over files are closed */
	FS_LANE_IDLE,
};

struct fs_kick; /* fs_loop.c */

struct fs_lane {
	struct fs *fs;
	struct list link; /* fs->lanes, fs->lanes_lock */
	struct reactor *reactor;
	struct nfs4_sess *sess;
	struct rpcrdma *xprt;
	struct stats *stats;
	struct fs_lane_ops lops;
	void *lops_ctx;
	struct reactor_fd src;     /* /dev/fuse */
	struct rpcrdma_buf *rxbuf; /* where the next request is received; NULL: taken by a WRITE */
	struct fs_op *ops;         /* pool */
	unsigned int ops_cnt, ops_free;
	struct list free_ops;
	struct list spare_ops; /* fs_interrupt.c; counted in ops_cnt */
	unsigned int spare_cnt, unheard;
	struct list parked; /* ops waiting for a request or a buffer */
	struct reactor_timer idle_timer;
	struct reactor_timer interrupt_timer;
	uint64_t unique;              /* of the request that was read last */
	_Atomic uint64_t interrupted; /* another lane read a FUSE_INTERRUPT of this one; 0: none */
	struct fs_kick *kick;
	enum fs_lane_state state;
	/* retained data (fs_retain.h): keep_lock */
	pthread_mutex_t keep_lock;
	struct list kept; /* of fs_keep, oldest first */
	unsigned int keep_bufs, keep_bufs_max;
	uint32_t keep_bytes;
	uint32_t keep_gen;    /* nfs4_client_generation() that all of it is from */
	struct list returned; /* buffers that other lanes released */
	struct reactor_msg return_msg;
	bool return_posted;
	/* write-behind (fs_dirty.h) */
	struct list dirty_open; /* of fs_op.dirty.open_link, oldest first */
	struct reactor_timer dirty_timer;
	unsigned int dirty_cnt, dirty_max; /* carriers */
	_Atomic uint64_t dirty_bytes;      /* in them; other lanes fill them too */
	/* requests that sleep until they have a lock (fs_lock.h) */
	struct list lock_waits; /* of fs_lockwait */
	struct reactor_timer lock_timer;
	unsigned int lock_tries;  /* operations that ask for them again */
	_Atomic bool lock_due;    /* some are to be looked at ... */
	_Atomic bool lock_signal; /* ... because a signal came */
	/* delegations that this lane returns (fs_deleg.h) */
	struct fs_op *deleg_pool;
	struct list deleg_ops; /* of fs_op.link: those of deleg_pool that are free */
	unsigned int deleg_ops_busy;
	unsigned int delegs;     /* there are */
	bool delegs_drain;       /* all are due */
	struct list delegs_due;  /* of fs_deleg.due: to be returned, or lost; fs->deleg_lock */
	struct list delegs_late; /* the same: to be tried again */
	struct reactor_timer deleg_timer;
	/* COMMIT in the background (fs_commit.c) */
	bool committing;
	uint64_t commit_not_before;
	/* fs_copywait.c: operations that wait for the server to copy; none does as long as its
	 * callbacks do not come */
	unsigned int copies;
	uint64_t copy_no_wait_until;
	bool receiving; /* a handler runs: rxbuf is in use */
	bool stalled;   /* stopped reading for want of an op, buffer or call */
	bool again;     /* fs_lane_turn() was called while it ran */
	bool drained;   /* counted in fs->lanes_drained */
	bool turning;   /* guards against recursion in fs_lane_turn() */
	bool last;      /* the last lane to drain: it closes what is left open */
};

struct fs_fsid {
	uint64_t major, minor;
};
#define FS_NO_CLONE 8u

struct fs {
	struct fs_conf conf;
	struct nfs4_client *client;
	struct fuse_session *se;
	int fd;
	bool mounted;
	bool init_done; /* the INIT reply went out */
	int init_err;
	uint32_t init_flags; /* what the kernel offered */
	uint32_t max_write, max_read;
	size_t data_size; /* smallest of the lanes */
	_Atomic bool exited;
	struct fs_inode *root;
	uint64_t fsid_major, fsid_minor;  /* of the root */
	struct fs_table *table;           /* fs_inode.c */
	struct fs_notify *notify, *names; /* fs_notify.c: the two threads */
	bool expire_names;                /* the kernel can end a name's time and no more */
	_Atomic uint64_t names_seq;       /* names found before: their time may not begin */
	struct list files;                /* of fs_file by all_link; table lock */
	struct list dirs;                 /* open directories (fs_dir.c); table lock */
	_Atomic uint32_t files_open;
	_Atomic uint32_t silly_cnt;    /* last counter of a .nfs name */
	_Atomic uint32_t sillies;      /* .nfs files that are there, or on their way */
	_Atomic uint32_t sillies_gone; /* counts those that were */
	_Atomic uint32_t releasing; /* files that are being closed, and removed if they are .nfs */
	_Atomic uint32_t closes;    /* counts those that were */
	pthread_mutex_t lanes_lock;
	struct list lanes;
	unsigned int lanes_cnt, lanes_drained; /* lanes_lock */
	pthread_mutex_t locks_lock;
	struct list lock_waits; /* of fs_lockwait, oldest first; locks_lock */
	uint64_t lock_frees;    /* counts locks that went; locks_lock */
	uint64_t lock_poll_ns;  /* after so long one that sleeps is tried again, then less often */
	dev_t dev;
	pthread_mutex_t deleg_lock;
	struct list delegs;           /* of fs_deleg.lru, least recently used first; deleg_lock */
	_Atomic uint32_t delegs_cnt;  /* of those */
	_Atomic bool no_write_delegs; /* who asked for one got one to read */
	uint32_t delegs_max;          /* more than so many: the idle ones go */
	uint64_t deleg_idle_ns; /* one that nothing is open by goes after so long; 0: a lease */
	pthread_mutex_t clone_lock;
	struct fs_fsid no_clone[FS_NO_CLONE]; /* have none (fs_copy.c); clone_lock */
	unsigned int no_clone_cnt;            /* seen so far: the newest are remembered */
	pthread_mutex_t unmount_lock;         /* mounted */
};

/* The lane whose thread this is; handlers are called by libfuse without one. */
struct fs_lane *fs_lane_current(void);
void fs_lane_set_current(struct fs_lane *l);

/* ---- fs_inode.c: nodeid <-> filehandle, lookup counts. Any lane. ---- */

int fs_table_new(struct fs *fs);
void fs_table_free(struct fs *fs); /* forgets everything */
/* Short: for fs->files and the table itself. Inside it only an inode's lock may be taken. */
void fs_table_lock(struct fs *fs);
void fs_table_unlock(struct fs *fs);
/*
 * fs_inode_lookup - the inode of a filehandle, made if new
 *
 * The same filehandle is the same inode; another fileid, fsid or type under it makes it stale.
 * attr is compared only (may be NULL): fs_attr_update() notes it. nlookup: references for the
 * kernel to add (0 or 1). The returned inode has one `refs` more: fs_inode_put(), or hand it to
 * the op (op->inode2). NULL: out of memory or no filehandle.
 */
struct fs_inode *fs_inode_lookup(struct fs *fs, const struct nfs4_fh *fh,
	const struct nfs4_attr *attr, unsigned int nlookup);
/* Only if it exists (unlink and rename: is the victim open?); takes a reference. */
struct fs_inode *fs_inode_find(struct fs *fs, const struct nfs4_fh *fh);
/* By nodeid; takes a reference. Never NULL for a nodeid the kernel holds. */
struct fs_inode *fs_inode_get(struct fs *fs, fuse_ino_t ino);
struct fs_inode *fs_inode_ref(struct fs *fs, struct fs_inode *in);
/* NULL is accepted. */
void fs_inode_put(struct fs *fs, struct fs_inode *in);
void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup);
/* Does the kernel hold it no more? */
bool fs_inode_is_forgotten(struct fs *fs, struct fs_inode *in);
fuse_ino_t fs_inode_ino(const struct fs *fs, const struct fs_inode *in);
void fs_inode_fh(const struct fs_inode *in, struct nfs4_fh *ret_fh);
uint64_t fs_inode_fileid(struct fs_inode *in);
/* No lookup by filehandle finds it any more; the kernel's references stay. */
void fs_inode_unhash(struct fs *fs, struct fs_inode *in);

/* ---- fs_attr.c: NFS attributes <-> struct stat, cache times (nfs(5) ac*) ---- */

void fs_attr_to_stat(const struct fs *fs, const struct nfs4_attr *a, struct stat *st);
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
 * (WRITE, SETATTR, LINK; the directory of CREATE, REMOVE, RENAME...) Counts as a local change, so
 * fs_attr_changed() is not needed beside it. Fields that a->valid lacks are kept, but then the
 * whole expires; a->valid == 0 is fs_attr_changed().
 */
void fs_attr_update_own(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns);
/*
 * Nobody changes it from here on without our knowing: attributes on their way may be older. Inode
 * lock held.
 */
void fs_attr_fence(struct fs_inode *in);
/* Something we did changed the inode: attributes on their way are older, cached ones expire. */
void fs_attr_changed(struct fs_inode *in);
/* Cached attributes still good? Then copied. */
bool fs_attr_cached(struct fs *fs, struct fs_inode *in, struct nfs4_attr *ret, uint64_t now_ns);
/*
 * fs_attr_newest - of attributes that a call brought, what may be told of them now
 *
 * seq: as for fs_attr_update(). Those that are cached, if they are good; else what came, but for a
 * size from before a WRITE of ours: the kernel would cut off what it was told is written.
 */
void fs_attr_newest(struct fs *fs, struct fs_inode *in, struct nfs4_attr *a, uint64_t seq,
	uint64_t now_ns);
/* Seconds the kernel may cache the attributes of an inode; a name in `dir`; that a name is absent.
 */
double fs_attr_timeout(struct fs *fs, struct fs_inode *in, uint64_t now_ns);
double fs_entry_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
/* The same with the lock of the inode or directory held. */
double fs_attr_timeout_locked(struct fs *fs, struct fs_inode *in, uint64_t now_ns);
double fs_entry_timeout_locked(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
/* With a directory's lock held: may its names be walked without asking, by whoever has them? */
bool fs_names_may_stay(const struct fs *fs, const struct fs_inode *dir);
double fs_negative_timeout(struct fs *fs, struct fs_inode *dir, uint64_t now_ns);
/*
 * fs_entry_fill - what a LOOKUP or READDIRPLUS tells the kernel about a name in `dir`
 *
 * in holds the kernel's lookup count already (fs_inode_lookup(..., 1)). seq: as for
 * fs_attr_update(), of the call that found the name.
 * Returns: false: the kernel holds pages of an older version of this file, which must go before it
 * learns the new size: READDIRPLUS then packs the name with ino 0 and takes the lookup back;
 * fs_reply_entry() does it right by itself.
 */
bool fs_entry_fill(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e);
/* The same without asking (fs_reply.c, which has waited). */
void fs_entry_tell(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name,
	const struct nfs4_attr *a, uint64_t seq, uint64_t now_ns, struct fuse_entry_param *ret_e);
/* Does the kernel hold pages of an older version? */
bool fs_pages_stale(struct fs_inode *in);
/* The kernel was given attributes (timeout > 0) or holds none any more (0). */
void fs_attr_told(struct fs_inode *in, const struct nfs4_attr *a, double timeout);

/* ---- fs_op.c: the pool, parking, references ---- */

/*
 * fs_op_begin - an op for the request a handler was called with
 *
 * The loop reads only when an op is free: never NULL. Takes the caller's credential from req;
 * op->inode is the inode of `ino`.
 */
struct fs_op *fs_op_begin(fuse_req_t req, fuse_ino_t ino);
/* For an operation on an open file: its inode, and the opener's credential. */
struct fs_op *fs_op_begin_file(fuse_req_t req, const struct fuse_file_info *fi);
/* Without a request (stop, tests). NULL: none free. */
struct fs_op *fs_op_new(struct fs_lane *l);
/*
 * fs_op_call - get a call for the op, then run `start` (which fills op->call and starts it)
 *
 * At once if the op still has the call of its last operation; parks the op when no request is
 * free. Sets op->fh from op->inode and fh2 from op->inode2 (where they are), op->attr_seq, and
 * call.cred = &op->cred before `start`. When the session is dead: op->failed, or an error reply.
 */
void fs_op_call(struct fs_op *op, void (*start)(struct fs_op *op));
/* Like fs_op_call() for an op that needs a data buffer (op->buf) first. */
void fs_op_call_buf(struct fs_op *op, void (*start)(struct fs_op *op));
/* After the reply: everything the op holds is given back. */
void fs_op_end(struct fs_op *op);
/* Makes an op of no pool ready; what ends it is its owner's (fs_deleg_return.c). */
void fs_op_init(struct fs_op *op, struct fs_lane *l);
/* Gives the call back early: the op is about to wait for something else. */
void fs_op_put_call(struct fs_op *op);
/* Any lane: op->then runs on the op's lane. */
void fs_op_wake(struct fs_op *op);
enum fs_op_tried {
	FS_OP_WENT,
	FS_OP_NO_CALL,
	FS_OP_NO_BUF
};
/* fs_loop.c: starts a parked op if what it waits for is there. */
enum fs_op_tried fs_op_try(struct fs_op *op);
#define fs_op_of(callp) (container_of(callp, struct fs_op, call))
static inline uint64_t fs_op_now(const struct fs_op *op)
{
	return reactor_now(op->lane->reactor);
}
/* Nobody waits for it any more, and nothing of it was done: then nothing need be. */
static inline bool fs_op_is_void(const struct fs_op *op)
{
	return op->unheard && !op->began;
}
/* Copies a name into op->name or name2; false: longer than 255 bytes (ENAMETOOLONG). */
bool fs_op_name(char dst[FS_NAME_MAX + 1], const char *name);

/* ---- fs_loop.c ---- */

/* Something was given back: resumes parked ops, then reading, then a stop in progress. */
void fs_lane_turn(struct fs_lane *l);
/* It takes a turn, and looks for requests. Any thread, while the lane has something in work. */
void fs_lane_kick(struct fs_lane *l);

/* ---- fs_interrupt.c: programs that die while they wait ---- */

void fs_interrupt_init(struct fs_lane *l);
void fs_interrupt_fini(struct fs_lane *l);
/* The op ends: what waits for that goes on. */
void fs_interrupt_ended(struct fs_op *op);
/*
 * Are operations of programs that died still on their way with op->file? Then `then` runs on the
 * op's lane when they have ended: the server must not close it before.
 */
bool fs_interrupt_release_waits(struct fs_op *op, void (*then)(struct fs_op *op));
/* One operation more, if operations go on unheard. False: no. */
bool fs_interrupt_spare(struct fs_lane *l);
/* The op's request begins to wait. */
void fs_interrupt_watch(struct fs_op *op);
/* It is about to be answered before the op has ended. */
void fs_interrupt_unheard(struct fs_op *op);
/* A FUSE_INTERRUPT of this request came: if it is this lane's and its program is dying, EINTR. */
void fs_interrupt_now(struct fs_lane *l, uint64_t unique);
/*
 * Does anybody hear the answer of a FLUSH? Not who is on its way out: the kernel closes its files.
 * Reads /proc.
 */
bool fs_interrupt_hears(const struct fs_op *op);
/* Has this thread a signal that ends it? */
bool fs_proc_is_dying(pid_t tid);
/* Pure: of /proc/PID/status, is a signal pending that will end it? */
bool fs_proc_is_killed(const char *status);
/* Pure: of /proc/PID/stat, is it on its way out? And because of a signal? */
bool fs_proc_is_exiting(const char *stat);
bool fs_proc_dies_of_signal(const char *stat);

/* ---- fs_file.c: open files ---- */

/* Takes a reference on the inode; not yet among its open files. NULL: out of memory. */
struct fs_file *fs_file_new(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags);
/* Its share is open for it now: counts there, and in inode->opens until fs_file_closed(). */
void fs_file_opened(struct fs *fs, struct fs_file *f);
void fs_file_closed(struct fs *fs, struct fs_file *f);
/* At the end: any file that is still open, with its handle's reference. NULL: none. */
struct fs_file *fs_file_take_any(struct fs *fs);
struct fs_file *fs_file_get(struct fs_file *f);
void fs_file_put(struct fs *fs, struct fs_file *f);
static inline struct fs_file *fs_file_of(const struct fuse_file_info *fi)
{
	return (struct fs_file *)(uintptr_t)fi->fh;
}
/* It wrote what the server has not got, or not durable. */
bool fs_file_is_dirty(struct fs_file *f);
/*
 * Does op->off, op->size end past the server's maxfilesize? The kernel compares with it where it
 * knows it, which it does not of a FUSE mount.
 */
bool fs_is_too_big(const struct fs_op *op);
bool fs_file_has_error(struct fs_file *f);
/* The error to report on this handle, once; 0: none. */
int fs_file_take_error(struct fs_file *f);

/* ---- fs_open.c, fs_create.c ---- */

uint32_t fs_share_access(int flags);
/* What ACCESS said of a file that is opened with `flags`. */
bool fs_open_allowed(int flags, uint32_t access);
/*
 * Are the kernel's pages of op->inode those of a->change? From now on they are: the caller sees to
 * it that others are dropped. compare: or whichever there are will do (nocto).
 */
bool fs_pages_good(struct fs_op *op, const struct nfs4_attr *a, bool compare);
/* Does the kernel hold attributes of another version than a's? */
bool fs_attr_told_other(struct fs_inode *in, const struct nfs4_attr *a);
/* Replies the error (0: the request is answered already) and closes op->file again. */
void fs_open_undo(struct fs_op *op, int err);
void fs_create_undo(struct fs_op *op, int err);

/* ---- fs_commit.c, fs_release.c ---- */

/*
 * fs_commit - all that was written to op->inode is at the server, and durable, then `done`
 *
 * What the server lost meanwhile is written again first. err: positive errno of the COMMIT or 0;
 * what could not be written again is an error of the handles (fs_file_take_error()).
 */
void fs_commit(struct fs_op *op, void (*done)(struct fs_op *op, int err));
/*
 * COMMIT if dirty, CLOSE, remove the .nfs file after the last; ends the op. op->file's reference
 * of the handle is given back with it.
 */
void fs_release(struct fs_op *op);

/* ---- fs_silly.c: unlink of an open file, as the kernel's client does it ---- */

#define FS_SILLY_NAME (4 + 16 + 8 + 1)
/* A name that nobody else uses or knows, of the form of the kernel's client's. */
void fs_silly_name(struct fs *fs, uint64_t fileid, char ret[FS_SILLY_NAME]);
/* Is there a .nfs file of ours in that directory, or soon, or not gone yet? */
bool fs_silly_left(struct fs_inode *dir);
/* Is it open here, and its name still its own? Then rename instead of remove. */
bool fs_silly_needed(struct fs_inode *in);
/*
 * fs_silly_rename - rename dir/name, which is `in`, to dir/.nfsXXXX
 *
 * The file goes with its last close. Uses op->call; dir and in stay referenced by the caller
 * until `done`, name is copied. err: positive errno or 0.
 */
void fs_silly_rename(struct fs_op *op, struct fs_inode *dir, const char *name, struct fs_inode *in,
	void (*done)(struct fs_op *op, int err));
/* After a close: removes the .nfs file of op->inode if that was the last, then ends the op. */
void fs_silly_finish(struct fs_op *op);

/* ---- fs_reply.c: each op replies exactly once; these end the op ---- */

/*
 * A request that was answered already (fs_interrupt.c) is answered to nobody: then these take back
 * what the answer would have given, as they do when the kernel does not take it.
 *
 * Inodes given here must be referenced by the op (inode, inode2). Attributes of a file whose pages
 * in the kernel are stale are told only after the notify thread has dropped the pages.
 */
void fs_reply_err(struct fs_op *op, int err); /* err: positive errno, 0: success without a body */
/* in: with the kernel's lookup count taken (fs_inode_lookup(..., 1)). */
void fs_reply_entry(
	struct fs_op *op, struct fs_inode *dir, struct fs_inode *in, const struct nfs4_attr *a);
void fs_reply_negative(struct fs_op *op, struct fs_inode *dir);
void fs_reply_attr(struct fs_op *op, struct fs_inode *in, const struct nfs4_attr *a);
void fs_reply_open(struct fs_op *op, struct fs_file *f);
void fs_reply_create(struct fs_op *op, struct fs_inode *dir, struct fs_inode *in,
	const struct nfs4_attr *a, struct fs_file *f);
/* False: nobody took the handle, which is the caller's again. */
bool fs_reply_opendir(struct fs_op *op, const struct fuse_file_info *fi);
void fs_reply_data(struct fs_op *op, const void *data, size_t len);
void fs_reply_length(struct fs_op *op, size_t len); /* of an xattr, or of their names */
void fs_reply_write(struct fs_op *op, size_t count);
/* Answers without ending the op (fs_dirty.h). */
void fs_reply_write_early(struct fs_op *op, size_t count);
void fs_reply_readlink(struct fs_op *op, const char *target);
void fs_reply_statfs(struct fs_op *op, const struct statvfs *st);
void fs_reply_lock(struct fs_op *op, const struct flock *lock);
void fs_reply_lseek(struct fs_op *op, off_t off);
/*
 * Answers without ending the op (RELEASE): it goes on without a request. Nothing if it has none.
 * False: nobody took the answer.
 */
bool fs_reply_early(struct fs_op *op, int err);

/* ---- fs_cred.c ---- */

/* uid, gid and supplementary groups of the caller (/proc/PID/status, cached a moment). */
void fs_cred_of(fuse_req_t req, struct rpc_cred *ret_cred);
/* Pure: the "Groups:" line of a status file. Returns the number put into gids, at most max. */
unsigned int fs_cred_parse_groups(const char *status, uint32_t *gids, unsigned int max);

/* ---- fs_dir.c ---- */

/* At the end: directories that the kernel never closed. */
void fs_dir_put_all(struct fs *fs);

/* ---- fs_notify.c: kernel invalidations, from their own threads. Any lane. ---- */

int fs_notify_start(struct fs *fs);
/* No new ones: what asks for one goes on at once. Those in work end as long as lanes read. */
void fs_notify_quiesce(struct fs *fs);
bool fs_notify_busy(struct fs *fs);
void fs_notify_stop(struct fs *fs);
/* Attributes only (off < 0) or pages too; dropped silently when the kernel forgot the inode. */
void fs_notify_inval_inode(struct fs *fs, struct fs_inode *in, off_t off, off_t len);
/*
 * fs_notify_then - invalidate, and go on with the op when the kernel has done it
 *
 * Gives the op's call back: an op that waits holds nothing that others need. `then` runs on the
 * op's lane, never from here. pages: else attributes only.
 */
void fs_notify_then(
	struct fs_op *op, struct fs_inode *in, bool pages, void (*then)(struct fs_op *op));
/* The same with the pages of a range (len 0: to the end): what is dirty there is written first. */
void fs_notify_range_then(struct fs_op *op, struct fs_inode *in, off_t off, off_t len,
	void (*then)(struct fs_op *op));
/* The kernel asks before it walks these names in n->dir; takes n and n->dir's reference. */
void fs_notify_names(struct fs *fs, struct fs_names *n);

/* ---- fs_session.c, fs_mount.c, fs_unmount.c ---- */

extern const struct fuse_custom_io fs_custom_io; /* patches the reply to INIT */
/* What is mounted at the mountpoint, without asking it anything. 0 or -errno. */
int fs_mount_dev(const struct fs *fs, dev_t *ret_dev);
/* Is anything mounted on a file or directory of ours, as far as this process sees? */
bool fs_mount_is_covered(const struct fs *fs);
/* The end, lanes idle: the kernel's connection is closed, then what is left of the mount. */
void fs_session_end(struct fs *fs);
void fs_session_free(struct fs *fs);

#endif
