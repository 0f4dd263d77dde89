/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC message codecs, RFC 5531 section 9 (rpc_msg) and appendix A (AUTH_SYS).
 */
#include "rpc.h"

#include <errno.h>
#include <string.h>

#include "rpcrdma_prot.h"

#define RPC_VERSION     2u
#define RPC_MAX_AUTH    400u /* RFC 5531 section 8.2: opaque_auth body */
#define REPLY_ACCEPTED  0u
#define REPLY_DENIED    1u
#define REJECT_MISMATCH 0u
#define REJECT_AUTH     1u

static void put_cred(struct xdr_enc *x, const struct rpc_cred *cred, const char *machine)
{
	size_t name = strnlen(machine, RPC_MAX_MACHINE);
	uint32_t cnt = cred->gids_cnt < RPC_MAX_GROUPS ? cred->gids_cnt : RPC_MAX_GROUPS;

	if (cred->flavor != RPC_AUTH_SYS) {
		xdr_put_u32(x, RPC_AUTH_NONE);
		xdr_put_u32(x, 0);
		return;
	}
	xdr_put_u32(x, RPC_AUTH_SYS);
	xdr_put_u32(x, (uint32_t)(8 + XDR_ROUND(name) + 12 + 4 * (size_t)cnt));
	xdr_put_u32(x, 0); /* stamp */
	xdr_put_opaque(x, machine, name);
	xdr_put_u32(x, cred->uid);
	xdr_put_u32(x, cred->gid);
	xdr_put_u32(x, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		xdr_put_u32(x, cred->gids[i]);
}

void rpc_encode_call(struct xdr_enc *x, const struct rpc_callhdr *h, const char *machine)
{
	xdr_put_u32(x, h->xid);
	xdr_put_u32(x, RPC_MSG_CALL);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, h->prog);
	xdr_put_u32(x, h->vers);
	xdr_put_u32(x, h->proc);
	put_cred(x, &h->cred, machine);
	xdr_put_u32(x, RPC_AUTH_NONE); /* verifier */
	xdr_put_u32(x, 0);
}

/* WIRE: a body that is not AUTH_SYS inside its length makes the call malformed. */
static void get_cred(struct xdr_dec *x, struct rpc_cred *cred)
{
	struct xdr_dec body;
	const uint8_t *p;
	uint32_t len = 0;

	memset(cred, 0, sizeof(*cred));
	cred->flavor = (enum rpc_flavor)xdr_get_u32(x);
	p = xdr_get_opaque(x, RPC_MAX_AUTH, &len);
	if (x->failed || cred->flavor != RPC_AUTH_SYS)
		return;
	xdr_dec_init(&body, p, len);
	xdr_get_u32(&body); /* stamp */
	xdr_skip_opaque(&body, RPC_MAX_MACHINE);
	cred->uid = xdr_get_u32(&body);
	cred->gid = xdr_get_u32(&body);
	cred->gids_cnt = xdr_get_count(&body, RPC_MAX_GROUPS, 4);
	for (uint32_t i = 0; i < cred->gids_cnt; i++)
		cred->gids[i] = xdr_get_u32(&body);
	if (body.failed)
		xdr_fail(x);
}

int rpc_decode_call(struct xdr_dec *x, struct rpc_callhdr *h)
{
	uint32_t type, vers;

	h->xid = xdr_get_u32(x);
	type = xdr_get_u32(x);
	vers = xdr_get_u32(x);
	if (x->failed || type != RPC_MSG_CALL)
		return -EBADMSG;
	if (vers != RPC_VERSION)
		return -EPROTONOSUPPORT;
	h->prog = xdr_get_u32(x);
	h->vers = xdr_get_u32(x);
	h->proc = xdr_get_u32(x);
	get_cred(x, &h->cred);
	xdr_get_u32(x); /* verifier: any */
	xdr_skip_opaque(x, RPC_MAX_AUTH);
	return x->failed ? -EBADMSG : 0;
}

static enum rpc_result decode_denied(
	struct xdr_dec *x, uint32_t *low, uint32_t *high, uint32_t *auth_stat)
{
	uint32_t stat = xdr_get_u32(x);

	if (stat == REJECT_AUTH) {
		*auth_stat = xdr_get_u32(x);
		return x->failed ? RPC_BADREPLY : RPC_AUTH_ERROR;
	}
	if (stat == REJECT_MISMATCH) { /* of RPC itself: nobody speaks anything but 2 */
		*low = xdr_get_u32(x);
		*high = xdr_get_u32(x);
	}
	return RPC_BADREPLY;
}

static enum rpc_result decode_accepted(struct xdr_dec *x, uint32_t *low, uint32_t *high)
{
	uint32_t stat;

	xdr_get_u32(x); /* verifier: any */
	xdr_skip_opaque(x, RPC_MAX_AUTH);
	stat = xdr_get_u32(x);
	if (x->failed)
		return RPC_BADREPLY;
	switch (stat) {
	case RPC_ACCEPT_SUCCESS:
		return RPC_OK;
	case RPC_ACCEPT_PROG_UNAVAIL:
		return RPC_PROG_UNAVAIL;
	case RPC_ACCEPT_PROG_MISMATCH:
		*low = xdr_get_u32(x);
		*high = xdr_get_u32(x);
		return x->failed ? RPC_BADREPLY : RPC_PROG_MISMATCH;
	case RPC_ACCEPT_PROC_UNAVAIL:
		return RPC_PROC_UNAVAIL;
	case RPC_ACCEPT_GARBAGE_ARGS:
		return RPC_GARBAGE_ARGS;
	case RPC_ACCEPT_SYSTEM_ERR:
		return RPC_SYSTEM_ERR;
	default:
		return RPC_BADREPLY;
	}
}

enum rpc_result rpc_decode_reply(
	struct xdr_dec *x, uint32_t xid, uint32_t *low, uint32_t *high, uint32_t *auth_stat)
{
	uint32_t stat;

	*low = *high = *auth_stat = 0;
	if (xdr_get_u32(x) != xid || xdr_get_u32(x) != RPC_MSG_REPLY)
		return RPC_BADREPLY;
	stat = xdr_get_u32(x);
	if (x->failed)
		return RPC_BADREPLY;
	if (stat == REPLY_ACCEPTED)
		return decode_accepted(x, low, high);
	if (stat == REPLY_DENIED)
		return decode_denied(x, low, high, auth_stat);
	return RPC_BADREPLY;
}

void rpc_encode_accepted(
	struct xdr_enc *x, uint32_t xid, enum rpc_accept stat, uint32_t low, uint32_t high)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, RPC_MSG_REPLY);
	xdr_put_u32(x, REPLY_ACCEPTED);
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, stat);
	if (stat == RPC_ACCEPT_PROG_MISMATCH) {
		xdr_put_u32(x, low);
		xdr_put_u32(x, high);
	}
}

void rpc_encode_rejected_mismatch(struct xdr_enc *x, uint32_t xid)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, RPC_MSG_REPLY);
	xdr_put_u32(x, REPLY_DENIED);
	xdr_put_u32(x, REJECT_MISMATCH);
	xdr_put_u32(x, RPC_VERSION);
	xdr_put_u32(x, RPC_VERSION);
}

const char *rpc_result_name(enum rpc_result r)
{
	switch (r) {
	case RPC_OK:
		return "ok";
	case RPC_TIMEDOUT:
		return "timed out";
	case RPC_UNANSWERED:
		return "not answered";
	case RPC_TOOSMALL:
		return "reply did not fit";
	case RPC_PROG_UNAVAIL:
		return "program unavailable";
	case RPC_PROG_MISMATCH:
		return "program version mismatch";
	case RPC_PROC_UNAVAIL:
		return "procedure unavailable";
	case RPC_GARBAGE_ARGS:
		return "arguments not understood";
	case RPC_SYSTEM_ERR:
		return "server system error";
	case RPC_AUTH_ERROR:
		return "credential refused";
	case RPC_BADREPLY:
		return "malformed reply";
	case RPC_SHUTDOWN:
		return "shut down";
	}
	return "?";
}
