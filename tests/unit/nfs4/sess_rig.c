/* SPDX-License-Identifier: BSD-3-Clause */
#include "sess_rig.h"

#include <string.h>

#define FILEID 4711

struct sess_rig sr;

static void on_recall(void *ctx, struct nfs4_deleg *d)
{
	sr.recalled++;
}

static void on_lost(void *ctx, struct nfs4_deleg *d)
{
	sr.lost++;
}

static const struct nfs4_deleg_ops deleg_ops = {.recall = on_recall, .lost = on_lost};

static void no_timer(struct reactor_timer *t)
{
	cr_assert_fail("nothing waits that long here");
}

static void ignore(struct nfs4_call *call)
{
	(void)call;
}

void sess_rig_call(struct nfs4_call *call)
{
	memset(call, 0, sizeof(*call));
	call->sess = &sr.s;
	call->cred = &sr.cred;
	call->done = ignore;
	call->slot = NFS4_SLOT_NONE;
	call->id_gen = sr.s.id_gen;
	call->sess_gen = sr.s.gen;
	list_init(&call->link);
	reactor_timer_init(&call->timer, no_timer);
}

void sess_rig_up(void)
{
	struct nfs4_session *s = &sr.s;

	memset(&sr, 0, sizeof(sr));
	sr.cl.conf.hard = true;
	sr.cl.id_gen = 1;
	mutex_init(&sr.cl.lock, MUTEX_NFS4_CLIENT);
	list_init(&sr.cl.waiters);
	nfs4_state_init(&sr.cl.states);
	sr.cl.states.id_gen = 1;
	nfs4_deleg_set_ops(&sr.cl, &deleg_ops, NULL);
	s->cl = &sr.cl;
	s->r = reactor_new_virtual();
	s->stats = &sr.stats;
	s->state = NFS4_SESSION_RECOVERING;
	s->id_gen = 1;
	s->gen = 1;
	list_init(&s->waiting);
	list_init(&s->delayed);
	list_init(&s->idmap_waits);
	list_init(&s->ending);
	list_init(&s->token_link);
	reactor_timer_init(&s->ending_timer, nfs4_call_timer);
	reactor_timer_init(&s->step_timer, no_timer);
	reactor_timer_init(&s->lease_timer, no_timer);
	mutex_init(&s->view_lock, MUTEX_NFS4_VIEW);
	sess_rig_call(&s->ctl);
	sess_rig_call(&s->renew);
	sess_rig_call(&s->reopener);
	sr.fh = (struct nfs4_fh){.len = 2, .data = "fh"};
}

void sess_rig_down(void)
{
	nfs4_state_fini(&sr.cl.states);
	reactor_timer_cancel(sr.s.r, &sr.s.reopener.timer);
	reactor_timer_cancel(sr.s.r, &sr.s.step_timer);
	reactor_timer_cancel(sr.s.r, &sr.s.ending_timer);
	reactor_free(sr.s.r);
}

void sess_rig_new_client(void)
{
	sr.cl.id_gen++;
	nfs4_state_new_client(&sr.cl);
	sr.s.id_gen = sr.cl.id_gen;
}

void sess_rig_answer(struct nfs4_call *call, enum nfs4_status status)
{
	list_del(&call->link);
	call->state = NFS4_CALL_IDLE;
	call->status = status;
	call->err = -nfs4_status_errno(status);
	call->id_gen = sr.s.id_gen;
	if (call->desc->ended)
		call->desc->ended(call);
	else
		call->done(call);
}

struct nfs4_stateid sess_rig_stateid(uint8_t other, uint32_t seqid)
{
	return (struct nfs4_stateid){.seqid = seqid, .other = {other}};
}

void sess_rig_open(struct nfs4_state *st, uint32_t access, struct nfs4_stateid sid)
{
	struct nfs4_call call;

	sess_rig_call(&call);
	call.u.open.share_access = access;
	call.u.open.owner = 1;
	call.u.open.fh = sr.fh;
	call.u.open.stateid = sid;
	call.u.open.attr.valid = NFS4_ATTR_FILEID;
	call.u.open.attr.fileid = FILEID;
	nfs4_share_open(st, &call);
}

void sess_rig_bad(struct nfs4_state *st)
{
	mutex_lock(&sr.cl.states.lock);
	nfs4_state_bad(&sr.cl.states, st, &st->stateid, NFS4ERR_EXPIRED);
	mutex_unlock(&sr.cl.states.lock);
}

bool sess_rig_is_on(const struct list *list, const struct nfs4_state *st)
{
	list_for_each (node, list)
		if (container_of(node, struct nfs4_state, link) == st)
			return true;
	return false;
}
