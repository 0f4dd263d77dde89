/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegations: given with an OPEN as conf.delegs says, claimed, returned,
 * revoked; recalled when somebody else wants the file.
 */
#include "nfsd_sim_held.h"

#include <stdlib.h>

#define WANT_MASK      0xff00u
#define WANT_NO_DELEG  0x0400u
#define NONE_EXT       3u
#define WHY_NOT_WANTED 0u
#define WHY_CONTENTION 1u

/* ---- which there are ---- */

static struct deleg *deleg_from(struct list *node)
{
	return container_of(node, struct deleg, link);
}

struct deleg *deleg_find(struct nfsd_sim *sim, const uint8_t *other)
{
	list_for_each (node, &sim->delegs) {
		if (!memcmp(deleg_from(node)->other, other, 12))
			return deleg_from(node);
	}
	return NULL;
}

struct deleg *deleg_of(struct nfsd_sim *sim, const struct client *cl, const struct node *n)
{
	list_for_each (node, &sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (d->client == cl && d->node == n && !d->revoked)
			return d;
	}
	return NULL;
}

void deleg_drop(struct nfsd_sim *sim, struct deleg *d)
{
	stateid_gone(sim, d->other);
	list_del(&d->link);
	d->node->opens--;
	tree_put(&sim->tree, d->node);
	free(d);
}

void delegs_drop(struct nfsd_sim *sim, const struct client *cl)
{
	list_for_each_safe (node, next, &sim->delegs) {
		if (deleg_from(node)->client == cl)
			deleg_drop(sim, deleg_from(node));
	}
}

bool delegs_held(const struct nfsd_sim *sim, const struct client *cl)
{
	for (struct list *node = sim->delegs.next; node != &sim->delegs; node = node->next) {
		if (deleg_from(node)->client == cl && !deleg_from(node)->revoked)
			return true;
	}
	return false;
}

/* ---- given ---- */

/* Would `access` of others be noticed by who holds one of this type? */
static bool conflicts(uint32_t type, uint32_t access)
{
	return type == NFSD_SIM_DELEG_WRITE ? access != 0 : (access & 2) != 0;
}

static bool may_give(struct cmp *c, const struct node *n, uint32_t type)
{
	struct nfsd_sim *sim = c->sim;

	if (!(sim->conf.delegs & type) || !back_is_up(sim, c->sess))
		return false;
	if (conflicts(type, n->other))
		return false;
	list_for_each (node, &sim->opens) {
		const struct open_state *o = container_of(node, struct open_state, link);

		if (o->node == n && o->client != c->sess->client && conflicts(type, o->access))
			return false;
	}
	list_for_each (dnode, &sim->delegs) {
		const struct deleg *d = deleg_from(dnode);

		if (d->node != n || d->revoked)
			continue;
		if (d->client == c->sess->client || d->type == NFSD_SIM_DELEG_WRITE ||
			type == NFSD_SIM_DELEG_WRITE)
			return false;
	}
	return true;
}

/* What an OPEN is given; 0: nothing. */
static uint32_t type_for(
	struct cmp *c, const struct node *n, uint32_t claim, uint32_t access, uint32_t deleg_type)
{
	if ((access & WANT_MASK) == WANT_NO_DELEG)
		return 0;
	switch (claim) {
	case SIM_CLAIM_PREVIOUS:
		return !c->sim->conf.deleg_no_reclaim && may_give(c, n, deleg_type) ? deleg_type
										    : 0;
	case SIM_CLAIM_NULL:
	case SIM_CLAIM_FH:
		if (n->contended)
			return 0;
		if (access & 2 && may_give(c, n, NFSD_SIM_DELEG_WRITE))
			return NFSD_SIM_DELEG_WRITE;
		return access & 1 && may_give(c, n, NFSD_SIM_DELEG_READ) ? NFSD_SIM_DELEG_READ : 0;
	default:
		return 0;
	}
}

static struct deleg *deleg_new(struct cmp *c, struct node *n, uint32_t type)
{
	struct deleg *d = calloc(1, sizeof(*d));

	d->client = c->sess->client;
	d->node = n;
	n->opens++;
	d->type = type;
	d->uid = c->uid;
	put_u32(d->other, c->sim->boot);
	put_u32(d->other + 4, 0xde1e);
	put_u32(d->other + 8, (uint32_t)++c->sim->next_id);
	list_push_back(&c->sim->delegs, &d->link);
	return d;
}

static unsigned int recall(
	struct nfsd_sim *sim, struct deleg *d, struct session *s, const struct cmp *refers)
{
	if (!d->recalled_ns)
		d->recalled_ns = sim_now(sim);
	d->recalled = true;
	return callback_to(sim, d->client, s,
		&(struct cb_args){.what = NFSD_SIM_CB_RECALL, .deleg = d, .refers = refers});
}

static void wr_none(struct cmp *c, uint32_t access)
{
	if (!(access & WANT_MASK)) {
		wr_u32(c->out, 0);
		return;
	}
	wr_u32(c->out, NONE_EXT);
	if ((access & WANT_MASK) == WANT_NO_DELEG) {
		wr_u32(c->out, WHY_NOT_WANTED);
	} else {
		wr_u32(c->out, WHY_CONTENTION);
		wr_u32(c->out, 0);
	}
}

void wr_delegation(
	struct cmp *c, struct node *n, uint32_t claim, uint32_t access, uint32_t deleg_type)
{
	const struct nfsd_sim_conf *conf = &c->sim->conf;
	uint32_t type = type_for(c, n, claim, access, deleg_type);
	char who[128];
	struct deleg *d;

	if (!type) {
		wr_none(c, access);
		return;
	}
	d = deleg_new(c, n, type);
	if (claim == SIM_CLAIM_PREVIOUS)
		d->uid = held_deleg_uid(c->sim, d->client, n);
	c->sim->stats.delegs++;
	c->sim->stats.deleg_reclaims += claim == SIM_CLAIM_PREVIOUS;
	wr_u32(c->out, type);
	wr_u32(c->out, 1);
	wr_raw(c->out, d->other, 12);
	wr_u32(c->out, conf->deleg_recalled);
	if (type == NFSD_SIM_DELEG_WRITE) {
		wr_u32(c->out, 1); /* NFS_LIMIT_SIZE */
		wr_u64(c->out, UINT64_MAX);
	}
	for (int i = 0; i < 3; i++) /* type, flags, mask of an ACE that lets nobody in */
		wr_u32(c->out, 0);
	memset(who, 'w', sizeof(who));
	wr_opaque(c->out, who, conf->longest ? sizeof(who) : 0);
	if (conf->deleg_recalled) {
		d->recalled = true;
		d->agreed_ns = now_of(c->conn->reactor);
	}
	if (conf->deleg_early == NFSD_SIM_EARLY_NONE)
		return;
	c->job->late_ns += conf->deleg_early_ns;
	recall(c->sim, d, NULL, conf->deleg_early == NFSD_SIM_EARLY_REFERS ? c : NULL);
}

/* ---- used ---- */

uint32_t deleg_check(struct cmp *c, const struct deleg *d, const struct stateid *sid, uint32_t need)
{
	if (d->client != c->sess->client || d->node != c->cur || sid->seqid > 1)
		return bad_stateid(c, sid);
	if (d->revoked)
		return d->revoked;
	if (d->client->bound && d->uid != c->uid)
		return ST_WRONG_CRED;
	if (need & 2 && d->type != NFSD_SIM_DELEG_WRITE) {
		BLAME_STATE(c, "xid %#x: a READ delegation to write with", c->job->xid);
		return ST_OPENMODE;
	}
	c->sim->stats.deleg_io++;
	return ST_OK;
}

uint32_t deleg_claim(struct cmp *c, const struct stateid *sid, uint32_t access)
{
	struct deleg *d = deleg_find(c->sim, sid->other);

	if (!d || d->client != c->sess->client || d->node != c->cur || sid->seqid > 1)
		return bad_stateid(c, sid);
	if (d->revoked)
		return d->revoked;
	if (access & 2 && d->type != NFSD_SIM_DELEG_WRITE) {
		BLAME_STATE(c, "xid %#x: a READ delegation claimed to write with", c->job->xid);
		return ST_OPENMODE;
	}
	c->sim->stats.deleg_claims++;
	return ST_OK;
}

uint32_t op_delegreturn(struct cmp *c)
{
	struct stateid sid;
	struct deleg *d;

	rd_stateid(&c->in, &sid);
	if (c->in.bad)
		return ST_BADXDR;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	d = deleg_find(c->sim, sid.other);
	if (!d || d->client != c->sess->client || sid.seqid > 1)
		return bad_stateid(c, &sid);
	if (d->revoked)
		return d->revoked;
	if (d->node != c->cur)
		BLAME_STATE(c, "xid %#x: DELEGRETURN with another file's handle", c->job->xid);
	if (d->uid != c->uid)
		BLAME_STATE(c, "xid %#x: DELEGRETURN by user %u of what %u was given", c->job->xid,
			c->uid, d->uid);
	deleg_drop(c->sim, d);
	c->sim->stats.deleg_returns++;
	return ST_OK;
}

uint32_t deleg_free_stateid(struct nfsd_sim *sim, struct deleg *d)
{
	if (!d->revoked)
		return ST_LOCKS_HELD;
	if (d->revoked == ST_BAD_STATEID)
		return ST_BAD_STATEID;
	deleg_drop(sim, d);
	return ST_OK;
}

/* ---- recalled ---- */

bool deleg_conflict(struct nfsd_sim *sim, struct node *n, const struct client *cl, uint32_t access)
{
	bool found = false;

	list_for_each (node, &sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (d->node != n || d->client == cl || d->revoked || !conflicts(d->type, access))
			continue;
		found = true;
		n->contended = true;
		if (!d->recalled)
			recall(sim, d, NULL, NULL);
	}
	return found;
}

void delegs_judge(struct cmp *c)
{
	uint64_t lease_ns = c->sim->conf.lease_s * NSEC_PER_SEC, now = now_of(c->conn->reactor);

	list_for_each (node, &c->sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (d->client != c->sess->client || !d->recalled || d->revoked)
			continue;
		if (c->sim->conf.deleg_expires) {
			if (d->recalled_ns && now > d->recalled_ns + lease_ns)
				d->revoked = ST_DELEG_REVOKED;
		} else if (d->agreed_ns && now > d->agreed_ns + lease_ns) {
			BLAME_STATE(c,
				"xid %#x: a delegation was kept for longer than the lease "
				"after its recall",
				c->job->xid);
			d->agreed_ns = 0;
		}
	}
}

/* ---- what tests do to them ---- */

struct session *nth_session(struct nfsd_sim *sim, const struct client *cl, unsigned int session)
{
	list_for_each (node, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (s->client == cl && session-- == 0)
			return s;
	}
	return NULL;
}

unsigned int nfsd_sim_recall_on(struct nfsd_sim *sim, const char *path, unsigned int session)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (!d->revoked && (!path || d->node == tree_path(&sim->tree, path)))
			cnt += recall(sim, d, nth_session(sim, d->client, session), NULL);
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_recall(struct nfsd_sim *sim, const char *path)
{
	return nfsd_sim_recall_on(sim, path, UINT32_MAX);
}

unsigned int nfsd_sim_recall_any(struct nfsd_sim *sim, uint32_t keep, uint32_t mask)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->clients)
		cnt += callback_to(sim, container_of(node, struct client, link), NULL,
			&(struct cb_args){
				.what = NFSD_SIM_CB_RECALL_ANY, .keep = keep, .mask = mask});
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_cb_getattr(struct nfsd_sim *sim, const char *path)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (!d->revoked && d->node == tree_path(&sim->tree, path))
			cnt += callback_to(sim, d->client, NULL,
				&(struct cb_args){.what = NFSD_SIM_CB_GETATTR, .deleg = d});
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_revoke_deleg(struct nfsd_sim *sim, const char *path, uint32_t status)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->delegs) {
		struct deleg *d = deleg_from(node);

		if (path && d->node != tree_path(&sim->tree, path))
			continue;
		d->revoked = status;
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_live_delegs(struct nfsd_sim *sim)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->delegs)
		cnt += !deleg_from(node)->revoked;
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

bool nfsd_sim_other_open(struct nfsd_sim *sim, const char *path, uint32_t access)
{
	struct node *n;
	bool ok;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	ok = n && !deleg_conflict(sim, n, NULL, access);
	if (ok)
		n->other = access;
	pthread_mutex_unlock(&sim->lock);
	return ok;
}
