/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait for names of owners: with a reply that has names the idmap
 * does not know yet, or before they go. Such a reply is kept, without its slot
 * and its receive buffer, and decoded once more when the answers are there or
 * were waited for IDMAP_WAIT_NS.
 *
 * Context: the session's lane.
 */
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- received ---- */

/*
 * Results in a receive buffer are copied: the buffer is not held for seconds. Those in a Reply
 * chunk lie in the user's sink until ->done.
 */
static struct nfs4_idmap_reply *reply_keep(
	const struct nfs4_call *call, const struct nfs4_compound *c)
{
	const struct rpcrdma_span *sink = &call->rpc.req.reply_sink;
	bool in_sink = sink->len && c->dec.base >= sink->p && c->dec.base < sink->p + sink->len;
	size_t len = xdr_dec_left(&c->dec);
	struct nfs4_idmap_reply *k = malloc(sizeof(*k) + (in_sink ? 0 : len));

	if (!k)
		return NULL;
	k->c = *c;
	if (!in_sink) {
		memcpy(k->data, c->dec.p, len);
		xdr_dec_init(&k->c.dec, k->data, len);
	}
	return k;
}

/* Calls of our own need no owners, and nobody waits for a session that ends. */
static bool may_wait(const struct nfs4_call *call)
{
	const struct nfs4_session *s = call->sess;

	return call != &s->ctl && call != &s->renew && call != &s->reopener &&
	       (s->state == NFS4_SESSION_UP || s->state == NFS4_SESSION_RECOVERING);
}

bool nfs4_idmap_hold(struct nfs4_call *call, const struct nfs4_compound *from, uint64_t ticket)
{
	assert(!call->kept);
	if (!may_wait(call))
		return false;
	call->kept = reply_keep(call, from);
	if (!call->kept)
		return false;
	call->idmap_ticket = ticket;
	return true;
}

/* ---- sent, by SETATTR ---- */

static bool sets_owner(const struct nfs4_call *call)
{
	return call->u.setattr.sattr.set & (NFS4_ATTR_OWNER | NFS4_ATTR_GROUP);
}

/* Are the names there that it sends? */
static bool has_names(struct nfs4_call *call)
{
	struct nfs4_client *cl = call->sess->cl;
	struct nfs4_sattr sattr;
	struct nfs4_owner_names mem;
	uint64_t ticket;

	if (!sets_owner(call))
		return true;
	call->by_name = atomic_load(&cl->owners_by_name);
	if (!call->by_name || call->idmap_asked || !may_wait(call))
		return true;
	call->idmap_asked = true;
	sattr = call->u.setattr.sattr;
	ticket = nfs4_owners_names(cl->conf.idmap, reactor_now(call->sess->r), &sattr, &mem);
	if (!ticket)
		return true;
	call->idmap_ticket = ticket;
	return false;
}

enum nfs4_state_verdict nfs4_idmap_take(struct nfs4_call *call)
{
	enum nfs4_state_verdict verdict = nfs4_lock_io_take(call);

	return verdict == NFS4_STATE_GO && !has_names(call) ? NFS4_STATE_IDMAP : verdict;
}

bool nfs4_idmap_again(struct nfs4_call *call)
{
	struct nfs4_client *cl = call->sess->cl;

	if (call->status != NFS4ERR_BADOWNER || !sets_owner(call) || call->by_name ||
		!cl->conf.idmap)
		return false;
	if (!atomic_exchange(&cl->owners_by_name, true))
		log_info("%s: the server does not take numbers as owners: names from now on",
			call->sess->peer);
	return true;
}

/* ---- answers ---- */

/* Calls whose answers are there go on; for the others there is another message. */
static void idmap_tells(struct reactor_msg *msg)
{
	struct nfs4_session *s = container_of(
		container_of(msg, struct idmap_waiter, msg), struct nfs4_session, idmap_waiter);
	struct idmap *m = s->cl->conf.idmap;
	uint64_t answered;

	idmap_told(m, &s->idmap_waiter);
	answered = idmap_answered(m);
	/* By timers: a call that goes on may end others. */
	list_for_each (node, &s->idmap_waits) {
		struct nfs4_call *call = container_of(node, struct nfs4_call, link);

		if (call->idmap_ticket <= answered)
			reactor_timer_in(s->r, &call->timer, 0);
		else
			idmap_wait(m, &s->idmap_waiter, call->idmap_ticket);
	}
}

void nfs4_idmap_init(struct nfs4_session *s)
{
	list_init(&s->idmap_waits);
	idmap_waiter_init(&s->idmap_waiter, s->r, idmap_tells);
}

bool nfs4_idmap_fini(struct nfs4_session *s)
{
	return !s->cl->conf.idmap || idmap_cancel(s->cl->conf.idmap, &s->idmap_waiter);
}
