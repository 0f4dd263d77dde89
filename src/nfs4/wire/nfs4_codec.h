/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs of the calls that sessions make by themselves, and of the COMPOUND
 * around all operations.
 *
 * Context: pure, but for the counters of operations.
 */
#ifndef RPCRDMAFS_NFS4_CODEC_H
#define RPCRDMAFS_NFS4_CODEC_H

#include "nfs4_int.h"

/* ---- OPEN, of u.open (nfs4_open_xdr.c) ---- */

int nfs4_open_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c);
int nfs4_open_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c);

/* ---- READ (nfs4_read_xdr.c) ---- */

/*
 * READ, the last operation: into the call's one Write chunk, or inline. -EINVAL: the
 * sink is too small.
 */
int nfs4_read_xdr_put(
	struct nfs4_compound *c, struct nfs4_op_read *o, const struct nfs4_stateid *sid);
/* Its result; data NULL, len 0 and eof false if there is none. */
void nfs4_read_xdr_get(struct nfs4_compound *c, struct nfs4_op_read *o);

/* ---- DELEGRETURN, of u.delegreturn (nfs4_return_xdr.c) ---- */

/* call->stateid is the delegation's. */
int nfs4_return_xdr_encode(struct nfs4_call *call, struct nfs4_compound *c);
int nfs4_return_xdr_decode(struct nfs4_call *call, struct nfs4_compound *c);

/* ---- codecs of client IDs and sessions (nfs4_exchange.c, nfs4_session_xdr.c) ---- */

struct nfs4_exchange_res {
	uint64_t clientid;
	uint32_t sequence;
	uint32_t flags; /* EXCHGID4_FLAG_* */
	uint64_t server_minor;
	uint32_t major_len, scope_len;
	uint8_t major[NFS4_OPAQUE_LIMIT], scope[NFS4_OPAQUE_LIMIT];
	char impl[160]; /* "name (domain)" of eir_server_impl_id, cut; "": it was not sent */
};

void nfs4_exchange_put(struct nfs4_compound *c, const struct nfs4_verf *verf, const char *owner);
/* False: it failed (c->status) or is malformed (c->dec.failed). */
bool nfs4_exchange_get(struct nfs4_compound *c, struct nfs4_exchange_res *res);
void nfs4_exchange_put_destroy(struct nfs4_compound *c, uint64_t clientid);
void nfs4_exchange_put_complete(struct nfs4_compound *c);

/* channel_attrs4 without ca_rdma_ird, which we neither send nor heed. */
struct nfs4_chan {
	uint32_t headerpad, maxreq, maxresp, maxcached, maxops, maxreqs;
};

struct nfs4_create_session {
	uint64_t clientid;
	uint32_t sequence;
	uint32_t flags; /* CREATE_SESSION4_FLAG_* */
	struct nfs4_chan fore, back;
	uint32_t cb_program;
	struct nfs4_sessionid id; /* result only */
};

static inline bool nfs4_codec_has_back(const struct nfs4_create_session *cs)
{
	return cs->flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
}

/* The most slots that we ask for. */
#define NFS4_SLOT_MAX RPCRDMA_MAX_CREDITS
/* What we ask of a session; data_size: longest payload of a READ or WRITE. */
void nfs4_session_xdr_ask(struct nfs4_create_session *cs, uint32_t slots, uint32_t data_size);
/* How long calls of the server and our answers may be on this connection. */
void nfs4_session_xdr_ask_back(struct nfs4_create_session *cs, size_t call_max, size_t reply_max);
void nfs4_session_xdr_put_create(struct nfs4_compound *c, const struct nfs4_create_session *cs);
bool nfs4_session_xdr_get_create(struct nfs4_compound *c, struct nfs4_create_session *cs);
/* Is what the server grants enough for us? NULL, or what is wrong (for the message). */
const char *nfs4_session_xdr_check(
	const struct nfs4_create_session *asked, const struct nfs4_create_session *got);
void nfs4_session_xdr_put_destroy(struct nfs4_compound *c, const struct nfs4_sessionid *id);
/* dir: CDFC4_*. */
void nfs4_session_xdr_put_bind(
	struct nfs4_compound *c, const struct nfs4_sessionid *id, uint32_t dir);
/* ret_dir: CDFS4_*. */
bool nfs4_session_xdr_get_bind(
	struct nfs4_compound *c, const struct nfs4_sessionid *id, uint32_t *ret_dir);

/* ---- COMPOUND (nfs4_compound.c) ---- */

#define NFS4_MAX_OPS      50u /* ca_maxoperations asked for: what nfsd takes */
#define NFS4_COMPOUND_RES 12u /* status, empty tag, count */

struct nfs4_sequence {
	struct nfs4_sessionid id;
	uint32_t seqid, slot;
	uint32_t highest;       /* ours going out, the server's coming back */
	bool cachethis;         /* going out */
	uint32_t target, flags; /* coming back */
};

/* c->enc stands after the RPC header; writes tag, minor version and the count to be patched. */
void nfs4_compound_begin(struct nfs4_compound *c, struct nfs4_call *call, unsigned int minor,
	const uint32_t *supported);
/* Patches the count. Returns 0 or -EMSGSIZE. */
int nfs4_compound_end(struct nfs4_compound *c);
/* c->dec stands after the RPC header. False: not a COMPOUND result. */
bool nfs4_compound_open(struct nfs4_compound *c, struct nfs4_call *call);
/* After the last result was walked. False: the server broke the protocol. */
bool nfs4_compound_close(struct nfs4_compound *c);
void nfs4_compound_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence *seq);
/* False: SEQUENCE failed (c->status) or is malformed (c->dec.failed). */
bool nfs4_compound_get_sequence(struct nfs4_compound *c, struct nfs4_sequence *seq);

#endif
