/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONC RPC version 2 (RFC 5531) on top of the transport: call and reply
 * headers, AUTH_NONE and AUTH_SYS, accept and reject states.
 *
 * Context: lane.
 */
#ifndef RPCRDMAFS_RPC_H
#define RPCRDMAFS_RPC_H

#include "rpcrdma.h"
#include "xdr.h"

#define RPC_MAX_GROUPS  16 /* AUTH_SYS, RFC 5531 appendix A */
#define RPC_MAX_MACHINE 255

enum rpc_flavor {
	RPC_AUTH_NONE = 0,
	RPC_AUTH_SYS = 1,
};

struct rpc_cred {
	enum rpc_flavor flavor;
	uint32_t uid, gid;
	uint32_t gids_cnt; /* supplementary groups, at most RPC_MAX_GROUPS */
	uint32_t gids[RPC_MAX_GROUPS];
};

/* How a call ended; the codes of RFC 5531 that matter to a caller. */
enum rpc_result {
	RPC_OK,            /* accepted, executed: the results are in ->results */
	RPC_TIMEDOUT,      /* soft: no reply in time */
	RPC_UNANSWERED,    /* give_back: no reply in time */
	RPC_TOOSMALL,      /* transport could not carry the reply (ERR_CHUNK) */
	RPC_PROG_UNAVAIL,  /* the server has no NFS here */
	RPC_PROG_MISMATCH, /* wrong version: mismatch_low/high */
	RPC_PROC_UNAVAIL,
	RPC_GARBAGE_ARGS, /* the server could not decode what we sent */
	RPC_SYSTEM_ERR,
	RPC_AUTH_ERROR, /* credential refused: auth_stat */
	RPC_BADREPLY,   /* not an RPC reply; the transport or server is broken */
	RPC_SHUTDOWN,
};

struct rpc_call {
	struct rpcrdma_req req; /* first: one object, several views */
	struct rpcrdma *xprt;
	/* set when done */
	enum rpc_result result;
	uint32_t mismatch_low, mismatch_high, auth_stat;
	struct xdr_dec results; /* the reply after the RPC header; valid only during ->done */
	void (*done)(struct rpc_call *call);
};

/* Machine name for AUTH_SYS; copied, cut at RPC_MAX_MACHINE. Once, before lanes start. */
void rpc_set_machine_name(const char *name);

/*
 * rpc_begin - write the RPC call header (with a new XID)
 *
 * call->req was got from rpcrdma_req_get(). enc is set to the request's head, or to `long_buf`
 * (NULL: none; the message is then built as req.long_call) and stands after the header.
 * rpc_send() takes the length from enc.
 */
void rpc_begin(struct rpcrdma *x, struct rpc_call *call, uint32_t prog, uint32_t vers,
	uint32_t proc, const struct rpc_cred *cred, struct rpcrdma_buf *long_buf,
	struct xdr_enc *enc);
/*
 * rpc_send - send what was built
 *
 * req.args, results, reply_max (without the RPC reply header, which is added here),
 * reply_sink and soft were set by the caller.
 * Returns: as rpcrdma_send(); -EMSGSIZE also if enc failed.
 */
int rpc_send(struct rpc_call *call, const struct xdr_enc *enc);

/* Largest RPC reply header: AUTH_NONE verifier normally, up to 400 bytes of another. */
#define RPC_REPLY_HDR 24u

const char *rpc_result_name(enum rpc_result r);

/* ---- pure codecs, used by the above, by callbacks and by tests ---- */

struct rpc_callhdr {
	uint32_t xid, prog, vers, proc;
	struct rpc_cred cred;
};

/* AUTH_NONE or AUTH_SYS with `machine`. */
void rpc_encode_call(struct xdr_enc *x, const struct rpc_callhdr *h, const char *machine);
/*
 * rpc_decode_call - header of a call from the server (backchannel)
 *
 * Unknown flavors leave cred.flavor as it came and skip the body.
 * Returns: 0, -EBADMSG (not a call: drop), -EPROTONOSUPPORT (rpcvers is not 2: RPC_MISMATCH).
 */
int rpc_decode_call(struct xdr_dec *x, struct rpc_callhdr *h);
/* Decodes the header; on RPC_OK x stands at the results. */
enum rpc_result rpc_decode_reply(
	struct xdr_dec *x, uint32_t xid, uint32_t *low, uint32_t *high, uint32_t *auth_stat);

enum rpc_accept {
	RPC_ACCEPT_SUCCESS = 0,
	RPC_ACCEPT_PROG_UNAVAIL = 1,
	RPC_ACCEPT_PROG_MISMATCH = 2,
	RPC_ACCEPT_PROC_UNAVAIL = 3,
	RPC_ACCEPT_GARBAGE_ARGS = 4,
	RPC_ACCEPT_SYSTEM_ERR = 5,
};

/* Accepted reply with an AUTH_NONE verifier; low/high only for PROG_MISMATCH. */
void rpc_encode_accepted(
	struct xdr_enc *x, uint32_t xid, enum rpc_accept stat, uint32_t low, uint32_t high);
/* Rejected reply: RPC_MISMATCH, we speak version 2 only. */
void rpc_encode_rejected_mismatch(struct xdr_enc *x, uint32_t xid);

#endif
