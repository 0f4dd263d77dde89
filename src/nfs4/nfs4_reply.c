/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What came back for a call, in the order of distrust: did the RPC work, is it
 * a COMPOUND, what does SEQUENCE say (the slot's fate), what do the operations
 * say (the call's fate).
 *
 * Context: the session's lane, from the transport.
 */
#include "latency.h"
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A call whose replies break the protocol is repeated so often, then fails with EIO. */
#define MAX_BAD 3u
/* So long a call waits for what passes at once (FILE_OPEN), as Linux' client does. */
#define BUSY_NS NSEC_PER_SEC
/* BAD_HIGH_SLOTs of one call, 3 s in all: higher slots are orphans, or the server does not mean it
 */
#define MAX_HIGH 5u

/*
 * The RPC ended without COMPOUND results. `slot`: cancel where the server
 * refused the RPC before it could see SEQUENCE, unsure where it is done with
 * it, orphan where it may still execute it. errno 0: conf.timeout_errno.
 */
static const struct {
	void (*slot)(struct nfs4_slots *, uint32_t);
	int err;
	const char *text;
} rpc_ends[] = {
	[RPC_TIMEDOUT] = {nfs4_slot_orphan, 0, NULL}, /* soft: the transport logged it */
	[RPC_UNANSWERED] = {nfs4_slot_orphan, EIO, "it is not answered"},
	[RPC_TOOSMALL] = {nfs4_slot_unsure, EREMOTEIO, "its reply fits no buffer of ours"},
	[RPC_PROG_UNAVAIL] = {nfs4_slot_cancel, EPROTONOSUPPORT, "the server has no NFS there"},
	[RPC_PROG_MISMATCH] = {nfs4_slot_cancel, EPROTONOSUPPORT, "the server has no NFSv4"},
	[RPC_PROC_UNAVAIL] = {nfs4_slot_cancel, EPROTONOSUPPORT, "the server knows no COMPOUND"},
	[RPC_GARBAGE_ARGS] = {nfs4_slot_cancel, EIO, "the server cannot decode it"},
	[RPC_SYSTEM_ERR] = {nfs4_slot_unsure, EREMOTEIO, "the server has trouble of its own"},
	[RPC_AUTH_ERROR] = {nfs4_slot_cancel, EACCES, "the server refuses the credential"},
	[RPC_BADREPLY] = {nfs4_slot_orphan, EIO, "the reply is not one"},
	[RPC_SHUTDOWN] = {nfs4_slot_orphan, ESHUTDOWN, NULL},
};

/*
 * What came is no reply, or none to our SEQUENCE: the connection is not to be trusted. On the
 * next one the call goes again as it was, slot, number and all: whatever the server made of it,
 * its reply cache makes it happen once (RFC 8881 section 2.10.6.2). False: it did so MAX_BAD
 * times.
 */
static bool repeat_bad(struct nfs4_call *call, const char *what)
{
	if (call->bad_cnt >= MAX_BAD)
		return false;
	call->bad_cnt++;
	/* Does nothing where the transport came to the same conclusion. */
	if (rpcrdma_is_up(call->sess->x))
		rpcrdma_reconnect(call->sess->x, what);
	nfs4_call_again(call);
	return true;
}

/* The reply is longer than there was room for. True: it is on its way again with more. */
static bool repeat_larger(struct nfs4_call *call, void (*slot)(struct nfs4_slots *, uint32_t))
{
	if (!nfs4_reply_chunk_grow(call))
		return false;
	nfs4_call_leave_slot(call, slot);
	nfs4_call_again(call);
	return true;
}

/*
 * RFC 8267 section 3.1 lets a requester take any failure for a reply that was too long. Servers
 * that find that out in their RPC layer say that they have trouble, or that the call is garbage
 * (illumos); others say nothing. Once: it may be just that.
 */
static bool repeat_on_suspicion(struct nfs4_call *call)
{
	void (*slot)(struct nfs4_slots *, uint32_t) = nfs4_slot_unsure;

	switch (call->rpc.result) {
	case RPC_SYSTEM_ERR:
	case RPC_GARBAGE_ARGS:
		break;
	case RPC_UNANSWERED:
		slot = nfs4_slot_orphan;
		break;
	case RPC_OK:
	case RPC_BADREPLY:
	case RPC_TIMEDOUT:
	case RPC_TOOSMALL:
	case RPC_PROG_UNAVAIL:
	case RPC_PROG_MISMATCH:
	case RPC_PROC_UNAVAIL:
	case RPC_AUTH_ERROR:
	case RPC_SHUTDOWN:
		return false;
	}
	if (call->room_guessed)
		return false;
	call->room_guessed = true;
	return repeat_larger(call, slot);
}

static void reply_failed(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	int err = rpc_ends[call->rpc.result].err;
	const char *text = rpc_ends[call->rpc.result].text;

	if (call->rpc.result == RPC_TOOSMALL && repeat_larger(call, nfs4_slot_unsure))
		return;
	if (repeat_on_suspicion(call))
		return;
	if (call->rpc.result == RPC_TOOSMALL && call->desc->unbounded)
		err = E2BIG;
	if (call->rpc.req.end == RPCRDMA_REFUSED)
		err = EPROTONOSUPPORT; /* another RPC-over-RDMA: the same again will not help */
	else if (call->rpc.req.end == RPCRDMA_GIVENUP)
		text = "each connection it is sent on is lost";
	else if ((call->rpc.result == RPC_BADREPLY || call->rpc.result == RPC_UNANSWERED) &&
		 repeat_bad(call, text))
		return;
	if (text)
		log_warn_limited("%s: %s failed: %s", s->peer, call->desc->name, text);
	nfs4_call_leave_slot(call, rpc_ends[call->rpc.result].slot);
	nfs4_call_finish(call, err ? -err : -s->cl->conf.timeout_errno);
}

/* The server broke the protocol before or in SEQUENCE. */
static void reply_broken(struct nfs4_call *call, const char *what)
{
	log_warn_limited("%s: the reply to %s on slot %u breaks the protocol: %s", call->sess->peer,
		call->desc->name, (unsigned int)call->slot, what);
	if (repeat_bad(call, what))
		return;
	nfs4_call_leave_slot(call, nfs4_slot_orphan);
	nfs4_call_finish(call, -EIO);
}

/*
 * The server's slot table shrank. By the next time the calls on higher slots may have ended:
 * nothing was executed, so that sa_highest_slotid may be another one then. True: it goes again so.
 */
static bool repeat_lower(struct nfs4_call *call)
{
	if (!nfs4_session_is_ctl(call) && ++call->high_cnt > MAX_HIGH) {
		call->high_cnt = 0;
		return false;
	}
	call->highest = NFS4_SLOT_NONE;
	nfs4_call_delay(call);
	return true;
}

/* SEQUENCE failed: the server executed nothing and its slot is as it was (section 2.10.6.1.3). */
static void sequence_failed(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	enum nfs4_seq_action act = nfs4_recover_action(call->status);
	uint32_t gen = call->sess_gen, slot = call->slot;
	bool current = gen == s->gen;

	if (act == NFS4_SEQ_HIGHEST && repeat_lower(call))
		return;
	if (act != NFS4_SEQ_RESEND && current)
		log_debug("%s: %s: SEQUENCE on slot %u, number %u: %s", s->peer, call->desc->name,
			(unsigned int)slot, (unsigned int)call->seqid,
			nfs4_status_name(call->status));
	/* The number before this one was never seen: a call that ended with ERR_CHUNK. */
	if (act == NFS4_SEQ_ORPHAN && current &&
		nfs4_slot_step_back(&s->slots, slot, &call->seqid)) {
		nfs4_call_again(call);
		return;
	}
	if (nfs4_status_is_too_big(call->status) && repeat_larger(call, nfs4_slot_cancel))
		return;
	/* A step's handler (nfs4_setup.c) decides for itself; it has nobody to wait for. */
	if (act == NFS4_SEQ_FAIL || (nfs4_session_is_ctl(call) && act != NFS4_SEQ_RESEND)) {
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		nfs4_call_finish(call, -nfs4_status_errno(call->status));
		return;
	}
	switch (act) {
	case NFS4_SEQ_FAIL:
		break;
	case NFS4_SEQ_RESEND:
		nfs4_call_delay(call);
		return;
	case NFS4_SEQ_HIGHEST:
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		nfs4_recover(s, gen, NFS4_NEED_SESSION | NFS4_NEED_DESTROY,
			"the server has fewer slots than are in use");
		break;
	case NFS4_SEQ_NEXT:
	case NFS4_SEQ_NEXT_IDEM:
		nfs4_call_leave_slot(call, nfs4_slot_done);
		if (act == NFS4_SEQ_NEXT_IDEM && call->desc->cachethis && !call->desc->repeatable) {
			nfs4_call_finish(call, -EIO);
			return;
		}
		break;
	case NFS4_SEQ_CUT:
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		if (current && !nfs4_slot_cut(&s->slots, slot))
			nfs4_recover(s, gen, NFS4_NEED_SESSION | NFS4_NEED_DESTROY,
				"the server has no slot 0");
		stats_set(&s->stats->slots, s->slots.limit);
		break;
	case NFS4_SEQ_ORPHAN:
		nfs4_call_leave_slot(call, nfs4_slot_orphan);
		break;
	case NFS4_SEQ_SESSION:
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		nfs4_recover(s, gen, NFS4_NEED_SESSION, nfs4_status_name(call->status));
		break;
	case NFS4_SEQ_BIND:
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		nfs4_recover(s, gen, NFS4_NEED_BIND, nfs4_status_name(call->status));
		break;
	case NFS4_SEQ_CLIENT:
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		nfs4_recover(s, gen, NFS4_NEED_SESSION | NFS4_NEED_CLIENT,
			nfs4_status_name(call->status));
		break;
	}
	nfs4_call_again(call);
}

/* False: the call went another way. */
static bool reply_sequence(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_session *s = call->sess;
	bool current = call->sess_gen == s->gen;
	const struct nfs4_sessionid *id = current ? &s->id : &s->old_id;
	struct nfs4_sequence seq = {0};

	if (!nfs4_compound_get_sequence(c, &seq)) {
		call->status = c->status;
		if (c->dec.failed)
			reply_broken(call, "SEQUENCE's result is malformed");
		else
			sequence_failed(call);
		return false;
	}
	/* WIRE: the answer must be about the slot we asked on. Older sessions' ids are forgotten.
	 */
	if (seq.slot != call->slot || seq.seqid != call->seqid ||
		(s->gen - call->sess_gen <= 1 && memcmp(&seq.id, id, sizeof(*id)) != 0)) {
		reply_broken(call, "SEQUENCE answers for another session, slot or number");
		return false;
	}
	nfs4_redo_answered(call, c->status);
	nfs4_call_leave_slot(call, nfs4_slot_done);
	if (current) {
		if (call->sent_ns > s->renewed_ns)
			s->renewed_ns = call->sent_ns;
		nfs4_slot_set_highest(&s->slots, seq.highest, seq.target);
		stats_set(&s->stats->slots, s->slots.limit);
		nfs4_recover_flags(s, call, seq.flags);
	}
	return true;
}

/* The server does not take the stateid. */
static void reply_refused(struct nfs4_call *call)
{
	enum nfs4_state_verdict verdict =
		call->desc->refused ? call->desc->refused(call) : NFS4_STATE_FAIL;

	if (nfs4_status_is_revoked(call->status))
		nfs4_lease_kick(call->sess); /* the stateid is to be freed */
	switch (verdict) {
	case NFS4_STATE_GO:
		nfs4_call_again(call);
		return;
	case NFS4_STATE_WAIT:
		nfs4_call_wait_state(call);
		return;
	case NFS4_STATE_IDMAP:
		nfs4_call_wait_idmap(call);
		return;
	case NFS4_STATE_END:
		nfs4_call_finish(call, call->err);
		return;
	case NFS4_STATE_FAIL:
		break;
	}
	nfs4_call_finish(call, -nfs4_status_errno(call->status));
}

/* DELAY of a call that others wait for: it is their turn. */
static bool ends_with_delay(const struct nfs4_call *call)
{
	return nfs4_reclaim_passes(call) ||
	       (call->desc->max_delays && call->tries >= call->desc->max_delays);
}

/* SEQUENCE went well and the results are decoded: call->status is their verdict. */
static void reply_status(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	enum nfs4_action act = nfs4_status_action(call->status);
	unsigned int need = NFS4_NEED_SESSION;

	if (call->desc->unbounded && nfs4_status_is_too_big(call->status)) {
		if (nfs4_reply_chunk_grow(call))
			nfs4_call_again(call);
		else
			nfs4_call_finish(call, -E2BIG);
		return;
	}

	switch (act) {
	case NFS4_ACT_NONE:
	case NFS4_ACT_FAIL:
	case NFS4_ACT_REVALIDATE:
		break;
	case NFS4_ACT_STATE:
		reply_refused(call);
		return;
	case NFS4_ACT_DELAY:
		if (!ends_with_delay(call)) {
			nfs4_call_delay(call);
			return;
		}
		stats_count(&s->stats->delays, 1);
		break;
	case NFS4_ACT_BUSY:
		if (nfs4_delay_total_ns(call->tries + 1) > BUSY_NS)
			break;
		nfs4_call_delay(call);
		return;
	case NFS4_ACT_SLOT:
		/* nfsd says RETRY_UNCACHED_REP as the second operation's status. */
		if (call->status != NFS4ERR_RETRY_UNCACHED_REP ||
			(call->desc->cachethis && !call->desc->repeatable) ||
			nfs4_session_is_ctl(call))
			break;
		nfs4_call_again(call);
		return;
	case NFS4_ACT_CLIENT:
	case NFS4_ACT_SESSION:
		if (nfs4_session_is_ctl(call))
			break;
		if (act == NFS4_ACT_CLIENT)
			need |= NFS4_NEED_CLIENT;
		nfs4_recover(s, call->sess_gen, need, nfs4_status_name(call->status));
		nfs4_call_again(call);
		return;
	}
	if ((call->desc->again && call->desc->again(call)) ||
		(call->status == NFS4_OK && call->desc->granted && !call->desc->granted(call))) {
		nfs4_call_again(call);
		return;
	}
	nfs4_call_finish(call, -nfs4_status_errno(call->status));
}

/* The operation's results, and what they mean for the call. */
static void reply_results(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct nfs4_compound from = *c;
	int err = call->desc->decode(call, c);

	if (!err && nfs4_compound_close(c) && c->idmap_ticket) {
		if (nfs4_idmap_hold(call, &from, c->idmap_ticket)) {
			nfs4_call_wait_idmap(call);
			return;
		}
		*c = from;
		c->idmap_late = true;
		err = call->desc->decode(call, c);
	}
	if (err || !nfs4_compound_close(c)) {
		log_warn_limited("%s: the results of %s are malformed (status %s)",
			call->sess->peer, call->desc->name, nfs4_status_name(c->status));
		nfs4_call_finish(call, -EIO);
		return;
	}
	call->status = c->status;
	reply_status(call);
}

void nfs4_reply_mapped(struct nfs4_call *call)
{
	struct nfs4_idmap_reply *k = call->kept;

	call->kept = NULL;
	reactor_timer_cancel(call->sess->r, &call->timer);
	k->c.idmap_late = true;
	k->c.now_ns = reactor_now(call->sess->r);
	reply_results(call, &k->c);
	free(k);
}

static void reply_compound(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	const uint32_t *supported = nfs4_session_call_fs(call)->supported;
	struct nfs4_compound c = {
		.dec = call->rpc.results,
		.minor = s->cl->minor,
		.supported = supported[0] ? supported : NULL,
		.idmap = s->cl->conf.idmap,
		.now_ns = reactor_now(s->r),
	};

	call->status = NFS4_OK;
	if (!nfs4_compound_open(&c, call)) {
		reply_broken(call, "not a COMPOUND");
		return;
	}
	if (!call->desc->no_sequence && !reply_sequence(call, &c))
		return;
	reply_results(call, &c);
}

static void count_time(struct nfs4_call *call)
{
	const struct rpcrdma_req *req = &call->rpc.req;
	const struct stats *st = call->sess->stats;
	uint64_t posted = req->posted_ns ? req->posted_ns : req->over_ns;
	struct nfs4_times *t = call->times;

	if (st->latency && req->posted_ns && call->op < STATS_OPS)
		hist_add(&st->latency->nfs[call->op], req->over_ns - posted);
	if (!t)
		return;
	t->queue_ns += posted > t->mark_ns ? posted - t->mark_ns : 0;
	t->rpc_ns += req->over_ns - posted;
	t->mark_ns = req->over_ns;
}

void nfs4_reply_done(struct rpc_call *rpc)
{
	struct nfs4_call *call = container_of(rpc, struct nfs4_call, rpc);
	struct nfs4_session *s = call->sess;

	assert(call->state == NFS4_CALL_SENT); /* I8 */
	count_time(call);
	if (rpc->result == RPC_OK)
		reply_compound(call);
	else
		reply_failed(call);
	/* The call may be gone; the session is not, before ->stopped. */
	if (nfs4_session_is_up(s) && nfs4_slot_worn(&s->slots))
		nfs4_recover(s, s->gen, NFS4_NEED_SESSION | NFS4_NEED_DESTROY,
			"too many slots wait for replies that will not come");
	nfs4_call_kick(s);
	nfs4_setup_drained(s);
	nfs4_stop_next(s);
}
