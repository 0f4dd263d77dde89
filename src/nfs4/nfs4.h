/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NFSv4.1 and 4.2 (RFC 8881, 7862) as the FUSE layer uses them: one client
 * (one client ID on the server) for the mount, one session for each lane. What
 * is done with them: nfs4_ops.h.
 *
 * Context: the lane that owns the session, unless a function says otherwise;
 * ->done comes from the lane's reactor, never from inside a call.
 */
#ifndef RPCRDMAFS_NFS4_H
#define RPCRDMAFS_NFS4_H

#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>

#include "list.h"
#include "nfs4_prot.h"
#include "rpc.h"

struct idmap;
struct nfs4_client;
struct nfs4_session;

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

/*
 * The facts of one file system of the server. An export may lead into others than that of its
 * root (RFC 8881 section 11.1), each with facts of its own. Constant once it is known.
 */
struct nfs4_fs {
	uint64_t fsid_major, fsid_minor;
	uint32_t rsize, wsize; /* multiples of 4096 where the server allows */
	uint32_t maxname;
	uint32_t clone_blksize; /* 0: the server does not say */
	uint64_t maxfilesize;
	uint32_t supported[3]; /* supported_attrs bitmap words */
	/* suppattr_exclcreat: what an exclusive create may set; 0: the server does not say */
	uint32_t exclcreat[3];
	bool case_insensitive;
	uint16_t nr; /* in order of their being known; 0: the root's */
};

/* The mount found this out; it is constant once the first session is up and the root is known. */
struct nfs4_fsinfo {
	struct nfs4_fs fs; /* that the root is of */
	uint32_t minor;
	uint32_t lease_s;
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
 * The file system with this fsid, if anybody asked (nfs4_fs_facts()) and told nfs4_fs_learn();
 * NULL: not known. Valid until the client is freed. Any thread, once the mount is up.
 */
const struct nfs4_fs *nfs4_fs_find(struct nfs4_client *cl, uint64_t major, uint64_t minor);
/* The one with this number, which was handed out before. Any thread. */
const struct nfs4_fs *nfs4_fs_at(const struct nfs4_client *cl, unsigned int nr);
/* Remembers a copy, unless it is known already. NULL: there is no room for it. Any thread. */
const struct nfs4_fs *nfs4_fs_learn(struct nfs4_client *cl, const struct nfs4_fs *fs);
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
	char text[384];   /* what happened and what to check, one line */
};

/* rpcrdma_connect() returned err, and began nothing; detail: rpcrdma_failure_detail(). */
void nfs4_failure_start(struct nfs4_failure *ret, int err, const char *detail);
/* ->failed of a transport was told err and step; detail: rpcrdma_failure_detail(). */
void nfs4_failure_connect(struct nfs4_failure *ret, int err, const char *step, const char *detail);
/* err is positive; fmt makes one line: what happened and what to check. */
void nfs4_failure_put(struct nfs4_failure *ret, int err, const char *step, const char *fmt,
	va_list ap) __attribute__((format(printf, 4, 0)));
/* A call of that name ended so, which is not RPC_OK; one line. */
void nfs4_failure_rpc(char *text, size_t len, const char *call, enum rpc_result result);

struct nfs4_session_ops {
	/* The session exists: calls may be started. Once. */
	void (*up)(void *ctx);
	/* It could not be made: nothing follows but nfs4_session_free(). f is valid during the
	 * call.
	 */
	void (*failed)(void *ctx, const struct nfs4_failure *f);
	/* nfs4_stop_session() is complete. */
	void (*stopped)(void *ctx);
	/* A call, slot or buffer became free after one was refused. */
	void (*unblocked)(void *ctx);
};

struct nfs4_session *nfs4_session_new(struct nfs4_client *cl, struct reactor *r,
	const struct nfs4_session_ops *ops, void *ctx, struct stats *stats);
/* The same with so many data buffers, at most: for a lane whose calls rarely need one. */
struct nfs4_session *nfs4_session_new_small(struct nfs4_client *cl, struct reactor *r,
	const struct nfs4_session_ops *ops, void *ctx, struct stats *stats, unsigned int bufs);
/*
 * nfs4_session_start - connect and make the session
 *
 * The first session of a client makes the client ID (EXCHANGE_ID, CREATE_SESSION,
 * RECLAIM_COMPLETE); the others join it and must be started after the first is up.
 * Returns: 0: ->up or ->failed follows; -errno.
 */
int nfs4_session_start(
	struct nfs4_session *s, const struct sockaddr *src, const struct sockaddr *dst);
/*
 * nfs4_stop_session - DESTROY_SESSION (the last one: DESTROY_CLIENTID too) and disconnect
 *
 * Calls still in flight end with -ESHUTDOWN after a bounded time; ->stopped follows, also when
 * the server is dead (5 s at most).
 */
void nfs4_stop_session(struct nfs4_session *s);
void nfs4_session_free(struct nfs4_session *s);
struct rpcrdma *nfs4_session_xprt(struct nfs4_session *s);

/*
 * nfs4_mount_path - find the root of the mount and what the server can do
 *
 * Looks `path` up component by component from PUTROOTFH, as `cred`; fills the client's fsinfo.
 * The other sessions are started after it: they read fsinfo without a lock. path and cred are
 * copied. done: f is NULL on success.
 */
void nfs4_mount_path(struct nfs4_session *s, const char *path, const struct rpc_cred *cred,
	void (*done)(void *ctx, const struct nfs4_failure *f), void *ctx);

/* What a session and its connection agreed on with the server, as of when it was up last. */
struct nfs4_session_view {
	const char *state;           /* "UP", "RECOVERING" ... now; static */
	char peer[64], device[64];   /* the server's address; the RDMA device */
	enum rpcrdma_memreg memreg;  /* never AUTO */
	uint32_t send_max, recv_max; /* inline thresholds */
	uint32_t result_max;         /* rpcrdma_result_size() */
	uint32_t maxreq, maxresp, maxcached, maxops, maxreqs; /* ca_* of the fore channel */
	bool connected;                                       /* now */
	bool back;                                            /* the server can call us */
};
/* Any thread, also while the server is dead. */
void nfs4_session_view(struct nfs4_session *s, struct nfs4_session_view *ret);
/* What the server says it is (eir_server_impl_id), "" if it does not. Any thread. */
void nfs4_client_server_impl(struct nfs4_client *cl, char *text, size_t len);

/* A number for nfs4_op_open.owner; any thread. */
uint64_t nfs4_new_owner(struct nfs4_client *cl);
/*
 * nfs4_owner_of_request - that of an OPEN by name, for a request of this number
 *
 * If the request is done once more, as this process was killed meanwhile, it is the same one: the
 * server then has one open of it and not two. None of nfs4_new_owner() is one of these.
 */
#define NFS4_OWNER_OF_REQUEST (1ull << 63)
static inline uint64_t nfs4_owner_of_request(uint64_t request)
{
	return NFS4_OWNER_OF_REQUEST | request;
}

/* "READ" for 25; NULL for a number without a name. */
const char *nfs4_op_name(unsigned int op);
const char *nfs4_status_name(enum nfs4_status status);

#endif
