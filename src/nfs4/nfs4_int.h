/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside src/nfs4: how operations, the COMPOUND builder and the session meet.
 *
 * An operation describes itself once (struct nfs4_opdesc): how its part of the
 * COMPOUND is encoded after SEQUENCE, how long its reply can be, whether a
 * replay must be possible, and how its results are decoded. The session owns
 * everything else: it may encode one call several times (a new session, a
 * delay), so encode must depend on the call's "in" fields alone.
 */
#ifndef RPCRDMAFS_NFS4_INT_H
#define RPCRDMAFS_NFS4_INT_H

#include "nfs4_held.h"
#include "log.h"

struct nfs4_sessionid {
	uint8_t data[NFS4_SESSIONID_SIZE];
};

/* A COMPOUND being built or read (nfs4_compound.c). */
struct nfs4_compound {
	struct xdr_enc enc;
	struct xdr_dec dec;
	struct nfs4_call *call;
	struct stats *stats; /* encode: operations are counted there; NULL: nowhere */
	uint32_t op_cnt;     /* encoded, or left to decode */
	size_t op_cnt_off;   /* where the count is patched */
	uint32_t reply_max;  /* sum of what the operations can return */
	unsigned int minor;
	const uint32_t *supported;    /* server's supported_attrs words; NULL: not known yet */
	const uint32_t *exclcreat;    /* its suppattr_exclcreat; NULL: not known */
	uint32_t read_max, write_max; /* of data, in this session; 0: not known */
	/* of the session: operations; bytes of a reply that is kept, RPC header included; 0: any */
	uint32_t ops_max, cached_max;
	size_t inline_max; /* bytes of a reply, RPC header included, without a chunk; 0: not known
			    */
	enum nfs4_status status; /* decode: status of the whole */
	uint32_t failed_op;      /* decode: number of the operation that failed, 0 if none */
	/* owners (nfs4_owners.c); NULL: names are nobody's */
	struct idmap *idmap;
	uint64_t now_ns;
	/* decode: the last name that is asked for; 0: all are known */
	uint64_t idmap_ticket;
	bool idmap_late; /* they are waited for no longer */
	/* decode: the op's; it is booked at once, and attributes do without names not known yet */
	bool at_once;
};

/*
 * Encoding: opens an operation: its number goes out, its reply bound is added
 * (without the 8 bytes of opnum and status, which are added here) and it is counted.
 */
void nfs4_compound_op(struct nfs4_compound *c, enum nfs4_opnum op, uint32_t reply_max);
/*
 * Decoding: the next result must be `op`; true if it is there with NFS4_OK and the cursor stands
 * at its body. false: the operation failed or was not reached (c->status says why), or the reply
 * is malformed (c->dec.failed).
 */
bool nfs4_compound_result(struct nfs4_compound *c, enum nfs4_opnum op);
/* Like nfs4_compound_result() for an operation with an empty body: PUTFH, SAVEFH, RESTOREFH,
 * LOOKUP... */
bool nfs4_compound_void(struct nfs4_compound *c, enum nfs4_opnum op);

/* The result of a hook: this becomes of the call. */
enum nfs4_state_verdict {
	NFS4_STATE_GO,    /* it is sent, or sent again */
	NFS4_STATE_WAIT,  /* its state is being reclaimed: later again */
	NFS4_STATE_IDMAP, /* names of owners are asked for (call->idmap_ticket): then again */
	NFS4_STATE_FAIL,  /* its state is lost, or it has none: -EIO, or the status' errno */
	NFS4_STATE_END,   /* it ends with call->err */
};

/*
 * What an operation is. The hooks take, granted, refused and ended are those of a group of
 * operations (nfs4_hooks.h), or NULL. Each runs on the session's lane, with no lock held.
 */
struct nfs4_opdesc {
	const char *name; /* for logs */
	/* Everything after SEQUENCE. Returns 0 or -errno (-EMSGSIZE, -EINVAL ...): the call ends.
	 */
	int (*encode)(struct nfs4_call *call, struct nfs4_compound *c);
	/*
	 * Results after SEQUENCE's, also when an operation failed (c->status): the parts that are
	 * there are decoded. Once more, from the same bytes, if they have names of owners that were
	 * not known. Returns 0 or -EBADMSG: the server broke the protocol.
	 */
	int (*decode)(struct nfs4_call *call, struct nfs4_compound *c);
	/*
	 * The operations failed: true if the call, which may have been executed before (->resent),
	 * is to be sent again, in another form. Optional.
	 */
	bool (*again)(struct nfs4_call *call);
	/* It is about to get a slot, maybe not for the first time: sets call->stateid. */
	enum nfs4_state_verdict (*take)(struct nfs4_call *call);
	/* The answer is NFS4_OK: books it. False: what was granted is no use, it goes again. */
	bool (*granted)(struct nfs4_call *call);
	/* The answer is that the stateid is no good (NFS4_ACT_STATE). NULL: it fails. */
	enum nfs4_state_verdict (*refused)(struct nfs4_call *call);
	/*
	 * It is over, in whichever way, with call->err. Calls call->done, which others do without
	 * it; the call may be gone then.
	 */
	void (*ended)(struct nfs4_call *call);
	bool cachethis;   /* a replay must be possible: everything that is not idempotent */
	bool no_sequence; /* EXCHANGE_ID, CREATE_SESSION, BIND_CONN...: outside a session */
	/*
	 * The reply has no bound but the sink that encode names (RFC 8267 section 3.1): the session
	 * offers a part of it first and more when the server says that it was too small
	 * (nfs4_reply_chunk.c); -E2BIG when there is no more. Never with cachethis.
	 */
	bool unbounded;
	/*
	 * The bytes that it reads or writes: it bears the stateid of who holds a lock there
	 * (nfs4_lock_io.c). False: none. NULL: it does neither, or not with a lock's stateid.
	 */
	bool (*range)(const struct nfs4_call *call, uint64_t *ret_first, uint64_t *ret_last);
	uint16_t state_off; /* offset in nfs4_call of its nfs4_state pointer; 0: it has none */
	uint16_t lock_off;  /* LOCK, LOCKU: the same of their nfs4_lock_work */
	/* So many DELAYs and the call ends, -EAGAIN with that status; 0: it waits as calls do. */
	uint8_t max_delays;
	bool repeatable; /* may be executed twice although a replay is possible */
	bool once;       /* executed again it would fail, or do harm (nfs4_redo.h) */
	/*
	 * The data buffer to build this call in when it may be too long for inline (CREATE's
	 * long_buf), or NULL: not this time. Optional member: most calls are always short.
	 */
	struct rpcrdma_buf *(*long_buf)(struct nfs4_call *call);
};

/* Starts a call whose `in` is filled in; each nfs4_<op>() is this with its descriptor. */
void nfs4_call_start(struct nfs4_call *call, const struct nfs4_opdesc *desc);

/* nfs4_revoke.c, nfs4_revoke_free.c and nfs4_lock_free.c encode and decode by them. */
extern const struct nfs4_opdesc nfs4_test_stateid_desc, nfs4_free_stateid_desc;

/* The work of a LOCK or LOCKU. */
static inline struct nfs4_lock_work *nfs4_work_of_lock(struct nfs4_call *call)
{
	return (struct nfs4_lock_work *)((char *)call + call->desc->lock_off);
}
/* Of [offset, offset + count): for desc->range. False: nothing. */
static inline bool nfs4_bytes_range(
	uint64_t offset, uint64_t count, uint64_t *ret_first, uint64_t *ret_last)
{
	*ret_first = offset;
	*ret_last = count > UINT64_MAX - offset ? UINT64_MAX : offset + count - 1;
	return count > 0;
}

/* ---- parts that several operations encode and decode ---- */

void nfs4_xdr_put_putfh(struct nfs4_compound *c, const struct nfs4_fh *fh);
void nfs4_xdr_put_getfh(struct nfs4_compound *c);
bool nfs4_xdr_get_getfh(struct nfs4_compound *c, struct nfs4_fh *fh);
/*
 * mask: NFS4_ATTR_*; only what the server supports is asked for, and nothing where the reply might
 * be longer than what the server keeps of it: the call is worth more than its attributes.
 */
void nfs4_xdr_put_getattr(struct nfs4_compound *c, uint32_t mask);
/* Reads a GETATTR result; attr->valid = 0 and false if it is not there. */
bool nfs4_xdr_get_getattr(struct nfs4_compound *c, struct nfs4_attr *attr);
void nfs4_xdr_put_stateid(struct xdr_enc *x, const struct nfs4_stateid *sid);
void nfs4_xdr_get_stateid(struct xdr_dec *x, struct nfs4_stateid *sid);
void nfs4_xdr_put_str(struct xdr_enc *x, const struct nfs4_str *s);
void nfs4_xdr_get_cinfo(struct xdr_dec *x, struct nfs4_cinfo *ci);
void nfs4_xdr_get_verf(struct xdr_dec *x, struct nfs4_verf *v);
void nfs4_xdr_get_fh(struct xdr_dec *x, struct nfs4_fh *fh);
/* ->encode returns nfs4_xdr_encode_end(), ->decode nfs4_xdr_decode_end(). */
int nfs4_xdr_encode_end(const struct nfs4_compound *c);
int nfs4_xdr_decode_end(struct nfs4_compound *c);
/*
 * Decoding: what the user asked for was executed; only attributes that we added after it may
 * still fail (DELAY, ACCESS). Makes c->status NFS4_OK then: the call must be neither repeated
 * nor reported as failed, and those attributes have valid = 0.
 */
void nfs4_xdr_decode_done(struct nfs4_compound *c);
/*
 * Decoding: attributes that we added before what the user asked for were refused (an ACL may deny
 * READ_ATTRIBUTES), and so nothing of it was executed: it is to go again without them.
 */
bool nfs4_xdr_attrs_refused(const struct nfs4_compound *c);

/*
 * Bound of the body of the one operation behind PUTFH whose reply has no other limit than its
 * Reply chunk: what fits `sink`; 0: not even an empty one of `min` bytes.
 */
uint32_t nfs4_xdr_sink_room(const struct rpcrdma_span *sink, uint32_t min);

/* What is asked of a directory beside the operation in it. */
#define NFS4_ATTR_DIR                                                                              \
	(NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_NLINK | NFS4_ATTR_MTIME | NFS4_ATTR_CTIME)
/* What WRITE, COMMIT and the like change. */
#define NFS4_ATTR_WRITTEN (NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_MTIME | NFS4_ATTR_CTIME)
/* Reply bytes before the first operation's: RPC header, COMPOUND's, SEQUENCE with its header. */
#define NFS4_REPLY_HEAD (RPC_REPLY_HDR + 12u + 8u + 36u)

/* Attributes (nfs4_attr.c), pure. */
void nfs4_attr_put_request(struct xdr_enc *x, uint32_t mask, const uint32_t supported[3]);
void nfs4_attr_put_bitmap(struct xdr_enc *x, const uint32_t *words, unsigned int cnt);
/*
 * Reads a bitmap4 of any length; returns its words after the third or'ed together (attributes
 * that no RFC we know has), 0 on failure too.
 */
uint32_t nfs4_attr_get_bitmap(struct xdr_dec *x, uint32_t words[NFS4_BITMAP_WORDS]);
/* Bound of the fattr4 that answers nfs4_attr_put_request(mask), owners' names as in FATTR_MAX. */
uint32_t nfs4_attr_reply_max(uint32_t mask);
/* What an owner or group is on the wire (RFC 8881 section 5.9). */
enum nfs4_owner_form {
	NFS4_OWNER_NONE,   /* nothing that could be mapped */
	NFS4_OWNER_NUMBER, /* decimal, no sign, no leading zero */
	NFS4_OWNER_NAME,   /* user@domain */
};
enum nfs4_owner_form nfs4_attr_parse_owner(const uint8_t *p, uint32_t len, uint32_t *ret_id);
/* Of the owners in a fattr4 those that are names; p is NULL otherwise. They lie in the reply. */
struct nfs4_owners {
	struct nfs4_str user, group;
};
/*
 * fattr4: bitmap, then values; what we did not ask for is a protocol error (x->failed). Owners that
 * are no numbers are nobody, until nfs4_owners_map().
 */
void nfs4_attr_get(
	struct xdr_dec *x, struct nfs4_attr *attr, struct nfs4_fh *fh, struct nfs4_owners *names);
/* fattr4 of the access time, or of the size, alone, for VERIFY. */
void nfs4_attr_put_atime(struct xdr_enc *x, const struct timespec *atime);
void nfs4_attr_put_size(struct xdr_enc *x, uint64_t size);
void nfs4_attr_put_set(struct xdr_enc *x, const struct nfs4_sattr *s, const uint32_t supported[3]);
/* Of s->set, as nfs4_attr_put_set() would send it, what these words do not have; pure. */
uint32_t nfs4_attr_set_beyond(const struct nfs4_sattr *s, const uint32_t words[3]);
/* Bound of a fattr4 reply for the mask NFS4_ATTR_STAT (names of owners up to 128 bytes each). */
#define NFS4_FATTR_MAX  480u
#define NFS4_FH_MAX_XDR (4u + NFS4_FHSIZE)

/* ---- names of owners (nfs4_owners.c) ---- */

/*
 * The numbers of `names`, as far as they are known; what is not is asked for (c->idmap_ticket), and
 * the call is decoded once more when the answer is there.
 */
void nfs4_owners_map(
	struct nfs4_compound *c, struct nfs4_attr *attr, const struct nfs4_owners *names);
struct nfs4_owner_names {
	char user[256], group[256];
};
/*
 * Puts the names to be sent into `sattr`, in `mem`; now_ns: as idmap_to_name()'s. Returns the
 * ticket of the last one that is asked for, or 0.
 */
uint64_t nfs4_owners_names(
	struct idmap *m, uint64_t now_ns, struct nfs4_sattr *sattr, struct nfs4_owner_names *mem);
/* For a SETATTR that is encoded: names instead of numbers, if the server wants them. */
void nfs4_owners_put(
	struct nfs4_compound *c, struct nfs4_sattr *sattr, struct nfs4_owner_names *mem);

/* ---- errors (nfs4_status.c): one table ---- */

enum nfs4_action {
	NFS4_ACT_NONE,  /* success */
	NFS4_ACT_FAIL,  /* the operation's errno goes to the user */
	NFS4_ACT_DELAY, /* wait, then the same call again (DELAY, GRACE) */
	NFS4_ACT_BUSY,  /* the same for a second, then as FAIL: it will pass at once or not soon */
	NFS4_ACT_SLOT,  /* sequence trouble on this slot */
	NFS4_ACT_SESSION,    /* the session is gone: a new one, then the call again */
	NFS4_ACT_CLIENT,     /* the client ID is gone: everything anew */
	NFS4_ACT_STATE,      /* a stateid is no longer good */
	NFS4_ACT_REVALIDATE, /* the filehandle is no longer good */
};

enum nfs4_action nfs4_status_action(enum nfs4_status status);
/* errno (positive) that a program sees; 0 for NFS4_OK; EIO with a log line only for unknown codes.
 */
int nfs4_status_errno(enum nfs4_status status);
/* Of a stateid: the server took it away. */
bool nfs4_status_is_revoked(enum nfs4_status status);
/* Revoked, or not known. */
bool nfs4_status_is_gone(enum nfs4_status status);
/* Is this how a server says that a reply is too long? */
bool nfs4_status_is_too_big(enum nfs4_status status);

#endif
