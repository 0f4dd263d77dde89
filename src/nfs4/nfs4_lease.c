/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease (RFC 8881 section 8.3): every SEQUENCE renews it for the client
 * ID. A lane that sent none for two thirds of the lease sends one alone; it
 * counts from the sending of the last one that succeeded, never from its reply.
 *
 * Each lane does so for itself: what it renews is the same lease, but what it
 * finds out is whether its own connection and session are alive.
 *
 * The same call brings the back channel to a new connection, before anything
 * else: BIND_CONN_TO_SESSION, which nfsd takes also when a SEQUENCE bound the
 * connection forwards already (RFC 8881 section 2.10.3.1).
 *
 * It carries what is to be asked and told about revoked state too
 * (nfs4_revoke.c), and returns delegations that are not wanted
 * (nfs4_return_send.c): any SEQUENCE renews.
 *
 * Context: the session's lane.
 */
#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

#include <string.h>

#define LEASE_UNKNOWN_S 60u /* until the mount has asked: less than any server's */
#define LEASE_MIN_NS    NSEC_PER_SEC

uint64_t nfs4_lease_due_ns(uint64_t renewed_ns, uint32_t lease_s)
{
	uint64_t wait_ns = (lease_s ? lease_s : LEASE_UNKNOWN_S) * NSEC_PER_SEC / 3 * 2;

	return renewed_ns + (wait_ns > LEASE_MIN_NS ? wait_ns : LEASE_MIN_NS);
}

static int renew_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return 0; /* SEQUENCE is all */
}

static int renew_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return 0;
}

static const struct nfs4_opdesc renew_desc = {
	.name = "SEQUENCE",
	.encode = renew_encode,
	.decode = renew_decode,
};

/* ---- the back channel ---- */

void nfs4_lease_back_is_on(struct nfs4_session *s, uint64_t generation)
{
	s->back_gen = generation;
}

/* The session has a back channel, and this connection is not it. */
static bool back_is_off(const struct nfs4_session *s)
{
	return nfs4_codec_has_back(&s->params) && s->back_gen != rpcrdma_generation(s->x);
}

/* ---- renewal ---- */

static void renew(struct nfs4_session *s);
static void send_renewal(struct nfs4_session *s, const struct nfs4_opdesc *desc);

static void lease_arm(struct nfs4_session *s)
{
	uint64_t due = nfs4_lease_due_ns(s->renewed_ns, s->cl->fsinfo.lease_s);
	uint64_t soonest = reactor_now(s->r) + LEASE_MIN_NS;

	reactor_timer_set(s->r, &s->lease_timer, due > soonest ? due : soonest);
}

static void renew_done(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;

	/* What was wrong is being dealt with: the session's own recovery, or a soft timeout. */
	if (!nfs4_session_is_up(s))
		return;
	if (call->desc != &nfs4_bind_desc) {
		bool unblocks = s->testing.unblocks;

		s->testing.unblocks = false;
		if (unblocks)
			nfs4_reclaim_kick(s); /* may start this call again */
		nfs4_lease_next(s);
		return;
	}
	if (call->err && nfs4_status_action(call->status) == NFS4_ACT_DELAY) {
		/* Not now: the lease before, and then it again. */
		send_renewal(s, &renew_desc);
		s->bind_due = true;
		return;
	}
	if (call->err && back_is_off(s)) {
		log_warn("%s: the back channel cannot be bound to the new connection: %s", s->peer,
			call->status ? nfs4_status_name(call->status) : strerror(-call->err));
		nfs4_lease_back_is_on(s, rpcrdma_generation(s->x)); /* as good as it gets */
	}
	renew(s); /* it renewed nothing */
}

static bool is_due(struct nfs4_session *s)
{
	return nfs4_revoke_due(s) || nfs4_return_send_due(s);
}

static void send_renewal(struct nfs4_session *s, const struct nfs4_opdesc *desc)
{
	s->renew.done = renew_done;
	nfs4_call_start(&s->renew, desc);
}

/* Any call renews: one that has something else to do, if there is one. */
static const struct nfs4_opdesc *next_desc(struct nfs4_session *s)
{
	const struct nfs4_opdesc *desc = nfs4_revoke_next(s);

	if (!desc)
		desc = nfs4_return_send_next(s);
	return desc ? desc : &renew_desc;
}

static void renew(struct nfs4_session *s)
{
	bool bind = s->bind_due;

	if (s->renew.state != NFS4_CALL_IDLE)
		return; /* its ->done goes on */
	s->bind_due = false;
	s->renew.cred = &s->cred;
	send_renewal(s, bind ? &nfs4_bind_desc : next_desc(s));
}

void nfs4_lease_bind(struct nfs4_session *s)
{
	/* One that is under way, or will be sent again, does it for this connection too. */
	if (s->renew.state != NFS4_CALL_IDLE && s->renew.desc == &nfs4_bind_desc)
		return;
	s->bind_due = true;
	renew(s);
}

void nfs4_lease_next(struct nfs4_session *s)
{
	if (!nfs4_session_is_up(s))
		return;
	if (s->bind_due || is_due(s))
		renew(s);
	else
		lease_arm(s);
}

void nfs4_lease_kick(struct nfs4_session *s)
{
	if (nfs4_session_is_up(s) && s->renew.state == NFS4_CALL_IDLE && is_due(s))
		renew(s);
}

void nfs4_lease_start(struct nfs4_session *s, bool now)
{
	if (back_is_off(s))
		nfs4_lease_bind(s);
	else if (now || is_due(s))
		renew(s);
	else
		lease_arm(s);
}

void nfs4_lease_stop(struct nfs4_session *s)
{
	reactor_timer_cancel(s->r, &s->lease_timer);
}

void nfs4_lease_timer(struct reactor_timer *t)
{
	struct nfs4_session *s = container_of(t, struct nfs4_session, lease_timer);

	if (!nfs4_session_is_up(s))
		return;
	if (nfs4_lease_due_ns(s->renewed_ns, s->cl->fsinfo.lease_s) > reactor_now(s->r) &&
		!is_due(s))
		lease_arm(s); /* ordinary calls renewed it meanwhile */
	else
		renew(s);
}
