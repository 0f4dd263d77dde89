/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that the server goes on with by itself.
 *
 *   COPY answered `async`   the user waits (nfs4_offload_begin)
 *   CB_OFFLOAD              what it says is the user's, by the mailbox of the lane that waits
 *
 * A CB_OFFLOAD may overtake the COPY's reply, on this session or another one,
 * and nfsd names no referring calls (RFC 8881 section 2.10.6.3): while a COPY
 * is in flight what is said of an unknown one is kept, as far as there is room.
 *
 * Context: callbacks come on any lane; what is shared is under offloads.lock.
 */
#include "nfs4_hooks.h"
#include "nfs4_session_int.h"

#include <errno.h>
#include <stdatomic.h>

void nfs4_offload_init(struct nfs4_offloads *os)
{
	mutex_init(&os->lock, MUTEX_NFS4_OFFLOADS);
	list_init(&os->waiting);
}

void nfs4_offload_fini(struct nfs4_offloads *os)
{
	mutex_destroy(&os->lock);
}

bool nfs4_offload_has_back(const struct nfs4_session *s)
{
	return nfs4_codec_has_back(&s->params);
}

/* ---- the stateids of a COPY ---- */

enum nfs4_state_verdict nfs4_offload_take(struct nfs4_call *call)
{
	struct nfs4_op_copy *o = &call->u.copy;
	enum nfs4_state_verdict verdict = NFS4_STATE_GO;

	o->src_stateid = nfs4_stateid_anon;
	if (o->src_state) {
		verdict = nfs4_state_take_from(call, o->src_state);
		o->src_stateid = call->stateid;
	}
	/* Who reads it instead hears what is wrong with it. */
	if (verdict == NFS4_STATE_FAIL)
		return nfs4_state_end(call, -EOPNOTSUPP);
	if (verdict != NFS4_STATE_GO)
		return verdict;
	if (o->state)
		return nfs4_state_take_from(call, o->state);
	call->stateid = nfs4_stateid_anon;
	return NFS4_STATE_GO;
}

enum nfs4_state_verdict nfs4_offload_refused(struct nfs4_call *call)
{
	call->err = -EOPNOTSUPP;
	return NFS4_STATE_END;
}

/* ---- who waits ---- */

static void deliver(struct reactor_msg *msg)
{
	struct nfs4_offload *off = container_of(msg, struct nfs4_offload, msg);

	off->cl = NULL;
	off->done(off);
}

/* Not on the list. The lock is held: who ends it looks whether it still is. */
static void complete(struct nfs4_offload *off, const struct nfs4_offload_result *res)
{
	off->res = *res;
	off->msg.run = deliver;
	reactor_post(off->r, &off->msg);
}

static struct nfs4_early_offload *find_early(
	struct nfs4_offloads *os, uint32_t id_gen, const struct nfs4_stateid *id)
{
	for (unsigned int i = 0; i < os->early_cnt; i++)
		if (os->early[i].id_gen == id_gen && nfs4_state_same_other(&os->early[i].id, id))
			return &os->early[i];
	return NULL;
}

void nfs4_offload_begin(struct nfs4_offload *off, const struct nfs4_call *call,
	void (*done)(struct nfs4_offload *off))
{
	struct nfs4_offloads *os = &call->sess->cl->offloads;
	struct nfs4_early_offload *early;

	off->cl = call->sess->cl;
	off->r = call->sess->r;
	off->done = done;
	off->id = call->u.copy.id;
	off->id_gen = call->id_gen;
	list_init(&off->link);
	mutex_lock(&os->lock);
	early = find_early(os, off->id_gen, &off->id);
	if (early) {
		complete(off, &early->res);
		*early = os->early[--os->early_cnt];
	} else {
		list_push_back(&os->waiting, &off->link);
	}
	mutex_unlock(&os->lock);
}

bool nfs4_offload_end(struct nfs4_offload *off)
{
	struct nfs4_client *cl = off->cl;
	bool waited;

	if (!cl)
		return true;
	mutex_lock(&cl->offloads.lock);
	waited = list_is_linked(&off->link);
	if (waited) {
		list_del(&off->link);
		off->cl = NULL;
	}
	mutex_unlock(&cl->offloads.lock);
	return waited;
}

bool nfs4_offload_is_over(const struct nfs4_offload *off)
{
	return off->cl && off->id_gen != nfs4_client_generation(off->cl);
}

/* ---- COPYs in flight ---- */

void nfs4_offload_await(struct nfs4_call *call)
{
	struct nfs4_offloads *os = &call->sess->cl->offloads;

	mutex_lock(&os->lock);
	os->awaited++;
	mutex_unlock(&os->lock);
}

void nfs4_offload_ended(struct nfs4_call *call)
{
	struct nfs4_offloads *os = &call->sess->cl->offloads;

	call->done(call);
	/* The call may be gone; only now whoever waits for the copy does. */
	mutex_lock(&os->lock);
	if (--os->awaited == 0)
		os->early_cnt = 0;
	mutex_unlock(&os->lock);
}

/* ---- CB_OFFLOAD ---- */

/* Nobody waits for it (yet). The lock is held. */
static enum nfs4_status told_early(struct nfs4_offloads *os, uint32_t id_gen,
	const struct nfs4_stateid *id, const struct nfs4_offload_result *res)
{
	if (!os->awaited)
		return NFS4ERR_BAD_STATEID;
	if (find_early(os, id_gen, id))
		return NFS4_OK;
	if (os->early_cnt == NFS4_EARLY_OFFLOADS)
		return NFS4ERR_DELAY;
	os->early[os->early_cnt++] =
		(struct nfs4_early_offload){.id = *id, .id_gen = id_gen, .res = *res};
	return NFS4_OK;
}

enum nfs4_status nfs4_offload_told(struct nfs4_client *cl, uint32_t id_gen,
	const struct nfs4_stateid *id, const struct nfs4_offload_result *res)
{
	struct nfs4_offloads *os = &cl->offloads;
	enum nfs4_status status = NFS4_OK;
	struct nfs4_offload *off = NULL;

	mutex_lock(&os->lock);
	list_for_each (node, &os->waiting) {
		struct nfs4_offload *it = container_of(node, struct nfs4_offload, link);

		if (it->id_gen == id_gen && nfs4_state_same_other(&it->id, id)) {
			off = it;
			break;
		}
	}
	if (off) {
		list_del(&off->link);
		complete(off, res);
	} else {
		status = told_early(os, id_gen, id, res);
	}
	mutex_unlock(&os->lock);
	return status;
}
