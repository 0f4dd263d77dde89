/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the simulated server. Everything here is called with sim->lock held unless it says so. */
#ifndef RPCRDMAFS_NFSD_SIM_INT_H
#define RPCRDMAFS_NFSD_SIM_INT_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "list.h"
#include "nfsd_sim.h"

/* ---- XDR, on purpose not the client's ---- */

struct rd {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint32_t rd_u32(struct rd *r)
{
	uint32_t v;

	if (r->bad || r->end - r->p < 4) {
		r->bad = true;
		return 0;
	}
	v = (uint32_t)r->p[0] << 24 | (uint32_t)r->p[1] << 16 | (uint32_t)r->p[2] << 8 | r->p[3];
	r->p += 4;
	return v;
}

static inline uint64_t rd_u64(struct rd *r)
{
	uint64_t hi = rd_u32(r);

	return hi << 32 | rd_u32(r);
}

static inline const uint8_t *rd_bytes(struct rd *r, size_t len)
{
	const uint8_t *p = r->p;
	size_t padded = (len + 3) & ~(size_t)3;

	if (r->bad || (size_t)(r->end - r->p) < padded) {
		r->bad = true;
		return NULL;
	}
	for (size_t i = len; i < padded; i++) {
		if (p[i])
			r->bad = true; /* round-up must be zero in what we are sent */
	}
	r->p += padded;
	return p;
}

static inline const uint8_t *rd_opaque(struct rd *r, uint32_t *len)
{
	*len = rd_u32(r);
	return rd_bytes(r, *len);
}

/* grow: base is heap memory and becomes larger as needed. */
struct wr {
	uint8_t *base;
	size_t len, cap;
	bool bad, grow;
};

static inline void wr_raw(struct wr *w, const void *p, size_t len)
{
	if (w->len + len > w->cap && w->grow) {
		w->cap = 2 * (w->len + len);
		w->base = (uint8_t *)realloc(w->base, w->cap);
	}
	if (w->len + len > w->cap) {
		w->bad = true;
		return;
	}
	if (len)
		memcpy(w->base + w->len, p, len);
	w->len += len;
}

static inline void wr_u32(struct wr *w, uint32_t v)
{
	uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	wr_raw(w, b, 4);
}

static inline void wr_u64(struct wr *w, uint64_t v)
{
	wr_u32(w, (uint32_t)(v >> 32));
	wr_u32(w, (uint32_t)v);
}

static inline void wr_fixed(struct wr *w, const void *p, size_t len)
{
	static const uint8_t zero[4];

	wr_raw(w, p, len);
	wr_raw(w, zero, (4 - (len & 3)) & 3);
}

static inline void wr_opaque(struct wr *w, const void *p, size_t len)
{
	wr_u32(w, (uint32_t)len);
	wr_fixed(w, p, len);
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* ---- wire numbers ---- */

enum {
	SIM_RDMA_MSG = 0,
	SIM_RDMA_NOMSG = 1,
	SIM_RDMA_MSGP = 2,
	SIM_RDMA_DONE = 3,
	SIM_RDMA_ERROR = 4,
	SIM_ERR_VERS = 1,
	SIM_ERR_CHUNK = 2,
};

enum {
	OP4_ACCESS = 3,
	OP4_CLOSE = 4,
	OP4_COMMIT = 5,
	OP4_CREATE = 6,
	OP4_DELEGRETURN = 8,
	OP4_GETATTR = 9,
	OP4_GETFH = 10,
	OP4_LINK = 11,
	OP4_LOCK = 12,
	OP4_LOCKT = 13,
	OP4_LOCKU = 14,
	OP4_LOOKUP = 15,
	OP4_LOOKUPP = 16,
	OP4_OPEN = 18,
	OP4_OPEN_DOWNGRADE = 21,
	OP4_PUTFH = 22,
	OP4_PUTPUBFH = 23,
	OP4_PUTROOTFH = 24,
	OP4_READ = 25,
	OP4_READDIR = 26,
	OP4_READLINK = 27,
	OP4_REMOVE = 28,
	OP4_RENAME = 29,
	OP4_RESTOREFH = 31,
	OP4_SAVEFH = 32,
	OP4_SETATTR = 34,
	OP4_VERIFY = 37,
	OP4_WRITE = 38,
	OP4_BIND_CONN = 41,
	OP4_EXCHANGE_ID = 42,
	OP4_CREATE_SESSION = 43,
	OP4_DESTROY_SESSION = 44,
	OP4_FREE_STATEID = 45,
	OP4_SECINFO_NO_NAME = 52,
	OP4_SEQUENCE = 53,
	OP4_TEST_STATEID = 55,
	OP4_DESTROY_CLIENTID = 57,
	OP4_RECLAIM_COMPLETE = 58,
	OP4_ALLOCATE = 59,
	OP4_COPY = 60,
	OP4_DEALLOCATE = 62,
	OP4_OFFLOAD_CANCEL = 66,
	OP4_OFFLOAD_STATUS = 67,
	OP4_SEEK = 69,
	OP4_CLONE = 71,
	OP4_GETXATTR = 72,
	OP4_SETXATTR = 73,
	OP4_LISTXATTRS = 74,
	OP4_REMOVEXATTR = 75,
	OP4_ILLEGAL = 10044,
};

enum {
	ST_OK = 0,
	ST_PERM = 1,
	ST_NOENT = 2,
	ST_IO = 5,
	ST_ACCESS = 13,
	ST_EXIST = 17,
	ST_XDEV = 18,
	ST_NOTDIR = 20,
	ST_ISDIR = 21,
	ST_INVAL = 22,
	ST_FBIG = 27,
	ST_NAMETOOLONG = 63,
	ST_NOTEMPTY = 66,
	ST_STALE = 70,
	ST_BADHANDLE = 10001,
	ST_BAD_COOKIE = 10003,
	ST_NOTSUPP = 10004,
	ST_TOOSMALL = 10005,
	ST_BADTYPE = 10007,
	ST_DELAY = 10008,
	ST_DENIED = 10010,
	ST_EXPIRED = 10011,
	ST_LOCKED = 10012,
	ST_GRACE = 10013,
	ST_NOFILEHANDLE = 10020,
	ST_MOVED = 10019,
	ST_MINOR_VERS_MISMATCH = 10021,
	ST_STALE_CLIENTID = 10022,
	ST_STALE_STATEID = 10023,
	ST_OLD_STATEID = 10024,
	ST_BAD_STATEID = 10025,
	ST_NOT_SAME = 10027,
	ST_RESTOREFH = 10030,
	ST_ATTRNOTSUPP = 10032,
	ST_NO_GRACE = 10033,
	ST_RECLAIM_BAD = 10034,
	ST_RECLAIM_CONFLICT = 10035,
	ST_BADXDR = 10036,
	ST_LOCKS_HELD = 10037,
	ST_OPENMODE = 10038,
	ST_BADOWNER = 10039,
	ST_BADNAME = 10041,
	ST_OP_ILLEGAL = 10044,
	ST_ADMIN_REVOKED = 10047,
	ST_BADSESSION = 10052,
	ST_BADSLOT = 10053,
	ST_COMPLETE_ALREADY = 10054,
	ST_CONN_NOT_BOUND = 10055,
	ST_SEQ_MISORDERED = 10063,
	ST_SEQUENCE_POS = 10064,
	ST_REQ_TOO_BIG = 10065,
	ST_REP_TOO_BIG = 10066,
	ST_REP_TOO_BIG_TO_CACHE = 10067,
	ST_RETRY_UNCACHED_REP = 10068,
	ST_TOO_MANY_OPS = 10070,
	ST_OP_NOT_IN_SESSION = 10071,
	ST_CLIENTID_BUSY = 10074,
	ST_SEQ_FALSE_RETRY = 10076,
	ST_NOT_ONLY_OP = 10081,
	ST_WRONG_CRED = 10082,
	ST_WRONG_TYPE = 10083,
	ST_NOXATTR = 10095,
	ST_XATTR2BIG = 10096,
	ST_DELEG_REVOKED = 10087,
};

/* open_claim_type4 */
enum {
	SIM_CLAIM_NULL = 0,
	SIM_CLAIM_PREVIOUS = 1,
	SIM_CLAIM_FH = 4,
	SIM_CLAIM_DELEG_CUR_FH = 5,
};

/* ---- the file tree (nfsd_sim_tree.c) ---- */

struct xattr {
	struct list link;
	char name[256];
	uint8_t *value;
	uint32_t len;
};

struct node {
	uint64_t id;
	uint32_t type; /* NF4* */
	uint32_t mode, uid, gid, nlink;
	uint32_t rdev[2];
	uint64_t change, size;
	uint8_t *data; /* a file's bytes, a link's target */
	size_t cap;
	uint8_t *stable; /* what a crash leaves; NULL: same as data */
	uint64_t stable_size;
	uint64_t unstable;  /* bytes written since */
	unsigned int opens; /* keep it although it has no name; delegations too */
	uint32_t other;     /* access that nfsd_sim_other_open() has */
	bool contended;     /* a delegation was in somebody's way: none is given any more */
	struct timespec atime, mtime, ctime;
	uint8_t excl[8];
	bool is_excl;
	bool opens_delayed;  /* nfsd_sim_delay_opens() */
	bool attrs_denied;   /* nfsd_sim_deny_attrs() */
	bool below, is_root; /* of nfsd_sim_below(): in it; its root */
	struct node *parent; /* of a directory */
	struct list entries; /* struct dirent_sim, in order of their cookies */
	uint64_t next_cookie;
	struct list xattrs;
	uint8_t *acl; /* nfsace4<> as it was set, NULL: made from the mode */
	uint32_t acl_len;
};

struct dirent_sim {
	struct list link;
	uint64_t cookie;
	char name[256];
	uint32_t len;
	struct node *node;
};

struct tree {
	struct node **nodes; /* by id - 1; NULL: gone */
	size_t cnt, cap;
	uint64_t clock;
	struct node *root;
	/* A directory of files that are made up when they are asked for, and the last of them. */
	struct node *crowd;
	uint64_t crowd_cnt;
	struct node made_up;
};

/* File ID of the first of the crowd, whose cookie is TREE_CROWD_COOKIE. */
#define TREE_CROWD_ID     (1ull << 40)
#define TREE_CROWD_COOKIE 3

void tree_init(struct tree *t);
void tree_fini(struct tree *t);
/* Of the crowd: good until the next one is asked for. */
struct node *tree_node(struct tree *t, uint64_t id);
struct node *tree_new(struct tree *t, uint32_t type, uint32_t mode);
struct dirent_sim *tree_find(struct node *dir, const char *name, uint32_t len);
/* What a name stands for; NULL: nothing. */
struct node *tree_lookup(struct tree *t, struct node *dir, const char *name, uint32_t len);
/* The name of one of the crowd; returns its length. */
uint32_t tree_crowd_name(uint64_t number, char name[256]);
void tree_link(struct tree *t, struct node *dir, const char *name, uint32_t len, struct node *n);
/* Frees the node if this was its last link and nobody has it open. */
void tree_unlink(struct tree *t, struct node *dir, struct dirent_sim *de);
void tree_touch(struct tree *t, struct node *n, bool data);
void tree_resize(struct node *n, uint64_t size);
void tree_truncate(struct tree *t, struct node *n, uint64_t size);
void tree_put(struct tree *t, struct node *n); /* after a change of nlink or opens */
void tree_write(
	struct tree *t, struct node *n, uint64_t off, const void *p, size_t len, bool stable);
void tree_commit(struct node *n);
void tree_crash(struct tree *t);
struct node *tree_path(struct tree *t, const char *path);

/* ---- clients, sessions, state ---- */

struct slot {
	uint32_t seqid;
	bool used, cached;
	uint8_t *req; /* the COMPOUND as it came */
	size_t req_len;
	uint8_t *reply; /* from the COMPOUND's status on */
	size_t reply_len;
};

struct client {
	struct list link;
	uint64_t id;
	uint8_t verf[8];
	uint8_t owner[1024];
	uint32_t owner_len;
	uint32_t uid;
	uint32_t flags; /* of its EXCHANGE_ID */
	bool bound;     /* stateids are of whoever opened: BIND_PRINC_STATEID */
	bool confirmed, reclaimed;
	uint32_t cs_seq; /* next CREATE_SESSION */
	uint8_t cs_reply[256];
	size_t cs_reply_len;
	uint32_t cs_status;
};

struct session {
	struct list link;
	uint8_t id[16];
	struct client *client;
	struct slot *slots;
	unsigned int slot_cnt, max_ops;
	uint32_t max_request, max_response, max_cached;
	uint32_t cb_prog, cb_seq;
	bool back;
};

struct open_state {
	struct list link;
	struct client *client;
	struct node *node;
	uint8_t other[12];
	uint32_t seqid;
	uint32_t access;  /* of all OPENs since the last downgrade */
	uint32_t modes;   /* bit 1 << access of each of them */
	uint32_t uid;     /* who opened it */
	uint32_t revoked; /* what is said of it; 0: it is good */
	uint64_t told_ns; /* when it was first said; 0: not yet */
	uint8_t owner[1024];
	uint32_t owner_len;
};

/* The locks of an owner through an open. */
struct lock_state {
	struct list link;
	struct open_state *open;
	uint8_t other[12];
	uint32_t seqid;
	uint8_t owner[1024];
	uint32_t owner_len;
};

/* One range that an owner holds of a file, or waits for. */
struct lock_range {
	struct list link;
	struct client *client; /* NULL: nfsd_sim_lock() */
	struct node *node;
	uint8_t owner[1024];
	uint32_t owner_len;
	uint64_t first, last;
	bool write;
};

struct stateid {
	uint32_t seqid;
	uint8_t other[12];
};

/* ---- connections and calls ---- */

#define SEGS_MAX   64
#define CHUNKS_MAX 8
#define DDP_MAX    8

struct seg {
	uint32_t rkey, len;
	uint64_t addr;
};

struct chunk {
	struct seg segs[SEGS_MAX];
	unsigned int seg_cnt;
	uint64_t total;
};

/* One call, from its arrival until it is answered. */
struct job {
	struct list link;
	struct sconn *conn;
	struct reactor_timer timer;
	bool held;
	uint32_t xid;
	uint32_t proc;
	uint32_t read_pos; /* of the normal Read chunk, 0: none */
	struct chunk pz, read;
	struct chunk writes[CHUNKS_MAX];
	unsigned int write_cnt;
	struct chunk reply_chunk;
	bool has_reply_chunk;
	uint32_t inv_rkey; /* may be invalidated; 0: not exactly one */
	uint32_t a_key;    /* any of its keys */
	bool is_null;
	bool unbounded; /* asks for ACLs or xattrs: short-Reply-chunk retry is allowed */
	bool op_seen[80];
	uint8_t opened[12]; /* the open that an OPEN in it was for */
	bool resent;        /* posted on an earlier connection too: it cannot be changed any more */

	uint8_t *call; /* whole RPC message */
	size_t call_len;
	struct wr rep; /* whole RPC reply */
	struct {
		size_t off, len;
	} ddp[DDP_MAX];
	unsigned int ddp_cnt;
	/* what the rules said */
	bool lose, hold, no_inv, wrong_inv, err_after, cut_after, cut_replied;
	uint32_t wrong_key;
	unsigned int dups;
	uint64_t late_ns;
	int err_code;               /* RDMA_ERROR instead of executing: code; 0: none */
	int accept_stat, deny_stat; /* -1: none */
	uint32_t seq_flags;
	const struct nfsd_sim_rule *raw, *mutate, *mutate_body;
};

struct sconn {
	struct list link;
	uint64_t id;
	struct nfsd_sim *sim;
	struct fab_sim_conn *fab;
	struct reactor *reactor;
	bool inv_ok;
	uint32_t client_recv, client_send; /* from the private data */
	struct list jobs;
	/* the judge's view of the client */
	uint32_t calls[4096]; /* XIDs on their way */
	unsigned int call_cnt;
	uint32_t granted;  /* as the client knows */
	struct list cbs;   /* our calls (nfsd_sim_cb.c) */
	uint64_t since_ns; /* its first message: with it comes what waited for the connection */
	uint8_t back_session[16];
	bool has_back;
};

struct rule {
	struct list link;
	struct nfsd_sim_rule r;
	uint32_t met, seen, acted;
};

/* One that matches: whether it is its turn. */
bool rule_turn(struct rule *rule);

/* A stateid that ended. */
struct gone {
	uint8_t other[12];
	uint64_t when_ns;
};
#define GONE_MAX 64u

struct nfsd_sim {
	pthread_mutex_t lock;
	struct nfsd_sim_conf conf;
	struct nfsd_sim_fs below; /* nfsd_sim_below() */
	struct nfsd_sim_stats stats;
	struct list conns, rules, old_rules;
	uint64_t next_conn_id;
	uint32_t next_cb_xid;
	struct tree tree;
	struct list clients, sessions, opens;
	struct list delegs;                      /* nfsd_sim_deleg.c */
	struct list copies;                      /* nfsd_sim_copy.c */
	struct list held, held_less, held_deleg; /* nfsd_sim_state.c */
	struct nfsd_sim_cb_answer cb_last;
	struct list lock_states, lock_ranges, lock_waiters;
	struct list lock_held; /* nfsd_sim_lockrec.c */
	uint32_t boot;
	uint64_t next_id;
	uint8_t verf[8];
	uint64_t grace_until_ns;
	bool paused; /* nfsd_sim_pause() */
	/* Calls refused unexecuted in a way that does not say so: their slots may skip a number. */
	unsigned int unsure;
	uint8_t *out;               /* NFSD_SIM_OUT_ROOM: the message being made */
	uint32_t posted_xids[4096]; /* whether they arrived or not */
	uint64_t posted_conn[4096];
	unsigned int posted_pos;
	struct gone gone[GONE_MAX]; /* the last ones */
	unsigned int gone_pos;
	uint64_t amnesia_ns;        /* sessions were lost, with what was executed on them */
	uint32_t recent_xids[4096]; /* to see resends */
	uint64_t recent_conn[4096];
	unsigned int recent_pos;
};

/* A COMPOUND being executed. */
struct cmp {
	struct nfsd_sim *sim;
	struct sconn *conn;
	struct job *job;
	struct rd in;
	struct wr *out;
	uint32_t minor;
	uint32_t uid, gid;
	struct node *cur, *saved;
	struct stateid cur_sid;
	bool have_sid;
	struct session *sess;
	struct slot *slot;
	bool cachethis;
	uint32_t op_idx, op_cnt;
	const uint8_t *args; /* the COMPOUND's arguments */
	size_t args_len;
	size_t status_off;   /* where the COMPOUND's status is in out */
	bool uncached_retry; /* the next operation ends with RETRY_UNCACHED_REP */
	bool keep_body;      /* results are there although the status is an error */
	bool replayed;       /* the reply came from the cache: nothing follows */
	uint32_t *cached;    /* where a cache has this operation's status; NULL: nowhere */
};

typedef uint32_t (*op_fn)(struct cmp *c);

/* nfsd_sim_xprt.c */
void job_free(struct job *job);
/* nfsd_sim_reply.c */
void job_rules(struct job *job);
void job_answer(struct job *job); /* after execution: now, or when its time comes */
void send_error(struct sconn *conn, uint32_t xid, uint32_t code);
/* nfsd_sim_rpc.c */
void rpc_execute(struct job *job);
void rpc_scan(struct job *job);
/* nfsd_sim_sess.c */
uint32_t op_exchange_id(struct cmp *c);
uint32_t op_create_session(struct cmp *c);
uint32_t op_destroy_session(struct cmp *c);
uint32_t op_destroy_clientid(struct cmp *c);
uint32_t op_bind_conn(struct cmp *c);
uint32_t op_sequence(struct cmp *c);
uint32_t op_reclaim_complete(struct cmp *c);
void slot_store(struct cmp *c, size_t reply_off);
void client_drop(struct nfsd_sim *sim, struct client *cl);
void session_drop(struct nfsd_sim *sim, struct session *s);
void open_drop(struct nfsd_sim *sim, struct open_state *o);
bool in_grace(const struct cmp *c);
uint64_t now_of(const struct reactor *r); /* of a reactor that may be another thread's */
/* nfsd_sim_revoke.c */
uint32_t revoked_flags(const struct nfsd_sim *sim, const struct client *cl);
/* nfsd_sim_compound.c */
void compound_execute(struct cmp *c);
void compound_scan(struct rd *in, bool seen[80]);
/* nfsd_sim_attr.c */
void attr_encode(struct cmp *c, struct node *n, const uint32_t mask[3], uint32_t rderror);
void rd_bitmap(struct rd *r, uint32_t mask[3]);
void wr_bitmap(struct wr *w, const uint32_t mask[3]);
/* Decodes a fattr4 and applies it; set: what was set. n NULL: skip. */
uint32_t attr_apply(struct cmp *c, struct node *n, uint32_t set[3]);
/* The facts of the file system that it is in. */
struct nfsd_sim_fs fs_of(const struct cmp *c, const struct node *n);
/* May an exclusive create set these? */
bool attr_is_exclcreat(const struct cmp *c, const uint32_t asked[3]);
void wr_fh(struct cmp *c, struct node *n);
/* nfsd_sim_state.c */
void held_note(struct nfsd_sim *sim); /* the server is restarted: what is open may be reclaimed */
void held_free(struct nfsd_sim *sim);
/* CLOSE or OPEN_DOWNGRADE: whoever did not hear the answer may ask for what there was. */
void held_less(struct cmp *c, const struct open_state *o);
uint32_t held_reclaim(struct cmp *c, const uint8_t *owner, uint32_t owner_len, uint32_t access,
	uint32_t deleg_type);
void held_complete(struct cmp *c); /* RECLAIM_COMPLETE */
/* nfsd_sim_lock.c */
struct lock_range *ranges_conflict(struct nfsd_sim *sim, const struct lock_range *want);
void ranges_clear(struct nfsd_sim *sim, const struct lock_range *what);
void ranges_set(struct nfsd_sim *sim, const struct lock_range *what);
struct lock_state *lock_find(struct nfsd_sim *sim, const uint8_t *other);
/* With conf.mandatory_locks: ST_LOCKED where somebody else than whose stateid it is has a lock. */
uint32_t lock_io_check(
	struct cmp *c, const struct stateid *sid, uint64_t off, uint64_t len, bool write);
void locks_drop(struct nfsd_sim *sim, const struct open_state *o);
bool locks_held(struct nfsd_sim *sim, const struct open_state *o);
uint32_t lock_free_stateid(struct nfsd_sim *sim, struct lock_state *ls);
/* LOCK4denied; r NULL: of somebody's. */
void wr_denied(struct cmp *c, const struct lock_range *r);
uint32_t op_lock(struct cmp *c);
uint32_t op_lockt(struct cmp *c);
uint32_t op_locku(struct cmp *c);
/* nfsd_sim_lockrec.c: as held_*(); done: it was asked for again, or let go */
void lock_held_note(struct nfsd_sim *sim);
void lock_held_free(struct nfsd_sim *sim);
uint32_t lock_held_reclaim(struct cmp *c, const struct lock_range *r);
void lock_held_done(struct nfsd_sim *sim, const struct lock_range *r);
void lock_held_close(struct nfsd_sim *sim, const struct open_state *o);
void lock_held_complete(struct cmp *c);
/* READ or WRITE by this open: it must have its locks again. */
void lock_held_io(struct cmp *c, const struct open_state *o);
void waiter_note(struct nfsd_sim *sim, const struct lock_range *r);
void waiters_drop(struct nfsd_sim *sim, const struct client *cl); /* NULL: all */
/* nfsd_sim_ops.c, nfsd_sim_io.c */
uint32_t op_access(struct cmp *c);
uint32_t op_getattr(struct cmp *c);
uint32_t op_setattr(struct cmp *c);
uint32_t op_verify(struct cmp *c);
uint32_t op_getfh(struct cmp *c);
uint32_t op_putfh(struct cmp *c);
uint32_t op_putrootfh(struct cmp *c);
uint32_t op_lookup(struct cmp *c);
uint32_t op_lookupp(struct cmp *c);
uint32_t op_savefh(struct cmp *c);
uint32_t op_restorefh(struct cmp *c);
uint32_t op_create(struct cmp *c);
uint32_t op_remove(struct cmp *c);
uint32_t op_rename(struct cmp *c);
uint32_t op_link(struct cmp *c);
uint32_t op_readdir(struct cmp *c);
uint32_t op_readlink(struct cmp *c);
uint32_t op_secinfo_no_name(struct cmp *c);
/* nfsd_sim_open.c */
uint32_t op_open(struct cmp *c);
uint32_t op_open_downgrade(struct cmp *c);
uint32_t op_close(struct cmp *c);
uint32_t op_delegreturn(struct cmp *c);
uint32_t op_read(struct cmp *c);
uint32_t op_write(struct cmp *c);
uint32_t op_commit(struct cmp *c);
uint32_t op_test_stateid(struct cmp *c);
uint32_t op_free_stateid(struct cmp *c);
uint32_t op_seek(struct cmp *c);
uint32_t op_allocate(struct cmp *c);
uint32_t op_deallocate(struct cmp *c);
/* nfsd_sim_copy.c */
uint32_t op_clone(struct cmp *c); /* nfsd_sim_clone.c */
uint32_t op_copy(struct cmp *c);
uint32_t op_offload_status(struct cmp *c);
uint32_t op_offload_cancel(struct cmp *c);
void copies_drop(struct nfsd_sim *sim, const struct client *cl);
uint32_t op_getxattr(struct cmp *c);
uint32_t op_setxattr(struct cmp *c);
uint32_t op_listxattrs(struct cmp *c);
uint32_t op_removexattr(struct cmp *c);
void rd_stateid(struct rd *r, struct stateid *sid);
struct open_state *find_open(struct nfsd_sim *sim, const uint8_t *other);
/* What is said of an open, which its client knows from then on. */
uint32_t tell_revoked(struct cmp *c, struct open_state *o);
/* need: OPEN4_SHARE_ACCESS bits. Status; records what the client must not do. */
uint32_t state_check(
	struct cmp *c, const struct stateid *sid, uint32_t need, struct open_state **ret_open);
/* The status for a stateid that nothing is known of. */
uint32_t bad_stateid(struct cmp *c, const struct stateid *sid);
void stateid_gone(struct nfsd_sim *sim, const uint8_t *other);
/* The time of its connections; 0: it has none. */
uint64_t sim_now(const struct nfsd_sim *sim);
/* A component name: 0 or a status. */
uint32_t rd_name(struct rd *r, const char **ret_name, uint32_t *ret_len);
void wr_cinfo(struct cmp *c, uint64_t before, const struct node *dir);
bool may(const struct cmp *c, const struct node *n, uint32_t rwx);

#endif
