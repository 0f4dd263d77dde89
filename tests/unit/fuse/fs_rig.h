/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig: one lane of src/fuse, a socket that plays /dev/fuse, and in place
 * of src/nfs4 a server of a few files in memory (fake_nfs4.c) that can be told
 * to fail, to answer in part, to wait, and to restart.
 */
#ifndef RPCRDMAFS_FS_RIG_H
#define RPCRDMAFS_FS_RIG_H

#include <linux/fuse.h>
#include <sys/uio.h>

#include "fs_ops.h"

#define FAKE_FILES 8
#define FAKE_SIZE  (256u * 1024u)
#define RIG_WSIZE  65536u

enum fake_op {
	FAKE_OPEN,
	FAKE_CLOSE,
	FAKE_DOWNGRADE,
	FAKE_CLAIM,
	FAKE_DELEGRETURN,
	FAKE_READ,
	FAKE_WRITE,
	FAKE_COMMIT,
	FAKE_GETATTR,
	FAKE_SETATTR,
	FAKE_REMOVE,
	FAKE_RENAME,
	FAKE_LOOKUP,
	FAKE_ACCESS,
	FAKE_OTHER,
	FAKE_GETXATTR,
	FAKE_SETXATTR,
	FAKE_LISTXATTRS,
	FAKE_REMOVEXATTR,
	FAKE_GETACL,
	FAKE_SETACL,
	FAKE_SEEK,
	FAKE_ALLOCATE,
	FAKE_DEALLOCATE,
	FAKE_LOCK,
	FAKE_LOCKT,
	FAKE_LOCKU,
	FAKE_COPY,
	FAKE_CLONE,
	FAKE_LINK,
	FAKE_OFFLOAD_STATUS,
	FAKE_OFFLOAD_CANCEL,
	FAKE_GETATTRS,
	FAKE_FACTS,
	FAKE_OPS,
};

struct fake_file {
	char name[64]; /* "": removed */
	bool used;
	struct nfs4_attr attr;
	uint8_t data[FAKE_SIZE];
	uint8_t stable[FAKE_SIZE]; /* what a server that lost its memory has */
	uint64_t stable_size;
	bool granted;             /* a delegation, which the server has not got back */
	struct nfs4_deleg *deleg; /* who has it */
};

/* One WRITE that was executed. */
struct fake_write {
	uint64_t off;
	uint32_t len;
	enum nfs4_stable stable;
	uint32_t uid;
};

/* What an owner has open; owner 0: free. */
struct fake_open {
	uint64_t owner;
	uint8_t file;
	uint32_t access;
};

#define FAKE_LOG   64
#define FAKE_OPENS 64

struct fake {
	struct reactor *r;
	struct reactor_timer timer, unblock;
	struct list pending;                         /* calls started */
	bool hold;                                   /* they wait until fake_release() */
	uint64_t hold_ops;                           /* those of these kinds do, as 1 << FAKE_* */
	bool (*holds)(const struct nfs4_call *call); /* and those; NULL: no others */
	struct fake_file files[FAKE_FILES];          /* 0 is the root directory */
	struct nfs4_fsinfo info;
	struct nfs4_fs below; /* another file system: of fsid 1, 0 */
	struct nfs4_fs *learned;
	struct nfs4_verf verf;
	uint64_t change;
	struct fake_open held[FAKE_OPENS];
	unsigned int opens;         /* of those */
	enum nfs4_deleg_type grant; /* what an OPEN that wants one gets */
	bool grant_any;             /* ... and one that does not */
	enum nfs4_deleg_taken taken;
	unsigned int refused_delegs;
	unsigned int calls, calls_max;
	unsigned int bufs, bufs_max;
	unsigned int replayed;      /* nfs4_keep_replayed(): so often ... */
	uint64_t not_durable;       /* ... the last time with so many bytes that were not */
	struct slab_memory buf_mem; /* get NULL: each is of its own memory */
	struct list spare_bufs;     /* of buf_mem, which takes none back */
	bool refused;
	int dead; /* -errno of nfs4_call_get() */
	/* what tests set and see */
	unsigned int count[FAKE_OPS];
	int fail[FAKE_OPS];   /* errno of the next one of this kind */
	uint32_t short_count; /* READ and WRITE move at most so many; 0: all */
	uint64_t stuck_at;    /* READs from there on bring nothing, and not the end; 0: none */
	int32_t wrong_count;  /* WRITE says so many more than it wrote */
	uint32_t access;      /* what OPEN's ACCESS says */
	uint32_t denied;      /* ACCESS does not grant these */
	uint32_t unknown;     /* ... nor these, which it does not know */
	uint32_t (*denies)(const struct nfs4_call *call); /* nor these; NULL: no more */
	bool inline_read;
	/* FAKE_OTHER (CREATE, READDIR, READLINK, STATFS), xattrs, ACLs, SEEK: NULL:
	 * EOPNOTSUPP */
	int (*other)(struct nfs4_call *call);
	/* Before a WRITE is executed; -errno: it is not. Sets the call's status. */
	int (*refuse_write)(struct nfs4_call *call);
	int (*refuse_commit)(struct nfs4_call *call); /* the same before a COMMIT */
	int (*refuse_setattr)(struct nfs4_call *call);
	/* LOOKUP, CREATE, LINK, RENAME, REMOVE: in place of the files' names here */
	int (*names)(struct nfs4_call *call, enum fake_op op);
	unsigned int at_end, missed; /* WRITEs bound to the end of the file, and to another one */
	uint32_t getattrs_max;       /* files that a GETATTRs is of, at most; 0: all */
	uint32_t last_getattrs;      /* files that the last one was to be of */
	enum nfs4_stable last_stable;
	const uint8_t *last_write;
	struct fake_write log[FAKE_LOG]; /* WRITEs that were executed, modulo FAKE_LOG */
	unsigned int log_cnt;
	uint32_t gen;                    /* nfs4_client_generation() */
	unsigned int restarts_in_commit; /* the verifier changes before each of so many COMMITs */
	struct nfs4_op_open last_open;
	bool no_open_read;            /* the READ of an OPEN fails */
	bool mode_unset;              /* with `unstamped`: nor has it its mode */
	struct nfs4_sattr last_sattr; /* of SETATTR */
	bool unstamped;               /* an exclusive OPEN ends before its SETATTR */
	struct rpc_cred last_cred;
	char last_name[64];
	uint8_t inline_mem[FAKE_SIZE];
};

#define RIG_ASKED 65536u

struct rig {
	/*
	 * Whoever writes this to the kernel waits in here, as for a lock; NULL: nobody does. While
	 * one hangs time does not wait for the threads.
	 */
	void (*kernel_waits)(const struct iovec *iov, int cnt);
	_Atomic bool hangs;
	int pieces; /* of what was written to the kernel last */
	struct fake fake;
	struct fs *fs;
	struct live *live;     /* with rig_keep */
	uint64_t copied;       /* bytes of requests that were copied into it */
	uint64_t was_done;     /* request that the server did for the process before; 0: none */
	bool did[RIG_ASKED];   /* by number: the server did what is to be done once */
	bool asked[RIG_ASKED]; /* by number: the kernel waits for its answer */
	unsigned int kills;    /* by rig_kill_at */
	struct fs_lane *lane;
	struct stats stats;
	int peer; /* the kernel's end */
	bool idle, exited;
	unsigned int caught_up; /* so often was FS_LANE_CAUGHT_UP said */
	uint64_t unique;
	uint32_t uid;              /* who asks */
	bool stranger;             /* rig_send_of() is of another user than the process */
	struct fuse_init_out init; /* the reply to INIT */
	struct fs_conf conf;
};

extern struct rig rig;
extern bool rig_delegation; /* of rig_up()'s own configuration */
extern enum fs_write rig_write_mode;

/* A file of `size` bytes; its filehandle is its number. */
void fake_init(struct fake *k, struct reactor *r);
void fake_buf_memory(const struct slab_memory *mem);
/* Nothing is in work. */
void fake_new_reactor(struct fake *k, struct reactor *r);
struct fake_file *fake_add(const char *name, size_t size);
struct fake_file *fake_find(const char *name);
struct fake_file *fake_file_of(const struct nfs4_fh *fh);
/* As if another client had changed it. */
void fake_touch(struct fake_file *f);
void fake_restart(void);  /* the verifier is another one, and what was not committed is lost */
void fake_release(void);  /* held calls go on */
bool fake_all_free(void); /* no call, no buffer but the receive buffer, no operation is in use */

void rig_up(const struct fs_conf *conf); /* conf may be NULL */
void rig_down(void);
/*
 * Another process takes over: fs and lane are new, the kernel and the server are as they were.
 * Fails the test if something is in the way. The same in three steps: the lane is quiet; a file
 * with what it wrote; who goes on with that, which is closed.
 */
void rig_hand_over(void);
void rig_pause(void);
int rig_write_tables(void);
void rig_take_over(int tables);
/* One that cannot: it ends after it has read all, or because its buffers have only so many bytes.
 */
void rig_cannot_take_over(int tables, size_t data_size);
/*
 * The process is killed, at once, and another one takes over from what was kept. Calls that are in
 * work never come back; the server has done them, or has not. With rig_keep, set before rig_up();
 * notices to the kernel are no replies then.
 */
extern bool rig_keep;
/* The same, and written data goes with the daemon. */
extern bool rig_tables_only;
void rig_crash(void);
/*
 * With rig_keep: the daemon is killed at its step of this number, from 1 on, wherever it then is;
 * then it is 0. Steps are before and after each change of what is kept, each answer to the kernel,
 * each call that is sent and each that the server has executed. rig_turn() of the daemon that
 * is killed ends with another one in its place. rig_down() cannot be called afterwards.
 */
extern uint32_t rig_minor;                       /* the kernel's protocol is 7.minor */
extern unsigned int rig_kill_at, rig_kill_again; /* again: of the one that takes over */
void rig_step(void);
/* For fake_keep.c: the server has it open, or not any more; the same of locks. */
void fake_keep_state(struct nfs4_state *st);
void fake_keep_locks(struct nfs4_lockowner *lo);
/* nodeid of a file, as after a LOOKUP. */
fuse_ino_t rig_ino(struct fake_file *f);
/* Not referenced: as long as the kernel holds it. */
struct fs_inode *rig_inode(fuse_ino_t nodeid);
/* The same of an open file: until its RELEASE is answered. */
struct fs_file *rig_file(uint64_t handle);

struct rig_reply {
	struct fuse_out_header h;
	uint8_t body[FAKE_SIZE];
	size_t len; /* of body */
};

/* Sends a request; the next reply to it is waited for with rig_reply(). */
uint64_t rig_send(uint32_t opcode, uint64_t nodeid, const void *arg, size_t arg_len,
	const void *more, size_t more_len);
/*
 * As a request of that process, which may be dead, and of the user who runs the test, as it is: it
 * shares no open of the rig's.
 */
uint64_t rig_send_of(pid_t pid, uint32_t opcode, uint64_t nodeid, const void *arg, size_t arg_len);
/*
 * One turn, of at most a millisecond. Time is virtual, but for the threads that tell the kernel
 * (fs_notify.h): it stands still until they have done all they were given.
 */
bool rig_turn(void);
/* The next message to the kernel; false: none within the time, which is virtual. */
bool rig_reply(struct rig_reply *re, unsigned int wait_ms);
/* Send and wait for this one's reply; fails the test if there is none. Returns its error. */
int rig_call(struct rig_reply *re, uint32_t opcode, uint64_t nodeid, const void *arg,
	size_t arg_len, const void *more, size_t more_len);
/* Lets the lane run until nothing happens for a moment. */
void rig_settle(void);
/* Lets it run for so long, in virtual time. */
void rig_run_for(uint64_t ns);

/* Common requests. */
int rig_open(fuse_ino_t ino, int flags, struct fuse_open_out *out);
int rig_create(
	const char *name, int flags, mode_t mode, struct fuse_open_out *out, fuse_ino_t *ret_ino);
int rig_write(fuse_ino_t ino, uint64_t fh, uint64_t off, const void *data, uint32_t len, int flags);
int rig_read(struct rig_reply *re, fuse_ino_t ino, uint64_t fh, uint64_t off, uint32_t len);
int rig_flush(fuse_ino_t ino, uint64_t fh);
int rig_fsync(fuse_ino_t ino, uint64_t fh);
int rig_release(fuse_ino_t ino, uint64_t fh);
int rig_getattr(fuse_ino_t ino, struct fuse_attr_out *out);

#endif
