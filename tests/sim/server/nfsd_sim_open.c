/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OPEN, OPEN_DOWNGRADE, CLOSE as nfsd has them: one open for each client, open
 * owner and file; it remembers with which modes it was opened.
 */
#include "nfsd_sim_held.h"

#include <stdlib.h>

static void wr_stateid(struct wr *w, const struct open_state *o)
{
	wr_u32(w, o->seqid);
	wr_raw(w, o->other, 12);
}

struct open_args {
	uint32_t access, deny, type, mode, claim;
	const uint8_t *owner;
	uint32_t owner_len;
	const uint8_t *verf;
	uint32_t deleg_type;  /* CLAIM_PREVIOUS */
	struct stateid deleg; /* CLAIM_DELEG_CUR_FH */
	struct rd attrs;      /* where the fattr4 starts */
	const char *name;
	uint32_t name_len;
};

static uint32_t rd_open(struct cmp *c, struct open_args *a)
{
	uint32_t mask[3], len;

	rd_u32(&c->in);
	a->access = rd_u32(&c->in);
	a->deny = rd_u32(&c->in);
	rd_u64(&c->in);
	a->owner = rd_opaque(&c->in, &a->owner_len);
	a->type = rd_u32(&c->in);
	if (a->type > 1)
		c->in.bad = true;
	if (a->type == 1) {
		a->mode = rd_u32(&c->in);
		if (a->mode > 3)
			c->in.bad = true;
		if (a->mode >= 2)
			a->verf = rd_bytes(&c->in, 8);
		a->attrs = c->in;
		if (a->mode != 2) {
			rd_bitmap(&c->in, mask);
			rd_opaque(&c->in, &len);
		}
	}
	a->claim = rd_u32(&c->in);
	if (c->in.bad || a->owner_len > 1024)
		return ST_BADXDR;
	if (a->claim == SIM_CLAIM_NULL)
		return rd_name(&c->in, &a->name, &a->name_len);
	if (a->claim == SIM_CLAIM_PREVIOUS)
		a->deleg_type = rd_u32(&c->in);
	else if (a->claim == SIM_CLAIM_DELEG_CUR_FH)
		rd_stateid(&c->in, &a->deleg);
	else if (a->claim != SIM_CLAIM_FH)
		return ST_NOTSUPP;
	if (a->claim == SIM_CLAIM_DELEG_CUR_FH && c->sim->conf.no_deleg_claim)
		return ST_NOTSUPP;
	return c->in.bad ? ST_BADXDR : ST_OK;
}

/* Applies the fattr4 of the arguments; leaves c->in where it is. */
static uint32_t open_attrs(
	struct cmp *c, const struct open_args *a, struct node *n, uint32_t set[3])
{
	struct rd in = c->in;
	uint32_t st;

	c->in = a->attrs;
	st = attr_apply(c, n, set);
	c->in = in;
	return st;
}

static uint32_t open_existing(
	struct cmp *c, const struct open_args *a, struct node *n, uint32_t set[3])
{
	struct rd r = a->attrs;
	uint32_t mask[3], len, rwx = 0;
	const uint8_t *vals;

	if (a->type == 1 && a->mode == 1)
		return ST_EXIST;
	if (a->type == 1 && a->mode >= 2)
		return n->is_excl && !memcmp(n->excl, a->verf, 8) ? ST_OK : ST_EXIST;
	if (n->type == NFSD_SIM_DIR)
		return ST_ISDIR;
	if (n->type != NFSD_SIM_REG)
		return n->type == NFSD_SIM_LNK ? 10029 : ST_WRONG_TYPE; /* SYMLINK */
	rwx |= a->access & 1 ? 4 : 0;
	rwx |= a->access & 2 ? 2 : 0;
	if (!may(c, n, rwx) && c->uid != n->uid)
		return ST_ACCESS;
	if (n->opens_delayed || deleg_conflict(c->sim, n, c->sess->client, a->access & 3))
		return ST_DELAY;
	if (a->type != 1)
		return ST_OK;
	rd_bitmap(&r, mask);
	vals = rd_opaque(&r, &len);
	if (mask[0] & 0x10 && len >= 8) { /* of the attributes, only size 0 matters here */
		struct rd v = {vals, vals + 8, false};

		if (!may(c, n, 2) && c->uid != n->uid)
			return ST_ACCESS;
		tree_truncate(&c->sim->tree, n, rd_u64(&v));
		set[0] |= 0x10;
	}
	return ST_OK;
}

static uint32_t open_new(
	struct cmp *c, const struct open_args *a, struct node **ret, uint32_t set[3])
{
	struct node *dir = c->cur, *n;
	uint32_t st = ST_OK, asked[3];
	struct rd attrs = a->attrs;

	if (!may(c, dir, 3))
		return ST_ACCESS;
	if (a->mode == 3) {
		rd_bitmap(&attrs, asked);
		if (!attr_is_exclcreat(c, asked))
			return ST_INVAL;
	}
	n = tree_new(&c->sim->tree, NFSD_SIM_REG, 0644);
	n->below = dir->below;
	n->uid = c->uid;
	n->gid = c->gid;
	if (a->mode >= 2) {
		n->is_excl = true;
		memcpy(n->excl, a->verf, 8);
	}
	if (a->mode != 2)
		st = open_attrs(c, a, n, set);
	tree_link(&c->sim->tree, dir, a->name, a->name_len, n);
	if (st) {
		tree_unlink(&c->sim->tree, dir, tree_find(dir, a->name, a->name_len));
		return st;
	}
	*ret = n;
	return ST_OK;
}

/* Who has heard of it frees it first; an OPEN on its way meanwhile is nobody's fault. */
static void judge_revoked(struct cmp *c, const struct open_state *o)
{
	uint64_t heard_ns = o->told_ns + c->sim->conf.latency_ns + 2 * fab_sim_conf()->wire_ns;

	if (!c->sim->conf.tolerant_revoked && o->told_ns && now_of(c->conn->reactor) >= heard_ns)
		BLAME_STATE(c, "xid %#x: OPEN before what was revoked is freed", c->job->xid);
}

static struct open_state *open_get(struct cmp *c, const struct open_args *a, struct node *n)
{
	struct open_state *o;

	list_for_each (node, &c->sim->opens) {
		o = container_of(node, struct open_state, link);
		if (o->client == c->sess->client && o->node == n && o->owner_len == a->owner_len &&
			!memcmp(o->owner, a->owner, a->owner_len)) {
			if (o->revoked) {
				judge_revoked(c, o);
				continue;
			}
			if (o->uid != c->uid)
				BLAME_STATE(c, "xid %#x: an open owner of user %u by user %u",
					c->job->xid, o->uid, c->uid);
			o->seqid++;
			o->access |= a->access & 3;
			o->modes |= 1u << (a->access & 3);
			return o;
		}
	}
	o = calloc(1, sizeof(*o));
	o->client = c->sess->client;
	o->node = n;
	n->opens++;
	put_u32(o->other, c->sim->boot);
	put_u32(o->other + 4, 0x0be4);
	put_u32(o->other + 8, (uint32_t)++c->sim->next_id);
	o->seqid = 1;
	o->access = a->access & 3;
	o->modes = 1u << (a->access & 3);
	o->uid = c->uid;
	o->owner_len = a->owner_len;
	memcpy(o->owner, a->owner, a->owner_len);
	list_push_back(&c->sim->opens, &o->link);
	return o;
}

static uint32_t open_find(
	struct cmp *c, const struct open_args *a, struct node **ret, uint32_t set[3])
{
	struct dirent_sim *de;

	if (a->claim != SIM_CLAIM_NULL) {
		*ret = c->cur;
		return open_existing(c, a, c->cur, set);
	}
	if (c->cur->type != NFSD_SIM_DIR)
		return ST_NOTDIR;
	de = tree_find(c->cur, a->name, a->name_len);
	if (!de)
		return a->type == 1 ? open_new(c, a, ret, set) : ST_NOENT;
	*ret = de->node;
	return open_existing(c, a, de->node, set);
}

uint32_t op_open(struct cmp *c)
{
	struct open_args a = {0};
	uint32_t st = rd_open(c, &a), set[3] = {0};
	struct open_state *o;
	struct node *n = NULL, *dir = c->cur;
	uint64_t before;
	bool reclaim;

	if (st)
		return st;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (!(a.access & 3) || a.deny > 3)
		return ST_INVAL;
	reclaim = a.claim == SIM_CLAIM_PREVIOUS;
	if (in_grace(c) != reclaim)
		return reclaim ? ST_NO_GRACE : ST_GRACE;
	if (!c->sess->client->reclaimed && !reclaim) {
		BLAME_STATE(c, "xid %#x: OPEN before RECLAIM_COMPLETE", c->job->xid);
		return ST_GRACE;
	}
	if (reclaim)
		st = held_reclaim(c, a.owner, a.owner_len, a.access & 3, a.deleg_type);
	else if (a.claim == SIM_CLAIM_DELEG_CUR_FH)
		st = deleg_claim(c, &a.deleg, a.access & 3);
	if (st)
		return st;
	before = dir->change;
	st = open_find(c, &a, &n, set);
	if (st)
		return st;
	o = open_get(c, &a, n);
	memcpy(c->job->opened, o->other, 12);
	c->cur = n;
	c->cur_sid.seqid = o->seqid;
	memcpy(c->cur_sid.other, o->other, 12);
	c->have_sid = true;
	wr_stateid(c->out, o);
	wr_cinfo(c, before, dir);
	wr_u32(c->out, 0x24); /* OPEN4_RESULT_LOCKTYPE_POSIX, MAY_NOTIFY_LOCK */
	wr_bitmap(c->out, set);
	wr_delegation(c, n, a.claim, a.access, a.deleg_type);
	return ST_OK;
}

/* ---- OPEN_DOWNGRADE, CLOSE ---- */

/* An OPEN whose reply is still to come may not be ended by who did not wait for it. */
static void judge_order(struct cmp *c, const struct open_state *o)
{
	list_for_each (cnode, &c->sim->conns) {
		struct sconn *conn = container_of(cnode, struct sconn, link);

		list_for_each (node, &conn->jobs) {
			const struct job *job = container_of(node, struct job, link);

			if (job != c->job && !memcmp(job->opened, o->other, 12))
				BLAME_STATE(c,
					"xid %#x: CLOSE or OPEN_DOWNGRADE while an OPEN of "
					"the same owner is on its way",
					c->job->xid);
		}
	}
}

uint32_t op_open_downgrade(struct cmp *c)
{
	struct stateid sid;
	struct open_state *o;
	uint32_t access, deny, st;

	rd_stateid(&c->in, &sid);
	rd_u32(&c->in);
	access = rd_u32(&c->in);
	deny = rd_u32(&c->in);
	if (c->in.bad)
		return ST_BADXDR;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	st = state_check(c, &sid, 0, &o);
	if (st)
		return st;
	judge_order(c, o);
	if (access < 1 || access > 3 || deny || !(o->modes & 1u << access)) {
		BLAME_STATE(c, "xid %#x: OPEN_DOWNGRADE to access %u, deny %u; opened were %#x",
			c->job->xid, access, deny, o->modes);
		return ST_INVAL;
	}
	held_less(c, o);
	o->access = access;
	if (access != 3)
		o->modes = 1u << access;
	o->seqid++;
	wr_stateid(c->out, o);
	return ST_OK;
}

uint32_t op_close(struct cmp *c)
{
	struct stateid sid;
	struct open_state *o;
	uint32_t st;

	rd_u32(&c->in);
	rd_stateid(&c->in, &sid);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	st = state_check(c, &sid, 0, &o);
	if (st)
		return st;
	if (c->sim->conf.close_wants_unlock && locks_held(c->sim, o))
		return ST_LOCKS_HELD;
	judge_order(c, o);
	held_less(c, o);
	lock_held_close(c->sim, o);
	open_drop(c->sim, o);
	c->cur = NULL; /* may be gone with its last open */
	c->have_sid = false;
	wr_u32(c->out, UINT32_MAX);
	for (int i = 0; i < 3; i++)
		wr_u32(c->out, 0);
	return ST_OK;
}

/* ---- from outside ---- */

unsigned int nfsd_sim_opens(
	struct nfsd_sim *sim, const char *path, struct nfsd_sim_open *opens, unsigned int max)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->opens) {
		const struct open_state *o = container_of(node, struct open_state, link);
		struct rd number = {o->owner + o->owner_len - 8, o->owner + o->owner_len, false};

		if (o->node != tree_path(&sim->tree, path))
			continue;
		if (cnt < max)
			opens[cnt] = (struct nfsd_sim_open){
				.owner = o->owner_len >= 8 ? rd_u64(&number) : 0,
				.access = o->access,
				.modes = o->modes,
				.seqid = o->seqid,
				.revoked = o->revoked,
			};
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}
