/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small NFSv4.1/4.2 server over RPC-over-RDMA on the simulated fabric, with
 * an in-memory file system. It is also the judge: it has decoders of its own
 * and records with fab_sim_fail() whatever a client must not do. By default it
 * behaves as Linux' nfsd does; rules make it misbehave.
 *
 * Beside NFS it serves a test program (NFSD_SIM_ECHO_PROG) that makes calls and
 * replies of any size and form.
 *
 * Context: nfsd_sim_cb_*(), _restart() and the counters: any thread. Requests
 * are served on the reactor of their connection; what they share is under one
 * lock. Rules and settings: before the threads start, or with one thread.
 */
#ifndef RPCRDMAFS_NFSD_SIM_H
#define RPCRDMAFS_NFSD_SIM_H

#include "fab_sim.h"

struct nfsd_sim;

#define NFSD_SIM_DELEG_READ  1u
#define NFSD_SIM_DELEG_WRITE 2u

/* CB_RECALL goes out before the reply of the OPEN that gives the delegation. */
enum nfsd_sim_early {
	NFSD_SIM_EARLY_NONE,
	NFSD_SIM_EARLY_PLAIN,  /* as nfsd does: nothing says so */
	NFSD_SIM_EARLY_REFERS, /* its referring call list names the OPEN */
};

/* The answer where a reply fits neither inline nor its Reply chunk. */
enum nfsd_sim_big {
	NFSD_SIM_BIG_ERR_CHUNK,
	NFSD_SIM_BIG_SYSTEM_ERR, /* an RPC reply (illumos) */
	NFSD_SIM_BIG_GARBAGE,    /* the same with GARBAGE_ARGS */
	NFSD_SIM_BIG_SILENCE,
};

struct nfsd_sim_conf {
	unsigned int credits;  /* granted in each message; may be changed at any time */
	uint32_t inline_size;  /* what it receives and sends at most */
	bool no_priv;          /* no private data in the answer: 1024 bytes each way */
	bool client_small;     /* treat the client as one that receives 1024 bytes */
	bool no_inval;         /* never invalidates remotely */
	bool reply_chunk_lazy; /* uses a Reply chunk only when the reply does not fit inline */
	enum nfsd_sim_big big_reply;
	bool allow_toosmall;   /* a reply that fits nowhere is not the client's failure */
	bool zero_read_keeps;  /* a result of 0 bytes does not use up a Write chunk (nfsd 6.1) */
	bool write_pad;        /* RDMA Writes the XDR round-up too; a READ without room for it
				  ends with INVAL (illumos) */
	bool misplaces;        /* a reply without data goes into the Write chunk (NFS-Ganesha) */
	bool send_msgp;        /* answers with RDMA_MSGP instead of RDMA_MSG */
	bool tolerant_seq;     /* SEQ_MISORDERED is not the client's failure */
	bool tolerant_state;   /* nor are wrong stateids */
	bool tolerant_revoked; /* nor an OPEN of an owner whose revoked one is not freed */
	bool tolerant_credits; /* nor is a credit overrun */
	uint64_t latency_ns;   /* from the request to the reply */

	unsigned int minor_max;
	uint32_t lease_s;
	unsigned int max_slots, max_ops;
	unsigned int first_slots; /* that CREATE_SESSION grants, of those; 0: all */
	uint32_t max_request, max_response, max_cached;
	uint32_t maxread, maxwrite;
	uint32_t supported_mask[3]; /* attributes taken away from supported_attrs */
	uint32_t excl_mask[3];      /* ... from suppattr_exclcreat, beside the times */
	bool longest;               /* filehandles, owners and groups of 128 bytes */
	bool names;                 /* owners are u<number>@sim, g<number>@sim both ways */
	bool fresh_names;           /* they are never the same twice: x<count>@sim */
	bool no_backchannel;        /* CREATE_SESSION without CONN_BACK_CHAN */
	bool close_wants_unlock;    /* CLOSE of an open with locks: LOCKS_HELD */
	bool mandatory_locks;       /* READ, WRITE in what others lock: NFS4ERR_LOCKED */
	bool denied_len0;           /* LOCK4denied: "to the end" is length 0, as Ganesha has it */
	bool restart_flag;          /* RESTART_RECLAIM_NEEDED until RECLAIM_COMPLETE */
	bool bind_princ;            /* BIND_PRINC_STATEID is granted, and meant of delegations */
	const char *refers; /* LOOKUP of it is MOVED for who says that it follows referrals */
	const char *scope;  /* server scope; NULL: "simscope" */
	const char *major;  /* so_major_id; NULL: "simserver" */
	unsigned int target_slots; /* sr_target_highest_slotid + 1; 0: all */

	/* delegations */
	uint32_t delegs;       /* NFSD_SIM_DELEG_*: what OPENs are given; see below */
	bool deleg_recalled;   /* they come with their recall */
	bool no_deleg_claim;   /* CLAIM_DELEG_CUR_FH is NOTSUPP, as with Ganesha */
	bool deleg_no_reclaim; /* CLAIM_PREVIOUS: the open without it */
	bool deleg_expires;    /* revoked a lease after the recall; else that is a failure */
	enum nfsd_sim_early deleg_early;
	uint64_t deleg_early_ns; /* how much later the reply comes then */

	/* copies */
	uint64_t copy_max;    /* that a synchronous one does */
	uint32_t clone_block; /* CLONE shares these, and clone_blksize says so; 0: it is NOTSUPP */
	bool copy_by_itself;  /* those that may be are answered first: nfsd_sim_copies_end() */
	/* CB_OFFLOAD goes out before the reply, which comes so much later */
	enum nfsd_sim_early copy_early;
	uint64_t copy_early_ns;
};

void nfsd_sim_conf_default(struct nfsd_sim_conf *conf);
/* Listens on addr (NULL: on every address). conf NULL: default. */
struct nfsd_sim *nfsd_sim_new(const struct nfsd_sim_conf *conf, const struct sockaddr *addr);
/* No connection may exist. */
void nfsd_sim_free(struct nfsd_sim *sim);
struct nfsd_sim_conf *nfsd_sim_conf(struct nfsd_sim *sim);

/* ---- the test program ---- */

#define NFSD_SIM_ECHO_PROG 0x20000099u
#define NFSD_SIM_ECHO_VERS 1u
enum nfsd_sim_proc {
	NFSD_SIM_NULL,   /* void -> void */
	NFSD_SIM_ECHO,   /* opaque -> the same opaque, not DDP-eligible */
	NFSD_SIM_SINK,   /* u32, opaque (DDP-eligible), rest of the call -> u32 length, u32 sum, u32
			    length of the rest */
	NFSD_SIM_SOURCE, /* u32 n, n lengths -> n times: u32 tag, opaque (DDP-eligible) of
			    nfsd_sim_pattern() */
	NFSD_SIM_BIG,    /* u32 len -> opaque of the pattern, not DDP-eligible */
};
/* Byte `off` of what SOURCE and BIG return. */
static inline uint8_t nfsd_sim_pattern(uint32_t off)
{
	return (uint8_t)(off * 7 + (off >> 8) * 13 + 1);
}

/* Bytes `off` to off + len of it. */
void nfsd_sim_fill(uint8_t *p, uint32_t off, size_t len);
bool nfsd_sim_is_pattern(const uint8_t *p, uint32_t off, size_t len);

uint32_t nfsd_sim_sum(const uint8_t *p, size_t len);

/* ---- misbehaviour ---- */

enum nfsd_sim_act {
	NFSD_SIM_LATE,        /* reply after arg ns */
	NFSD_SIM_LOSE,        /* executed, never answered */
	NFSD_SIM_DUP,         /* answered twice (arg: more than twice) */
	NFSD_SIM_HOLD,        /* answered by nfsd_sim_release() */
	NFSD_SIM_ERR_VERS,    /* RDMA_ERROR instead of executing */
	NFSD_SIM_ERR_CHUNK,   /* the same */
	NFSD_SIM_ERR_OTHER,   /* RDMA_ERROR with error code arg */
	NFSD_SIM_ERR_AFTER,   /* executed, then ERR_CHUNK */
	NFSD_SIM_CUT_BEFORE,  /* connection ends before it is executed */
	NFSD_SIM_CUT_AFTER,   /* executed, connection ends, no reply */
	NFSD_SIM_CUT_REPLIED, /* the reply's Send is the last thing that arrives */
	NFSD_SIM_STATUS, /* operation `op` (0: the first after SEQUENCE) ends with NFS status arg */
	NFSD_SIM_STATUS_DONE, /* the same, but it was executed */
	NFSD_SIM_NO_INV,      /* plain Send */
	NFSD_SIM_WRONG_INV,   /* invalidates key arg; 0: that of another call in flight */
	NFSD_SIM_RPC_ACCEPT,  /* RPC accept_stat arg, empty results */
	NFSD_SIM_RPC_DENY,    /* rejected: arg 0 RPC_MISMATCH, else AUTH_ERROR with stat arg */
	NFSD_SIM_RAW,         /* raw, raw_len instead of the reply */
	NFSD_SIM_MUTATE_BODY, /* the same for the RPC reply, before it is split into chunks: len
				 may only shrink */
	NFSD_SIM_MUTATE,      /* mutate() sees and changes the reply before it is sent */
	NFSD_SIM_SEQ_FLAGS,   /* sr_status_flags arg in the SEQUENCE result */
};

#define NFSD_SIM_OUT_ROOM (128u << 10)

/* A message about to be sent. */
struct nfsd_sim_out {
	uint8_t *msg; /* room for NFSD_SIM_OUT_ROOM bytes */
	uint32_t len;
	uint32_t inv_rkey;
	uint32_t body_off;  /* RPC message, len if none */
	uint32_t write_off; /* first segment count of the returned Write list; 0: none */
	uint32_t reply_off; /* segment count of the returned Reply chunk; 0: none */
	bool no_writes;     /* do not RDMA Write after all */
};

struct nfsd_sim_rule {
	enum nfsd_sim_act act;
	uint32_t op; /* NFS operation the COMPOUND must contain; 0: any call */
	uint32_t skip,
		count;  /* lets `skip` matches pass, acts on `count` (0: on all that follow) */
	uint32_t every; /* only each so-manieth of those that match counts; 0 and 1: all */
	uint64_t arg;
	const void *raw;
	uint32_t raw_len;
	void (*mutate)(void *ctx, struct nfsd_sim_out *out);
	void *ctx;
	bool hostile; /* what comes of it on this connection is not the client's failure */
};

/* Rules act in order of their addition, each on its own. */
void nfsd_sim_rule(struct nfsd_sim *sim, const struct nfsd_sim_rule *rule);
void nfsd_sim_rules_clear(struct nfsd_sim *sim);
/* Sends what HOLD kept, the last one first if reversed. */
void nfsd_sim_release(struct nfsd_sim *sim, bool reversed);
/* The same from any thread: what each connection's own thread sends, soon. */
void nfsd_sim_release_all(struct nfsd_sim *sim);
unsigned int nfsd_sim_held(struct nfsd_sim *sim);
/* Sends bytes, unasked for, on every connection. */
void nfsd_sim_inject(struct nfsd_sim *sim, const void *msg, uint32_t len, bool hostile);
/* Closes every connection. */
void nfsd_sim_disconnect(struct nfsd_sim *sim);
/*
 * All clients, sessions and state are gone, boot instance and verifier are new; the connections
 * break. Files stay, unless data was written and not committed: then it is lost if lose_data.
 */
void nfsd_sim_restart(struct nfsd_sim *sim, uint64_t grace_ns, bool lose_data);
/*
 * Calls that come from now on until the restart are neither executed nor answered; those before
 * are: nothing that was done is heard of only by its traces then.
 */
void nfsd_sim_pause(struct nfsd_sim *sim);
/* Calls that were executed and whose reply is not sent; without those that wait for a release. */
unsigned int nfsd_sim_answering(struct nfsd_sim *sim);
/* The grace period of a restart is over. */
void nfsd_sim_end_grace(struct nfsd_sim *sim);
/* The write verifier changes and uncommitted data is lost, as after a writeback error. */
void nfsd_sim_new_verifier(struct nfsd_sim *sim);
/* Sessions are gone (BADSESSION), clients stay. */
void nfsd_sim_drop_sessions(struct nfsd_sim *sim);
/* Clients, sessions and state are gone, no restart: the lease ran out. */
void nfsd_sim_drop_clients(struct nfsd_sim *sim);
/*
 * The opens of this file (NULL: all) are taken away, their clients stay: NFS4ERR_EXPIRED,
 * ADMIN_REVOKED or DELEG_REVOKED is what is said of them until they are freed; SEQUENCE has the
 * flag. Returns how many.
 */
unsigned int nfsd_sim_revoke(struct nfsd_sim *sim, const char *path, uint32_t status);
/* The filehandle of each is that of the other from now on; to be undone before the end. */
void nfsd_sim_swap(struct nfsd_sim *sim, const char *a, const char *b);
/* Revoked and not freed yet. */
unsigned int nfsd_sim_revoked(struct nfsd_sim *sim);

/* ---- locks ---- */

/* Another client takes a lock, which a restart ends; false: it is not free. len UINT64_MAX: to the
 * end. */
bool nfsd_sim_lock(struct nfsd_sim *sim, const char *path, uint64_t off, uint64_t len, bool write);
void nfsd_sim_unlock(struct nfsd_sim *sim, const char *path, uint64_t off, uint64_t len);
/* What clients hold, of this file (NULL: of all), in no order. Returns how many ranges there are.
 */
struct nfsd_sim_range {
	uint64_t owner; /* the last 8 bytes of its name */
	uint64_t first, last;
	bool write;
};
unsigned int nfsd_sim_locks(
	struct nfsd_sim *sim, const char *path, struct nfsd_sim_range *ranges, unsigned int max);
/* Stateids of locks, held or not. */
unsigned int nfsd_sim_live_lock_states(struct nfsd_sim *sim);
/* CB_NOTIFY_LOCK to all who were denied one that they wait for. Returns the calls sent. */
unsigned int nfsd_sim_notify_locks(struct nfsd_sim *sim);

/* ---- backchannel ---- */

enum nfsd_sim_cb {
	NFSD_SIM_CB_NULL,
	NFSD_SIM_CB_SEQUENCE, /* CB_COMPOUND with CB_SEQUENCE alone */
	NFSD_SIM_CB_RECALL_ANY,
	NFSD_SIM_CB_RECALL,      /* of a delegation that was never given */
	NFSD_SIM_CB_RECALL_SLOT, /* slots 0 to 3 are enough */
	NFSD_SIM_CB_AGAIN,  /* CB_SEQUENCE alone with the number of the last call: a repetition */
	NFSD_SIM_CB_AHEAD,  /* CB_SEQUENCE alone with a number that is not the next */
	NFSD_SIM_CB_BAD_OP, /* CB_SEQUENCE and an operation that does not exist */
	NFSD_SIM_CB_UNKNOWN_PROG,
	NFSD_SIM_CB_UNKNOWN_VERS,
	NFSD_SIM_CB_UNKNOWN_PROC,
	NFSD_SIM_CB_GARBAGE,     /* a call with a body that cannot be decoded */
	NFSD_SIM_CB_NOTIFY_LOCK, /* of a file and an owner that are not known */
	NFSD_SIM_CB_GETATTR,     /* the same */
	NFSD_SIM_CB_OFFLOAD,     /* of a copy that never was, each time another one */
};
/* On every connection that has a backchannel (any: on every connection). Returns the calls sent. */
unsigned int nfsd_sim_callback(struct nfsd_sim *sim, enum nfsd_sim_cb what, bool any);

/* What the client said to the last call. */
struct nfsd_sim_cb_answer {
	uint32_t accept_stat;      /* of the RPC reply; 100: denied */
	uint32_t status, ops;      /* of the CB_COMPOUND; results in it */
	bool has_change, has_size; /* CB_GETATTR */
	uint64_t change, size;
};
struct nfsd_sim_cb_answer nfsd_sim_cb_last(struct nfsd_sim *sim);

/* ---- delegations ---- */

/*
 * With conf.delegs an OPEN that does not say WANT_NO_DELEG is given WRITE if it is for writing and
 * no other client has the file open, or else READ if it is for reading and no other client has it
 * open for writing; never a second one, never without a backchannel, never after somebody else
 * wanted the file. Another client's OPEN ends with NFS4ERR_DELAY until what is in its way is
 * recalled and returned.
 *
 * CB_RECALL, of what there is of this file (NULL: of all files), on any session, or on the
 * so-manieth of the client, from 0. Returns the calls sent.
 */
unsigned int nfsd_sim_recall(struct nfsd_sim *sim, const char *path);
unsigned int nfsd_sim_recall_on(struct nfsd_sim *sim, const char *path, unsigned int session);
/* mask: of RCA4_TYPE_MASK_*. To each client. */
unsigned int nfsd_sim_recall_any(struct nfsd_sim *sim, uint32_t keep, uint32_t mask);
/* CB_GETATTR of the change and the size of a file that somebody has a delegation of. */
unsigned int nfsd_sim_cb_getattr(struct nfsd_sim *sim, const char *path);
/* As nfsd_sim_revoke(); NFS4ERR_BAD_STATEID: they are forgotten, and no flag tells. */
unsigned int nfsd_sim_revoke_deleg(struct nfsd_sim *sim, const char *path, uint32_t status);
/* Given and neither returned nor revoked. */
unsigned int nfsd_sim_live_delegs(struct nfsd_sim *sim);
/*
 * Another client, that is none here, has the file open with this access from now on (0: closed).
 * False: a delegation is in its way and is recalled now. nfsd_sim_poke() is the same.
 */
bool nfsd_sim_other_open(struct nfsd_sim *sim, const char *path, uint32_t access);

/* ---- copies ---- */

/*
 * Those that go on end with this status after so many bytes (at most what was asked for), FILE_SYNC
 * or UNSTABLE. session: CB_OFFLOAD tells on the so-manieth of the client, from 0; -1: nobody is
 * told. Returns how many there were.
 */
unsigned int nfsd_sim_copies_end(
	struct nfsd_sim *sim, uint32_t status, uint64_t bytes, bool stable, int session);
unsigned int nfsd_sim_live_copies(struct nfsd_sim *sim);

/* ---- what it saw ---- */

struct nfsd_sim_stats {
	uint64_t calls, replies, connections;
	uint64_t msg, nomsg, read_chunks, write_chunks, reply_chunks, read_segs, write_segs;
	uint64_t pz_with_chunk;
	uint64_t reads_bytes, writes_bytes; /* by RDMA */
	uint64_t remote_invals, plain_replies;
	uint64_t replays, uncached_replays, misordered, false_retries, bad_sessions;
	uint64_t err_chunks;
	uint64_t too_big_to_cache; /* replies */
	uint64_t resends;          /* calls whose XID was seen on another connection */
	uint64_t client_errors;    /* RDMA_ERROR the client sent */
	uint64_t cb_replies, cb_accept_stat, cb_status; /* of the last reply */
	uint64_t max_outstanding;
	uint64_t over_target;       /* calls on slots above conf.target_slots */
	uint64_t sessions, clients; /* made */
	uint64_t reclaims;          /* opens reclaimed */
	uint64_t not_reclaimed;     /* opens that were not, at RECLAIM_COMPLETE */
	uint64_t locks;             /* granted */
	uint64_t lock_reclaims, locks_not_reclaimed;
	uint64_t old_stateids; /* OLD_STATEID, of opens */
	uint64_t delegs, deleg_reclaims, deleg_claims, deleg_returns;
	uint64_t deleg_io; /* with the stateid of a delegation */
	uint64_t recalls, recalls_delayed, recalls_refused;
	uint64_t ops[80];
};
struct nfsd_sim_stats nfsd_sim_stats(struct nfsd_sim *sim);
/* Now: sessions, client IDs, opens. */
unsigned int nfsd_sim_live_sessions(struct nfsd_sim *sim);
unsigned int nfsd_sim_live_clients(struct nfsd_sim *sim);
unsigned int nfsd_sim_live_opens(struct nfsd_sim *sim);
unsigned int nfsd_sim_live_conns(struct nfsd_sim *sim);
/* The opens of this file, in the order of their making. Returns how many there are. */
struct nfsd_sim_open {
	uint64_t owner;         /* the last 8 bytes of its name */
	uint32_t access, modes; /* modes: bit 1 << access of each OPEN */
	uint32_t seqid;
	uint32_t revoked; /* what is said of it, or 0 */
};
unsigned int nfsd_sim_opens(
	struct nfsd_sim *sim, const char *path, struct nfsd_sim_open *opens, unsigned int max);

/* ---- the file tree, from outside; paths like "/a/b", directories must exist ---- */

enum nfsd_sim_type {
	NFSD_SIM_REG = 1,
	NFSD_SIM_DIR = 2,
	NFSD_SIM_LNK = 5,
};
/* Returns the file ID, 0 on error. Data of LNK: the target. */
uint64_t nfsd_sim_mknod(struct nfsd_sim *sim, const char *path, enum nfsd_sim_type type,
	uint32_t mode, const void *data, size_t len);
/*
 * This directory has cnt empty files more, which take no memory: to be listed, looked up and
 * asked about, nothing else.
 */
void nfsd_sim_crowd(struct nfsd_sim *sim, const char *path, uint64_t cnt);
bool nfsd_sim_exists(struct nfsd_sim *sim, const char *path);
/* Copies at most `len` bytes from `off`; returns the file's size, -1 if there is no such file. */
int64_t nfsd_sim_peek(struct nfsd_sim *sim, const char *path, uint64_t off, void *buf, size_t len);
/* Another client writes; false: there is no such file, or see nfsd_sim_other_open(). */
bool nfsd_sim_poke(
	struct nfsd_sim *sim, const char *path, uint64_t off, const void *buf, size_t len);
/* Another client sets its size. */
bool nfsd_sim_resize(struct nfsd_sim *sim, const char *path, uint64_t size);
/*
 * This directory, which is empty, is the root of another file system (the same one for all such):
 * of another fsid, and with these facts in place of conf's.
 */
struct nfsd_sim_fs {
	uint32_t maxread, maxwrite, maxname;
	uint64_t maxfilesize;
	uint32_t supported_mask[3]; /* attributes taken away from supported_attrs */
	uint32_t clone_block;
	bool case_insensitive;
};
void nfsd_sim_below(struct nfsd_sim *sim, const char *path, const struct nfsd_sim_fs *facts);
/* OPEN of it is NFS4ERR_DELAY, as of a file that is on tape. */
void nfsd_sim_delay_opens(struct nfsd_sim *sim, const char *path, bool delay);
/* An ACL denies READ_ATTRIBUTES: GETATTR of it is NFS4ERR_ACCESS for everybody. */
void nfsd_sim_deny_attrs(struct nfsd_sim *sim, const char *path, bool deny);
bool nfsd_sim_unlink(struct nfsd_sim *sim, const char *path);
/* Bytes written UNSTABLE and not committed yet, over all files. */
uint64_t nfsd_sim_unstable_bytes(struct nfsd_sim *sim);

#endif
