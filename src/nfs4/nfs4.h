/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NFSv4.1 and 4.2 (RFC 8881, 7862) as the FUSE layer uses them: one client
 * (one client ID on the server) for the mount, one session for each lane, one
 * asynchronous function for each operation.
 *
 * An operation is an nfs4_call: got from its session, filled in, started,
 * done. Between start and ->done the session deals with slots, sequence
 * numbers, NFS4ERR_DELAY and GRACE, lost connections and lost sessions; the
 * user sees 0 or an errno.
 *
 * Context: the lane that owns the session, unless a function says otherwise;
 * ->done comes from the lane's reactor, never from inside a call.
 */
#ifndef RPCRDMAFS_NFS4_H
#define RPCRDMAFS_NFS4_H

#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "list.h"
#include "nfs4_prot.h"
#include "rpc.h"

struct idmap;
struct nfs4_client;
struct nfs4_sess;

struct nfs4_fh {
	uint8_t len; /* 0: none */
	uint8_t data[NFS4_FHSIZE];
};

struct nfs4_stateid {
	uint32_t seqid;
	uint8_t other[12];
};

/* The anonymous stateid (RFC 8881 section 8.2.3): all zero. */
extern const struct nfs4_stateid nfs4_stateid_anon;

/* What the server holds for us, and keeps over its restarts (nfs4_held.h). */
struct nfs4_state;
struct nfs4_lockowner;
struct nfs4_deleg;

#define NFS4_LOCK_TO_END UINT64_MAX /* length: to the end of the file, however long it gets */

/* Who holds what conflicts (LOCK4denied). */
struct nfs4_denied {
	uint64_t offset, length;
	bool write;
	/* nfs4_lockowner.number of this client's owners, or of another's of our kind; 0: neither */
	uint64_t owner;
};

/* A name or other counted string; the memory is the user's until ->done. */
struct nfs4_str {
	const char *p;
	uint32_t len;
};

/* ---- attributes ---- */

/* Which fields of nfs4_attr are valid. */
#define NFS4_ATTR_TYPE       (1u << 0)
#define NFS4_ATTR_CHANGE     (1u << 1)
#define NFS4_ATTR_SIZE       (1u << 2)
#define NFS4_ATTR_FSID       (1u << 3)
#define NFS4_ATTR_FILEID     (1u << 4)
#define NFS4_ATTR_MODE       (1u << 5)
#define NFS4_ATTR_NLINK      (1u << 6)
#define NFS4_ATTR_OWNER      (1u << 7)
#define NFS4_ATTR_GROUP      (1u << 8)
#define NFS4_ATTR_RDEV       (1u << 9)
#define NFS4_ATTR_SPACE_USED (1u << 10)
#define NFS4_ATTR_ATIME      (1u << 11)
#define NFS4_ATTR_CTIME      (1u << 12)
#define NFS4_ATTR_MTIME      (1u << 13)
#define NFS4_ATTR_MOUNTED_ON (1u << 14) /* without FILEID: it is in fileid */
#define NFS4_ATTR_FH         (1u << 15) /* READDIR only */
#define NFS4_ATTR_RDERROR    (1u << 16) /* READDIR only: nothing else but maybe FILEID is valid */
/* Everything a struct stat needs. */
#define NFS4_ATTR_STAT                                                                             \
	(NFS4_ATTR_TYPE | NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_FSID | NFS4_ATTR_FILEID |  \
		NFS4_ATTR_MODE | NFS4_ATTR_NLINK | NFS4_ATTR_OWNER | NFS4_ATTR_GROUP |             \
		NFS4_ATTR_RDEV | NFS4_ATTR_SPACE_USED | NFS4_ATTR_ATIME | NFS4_ATTR_CTIME |        \
		NFS4_ATTR_MTIME)

struct nfs4_attr {
	uint32_t valid; /* NFS4_ATTR_* */
	enum nfs4_ftype type;
	uint32_t mode; /* permission bits only */
	uint32_t nlink;
	uint32_t uid, gid; /* nobody (65534) when the server's name has no number here */
	bool owner_alien;  /* one of them is nobody only for want of a number here */
	bool owner_late;   /* and is not known yet: to be asked again soon */
	uint32_t rdev_major, rdev_minor;
	uint32_t rderror; /* NFS4ERR of this entry */
	uint64_t change;
	uint64_t size;
	uint64_t fsid_major, fsid_minor;
	uint64_t fileid;
	uint64_t space_used;
	struct timespec atime, mtime, ctime;
};

/* What SETATTR, OPEN and CREATE set. */
struct nfs4_sattr {
	uint32_t set; /* of NFS4_ATTR_{MODE,OWNER,GROUP,SIZE,ATIME,MTIME} */
	uint32_t mode;
	uint32_t umask; /* with use_umask: sent as MODE_UMASK (RFC 8275) when the server knows it */
	bool use_umask;
	bool atime_now, mtime_now; /* server's clock: SET_TO_SERVER_TIME4 */
	uint32_t uid, gid;
	/* the session's: what is sent instead of uid and gid; NULL: the number */
	const char *owner_name, *group_name;
	uint64_t size;
	struct timespec atime, mtime;
};

/* RFC 8881 section 3.3.4: how a directory's change attribute moved. */
struct nfs4_cinfo {
	bool atomic;
	uint64_t before, after;
};

struct nfs4_verf {
	uint8_t data[8];
};

/* ---- the client: one for the mount ---- */

struct nfs4_conf {
	unsigned int minor_max, minor_min; /* 2 and 1: tried downwards on MINOR_VERS_MISMATCH */
	const char *owner;     /* co_ownerid: unique for this mount process, never the kernel's */
	bool hard;             /* false: soft or softerr, calls may end with timeout_errno */
	int timeout_errno;     /* EIO (soft) or ETIMEDOUT (softerr) */
	uint32_t rsize, wsize; /* asked for; 0: as large as the server allows, at most data_size */
	enum rpc_flavor flavor;
	/*
	 * Who maps names of owners (idmap.h); the user's, until the client is freed. NULL: names
	 * are nobody, and none are sent.
	 */
	struct idmap *idmap;
	struct rpcrdma_conf rdma;
};

/* What the mount found out; constant once the first session is up and the root is known. */
struct nfs4_fsinfo {
	uint32_t rsize, wsize; /* multiples of 4096 where the server allows */
	uint32_t minor;
	uint32_t lease_s;
	uint32_t maxname;
	uint32_t clone_blksize; /* 0: the server does not say */
	uint64_t maxfilesize;
	uint32_t supported[3]; /* supported_attrs bitmap words */
	bool case_insensitive;
	struct nfs4_fh root; /* of the mounted path */
	struct nfs4_attr root_attr;
};

/* Before lanes start; NULL with errno. conf and its strings are copied. */
struct nfs4_client *nfs4_client_new(const struct nfs4_conf *conf);
/* After every session was freed. */
void nfs4_client_free(struct nfs4_client *cl);
/* Any thread, once the mount is up. */
const struct nfs4_fsinfo *nfs4_client_fsinfo(const struct nfs4_client *cl);
/*
 * Counts the client IDs: after a restart of the server (or the loss of the lease) it is another
 * one before any reply of the new server is handed up. Any thread.
 */
uint32_t nfs4_client_generation(const struct nfs4_client *cl);

/* ---- sessions: one for each lane ---- */

/* The step at which a mount failed: names the message the user sees. */
struct nfs4_failure {
	int err;          /* errno value, positive */
	const char *step; /* "resolve", "route", "set-up", "connect", "session", "export path" */
	char text[256];   /* what happened and what to check, one line */
};

struct nfs4_sess_ops {
	/* The session exists: calls may be started. Once. */
	void (*up)(void *ctx);
	/* It could not be made: nothing follows but nfs4_sess_free(). f is valid during the call.
	 */
	void (*failed)(void *ctx, const struct nfs4_failure *f);
	/* nfs4_sess_stop() is complete. */
	void (*stopped)(void *ctx);
	/* A call, slot or buffer became free after one was refused. */
	void (*unblocked)(void *ctx);
};

struct nfs4_sess *nfs4_sess_new(struct nfs4_client *cl, struct reactor *r,
	const struct nfs4_sess_ops *ops, void *ctx, struct stats *stats);
/*
 * nfs4_sess_start - connect and make the session
 *
 * The first session of a client makes the client ID (EXCHANGE_ID, CREATE_SESSION,
 * RECLAIM_COMPLETE); the others join it and must be started after the first is up.
 * Returns: 0: ->up or ->failed follows; -errno.
 */
int nfs4_sess_start(struct nfs4_sess *s, const struct sockaddr *src, const struct sockaddr *dst);
/*
 * nfs4_sess_stop - DESTROY_SESSION (the last one: DESTROY_CLIENTID too) and disconnect
 *
 * Calls still in flight end with -ESHUTDOWN after a bounded time; ->stopped follows, also when
 * the server is dead (5 s at most).
 */
void nfs4_sess_stop(struct nfs4_sess *s);
void nfs4_sess_free(struct nfs4_sess *s);
struct rpcrdma *nfs4_sess_xprt(struct nfs4_sess *s);
struct nfs4_client *nfs4_sess_client(struct nfs4_sess *s);

/*
 * nfs4_mount_path - find the root of the mount and what the server can do
 *
 * Looks `path` up component by component from PUTROOTFH, as `cred`; fills the client's fsinfo.
 * The other sessions are started after it: they read fsinfo without a lock. path and cred are
 * copied. done: f is NULL on success.
 */
void nfs4_mount_path(struct nfs4_sess *s, const char *path, const struct rpc_cred *cred,
	void (*done)(void *ctx, const struct nfs4_failure *f), void *ctx);

/* ---- calls ---- */

struct nfs4_call;
struct nfs4_compound;

/* Argument and result blocks, one for each operation. "in" is the user's until ->done. */

struct nfs4_op_lookup {
	const struct nfs4_fh *dir; /* in */
	struct nfs4_str name;
	struct nfs4_fh fh; /* out */
	struct nfs4_attr attr;
	struct nfs4_attr dir_attr; /* of the directory, also when the name is not there (-ENOENT) */
};

struct nfs4_op_getattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_attr attr;    /* out */
};

struct nfs4_op_setattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* for SIZE; NULL: anonymous */
	struct nfs4_sattr sattr;
	struct nfs4_attr attr; /* out */
};

struct nfs4_op_access {
	const struct nfs4_fh *fh;   /* in */
	uint32_t want;              /* ACCESS4_* */
	uint32_t supported, access; /* out */
	struct nfs4_attr attr;
};

struct nfs4_op_open {
	const struct nfs4_fh *dir; /* in: by name (CLAIM_NULL), or NULL */
	struct nfs4_str name;
	const struct nfs4_fh *file; /* in: by filehandle (CLAIM_FH) when dir is NULL */
	uint32_t share_access;      /* OPEN4_SHARE_ACCESS_READ | _WRITE */
	uint64_t owner;             /* open owner: unique in this client */
	bool create, exclusive;     /* O_CREAT, O_EXCL (EXCLUSIVE4_1 with `verf`) */
	bool truncate;              /* size 0 with UNCHECKED4 */
	bool want_deleg;            /* a delegation is welcome; false: WANT_NO_DELEG */
	/* the session's: CLAIM_PREVIOUS by filehandle, with the delegation we had (nfs4_regain.c)
	 */
	bool reclaim;
	enum nfs4_deleg_type reclaim_deleg;
	struct nfs4_state *claim; /* nfs4_claim(): CLAIM_DELEG_CUR_FH */
	struct nfs4_verf verf;
	struct nfs4_sattr sattr;
	struct nfs4_stateid stateid; /* out */
	struct nfs4_fh fh;
	struct nfs4_attr attr;
	struct nfs4_attr dir_attr;
	uint32_t access; /* ACCESS4_* of the file for this user */
	uint32_t rflags; /* OPEN4_RESULT_* */
	struct nfs4_cinfo cinfo;
	/* READ or WRITE: granted, nfs4_deleg_take() or nfs4_deleg_refuse() must follow */
	enum nfs4_deleg_type deleg_type;
	struct nfs4_stateid deleg;
	bool deleg_recalled; /* it comes with its recall */
};

/*
 * Some of the opens that a state stands for have ended. share_access: what is left, the union of
 * some of the OPENs. Done without a call if there is nothing to tell the server, or it would
 * refuse (it is open for more than is needed then, until its CLOSE).
 */
struct nfs4_op_downgrade {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state;
	uint32_t share_access;
	struct nfs4_stateid stateid; /* the session's; zero: it was not sent */
};

/* All that it served is closed or claimed. Done without a call if it is lost meanwhile. */
struct nfs4_op_delegreturn {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_deleg *deleg; /* none any more when the call ends without an error */
	struct nfs4_attr attr;    /* out: before the return */
};

struct nfs4_op_close {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* forgotten when the call ends without an error */
	struct nfs4_attr attr;    /* out: before the close */
	/* the session's: the server wants these locks to be given back first */
	bool unlocks;
	struct nfs4_stateid unlock;
};

struct nfs4_op_read {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset;
	uint32_t count;           /* at most rsize; less may come without `eof` */
	struct rpcrdma_span sink; /* at least count bytes of room in a data buffer */
	const uint8_t
		*data; /* out: where the bytes lie, in sink or in the reply (valid in ->done) */
	uint32_t len;
	bool eof;
	uint32_t asked; /* the session's: of count, as much as the server gives at once */
};

struct nfs4_op_write {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset;
	struct rpcrdma_span data; /* at most wsize bytes in a data buffer */
	enum nfs4_stable stable;
	uint32_t count; /* out: maybe less than data has */
	enum nfs4_stable committed;
	struct nfs4_verf verf;
	struct nfs4_attr attr; /* change, size, times after the WRITE; valid may be 0 */
	uint32_t sent;         /* the session's: of data, as much as the server takes at once */
};

struct nfs4_op_commit {
	const struct nfs4_fh *fh; /* in */
	uint64_t offset;
	uint32_t count;        /* 0, 0: whole file */
	struct nfs4_verf verf; /* out */
	struct nfs4_attr attr;
};

struct nfs4_dirent {
	uint64_t cookie;
	struct nfs4_str name; /* in the reply; valid during ->entry */
	struct nfs4_attr attr;
	struct nfs4_fh fh; /* len 0 unless asked for */
};

struct nfs4_op_readdir {
	const struct nfs4_fh *fh; /* in */
	uint64_t cookie;
	struct nfs4_verf verf;
	uint32_t maxcount;        /* bytes of reply wanted; the sink has room for it and 512 more */
	struct rpcrdma_span sink; /* Reply chunk */
	bool plus;                /* attributes and filehandles */
	/* out: called for each entry from ->done's caller; false: enough, the rest is dropped */
	bool (*entry)(struct nfs4_call *call, const struct nfs4_dirent *de);
	struct nfs4_verf verf_out;
	bool eof;         /* the last entry of the directory was in this reply */
	uint32_t skipped; /* entries dropped for a name that no directory may have */
	uint32_t given;   /* the session's: entries that ->entry had before owners were asked for */
};

struct nfs4_op_readlink {
	const struct nfs4_fh *fh; /* in */
	struct rpcrdma_span sink; /* Reply chunk, 4 KiB and 512 */
	struct nfs4_str target;   /* out, valid in ->done; checked: no NUL, 1..4095 bytes */
};

struct nfs4_op_create {
	const struct nfs4_fh *dir; /* in */
	struct nfs4_str name;
	enum nfs4_ftype type;     /* NF4DIR, NF4LNK, NF4BLK, NF4CHR, NF4SOCK, NF4FIFO */
	struct nfs4_str linkdata; /* NF4LNK: target */
	struct rpcrdma_buf
		*long_buf; /* data buffer to build a call too long for inline in, or NULL */
	uint32_t rdev_major, rdev_minor;
	struct nfs4_sattr sattr;
	struct nfs4_fh fh; /* out */
	struct nfs4_attr attr;
	struct nfs4_attr dir_attr;
	struct nfs4_cinfo cinfo;
};

struct nfs4_op_remove {
	const struct nfs4_fh *dir; /* in */
	struct nfs4_str name;
	struct nfs4_cinfo cinfo; /* out */
	struct nfs4_attr dir_attr;
};

struct nfs4_op_rename {
	const struct nfs4_fh *from_dir, *to_dir; /* in */
	struct nfs4_str from, to;
	struct nfs4_cinfo from_cinfo, to_cinfo; /* out */
	struct nfs4_attr from_attr, to_attr;    /* of the directories */
};

struct nfs4_op_link {
	const struct nfs4_fh *file, *dir; /* in */
	struct nfs4_str name;
	struct nfs4_attr attr; /* out: of the file */
	struct nfs4_attr dir_attr;
	struct nfs4_cinfo cinfo;
};

struct nfs4_op_statfs {
	const struct nfs4_fh *fh;                      /* in */
	uint64_t bytes_total, bytes_free, bytes_avail; /* out */
	uint64_t files_total, files_free, files_avail;
	uint32_t maxname;
};

/* Needs v4.2, as the next three (RFC 8276); names are without "user.". */
struct nfs4_op_getxattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_str name;
	struct rpcrdma_span sink; /* Reply chunk: bounds the value; 64 KiB and 512 for any */
	const uint8_t *value;     /* out, valid in ->done */
	uint32_t len;
};

struct nfs4_op_setxattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_str name;
	const void *value;
	uint32_t len;
	enum nfs4_setxattr_option option;
	struct rpcrdma_buf *long_buf; /* as in nfs4_op_create */
	struct nfs4_cinfo cinfo;      /* out: of the file */
	struct nfs4_attr attr;        /* change, size, times */
};

struct nfs4_op_listxattrs {
	const struct nfs4_fh *fh; /* in */
	uint64_t cookie;
	struct rpcrdma_span sink; /* Reply chunk: bounds the names; 64 KiB and 512 for any */
	/* out: for each name, which is valid during it; false: enough */
	bool (*name)(struct nfs4_call *call, const struct nfs4_str *name);
	uint64_t cookie_out;
	bool eof;
	uint32_t skipped; /* names that cannot be */
};

struct nfs4_op_removexattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_str name;
	struct nfs4_cinfo cinfo; /* out: of the file */
	struct nfs4_attr attr;   /* change, size, times */
};

/* The ACL as it is on the wire: nfsace4<>, its count first. */
struct nfs4_op_getacl {
	const struct nfs4_fh *fh; /* in */
	struct rpcrdma_span sink; /* Reply chunk: bounds the ACL */
	const uint8_t *acl;       /* out, valid in ->done; NULL: this file has none */
	uint32_t len;
};

struct nfs4_op_setacl {
	const struct nfs4_fh *fh; /* in */
	const void *acl;
	uint32_t len;                 /* a multiple of 4 */
	struct rpcrdma_buf *long_buf; /* as in nfs4_op_create */
	struct nfs4_attr attr;        /* out: the mode may have changed */
};

/* The session's part of a LOCK or LOCKU (nfs4_lockowner.c); nothing in it is the user's. */
struct nfs4_lockrange;
struct nfs4_lock_work {
	struct nfs4_lockowner *lo; /* NULL: a lock that is had again, its owner may be gone */
	struct nfs4_state *wanted; /* the open that the user named */
	struct nfs4_state *via; /* the open it goes through: call->stateid is its or its locks' */
	uint64_t owner;         /* nfs4_lockowner.number */
	uint64_t offset, length;
	bool write, unlock, reclaim;
	bool first;                      /* call->stateid is the open's: there is none of locks */
	bool sent;                       /* it may have been */
	struct nfs4_lockrange *spare[2]; /* what the books may need when it is granted */
	struct nfs4_stateid stateid;     /* out */
	bool none;                       /* out: LOCKU found that nothing is held */
	uint32_t old_gen; /* of the open that the owner hangs on, if that is another one */
};

/* offset + length at most UINT64_MAX, length not 0 (or NFS4_LOCK_TO_END): else -EINVAL. */
struct nfs4_op_lock {
	const struct nfs4_fh *fh;    /* in */
	struct nfs4_state *state;    /* open for what `write` says: else -EBADF */
	struct nfs4_lockowner *lock; /* without locks yet, or hanging on any open of this file */
	bool write;
	bool wait; /* READW_LT, WRITEW_LT: the server may tell when it is free (on_lock_free) */
	uint64_t offset, length;
	/*
	 * out: -EAGAIN with status NFS4ERR_DENIED: somebody else's. After another error than that
	 * of a server's answer (status NFS4_OK) the lock may be held there: nfs4_locku() it.
	 */
	struct nfs4_denied denied;
	struct nfs4_lock_work work;
};

/* Would a LOCK be granted? Needs no open of the caller's. */
struct nfs4_op_lockt {
	const struct nfs4_fh *fh; /* in */
	uint64_t owner;           /* nfs4_lockowner.number, whose own locks do not count */
	bool write;
	uint64_t offset, length;
	bool conflict; /* out */
	struct nfs4_denied denied;
};

/* Of an owner that the server knows nothing of, and of a range not held: done without a call. */
struct nfs4_op_locku {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_lockowner *lock;
	uint64_t offset, length;
	struct nfs4_lock_work work;
};

#define NFS4_TEST_MAX 32u /* stateids in one TEST_STATEID: 512 bytes fit inline anywhere */
struct nfs4_op_test_stateid {
	const struct nfs4_stateid *ids; /* in: cnt of them, at most NFS4_TEST_MAX */
	uint32_t cnt;
	enum nfs4_status res[NFS4_TEST_MAX]; /* out */
};

struct nfs4_op_free_stateid {
	struct nfs4_stateid stateid; /* in */
};

/* v4.2 */
struct nfs4_op_seek {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset;
	enum nfs4_content what;
	bool eof; /* out */
	uint64_t found;
};

/* v4.2: ALLOCATE and DEALLOCATE */
struct nfs4_op_allocate {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset, len;
	struct nfs4_attr attr; /* out: change, size, times, space used */
};

/*
 * v4.2: COPY and CLONE from one file to another of the same server, data of the source as the
 * server has it. -EOPNOTSUPP also when a stateid is not good: which one it was the server does not
 * say, and who reads and writes instead will find out.
 *
 * CLONE: all of it and FILE_SYNC4, or none; also within one file. Offsets and count fit
 * nfs4_fsinfo.clone_blksize, or the count ends with the source; at most UINT32_MAX.
 */
struct nfs4_op_copy {
	const struct nfs4_fh *src, *fh;       /* in */
	struct nfs4_state *src_state, *state; /* NULL: anonymous */
	uint64_t src_offset, offset;
	uint64_t count;   /* not 0 */
	bool synchronous; /* COPY: the answer comes when it is done, else maybe before: */
	bool async;       /* out: the server goes on, see nfs4_offload_begin(); attr is of now */
	struct nfs4_stateid id;
	uint64_t copied; /* at most count; 0: nothing, and nobody says why */
	enum nfs4_stable committed;
	struct nfs4_verf verf;
	struct nfs4_attr attr;           /* change, size, times, space used */
	struct nfs4_stateid src_stateid; /* the session's */
};

/* v4.2: OFFLOAD_STATUS and OFFLOAD_CANCEL */
struct nfs4_op_offload {
	const struct nfs4_fh *fh; /* in: of the COPY's destination */
	struct nfs4_stateid id;
	uint64_t copied; /* out, of OFFLOAD_STATUS: so far */
	bool complete;
};

/*
 * One operation in flight. Embeds the RPC call, which embeds the transport's request.
 */
struct nfs4_call {
	struct rpc_call rpc; /* first */
	struct nfs4_sess *sess;
	/* set by the user */
	const struct rpc_cred *cred; /* copied at start? no: the user's until ->done */
	void (*done)(struct nfs4_call *call);
	union {
		struct nfs4_op_lookup lookup;
		struct nfs4_op_getattr getattr;
		struct nfs4_op_setattr setattr;
		struct nfs4_op_access access;
		struct nfs4_op_open open;
		struct nfs4_op_close close;
		struct nfs4_op_downgrade downgrade;
		struct nfs4_op_delegreturn delegreturn;
		struct nfs4_op_read read;
		struct nfs4_op_write write;
		struct nfs4_op_commit commit;
		struct nfs4_op_readdir readdir;
		struct nfs4_op_readlink readlink;
		struct nfs4_op_create create;
		struct nfs4_op_remove remove;
		struct nfs4_op_rename rename;
		struct nfs4_op_link link;
		struct nfs4_op_statfs statfs;
		struct nfs4_op_getxattr getxattr;
		struct nfs4_op_setxattr setxattr;
		struct nfs4_op_listxattrs listxattrs;
		struct nfs4_op_removexattr removexattr;
		struct nfs4_op_getacl getacl;
		struct nfs4_op_setacl setacl;
		struct nfs4_op_lock lock;
		struct nfs4_op_lockt lockt;
		struct nfs4_op_locku locku;
		struct nfs4_op_test_stateid test_stateid;
		struct nfs4_op_free_stateid free_stateid;
		struct nfs4_op_seek seek;
		struct nfs4_op_allocate allocate;
		struct nfs4_op_copy copy;
		struct nfs4_op_offload offload;
	} u;
	/* set when done */
	int err;                 /* 0 or -errno */
	enum nfs4_status status; /* NFS4_OK, or what the server said */
	bool resent; /* as a new request: an earlier one may have been executed unheard */

	/* the session's: see nfs4_int.h */
	const struct nfs4_opdesc *desc;
	uint32_t slot, seqid, highest; /* of SEQUENCE: a resend has the same */
	bool awaits_deleg;             /* it may bring a delegation (nfs4_deleg.c) */
	uint32_t sess_gen;             /* session the call was last encoded for */
	uint32_t id_gen;               /* client ID of that session */
	struct nfs4_stateid stateid;   /* sent with it; a resend has the same */
	uint32_t state_gen;            /* which one of its state that is */
	uint32_t state_tries;
	uint64_t state_wait_ns; /* since when it waits for its state; 0: it does not */
	uint32_t tries;
	uint32_t room_most; /* bytes of a reply without a bound that there is room for */
	uint8_t room_tries; /* repeated with a larger Reply chunk */
	uint8_t bad_cnt;    /* replies that broke the protocol */
	uint64_t sent_ns;   /* last time it was encoded and sent */
	/* names of owners (nfs4_owners.c) */
	struct nfs4_kept_reply *kept; /* results with names that are asked for; NULL: none */
	uint64_t names_ticket;        /* it waits for this answer */
	bool names_asked;             /* those it is to send */
	bool by_name; /* it was encoded with names for numbers, as far as there are any */
	struct list link;
	struct reactor_timer timer;
	unsigned int state;
};

/*
 * nfs4_call_get - make a call ready to be filled in
 *
 * Returns: 0; -EAGAIN: no request free, ->unblocked tells; -ESHUTDOWN; -EIO: session is dead.
 */
int nfs4_call_get(struct nfs4_sess *s, struct nfs4_call *call);
/* After ->done, or instead of starting it. */
void nfs4_call_put(struct nfs4_call *call);

/*
 * Start an operation: call->cred, call->done and the operation's "in" fields
 * are set. ->done runs exactly once, never from here. After it the user may
 * start another operation with the same call (its u is the user's to refill).
 */
void nfs4_lookup(struct nfs4_call *call);
void nfs4_getattr(struct nfs4_call *call);
void nfs4_setattr(struct nfs4_call *call);
void nfs4_access(struct nfs4_call *call);
void nfs4_open(struct nfs4_call *call);
void nfs4_close(struct nfs4_call *call);
void nfs4_open_downgrade(struct nfs4_call *call);
void nfs4_delegreturn(struct nfs4_call *call);
void nfs4_read(struct nfs4_call *call);
void nfs4_write(struct nfs4_call *call);
void nfs4_commit(struct nfs4_call *call);
void nfs4_readdir(struct nfs4_call *call);
void nfs4_readlink(struct nfs4_call *call);
void nfs4_create(struct nfs4_call *call);
void nfs4_remove(struct nfs4_call *call);
void nfs4_rename(struct nfs4_call *call);
void nfs4_link(struct nfs4_call *call);
void nfs4_statfs(struct nfs4_call *call);
void nfs4_getxattr(struct nfs4_call *call);
void nfs4_setxattr(struct nfs4_call *call);
void nfs4_listxattrs(struct nfs4_call *call);
void nfs4_removexattr(struct nfs4_call *call);
void nfs4_getacl(struct nfs4_call *call);
void nfs4_setacl(struct nfs4_call *call);
void nfs4_lock(struct nfs4_call *call);
void nfs4_lockt(struct nfs4_call *call);
void nfs4_locku(struct nfs4_call *call);
void nfs4_seek(struct nfs4_call *call);
void nfs4_allocate(struct nfs4_call *call);
void nfs4_deallocate(struct nfs4_call *call);
void nfs4_copy(struct nfs4_call *call);
void nfs4_clone(struct nfs4_call *call);
void nfs4_offload_status(struct nfs4_call *call);
void nfs4_offload_cancel(struct nfs4_call *call);

/* A number for nfs4_op_open.owner and a verifier for EXCLUSIVE4_1; any thread. */
uint64_t nfs4_new_owner(struct nfs4_client *cl);
struct nfs4_verf nfs4_new_verf(struct nfs4_client *cl);

/* "READ" for 25; NULL for a number without a name. */
const char *nfs4_op_name(unsigned int op);
const char *nfs4_status_name(enum nfs4_status status);

#endif
