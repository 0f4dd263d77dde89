/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One asynchronous function for each operation.
 *
 * An operation is an nfs4_call: got from its session, filled in, started,
 * done. Between start and ->done the session deals with slots, sequence
 * numbers, NFS4ERR_DELAY and GRACE, lost connections and lost sessions; the
 * user sees 0 or an errno.
 *
 * Context: the lane that owns the session; ->done comes from the lane's
 * reactor, never from inside a call.
 */
#ifndef RPCRDMAFS_NFS4_OPS_H
#define RPCRDMAFS_NFS4_OPS_H

#include "live.h"
#include "nfs4_args.h"

/*
 * Where the time of what somebody waits for goes, over all calls that are made for it; by
 * reactor_clock(). The user sets it to {.mark_ns = its begin}.
 */
struct nfs4_times {
	uint64_t mark_ns;          /* its begin, then the end of the last call */
	uint64_t queue_ns, rpc_ns; /* before calls were sent; until they were answered */
};

/*
 * A request that is to be executed once even if this process dies (nfs4_keep.h): its number, which
 * no other has, and where its call is kept, zeroed at first.
 */
struct nfs4_once {
	uint64_t request;
	live_ref live_ref;
};

/* The Reply chunk that is offered for a reply without a bound (nfs4_reply_chunk.c). */
struct nfs4_chunk {
	uint32_t most; /* bytes that there is room for */
	uint8_t tries; /* repeated with a larger one */
};

/* One operation in flight. Embeds the RPC call, which embeds the transport's request. */
struct nfs4_call {
	struct rpc_call rpc; /* first */
	struct nfs4_session *sess;
	/* set by the user */
	const struct rpc_cred *cred; /* the user's until ->done */
	void (*done)(struct nfs4_call *call);
	struct nfs4_times *times; /* NULL: nobody waits */
	struct nfs4_once *once;   /* NULL: it may be executed again after a crash (nfs4_keep.h) */
	const struct nfs4_fs *fs; /* that it is about; NULL: the root's */
	union {
		struct nfs4_op_lookup lookup;
		struct nfs4_op_getattr getattr;
		struct nfs4_op_getattrs getattrs;
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
		struct nfs4_op_facts facts;
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
	bool resent; /* as a new request: an earlier one may have been executed without an answer */

	/* the session's: see nfs4_int.h */
	const struct nfs4_opdesc *desc;
	uint16_t op;                   /* the operation that it is about, when it was encoded */
	uint32_t slot, seqid, highest; /* of SEQUENCE: a resend has the same */
	bool awaits_deleg;             /* it may bring a delegation (nfs4_deleg.c) ... */
	uint32_t await_epoch;          /* ... whose recall did not come before this */
	uint32_t sess_gen;             /* session the call was last encoded for */
	uint32_t id_gen;               /* client ID of that session */
	struct nfs4_stateid stateid;   /* sent with it; a resend has the same */
	uint32_t state_gen;            /* which one of its state that is */
	uint32_t state_tries;
	bool under_lock;        /* the stateid is that of a lock (nfs4_lock_io.c) */
	bool lock_refused;      /* it was, and the server did not take it */
	uint64_t state_wait_ns; /* since when it waits for its state; 0: it does not */
	uint32_t tries;
	struct nfs4_chunk chunk; /* of a reply without a bound */
	bool room_guessed;       /* once though nobody had said that it was too small */
	uint8_t bad_cnt;         /* replies that broke the protocol */
	uint8_t high_cnt;        /* BAD_HIGH_SLOT */
	uint64_t sent_ns;        /* last time it was encoded and sent */
	/* names of owners (nfs4_owners.c) */
	struct nfs4_idmap_reply *kept; /* results with names that are asked for; NULL: none */
	uint64_t idmap_ticket;         /* it waits for this answer */
	bool idmap_asked;              /* those it is to send */
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
int nfs4_call_get(struct nfs4_session *s, struct nfs4_call *call);
/* After ->done, or instead of starting it. */
void nfs4_call_put(struct nfs4_call *call);

/*
 * nfs4_make_exclusive - O_EXCL of an OPEN that creates: `exclusive`, `verf` and `atime`
 *
 * The access time is this system's now, with nanoseconds that are no clock's but tell this file
 * from every other one (nfs4_open_xdr.c). Any thread.
 */
void nfs4_make_exclusive(struct nfs4_client *cl, struct nfs4_op_open *o);

/*
 * Start an operation: call->cred, call->done and the operation's "in" fields
 * are set. ->done runs exactly once, never from here. After it the user may
 * start another operation with the same call (its u is the user's to refill).
 */
void nfs4_lookup(struct nfs4_call *call);
void nfs4_getattr(struct nfs4_call *call);
void nfs4_getattrs(struct nfs4_call *call);
void nfs4_setattr(struct nfs4_call *call);
void nfs4_access(struct nfs4_call *call);
void nfs4_open(struct nfs4_call *call);
void nfs4_close(struct nfs4_call *call);
void nfs4_downgrade(struct nfs4_call *call);
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
void nfs4_fs_facts(struct nfs4_call *call);
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
void nfs4_copy_status(struct nfs4_call *call);
void nfs4_copy_cancel(struct nfs4_call *call);

#endif
