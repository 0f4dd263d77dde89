/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that set a session up and end it, one function for what each
 * answer changes. Which comes next is nfs4_setup.c's and nfs4_stop.c's.
 *
 * Context: the session's lane, as holder of the client's token where the
 * client is touched.
 */
#include "nfs4_deleg.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Client IDs that the server forgets as soon as it made them, sessions likewise. */
#define MAX_ID_TRIES 4u
/* DELAYs of a DESTROY_SESSION of a session that is replaced: its calls may hang in the server. */
#define MAX_DESTROY_DELAYS 5u
/* DELAYs of a reclaim, together a minute and a half: the file is opened anew after the others. */
#define MAX_REOPEN_DELAYS 12u
/* DELAYs of BIND_CONN_TO_SESSION, 13 s: nothing else keeps the lease meanwhile (nfs4_lease.c). */
#define MAX_BIND_DELAYS 7u
/* DELAYs of a DELEGRETURN at the end: there is little time left. */
#define MAX_BYE_DELAYS 2u
/* A client ID that is lost again within so many leases is somebody's doing. */
#define LOST_AGAIN 3u

static void step_refused(struct nfs4_session *s, const struct nfs4_call *call, const char *hint)
{
	char text[200];

	if (call->status != NFS4_OK)
		snprintf(text, sizeof(text), "the server answers %s with %s%s", call->desc->name,
			nfs4_status_name(call->status), hint);
	else if (call->rpc.result != RPC_OK)
		nfs4_failure_rpc(text, sizeof(text), call->desc->name, call->rpc.result);
	else
		snprintf(text, sizeof(text), "%s failed: %s", call->desc->name,
			call->err == -EIO ? "the reply is malformed" : strerror(-call->err));
	nfs4_setup_failed(s, -call->err, text);
}

/* ---- EXCHANGE_ID ---- */

static int exchange_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct nfs4_client *cl = call->sess->cl;

	nfs4_exchange_put(c, &cl->verf, cl->conf.owner);
	return 0;
}

static int exchange_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_exchange_get(c, &call->sess->exchange);
	return 0;
}

static const struct nfs4_opdesc exchange_desc = {
	.name = "EXCHANGE_ID",
	.encode = exchange_encode,
	.decode = exchange_decode,
	.no_sequence = true,
};

static bool same_owner(const struct nfs4_exchange_res *a, const struct nfs4_exchange_res *b)
{
	return a->major_len == b->major_len && memcmp(a->major, b->major, a->major_len) == 0;
}

static bool same_scope(const struct nfs4_exchange_res *a, const struct nfs4_exchange_res *b)
{
	return a->scope_len == b->scope_len && memcmp(a->scope, b->scope, a->scope_len) == 0;
}

/*
 * The server was not another one. It drops a client whose lease ended, once; or if one with the
 * same co_ownerid comes, for which that one is told in turn (RFC 8881 section 18.35.4, case 5).
 */
static void lost_again(struct nfs4_session *s)
{
	uint64_t last_ns = s->cl->lost_ns, age_ns = reactor_now(s->r) - last_ns;

	s->cl->lost_ns = reactor_now(s->r);
	if (last_ns != 0 && age_ns < LOST_AGAIN * s->cl->fsinfo.lease_s * NSEC_PER_SEC)
		log_warn_limited(
			"%s: the client ID is lost again after %llu s: if the server was not "
			"restarted, another mount has the same identity (option clientid=, "
			"or a copy of the file that keeps it)",
			s->peer, (unsigned long long)(age_ns / NSEC_PER_SEC));
}

/* A new client ID, and with it all state. */
static void exchange_new_id(struct nfs4_session *s, const struct nfs4_exchange_res *res)
{
	struct nfs4_client *cl = s->cl;
	bool first = cl->id_gen == 0;

	cl->id_gen++;
	atomic_fetch_add(&cl->generation, 1);
	cl->reclaim_done = false;
	nfs4_state_new_client(cl);
	if (first)
		return;
	/*
	 * RFC 8881 section 2.10.4: with another scope nothing that the old server gave out means
	 * anything to this one, so there is nothing to reclaim. Filehandles may be good all the
	 * same (a cluster whose nodes have names of their own), which the OPENs find out.
	 */
	if (!same_scope(res, &cl->server)) {
		log_warn("%s: another server answers than before (its scope is another): files are "
			 "opened anew",
			s->peer);
		nfs4_state_no_grace(cl);
	} else if (!same_owner(res, &cl->server)) {
		log_info("%s: another server of the same cluster answers", s->peer);
	} else {
		lost_again(s);
	}
}

static void exchange_apply(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;
	const struct nfs4_exchange_res *res = &s->exchange;

	/*
	 * RFC 8881 section 18.35.3: eir_sequenceid of a confirmed ID says nothing. It is used all
	 * the same when we do not know the number: nfsd's is the one it expects.
	 */
	if (!(res->flags & EXCHGID4_FLAG_CONFIRMED_R) || res->clientid != cl->clientid ||
		cl->sequence_lost)
		cl->sequence = res->sequence;
	cl->sequence_lost = false;
	/* A server that was restarted may have given us the same number again. */
	if (res->clientid != cl->clientid || !cl->id_gen ||
		!(res->flags & EXCHGID4_FLAG_CONFIRMED_R))
		exchange_new_id(s, res);
	mutex_lock(&cl->lock); /* for nfs4_client_server_impl() */
	cl->server = *res;
	mutex_unlock(&cl->lock);
	cl->clientid = res->clientid;
	cl->have_id = true;
	nfs4_live_client(cl);
	s->need |= NFS4_NEED_SESSION;
}

static bool exchange_done(struct nfs4_session *s, struct nfs4_call *call)
{
	struct nfs4_client *cl = s->cl;

	if (!call->err) {
		exchange_apply(s);
		return true;
	}
	if (call->status == NFS4ERR_MINOR_VERS_MISMATCH && cl->minor > cl->conf.minor_min &&
		cl->id_gen == 0) {
		log_info("%s: the server has no NFSv4.%u, trying 4.%u", s->peer, cl->minor,
			cl->minor - 1);
		cl->minor--;
		return true;
	}
	if (call->status == NFS4ERR_MINOR_VERS_MISMATCH)
		step_refused(s, call, ": check vers= and the versions the server has enabled");
	else if (call->status == NFS4ERR_CLID_INUSE)
		step_refused(s, call,
			": another user's client has our name; it frees it when its lease ends");
	else
		step_refused(s, call, "");
	return false;
}

/* ---- CREATE_SESSION ---- */

static int create_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_session_xdr_put_create(c, &call->sess->asked);
	return 0;
}

static int create_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_create_session got = {0};

	if (nfs4_session_xdr_get_create(c, &got)) {
		got.clientid = s->asked.clientid;
		s->params = got;
	}
	return 0;
}

static const struct nfs4_opdesc create_desc = {
	.name = "CREATE_SESSION",
	.encode = create_encode,
	.decode = create_decode,
	.no_sequence = true,
};

/* rsize and wsize are those of the first session, and of the kernel's mount. */
static void note_smaller(const struct nfs4_session *s)
{
	const struct nfs4_fs *fs = &s->cl->fsinfo.fs;
	const struct nfs4_chan *fore = &s->params.fore;

	if (nfs4_fs_io_size(fs->wsize, fs->wsize, 0, fore->maxreq) < fs->wsize ||
		nfs4_fs_io_size(fs->rsize, fs->rsize, 0, fore->maxresp) < fs->rsize)
		log_warn("%s: the server takes and gives less at once than before (%u and %u "
			 "bytes): longer reads and writes go in parts",
			s->peer, (unsigned int)fore->maxreq, (unsigned int)fore->maxresp);
}

static void create_apply(struct nfs4_session *s)
{
	uint32_t slots = s->params.fore.maxreqs;

	if (slots > s->asked.fore.maxreqs)
		slots = s->asked.fore.maxreqs;
	s->old_id = s->id;
	s->id = s->params.id;
	s->gen++;
	s->id_gen = s->cl->id_gen;
	s->sr_flags = 0;
	nfs4_slot_init(&s->slots, slots, s->asked.fore.maxreqs);
	nfs4_cb_open(&s->cb, &s->id, s->cl->minor,
		nfs4_codec_has_back(&s->params) ? s->params.back.maxreqs : 0,
		s->params.back.maxops);
	/* A resend was answered from the server's cache: it binds nothing. */
	nfs4_lease_back_is_on(s, s->ctl.rpc.req.resends ? 0 : rpcrdma_generation(s->x));
	s->have_session = true;
	nfs4_live_session(s);
	s->need &= ~(NFS4_NEED_SESSION | NFS4_NEED_BIND);
	s->renewed_ns = s->ctl.sent_ns;
	if (!s->counted) {
		s->counted = true;
		nfs4_client_session_made(s->cl);
	}
	stats_count(&s->stats->sessions, 1);
	stats_set(&s->stats->slots, s->slots.limit);
	note_smaller(s);
	log_debug("%s: session with %u slots, requests up to %u bytes, replies up to %u", s->peer,
		(unsigned int)slots, (unsigned int)s->params.fore.maxreq,
		(unsigned int)s->params.fore.maxresp);
}

static bool create_done(struct nfs4_session *s, struct nfs4_call *call)
{
	struct nfs4_client *cl = s->cl;
	const char *wrong;

	if (!call->err) {
		cl->sequence++;
		wrong = nfs4_session_xdr_check(&s->asked, &s->params);
		if (wrong) {
			char text[160];

			snprintf(
				text, sizeof(text), "the server's session is of no use: %s", wrong);
			nfs4_setup_failed(s, EPROTO, text);
			return false;
		}
		create_apply(s);
		return true;
	}
	/*
	 * Whatever it was: the number may be used up. EXCHANGE_ID tells anew, or makes a new ID; if
	 * it is the old one nothing that we have with it is lost.
	 */
	cl->have_id = false;
	cl->sequence_lost = call->status != NFS4ERR_STALE_CLIENTID;
	if ((call->status == NFS4ERR_STALE_CLIENTID || call->status == NFS4ERR_SEQ_MISORDERED) &&
		cl->id_tries < MAX_ID_TRIES)
		return true;
	if (call->status == NFS4ERR_TOOSMALL || call->status == NFS4ERR_NOSPC)
		step_refused(s, call, ": it has no room for the session we ask for");
	else
		step_refused(s, call, "");
	return false;
}

/* ---- RECLAIM_COMPLETE, DESTROY_SESSION, DESTROY_CLIENTID, BIND_CONN_TO_SESSION ---- */

static int reclaim_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_exchange_put_complete(c);
	return 0;
}

static int reclaim_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_void(c, OP_RECLAIM_COMPLETE);
	return 0;
}

static const struct nfs4_opdesc reclaim_desc = {
	.name = "RECLAIM_COMPLETE",
	.encode = reclaim_encode,
	.decode = reclaim_decode,
	.cachethis = true, /* a second one is an error */
};

/* The session or the client ID went away again in between. */
static bool session_gone(struct nfs4_session *s, struct nfs4_call *call)
{
	s->need |= NFS4_NEED_SESSION;
	if (s->cl->id_tries < MAX_ID_TRIES) {
		s->cl->id_tries++;
		return true;
	}
	s->cl->id_tries = 0;
	step_refused(s, call, "");
	return false;
}

static bool reclaim_done(struct nfs4_session *s, struct nfs4_call *call)
{
	if (!call->err || call->status == NFS4ERR_COMPLETE_ALREADY ||
		call->status == NFS4ERR_RETRY_UNCACHED_REP) {
		s->cl->reclaim_done = true;
		nfs4_live_client(s->cl);
		nfs4_state_no_grace(s->cl);
		return true;
	}
	if (call->status != NFS4_OK && nfs4_status_action(call->status) != NFS4_ACT_FAIL)
		return session_gone(s, call);
	step_refused(s, call, "");
	return false;
}

static bool reopen_done(struct nfs4_session *s, struct nfs4_call *call)
{
	return nfs4_reclaim_done(s, call) || session_gone(s, call);
}

static int destroy_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_session_xdr_put_destroy(c, &call->sess->id);
	return 0;
}

static int destroy_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_void(c, OP_DESTROY_SESSION);
	return 0;
}

static const struct nfs4_opdesc destroy_desc = {
	.name = "DESTROY_SESSION",
	.encode = destroy_encode,
	.decode = destroy_decode,
	.no_sequence = true,
};

static int bye_client_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_exchange_put_destroy(c, call->sess->cl->clientid);
	return 0;
}

static int bye_client_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_compound_void(c, OP_DESTROY_CLIENTID);
	return 0;
}

static const struct nfs4_opdesc bye_client_desc = {
	.name = "DESTROY_CLIENTID",
	.encode = bye_client_encode,
	.decode = bye_client_decode,
	.no_sequence = true,
};

static int bind_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_session_xdr_put_bind(c, &call->sess->id,
		nfs4_codec_has_back(&call->sess->params) ? CDFC4_FORE_OR_BOTH : CDFC4_FORE);
	return 0;
}

static int bind_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_session *s = call->sess;
	bool current = call->sess_gen == s->gen;
	uint32_t dir;

	if (!nfs4_session_xdr_get_bind(c, current ? &s->id : &s->old_id, &dir) || !current ||
		!nfs4_codec_has_back(&s->params))
		return 0;
	if (!(dir & CDFS4_BACK))
		log_info("%s: the server makes no back channel of this connection", s->peer);
	nfs4_lease_back_is_on(s, rpcrdma_generation(s->x));
	return 0;
}

const struct nfs4_opdesc nfs4_bind_desc = {
	.name = "BIND_CONN_TO_SESSION",
	.encode = bind_encode,
	.decode = bind_decode,
	.no_sequence = true,
	.max_delays = MAX_BIND_DELAYS,
};

static bool bind_done(struct nfs4_session *s, struct nfs4_call *call)
{
	s->need &= ~NFS4_NEED_BIND;
	if (call->err)
		s->need |= NFS4_NEED_SESSION;
	return true;
}

/* ---- all of them ---- */

bool nfs4_steps_may_wait(const struct nfs4_session *s, uint32_t tries)
{
	if (s->step == NFS4_STEP_RECLAIM_OPEN || s->step == NFS4_STEP_RECLAIM_LOCK)
		return tries <= MAX_REOPEN_DELAYS;
	if (s->step == NFS4_STEP_REDO)
		return tries <= MAX_BIND_DELAYS;
	if (s->step == NFS4_STEP_BYE_DELEG)
		return tries <= MAX_BYE_DELAYS;
	return s->step != NFS4_STEP_DESTROY || tries <= MAX_DESTROY_DELAYS;
}

bool nfs4_steps_result(struct nfs4_session *s, enum nfs4_step step, struct nfs4_call *call)
{
	switch (step) {
	case NFS4_STEP_NONE:
		break;
	case NFS4_STEP_REDO:
		nfs4_redo_done(s, call);
		return true;
	case NFS4_STEP_DESTROY:
		/* Gone, or it stays until the server drops it: both will do. */
		s->need &= ~NFS4_NEED_DESTROY;
		s->have_session = false;
		nfs4_live_session(s);
		return true;
	case NFS4_STEP_BIND:
		return bind_done(s, call);
	case NFS4_STEP_EXCHANGE:
		return exchange_done(s, call);
	case NFS4_STEP_CREATE:
		return create_done(s, call);
	case NFS4_STEP_RECLAIM_OPEN:
	case NFS4_STEP_RECLAIM_LOCK:
		return reopen_done(s, call);
	case NFS4_STEP_RECLAIM_COMPLETE:
		return reclaim_done(s, call);
	case NFS4_STEP_BYE_DELEG:
		nfs4_return_send_last_done(s, call);
		return true;
	case NFS4_STEP_BYE_SESS:
		s->have_session = false;
		nfs4_live_session(s);
		return true;
	case NFS4_STEP_BYE_CLIENT:
		if (call->err)
			log_info("%s: the server keeps our client ID until its lease ends (%s)",
				s->peer, nfs4_status_name(call->status));
		s->bye_client = false;
		s->cl->have_id = false;
		return true;
	}
	return false;
}

const struct nfs4_opdesc *nfs4_steps_desc(enum nfs4_step step)
{
	static const struct nfs4_opdesc *const descs[] = {
		[NFS4_STEP_REDO] = &nfs4_redo_desc,
		[NFS4_STEP_DESTROY] = &destroy_desc,
		[NFS4_STEP_BIND] = &nfs4_bind_desc,
		[NFS4_STEP_EXCHANGE] = &exchange_desc,
		[NFS4_STEP_CREATE] = &create_desc,
		[NFS4_STEP_RECLAIM_OPEN] = &nfs4_reclaim_open_desc,
		[NFS4_STEP_RECLAIM_LOCK] = &nfs4_lock_reclaim_desc,
		[NFS4_STEP_RECLAIM_COMPLETE] = &reclaim_desc,
		[NFS4_STEP_BYE_DELEG] = &nfs4_return_send_last_desc,
		[NFS4_STEP_BYE_SESS] = &destroy_desc,
		[NFS4_STEP_BYE_CLIENT] = &bye_client_desc,
	};

	return descs[step];
}
