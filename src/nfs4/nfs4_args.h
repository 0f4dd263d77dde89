/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments and results of operations, a block for each (nfs4_call.u).
 *
 * From "in" on members are the user's, who leaves them as they are until ->done; from "out" on they
 * are results, set by then.
 */
#ifndef RPCRDMAFS_NFS4_ARGS_H
#define RPCRDMAFS_NFS4_ARGS_H

#include "nfs4.h"

struct nfs4_call;

/* What a LOOKUP asks about its directory. */
enum nfs4_dir_attr {
	NFS4_DIR_CHANGES, /* what changes in a directory, its change attribute among it */
	NFS4_DIR_STAT,    /* all that GETATTR has, where it fits */
	NFS4_DIR_NONE,    /* nothing: dir_attr.valid is 0 */
};

struct nfs4_op_lookup {
	const struct nfs4_fh *dir; /* in */
	struct nfs4_str name;
	enum nfs4_dir_attr ask;
	struct nfs4_fh fh; /* out */
	struct nfs4_attr attr;
	struct nfs4_attr dir_attr; /* of the directory, also when the name is not there (-ENOENT) */
	/* the session's: the directory's attributes were refused, and are not asked for again */
	bool dir_refused, no_dir_attr;
};

struct nfs4_op_getattr {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_attr attr;    /* out */
};

/*
 * Of several files in one COMPOUND the attributes that each change moves: of as many of the first
 * ones as the session takes. An error is that of fh[got], behind those that have their attributes;
 * if the call's status is NFS4_OK it is nobody's. It ends with -EAGAIN where one is delayed twice.
 */
#define NFS4_GETATTRS_MAX 16u
struct nfs4_op_getattrs {
	const struct nfs4_fh *fh; /* in: cnt of them, 1 to NFS4_GETATTRS_MAX */
	uint32_t cnt;
	struct nfs4_attr *attr; /* out, of the first `got`: change, size, times */
	uint32_t got;
	uint32_t asked; /* the session's: of cnt, as many as it takes at once */
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
	bool create;
	bool exclusive;  /* EXCLUSIVE4_1 with `verf`: nfs4_make_exclusive() */
	bool truncate;   /* size 0 with UNCHECKED4 */
	bool want_deleg; /* a delegation is welcome; false: WANT_NO_DELEG */
	/*
	 * By filehandle only: read in the same COMPOUND, or NULL. Its fh and state are not looked
	 * at. data is NULL if nothing came of it: the OPEN is as good. No delegation is asked for.
	 */
	struct nfs4_op_read *read;
	/* the session's: CLAIM_PREVIOUS by filehandle, with the delegation we had (nfs4_reclaim.c)
	 */
	bool reclaim;
	enum nfs4_deleg_type reclaim_deleg;
	struct nfs4_state *claim; /* nfs4_claim(): CLAIM_DELEG_CUR_FH */
	bool claims_left; /* the session's: the same by call->stateid, of a process before */
	bool plain_claim; /* or, since the server refused that, CLAIM_FH */
	struct nfs4_verf verf;
	struct timespec atime; /* with exclusive: what the file gets */
	bool again;            /* the session's: open it only if it has that */
	uint32_t set_later;    /* the session's: of sattr.set, what goes with the times */
	bool no_dir_attr;      /* the session's: the server takes too few operations at once */
	struct nfs4_sattr sattr;
	struct nfs4_stateid stateid; /* out */
	struct nfs4_fh fh;
	struct nfs4_attr attr;
	struct nfs4_attr dir_attr;
	bool stamped;    /* with exclusive; false: the times are the verifier's, SETATTR them */
	bool mode_unset; /* and the mode, if this is set */
	uint32_t access; /* ACCESS4_* of the file for this user */
	uint32_t rflags; /* OPEN4_RESULT_* */
	struct nfs4_cinfo cinfo;
	/* READ or WRITE: granted, nfs4_deleg_take() or nfs4_return_refuse() must follow */
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
	struct nfs4_attr attr;    /* out: before the return; valid may be 0 */
	/* the session's: attributes are not asked for, because they were refused */
	bool no_attr, attr_refused;
};

struct nfs4_op_close {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* forgotten when the call ends without an error */
	struct nfs4_attr attr;    /* out: before the close; valid may be 0 */
	/* the session's: as in nfs4_op_delegreturn */
	bool no_attr, attr_refused;
	/* the session's: the server wants these locks to be given back first */
	bool unlocks;
	struct nfs4_stateid unlock;
};

struct nfs4_op_read {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset;
	uint32_t count; /* at most rsize; less may come without `eof` */
	/* At least count bytes of room in a data buffer; up to 3 behind may be written as well. */
	struct rpcrdma_span sink;
	const uint8_t
		*data; /* out: where the bytes lie, in sink or in the reply (valid in ->done) */
	uint32_t len;
	bool eof;
	uint32_t asked; /* the session's: of count, as much as the server gives at once */
};

#define NFS4_WRITE_PIECES RPCRDMA_MAX_ARGS

struct nfs4_op_write {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_state *state; /* NULL: anonymous */
	uint64_t offset;
	/* At most wsize bytes together, each piece in a data buffer; a piece is not empty. */
	struct rpcrdma_span data[NFS4_WRITE_PIECES];
	unsigned int data_cnt;
	enum nfs4_stable stable;
	bool no_attr; /* `attr` is not asked for */
	/*
	 * Only if the file ends at `offset`, by VERIFY in the same COMPOUND: else nothing is
	 * written, -EIO with status NFS4ERR_NOT_SAME.
	 */
	bool at_end;
	/* out, with at_end: it was sent before, and whether it was executed then nobody heard */
	bool unsure;
	uint32_t count; /* out: maybe less than data has */
	enum nfs4_stable committed;
	struct nfs4_verf verf;
	struct nfs4_attr attr; /* change, size, times after the WRITE; valid may be 0 */
	uint32_t sent;         /* the session's: of data, as much as the server takes at once */
	bool unanswered;       /* the session's */
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

/* Facts of the file system that a file is of, for nfs4_fs_learn(). */
struct nfs4_op_facts {
	const struct nfs4_fh *fh; /* in */
	struct nfs4_fs fs;        /* out */
	uint32_t lease_s;         /* the server's; 0: it does not say */
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
	struct nfs4_lockowner *lo; /* NULL: a lock that is reclaimed, its owner may be gone */
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
 * nfs4_fs.clone_blksize, or the count ends with the source; at most UINT32_MAX.
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

/* How a copy ended that the server went on with (nfs4_offload.h). */
struct nfs4_offload_result {
	enum nfs4_status status;
	uint64_t copied;
	/* NFS4_OK only */
	enum nfs4_stable committed;
	struct nfs4_verf verf;
};

#endif
