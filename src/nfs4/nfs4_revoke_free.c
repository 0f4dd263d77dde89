/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server is told that we know what it revoked (FREE_STATEID; RFC 8881
 * section 8.4.3). One at a time, by sess->renew.
 *
 * Context: the session's lane. What lanes share is under states.lock.
 */
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_FREE_TRIES 3u
/* Of each try, 3 s: opens that are to be reclaimed wait for it. */
#define MAX_FREE_DELAYS 5u

bool nfs4_revoke_free_no_answer(const struct nfs4_call *call)
{
	return call->err &&
	       (call->status == NFS4_OK || nfs4_status_action(call->status) == NFS4_ACT_DELAY);
}

/* The server has nothing to say any more than what is known. */
void nfs4_revoke_free_settle(struct nfs4_session *s)
{
	s->cl->states.revoke.settled_ns = reactor_now(s->r);
}

/* ---- FREE_STATEID ---- */

/* The stateid of a client ID that is gone may mean something else to the server. */
static int free_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_session_renew_is_current(call) ? nfs4_free_stateid_desc.encode(call, c)
						   : -ESTALE;
}

static int free_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	return nfs4_free_stateid_desc.decode(call, c);
}

static void free_ended(struct nfs4_call *call)
{
	struct nfs4_session *s = call->sess;
	struct nfs4_states *all = &s->cl->states;
	struct nfs4_revoked *g = s->testing.revoked;
	/* DELAY, soft mounts: it is tried again, after the others. Any answer will do. */
	bool again =
		nfs4_revoke_free_no_answer(call) && call->err != -ESTALE && nfs4_session_is_up(s);
	bool last;

	s->testing.revoked = NULL;
	if (call->err && !nfs4_revoke_free_no_answer(call) && !nfs4_status_is_gone(call->status))
		log_info("%s: revoked state cannot be freed: %s", s->peer,
			nfs4_status_name(call->status));
	mutex_lock(&all->lock);
	all->revoke.freeing--;
	if (again && ++g->tries < MAX_FREE_TRIES)
		list_push_back(&all->revoke.revoked, &g->link);
	else
		free(g);
	last = list_empty(&all->revoke.revoked) && all->revoke.freeing == 0;
	if (last)
		nfs4_revoke_free_settle(s);
	mutex_unlock(&all->lock);
	s->testing.unblocks = last;
	call->done(call);
}

static const struct nfs4_opdesc free_desc = {
	.name = "FREE_STATEID",
	.encode = free_encode,
	.decode = free_decode,
	.ended = free_ended,
	.cachethis = true,
	.max_delays = MAX_FREE_DELAYS,
};

const struct nfs4_opdesc *nfs4_revoke_free_next(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;
	struct list *node = NULL;

	mutex_lock(&all->lock);
	nfs4_revoked_purge(all);
	/* A session that is about to be made anew leaves it to the others. */
	if (s->id_gen == all->id_gen)
		node = list_pop_front(&all->revoke.revoked);
	if (node)
		all->revoke.freeing++;
	mutex_unlock(&all->lock);
	if (!node)
		return NULL;
	s->testing.revoked = container_of(node, struct nfs4_revoked, link);
	s->testing.id_gen = s->id_gen;
	s->renew.u.free_stateid.stateid = s->testing.revoked->stateid;
	s->renew.cred = &s->testing.revoked->cred;
	return &free_desc;
}
