/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which failure means what: the statuses of SEQUENCE, one row each, and
 * sr_status_flags. What is to be made good again becomes bits of sess->need,
 * which nfs4_setup.c works off while calls wait.
 *
 * A lost connection does not come here: the transport makes a new one and
 * resends, and the reply cache of the session makes that exactly once.
 *
 * Opens that are gone with a client ID, or one by one, are reclaimed by
 * nfs4_state.c.
 *
 * Context: the session's lane.
 */
#include "nfs4_session_int.h"

/* A recovery that follows the last one so closely waits: something is wrong with the server. */
#define CALM_NS NSEC_PER_SEC

static const struct {
	enum nfs4_status status;
	enum nfs4_seq_action action;
} seq_rows[] = {
	/* The first attempt is still running (a resend overtook it), or the server is busy. */
	{NFS4ERR_DELAY, NFS4_SEQ_RESEND},
	/* The server's slot table is smaller than we thought. */
	{NFS4ERR_BADSLOT, NFS4_SEQ_CUT},
	/* sa_highest_slotid lies above its table, which shrank: when the higher calls have ended.
	 */
	{NFS4ERR_BAD_HIGH_SLOT, NFS4_SEQ_HIGHEST},
	/* The server was restarted, or dropped us after the lease. */
	{NFS4ERR_BADSESSION, NFS4_SEQ_SESSION},
	/* The session is being destroyed; it will not come back. */
	{NFS4ERR_DEADSESSION, NFS4_SEQ_SESSION},
	/* The server does not bind a new connection by itself. */
	{NFS4ERR_CONN_NOT_BOUND_TO_SESSION, NFS4_SEQ_BIND},
	/* Our number is neither the last nor the next: this slot is lost; nothing was executed. */
	{NFS4ERR_SEQ_MISORDERED, NFS4_SEQ_ORPHAN},
	/* The server has another call under this number: that number is used up, the next is free.
	 */
	{NFS4ERR_SEQ_FALSE_RETRY, NFS4_SEQ_NEXT},
	/* A resend; the first attempt was executed and its reply not kept (sa_cachethis false). */
	{NFS4ERR_RETRY_UNCACHED_REP, NFS4_SEQ_NEXT_IDEM},
	/* More operations than ca_maxoperations: our fault, the same again will not help. */
	{NFS4ERR_TOO_MANY_OPS, NFS4_SEQ_FAIL},
	/* Longer than ca_maxrequestsize: likewise. */
	{NFS4ERR_REQ_TOO_BIG, NFS4_SEQ_FAIL},
	/* The reply could exceed ca_maxresponsesize: likewise. */
	{NFS4ERR_REP_TOO_BIG, NFS4_SEQ_FAIL},
	/* The reply could exceed what is cached: without cachethis it would not be exactly once. */
	{NFS4ERR_REP_TOO_BIG_TO_CACHE, NFS4_SEQ_FAIL},
	/* RFC 8881 does not have it on SEQUENCE; a server that says so lost everything of us. */
	{NFS4ERR_STALE_CLIENTID, NFS4_SEQ_CLIENT},
};

enum nfs4_seq_action nfs4_recover_action(enum nfs4_status status)
{
	for (unsigned int i = 0; i < sizeof(seq_rows) / sizeof(seq_rows[0]); i++)
		if (seq_rows[i].status == status)
			return seq_rows[i].action;
	return NFS4_SEQ_FAIL;
}

void nfs4_recover(struct nfs4_session *s, uint32_t gen, unsigned int need, const char *why)
{
	uint64_t now = reactor_now(s->r);

	/* A call of a session that has been replaced already. */
	if (gen != s->gen)
		return;
	if (s->state == NFS4_SESSION_RECOVERING) {
		s->need |= need;
		return;
	}
	if (s->state != NFS4_SESSION_UP)
		return;
	log_warn("%s: %s: %s is made anew, calls wait", s->peer, why,
		need & NFS4_NEED_SESSION ? "the session" : "its state");
	s->need = need;
	nfs4_lease_stop(s);
	nfs4_session_set_state(s, NFS4_SESSION_RECOVERING, why);
	if (s->recovered_ns == 0 || now - s->recovered_ns > CALM_NS) {
		s->backoff = 0;
		nfs4_setup_recover(s);
	} else {
		reactor_timer_in(s->r, &s->step_timer, nfs4_delay_ns(s->backoff++));
	}
}

static const struct {
	uint32_t flag;
	const char *text;
} flag_rows[] = {
	{SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED, "the lease expired: all opens and locks are gone"},
	{SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED, "the lease expired: some opens or locks are gone"},
	{SEQ4_STATUS_ADMIN_STATE_REVOKED, "the administrator revoked opens or locks"},
	{SEQ4_STATUS_RECALLABLE_STATE_REVOKED, "delegations were revoked"},
	/* Not followed: calls on it fail with EREMOTE, and the flag stays (section 18.46.3). */
	{SEQ4_STATUS_LEASE_MOVED, "a file system moved to another server"},
	{SEQ4_STATUS_RESTART_RECLAIM_NEEDED, "the server was restarted and kept the session"},
};

/* Of the back channel; RPCSEC_GSS is not used on it. */
#define FLAGS_PATH (SEQ4_STATUS_CB_PATH_DOWN | SEQ4_STATUS_CB_PATH_DOWN_SESSION)
#define FLAGS_BACK                                                                                 \
	(FLAGS_PATH | SEQ4_STATUS_BACKCHANNEL_FAULT | SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRING |       \
		SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRED)
/* nfsd says BACKCHANNEL_FAULT to all sessions of a client: not one new session after another. */
#define FAULT_NS (60 * NSEC_PER_SEC)

/* The server's calls do not arrive, or it does not like our answers. */
static void back_flags(struct nfs4_session *s, uint32_t appeared)
{
	uint64_t now = reactor_now(s->r);

	if (!nfs4_session_is_up(s))
		return;
	if ((appeared & SEQ4_STATUS_BACKCHANNEL_FAULT) &&
		(!s->fault_ns || now - s->fault_ns >= FAULT_NS)) {
		s->fault_ns = now;
		nfs4_recover(s, s->gen, NFS4_NEED_SESSION | NFS4_NEED_DESTROY,
			"the server's calls to us fail");
	} else if (appeared & FLAGS_PATH) {
		log_info("%s: the back channel is down, binding it again", s->peer);
		nfs4_lease_bind(s);
	}
}

/* Single opens and locks are gone: which, TEST_STATEID tells. */
#define FLAGS_REVOKED                                                                              \
	(SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED | SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED |          \
		SEQ4_STATUS_ADMIN_STATE_REVOKED | SEQ4_STATUS_RECALLABLE_STATE_REVOKED)

/*
 * RESTART_RECLAIM_NEEDED is set until RECLAIM_COMPLETE (section 18.46.3), so also in the replies to
 * what we reclaim with, and in those that were overtaken by it: they say nothing new.
 */
static uint32_t without_old_news(
	const struct nfs4_session *s, const struct nfs4_call *call, uint32_t flags)
{
	const uint32_t bit = SEQ4_STATUS_RESTART_RECLAIM_NEEDED;

	if (nfs4_session_is_ctl(call) || call->sent_ns < s->recovered_ns)
		return (flags & ~bit) | (s->sr_flags & bit);
	return flags;
}

void nfs4_recover_flags(struct nfs4_session *s, const struct nfs4_call *call, uint32_t flags)
{
	uint32_t appeared;

	flags = without_old_news(s, call, flags);
	appeared = flags & ~s->sr_flags;
	if (!nfs4_codec_has_back(&s->params))
		appeared &= ~FLAGS_BACK;
	s->sr_flags = flags;
	if ((flags & FLAGS_REVOKED) &&
		nfs4_revoke_flags(s, appeared & FLAGS_REVOKED, call->sent_ns))
		nfs4_lease_kick(s);
	if (!appeared)
		return;
	for (unsigned int i = 0; i < sizeof(flag_rows) / sizeof(flag_rows[0]); i++)
		if (appeared & flag_rows[i].flag)
			log_warn("%s: the server says: %s", s->peer, flag_rows[i].text);
	if (appeared & SEQ4_STATUS_RESTART_RECLAIM_NEEDED)
		nfs4_recover(s, s->gen, NFS4_NEED_RECLAIM, "the server was restarted");
	if (appeared & FLAGS_BACK)
		back_flags(s, appeared);
}
