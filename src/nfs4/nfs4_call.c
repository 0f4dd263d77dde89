/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a call.
 *
 *   IDLE --start--> WAITING --slot--> SENT --reply--> IDLE (->done)
 *                      ^               |
 *                      |--session lost-|      (recovery sends it again)
 *                      |-- DELAYED <---|      NFS4ERR_DELAY, GRACE
 *                      `-- IDMAP   <---'      names of owners; then the reply once more
 *   ENDING: an error that nobody is waiting for in the transport; ->done comes
 *   from a timer, because it must not come from nfs4_call_start().
 *
 * A call in SENT belongs to the transport, which resends the same bytes on the
 * same slot after a lost connection. Each end of a call passes nfs4_call_finish().
 *
 * Context: the session's lane.
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* After so many retries at once the next ones are spaced like NFS4ERR_DELAY. */
#define QUICK_RETRIES 4u
#define GRACE_GAP_NS  (60 * NSEC_PER_SEC)

/* The only place that changes a call's state; moves it to the list of the new one. */
static void call_set_state(struct nfs4_call *call, enum nfs4_call_state to)
{
	struct nfs4_session *s = call->sess;

	if (call->state == NFS4_CALL_SENT && !nfs4_session_is_ctl(call))
		s->sent_cnt--;
	list_del(&call->link);
	call->state = to;
	switch (to) {
	case NFS4_CALL_IDLE:
		break;
	case NFS4_CALL_WAITING:
		list_push_back(&s->waiting, &call->link);
		break;
	case NFS4_CALL_SENT:
		if (!nfs4_session_is_ctl(call))
			s->sent_cnt++;
		break;
	case NFS4_CALL_DELAYED:
		list_push_back(&s->delayed, &call->link);
		break;
	case NFS4_CALL_IDMAP:
		list_push_back(&s->idmap_waits, &call->link);
		break;
	case NFS4_CALL_ENDING:
		list_push_back(&s->ending, &call->link);
		reactor_timer_in(s->r, &s->ending_timer, 0);
		break;
	}
}

/* ---- ends ---- */

/* The slot goes back by `how`, unless its session is gone: its table is then another one. */
void nfs4_call_leave_slot(struct nfs4_call *call, void (*how)(struct nfs4_slots *, uint32_t))
{
	if (call->slot == NFS4_SLOT_NONE)
		return;
	if (call->sess_gen == call->sess->gen)
		how(&call->sess->slots, call->slot);
	call->slot = NFS4_SLOT_NONE;
}

void nfs4_call_finish(struct nfs4_call *call, int err)
{
	assert(call->slot == NFS4_SLOT_NONE && call->state != NFS4_CALL_IDLE); /* I8, I9 */
	reactor_timer_cancel(call->sess->r, &call->timer);
	call_set_state(call, NFS4_CALL_IDLE);
	call->err = err;
	if (call->desc->ended)
		call->desc->ended(call);
	else
		call->done(call);
}

static void call_end_later(struct nfs4_call *call, int err)
{
	nfs4_call_leave_slot(call, nfs4_slot_orphan);
	reactor_timer_cancel(call->sess->r, &call->timer);
	call->err = err;
	call_set_state(call, NFS4_CALL_ENDING);
}

void nfs4_call_flush(struct nfs4_session *s)
{
	struct list batch = LIST_INIT(batch);
	struct list *node;

	list_splice_back(&batch, &s->ending);
	while ((node = list_pop_front(&batch))) {
		struct nfs4_call *call = container_of(node, struct nfs4_call, link);

		nfs4_call_finish(call, call->err);
	}
}

void nfs4_call_timer(struct reactor_timer *t)
{
	struct nfs4_session *s = container_of(t, struct nfs4_session, ending_timer);

	nfs4_call_flush(s);
	nfs4_stop_next(s);
}

void nfs4_call_end_waiting(struct nfs4_session *s, int err)
{
	struct list *node;

	while ((node = list_pop_front(&s->waiting)))
		call_end_later(container_of(node, struct nfs4_call, link), err);
	while ((node = list_pop_front(&s->delayed)))
		call_end_later(container_of(node, struct nfs4_call, link), err);
	/* Their answers are here, or dispatching ends them: in the next turn. */
	list_for_each (waits, &s->idmap_waits)
		reactor_timer_in(s->r, &container_of(waits, struct nfs4_call, link)->timer, 0);
}

/* ---- waiting ---- */

/* How long a call of a soft mount may wait for the server or the session. */
static uint64_t soft_limit_ns(const struct nfs4_session *s)
{
	const struct rpcrdma_conf *conf = &s->cl->conf.rdma;

	return conf->timeo_ns * (conf->retrans + 1ull);
}

static bool call_is_soft(const struct nfs4_call *call)
{
	return !call->sess->cl->conf.hard && !nfs4_session_is_ctl(call);
}

static void call_wait(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;

	call_set_state(call, NFS4_CALL_WAITING);
	if (call_is_soft(call) && !reactor_timer_armed(&call->timer))
		reactor_timer_in(s->r, &call->timer, soft_limit_ns(s));
}

/* One line for a grace period: its answers are at most 15 s apart, on whatever lane. */
static void note_grace(struct nfs4_session *s)
{
	uint64_t now = reactor_now(s->r);
	uint64_t before =
		atomic_exchange_explicit(&s->cl->grace_ns, now ? now : 1, memory_order_relaxed);

	if (before == 0 || (now > before && now - before > GRACE_GAP_NS))
		log_info("server %s is in its grace period: opens and locks wait for its end",
			s->peer);
}

/* Later again, on the slot it may still own. */
void nfs4_call_delay(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	uint64_t ns = nfs4_delay_ns(call->tries);

	call->tries++;
	stats_count(&s->stats->delays, 1);
	if (call->status == NFS4ERR_GRACE)
		note_grace(s);
	if (call_is_soft(call) && nfs4_delay_total_ns(call->tries) > soft_limit_ns(s)) {
		if (call->slot != NFS4_SLOT_NONE)
			call->status = NFS4_OK; /* it may yet be executed: that was no answer */
		nfs4_call_leave_slot(call, nfs4_slot_orphan);
		nfs4_call_finish(call, -s->cl->conf.timeout_errno);
		return;
	}
	if (nfs4_session_is_ctl(call) && !nfs4_steps_may_wait(s, call->tries)) {
		nfs4_call_leave_slot(call, nfs4_slot_orphan);
		nfs4_call_finish(call, -EAGAIN);
		return;
	}
	log_debug("%s: %s: %s, again in %u ms", s->peer, call->desc->name,
		nfs4_status_name(call->status), (unsigned int)(ns / NSEC_PER_MSEC));
	call_set_state(call, NFS4_CALL_DELAYED);
	reactor_timer_in(s->r, &call->timer, ns);
}

/* For states that another lane opens. */
#define STATE_POLL_NS (50 * NSEC_PER_MSEC)

void nfs4_call_wait_state(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	uint64_t now = reactor_now(s->r);

	reactor_timer_cancel(s->r, &call->timer);
	if (!call->state_wait_ns) {
		call->state_wait_ns = now;
	} else if (call_is_soft(call) && now - call->state_wait_ns > soft_limit_ns(s)) {
		call_end_later(call, -s->cl->conf.timeout_errno);
		return;
	}
	call_set_state(call, NFS4_CALL_DELAYED);
	reactor_timer_in(s->r, &call->timer, STATE_POLL_NS);
	nfs4_reclaim_kick(s);
}

void nfs4_call_wait_idmap(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;

	call_set_state(call, NFS4_CALL_IDMAP);
	reactor_timer_in(s->r, &call->timer, IDMAP_WAIT_NS);
	idmap_wait(s->cl->conf.idmap, &s->idmap_waiter, call->idmap_ticket);
}

void nfs4_call_wake_state(struct nfs4_session *s)
{
	list_for_each_safe (node, next, &s->delayed) {
		struct nfs4_call *call = container_of(node, struct nfs4_call, link);

		if (!call->state_wait_ns)
			continue;
		reactor_timer_cancel(s->r, &call->timer);
		call_wait(call);
	}
	nfs4_call_kick(s);
}

/* Is there what the call needs, its stateid first of all? False: the call went another way. */
static bool call_take(struct nfs4_call *call)
{
	assert(call->slot == NFS4_SLOT_NONE); /* I10 */
	switch (call->desc->take(call)) {
	case NFS4_STATE_GO:
		call->state_wait_ns = 0;
		return true;
	case NFS4_STATE_WAIT:
		nfs4_call_wait_state(call);
		return false;
	case NFS4_STATE_IDMAP:
		call->state_wait_ns = 0;
		nfs4_call_wait_idmap(call);
		return false;
	case NFS4_STATE_END:
		call_end_later(call, call->err);
		return false;
	case NFS4_STATE_FAIL:
		break;
	}
	call_end_later(call, -EIO);
	return false;
}

/* ---- sending ---- */

static int call_encode_and_send(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	const struct nfs4_opdesc *desc = call->desc;
	struct rpcrdma_req *req = &call->rpc.req;
	const struct nfs4_fs *fs = nfs4_session_call_fs(call);
	struct nfs4_compound c = {
		.stats = s->stats, .idmap = s->cl->conf.idmap, .now_ns = call->sent_ns};
	int err;

	req->arg_cnt = 0;
	req->long_call = req->reply_sink = (struct rpcrdma_span){0};
	memset(req->results, 0, sizeof(req->results));
	req->tail_len = 0;
	req->result_cnt = 0;
	call->op = 0;
	req->soft = call_is_soft(call);
	req->give_back = false;
	rpc_begin(s->x, &call->rpc, NFS4_PROG, NFS4_VERS, NFS4_PROC_COMPOUND, call->cred,
		desc->long_buf ? desc->long_buf(call) : NULL, &c.enc);
	nfs4_compound_begin(&c, call, s->cl->minor, fs->supported[0] ? fs->supported : NULL);
	c.exclcreat = fs->exclcreat[0] | fs->exclcreat[1] ? fs->exclcreat : NULL;
	/* A server that was restarted may take and give less at once than at the mount. */
	c.read_max = nfs4_fs_io_size(fs->rsize, fs->rsize, 0, s->params.fore.maxresp);
	c.write_max = nfs4_fs_io_size(fs->wsize, fs->wsize, 0, s->params.fore.maxreq);
	c.inline_max = rpcrdma_inline_reply_max(s->x);
	c.ops_max = s->params.fore.maxops;
	c.cached_max = desc->cachethis ? s->params.fore.maxcached : 0;
	if (!desc->no_sequence)
		nfs4_compound_put_sequence(&c, &(struct nfs4_sequence){
						       .id = s->id,
						       .seqid = call->seqid,
						       .slot = call->slot,
						       .highest = call->highest,
						       .cachethis = desc->cachethis,
					       });
	err = desc->encode(call, &c);
	if (!err)
		err = nfs4_compound_end(&c);
	if (err)
		return err;
	if (desc->unbounded)
		nfs4_reply_chunk_offer(call, &c);
	req->reply_max = c.reply_max;
	/* Steps have no buffer for a Reply chunk: names of servers may be long, but are not. */
	if (nfs4_session_is_ctl(call) &&
		req->reply_max + RPC_REPLY_HDR > rpcrdma_inline_reply_max(s->x))
		req->reply_max = rpcrdma_inline_reply_max(s->x) - RPC_REPLY_HDR;
	nfs4_redo_sent(call, &c);
	return rpc_send(&call->rpc, &c.enc);
}

/* False: no slot is free; the call is where it was. Otherwise the call is on its way to its end. */
static bool call_send(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	int err;

	if (call->slot != NFS4_SLOT_NONE && call->sess_gen != s->gen)
		call->slot = NFS4_SLOT_NONE; /* of a session that is gone */
	if (!call->desc->no_sequence && call->slot == NFS4_SLOT_NONE) {
		if (call->desc->take && !call_take(call))
			return true;
		call->slot = nfs4_slot_get(&s->slots, &call->seqid);
		if (call->slot == NFS4_SLOT_NONE)
			return false;
		call->highest = NFS4_SLOT_NONE;
		call->resent = call->sent_ns != 0;
	}
	if (call->highest == NFS4_SLOT_NONE)
		call->highest = nfs4_slot_highest(&s->slots);
	call->sess_gen = s->gen;
	call->id_gen = s->id_gen;
	call->sent_ns = reactor_now(s->r);
	call->status = NFS4_OK; /* the answer to an earlier attempt is none to this one */
	reactor_timer_cancel(s->r, &call->timer);
	call_set_state(call, NFS4_CALL_SENT);
	err = call_encode_and_send(call);
	if (err) {
		if (err == -EMSGSIZE)
			log_warn_limited(
				"%s: a %s is too long for the server", s->peer, call->desc->name);
		nfs4_call_leave_slot(call, nfs4_slot_cancel);
		call_end_later(call, err);
	}
	return true;
}

/* Sends the call as soon as the session allows. */
static void call_dispatch(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	bool owns_slot = call->slot != NFS4_SLOT_NONE && call->sess_gen == s->gen;

	switch (nfs4_session_is_ctl(call) ? NFS4_SESSION_UP : s->state) {
	case NFS4_SESSION_UP:
		if ((owns_slot || nfs4_session_is_ctl(call) || list_empty(&s->waiting)) &&
			call_send(call))
			return;
		stats_count(&s->stats->slot_waits, 1);
		call_wait(call);
		return;
	case NFS4_SESSION_IDLE:
	case NFS4_SESSION_CONNECTING:
	case NFS4_SESSION_SETUP:
	case NFS4_SESSION_RECOVERING:
		call_wait(call);
		return;
	case NFS4_SESSION_STOPPING:
	case NFS4_SESSION_STOPPED:
		call_end_later(call, -ESHUTDOWN);
		return;
	case NFS4_SESSION_FAILING:
	case NFS4_SESSION_DEAD:
		call_end_later(call, -EIO);
		return;
	}
}

/* The same call again: it was not executed, or may be executed twice. */
void nfs4_call_again(struct nfs4_call *call)
{
	if (call->tries >= QUICK_RETRIES) {
		nfs4_call_delay(call);
		return;
	}
	call->tries++;
	call_dispatch(call);
}

/* The names that were asked for are there, or are not waited for any longer. */
static void call_named(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;

	if (idmap_answered(s->cl->conf.idmap) < call->idmap_ticket && nfs4_session_is_up(s))
		log_warn_limited("names of owners are not known in time: they show as nobody");
	if (call->kept)
		nfs4_reply_mapped(call);
	else
		call_dispatch(call);
	nfs4_stop_next(s);
}

static void call_timer(struct reactor_timer *t)
{
	struct nfs4_call *call = container_of(t, struct nfs4_call, timer);

	if (call->state == NFS4_CALL_IDMAP) {
		call_named(call);
		return;
	}
	if (call->state == NFS4_CALL_DELAYED) {
		call_dispatch(call);
		return;
	}
	/* Waited too long: only calls of soft mounts have the timer then. */
	assert(call->state == NFS4_CALL_WAITING); /* I8 */
	nfs4_call_leave_slot(call, nfs4_slot_orphan);
	nfs4_call_finish(call, -call->sess->cl->conf.timeout_errno);
}

void nfs4_call_kick(struct nfs4_session *s)
{
	/* A step in the session found no slot; calls of before hold them all. */
	if (s->ctl.state == NFS4_CALL_WAITING && !call_send(&s->ctl))
		return;
	while (nfs4_session_is_up(s) && !list_empty(&s->waiting))
		if (!call_send(list_first(&s->waiting, struct nfs4_call, link)))
			return;
}

/* ---- the user's side ---- */

int nfs4_call_init(struct nfs4_session *s, struct nfs4_call *call)
{
	const size_t req_len = sizeof(call->rpc.req);
	int err;

	static_assert(offsetof(struct nfs4_call, rpc.req) == 0, "the request is the first part");
	call->rpc.req.done = NULL;
	err = rpcrdma_req_get(s->x, &call->rpc.req); /* which clears the request */
	if (err)
		return err;
	memset((uint8_t *)call + req_len, 0, sizeof(*call) - req_len);
	call->rpc.xprt = s->x;
	call->rpc.done = nfs4_reply_done;
	call->sess = s;
	call->slot = NFS4_SLOT_NONE;
	call->state = NFS4_CALL_IDLE;
	list_init(&call->link);
	reactor_timer_init(&call->timer, call_timer);
	return 0;
}

int nfs4_call_get(struct nfs4_session *s, struct nfs4_call *call)
{
	switch (s->state) {
	case NFS4_SESSION_UP:
	case NFS4_SESSION_RECOVERING:
		return nfs4_call_init(s, call);
	case NFS4_SESSION_IDLE:
	case NFS4_SESSION_CONNECTING:
	case NFS4_SESSION_SETUP:
		s->blocked = true;
		return -EAGAIN;
	case NFS4_SESSION_STOPPING:
	case NFS4_SESSION_STOPPED:
		return -ESHUTDOWN;
	case NFS4_SESSION_FAILING:
	case NFS4_SESSION_DEAD:
		break;
	}
	return -EIO;
}

void nfs4_call_put(struct nfs4_call *call)
{
	assert(call->state == NFS4_CALL_IDLE); /* I8 */
	rpcrdma_req_put(call->sess->x, &call->rpc.req);
}

void nfs4_call_start(struct nfs4_call *call, const struct nfs4_opdesc *desc)
{
	mutex_assert_none();
	assert(call->state == NFS4_CALL_IDLE && call->done && call->cred); /* I8 */
	call->desc = desc;
	call->err = 0;
	call->status = NFS4_OK;
	call->tries = call->state_tries = 0;
	call->under_lock = call->lock_refused = call->room_guessed = false;
	call->state_wait_ns = 0;
	call->chunk.tries = call->bad_cnt = call->high_cnt = 0;
	call->slot = NFS4_SLOT_NONE;
	call->sent_ns = 0;
	call->resent = false;
	call->idmap_asked = call->by_name = false;
	call_dispatch(call);
}
